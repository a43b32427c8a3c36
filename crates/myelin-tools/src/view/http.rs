//! The begin of a connection: the head of an HTTP request, and answers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A request without a body.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Behind the `?`.
    pub(super) query: String,
    /// Their names in small letters.
    headers: Vec<(String, String)>,
    /// What the client has sent behind the head.
    pub(super) rest: Vec<u8>,
}

/// An answer that ends the connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) reason: String,
}

impl Refusal {
    pub(super) fn new(status: u16, reason: impl Into<String>) -> Refusal {
        Refusal { status, reason: reason.into() }
    }
}

impl Request {
    /// Reads the head within [`HEAD_LIMIT`].
    pub(super) fn read(stream: &mut TcpStream) -> Result<Request, Refusal> {
        let until = Instant::now() + HEAD_LIMIT;
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(request) = Request::parse(&text)? {
                return Ok(request);
            }
            let left = until.saturating_duration_since(Instant::now());
            let too_late = || Refusal::new(408, "the request took too long");
            if left.is_zero() {
                return Err(too_late());
            }
            let read = stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut buffer));
            match read {
                Ok(0) => return Err(Refusal::new(400, "the request ends in its head")),
                Ok(bytes) => text.extend_from_slice(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(too_late()),
            }
        }
    }

    /// `None`: there is more to read.
    fn parse(text: &[u8]) -> Result<Option<Request>, Refusal> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let bad = |error| Refusal::new(400, format!("not an HTTP request: {error}"));
        let head = match parsed.parse(text).map_err(bad)? {
            httparse::Status::Complete(bytes) if bytes <= HEAD_BYTES_MAX => bytes,
            httparse::Status::Partial if text.len() <= HEAD_BYTES_MAX => return Ok(None),
            _ => return Err(Refusal::new(431, "the head of the request is too long")),
        };
        let target = parsed.path.unwrap_or("/");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |it: &httparse::Header<'_>| {
            let value = String::from_utf8_lossy(it.value).trim().to_owned();
            (it.name.to_ascii_lowercase(), value)
        };
        Ok(Some(Request {
            method: parsed.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: parsed.headers.iter().map(header).collect(),
            rest: text[head..].to_vec(),
        }))
    }

    /// The value of a header; an error if it is there twice.
    pub(super) fn header(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut values = self.headers.iter().filter(|(it, _)| it == name).map(|(_, it)| &**it);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Refusal::new(400, format!("the header {name} is there twice"))),
        }
    }

    /// The parts of all headers of this name that have commas between them.
    pub(super) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.headers.iter().filter(move |(it, _)| it == name);
        values.flat_map(|(_, value)| value.split(',')).map(str::trim)
    }

    /// A part of the query, as it is there.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|it| it.split_once('='));
        pairs.filter(|(it, _)| *it == name).map(|(_, value)| value).next()
    }

    /// Whether it asks for a WebSocket.
    pub(super) fn is_upgrade(&self) -> bool {
        let asks = |name, word: &str| self.list(name).any(|it| it.eq_ignore_ascii_case(word));
        asks("connection", "upgrade") && asks("upgrade", "websocket")
    }
}

/// Sends an answer and ends the connection.
pub(super) fn answer(stream: &mut TcpStream, status: u16, media_type: &str, body: &[u8]) {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {media_type}; charset=utf-8\r\n\
         Content-Length: {}\r\n{HEADERS}Connection: close\r\n\r\n",
        body.len()
    );
    // A client that has gone misses nothing.
    let _ = stream.set_write_timeout(Some(HEAD_LIMIT));
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// The page takes everything from this server, and nobody else shows it or reads it.
const HEADERS: &str = "\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
X-Content-Type-Options: nosniff\r\n\
Referrer-Policy: no-referrer\r\n\
Cache-Control: no-store\r\n";
/// How long a client may take for the head of its request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_and_a_long_one_is_refused() {
        let text = b"GET /?token=ab&x=1 HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\n\
                     Upgrade: WebSocket\r\nOrigin: a\r\nOrigin: b\r\n\r\nrest";
        for end in 0..text.len() - 6 {
            assert!(Request::parse(&text[..end]).unwrap().is_none(), "{end}");
        }
        let request = Request::parse(text).unwrap().unwrap();
        assert!(request.is_upgrade());
        assert_eq!((&*request.path, request.parameter("token")), ("/", Some("ab")));
        assert_eq!(request.header("host"), Ok(Some("localhost")));
        assert_eq!(request.header("origin").unwrap_err().status, 400);
        assert_eq!(request.rest, b"rest");

        let long = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'a'; HEAD_BYTES_MAX]].concat();
        assert_eq!(Request::parse(&long).unwrap_err().status, 431);
        assert_eq!(Request::parse(b"\x16\x03\x01").unwrap_err().status, 400);
    }
}
