//! What a schema registry says of the schemas of a topic. Nothing that is read depends on it: only whether people hear in time of a schema
//! that is not pinned.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use ureq::http::Uri;

use crate::security::{WITHOUT_TLS, open_to_all, read_password};

/// Longest time of the whole answer: less than the end of the program waits for it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// An answer holds a schema, and no more than this of it is read.
const LARGEST_ANSWER: u64 = 16 << 20;

/// A subject of a registry, and the schemas that are pinned of it.
#[derive(Clone, Debug)]
pub struct SchemaRegistry {
    /// Without a slash at its end.
    pub url: String,
    pub subject: String,
    pub login: Option<RegistryLogin>,
    pub pinned: BTreeSet<u32>,
}

/// A user of a registry.
#[derive(Clone, Debug)]
pub struct RegistryLogin {
    pub username: String,
    /// Contains the password on its only line.
    pub password_file: PathBuf,
}

/// Why a registry has named no schema.
#[derive(Debug, thiserror::Error)]
#[error(
    "the registry at {url} does not say which schema of subject '{subject}' is the newest: {why}"
)]
pub struct RegistryFailure {
    url: String,
    subject: String,
    why: String,
}

/// The newest schema of a subject, as a registry names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct NewestSchema {
    pub id: u32,
    #[serde(rename = "schemaType", default = "avro")]
    pub format: String,
}

impl NewestSchema {
    pub fn is_avro(&self) -> bool {
        self.format == AVRO
    }
}

/// Registries leave the format out where it is this one.
const AVRO: &str = "AVRO";

fn avro() -> String {
    AVRO.to_owned()
}

/// The address of a registry, without a slash at its end.
///
/// # Errors
///
/// If it is not one.
pub fn parse_address(text: &str) -> Result<String, String> {
    // It may hold a password, so that it is not shown.
    if text.contains(['@', '?', '#']) {
        return Err("an address of a registry has no '@', '?' or '#': a name and a password belong to username and password_file".to_owned());
    }
    let is_address = text.parse::<Uri>().is_ok()
        && (text.starts_with("http://") || text.starts_with("https://"));
    if is_address {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err(format!(
            "{text:?} is not the address of a registry: it begins with http:// or https://"
        ))
    }
}

impl SchemaRegistry {
    /// The newest schema of the subject.
    ///
    /// # Errors
    ///
    /// If the registry does not say which it is.
    pub fn newest_schema(&self) -> Result<NewestSchema, RegistryFailure> {
        self.ask_newest().map_err(|why| RegistryFailure {
            url: self.url.clone(),
            subject: self.subject.clone(),
            why,
        })
    }

    pub fn is_encrypted(&self) -> bool {
        self.url.starts_with("https:")
    }

    /// Warns of what this program was built without, and of a password that every user can read.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(why) = self.unsupported() {
            warnings.push(format!("{} cannot be reached: {why}", self.url));
        }
        if let Some(login) = &self.login {
            warnings.extend(open_to_all(&login.password_file));
        }
        warnings
    }

    /// Returns whether records of this schema can be read.
    pub fn pins_schema(&self, newest: &NewestSchema) -> bool {
        newest.is_avro() && self.pinned.contains(&newest.id)
    }

    /// Advice where the newest schema has this `id` and is not pinned.
    pub fn remedy(&self, id: u32) -> String {
        let user = self
            .login
            .as_ref()
            .map(|login| format!("-u {} ", login.username))
            .unwrap_or_default();
        format!(
            "save it with `curl -f {user}{}/schemas/ids/{id}/schema > FILE`, add {{ id = {id}, file = \"FILE\" }} to \
             input.kafka.format.avro.schemas, and start the worker again, before producers use it",
            self.url
        )
    }

    fn unsupported(&self) -> Option<&'static str> {
        (cfg!(not(feature = "tls")) && self.is_encrypted()).then_some(WITHOUT_TLS)
    }

    fn ask_newest(&self) -> Result<NewestSchema, String> {
        if let Some(why) = self.unsupported() {
            return Err(why.to_owned());
        }
        let mut request = agent().get(format!(
            "{}/subjects/{}/versions/latest",
            self.url,
            path_segment(&self.subject)
        ));
        if let Some(login) = &self.login {
            let secret = read_password(&login.password_file)?;
            let both = BASE64_STANDARD.encode(format!("{}:{secret}", login.username));
            request = request.header("Authorization", format!("Basic {both}"));
        }
        let mut answer = request.call().map_err(|error| match error {
            ureq::Error::StatusCode(404) => "it has no such subject".to_owned(),
            ureq::Error::StatusCode(401 | 403) => "it refuses the user".to_owned(),
            error => error.to_string(),
        })?;
        if !answer.status().is_success() {
            return Err(format!(
                "it answers with status {}, and is not followed elsewhere",
                answer.status().as_u16()
            ));
        }
        let body = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_ANSWER)
            .read_to_vec()
            .map_err(|e| e.to_string())?;
        serde_json::from_slice(&body).map_err(|_| "its answer has no id of a schema".to_owned())
    }
}

/// Asks the registry itself: a proxy that the environment names is for other programs, as it is for Kafka.
fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWER_TIMEOUT))
        .proxy(None)
        .max_redirects(0);
    #[cfg(feature = "tls")]
    let config = config.tls_config(
        ureq::tls::TlsConfig::builder()
            .provider(ureq::tls::TlsProvider::NativeTls)
            .root_certs(ureq::tls::RootCerts::PlatformVerifier)
            .build(),
    );
    config.build().into()
}

/// A name as one segment of a path.
fn path_segment(name: &str) -> String {
    let mut segment = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            segment.push_str(&format!("%{byte:02X}"));
        }
    }
    segment
}
