//! Who may connect.
//!
//! A browser connects to this server for any page that asks it to. So a page has to be one of this
//! server, or of a program that people use for this purpose; and its request has to name this host,
//! because another name can be made to lead here (DNS rebinding). A program that is not a browser
//! sends no origin: it could do as much without this server. From other hosts nobody connects
//! without the token.

use std::fmt::Write;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use super::http::{Refusal, Request};
use crate::Error;

/// What a client has to show.
#[derive(Debug)]
pub(super) struct Access {
    /// `None`: no token is needed.
    token: Option<String>,
    /// Besides [`ORIGINS`].
    origins: Vec<String>,
}

impl Access {
    /// On addresses of other hosts than this one a token is needed.
    pub(super) fn new(listen: &SocketAddr, origins: Vec<String>) -> Result<Access, Error> {
        let token = match listen.ip().to_canonical().is_loopback() {
            true => None,
            false => Some(new_token()?),
        };
        Ok(Access { token, origins })
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Whether a request names this host.
    pub(super) fn check_host(&self, request: &Request) -> Result<(), Refusal> {
        let host = request.header("host")?.unwrap_or_default();
        // Whoever has the token was given it.
        if self.token.is_some() || is_this_host(host) {
            return Ok(());
        }
        Err(Refusal::new(403, "the request names another host; use localhost or an IP address"))
    }

    /// Whether a request for a WebSocket comes from a page that may have one, and has the token.
    pub(super) fn check_client(&self, request: &Request) -> Result<(), Refusal> {
        if let Some(origin) = request.header("origin")?
            && !self.is_known(origin, request.header("host")?.unwrap_or_default())
        {
            let reason = "pages of this origin may not connect; --allow-origin allows one";
            return Err(Refusal::new(403, reason));
        }
        match (&self.token, request.parameter("token")) {
            (None, _) => Ok(()),
            (Some(token), Some(given)) if is_equal(token, given) => Ok(()),
            _ => Err(Refusal::new(401, "the token is missing or wrong; `myelin view` printed it")),
        }
    }

    fn is_known(&self, origin: &str, host: &str) -> bool {
        let is_own = origin.strip_prefix("http://").is_some_and(|it| it.eq_ignore_ascii_case(host));
        is_own || ORIGINS.contains(&origin) || self.origins.iter().any(|it| it == origin)
    }
}

/// Whether the value of a `Host` header is `localhost` or an IP address: names can be made to lead
/// here.
fn is_this_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// In a time that depends on the lengths alone.
fn is_equal(one: &str, other: &str) -> bool {
    let difference = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

/// 128 bits of chance, in hexadecimal digits.
fn new_token() -> Result<String, Error> {
    let mut bytes = [0; 16];
    let random = "/dev/urandom";
    let read = std::fs::File::open(random).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Error::Io { what: random.to_owned(), error })?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Foxglove in a browser, and the desktop programs of Foxglove and Lichtblick. Not `null`: any page
/// can make a frame of this origin.
const ORIGINS: [&str; 2] = ["https://app.foxglove.dev", "file://"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_can_be_made_to_lead_here_are_refused() {
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]:8765", "[::1]", "10.0.0.7"]
        {
            assert!(is_this_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:8765",
            "127.0.0.1.evil.example",
            "[",
            "::1",
        ] {
            assert!(!is_this_host(host), "{host}");
        }
    }

    #[test]
    fn origins_are_own_known_or_allowed() {
        let here = "127.0.0.1:0".parse().unwrap();
        let access = Access::new(&here, vec!["http://localhost:8080".to_owned()]).unwrap();
        assert_eq!(access.token(), None);
        let host = "localhost:8765";
        for origin in [
            "http://localhost:8765",
            "https://app.foxglove.dev",
            "file://",
            "http://localhost:8080",
        ] {
            assert!(access.is_known(origin, host), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://localhost",
            "http://localhost:8081",
            "https://localhost:8765",
            "https://app.foxglove.dev.evil.example",
            "http://evil.example",
        ] {
            assert!(!access.is_known(origin, host), "{origin}");
        }
    }

    #[test]
    fn tokens_are_random_and_compared_whole() {
        let anywhere = "0.0.0.0:0".parse().unwrap();
        let new = || Access::new(&anywhere, Vec::new()).unwrap().token().unwrap().to_owned();
        let (one, other) = (new(), new());
        assert_eq!(one.len(), 32);
        assert!(is_equal(&one, &one.clone()) && !is_equal(&one, &other));
        assert!(!is_equal(&one, &one[..31]) && !is_equal(&one, "") && !is_equal("", &one));
    }
}
