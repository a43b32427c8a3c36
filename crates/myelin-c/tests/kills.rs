//! kill -9 of publishers, subscribers, clients and servers in C, C++ and Python, at random points,
//! again and again. The survivors, in Rust, see whole samples and exact losses, get every reply or
//! an immediate error, get their memory back, and receive from the next processes; nothing is left
//! behind.
//!
//! The number of kills is a tenth of `MYELIN_KILLS` (default 2,000); `SEED` repeats a storm. If
//! `MYELIN_PYTHON` names an interpreter that has the module, the killed programs are in C and
//! Python, otherwise in C and C++.

mod support;

use std::collections::{HashMap, HashSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myelin::{Client, Error, Event, Node, Publisher, Sample, Service, Subscriber};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::{Place, WATCHDOG, crate_folder, start};

#[test]
fn survivors_of_a_kill_storm_go_on() {
    let kills = std::env::var("MYELIN_KILLS").map_or(2_000, |it| it.parse().unwrap()) / 10_usize;
    let seed = std::env::var("SEED").map_or_else(|_| myelin::now(), |it| it.parse().unwrap());
    println!("SEED={seed} KILLS={kills}");
    let mut random = StdRng::seed_from_u64(seed);
    let (place, programs) = (Place::new(), Place::new());
    let languages = languages(&programs);

    let descriptors = open_descriptors();
    let node = place.node();
    let client = node.client::<[u8], [u8]>("victim").unwrap();
    let (heard, is_over) = (Mutex::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| ask(client, &heard, &is_over));
        let _ends = EndOnDrop(&is_over);
        let mut survivors = Survivors::new(&node, &heard);
        let mut victims: Vec<Victim> = Vec::new();
        let mut killed = 0;
        while killed < kills {
            if victims.len() < CHILDREN {
                // A service has one server.
                let has_server = victims.iter().any(|victim| victim.role == "server");
                let role = ROLES[random.random_range(usize::from(has_server)..ROLES.len())];
                let language = &languages[random.random_range(0..languages.len())];
                let life = random.random_range(Duration::ZERO..language.life_max);
                victims.push(Victim::new(&place, language, role, life));
            }
            survivors.go_on();
            let before = victims.len();
            victims.retain(Victim::lives_on);
            killed += before - victims.len();
        }
        drop(victims);
        for language in &languages {
            for role in ROLES {
                let victim = Victim::new(&place, language, role, Duration::MAX);
                survivors.until(role, |heard| heard.contains(&victim.child.id()));
            }
        }
        survivors.are_alone();
        is_over.store(true, Ordering::Relaxed);
        let replies = calls.join().unwrap();
        println!(
            "{} samples, {} requests, {replies} replies",
            survivors.samples, survivors.requests
        );
    });
    drop(node);
    watched("every descriptor is back", || open_descriptors() == descriptors);
    watched("nothing is left behind", || {
        drop(place.node());
        std::fs::read_dir(place.sockets()).unwrap().next().is_none()
    });
}

/// A victim's language.
struct Language {
    words: Vec<PathBuf>,
    /// Long enough to begin in most lives.
    life_max: Duration,
}

fn languages(programs: &Place) -> [Language; 2] {
    let compiled = |source| Language {
        words: vec![programs.compile(source, &[])],
        life_max: Duration::from_millis(40),
    };
    let other = match std::env::var_os("MYELIN_PYTHON") {
        Some(python) => Language {
            words: vec![python.into(), crate_folder().join("tests/programs/storm.py")],
            life_max: Duration::from_millis(400),
        },
        None => compiled("tests/programs/storm.cpp"),
    };
    [other, compiled("tests/programs/storm.c")]
}

/// The survivors: a publisher, a subscriber and a server; the client has a thread of its own.
struct Survivors<'a> {
    publisher: Publisher<[u8]>,
    subscriber: Subscriber<[u8]>,
    service: Service<[u8], [u8]>,
    /// The processes from which something was received.
    heard: &'a Mutex<HashSet<u32>>,
    /// The next expected sequence of each publisher.
    next: HashMap<u64, u64>,
    held: Vec<Sample<[u8]>>,
    published: u64,
    samples: u64,
    requests: u64,
}

impl<'a> Survivors<'a> {
    fn new(node: &Node, heard: &'a Mutex<HashSet<u32>>) -> Self {
        let topic = node.topic::<[u8]>("storm");
        // Without the memory that dead processes have held, this would not be enough.
        let publisher = topic.publisher_builder().memory_max(16 << 20).open().unwrap();
        Survivors {
            publisher,
            subscriber: topic.subscriber_builder().publishers_max(64).open().unwrap(),
            service: node.service("survivor").unwrap(),
            heard,
            next: HashMap::new(),
            held: Vec::new(),
            published: 0,
            samples: 0,
            requests: 0,
        }
    }

