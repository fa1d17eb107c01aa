//! The page, and the JavaScript client that it evaluates synopses with, embedded in the program.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

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
    File { path: "/bernstream.js", kind: JS, text: include_str!("../../clients/javascript/bernstream.js") },
    File { path: "/about.js", kind: JS, text: include_str!("page/about.js") },
    File { path: "/ask.js", kind: JS, text: include_str!("page/ask.js") },
    File { path: "/axes.js", kind: JS, text: include_str!("page/axes.js") },
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
    File { path: "/stage.js", kind: JS, text: include_str!("page/stage.js") },
    File { path: "/status.js", kind: JS, text: include_str!("page/status.js") },
    File { path: "/store.js", kind: JS, text: include_str!("page/store.js") },
    File { path: "/table.js", kind: JS, text: include_str!("page/table.js") },
    File { path: "/time.js", kind: JS, text: include_str!("page/time.js") },
    File { path: "/views.js", kind: JS, text: include_str!("page/views.js") },
    File { path: "/wall.js", kind: JS, text: include_str!("page/wall.js") },
    File { path: "/words.js", kind: JS, text: include_str!("page/words.js") },
];

impl IntoResponse for &'static File {
    fn into_response(self) -> axum::response::Response {
        ([(CONTENT_TYPE, self.kind)], self.text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/serve/page")).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut there: Vec<String> =
            folder.map(name).map(|name| format!("/{}", name.replace("index.html", ""))).collect();
        there.push("/bernstream.js".to_owned());
        there.sort();
        let mut served: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        served.sort_unstable();
        assert_eq!(served, there);
    }
}
