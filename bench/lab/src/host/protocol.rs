//! The lab's requests to an agent and the agent's replies, as MessagePack values over two streams
//! of bytes. Both sides are the same build, so the protocol needs no compatibility.

use std::io::{self, BufRead, BufWriter, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use myelin_bench_kit::protocol::{Command, Role};
use rmp_serde::{decode, encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::{ProcessId, ProcessMessage, ProcessSpec, RunOnHost, lock};
use crate::scenario::{Tuning, TuningChoice};

/// Messages from lab to agent. Each request is answered, in order, with the value named here.
/// Requests without a comment are methods of [`Host`](super::Host) and return what those do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// [`Host::begin`](super::Host::begin) for the run with this number; the folder is the agent's.
    Begin(u64, RunOnHost),
    /// Returns the time of the start as a u64.
    Start(Box<ProcessSpec>),
    Send(Role, Command),
    Go(Vec<Role>, std::time::Duration),
    Ended(ProcessId, std::time::Duration),
    Observe(Vec<u32>),
    /// Returns an `Observation` and its `Series`, which are separate in a file.
    Observed,
    /// Returns records, as their bytes in memory.
    Records(ProcessId),
    /// Returns names and contents of the files in the run's folder.
    Files,
    End,
    Clean(PathBuf),
    /// Returns the systems that a driver has on this host.
    Describe(PathBuf),
    /// Returns why a tuning is not available on this host; `None` if it is.
    Unavailable(Tuning, TuningChoice),
    /// Returns the CPUs of `tuned` on this host.
    Cpus(TuningChoice),
    /// Returns the description of this machine, after watching it for a moment.
    Machine,
    /// Shows at intervals that the lab is alive; has no answer.
    Alive,
    /// Returns the interface that leads to an address, and this host's address there.
    Route(IpAddr),
}

/// Messages from agent to lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Hello(Hello),
    /// Answers the oldest open request: its value, as [`pack`] writes it.
    Answer(Result<ByteBuf, String>),
    /// A message from a process of the run with this number.
    Message(u64, ProcessMessage),
    /// A few times a second during a run: the number of exchanges of each process that counts them.
    Progress(Vec<(ProcessId, u64)>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Version of the program; must be the same as the lab's.
    pub version: String,
    pub boot: String,
    /// This host's address in the user's ssh login.
    pub address: Option<IpAddr>,
}

/// The output of one side, shared by its clones; closing it closes it for all of them.
#[derive(Clone)]
pub(super) struct Writer(Arc<Mutex<Option<Box<dyn Write + Send>>>>);

impl Writer {
    pub(super) fn new(output: impl Write + Send + 'static) -> Self {
        Writer(Arc::new(Mutex::new(Some(Box::new(BufWriter::new(output))))))
    }

    /// Sends a message at once, unless the output is closed. If the other side is gone, its closed
    /// output shows that, too.
    pub(super) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut output = lock(&self.0);
        let Some(output) = output.as_mut() else {
            return Ok(());
        };
        encode::write_named(output, message).map_err(io::Error::other)?;
        output.flush()
    }

    /// Closes the other side's input, which tells it to end.
    pub(super) fn close(&self) {
        *lock(&self.0) = None;
    }

    /// Starts a thread that sends a sign of life at intervals. Otherwise the agent would not notice
    /// a connection that broke silently.
    pub(super) fn keep_alive(&self) {
        let writer = self.clone();
        std::thread::spawn(move || {
            while lock(&writer.0).is_some() {
                let _ = writer.send(&Request::Alive);
                std::thread::sleep(ALIVE);
            }
        });
    }
}

/// Reads one message; `None` if the stream ends between two messages. A truncated
/// ([`io::ErrorKind::UnexpectedEof`]) or invalid message is an error, and nothing can be read after
/// it.
pub(super) fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    decode::from_read(input).map(Some).map_err(|error| match error {
        decode::Error::InvalidMarkerRead(error) | decode::Error::InvalidDataRead(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    })
}

/// Encodes the value of an answer.
pub(super) fn pack(value: &impl Serialize) -> Result<Vec<u8>, String> {
    encode::to_vec_named(value).map_err(|error| error.to_string())
}

/// Frequent enough for an agent, which waits for 30 s.
const ALIVE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_messages_arrive_whole_or_not_at_all() {
        let whole = pack(&Reply::Answer(Ok(vec![7; 300].into()))).unwrap();
        let two = whole.repeat(2);
        let mut input = two.as_slice();
        for _ in 0..2 {
            let Some(Reply::Answer(Ok(answer))) = read(&mut input).unwrap() else { panic!() };
            assert_eq!(answer, [7; 300]);
        }
        assert!(read::<Reply>(&mut input).unwrap().is_none());
        for kept in 1..whole.len() {
            let error = read::<Reply>(&mut &whole[..kept]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{kept} bytes");
        }
        // The output of a login script before the agent's, and an invalid answer.
        for babble in [b"Welcome to Ubuntu, for robots".as_slice(), b"\x81\xa6answer\xff"] {
            assert_eq!(
                read::<Reply>(&mut &*babble).unwrap_err().kind(),
                io::ErrorKind::InvalidData
            );
        }
    }
}
