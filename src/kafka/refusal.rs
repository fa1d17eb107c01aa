//! Why brokers turn a client away: what librdkafka says, and what to do about it.
//!
//! It tries again for ever whatever the reason, and tells it to its log alone, as text.

use crate::kafka::security::{Sasl, Security, Tls};

/// What a client said when it could not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    text: String,
    /// At which step of a new connection the broker hung up, if it did.
    hung_up: Option<Step>,
}

/// A step of a connection that is less than two seconds old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The broker was asked what it can do, the first thing of all.
    Greeting,
    /// It was asked something that it tells only whom it knows.
    Asking,
}

impl Complaint {
    /// From a line of librdkafka: `[thrd:NAME]: NAME: TEXT (after 5ms in state STATE)`.
    pub fn new(line: &str) -> Self {
        let text = line.split_once("]: ").map_or(line, |(_, text)| text);
        // The name of a broker is an address, `protocol://host:port/id`, and has no space.
        let text = text.split_once(": ").filter(|(name, _)| !name.contains(' ')).map_or(text, |(_, text)| text);
        let (text, when) = text.rsplit_once(" (after ").unwrap_or((text, ""));
        let (age, state) = when.split_once("ms in state ").unwrap_or_default();
        let is_new = age.parse().is_ok_and(|age: u32| age < 2000);
        let is_hung_up = ["Disconnected", "Send failed", "Receive failed"].iter().any(|start| text.starts_with(start));
        let step = match state.trim_end_matches(')').split(',').next() {
            Some("APIVERSION_QUERY") => Some(Step::Greeting),
            Some("UP") if is_new => Some(Step::Asking),
            _ => None,
        };
        Complaint { text: text.to_owned(), hung_up: step.filter(|_| is_hung_up) }
    }

    fn says(&self, words: &str) -> bool {
        self.text.contains(words)
    }

    /// What the files hold is wrong, and they are read when a client is made: waiting mends nothing.
    pub fn is_final(&self) -> bool {
        // The connection broke, whatever was under way.
        let is_broken = ["Local: ", "isconnected", "unexpected eof"].iter().any(|words| self.says(words));
        let is_tls = self.text.starts_with("SSL handshake failed: error:") || self.says("broker certificate");
        !is_broken && (is_tls || self.text.starts_with("SASL "))
    }

    /// What happened and what to do.
    pub fn words(&self, servers: &str, security: &Security) -> String {
        let text = &self.text;
        match (security.tls(), security.sasl()) {
            (Some(tls), _) if self.says("certificate verify failed") || self.says("broker certificate") => {
                untrusted(servers, tls)
            }
            (Some(_), _) if self.says("PLAINTEXT broker") || self.says("wrong version number") => {
                "it does not answer as a port for TLS does: if it is up, take its port for TLS, or leave out `tls`"
                    .to_owned()
            }
            (Some(Tls { identity, .. }), _) if text.starts_with("SSL handshake failed: error:") => match identity {
                Some(_) => format!("{text}; it may not accept the client's certificate"),
                None => format!("{text}; it may want a client's certificate: set `certificate` and `key` in `tls`"),
            },
            (_, Some(sasl)) if text.starts_with("SASL authentication") => unknown(text, sasl),
            (_, Some(sasl)) if text.starts_with("SASL ") => {
                format!("{text}: it does not take {}, choose another `mechanism`", sasl.mechanism.name())
            }
            (None, _) if self.hung_up == Some(Step::Greeting) => {
                "it hangs up on plain text, as a port for TLS does: if it is up, set `tls`, and `sasl` if it wants a \
                 password"
                    .to_owned()
            }
            (_, None) if self.hung_up == Some(Step::Asking) => {
                "it hangs up when asked, as on a client that has not logged in: if it is up, set `sasl`".to_owned()
            }
            _ => text.clone(),
        }
    }
}

fn untrusted(servers: &str, tls: &Tls) -> String {
    let first = servers.split(',').next().unwrap_or(servers).trim();
    let (signed, option) = match &tls.ca {
        Some(ca) => (format!("an authority in {}", ca.display()), format!(" -CAfile {}", ca.display())),
        None => ("an authority that this system trusts".to_owned(), String::new()),
    };
    format!(
        "its certificate is not accepted: it must be signed by {signed}, be in date, and name the host that stands in \
         `brokers`; `openssl s_client -connect {first}{option}` shows it"
    )
}

fn unknown(text: &str, sasl: &Sasl) -> String {
    format!(
        "it refuses user '{}' ({text}); correct the user's name, or the password in {}, and start again",
        sasl.username,
        sasl.password_file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> Complaint {
        Complaint::new(&format!("[thrd:ssl://a:1/bootstrap]: ssl://a:1/bootstrap: {text}"))
    }

    #[test]
    fn only_what_no_waiting_mends_is_final() {
        let lasting = [
            "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not",
            "SASL authentication error: Authentication failed (after 12ms in state AUTH_REQ)",
            "SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: X",
        ];
        assert!(lasting.iter().all(|text| complaint(text).is_final()));
        let passing = [
            "Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)",
            "SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure",
            "SSL handshake failed: error:0A000126:SSL routines::unexpected eof while reading",
            "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
            "Disconnected: SSL connection closed by peer (after 1ms in state UP)",
        ];
        assert!(passing.iter().all(|text| !complaint(text).is_final()));
    }

    #[test]
    fn who_hangs_up_at_once_wants_to_be_spoken_to_otherwise() {
        let words = |text: &str| complaint(text).words("a:1", &Security::default());
        let closed = "Disconnected: connection closed by peer: receive 0 after POLLIN";
        assert!(words(&format!("{closed} (after 2ms in state APIVERSION_QUERY)")).contains("set `tls`"));
        let again = "state UP, 1 identical error(s) suppressed)";
        assert!(words(&format!("{closed} (after 1ms in {again}")).contains("set `sasl`"));
        // A broker that goes down after a while.
        assert_eq!(words(&format!("{closed} (after 200000ms in state UP)")), closed);
    }
}
