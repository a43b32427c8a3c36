//! The thread that listens to an agent, and what it has in common with the lab.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myelin_bench_kit::samples::SampleFile;
use serde_json::Value;

use super::super::words::{Hello, Word};
use super::super::{Player, Said, frame, lock};

/// What the thread that listens to the agent has in common with the lab.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// What carries the bytes, and the last it has said on standard error.
    pub(super) process: Mutex<Option<Child>>,
    pub(super) complaint: Mutex<String>,
}

pub(super) struct State {
    /// The run in progress: its number, and who wants to hear of it.
    pub(super) run: Option<(u64, Sender<Said>)>,
    pub(super) files: BTreeMap<Player, Arc<SampleFile>>,
    pub(super) heard: Instant,
    /// Why nothing more will come.
    pub(super) gone: Option<String>,
}

/// Listens to one agent.
pub(super) struct Ear {
    pub(super) name: String,
    pub(super) shared: Arc<Shared>,
    pub(super) greeted: Sender<Hello>,
    pub(super) answered: Sender<(Result<Value, String>, Vec<u8>)>,
    /// Closed when standard error ends.
    pub(super) complained: Receiver<()>,
}

impl Ear {
    /// Until its output ends or makes no sense; why is known before whoever waits is let go.
    pub(super) fn listen(self, output: impl Read) {
        let mut output = BufReader::new(Heard { input: output, shared: Arc::clone(&self.shared) });
        let ending = loop {
            match frame::read(&mut output) {
                Ok(Some((word, body))) => self.hear(word, body),
                Ok(None) => break String::new(),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break String::new(),
                Err(error) => break format!("does not speak as an agent does: {error}"),
            }
        };
        let _ = self.complained.recv_timeout(END_LIMIT);
        give_up(&self.name, &self.shared, &ending);
    }

    fn hear(&self, word: Word, body: Vec<u8>) {
        match word {
            Word::Hello(hello) => drop(self.greeted.send(hello)),
            Word::Answer(answer) => drop(self.answered.send((answer, body))),
            Word::Said(number, said) => {
                if let Some((run, listener)) = &lock(&self.shared.state).run
                    && *run == number
                {
                    let _ = listener.send(said);
                }
            }
            Word::Beat(counts) => {
                let state = lock(&self.shared.state);
                for (player, exchanges) in counts {
                    if let Some(file) = state.files.get(&player) {
                        file.beat(exchanges);
                    }
                }
            }
        }
    }
}

/// Notes when bytes come.
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
pub(super) fn give_up(name: &str, shared: &Shared, reason: &str) {
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
            let _ = listener.send(Said::Gone(text.clone()));
        }
        state.gone = Some(text);
    }
}

/// What the process that carries the bytes has come to.
fn ending(shared: &Shared) -> String {
    let deadline = Instant::now() + END_LIMIT;
    loop {
        let status = lock(&shared.process).as_mut().map(|process| process.try_wait());
        match status {
            Some(Ok(Some(status))) => {
                return match (status.signal(), status.code()) {
                    (Some(signal), _) => format!("its agent was killed by signal {signal}"),
                    (None, code) => {
                        format!("its agent ended with exit status {}", code.unwrap_or(-1))
                    }
                };
            }
            Some(Ok(None)) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            _ => return "its agent has closed the connection".into(),
        }
    }
}

/// How long the process may take to end once its output has.
pub(super) const END_LIMIT: Duration = Duration::from_secs(2);
