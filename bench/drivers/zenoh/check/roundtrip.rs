//! A round trip over Zenoh, written directly against its API, without the kit and the driver's
//! adaptor, which are compared with it. As in Zenoh's own `z_ping` and `z_pong`, ping waits on a
//! channel and pong answers in its callback. Unlike there, every message is different, and pong
//! copies it, like the kit. ZENOH_CONFIG names the configuration file.
//!
//! ```text
//! roundtrip pong DOMAIN RUN PAYLOAD tcp|shm
//! roundtrip ping DOMAIN RUN PAYLOAD tcp|shm [MESSAGES [WARMUP]]
//! ```
//! Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
//! and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
//! (nearest rank). Pong ends when its standard input closes. DOMAIN is not used.

use std::io::stdin;
use std::time::{Duration, Instant};

use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::CongestionControl;
use zenoh::shm::{GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder};
use zenoh::{Config, Session, Wait};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Result<()> {
    zenoh::init_log_from_env_or("error");
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, _domain, run, payload, means, numbers @ ..] = &arguments[..] else {
        return Err(
            "usage: roundtrip ping|pong DOMAIN RUN PAYLOAD tcp|shm [MESSAGES [WARMUP]]".into()
        );
    };
    let message_bytes = SEQUENCE_BYTES + payload.parse::<usize>()?;
    let number =
        |index: usize, default| numbers.get(index).map_or(Ok(default), |text| text.parse());
    let (messages, warmup) = (number(0, 10_000)?, number(1, 1_000)?);
    let session = zenoh::open(Config::from_file(std::env::var("ZENOH_CONFIG")?)?).wait()?;
    let (out, back) = (format!("check/{run}/{role}"), |other| format!("check/{run}/{other}"));
    let provider = (means == "shm").then(|| {
        let bytes = CHUNKS * (message_bytes + CHUNK_OVERHEAD_BYTES);
        ShmProviderBuilder::default_backend(bytes.max(POOL_BYTES_MIN)).wait()
    });
    let writer = Writer {
        publisher: session
            .declare_publisher(out)
            .congestion_control(CongestionControl::Block)
            .express(true)
            .wait()?,
        provider: provider.transpose()?,
    };
    match role.as_str() {
        "ping" => ping(&session, &writer, back("pong"), message_bytes, messages, warmup),
        _ => pong(&session, writer, back("ping")),
    }
}

/// A publisher, with shared memory to write into if it uses that.
struct Writer {
    publisher: Publisher<'static>,
    provider: Option<ShmProvider<PosixShmProviderBackend>>,
}

impl Writer {
    fn write(&self, message: &[u8]) -> Result<()> {
        let Some(provider) = &self.provider else {
            return self.publisher.put(message).wait();
        };
        let mut memory = provider.alloc(message.len()).with_policy::<GarbageCollect>().wait()?;
        memory.copy_from_slice(message);
        self.publisher.put(memory).wait()
    }
}

fn pong(session: &Session, writer: Writer, key: String) -> Result<()> {
    let answer = move |payload: &ZBytes| {
        if let Err(error) = writer.write(&payload.to_bytes()) {
            eprintln!("{error}");
        }
    };
    let subscriber = session.declare_subscriber(key).callback(move |it| answer(it.payload()));
    let subscriber = subscriber.wait()?;
    println!("ready");
    while stdin().read_line(&mut String::new())? > 0 {}
    subscriber.undeclare().wait()
}

fn ping(
    session: &Session,
    writer: &Writer,
    key: String,
    message_bytes: usize,
    messages: usize,
    warmup: usize,
) -> Result<()> {
    let answers = session.declare_subscriber(key).wait()?;
    let give_up = Instant::now() + MATCH_WITHIN;
    while !writer.publisher.matching_status().wait()?.matching() {
        if Instant::now() > give_up {
            return Err("no other side".into());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    println!("ready");
    stdin().read_line(&mut String::new())?;
    let mut message: Vec<u8> = (0..message_bytes).map(|index| (index * 31) as u8).collect();
    let mut round_trips_ns = Vec::with_capacity(messages);
    for number in 0..warmup + messages {
        for stamp in message.chunks_mut(STAMP_BYTES).filter(|it| it.len() >= SEQUENCE_BYTES) {
            stamp[..SEQUENCE_BYTES].copy_from_slice(&(number as u64).to_le_bytes());
        }
        let begin = Instant::now();
        writer.write(&message)?;
        let answer = answers.recv_timeout(ANSWER_WITHIN)?.ok_or("no answer")?;
        // In one piece, like the kit.
        let answer = answer.payload().to_bytes();
        let took = begin.elapsed();
        let all = number < warmup;
        let compared = if all { message_bytes } else { SEQUENCE_BYTES };
        if answer.len() != message_bytes || answer[..compared] != message[..compared] {
            return Err("an answer to another message, or a damaged one".into());
        }
        if !all {
            round_trips_ns.push(took.as_nanos());
        }
    }
    round_trips_ns.sort_unstable();
    let rank = |percent: usize| round_trips_ns[(messages * percent).div_ceil(100) - 1];
    println!("p50 {} p99 {}", rank(50), rank(99));
    Ok(())
}

const SEQUENCE_BYTES: usize = 8;
const STAMP_BYTES: usize = 1024;
const CHUNKS: usize = 9;
const CHUNK_OVERHEAD_BYTES: usize = 256;
const POOL_BYTES_MIN: usize = 1 << 20;
const MATCH_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(1);
