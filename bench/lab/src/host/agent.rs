//! The agent: serves the requests of a lab on another host, until its input ends.
//!
//! The agent holds the processes of a run and their sample memory, as the lab does on its own host
//! ([`LocalHost`]). When the lab dies, the agent's input closes. The agent then kills the processes
//! that it started, removes its folder and ends. It does the same if it hears nothing from the lab
//! for a while. If the agent is killed, the kernel kills its processes as they requested, and the
//! supervisors of daemons see the end of their input.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use myelin_bench_kit::samples::{SampleFile, bytes_of};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use serde_bytes::ByteBuf;

use super::protocol::{Hello, Reply, Request, Writer, pack, read};
use super::{Host, LocalHost, ProcessId, RunOnHost, boot_id, lock};
use crate::machine::Machine;
use crate::observe::sampler::come_last;
use crate::registry;
use crate::tuning::{self, Cpus};

/// Serves a lab over standard input and output. Drivers write into `folder`, which is made when it
/// is first needed and removed at the end; by default it is in the folder for temporary files.
pub fn run(folder: Option<PathBuf>) -> io::Result<()> {
    let own = || std::env::temp_dir().join(format!("myelin-agent-{}", std::process::id()));
    let input = fs::File::from(io::stdin().as_fd().try_clone_to_owned()?);
    serve(Patient(input), io::stdout(), folder.unwrap_or_else(own))
}

/// A reader that gives up when the lab is silent for too long. A connection can break without
/// notice.
struct Patient(fs::File);

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let limit = Timespec { tv_sec: LAB_SILENCE_S_MAX, tv_nsec: 0 };
        match event::poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit))? {
            0 => {
                let text = format!("no message from the lab for {LAB_SILENCE_S_MAX} s");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            }
            _ => self.0.read(bytes),
        }
    }
}

pub(super) fn serve(
    input: impl Read,
    output: impl Write + Send + 'static,
    folder: PathBuf,
) -> io::Result<()> {
    let output = Writer::new(output);
    let (version, address) = (env!("CARGO_PKG_VERSION").into(), of_login());
    output.send(&Reply::Hello(Hello { version, boot: boot_id(), address }))?;
    let mut agent = Agent { host: LocalHost::default(), folder, run: None, output: output.clone() };
    let mut input = BufReader::new(input);
    while let Some(request) = read(&mut input)? {
        if !matches!(request, Request::Alive) {
            output.send(&Reply::Answer(agent.answer(request).map(ByteBuf::from)))?;
        }
    }
    Ok(())
}

struct Agent {
    host: LocalHost,
    folder: PathBuf,
    run: Option<AgentRun>,
    output: Writer,
}

/// The sample files of a run's processes, which the progress thread reads.
type Files = Arc<Mutex<Vec<(ProcessId, Arc<SampleFile>)>>>;

struct AgentRun {
    directory: PathBuf,
    files: Files,
    /// Dropped at the end, which stops the thread that reports progress.
    _going: mpsc::Sender<()>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.host.end();
        // The folder may not exist.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Agent {
    fn answer(&mut self, request: Request) -> Result<Vec<u8>, String> {
        let host = &mut self.host;
        match request {
            Request::Begin(number, run) => pack(&self.begin(number, &run)?),
            Request::Start(start) => {
                let begin_ns = host.start(*start)?;
                if let Some(run) = &self.run {
                    *lock(&run.files) = host.files();
                }
                pack(&begin_ns)
            }
            Request::Send(role, command) => pack(&host.send(role, &command)?),
            Request::Go(roles, delay) => pack(&host.go(&roles, delay)?),
            Request::Ended(id, limit) => pack(&host.ended(id, limit)?),
            Request::Observe(daemons) => pack(&host.observe(&daemons)?),
            Request::Observed => {
                let mut seen = host.observed()?;
                let series = seen.series.take();
                pack(&(seen, series))
            }
            Request::Records(id) => Ok(bytes_of(&host.records(id)?).to_vec()),
            Request::Files => pack(&self.files()),
            Request::End => {
                host.end();
                if let Some(run) = self.run.take() {
                    let _ = fs::remove_dir_all(run.directory);
                }
                pack(&())
            }
            Request::Clean(executable) => pack(&host.clean(&executable)),
            Request::Describe(executable) => pack(&registry::describe(&executable)?),
            Request::Unavailable(tuning, choice) => pack(&tuning::unavailable(tuning, &choice)),
            Request::Cpus(choice) => pack(&Cpus::choose(&choice).map_err(|it| it.to_string())?),
            Request::Machine => pack(&Machine::read()),
            Request::Alive => pack(&()),
            Request::Route(peer) => pack(&route_to(peer)?),
        }
    }

