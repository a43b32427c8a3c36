//! What `myelin doctor --network` and its partner, `myelin doctor --serve`, say to each other: a JSON
//! object a line, over TCP.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::listener::Heard;

/// A request to the partner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The first one. The partner opens the UDP ports of a DDS domain and echoes datagrams.
    Hello { version: u32, domain: u32 },
    /// What time it is there.
    Time,
    /// Which datagrams have arrived there.
    Heard,
    /// Send datagrams to these ports, and to the multicast group.
    Send { ports: Vec<u16> },
    /// Count the bytes that follow, until the connection is shut down in this direction.
    Sink,
    /// Send bytes for so long, and close the connection.
    Source { ms: u64 },
}

/// The answer to a request, in the same order; none to [`Request::Source`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The UDP ports that it has opened.
    Hello { version: u32, ports: Vec<u16> },
    /// Its system clock, in ns since 1970.
    Time { ns: u64 },
    /// What has arrived.
    Heard(Heard),
    /// The datagrams have been sent.
    Sent,
    /// What has been counted, and the time from the first byte to the last.
    Counted { bytes: u64, ns: u64 },
    /// Why the request cannot be answered.
    Failed { reason: String },
}

/// One end of a connection.
pub struct Peer {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Peer {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Peer { stream, reader })
    }

    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(message)? + "\n";
        self.stream.write_all(line.as_bytes())
    }

    /// The next message; `None` if the other end has closed the connection.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = String::new();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
        if read == 0 { Ok(None) } else { Ok(Some(serde_json::from_str(&line)?)) }
    }

    pub fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        self.send(request)?;
        match self.receive()? {
            None => Err(io::ErrorKind::UnexpectedEof.into()),
            Some(Reply::Failed { reason }) => Err(io::Error::other(reason)),
            Some(reply) => Ok(reply),
        }
    }

    /// The connection, for bytes without lines. None may have been received yet.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Bytes that follow the last line, until the end.
    pub fn bytes(&mut self) -> &mut impl Read {
        &mut self.reader
    }
}

/// The version of these messages; both ends need the same.
pub const VERSION: u32 = 1;
/// The default TCP and UDP port of the partner: below those of DDS.
pub const PORT: u16 = 7_390;
const LINE_BYTES_MAX: u64 = 64 << 10;
const SILENCE_MAX: Duration = Duration::from_secs(30);
