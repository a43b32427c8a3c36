//! The time of a round trip between two polling threads, compared with the same over bare cache
//! lines; and the cost of a publish and a take in one thread, without any wait.
//!
//! A round trip takes 0.1 to 0.5 µs, depending on whether the two cores are threads of one core, or
//! share a cache, or do not. A hypervisor can change that at any time. So both are measured in
//! turns, and their ratio counts.
//!
//! `cargo bench -p myelin-shm --bench round_trip`; as a test it runs a few rounds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use myelin_shm::Error;
use myelin_shm::data_plane::subscription::RawSample;
use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};
use myelin_shm::waiting::wait::{NEVER, Wait, now_ns};

fn main() -> Result<(), Error> {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (rounds, trips) = if is_bench { (ROUNDS, TRIPS) } else { (3, 10) };
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let folder = Some(folder.path().to_owned());
        Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() })
    };
    let nodes = [open()?, open()?];
    println!(
        "bytes   bare lines   round trip   ratio of medians   publish and take in one thread \
         (ns, quartiles of {rounds} rounds)"
    );
    for bytes in BYTES {
        let (mut bare, mut ours, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        let mut ends = Ends::matched(&nodes, bytes)?;
        for _ in 0..rounds {
            bare.push(bare_round_trips(bytes, trips));
            ours.push(ends.round_trips(bytes, trips)?);
            alone.push(ends.in_one_thread(bytes, trips)?);
        }
        let [bare, ours, alone] = [bare, ours, alone].map(quartiles);
        let ratio = ours[1] / bare[1];
        println!("{bytes:5}   {bare:6.1?}   {ours:6.1?}   {ratio:.2}   {alone:6.1?}");
    }
    Ok(())
}

/// Both directions, and a topic within one thread.
struct Ends {
    there: (Publisher, Subscriber),
    back: (Publisher, Subscriber),
    own: (Publisher, Subscriber),
}

impl Ends {
    fn matched(nodes: &[Node; 2], bytes: usize) -> Result<Ends, Error> {
        let pair = |name: &str, from: &Node, to: &Node| {
            let name = format!("{name}/{bytes}");
            let topic = Topic { name, type_name: "T".into(), type_hash: 1 };
            let publisher = from.publisher(topic.clone(), PublisherQos::default())?;
            let subscriber = to.subscriber(topic, SubscriberQos::default())?;
            assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
            Ok::<_, Error>((publisher, subscriber))
        };
        let [one, two] = nodes;
        Ok(Ends {
            there: pair("there", one, two)?,
            back: pair("back", two, one)?,
            own: pair("own", one, two)?,
        })
    }

    /// One round trip, in ns.
    fn round_trips(&mut self, bytes: usize, trips: u32) -> Result<f64, Error> {
        let Ends { there: (ping, heard), back: (pong, answered), .. } = self;
        std::thread::scope(|scope| {
            let answering = scope.spawn(move || {
                pin(1);
                let mut taken = RawSample::empty();
                (0..trips).try_for_each(|_| {
                    heard.reader.wait(Wait::Poll, NEVER)?;
                    assert!(heard.reader.take_into(&mut taken)?);
                    pong.writer.publish_copy(taken.bytes()).map(drop)
                })
            });
            pin(0);
            let (message, mut taken) = (vec![7; bytes], RawSample::empty());
            let begin = now_ns();
            for _ in 0..trips {
                ping.writer.publish_copy(&message)?;
                answered.reader.wait(Wait::Poll, NEVER)?;
                assert!(answered.reader.take_into(&mut taken)?);
                assert_eq!(taken.bytes()[bytes - 1], 7);
            }
            let end = now_ns();
            answering.join().expect("no panic")?;
            Ok((end - begin) as f64 / f64::from(trips))
        })
    }

    /// A publish and a take, in ns.
    fn in_one_thread(&mut self, bytes: usize, trips: u32) -> Result<f64, Error> {
        let (publisher, subscriber) = &mut self.own;
        let (message, mut taken) = (vec![7; bytes], RawSample::empty());
        let begin = now_ns();
        for _ in 0..trips {
            publisher.writer.publish_copy(&message)?;
            assert!(subscriber.reader.take_into(&mut taken)?);
            assert_eq!(taken.bytes()[bytes - 1], 7);
        }
        Ok((now_ns() - begin) as f64 / f64::from(trips))
    }
}

/// A slot whose first word gives the turn; the payload lies on the lines after it.
#[repr(align(128))]
struct Slot {
    turn: AtomicU64,
    _turn: [u64; 15],
    words: [AtomicU64; 16],
}

impl Slot {
    const fn new() -> Slot {
        let words = [const { AtomicU64::new(0) }; 16];
        Slot { turn: AtomicU64::new(0), _turn: [0; 15], words }
    }

    fn pass(&self, turn: u64, message: &[u64]) {
        for (to, word) in self.words.iter().zip(message) {
            to.store(*word, Ordering::Relaxed);
        }
        self.turn.store(turn, Ordering::Release);
    }

    fn wait(&self, turn: u64, message: &mut [u64]) {
        while self.turn.load(Ordering::Acquire) != turn {
            std::hint::spin_loop();
        }
        for (from, word) in self.words.iter().zip(message) {
            *word = from.load(Ordering::Relaxed);
        }
    }
}

/// The floor: one round trip, in ns.
fn bare_round_trips(bytes: usize, trips: u32) -> f64 {
    let slots = [const { Slot::new() }; 2];
    let words = bytes.div_ceil(8);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            let mut message = vec![0; words];
            for turn in 1..=u64::from(trips) {
                slots[0].wait(turn, &mut message);
                slots[1].pass(turn, &message);
            }
        });
        pin(0);
        let mut message = vec![7; words];
        let begin = now_ns();
        for turn in 1..=u64::from(trips) {
            slots[0].pass(turn, &message);
            slots[1].wait(turn, &mut message);
        }
        (now_ns() - begin) as f64 / f64::from(trips)
    })
}

/// Makes the thread run only on this CPU, if it exists.
fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

fn quartiles(mut ns: Vec<f64>) -> [f64; 3] {
    ns.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| ns[(ns.len() - 1) * quarter / 4])
}

/// A message of 64 B and its number.
const BYTES: [usize; 2] = [8, 72];
const ROUNDS: usize = 201;
const TRIPS: u32 = 2_000;
const LONG: Duration = Duration::from_secs(60);