    fn begin(&mut self, number: u64, run: &RunOnHost) -> Result<(), String> {
        let directory = self.folder.join(&run.run);
        let make = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        make.map_err(|error| format!("{}: {error}", directory.display()))?;
        let (sender, messages) = mpsc::channel();
        let output = self.output.clone();
        std::thread::spawn(move || {
            for message in messages {
                // If the lab no longer listens, the agent's input is closed, too.
                let _ = output.send(&Reply::Message(number, message));
            }
        });
        let files = Files::default();
        let (going, ended) = mpsc::channel();
        let (output, seen) = (self.output.clone(), Arc::clone(&files));
        std::thread::spawn(move || report_progress(&output, &seen, &ended));
        self.run = Some(AgentRun { directory: directory.clone(), files, _going: going });
        self.host.begin(&RunOnHost { directory, ..run.clone() }, sender)
    }

    fn files(&self) -> Vec<(PathBuf, ByteBuf)> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        let mut paths = Vec::new();
        files_below(&run.directory, FOLDERS_DEEP, &mut paths);
        paths.sort();
        let mut room = FILES_BYTES_MAX;
        let file = |path: PathBuf| {
            let length = path.metadata().map_or(0, |data| data.len());
            let name = path.strip_prefix(&run.directory).ok().filter(|_| length <= room)?;
            let mut bytes = Vec::new();
            fs::File::open(&path).ok()?.take(length).read_to_end(&mut bytes).ok()?;
            room -= length;
            Some((name.to_path_buf(), ByteBuf::from(bytes)))
        };
        paths.into_iter().filter_map(file).collect()
    }
}

/// Reports the progress of the run to the lab at intervals, which also shows that the agent is
/// alive.
fn report_progress(output: &Writer, files: &Files, ended: &mpsc::Receiver<()>) {
    come_last();
    while ended.recv_timeout(PROGRESS_PERIOD) == Err(RecvTimeoutError::Timeout) {
        let counts = lock(files).iter().map(|(id, file)| (*id, file.exchanges())).collect();
        let _ = output.send(&Reply::Progress(counts));
    }
}

fn files_below(folder: &Path, deep: u32, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            Ok(kind) if kind.is_dir() && deep > 0 => files_below(&entry.path(), deep - 1, found),
            // Skip sockets, and links, which may lead elsewhere.
            _ => {}
        }
    }
}

/// This host's address in the user's ssh login; `None` without ssh. See `SSH_CONNECTION` in ssh(1):
/// the client's address and port, then the server's.
fn of_login() -> Option<IpAddr> {
    std::env::var("SSH_CONNECTION").ok()?.split(' ').nth(2)?.parse().ok()
}

/// The interface that leads to `peer`, and this host's address there, from the kernel's routing
/// table. Connects a datagram socket, which sends nothing.
fn route_to(peer: IpAddr) -> Result<(String, IpAddr), String> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let ask = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((peer, DISCARD_PORT))?;
        Ok(socket.local_addr()?.ip())
    };
    let own = ask().map_err(|error| format!("no route to {peer}: {error}"))?;
    let interface = interface_of(own).ok_or_else(|| format!("no interface has {own}"))?;
    Ok((interface, own))
}

fn interface_of(address: IpAddr) -> Option<String> {
    let mut all = if_addrs::get_if_addrs().ok()?.into_iter();
    all.find(|interface| interface.ip() == address).map(|interface| interface.name)
}

/// After this time without a request or a sign of life the lab counts as gone.
const LAB_SILENCE_S_MAX: i64 = 30;
/// The interval at which the lab checks a run.
const PROGRESS_PERIOD: Duration = Duration::from_millis(250);
/// Limit for all files of a run; oversized logs of a broken driver are not sent.
const FILES_BYTES_MAX: u64 = 64 << 20;
const FOLDERS_DEEP: u32 = 8;
/// Nothing is sent to it, so any port will do.
const DISCARD_PORT: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_this_host_is_the_loopback_interface() {
        let own: IpAddr = Ipv4Addr::LOCALHOST.into();
        assert_eq!(route_to(own), Ok(("lo".into(), own)));
    }
}
