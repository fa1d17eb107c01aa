//! What the values of a release are counted in, by the names that its file declares.

use bernstream_config::ReleaseSettings;
use bernstream_synopsis::description::{Description, PlotNames, TargetDescription};

/// The name of records, in the plural: "flights".
pub fn records_in_plural(names: Option<&PlotNames>) -> String {
    plural_of(
        names
            .and_then(|names| names.record.as_deref())
            .unwrap_or("record"),
    )
}

/// The unit of a value and of its error: "flights per minute".
pub fn quantity_of_release(release: &ReleaseSettings) -> String {
    if !matches!(release.function.about, TargetDescription::Density(_)) {
        return release.function.quantity.clone();
    }
    let mut units = Vec::new();
    for (number, column) in release.columns.iter().take(release.axes.len()).enumerate() {
        let names = release.names.as_ref();
        let unit = names
            .and_then(|names| names.axes.get(number))
            .and_then(|axis| axis.unit.clone());
        units.push(unit.unwrap_or_else(|| format!("unit of {column}")));
    }
    let records = records_in_plural(release.names.as_ref());
    format!("{records} per {}", units.join(" and "))
}

/// The meaning of the values of a synopsis, by its names where it has some: "flights per minute of departure delay". As on the page.
pub fn meaning_of_values(about: &Description) -> String {
    let columns: Vec<&str> = about
        .domain
        .iter()
        .map(|axis| axis.column.as_str())
        .collect();
    let plain = format!("records per unit of {}", columns.join(" and "));
    let (Some(names), Some(rest)) = (&about.names, about.meaning.strip_prefix(&plain)) else {
        return about.meaning.clone();
    };
    let mut labels = Vec::new();
    let mut units = Vec::new();
    let mut has_units = false;
    for (number, column) in columns.into_iter().enumerate() {
        let axis = names.axes.get(number);
        let label = axis.and_then(|axis| axis.label.as_deref());
        let unit = axis.and_then(|axis| axis.unit.as_deref());
        has_units |= unit.is_some();
        labels.push(label.unwrap_or(column));
        units.push(unit.unwrap_or("unit"));
    }
    let units = match has_units {
        true => units.join(" and "),
        false => "unit".to_owned(),
    };
    format!(
        "{} per {units} of {}{rest}",
        records_in_plural(Some(names)),
        labels.join(" and ")
    )
}

/// The plural of an English noun; of an abbreviation such as "km" itself. As on the page (`names.js`).
fn plural_of(noun: &str) -> String {
    let is_word = noun.chars().all(|letter| letter.is_ascii_lowercase())
        && noun.chars().rev().skip(1).any(is_vowel);
    if noun.chars().count() < 4 && !is_word {
        return noun.to_owned();
    }
    if let Some(stem) = noun.strip_suffix('y')
        && stem.chars().last().is_some_and(|letter| !is_vowel(letter))
    {
        return format!("{stem}ies");
    }
    let hisses = ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|hiss| noun.ends_with(hiss));
    format!("{noun}{}", if hisses { "es" } else { "s" })
}

fn is_vowel(letter: char) -> bool {
    "aeiou".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_config::WorkerSettings;

    #[test]
    fn records_are_told_in_the_plural_of_their_name() {
        let shown = [
            "flight", "journey", "delivery", "box", "km", "bus", "record",
        ]
        .map(plural_of);
        assert_eq!(
            shown,
            [
                "flights",
                "journeys",
                "deliveries",
                "boxes",
                "km",
                "buses",
                "records"
            ]
        );
    }

    #[test]
    fn a_quantity_takes_the_names_of_the_file_where_there_are_some() {
        let of = |text: &str| {
            let settings = WorkerSettings::parse(text, "test").unwrap();
            settings.releases.last().map(quantity_of_release).unwrap()
        };
        assert_eq!(
            of(include_str!("../../config/demo.toml")),
            "customers per minute"
        );
        assert_eq!(
            of(include_str!("../../config/users.toml")),
            "records per unit of milliseconds"
        );
    }
}
