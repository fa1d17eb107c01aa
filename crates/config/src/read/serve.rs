//! `[serve]`

use std::net::SocketAddr;

use crate::file;
use crate::text::{Checked, Document, Spanned, values};
use bernstream_worker::metrics::MetricsDetail;

/// `[serve]`
pub struct ServeSettings {
    pub listen: SocketAddr,
    pub dashboard: Option<SocketAddr>,
    pub hosts: Vec<String>,
    pub detail: MetricsDetail,
}

pub fn read_serve(
    document: &mut Document<'_>,
    table: Spanned<file::ServeTable>,
) -> Checked<ServeSettings> {
    let place = table.span();
    let written = table.into_inner();
    let listen = document.required(&place, "listen", written.listen, address);
    let dashboard = document.optional(written.dashboard, address);
    let hosts = written.hosts.map(Spanned::into_inner).unwrap_or_default();
    let hosts: Checked<Vec<String>> = hosts
        .into_iter()
        .map(|name| read_host(document, name))
        .collect();
    let detail = match written.detail.map(Spanned::into_inner) {
        Some(file::WrittenDetail::Operator) => MetricsDetail::Operator,
        Some(file::WrittenDetail::Safe) | None => MetricsDetail::Safe,
    };
    let listen: SocketAddr = listen?.into_inner();
    let dashboard: Option<Spanned<SocketAddr>> = dashboard?;
    if let Some(dashboard) = &dashboard
        && *dashboard.get_ref() == listen
        && listen.port() != 0
    {
        let hint = "metrics are for operators, the dashboard is for everybody who may see the releases: use another port";
        document.fault(
            dashboard.span(),
            "is the same address as serve.listen",
            hint,
        );
    }
    Ok(ServeSettings {
        listen,
        dashboard: dashboard.map(Spanned::into_inner),
        hosts: hosts?,
        detail,
    })
}

fn address(text: String) -> Result<SocketAddr, String> {
    values::socket_address(&text)
}

fn read_host(document: &mut Document<'_>, name: Spanned<String>) -> Checked<String> {
    let hint = "write the name alone, such as \"dashboard.example.org\"";
    values::host(name.get_ref()).map_err(|what| document.fault(name.span(), what, hint))
}
