//! The report as one page: nothing is loaded, and nothing runs in it.

use std::fmt::Write as _;

use super::attack::AttackOutcome;
use super::pictures;
use super::report::{AuditReport, attack_summary, part_of, sampler_heading, verdict_of};
use crate::cli::failure::Failure;
use crate::cli::figures::three_digits;
use bernstream_audit::AuditTest;

const STYLE: &str = "body{font:15px/1.5 sans-serif;color:#222;max-width:60em;margin:2em auto;padding:0 1em}\
h1,h2,h3{font-weight:600}h2{margin-top:2em;border-bottom:1px solid #ddd}li{margin:.2em 0}\
table{border-collapse:collapse;margin:.7em 0;font-size:14px}th{font-weight:600;text-align:left;vertical-align:bottom}\
th,td{padding:.25em 1.2em .25em 0;border-bottom:1px solid #eee;vertical-align:top}.number{text-align:right}\
td.number{font-variant-numeric:tabular-nums}figure{margin:1em 0}figcaption{font-size:13px;max-width:46em}\
.passed{color:#2f855a}.failed{color:#c04221}svg{max-width:100%;height:auto}";

/// One self-contained document.
///
/// # Errors
///
/// If a picture cannot be drawn.
pub fn report_page(report: &AuditReport) -> Result<String, Failure> {
    let class = if report.passed { "passed" } else { "failed" };
    let verdict = match report.passed {
        true => report.passed_in_words(),
        false => "failed".to_owned(),
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Audit of {name}</title><style>{STYLE}</style></head>\
         <body>\n<h1>Audit of {name}: <span class=\"{class}\">{verdict}</span></h1>\n",
        name = escape_html(&report.configuration),
        verdict = escape_html(&verdict)
    );
    let mut about = vec![
        format!("audited at {}, by {}", report.audited, report.program),
        format!("digest of its privacy settings: {}", report.digest),
        "no data was read: all streams are made up".to_owned(),
    ];
    // The heading has the verdict, but not what failed.
    about.extend(
        report
            .verdict()
            .into_iter()
            .skip(usize::from(report.passed)),
    );
    push_list(&mut page, &about);
    push_heading(&mut page, "What is promised");
    push_list(&mut page, &report.promise);
    push_heading(&mut page, "Not protected");
    push_list(&mut page, &report.not_protected);
    push_replays(&mut page, report);
    push_samplers(&mut page, report)?;
    push_attacks(&mut page, report)?;
    push_heading(&mut page, "Ledger and output");
    push_list(&mut page, &report.ledger.lines);
    push_heading(&mut page, "What this cannot show");
    push_list(&mut page, &report.cannot_show);
    page.push_str("</body></html>\n");
    Ok(page)
}

fn push_replays(page: &mut String, report: &AuditReport) {
    push_heading(page, "Neighbouring streams");
    push_paragraph(
        page,
        "The two streams of a pair differ by one privacy unit, as the promise means it. Both go through the worker itself with the \
         same random numbers; nothing may differ but the released values, and these by no more than the declared sensitivity.",
    );
    push_paragraph(page, &format!("{}.", report.replays_in_words()));
    let rows = report.replay.changes.iter().map(|change| {
        let release = escape_html(&change.release);
        let of = escape_html(&part_of(change));
        let pair = escape_html(&change.pair);
        [release, of, format!("{:.3}", change.of_sensitivity), pair]
    });
    let columns = [
        PageColumn::Words("release"),
        PageColumn::Words("of"),
        PageColumn::Numbers("largest change / sensitivity"),
        PageColumn::Words("pair of streams that shows it"),
    ];
    push_table(page, columns, rows);
    let violations = report.replay.violations.iter();
    let found: Vec<String> = violations
        .map(|found| format!("{}: {}", found.pair, found.what))
        .collect();
    push_list(page, &found);
}

