//! What the lab asks an agent, and what an agent replies: one MessagePack value after the other, over two
//! streams of bytes. Both are of one build: nothing here is kept.

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

/// Lab to agent. Each is answered, in order, with the value named here.
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
    Ended(ProcessId, std::time::Duration),
    Observe(Vec<u32>),
    /// Yields an `Observation` and its `Series`, which is no part of it in a file.
    Observed,
    /// The answer is records, as they lie in memory.
    Records(ProcessId),
    /// Yields names and bytes of what is in the run's folder.
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
    /// To the oldest request that has none yet: its value, as [`pack`] writes it.
    Answer(Result<ByteBuf, String>),
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
        Writer(Arc::new(Mutex::new(Some(Box::new(BufWriter::new(output))))))
    }

    /// Sends a message and has it leave at once, unless it is closed. That the other end is gone shows
    /// by its closed output, too.
    pub(super) fn send(&self, message: &impl Serialize) -> io::Result<()> {
        let mut output = lock(&self.0);
        let Some(output) = output.as_mut() else {
            return Ok(());
        };
        encode::write_named(output, message).map_err(io::Error::other)?;
        output.flush()
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
                let _ = writer.send(&Request::Alive);
                std::thread::sleep(ALIVE);
            }
        });
    }
}

/// Reads one message; `None` where the stream ends between two. One that is cut off
/// ([`io::ErrorKind::UnexpectedEof`]) or not understood is an error, and nothing after it can be read.
pub(super) fn read<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    decode::from_read(input).map(Some).map_err(|error| match error {
        decode::Error::InvalidMarkerRead(error) | decode::Error::InvalidDataRead(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    })
}

/// An answer's value.
pub(super) fn pack(value: &impl Serialize) -> Result<Vec<u8>, String> {
    encode::to_vec_named(value).map_err(|error| error.to_string())
}

/// Often enough for an agent, which waits for 30 s.
const ALIVE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_as_they_went_whole_or_not_at_all() {
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
        // What a login script prints before the agent speaks, and an answer that is none.
        for babble in [b"Welcome to Ubuntu, for robots".as_slice(), b"\x81\xa6answer\xff"] {
            assert_eq!(
                read::<Reply>(&mut &*babble).unwrap_err().kind(),
                io::ErrorKind::InvalidData
            );
        }
    }
}
