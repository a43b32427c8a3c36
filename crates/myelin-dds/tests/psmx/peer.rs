//! A peer: a process of `peer.c`.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::plug_in::plug_in;

/// The exchange that a peer's CycloneDDS is configured to load.
#[derive(Clone, Copy)]
pub enum Exchange {
    /// Nothing.
    None,
    /// Loads it, with this `config`.
    Myelin(&'static str),
}
pub const MYELIN: Exchange = Exchange::Myelin("");

/// A running process; killed when dropped.
pub struct Peer {
    pub child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Receiver<String>,
    /// With how many others it is matched, by its last message.
    matched: Cell<usize>,
}

impl Peer {
    /// Starts it; peer.c describes `words`.
    pub fn start(exchange: Exchange, words: &str) -> Peer {
        Peer::start_by(&[], exchange, words)
    }

    /// The same, started by a command.
    pub fn start_by(by: &[&str], exchange: Exchange, words: &str) -> Peer {
        Peer::start_all(by, "peer", exchange, words)
    }

    /// A process of another one of the programs.
    pub fn start_program(program: &str, exchange: Exchange, words: &str) -> Peer {
        Peer::start_all(&[], program, exchange, words)
    }

    fn start_all(by: &[&str], program: &str, exchange: Exchange, words: &str) -> Peer {
        let (prefix, built) = plug_in().expect("asked for before");
        let library = built.join("libpsmx_myelin.so");
        let psmx = match exchange {
            Exchange::None => String::new(),
            Exchange::Myelin(config) => format!(
                r#"<PubSubMessageExchange type="myelin" library="{}" config="{config}"/>"#,
                library.display()
            ),
        };
        let config = format!(
            r#"<General><Interfaces><NetworkInterface name="lo" multicast="true"/>{psmx}</Interfaces></General>"#
        );
        let words = words.split_whitespace().map(str::to_owned);
        let program = built.join(program).display().to_string();
        let all: Vec<String> =
            by.iter().map(|&it| it.to_owned()).chain([program]).chain(words).collect();
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).env("CYCLONEDDS_URI", config);
        command.env("LD_LIBRARY_PATH", prefix.join("lib"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let lines = read(child.stdout.take().unwrap());
        let log = read(child.stderr.take().unwrap());
        Peer { child, input, lines, log, matched: Cell::new(0) }
    }

    /// A peer whose endpoint goes through shared memory.
    pub fn shared(words: &str) -> Peer {
        Peer::shared_by(MYELIN, words)
    }

    pub fn shared_by(exchange: Exchange, words: &str) -> Peer {
        let peer = Peer::start(exchange, words);
        assert_eq!(peer.line(), "ready shared");
        peer
    }

    /// A peer whose endpoint does not.
    pub fn networked(exchange: Exchange, words: &str) -> Peer {
        let peer = Peer::start(exchange, words);
        assert_eq!(peer.line(), "ready network");
        peer
    }

    /// Its next line, apart from those about matches.
    pub fn line(&self) -> String {
        loop {
            if let Some(line) = self.next() {
                return line;
            }
        }
    }

    /// Waits until it is matched with so many; it prints nothing else meanwhile.
    pub fn matched(&self, others: usize) {
        while self.matched.get() != others {
            assert_eq!(self.next(), None);
        }
    }

    /// The next line, or that it was about matches.
    fn next(&self) -> Option<String> {
        let line = self.lines.recv_timeout(WATCHDOG).unwrap_or_else(|_| {
            panic!("it is silent; its log: {:#?}", self.log.try_iter().collect::<Vec<_>>())
        });
        let Some(others) = line.strip_prefix("matched ") else { return Some(line) };
        self.matched.set(others.parse().unwrap());
        None
    }

    /// Sends it a line.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("not ended"), "{line}").unwrap();
    }

    /// Makes a publisher do something; returns the result.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        let answer = self.line();
        answer.strip_prefix("done ").unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub fn write(&mut self, first: u64, count: u64) {
        assert_eq!(self.ask(&format!("write {first} {count}")), "Success");
    }

    /// A subscriber takes these numbers next, all of them from this kind of memory.
    pub fn takes(&self, numbers: impl IntoIterator<Item = u64>, memory: &str) {
        for number in numbers {
            assert_eq!(self.line(), format!("took {number} {memory}"));
        }
    }

    /// Waits until it has ended by itself; its log.
    pub fn fails(mut self) -> String {
        drop(self.input.take());
        assert!(!self.child.wait().unwrap().success());
        self.log.iter().collect::<Vec<_>>().join("\n")
    }

    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it by closing its input, and checks that it ended well.
    pub fn end(mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {:#?}", self.log.iter().collect::<Vec<_>>());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(from).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

/// For one line, on a machine that is busy with other things.
const WATCHDOG: Duration = Duration::from_secs(60);
