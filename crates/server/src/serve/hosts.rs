//! The names by which a server may be asked. A foreign page can have its own name lead to this machine (DNS rebinding): its scripts
//! may then read the answers, as those of one site. The browser still sends the foreign name, in `Host`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, HOST};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

const REFUSED: &str = "refused: the request names another host than this server's; ask for an address or localhost, or list the name \
                       under hosts in [serve] (bernstream dashboard --host)\n";

/// The names by which a server may be asked, beside `localhost` and addresses, which lead nobody elsewhere.
#[derive(Clone, Debug)]
pub(super) struct AllowedHosts(Arc<[String]>);

impl AllowedHosts {
    /// Names to check for a server at `address` that has these names, if anything is checked: without names only whether a server for this
    /// machine alone is asked by a foreign one.
    pub fn checked_names(address: SocketAddr, names: &[String]) -> Option<Self> {
        let is_checked = address.ip().to_canonical().is_loopback() || !names.is_empty();
        is_checked.then(|| AllowedHosts(names.into()))
    }

    fn allow_request(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(HOST)
            .iter()
            .all(|host| self.have_host(host))
    }

    fn have_host(&self, host: &HeaderValue) -> bool {
        let Some(authority) = host
            .to_str()
            .ok()
            .and_then(|host| host.parse::<Authority>().ok())
        else {
            return false;
        };
        let name = authority.host().trim_end_matches('.');
        let address = name.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|own| name.eq_ignore_ascii_case(own))
    }
}

/// Answers only those who name this server.
pub(super) async fn refuse_foreign(
    State(hosts): State<AllowedHosts>,
    request: Request,
    next: Next,
) -> Response {
    if hosts.allow_request(request.headers()) {
        return next.run(request).await;
    }
    (
        StatusCode::MISDIRECTED_REQUEST,
        [(CONNECTION, "close")],
        REFUSED,
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_server_are_its_own() {
        let hosts = AllowedHosts(["page.example.org".to_owned()].into());
        let have = |host: &str| hosts.have_host(&HeaderValue::from_str(host).unwrap());
        for own in [
            "localhost",
            "LocalHost:9465",
            "127.0.0.1:9465",
            "[::1]:9465",
            "10.1.2.3",
            "page.example.org:80",
        ] {
            assert!(have(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "page.example.org.evil",
            "",
        ] {
            assert!(!have(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_public_server_without_names_is_not_checked() {
        let is_checked = |address: &str, names: &[String]| {
            AllowedHosts::checked_names(address.parse().unwrap(), names).is_some()
        };
        let names = ["page.example.org".to_owned()];
        assert!(
            is_checked("127.0.0.1:1", &[])
                && is_checked("[::1]:1", &[])
                && is_checked("[::ffff:127.0.0.1]:1", &[])
        );
        assert!(
            !is_checked("0.0.0.0:1", &[])
                && !is_checked("10.0.0.1:1", &[])
                && is_checked("0.0.0.0:1", &names)
        );
    }
}