    fn go_on(&mut self) {
        let mut loan = self.publisher.loan(bytes_of(self.published)).unwrap();
        fill(&mut loan, self.published);
        assert_eq!(loan.publish().unwrap().sequence, self.published);
        self.published += 1;
        let matched = self.publisher.events().into_iter().filter_map(|event| match event {
            Event::Matched { pid, .. } => Some(pid),
            _ => None,
        });
        self.heard.lock().unwrap().extend(matched);
        for _ in 0..TURN {
            let Some(sample) = self.subscriber.take().unwrap() else { break };
            self.note(sample);
        }
        for _ in 0..TURN {
            let Some(request) = self.service.take().unwrap() else { break };
            let (number, pid) = check(&request);
            let mut reply = request.loan(request.len()).unwrap();
            fill(&mut reply, number);
            reply.send().unwrap();
            self.heard.lock().unwrap().insert(pid);
            self.requests += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }

    /// No sample twice, none out of order, every missing one reported.
    fn note(&mut self, sample: Sample<[u8]>) {
        let (number, pid) = check(&sample);
        assert_eq!(number, sample.sequence(), "another sample's bytes");
        let first = number - sample.lost_before();
        let next = self.next.entry(sample.publisher()).or_insert(first);
        assert_eq!(first, *next, "{} lost before {number}", sample.lost_before());
        *next = number + 1;
        self.heard.lock().unwrap().insert(pid);
        self.samples += 1;
        self.held.push(sample);
        if self.held.len() == HELD {
            self.held.drain(..).for_each(|sample| assert_eq!(check(&sample).0, sample.sequence()));
        }
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&HashSet<u32>) -> bool) {
        let heard = self.heard;
        watched(what, || {
            self.go_on();
            is_so(&heard.lock().unwrap())
        });
    }

    /// Waits until all other processes have been forgotten.
    fn are_alone(&mut self) {
        watched("the dead are forgotten", || {
            self.go_on();
            let ends =
                (self.publisher.matched(), self.subscriber.matched(), self.service.clients());
            ends == (1, 1, 0)
        });
    }
}

/// Asks the servers that come and go until the end; returns the number of replies.
fn ask(client: Client<[u8], [u8]>, heard: &Mutex<HashSet<u32>>, is_over: &AtomicBool) -> u64 {
    let mut replies = 0;
    let mut request = Vec::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        if !client.wait_for_service(Duration::from_millis(10)).unwrap() {
            continue;
        }
        request.resize(bytes_of(number), 0);
        fill(&mut request, number);
        let reply = client.send(&request).and_then(|mut pending| pending.receive(WATCHDOG));
        match reply {
            Ok(reply) => {
                let (replied, pid) = check(&reply.expect("a reply, or the word of a death"));
                assert_eq!(replied, number);
                heard.lock().unwrap().insert(pid);
                replies += 1;
            }
            Err(Error::NoServer { .. } | Error::ServerGone { .. } | Error::NoReply { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    watched("the servers are forgotten", || client.servers() == 0);
    replies
}

/// A process that will be killed.
struct Victim {
    child: Child,
    role: &'static str,
    end: Option<Instant>,
}

impl Victim {
    fn new(place: &Place, language: &Language, role: &'static str, life: Duration) -> Victim {
        let [program, arguments @ ..] = &*language.words else { panic!("a program") };
        let mut command = place.command(program);
        command.args(arguments);
        Victim { child: start(command, &[role]), role, end: Instant::now().checked_add(life) }
    }

    /// Whether its time has not come yet.
    fn lives_on(&self) -> bool {
        self.end.is_none_or(|end| Instant::now() < end)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        if status.signal() != Some(libc::SIGKILL) && !std::thread::panicking() {
            let said = self.child.stderr.take().map(std::io::read_to_string);
            panic!("a victim failed by itself: {status}: {said:?}");
        }
    }
}

/// Ends the client's thread even if the test fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn bytes_of(number: u64) -> usize {
    HEAD + (if number.is_multiple_of(4) { number % 80 } else { number * 7919 % BYTES_MAX }) as usize
}

fn fill(bytes: &mut [u8], number: u64) {
    bytes.fill(number as u8);
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8..HEAD].copy_from_slice(&u64::from(std::process::id()).to_ne_bytes());
}

/// The number of a whole payload, and its owner.
fn check(bytes: &[u8]) -> (u64, u32) {
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let number = word(0);
    assert_eq!(bytes.len(), bytes_of(number));
    assert!(bytes[HEAD..].iter().all(|byte| *byte == number as u8), "a torn payload: {number}");
    (number, word(8) as u32)
}

fn open_descriptors() -> usize {
    std::fs::read_dir(Path::new("/proc/self/fd")).unwrap().count()
}

fn watched(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + WATCHDOG;
    while !is_so() {
        assert!(Instant::now() < end, "not in {WATCHDOG:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const ROLES: [&str; 4] = ["server", "publisher", "subscriber", "client"];
/// At the same time.
const CHILDREN: usize = 6;
/// How many samples a survivor takes before others have their turn.
const TURN: usize = 64;
/// Less than the subscriber may hold.
const HELD: usize = 8;
/// Number and process, before the rest of a payload.
const HEAD: usize = 16;
const BYTES_MAX: u64 = 50_000;
