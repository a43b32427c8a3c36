//! The thread that reads what an agent replies, and what it has in common with the lab.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myelin_bench_kit::samples::SampleFile;
use serde_json::Value;

use super::super::process::describe;
use super::super::{ProcessId, ProcessMessage, lock};
use super::{Hello, Reply, frame};
use crate::registry::wait_for;

pub(in super::super) struct Shared {
    pub(in super::super) state: Mutex<State>,
    /// What carries the bytes, and the last it has said on standard error.
    pub(in super::super) process: Mutex<Option<Child>>,
    pub(in super::super) complaint: Mutex<String>,
}

pub(in super::super) struct State {
    /// The run in progress: its number, and where its messages go.
    pub(in super::super) run: Option<(u64, Sender<ProcessMessage>)>,
    pub(in super::super) files: BTreeMap<ProcessId, Arc<SampleFile>>,
    pub(in super::super) heard: Instant,
    /// Why nothing more will come.
    pub(in super::super) gone: Option<String>,
}

pub(in super::super) struct Reader {
    pub(in super::super) name: String,
    pub(in super::super) shared: Arc<Shared>,
    pub(in super::super) greeted: Sender<Hello>,
    pub(in super::super) answered: Sender<(Result<Value, String>, Vec<u8>)>,
    /// Closed when standard error ends.
    pub(in super::super) complained: Receiver<()>,
}

impl Reader {
    /// Until its output ends or makes no sense; why is known before whoever waits is let go.
    pub(in super::super) fn read(self, output: impl Read) {
        let mut output = BufReader::new(Heard { input: output, shared: Arc::clone(&self.shared) });
        let ending = loop {
            match frame::read(&mut output) {
                Ok(Some((reply, body))) => self.handle(reply, body),
                Ok(None) => break String::new(),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break String::new(),
                Err(error) => break format!("does not speak as an agent does: {error}"),
            }
        };
        let _ = self.complained.recv_timeout(END_LIMIT);
        give_up(&self.name, &self.shared, &ending);
    }

    fn handle(&self, reply: Reply, body: Vec<u8>) {
        match reply {
            Reply::Hello(hello) => drop(self.greeted.send(hello)),
            Reply::Answer(answer) => drop(self.answered.send((answer, body))),
            Reply::Message(number, message) => {
                if let Some((run, listener)) = &lock(&self.shared.state).run
                    && *run == number
                {
                    let _ = listener.send(message);
                }
            }
            Reply::Progress(counts) => {
                let state = lock(&self.shared.state);
                for (id, exchanges) in counts {
                    if let Some(file) = state.files.get(&id) {
                        file.beat(exchanges);
                    }
                }
            }
        }
    }
}

struct Heard<R> {
    input: R,
    shared: Arc<Shared>,
}

impl<R: Read> Read for Heard<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        lock(&self.shared.state).heard = Instant::now();
        Ok(read)
    }
}

/// From now on the host is gone, because of `reason`, or for what its process has come to.
pub(in super::super) fn give_up(name: &str, shared: &Shared, reason: &str) {
    let mut why = if reason.is_empty() { ending(shared) } else { reason.to_owned() };
    let complaint = lock(&shared.complaint).clone();
    if !complaint.is_empty() {
        why = format!("{why} ({complaint})");
    }
    if let Some(process) = lock(&shared.process).as_mut() {
        // It may have ended.
        let _ = process.kill();
    }
    let mut state = lock(&shared.state);
    if state.gone.is_none() {
        let text = format!("host {name} is gone: {why}");
        if let Some((_, listener)) = &state.run {
            let _ = listener.send(ProcessMessage::Gone(text.clone()));
        }
        state.gone = Some(text);
    }
}

fn ending(shared: &Shared) -> String {
    let status = lock(&shared.process).as_mut().and_then(|process| wait_for(process, END_LIMIT));
    match status {
        Some(status) => format!("its agent {}", describe(status)),
        None => "its agent has closed the connection".into(),
    }
}

/// How long the process may take to end once its output has.
pub(in super::super) const END_LIMIT: Duration = Duration::from_secs(2);
