//! `[ledger]`

use std::time::Duration;

use toml::Spanned;

use crate::config::file;
use crate::config::text::{Checked, Document, values};
use crate::ledger;

/// How long published bytes are kept by default.
const KEEP_PUBLISHED: Duration = Duration::from_secs(7 * 24 * 3600);

pub fn ledger(document: &mut Document<'_>, table: Spanned<file::Ledger>) -> Checked<ledger::Params> {
    let (place, written) = (table.span(), table.into_inner());
    let path = document.required(&place, "path", written.path, values::words);
    let keep_published = document.optional(written.keep_published, values::duration);
    Ok(ledger::Params {
        path: path?.into_inner().into(),
        keep_published: keep_published?.map_or(KEEP_PUBLISHED, Spanned::into_inner),
    })
}
