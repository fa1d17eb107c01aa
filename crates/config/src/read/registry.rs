//! `input.kafka.format.avro.registry`

use std::ops::Range;

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_kafka::source::registry::{RegistryLogin, SchemaRegistry, parse_address};

/// The registry that the file names, beside the schemas that it pins; taken out of `file`.
pub fn read_registry(
    document: &mut Document<'_>,
    file: &mut file::ConfigFile,
) -> Checked<Option<SchemaRegistry>> {
    let kafka = file
        .input
        .as_mut()
        .and_then(|input| input.get_mut().kafka.as_mut());
    let format = kafka
        .and_then(|kafka| kafka.get_mut().format.as_mut())
        .map(Spanned::get_mut);
    let Some(file::WrittenFormat::Avro(avro)) = format else {
        return Ok(None);
    };
    let avro = avro.get_mut();
    let Some(table) = avro.registry.take() else {
        return Ok(None);
    };
    let schemas = avro.schemas.iter().flat_map(Spanned::get_ref);
    let pinned = schemas
        .filter_map(|schema| schema.get_ref().id.as_ref())
        .map(|id| *id.get_ref())
        .collect();
    let place = table.span();
    let written = table.into_inner();
    let url = document.required(&place, "url", written.url, |text| parse_address(&text));
    let subject = document.required(&place, "subject", written.subject, values::words);
    let login = read_login(document, &place, written.username, written.password_file);
    let url = url?;
    let registry = SchemaRegistry {
        url: url.get_ref().clone(),
        subject: subject?.into_inner(),
        login: login?,
        pinned,
    };
    if registry.login.is_some() && !registry.is_encrypted() {
        let hint = "use the https:// address of the registry, or a registry that needs no password";
        return Err(document.fault(
            url.span(),
            "an http:// address gets the password in the clear",
            hint,
        ));
    }
    Ok(Some(registry))
}

fn read_login(
    document: &mut Document<'_>,
    place: &Range<usize>,
    username: Field<String>,
    password_file: Field<String>,
) -> Checked<Option<RegistryLogin>> {
    if username.is_none() && password_file.is_none() {
        return Ok(None);
    }
    let username = document.required(place, "username", username, username_of);
    let password_file = document.required(place, "password_file", password_file, values::words);
    Ok(Some(RegistryLogin {
        username: username?.into_inner(),
        password_file: password_file?.into_inner().into(),
    }))
}

/// A name that a registry can tell from the password behind it.
fn username_of(text: String) -> Result<String, String> {
    if text.contains(':') {
        Err("must not contain ':'".to_owned())
    } else {
        values::words(text)
    }
}
