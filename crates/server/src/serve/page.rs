//! The page, and the JavaScript client that it evaluates synopses with, embedded in the program and sent compressed.
//!
//! Compression under TLS tells an onlooker about a secret where an answer has both a secret and what a request put there (the BREACH
//! attack). These files have neither: they are the same bytes for everybody, and public.

use std::io::Write;

use axum::body::Bytes;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

pub struct File {
    pub path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Every file, a line each.
#[rustfmt::skip]
pub const FILES: &[File] = &[
    File { path: "/", kind: HTML, text: include_str!("page/index.html") },
    File { path: "/bernstream.js", kind: JS, text: include_str!("../../../../clients/javascript/bernstream.js") },
    File { path: "/about.js", kind: JS, text: include_str!("page/about.js") },
    File { path: "/ask.js", kind: JS, text: include_str!("page/ask.js") },
    File { path: "/axes.js", kind: JS, text: include_str!("page/axes.js") },
    File { path: "/budget.js", kind: JS, text: include_str!("page/budget.js") },
    File { path: "/choices.js", kind: JS, text: include_str!("page/choices.js") },
    File { path: "/dom.js", kind: JS, text: include_str!("page/dom.js") },
    File { path: "/download.js", kind: JS, text: include_str!("page/download.js") },
    File { path: "/feed.js", kind: JS, text: include_str!("page/feed.js") },
    File { path: "/grid.js", kind: JS, text: include_str!("page/grid.js") },
    File { path: "/heat.js", kind: JS, text: include_str!("page/heat.js") },
    File { path: "/icon.svg", kind: SVG, text: include_str!("page/icon.svg") },
    File { path: "/integral.js", kind: JS, text: include_str!("page/integral.js") },
    File { path: "/keys.js", kind: JS, text: include_str!("page/keys.js") },
    File { path: "/kinds.js", kind: JS, text: include_str!("page/kinds.js") },
    File { path: "/legend.js", kind: JS, text: include_str!("page/legend.js") },
    File { path: "/link.js", kind: JS, text: include_str!("page/link.js") },
    File { path: "/names.js", kind: JS, text: include_str!("page/names.js") },
    File { path: "/odds.js", kind: JS, text: include_str!("page/odds.js") },
    File { path: "/overtime.js", kind: JS, text: include_str!("page/overtime.js") },
    File { path: "/page.css", kind: CSS, text: include_str!("page/page.css") },
    File { path: "/page.js", kind: JS, text: include_str!("page/page.js") },
    File { path: "/plot.js", kind: JS, text: include_str!("page/plot.js") },
    File { path: "/price.js", kind: JS, text: include_str!("page/price.js") },
    File { path: "/quantiles.js", kind: JS, text: include_str!("page/quantiles.js") },
    File { path: "/range.js", kind: JS, text: include_str!("page/range.js") },
    File { path: "/sentence.js", kind: JS, text: include_str!("page/sentence.js") },
    File { path: "/smoothing.js", kind: JS, text: include_str!("page/smoothing.js") },
    File { path: "/spending.js", kind: JS, text: include_str!("page/spending.js") },
    File { path: "/stage.js", kind: JS, text: include_str!("page/stage.js") },
    File { path: "/status.js", kind: JS, text: include_str!("page/status.js") },
    File { path: "/store.js", kind: JS, text: include_str!("page/store.js") },
    File { path: "/table.js", kind: JS, text: include_str!("page/table.js") },
    File { path: "/time.js", kind: JS, text: include_str!("page/time.js") },
    File { path: "/views.js", kind: JS, text: include_str!("page/views.js") },
    File { path: "/wall.js", kind: JS, text: include_str!("page/wall.js") },
    File { path: "/words.js", kind: JS, text: include_str!("page/words.js") },
];

/// A file as it is sent, compressed once.
#[derive(Clone)]
pub struct Prepared {
    file: &'static File,
    /// `None` if it could not be compressed: it is sent as it is.
    gzip: Option<Bytes>,
}

impl File {
    pub fn prepare(&'static self) -> Prepared {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzip = encoder
            .write_all(self.text.as_bytes())
            .and_then(|()| encoder.finish())
            .ok()
            .map(Bytes::from);
        Prepared { file: self, gzip }
    }
}

impl Prepared {
    pub fn answer(self, request: &HeaderMap) -> Response {
        let mut response = match self.gzip.filter(|_| takes_gzip(request)) {
            Some(gzip) => ([(CONTENT_ENCODING, "gzip")], gzip).into_response(),
            None => self.file.text.into_response(),
        };
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(self.file.kind));
        response
            .headers_mut()
            .insert(VARY, HeaderValue::from_static("accept-encoding"));
        response
    }
}

/// Returns whether compressed answers are asked for: by their name only; a weight of zero is a refusal (RFC 9110, 12.5.3).
fn takes_gzip(request: &HeaderMap) -> bool {
    let lists = request
        .get_all(ACCEPT_ENCODING)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight
            .trim()
            .strip_prefix("q=")
            .map_or(Ok(1.0), str::parse::<f64>);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder =
            std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/serve/page")).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut there: Vec<String> = folder
            .map(name)
            .map(|name| format!("/{}", name.replace("index.html", "")))
            .collect();
        there.push("/bernstream.js".to_owned());
        there.sort();
        let mut served: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        served.sort_unstable();
        assert_eq!(served, there);
    }
}
