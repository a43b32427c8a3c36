//! What the lab asks an agent, and what an agent replies, in frames over two streams of bytes. Both are
//! of one build: nothing here is kept. A frame is a JSON header and a body of bytes.
//!
//! ```text
//! offset 0   length of the header, u32, little-endian   at most HEADER_BYTES_MAX
//!        4   length of the body, u32, little-endian     at most BODY_BYTES_MAX
//!        8   header: JSON, UTF-8
//!        …   body: sample records, files; empty most often
//! ```

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use myelin_bench_kit::protocol::{Command, Role};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{ProcessId, ProcessMessage, ProcessSpec, RunOnHost, lock};
use crate::scenario::{Tuning, TuningChoice};

/// Lab to agent. Each is answered, in order, with the value and the body named here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// [`Host::begin`](super::Host::begin), of the run with this number; the folder is the agent's.
    Begin(u64, RunOnHost),
    /// Yields a u64, when it was. This one and those without a word are methods of
    /// [`Host`](super::Host), and yield what those do.
    Start(Box<ProcessSpec>),
    Send(Role, Command),
    Go(Vec<Role>, std::time::Duration),
    WaitEnded(Role, std::time::Duration),
    Ending(ProcessId),
    Observe(Vec<u32>),
    /// Yields an `Observation`; the body is its `Series`, JSON.
    Observed,
    /// The body is records.
    Records(ProcessId),
    /// Yields names and lengths of what is in the run's folder; the body is all of it, in order.
    Files,
    End,
    Clean(PathBuf),
    /// Yields the systems that a driver has there.
    Describe(PathBuf),
    /// Yields why a tuning cannot be had there; `None` if it can.
    Unavailable(Tuning, TuningChoice),
    /// Yields the CPUs of `tuned` there.
    Cpus(TuningChoice),
    /// Yields the machine that it is, after having watched it for a moment.
    Machine,
    /// The lab is there: said now and then, and not answered.
    Alive,
    /// Yields the interface that leads to an address, and the address of this host there.
    Route(IpAddr),
}

/// Agent to lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Hello(Hello),
    /// To the oldest request that has none yet.
    Answer(Result<serde_json::Value, String>),
    /// From a process of the run with this number.
    Message(u64, ProcessMessage),
    /// While a run lasts, a few times a second: the exchanges of each process that counts them.
    Progress(Vec<(ProcessId, u64)>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Of the program; the lab's must be the same.
    pub version: String,
    pub boot: String,
    /// This host's address as whoever logged in by ssh has reached it.
    pub address: Option<IpAddr>,
}

/// One end's output. It is closed for all that have a clone of it.
#[derive(Clone)]
pub(super) struct Writer(Arc<Mutex<Option<Box<dyn Write + Send>>>>);

impl Writer {
    pub(super) fn new(output: impl Write + Send + 'static) -> Self {
        Writer(Arc::new(Mutex::new(Some(Box::new(output)))))
    }

    /// Sends a frame, unless it is closed. That the other end is gone shows by its closed output, too.
    pub(super) fn send(&self, header: &impl Serialize, body: &[u8]) -> io::Result<()> {
        lock(&self.0).as_mut().map_or(Ok(()), |output| write_frame(output, header, body))
    }

    /// The end of the other's input, which is its word to end.
    pub(super) fn close(&self) {
        *lock(&self.0) = None;
    }

    /// Has a thread say now and then that the lab is there: an agent whose connection has broken
    /// without a word could not know otherwise.
    pub(super) fn keep_alive(&self) {
        let writer = self.clone();
        std::thread::spawn(move || {
            while lock(&writer.0).is_some() {
                let _ = writer.send(&Request::Alive, &[]);
                std::thread::sleep(ALIVE);
            }
        });
    }
}

/// Writes one frame and has it leave at once.
fn write_frame(output: &mut impl Write, header: &impl Serialize, body: &[u8]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    if header.len() > HEADER_BYTES_MAX || body.len() > BODY_BYTES_MAX {
        return Err(refused(header.len(), body.len()));
    }
    output.write_all(&(header.len() as u32).to_le_bytes())?;
    output.write_all(&(body.len() as u32).to_le_bytes())?;
    output.write_all(&header)?;
    output.write_all(body)?;
    output.flush()
}

/// Reads one frame; `None` where the stream ends between two. A frame that is cut off, too long or
/// not understood is an error, and nothing after it can be read.
pub(super) fn read_frame<T: DeserializeOwned>(
    input: &mut impl Read,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; 8];
    if input.read(&mut lengths[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut lengths[1..])?;
    let [header, body] = [0, 4].map(|at| {
        let bytes = lengths[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    });
    if header > HEADER_BYTES_MAX || body > BODY_BYTES_MAX {
        return Err(refused(header, body));
    }
    let (header, body) = (take(input, header)?, take(input, body)?);
    Ok(Some((serde_json::from_slice(&header)?, body)))
}

/// Exactly `length` bytes; memory for them is taken as they come, not as they are announced.
fn take(input: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if input.take(length as u64).read_to_end(&mut bytes)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

fn refused(header: usize, body: usize) -> io::Error {
    let text = format!(
        "a frame of {header} + {body} bytes, where {HEADER_BYTES_MAX} + {BODY_BYTES_MAX} are the most"
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Often enough for an agent, which waits for 30 s.
const ALIVE: Duration = Duration::from_secs(5);
/// Longer than any request or answer: options of drivers are the longest part.
const HEADER_BYTES_MAX: usize = 16 << 20;
/// Longer than the records of any run: 4 million, of each publisher at pong's side.
const BODY_BYTES_MAX: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(header: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &header, body).unwrap();
        bytes
    }

    #[test]
    fn frames_come_as_they_went() {
        let bytes = [frame("one", b""), frame("two", &[7; 5000])].concat();
        let mut input = bytes.as_slice();
        assert_eq!(read_frame::<String>(&mut input).unwrap(), Some(("one".into(), Vec::new())));
        assert_eq!(read_frame::<String>(&mut input).unwrap(), Some(("two".into(), vec![7; 5000])));
        assert_eq!(read_frame::<String>(&mut input).unwrap(), None);
    }

    #[test]
    fn a_frame_that_is_cut_off_anywhere_is_an_error() {
        let whole = frame("one", b"body");
        for kept in 1..whole.len() {
            let error = read_frame::<String>(&mut &whole[..kept]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{kept} bytes");
        }
    }

    #[test]
    fn what_is_too_long_or_not_understood_is_refused() {
        for lengths in [[u32::MAX, 0], [2, u32::MAX]] {
            let bytes: Vec<u8> = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
            let error = read_frame::<String>(&mut bytes.as_slice()).unwrap_err().to_string();
            assert!(error.contains("are the most"), "{error}");
        }
        let text = "x".repeat(HEADER_BYTES_MAX);
        assert!(write_frame(&mut Vec::new(), &text, b"").is_err());
        // What a login script prints before the agent speaks.
        assert!(read_frame::<String>(&mut b"Welcome to Ubuntu, for robots".as_slice()).is_err());
        assert!(read_frame::<u32>(&mut frame("one", b"").as_slice()).is_err());
    }
}
