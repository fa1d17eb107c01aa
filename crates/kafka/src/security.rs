//! TLS and SASL settings. Secrets stay in their files.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rdkafka::ClientConfig;

/// Why a program cannot connect.
pub(crate) const WITHOUT_TLS: &str = "this program was built without TLS and SASL: build it with `cargo build --release --features tls`";

/// TLS and SASL; without both the connection is plaintext.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    tls: Option<TlsParams>,
    sasl: Option<SaslParams>,
}

/// Brokers authenticate with a certificate for the host name of their address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsParams {
    /// File of certificate authorities, PEM; without one, those of the system.
    pub ca: Option<PathBuf>,
    /// The client certificate, if brokers require one.
    pub identity: Option<TlsIdentity>,
}

/// Files of a certificate and its unencrypted private key, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsIdentity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Authentication by user name and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaslParams {
    pub mechanism: SaslMechanism,
    pub username: String,
    /// Contains the password on its only line.
    pub password_file: PathBuf,
}

/// The SASL mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslMechanism {
    ScramSha512,
    ScramSha256,
    /// Sends the password itself.
    Plain,
}

impl SaslMechanism {
    pub const ALL: [SaslMechanism; 3] = [
        SaslMechanism::ScramSha512,
        SaslMechanism::ScramSha256,
        SaslMechanism::Plain,
    ];

    pub fn name(self) -> &'static str {
        match self {
            SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
            SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
            SaslMechanism::Plain => "PLAIN",
        }
    }

    /// The mechanism with this name.
    pub fn named(name: &str) -> Option<Self> {
        SaslMechanism::ALL
            .into_iter()
            .find(|mechanism| mechanism.name() == name)
    }
}

/// PLAIN without TLS would send the password as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PLAIN without TLS sends the password in the clear")]
pub struct InTheClear;

impl Security {
    /// # Errors
    ///
    /// If SASL PLAIN is used without TLS.
    pub fn new(tls: Option<TlsParams>, sasl: Option<SaslParams>) -> Result<Self, InTheClear> {
        let is_plain = sasl
            .as_ref()
            .is_some_and(|sasl| sasl.mechanism == SaslMechanism::Plain);
        if tls.is_none() && is_plain {
            return Err(InTheClear);
        }
        Ok(Security { tls, sasl })
    }

    pub fn tls(&self) -> Option<&TlsParams> {
        self.tls.as_ref()
    }

    pub fn sasl(&self) -> Option<&SaslParams> {
        self.sasl.as_ref()
    }

    fn protocol(&self) -> &'static str {
        let has_sasl = self.sasl.is_some();
        match self.tls {
            None if has_sasl => "sasl_plaintext",
            None => "plaintext",
            Some(_) if has_sasl => "sasl_ssl",
            Some(_) => "ssl",
        }
    }

    /// Reason that keeps this program from connecting, if it was built without what is asked for.
    pub(super) fn unsupported_reason(&self) -> Option<&'static str> {
        (cfg!(not(feature = "tls")) && *self != Security::default()).then_some(WITHOUT_TLS)
    }

    pub(super) fn set_properties(&self, config: &mut ClientConfig) -> Result<(), String> {
        if *self == Security::default() {
            return Ok(());
        }
        if let Some(why) = self.unsupported_reason() {
            return Err(why.to_owned());
        }
        config.set("security.protocol", self.protocol());
        if let Some(ca) = self.tls.as_ref().and_then(|tls| tls.ca.as_ref()) {
            set_file(config, "ssl.ca.location", "the certificate authorities", ca)?;
        }
        if let Some(identity) = self.tls.as_ref().and_then(|tls| tls.identity.as_ref()) {
            set_file(
                config,
                "ssl.certificate.location",
                "the certificate",
                &identity.certificate,
            )?;
            set_file(config, "ssl.key.location", "the key", &identity.key)?;
        }
        if let Some(sasl) = &self.sasl {
            config
                .set("sasl.mechanism", sasl.mechanism.name())
                .set("sasl.username", &sasl.username)
                .set("sasl.password", read_password(&sasl.password_file)?);
        }
        Ok(())
    }

    /// The files that other users should not be able to read.
    pub(super) fn secret_files(&self) -> impl Iterator<Item = &Path> {
        let key = self
            .tls
            .as_ref()
            .and_then(|tls| tls.identity.as_ref())
            .map(|identity| identity.key.as_path());
        let password = self.sasl.as_ref().map(|sasl| sasl.password_file.as_path());
        key.into_iter().chain(password)
    }
}

/// Sets the path of a file that can be read.
fn set_file(
    config: &mut ClientConfig,
    property: &str,
    what: &str,
    path: &Path,
) -> Result<(), String> {
    open_file(what, path)?;
    config.set(property, path.display().to_string());
    Ok(())
}

/// A warning about a secret that every user can read, with the remedy. Group access is fine, because Kubernetes mounts secrets that way.
pub(crate) fn open_to_all(path: &Path) -> Option<String> {
    let is_open = std::fs::metadata(path).is_ok_and(|about| about.mode() & 0o004 != 0);
    let path = path.display();
    is_open.then(|| {
        format!("every user of this machine can read the secret in {path}: chmod o= {path}")
    })
}

fn open_file(what: &str, path: &Path) -> Result<File, String> {
    File::open(path).map_err(|why| format!("{what} in {} cannot be read: {why}", path.display()))
}

/// Reads the password, which never becomes part of a message.
pub(crate) fn read_password(path: &Path) -> Result<String, String> {
    let file = open_file("the password", path)?;
    let Ok(text) = std::io::read_to_string(file) else {
        return Err(wrong_password(path, "cannot be read as text"));
    };
    let mut line = text.as_str();
    if let Some(before) = text.strip_suffix('\n') {
        line = before.strip_suffix('\r').unwrap_or(before);
    }
    match line {
        "" => Err(wrong_password(path, "is empty")),
        line if line.contains(char::is_control) => {
            Err(wrong_password(path, "is not one line of text"))
        }
        line => Ok(line.to_owned()),
    }
}

fn wrong_password(path: &Path, why: &str) -> String {
    format!("the password in {} {why}", path.display())
}
