//! Just enough of HTTP to ask what is served.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use super::PATIENCE;

/// An answer; its headers in lower case.
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

/// Sends `request` as it is, and leaves the answer to be read.
pub fn connect(address: &str, request: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

pub fn ask(address: &str, method: &str, path: &str) -> io::Result<Answer> {
    // 1.0, so that no answer comes in pieces.
    let mut stream = connect(
        address,
        &format!("{method} {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let cut = || io::Error::other(format!("no whole answer to {path}: {answer}"));
    let (headers, body) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = headers
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or_else(cut)?;
    Ok(Answer {
        status,
        headers: headers.to_ascii_lowercase(),
        body: body.to_owned(),
    })
}

/// The text of an answer; none where nobody listens.
pub fn get(address: &str, path: &str) -> Option<String> {
    ask(address, "GET", path).ok().map(|answer| answer.body)
}

/// For a program that cannot say which port it took: nobody has this one now.
pub fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("its address")
        .to_string()
}
