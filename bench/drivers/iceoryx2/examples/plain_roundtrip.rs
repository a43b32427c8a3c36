//! A round trip over iceoryx2, written directly against its API, without the kit and the driver's
//! adaptor, which are compared with it (`bench/check/fidelity.py`). As in iceoryx2's own benchmarks
//! the subscriber polls without pause, or sleeps until an event wakes it. Unlike there, every
//! message is written and copied. The services are the driver's.
//!
//! ```text
//! plain_roundtrip pong DOMAIN RUN PAYLOAD poll|event
//! plain_roundtrip ping DOMAIN RUN PAYLOAD poll|event [MESSAGES [WARMUP]]
//! ```
//! Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
//! and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
//! (nearest rank). Pong ends when ping tells it to, or is gone. DOMAIN is not used.

use std::error::Error;
use std::io::stdin;
use std::time::{Duration, Instant};

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::{LogLevel, NodeBuilder, PortFactory, ipc, set_log_level};
use iceoryx2::sample::Sample;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    set_log_level(LogLevel::Fatal);
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, _domain, run, payload, manner, numbers @ ..] = &arguments[..] else {
        return Err("usage: plain_roundtrip ping|pong DOMAIN RUN PAYLOAD poll|event \
                    [MESSAGES [WARMUP]]"
            .into());
    };
    let message_bytes = SEQUENCE_BYTES + payload.parse::<usize>()?;
    let number =
        |index: usize, default| numbers.get(index).map_or(Ok(default), |text| text.parse());
    let (messages, warmup) = (number(0, 10_000)?, number(1, 1_000)?);
    let ends = Ends::open(role == "ping", run, message_bytes, manner == "event")?;
    println!("ready");
    match role.as_str() {
        "ping" => ping(&ends, message_bytes, messages, warmup),
        _ => pong(&ends),
    }
}

/// Publisher and subscriber; with events, the notifier for the other side and the listener of this
/// side.
struct Ends {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    events: Option<(Notifier<ipc::Service>, Listener<ipc::Service>)>,
}

impl Ends {
    fn open(is_ping: bool, run: &str, message_bytes: usize, has_events: bool) -> Result<Self> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let names = ["ping", "pong"].map(|from| format!("check/{run}/{from}"));
        let (out, back) = if is_ping { (0, 1) } else { (1, 0) };
        let topic = |index: usize| {
            node.service_builder(&names[index].as_str().try_into()?)
                .publish_subscribe::<[u8]>()
                .max_publishers(1)
                .max_subscribers(1)
                .max_nodes(2)
                .subscriber_max_buffer_size(2)
                .subscriber_max_borrowed_samples(1)
                .history_size(0)
                .enable_safe_overflow(true)
                .open_or_create()
                .map_err(Box::<dyn Error>::from)
        };
        let event = |index: usize| {
            let name = names[index].as_str().try_into()?;
            let event = node.service_builder(&name).event().max_notifiers(1).max_listeners(1);
            event.event_id_max_value(0).open_or_create().map_err(Box::<dyn Error>::from)
        };
        // Two processes that create the same service at the same time may get errors.
        let (outgoing, incoming) = (until(|| topic(out))?, until(|| topic(back))?);
        let subscriber = incoming.subscriber_builder().create()?;
        let events = has_events.then(|| -> Result<_> {
            let (outgoing, incoming) = (until(|| event(out))?, until(|| event(back))?);
            let listener = incoming.listener_builder().create()?;
            let notifier = outgoing.notifier_builder().create()?;
            until(|| match outgoing.dynamic_config().number_of_listeners() {
                0 => Err("no listener".into()),
                _ => Ok(()),
            })?;
            Ok((notifier, listener))
        });
        let events = events.transpose()?;
        let publisher = outgoing.publisher_builder().initial_max_slice_len(message_bytes);
        let publisher = publisher.max_loaned_samples(1).create()?;
        until(|| {
            let (to, from) = (outgoing.dynamic_config(), incoming.dynamic_config());
            match to.number_of_subscribers().min(from.number_of_publishers()) {
                0 => Err("no other side".into()),
                _ => Ok(()),
            }
        })?;
        publisher.update_connections()?;
        subscriber.update_connections()?;
        Ok(Ends { publisher, subscriber, events })
    }

    fn write(&self, message: &[u8]) -> Result<()> {
        let loan = self.publisher.loan_slice_uninit(message.len())?;
        loan.write_from_slice(message).send()?;
        if let Some((notifier, _)) = &self.events {
            notifier.notify()?;
        }
        Ok(())
    }

    /// The next sample; `None` if nothing arrives within `limit`.
    fn read(&self, limit: Duration) -> Result<Option<Sample<ipc::Service, [u8], ()>>> {
        let begin = Instant::now();
        for look in 1_u64.. {
            if let Some(sample) = self.subscriber.receive()? {
                return Ok(Some(sample));
            }
            match &self.events {
                Some((_, listener)) => listener.timed_wait(|_| (), limit).map(drop)?,
                None if look % LOOKS_PER_CLOCK != 0 => {
                    std::hint::spin_loop();
                    continue;
                }
                None => {}
            }
            if begin.elapsed() > limit {
                break;
            }
        }
        Ok(None)
    }
}

