//! Opens one role: its topics in the run's namespace; returns when the other role's topics exist,
//! too.
//!
//! HORUS registers a subscriber at its first receive and a publisher at its first message, and
//! counts both. So each role receives before it waits for the other one. In a stream pong also has
//! a topic to ping, on which nothing is ever sent.

use std::rc::Rc;
use std::time::Duration;

use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::run_folder::RunFolder;
use myelin_bench_kit::{Error, Link, RoundTrip, Stream, clock};

use crate::FOLDERS;
use crate::bridge::Topic;

/// Opens `prepare.role` of round trips, with HORUS's default capacity.
pub fn open(prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
    let (outbox, inbox) = open_topics(prepare, 0)?;
    Ok(Box::new(Link::new(outbox, inbox)))
}

/// Opens `prepare.role` of a stream.
pub fn open_stream(prepare: &Prepare) -> Result<Stream, Error> {
    let (outbox, inbox) = open_topics(prepare, prepare.depth)?;
    Ok(match prepare.role {
        // The other topic stays open, for the other side's count.
        Role::Ping => Stream::publisher(Box::new(Pinging { outbox, _inbox: inbox })),
        _ => Stream::subscriber(Box::new(inbox)),
    })
}

fn open_topics(prepare: &Prepare, capacity: u32) -> Result<(Outbox, Inbox), Error> {
    let until_ns = prepare.match_until_ns();
    // HORUS replaces all characters except letters and digits.
    let run = prepare.run.replace('-', "_");
    let folder = Rc::new(FOLDERS.enter(&run)?);
    let name = folder.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let namespace = name.trim_start_matches("horus_");
    // SAFETY: no other thread reads the environment: the kit's thread reads standard input, and
    // HORUS has none until the first topic is opened.
    unsafe { std::env::set_var("HORUS_NAMESPACE", namespace) };
    let is_ping = prepare.role == Role::Ping;
    let (out, back) = if is_ping { (TO_PONG, TO_PING) } else { (TO_PING, TO_PONG) };
    let mut incoming = Topic::open(back, prepare.payload_bytes, capacity)?;
    let outgoing = Topic::open(out, prepare.payload_bytes, capacity)?;
    incoming.receive();
    let expected = prepare.others();
    while outgoing.subscribers() < expected {
        if clock::monotonic_ns() >= until_ns {
            return Err(timeout(prepare, outgoing.subscribers(), expected));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    let inbox = Inbox { topic: incoming, _folder: Rc::clone(&folder) };
    Ok((Outbox { topic: outgoing, _folder: folder }, inbox))
}

fn timeout(prepare: &Prepare, found: u32, expected: u32) -> Error {
    let other = if prepare.role == Role::Ping { "pong" } else { "ping" };
    let within = Duration::from_nanos(prepare.match_timeout_ns);
    Error::new(format!("HORUS: {found} of {expected} {other} found within {within:?}"))
        .remedy(format!("see {other}'s log in the results folder"))
}

/// The sending end of a role. Without room HORUS retries for up to 200 µs, then drops the message.
struct Outbox {
    // Dropped in this order.
    topic: Topic,
    _folder: Rc<RunFolder>,
}

impl myelin_bench_kit::Publisher for Outbox {
    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.topic.send(message);
        Ok(())
    }
}

/// Ping of a stream.
struct Pinging {
    outbox: Outbox,
    _inbox: Inbox,
}

impl myelin_bench_kit::Publisher for Pinging {
    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.outbox.publish(message)
    }
}

/// The receiving end of a role. HORUS has no wait between processes: its nodes check at every tick.
struct Inbox {
    topic: Topic,
    _folder: Rc<RunFolder>,
}

impl myelin_bench_kit::Subscriber for Inbox {
    #[inline]
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    #[inline]
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                // The borrow checker does not see that the return ends the loop.
                let message = self.topic.receive().map(std::ptr::from_ref);
                if let Some(message) = message {
                    // SAFETY: the result of `receive`, for as long as `self` is borrowed.
                    return Ok(Some(unsafe { &*message }));
                }
                std::hint::spin_loop();
            }
            if clock::monotonic_ns() >= until_ns {
                return Ok(None);
            }
        }
    }
}

const TO_PONG: &str = "to-pong";
const TO_PING: &str = "to-ping";
const LOOK_AGAIN: Duration = Duration::from_millis(1);
const LOOKS_PER_CLOCK: u32 = 16;
