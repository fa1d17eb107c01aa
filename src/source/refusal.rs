//! Why brokers turn a client away: what librdkafka says, and what to do about it.
//!
//! It tries again for ever whatever the reason, and tells it to its log alone, as text.

use crate::source::broker::{Broker, Sasl, Tls};

/// How much a complaint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// The broker may be down, or on its way.
    Passing,
    /// A broker that is going down does the same, and so does one that is spoken to in the wrong way.
    Suspect,
    /// What the files hold is wrong, and they are read at the start: trying again changes nothing.
    Final,
}

/// What a client said when it could not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint(String);

impl Complaint {
    /// From a line of librdkafka: `[thrd:NAME]: NAME: TEXT (after 5ms in state STATE)`.
    pub fn new(line: &str) -> Self {
        let text = line.split_once("]: ").map_or(line, |(_, text)| text);
        // The name of a broker is an address, `protocol://host:port/id`, and has no space.
        let text = text.split_once(": ").filter(|(name, _)| !name.contains(' ')).map_or(text, |(_, text)| text);
        let text = text.rsplit_once(" (after ").map_or(text, |(text, _)| text);
        Complaint(text.to_owned())
    }

    fn says(&self, words: &str) -> bool {
        self.0.contains(words)
    }

    pub fn weight(&self) -> Weight {
        // The connection broke, whatever was under way.
        let is_broken = ["Local: ", "isconnected", "unexpected eof", "timed out"].iter().any(|words| self.says(words));
        let is_tls = self.0.starts_with("SSL handshake failed: error:") || self.says("broker certificate");
        match () {
            () if !is_broken && (is_tls || self.0.starts_with("SASL ")) => Weight::Final,
            () if self.says("SSL listener?") || self.says("PLAINTEXT broker") || self.says("require SASL") => {
                Weight::Suspect
            }
            () => Weight::Passing,
        }
    }

    /// What happened and what to do.
    pub fn words(&self, broker: &Broker) -> String {
        let Complaint(text) = self;
        let security = broker.security();
        match (security.tls(), security.sasl()) {
            (Some(tls), _) if self.says("certificate verify failed") || self.says("broker certificate") => {
                untrusted(&broker.servers, tls)
            }
            (Some(_), _) if self.says("PLAINTEXT broker") || self.says("wrong version number") => {
                "it does not answer as a TLS port does; take its port for TLS, or leave out `tls`".to_owned()
            }
            (Some(Tls { identity, .. }), _) if text.starts_with("SSL handshake failed: error:") => match identity {
                Some(_) => format!("{text}; it may not accept the client's certificate"),
                None => format!("{text}; it may want a client's certificate: set `certificate` and `key` in `tls`"),
            },
            (_, Some(sasl)) if text.starts_with("SASL authentication") => unknown(text, sasl),
            (_, Some(sasl)) if text.starts_with("SASL ") => {
                format!("{text}: it does not take {}, choose another `mechanism`", sasl.mechanism.name())
            }
            (None, _) if self.says("SSL listener?") => {
                "it hangs up on plain text, as a port for TLS does; set `tls`, and `sasl` where it wants a password"
                    .to_owned()
            }
            (_, None) if self.says("require SASL") => {
                "it hangs up as soon as it is asked, as a port for SASL does; set `sasl`".to_owned()
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
