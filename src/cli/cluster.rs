//! The arguments with which a command reaches a cluster.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

use crate::cli::failure::Failure;
use crate::cli::print;
use bernstream_kafka::security::{SaslMechanism, SaslParams, Security, TlsIdentity, TlsParams};
use bernstream_kafka::{Broker, addresses};

/// Bootstrap servers, TLS and SASL. A command that takes them must let one of its own arguments require `brokers`: clap leaves
/// a group that contains groups empty.
#[derive(Clone, Debug, clap::Args)]
pub struct Cluster {
    /// Kafka's bootstrap servers, host:port[,host:port...]
    #[arg(long, required = false, value_parser = addresses)]
    pub brokers: String,
    /// Use TLS; the certificate of a broker must be signed by an authority that this system trusts
    #[arg(long, requires = "brokers")]
    pub tls: bool,
    /// Use TLS; the certificate of a broker must be signed by an authority in this file (PEM)
    #[arg(long, requires = "brokers", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Use TLS, and present this client certificate (PEM)
    #[arg(long, requires_all = ["brokers", "private_key"], value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate (PEM, not encrypted)
    #[arg(
        long = "private-key",
        id = "private_key",
        requires = "certificate",
        value_name = "FILE"
    )]
    pub private_key: Option<PathBuf>,
    /// Authenticate with this SASL mechanism
    #[arg(
        long,
        requires_all = ["brokers", "username", "password_file"],
        value_name = "MECHANISM",
        value_parser = PossibleValuesParser::new(SaslMechanism::ALL.map(SaslMechanism::name))
    )]
    pub sasl: Option<String>,
    /// The user name for SASL
    #[arg(long, requires = "sasl", value_name = "NAME")]
    pub username: Option<String>,
    /// A file that contains only the user's password
    #[arg(long, requires = "sasl", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

impl Cluster {
    /// The connection settings; prints a warning about insecure ones.
    ///
    /// # Errors
    ///
    /// If the arguments would send a password in the clear.
    pub fn broker(&self) -> Result<Broker, Failure> {
        let identity = self.certificate.clone().zip(self.private_key.clone());
        let identity = identity.map(|(certificate, key)| TlsIdentity { certificate, key });
        let is_tls = self.tls || self.ca.is_some() || identity.is_some();
        let tls = is_tls.then(|| TlsParams {
            ca: self.ca.clone(),
            identity,
        });
        let mechanism = self.sasl.as_deref().and_then(SaslMechanism::named);
        let sasl = mechanism.zip(self.username.clone().zip(self.password_file.clone()));
        let sasl = sasl.map(|(mechanism, (username, password_file))| SaslParams {
            mechanism,
            username,
            password_file,
        });
        let security = Security::new(tls, sasl).map_err(|wrong| {
            Failure::Configuration(format!("{wrong}: add --tls or --ca, or use SCRAM-SHA-512"))
        })?;
        let broker = Broker::new(&self.brokers, security);
        for warning in broker.warnings() {
            print::warning(warning);
        }
        Ok(broker)
    }
}
