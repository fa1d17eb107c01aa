//! What is said beside a table: what the values are, and the guarantee.

use super::table::Divisor;
use crate::cli::reading::Width;
use crate::cli::units;
use bernstream_synopsis::description::{Description, PrivacyDefinition};
use bernstream_synopsis::terminal_text::escape_unprintable;

pub(super) fn source_and_meaning(about: &Description, divisor: Divisor) -> String {
    // Behind the semicolon stands how to divide, which is done already.
    let meaning = units::meaning_of_values(about);
    let quantity = meaning.split(';').next().unwrap_or_default();
    let value = match divisor {
        Divisor::Nothing => meaning,
        Divisor::Records(n) => format!("{meaning}, divided by {n}"),
        Divisor::Mass(mass) => {
            format!(
                "{quantity}, divided by the released mass {mass:.1}, whose own noise the band ignores"
            )
        }
        Divisor::Clipped(mass) => format!(
            "{quantity}, clipped at 0 and divided by the remaining mass {mass:.1}, whose own noise the band ignores"
        ),
        Divisor::Cumulative => {
            "the share of records at or below a point, which rises from 0 to 1".to_owned()
        }
    };
    format!("{}value: {value}", source_in_words(about))
}

/// The release and the window that a synopsis is of, as lines; also that records are missing, where the operator has said so.
pub(in crate::cli) fn source_in_words(about: &Description) -> String {
    let key = about
        .key
        .as_ref()
        .map(|key| format!(", key '{}'", escape_unprintable(key)))
        .unwrap_or_default();
    let simulated = if about.synthetic {
        "; the records were simulated"
    } else {
        ""
    };
    let incomplete = if about.incomplete {
        "incomplete: the operator has accepted that records of this window may be missing\n"
    } else {
        ""
    };
    format!(
        "{} of {}{key}, {} to {}{simulated}\n{incomplete}",
        about.release, about.pipeline, about.window.start, about.window.end
    )
}

pub(super) fn guarantee_in_words(about: &Description, band: &Width, pointwise: bool) -> String {
    let privacy = &about.privacy;
    let percent = about.band.level * 100.0;
    let noise = "lower, upper: cover the noise, not the approximation error";
    let band = match band {
        Width::Posterior => {
            "lower, upper: cover the function at any single point with 95 % probability, if the function is as smooth as \
             its kernel"
                .to_owned()
        }
        Width::None => "no band for this reading".to_owned(),
        _ if pointwise => format!("{noise}, at any single point with 95 % probability"),
        _ => format!("{noise}, everywhere at once with {percent} % probability"),
    };
    let definition = match &privacy.definition {
        PrivacyDefinition::PureEpsilon => String::new(),
        random @ PrivacyDefinition::Random(_) => format!("{random}, epsilon {}: ", privacy.price),
        other => format!("{other}, {}: ", privacy.price),
    };
    let mut choices = String::new();
    for choice in &about.choices {
        choices += &format!("\nchosen privately from the records of this window and key: {choice}");
    }
    format!("{band}{choices}\n{definition}{}", privacy.in_words)
}