/// Repeats the attempt until it succeeds, or for [`MATCH_WITHIN`].
fn until<T>(attempt: impl Fn() -> Result<T>) -> Result<T> {
    let give_up = Instant::now() + MATCH_WITHIN;
    loop {
        match attempt() {
            Err(_) if Instant::now() < give_up => std::thread::sleep(LOOK_AGAIN),
            other => return other,
        }
    }
}

fn pong(ends: &Ends) -> Result<()> {
    while let Some(message) = ends.read(PING_MAY_REST)? {
        if message.payload()[..SEQUENCE_BYTES] == END_OF_STREAM {
            return Ok(());
        }
        ends.write(message.payload())?;
        if !is_whole(message.payload()) {
            return Err("a damaged message".into());
        }
    }
    Err("ping ended".into())
}

/// Whether all stamps equal the first one; the kit checks the same.
fn is_whole(message: &[u8]) -> bool {
    stamps(message).all(|stamp| *stamp == message[..SEQUENCE_BYTES])
}

fn stamps(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    message.chunks(STAMP_BYTES).filter_map(|chunk| chunk.get(..SEQUENCE_BYTES))
}

fn ping(ends: &Ends, message_bytes: usize, messages: usize, warmup: usize) -> Result<()> {
    stdin().read_line(&mut String::new())?;
    let mut message: Vec<u8> = (0..message_bytes).map(|index| (index * 31) as u8).collect();
    let mut round_trips_ns = Vec::with_capacity(messages);
    for number in 0..warmup + messages {
        for stamp in message.chunks_mut(STAMP_BYTES).filter(|it| it.len() >= SEQUENCE_BYTES) {
            stamp[..SEQUENCE_BYTES].copy_from_slice(&(number as u64).to_le_bytes());
        }
        let begin = Instant::now();
        ends.write(&message)?;
        let answer = ends.read(ANSWER_WITHIN)?.ok_or("no answer")?;
        let answer = answer.payload(); // Its length precedes it, written by pong.
        let took = begin.elapsed();
        let is_ours = match number < warmup {
            true => *answer == *message,
            false => answer[..SEQUENCE_BYTES] == message[..SEQUENCE_BYTES] && is_whole(answer),
        };
        if answer.len() != message_bytes || !is_ours {
            return Err("an answer to another message, or a damaged one".into());
        }
        if number >= warmup {
            round_trips_ns.push(took.as_nanos());
        }
    }
    message[..SEQUENCE_BYTES].copy_from_slice(&END_OF_STREAM);
    ends.write(&message)?;
    round_trips_ns.sort_unstable();
    let rank = |percent: usize| round_trips_ns[(messages * percent).div_ceil(100) - 1];
    println!("p50 {} p99 {}", rank(50), rank(99));
    Ok(())
}

const SEQUENCE_BYTES: usize = 8;
const END_OF_STREAM: [u8; SEQUENCE_BYTES] = [0xff; SEQUENCE_BYTES];
const STAMP_BYTES: usize = 1024;
const LOOKS_PER_CLOCK: u64 = 1024;
const MATCH_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Longer than ping is asked to wait.
const PING_MAY_REST: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(1);