fn push_samplers(page: &mut String, report: &AuditReport) -> Result<(), Failure> {
    push_heading(page, "Noise");
    push_paragraph(
        page,
        "The noise of every mechanism, drawn by itself, against the distribution that is declared.",
    );
    for one in &report.samplers {
        push_paragraph(page, &sampler_heading(one));
        push_tests(page, &one.tests);
        let caption = format!(
            "How large the noise of {} is: what was drawn, and the declared distribution.",
            one.of
        );
        push_figure(page, &pictures::size_histogram(one)?, &caption);
    }
    Ok(())
}

fn push_attacks(page: &mut String, report: &AuditReport) -> Result<(), Failure> {
    push_heading(page, "Attack");
    push_paragraph(
        page,
        "An attacker who knows both streams of a pair and the distribution of the noise sees one released window, and says whether \
         the unit is in it. No attacker has lower error rates than this one, which decides by the likelihood ratio.",
    );
    for outcome in &report.attacks {
        match outcome {
            AttackOutcome::NotAttacked { release, why } => {
                push_paragraph(page, &format!("{release}: not attacked: {why}."))
            }
            AttackOutcome::Attacked { pair, attacked } => {
                push_paragraph(
                    page,
                    &format!(
                        "{}: {} windows with the unit and {} without, of the pair \"{pair}\":",
                        attacked.release, attacked.windows, attacked.windows
                    ),
                );
                push_list(page, &attack_summary(attacked));
                push_tests(page, &attacked.tests);
                let caption = format!(
                    "The error rates of the attacker on {}: how often it says yes without the unit, and no with it. Measured, in a \
                     band that allows for chance; calculated for the declared noise; and the lowest that the promise allows. A \
                     measured curve whose whole band is below that would break the promise.",
                    attacked.release
                );
                push_figure(page, &pictures::trade_off_curve(attacked)?, &caption);
            }
        }
    }
    Ok(())
}

fn push_tests(page: &mut String, tests: &[AuditTest]) {
    let rows = tests.iter().map(|test| {
        let verdict = verdict_of(test);
        [
            escape_html(&test.what),
            three_digits(test.difference),
            three_digits(test.allowed),
            test.fails_at
                .map_or(String::new(), |scale| format!("{scale:.3}")),
            format!(
                "<span class=\"{}\">{verdict}</span>",
                verdict.to_lowercase()
            ),
        ]
    });
    let columns = [
        PageColumn::Words("test"),
        PageColumn::Numbers("off by"),
        PageColumn::Numbers("allowed"),
        PageColumn::Numbers("fails for noise of this part of its scale, or less"),
        PageColumn::Words("verdict"),
    ];
    push_table(page, columns, rows);
}

/// A column of a table, with its name.
enum PageColumn {
    Words(&'static str),
    Numbers(&'static str),
}

impl PageColumn {
    fn name(&self) -> &'static str {
        match self {
            PageColumn::Words(name) | PageColumn::Numbers(name) => name,
        }
    }

    /// The attributes of its cells.
    fn attributes(&self) -> &'static str {
        match self {
            PageColumn::Words(_) => "",
            PageColumn::Numbers(_) => " class=\"number\"",
        }
    }
}

/// Adds a table to a page; cells are HTML.
fn push_table<const N: usize>(
    page: &mut String,
    columns: [PageColumn; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    page.push_str("<table><thead><tr>");
    for column in &columns {
        let _ = write!(page, "<th{}>{}</th>", column.attributes(), column.name());
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (cell, column) in row.iter().zip(&columns) {
            let _ = write!(page, "<td{}>{cell}</td>", column.attributes());
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>\n");
}

fn push_heading(page: &mut String, heading: &str) {
    let _ = writeln!(page, "<h2>{}</h2>", escape_html(heading));
}

fn push_paragraph(page: &mut String, text: &str) {
    let _ = writeln!(page, "<p>{}</p>", escape_html(text));
}

fn push_list(page: &mut String, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    page.push_str("<ul>\n");
    for line in lines {
        let _ = writeln!(page, "<li>{}</li>", escape_html(line));
    }
    page.push_str("</ul>\n");
}

fn push_figure(page: &mut String, picture: &str, caption: &str) {
    let _ = writeln!(
        page,
        "<figure>{picture}<figcaption>{}</figcaption></figure>",
        escape_html(caption)
    );
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
