//! A round trip over HORUS, written directly against its API, without the kit and the driver's
//! adaptor, which are compared with it (`bench/check/fidelity.py`). As in HORUS's own benchmarks
//! both sides poll. Unlike there, every message is different, has the requested size, and is copied
//! out.
//!
//! ```text
//! roundtrip pong DOMAIN RUN PAYLOAD
//! roundtrip ping DOMAIN RUN PAYLOAD [MESSAGES [WARMUP]]
//! ```
//! Both print `ready` when matched. Ping then waits for a line on standard input, exchanges WARMUP
//! and then MESSAGES messages, and prints p50 and p99 of the whole round trip in nanoseconds
//! (nearest rank). Pong ends when ping tells it to, or is gone. DOMAIN is not used.

mod message;

use std::io::stdin;
use std::time::{Duration, Instant};

use horus_core::communication::Topic;

use message::Message;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, _domain, run, payload, numbers @ ..] = &arguments[..] else {
        return Err("usage: roundtrip ping|pong DOMAIN RUN PAYLOAD [MESSAGES [WARMUP]]".into());
    };
    let number =
        |index: usize, default| numbers.get(index).map_or(Ok(default), |text| text.parse());
    let (messages, warmup) = (number(0, 10_000)?, number(1, 1_000)?);
    // SAFETY: there is no other thread yet.
    unsafe { std::env::set_var("HORUS_NAMESPACE", format!("myelin_check_{run}")) };
    match payload.parse()? {
        0 => exchange::<8>(role, messages, warmup),
        64 => exchange::<72>(role, messages, warmup),
        1024 => exchange::<1032>(role, messages, warmup),
        4096 => exchange::<4104>(role, messages, warmup),
        16384 => exchange::<16392>(role, messages, warmup),
        65536 => exchange::<65544>(role, messages, warmup),
        other => Err(format!("no type of {other} B").into()),
    }
}

fn exchange<const BYTES: usize>(role: &str, messages: usize, warmup: usize) -> Result<()> {
    let (out, back) = if role == "ping" { ("to-pong", "to-ping") } else { ("to-ping", "to-pong") };
    let out = Topic::<Message<BYTES>>::new(out)?;
    let back = Topic::<Message<BYTES>>::new(back)?;
    // The first receive registers a subscriber.
    back.recv();
    while out.sub_count() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("ready");
    match role {
        "ping" => ping(&out, &back, messages, warmup),
        _ => pong(&out, &back),
    }
    Ok(())
}

fn ping<const BYTES: usize>(
    out: &Topic<Message<BYTES>>,
    back: &Topic<Message<BYTES>>,
    messages: usize,
    warmup: usize,
) {
    let _ = stdin().read_line(&mut String::new());
    let mut took = Vec::with_capacity(messages);
    let mut written = Message([1; BYTES]);
    for sequence in 0..warmup + messages {
        written.0[..8].copy_from_slice(&sequence.to_ne_bytes());
        let begin = Instant::now();
        out.send(written);
        let read = loop {
            if let Some(message) = back.recv() {
                break message;
            }
            std::hint::spin_loop();
        };
        if sequence >= warmup {
            took.push(begin.elapsed().as_nanos());
        }
        assert_eq!(read.0[..8], written.0[..8]);
    }
    written.0[..8].copy_from_slice(&END_OF_STREAM.to_ne_bytes());
    out.send(written);
    took.sort_unstable();
    let rank = |share: usize| took[(took.len() * share).div_ceil(100).max(1) - 1];
    println!("p50 {} p99 {}", rank(50), rank(99));
}

/// Without another thread: under SCHED_FIFO nothing else would run beside a loop.
fn pong<const BYTES: usize>(out: &Topic<Message<BYTES>>, back: &Topic<Message<BYTES>>) {
    let mut looks = 0_u32;
    loop {
        if let Some(message) = back.recv() {
            if message.0[..8] == END_OF_STREAM.to_ne_bytes() {
                return;
            }
            out.send(message);
        } else {
            looks = looks.wrapping_add(1);
            if looks == 0 && out.sub_count() == 0 {
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// The number of the message that ends pong.
const END_OF_STREAM: u64 = u64::MAX;
