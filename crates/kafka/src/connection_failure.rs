//! Why a client cannot connect: what librdkafka logs, and what to do about it.
//!
//! librdkafka retries forever whatever the reason, and reports the reason in its log only, as text.

use crate::security::{SaslParams, Security, TlsParams};

/// A log line about a failed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionFailure {
    text: String,
    /// During which step of a new connection the broker closed it, if it did.
    closed_during: Option<ConnectionStep>,
}

/// A step of a connection that is less than two seconds old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionStep {
    /// The TLS handshake.
    Tls,
    /// The ApiVersions request, the first of all.
    ApiVersions,
    /// The first request that needs authentication.
    FirstRequest,
}

impl ConnectionFailure {
    /// Parses a line of librdkafka: `[thrd:NAME]: NAME: TEXT (after 5ms in state STATE)`.
    pub fn new(line: &str) -> Self {
        let text = line.split_once("]: ").map_or(line, |(_, text)| text);
        // The name of a broker is an address, `protocol://host:port/id`, and has no space.
        let text = text
            .split_once(": ")
            .filter(|(name, _)| !name.contains(' '))
            .map_or(text, |(_, text)| text);
        let (text, when) = text.rsplit_once(" (after ").unwrap_or((text, ""));
        let (age, state) = when.split_once("ms in state ").unwrap_or_default();
        let is_new = age.parse().is_ok_and(|age: u32| age < 2000);
        let is_closed = ["Disconnected", "Send failed", "Receive failed"]
            .iter()
            .any(|start| text.starts_with(start));
        let step = match state.trim_end_matches(')').split(',').next() {
            Some("SSL_HANDSHAKE") => Some(ConnectionStep::Tls),
            Some("APIVERSION_QUERY") => Some(ConnectionStep::ApiVersions),
            Some("UP") if is_new => Some(ConnectionStep::FirstRequest),
            _ => None,
        };
        ConnectionFailure {
            text: text.to_owned(),
            closed_during: step.filter(|_| is_closed),
        }
    }

    fn contains(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    /// Returns whether the configured certificates or credentials are wrong. They are read when a client is created, so waiting does not
    /// help.
    pub fn is_permanent(&self) -> bool {
        // The connection was lost, whatever step it was in.
        let is_broken = ["Local: ", "isconnected", "unexpected eof"]
            .iter()
            .any(|words| self.contains(words));
        let is_tls = self.text.starts_with("SSL handshake failed: error:")
            || self.contains("broker certificate");
        !is_broken && (is_tls || self.text.starts_with("SASL "))
    }

    /// Explains what happened and what to do.
    pub fn explain(&self, servers: &str, security: &Security) -> String {
        let text = &self.text;
        if let Some(tls) = security.tls()
            && let Some(why) = self.explain_tls(servers, tls)
        {
            return why;
        }
        if let Some(sasl) = security.sasl()
            && text.starts_with("SASL ")
        {
            return if text.starts_with("SASL authentication") {
                rejected_user(text, sasl)
            } else {
                format!(
                    "{text}: the broker does not support {}; choose another `mechanism`",
                    sasl.mechanism.name()
                )
            };
        }
        match self.closed_during {
            Some(ConnectionStep::ApiVersions) if security.tls().is_none() => {
                "the broker closed a plaintext connection, as a TLS port does: if it is up, set `tls`, and `sasl` if it \
                 requires a password"
                    .to_owned()
            }
            Some(ConnectionStep::FirstRequest) if security.sasl().is_none() => {
                "the broker closed the connection at the first request, as it does without authentication: if it is up, set \
                 `sasl`"
                    .to_owned()
            }
            _ => text.clone(),
        }
    }

    /// Explains a failure of TLS; `None` for another one.
    fn explain_tls(&self, servers: &str, tls: &TlsParams) -> Option<String> {
        let text = &self.text;
        if self.contains("certificate verify failed") || self.contains("broker certificate") {
            return Some(untrusted_certificate(servers, tls));
        }
        if self.closed_during == Some(ConnectionStep::Tls)
            || self.contains("PLAINTEXT broker")
            || self.contains("wrong version number")
        {
            return Some(
                "the port does not speak TLS: if the broker is up, use its TLS port or remove `tls`"
                    .to_owned(),
            );
        }
        if !text.starts_with("SSL handshake failed: error:") {
            return None;
        }
        Some(match tls.identity {
            Some(_) => format!("{text}; the broker may not accept the client certificate"),
            None => format!(
                "{text}; the broker may require a client certificate: set `certificate` and `key` in `tls`"
            ),
        })
    }
}

fn untrusted_certificate(servers: &str, tls: &TlsParams) -> String {
    let first = servers.split(',').next().unwrap_or(servers).trim();
    let mut authority = "an authority that this system trusts".to_owned();
    let mut option = String::new();
    if let Some(ca) = &tls.ca {
        authority = format!("an authority in {}", ca.display());
        option = format!(" -CAfile {}", ca.display());
    }
    format!(
        "the broker's certificate is not accepted: it must be signed by {authority}, not be expired, and name the host given in \
         `brokers`; `openssl s_client -connect {first}{option}` shows it"
    )
}

fn rejected_user(text: &str, sasl: &SaslParams) -> String {
    format!(
        "the broker rejects user '{}' ({text}): correct the user name or the password in {}, then restart",
        sasl.username,
        sasl.password_file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> ConnectionFailure {
        ConnectionFailure::new(&format!(
            "[thrd:ssl://a:1/bootstrap]: ssl://a:1/bootstrap: {text}"
        ))
    }

    #[test]
    fn only_what_waiting_cannot_fix_is_permanent() {
        let permanent = [
            "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not",
            "SASL authentication error: Authentication failed (after 12ms in state AUTH_REQ)",
            "SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: X",
        ];
        assert!(permanent.iter().all(|text| failure(text).is_permanent()));
        let transient = [
            "Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)",
            "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure",
            "SSL handshake failed: error:0A000126:SSL routines::unexpected eof while reading",
            "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
            "Disconnected: SSL connection closed by peer (after 1ms in state UP)",
        ];
        assert!(transient.iter().all(|text| !failure(text).is_permanent()));
    }

    #[test]
    fn a_connection_that_is_closed_at_once_needs_other_settings() {
        let explained = |text: &str| failure(text).explain("a:1", &Security::default());
        let closed = "Disconnected: connection closed by peer: receive 0 after POLLIN";
        assert!(
            explained(&format!("{closed} (after 2ms in state APIVERSION_QUERY)"))
                .contains("set `tls`")
        );
        let tls = Security::new(Some(TlsParams::default()), None).unwrap();
        let hung_up = failure(
            "Disconnected: SSL connection closed by peer (after 1ms in state SSL_HANDSHAKE)",
        );
        assert!(hung_up.explain("a:1", &tls).contains("does not speak TLS"));
        let again = "state UP, 1 identical error(s) suppressed)";
        assert!(explained(&format!("{closed} (after 1ms in {again}")).contains("set `sasl`"));
        // A broker that goes down after a while.
        assert_eq!(
            explained(&format!("{closed} (after 200000ms in state UP)")),
            closed
        );
    }
}
