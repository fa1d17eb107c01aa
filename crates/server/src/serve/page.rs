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

pub struct PageFile {
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
pub const FILES: &[PageFile] = &[
    PageFile { path: "/", kind: HTML, text: include_str!("page/index.html") },
    PageFile { path: "/bernstream.js", kind: JS, text: include_str!("../../../../clients/javascript/bernstream.js") },
    PageFile { path: "/about.js", kind: JS, text: include_str!("page/about.js") },
    PageFile { path: "/ask.js", kind: JS, text: include_str!("page/ask.js") },
    PageFile { path: "/axes.js", kind: JS, text: include_str!("page/axes.js") },
    PageFile { path: "/bars.js", kind: JS, text: include_str!("page/bars.js") },
    PageFile { path: "/budget.js", kind: JS, text: include_str!("page/budget.js") },
    PageFile { path: "/choices.js", kind: JS, text: include_str!("page/choices.js") },
    PageFile { path: "/counts.js", kind: JS, text: include_str!("page/counts.js") },
    PageFile { path: "/dom.js", kind: JS, text: include_str!("page/dom.js") },
    PageFile { path: "/download.js", kind: JS, text: include_str!("page/download.js") },
    PageFile { path: "/feed.js", kind: JS, text: include_str!("page/feed.js") },
    PageFile { path: "/grid.js", kind: JS, text: include_str!("page/grid.js") },
    PageFile { path: "/heat.js", kind: JS, text: include_str!("page/heat.js") },
    PageFile { path: "/icon.svg", kind: SVG, text: include_str!("page/icon.svg") },
    PageFile { path: "/integral.js", kind: JS, text: include_str!("page/integral.js") },
    PageFile { path: "/keyrows.js", kind: JS, text: include_str!("page/keyrows.js") },
    PageFile { path: "/keys.js", kind: JS, text: include_str!("page/keys.js") },
    PageFile { path: "/keytable.js", kind: JS, text: include_str!("page/keytable.js") },
    PageFile { path: "/kinds.js", kind: JS, text: include_str!("page/kinds.js") },
    PageFile { path: "/legend.js", kind: JS, text: include_str!("page/legend.js") },
    PageFile { path: "/link.js", kind: JS, text: include_str!("page/link.js") },
    PageFile { path: "/names.js", kind: JS, text: include_str!("page/names.js") },
    PageFile { path: "/odds.js", kind: JS, text: include_str!("page/odds.js") },
    PageFile { path: "/overtime.js", kind: JS, text: include_str!("page/overtime.js") },
    PageFile { path: "/page.css", kind: CSS, text: include_str!("page/page.css") },
    PageFile { path: "/page.js", kind: JS, text: include_str!("page/page.js") },
    PageFile { path: "/plot.js", kind: JS, text: include_str!("page/plot.js") },
    PageFile { path: "/price.js", kind: JS, text: include_str!("page/price.js") },
    PageFile { path: "/quantiles.js", kind: JS, text: include_str!("page/quantiles.js") },
    PageFile { path: "/range.js", kind: JS, text: include_str!("page/range.js") },
    PageFile { path: "/sentence.js", kind: JS, text: include_str!("page/sentence.js") },
    PageFile { path: "/smoothing.js", kind: JS, text: include_str!("page/smoothing.js") },
    PageFile { path: "/spending.js", kind: JS, text: include_str!("page/spending.js") },
    PageFile { path: "/stage.js", kind: JS, text: include_str!("page/stage.js") },
    PageFile { path: "/status.js", kind: JS, text: include_str!("page/status.js") },
    PageFile { path: "/store.js", kind: JS, text: include_str!("page/store.js") },
    PageFile { path: "/table.js", kind: JS, text: include_str!("page/table.js") },
    PageFile { path: "/time.js", kind: JS, text: include_str!("page/time.js") },
    PageFile { path: "/views.js", kind: JS, text: include_str!("page/views.js") },
    PageFile { path: "/wall.js", kind: JS, text: include_str!("page/wall.js") },
    PageFile { path: "/words.js", kind: JS, text: include_str!("page/words.js") },
];

/// A file as it is sent, compressed once.
#[derive(Clone)]
pub struct PreparedFile {
    file: &'static PageFile,
    /// `None` if it could not be compressed: it is sent as it is.
    gzip: Option<Bytes>,
}

impl PageFile {
    pub fn prepare_response(&'static self) -> PreparedFile {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzip = encoder
            .write_all(self.text.as_bytes())
            .and_then(|()| encoder.finish())
            .ok()
            .map(Bytes::from);
        PreparedFile { file: self, gzip }
    }
}

impl PreparedFile {
    pub fn answer_request(self, request: &HeaderMap) -> Response {
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
