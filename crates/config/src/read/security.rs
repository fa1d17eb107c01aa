//! `tls` and `sasl` of a cluster.

use std::ops::Range;
use std::path::PathBuf;

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_kafka::security::{
    InTheClear, SaslMechanism, SaslParams, Security, TlsIdentity, TlsParams,
};

/// Reads `tls` and `sasl`; one that the file does not set is `inherited`.
pub fn read_security(
    document: &mut Document<'_>,
    tls: Field<file::TlsTable>,
    sasl: Field<file::SaslTable>,
    inherited: &Security,
) -> Checked<Security> {
    let place = sasl.as_ref().map(Spanned::span);
    let tls = tls.map(|table| self::read_tls(document, table)).transpose();
    let sasl = sasl
        .map(|table| self::read_sasl(document, table))
        .transpose();
    let tls = tls?.or_else(|| inherited.tls().cloned());
    let sasl = sasl?.or_else(|| inherited.sasl().cloned());
    Security::new(tls, sasl).map_err(|wrong @ InTheClear| {
        let hint = "add `tls`, such as tls = {} for the system's authorities, or use SCRAM-SHA-512";
        document.fault(place.unwrap_or_default(), wrong.to_string(), hint)
    })
}

fn path(text: String) -> Result<PathBuf, String> {
    values::words(text).map(PathBuf::from)
}

fn read_tls(document: &mut Document<'_>, table: Spanned<file::TlsTable>) -> Checked<TlsParams> {
    let place = table.span();
    let written = table.into_inner();
    let ca = document.optional(written.ca, path);
    let identity = read_identity(document, &place, written.certificate, written.key);
    Ok(TlsParams {
        ca: ca?.map(Spanned::into_inner),
        identity: identity?,
    })
}

fn read_identity(
    document: &mut Document<'_>,
    place: &Range<usize>,
    certificate: Field<String>,
    key: Field<String>,
) -> Checked<Option<TlsIdentity>> {
    if certificate.is_none() && key.is_none() {
        return Ok(None);
    }
    let certificate = document.required(place, "certificate", certificate, path);
    let key = document.required(place, "key", key, path);
    Ok(Some(TlsIdentity {
        certificate: certificate?.into_inner(),
        key: key?.into_inner(),
    }))
}

fn read_sasl(document: &mut Document<'_>, table: Spanned<file::SaslTable>) -> Checked<SaslParams> {
    let place = table.span();
    let written = table.into_inner();
    let mechanism = document.required(&place, "mechanism", written.mechanism, |name| {
        SaslMechanism::named(&name).ok_or_else(|| format!("there is no mechanism {name:?}"))
    });
    let username = document.required(&place, "username", written.username, values::words);
    let password_file = document.required(&place, "password_file", written.password_file, path);
    Ok(SaslParams {
        mechanism: mechanism?.into_inner(),
        username: username?.into_inner(),
        password_file: password_file?.into_inner(),
    })
}
