//! A remote host, represented by its agent, and the connection to it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use myelin_bench_kit::protocol::{Command, Role};
use myelin_bench_kit::samples::{Record, SampleFile, records_of};
use serde::de::DeserializeOwned;
use serde_bytes::ByteBuf;

use super::local::{describe, sample_memory};
use super::protocol::{Hello, Reply, Request, Writer, read};
use super::{Host, ProcessId, ProcessMessage, ProcessSpec, RunOnHost, lock};
use crate::observe::Observation;
use crate::registry::wait_for;
use crate::stderr::print_line;

/// The lab's end of the connection to an agent. Dropping it ends the agent.
pub(crate) struct RemoteHost {
    drivers: Option<PathBuf>,
    writer: Writer,
    answers: Receiver<Result<ByteBuf, String>>,
    shared: Arc<Shared>,
    hello: Hello,
    begun: u64,
    directory: Option<PathBuf>,
}

impl RemoteHost {
    /// Waits for the agent's first message.
    pub(crate) fn new(connection: Connection) -> Result<Self> {
        let Connection { name, mut process, drivers } = connection;
        let input = process.stdin.take().expect("piped");
        let output = process.stdout.take().expect("piped");
        let errors = process.stderr.take().expect("piped");
        let mut remote = Self::over(&name, input, output, errors, Some(process))?;
        remote.drivers = drivers;
        Ok(remote)
    }

