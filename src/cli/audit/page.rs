//! The report as one page: nothing is loaded, and nothing runs in it.

use std::fmt::Write as _;

use super::pictures;
use super::report::{Report, of_sampler, of_walk};
use super::walk::Outcome;
use crate::cli::failure::Failure;

const STYLE: &str = "body{font:15px/1.5 sans-serif;color:#222;max-width:60em;margin:2em auto;padding:0 1em}\
h1,h2{font-weight:600}h2{margin-top:2em;border-bottom:1px solid #ddd}li{margin:.2em 0}\
pre{white-space:pre-wrap;font:13px/1.5 monospace}figure{display:inline-block;margin:.5em}figcaption{font-size:13px}\
.passed{color:#2f855a}.failed{color:#c04221}svg{max-width:100%;height:auto}";

/// One self-contained document.
///
/// # Errors
///
/// If a picture cannot be drawn.
pub fn page(report: &Report) -> Result<String, Failure> {
    let (class, verdict) =
        if report.passed { ("passed", report.passed_in_words()) } else { ("failed", "failed".to_owned()) };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Audit of {name}</title><style>{STYLE}</style></head>\
         <body>\n<h1>Audit of {name}: <span class=\"{class}\">{verdict}</span></h1>\n",
        name = escaped(&report.configuration)
    );
    let about = [
        format!("audited at {}, by {}", report.audited, report.program),
        format!("digest of its privacy settings: {}", report.digest),
        "no data was read: all streams are made up".to_owned(),
    ];
    list(&mut page, "", about.iter().chain(&report.verdict()));
    list(&mut page, "What is promised", &report.promise);
    list(&mut page, "Not protected", &report.not_protected);
    list(&mut page, "Neighbouring streams", report.replays().iter());
    text(
        &mut page,
        "Each pair of streams differs by one privacy unit, as the promise means it. Both go through the worker itself with the \
                     same noise; nothing may differ but the released values, and these by no more than was declared.",
    );
    figure(
        &mut page,
        &pictures::changes(&report.replay.changes)?,
        "The largest change found, as a part of the declared one.",
    );
    heading(&mut page, "Samplers");
    text(&mut page, "The noise of every mechanism, drawn by itself, against the law that it must have.");
    for one in &report.samplers {
        lines(&mut page, &of_sampler(one));
        figure(&mut page, &pictures::sizes(&one.sizes)?, &format!("The noise of {}.", one.of));
    }
    heading(&mut page, "The real walk");
    text(
        &mut page,
        "An attacker who knows both streams and the law of the noise sees one released window and says whether the unit is there. \
                     A curve below the promised one would break the promise; the calculated one is that of the declared noise.",
    );
    for outcome in &report.walks {
        lines(&mut page, &of_walk(outcome));
        if let Outcome::Walked { walked, .. } = outcome {
            let caption = format!("What the best attacker achieves on {}.", walked.release);
            figure(&mut page, &pictures::trade_off(walked)?, &caption);
            figure(
                &mut page,
                &pictures::sizes(&walked.sizes)?,
                &format!("The noise in the walk of {}.", walked.release),
            );
        }
    }
    list(&mut page, "Ledger and output", &report.ledger.lines);
    list(&mut page, "What this cannot show", &report.cannot_show);
    page.push_str("</body></html>\n");
    Ok(page)
}

fn heading(page: &mut String, heading: &str) {
    let _ = writeln!(page, "<h2>{}</h2>", escaped(heading));
}

fn text(page: &mut String, text: &str) {
    let _ = writeln!(page, "<p>{}</p>", escaped(text));
}

fn list<'l>(page: &mut String, title: &str, lines: impl IntoIterator<Item = &'l String>) {
    if !title.is_empty() {
        heading(page, title);
    }
    page.push_str("<ul>\n");
    for line in lines {
        let _ = writeln!(page, "<li>{}</li>", escaped(line));
    }
    page.push_str("</ul>\n");
}

fn lines(page: &mut String, lines: &[String]) {
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&lines.join("\n")));
}

fn figure(page: &mut String, picture: &str, caption: &str) {
    let _ = writeln!(page, "<figure>{picture}<figcaption>{}</figcaption></figure>", escaped(caption));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
