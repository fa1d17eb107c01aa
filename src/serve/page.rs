//! The page, and the module that it evaluates synopses with: part of the program, so that nothing has to be found.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

pub struct File {
    pub path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
#[allow(dead_code, reason = "the page is a stub")]
const CSS: &str = "text/css; charset=utf-8";
#[allow(dead_code, reason = "the page is a stub")]
const SVG: &str = "image/svg+xml";

/// Every file, a line each.
#[rustfmt::skip]
pub const FILES: &[File] = &[
    File { path: "/", kind: HTML, text: include_str!("page/index.html") },
    File { path: "/bernstream.js", kind: JS, text: include_str!("../../clients/javascript/bernstream.js") },
];

impl IntoResponse for &'static File {
    fn into_response(self) -> axum::response::Response {
        ([(CONTENT_TYPE, self.kind)], self.text).into_response()
    }
}