    fn over(
        name: &str,
        input: impl Write + Send + 'static,
        output: impl Read + Send + 'static,
        errors: impl Read + Send + 'static,
        process: Option<Child>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            name: name.into(),
            state: Mutex::new(State {
                run: None,
                files: BTreeMap::new(),
                heard: Instant::now(),
                gone: None,
            }),
            process: Mutex::new(process),
            complaint: Mutex::default(),
        });
        let (complaining, complained) = mpsc::channel::<()>();
        let complaints = Arc::clone(&shared);
        std::thread::spawn(move || {
            let lines = BufReader::new(errors).lines().map_while(io::Result::ok);
            for line in lines.filter(|line| !line.trim().is_empty()) {
                *lock(&complaints.complaint) = line;
            }
            drop(complaining);
        });
        let (answered, answers) = mpsc::channel();
        let (greeted, greeting) = mpsc::channel();
        let reader = Reader { shared: Arc::clone(&shared), greeted, answered, complained };
        std::thread::spawn(move || reader.read(output));
        // The login may take a while, but cannot ask for input: there is no terminal.
        let hello = match greeting.recv_timeout(HELLO_LIMIT) {
            Ok(hello) => hello,
            Err(error) => {
                if error == RecvTimeoutError::Timeout {
                    shared.give_up(&format!("no answer in {} s", HELLO_LIMIT.as_secs()));
                }
                bail!(shared.why_gone());
            }
        };
        let (theirs, ours) = (&hello.version, env!("CARGO_PKG_VERSION"));
        ensure!(theirs == ours, "host {name}: its agent has version {theirs}, this lab has {ours}");
        let writer = Writer::new(input);
        writer.keep_alive();
        let (drivers, directory) = (None, None);
        Ok(RemoteHost { drivers, writer, answers, shared, hello, begun: 0, directory })
    }

    /// The host's name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    pub(crate) fn boot(&self) -> &str {
        &self.hello.boot
    }

    /// The host's address as the lab reached it.
    pub(crate) fn address(&self) -> Option<std::net::IpAddr> {
        self.hello.address
    }

    /// Id of the agent's process, or of the process that carries its bytes.
    pub(crate) fn pid(&self) -> Option<u32> {
        lock(&self.shared.process).as_ref().map(Child::id)
    }

    pub(crate) fn is_there(&self) -> bool {
        lock(&self.shared.state).gone.is_none()
    }

    /// Sends a request and waits for the answer, as long as the agent shows signs of life.
    pub(super) fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, String> {
        let answer = self.ask_bytes(request)?;
        rmp_serde::from_slice(&answer).map_err(|error| {
            format!("host {}: its answer cannot be read: {error}", self.shared.name)
        })
    }

    fn ask_bytes(&mut self, request: &Request) -> Result<ByteBuf, String> {
        let begin = Instant::now();
        // If the agent is gone, its closed output shows that.
        let _ = self.writer.send(request);
        let answer = loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) => self.check_since(begin)?,
                Err(RecvTimeoutError::Disconnected) => return Err(self.shared.why_gone()),
            }
        };
        answer.map_err(|reason| format!("host {}: {reason}", self.shared.name))
    }

    /// Fails if nothing was received for too long, counted from `begin` at the earliest.
    fn check_since(&self, begin: Instant) -> Result<(), String> {
        let heard = lock(&self.shared.state).heard.max(begin);
        if heard.elapsed() > SILENCE_LIMIT {
            self.shared.give_up(&format!("no message from it for {} s", SILENCE_LIMIT.as_secs()));
            return Err(self.shared.why_gone());
        }
        Ok(())
    }

    /// The path of a driver on that host.
    pub(super) fn there(&self, executable: &Path) -> PathBuf {
        match (&self.drivers, executable.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => executable.into(),
        }
    }

    /// Copies the files that drivers wrote into the run's folder into the lab's folder. If both
    /// hosts have a file of the same name, the second one's name gets its host's name in front.
    fn fetch(&mut self, directory: &Path) -> Result<(), String> {
        let files: Vec<(PathBuf, ByteBuf)> = self.ask(&Request::Files)?;
        for (name, bytes) in files {
            // Only relative paths: the other side must not choose where to write.
            if !name.components().all(|part| matches!(part, Component::Normal(_))) {
                continue;
            }
            let mut path = directory.join(&name);
            if path.exists() {
                let file = name.file_name().unwrap_or_default().to_string_lossy();
                path.set_file_name(format!("{}-{file}", self.shared.name.replace('/', "-")));
            }
            let folder = path.parent().unwrap_or(directory);
            let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        // The end of its input tells the agent to end.
        self.writer.close();
        let mut process = lock(&self.shared.process);
        if let Some(process) = process.as_mut() {
            wait_for(process, END_LIMIT);
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Host for RemoteHost {
    fn begin(&mut self, run: &RunOnHost, messages: Sender<ProcessMessage>) -> Result<(), String> {
        self.begun += 1;
        {
            let mut state = lock(&self.shared.state);
            state.run = Some((self.begun, messages));
            state.files.clear();
            state.heard = Instant::now();
        }
        self.directory = Some(run.directory.clone());
        self.ask(&Request::Begin(self.begun, run.clone()))
    }

    fn start(&mut self, start: ProcessSpec) -> Result<u64, String> {
        let counts = matches!(start.id.role, Role::Ping | Role::Pong);
        if counts {
            let mirror = mirror().map_err(|error| format!("sample memory: {error}"))?;
            lock(&self.shared.state).files.insert(start.id, Arc::new(mirror));
        }
        let executable = self.there(&start.executable);
        self.ask(&Request::Start(Box::new(ProcessSpec { executable, ..start })))
    }

    fn send(&mut self, role: Role, command: &Command) -> Result<(), String> {
        self.ask(&Request::Send(role, command.clone()))
    }

    fn go(&mut self, roles: &[Role], delay: Duration) -> Result<u64, String> {
        self.ask(&Request::Go(roles.to_vec(), delay))
    }

    fn ended(&mut self, id: ProcessId, limit: Duration) -> Result<Option<String>, String> {
        self.ask(&Request::Ended(id, limit))
    }

    fn files(&self) -> Vec<(ProcessId, Arc<SampleFile>)> {
        let state = lock(&self.shared.state);
        state.files.iter().map(|(id, file)| (*id, Arc::clone(file))).collect()
    }

    fn observe(&mut self, daemons: &[u32]) -> Result<(), String> {
        self.ask(&Request::Observe(daemons.to_vec()))
    }

    fn observed(&mut self) -> Result<Observation, String> {
        let (seen, series): (Observation, _) = self.ask(&Request::Observed)?;
        Ok(Observation { series, ..seen })
    }

    fn records(&mut self, id: ProcessId) -> Result<Vec<Record>, String> {
        records_of(&self.ask_bytes(&Request::Records(id))?)
            .ok_or_else(|| format!("host {}: the records of {id} are incomplete", self.shared.name))
    }

    fn end(&mut self) {
        let Some(directory) = self.directory.take() else {
            return;
        };
        if let Err(reason) = self.fetch(&directory)
            && self.is_there()
        {
            print_line(reason);
        }
        // If the agent is gone, its processes are gone, too.
        let _ = self.ask::<()>(&Request::End);
        lock(&self.shared.state).run = None;
    }

    fn clean(&mut self, executable: &Path) {
        let executable = self.there(executable);
        let _ = self.ask::<()>(&Request::Clean(executable));
    }

    fn check(&self) -> Result<(), String> {
        let (is_running, heard) = {
            let state = lock(&self.shared.state);
            (state.run.is_some(), state.heard)
        };
        if !self.is_there() {
            return Err(self.shared.why_gone());
        }
        // Between two runs the agent sends nothing.
        if is_running { self.check_since(heard) } else { Ok(()) }
    }
}

/// A local copy of the counters of a process on another host, without room for records.
fn mirror() -> Result<SampleFile, myelin_bench_kit::Error> {
    SampleFile::create(&fs::File::from(sample_memory()?), 0)
}

/// What the reading thread and the lab share.
struct Shared {
    /// Name of the host.
    name: String,
    state: Mutex<State>,
    /// The process that carries the bytes, and its last line on standard error.
    process: Mutex<Option<Child>>,
    complaint: Mutex<String>,
}

struct State {
    /// The run in progress: its number, and the receiver of its messages.
    run: Option<(u64, Sender<ProcessMessage>)>,
    files: BTreeMap<ProcessId, Arc<SampleFile>>,
    heard: Instant,
    /// Why the host is gone.
    gone: Option<String>,
}

impl Shared {
    fn why_gone(&self) -> String {
        lock(&self.state).gone.clone().unwrap_or_default()
    }

    /// Marks the host as gone, with `reason` or with the exit of its process.
    fn give_up(&self, reason: &str) {
        let mut why = if reason.is_empty() { self.ending() } else { reason.to_owned() };
        let complaint = lock(&self.complaint).clone();
        if !complaint.is_empty() {
            why = format!("{why} ({complaint})");
        }
        if let Some(process) = lock(&self.process).as_mut() {
            // It may have ended already.
            let _ = process.kill();
        }
        let mut state = lock(&self.state);
        if state.gone.is_none() {
            let text = format!("the connection to host {} is lost: {why}", self.name);
            if let Some((_, listener)) = &state.run {
                let _ = listener.send(ProcessMessage::Gone(text.clone()));
            }
            state.gone = Some(text);
        }
    }

    fn ending(&self) -> String {
        let status = lock(&self.process).as_mut().and_then(|process| wait_for(process, END_LIMIT));
        match status {
            Some(status) => format!("its agent {}", describe(status)),
            None => "its agent closed the connection".into(),
        }
    }
}

/// The thread that reads the agent's output.
struct Reader {
    shared: Arc<Shared>,
    greeted: Sender<Hello>,
    answered: Sender<Result<ByteBuf, String>>,
    /// Closed when standard error ends.
    complained: Receiver<()>,
}

impl Reader {
    /// Reads until the output ends or is invalid. It stores the reason before it wakes waiting
    /// callers.
    fn read(self, output: impl Read) {
        let mut output = BufReader::new(Heard { input: output, shared: Arc::clone(&self.shared) });
        let ending = loop {
            match read(&mut output) {
                Ok(Some(reply)) => self.handle(reply),
                Ok(None) => break String::new(),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break String::new(),
                Err(error) => break format!("it does not follow the agent's protocol: {error}"),
            }
        };
        let _ = self.complained.recv_timeout(END_LIMIT);
        self.shared.give_up(&ending);
    }

    fn handle(&self, reply: Reply) {
        match reply {
            Reply::Hello(hello) => drop(self.greeted.send(hello)),
            Reply::Answer(answer) => drop(self.answered.send(answer)),
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

/// A process whose standard input and output are those of an agent, and whose standard input,
/// output and error are pipes. It ends when its input does.
pub(crate) struct Connection {
    /// The host's name in messages.
    pub name: String,
    /// The agent itself, or the ssh process that leads to it.
    pub process: Child,
    /// The folder of the drivers on that host, by file name; `None` if the paths of the lab's host
    /// are valid there.
    pub drivers: Option<PathBuf>,
}

impl Connection {
    /// Starts `command`, which is an agent or leads to one.
    pub(crate) fn open(name: &str, command: &mut process::Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A new process group, so that Ctrl-C reaches only the lab.
        let process = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("host {name}: {}", command.get_program().to_string_lossy()))?;
        Ok(Connection { name: name.into(), process, drivers: None })
    }
}

/// The command for an agent on this host.
pub(crate) fn agent() -> Result<process::Command> {
    let mut command = process::Command::new(std::env::current_exe()?);
    command.args(["bench", "agent"]);
    Ok(command)
}

/// How long the process may run after its output has ended.
const END_LIMIT: Duration = Duration::from_secs(2);
const HELLO_LIMIT: Duration = Duration::from_secs(30);
/// During a run an agent sends something four times a second. Its longest other pause is the stop
/// of a daemon.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
