//! The kit's own share of a measured exchange: `cargo bench -p myelin-bench-kit`.
//!
//! Ping exchanges messages with a peer that is only a function call, with the clock, the checks and
//! the recording of a real run. The time that is left after the clock reads is the cost of
//! recording; it is spent between two messages, not within a latency.

use std::sync::atomic::AtomicBool;

use myelin_bench_kit::protocol::{DEPTH_DEFAULT, PROTOCOL, Prepare, Role, Touch, Workload};
use myelin_bench_kit::samples::SampleFile;
use myelin_bench_kit::{Clock, Error, Link, Publisher, RoundTrip, Subscriber, clock};

use std::cell::RefCell;
use std::rc::Rc;

struct Echo(Rc<RefCell<Vec<u8>>>);

impl Publisher for Echo {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.0.borrow_mut().copy_from_slice(message);
        Ok(())
    }
}

struct Reply(Rc<RefCell<Vec<u8>>>, Vec<u8>);

impl Subscriber for Reply {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        // The drain at the end waits for a time in the future; there is nothing to take.
        if clock::monotonic_ns() + 1_000_000_000 > until_ns {
            return Ok(None);
        }
        self.1.copy_from_slice(&self.0.borrow());
        Ok(Some(&self.1))
    }
}

fn main() {
    let messages: u64 =
        if std::env::args().any(|word| word == "--test") { 1_000 } else { 1_000_000 };
    let calibration = clock::calibrate();
    println!("clock read          {:8.1} ns", calibration.read_ns);
    println!("clock step          {:8} ns", calibration.step_ns);
    let mut whole = Vec::new();
    for _ in 0..5 {
        whole.push(exchange_ns(messages));
    }
    whole.sort_by(f64::total_cmp);
    // Three reads by the loop (entry, return, taken), one for the time limit, one by `Reply`.
    let reads = 5.0 * calibration.read_ns;
    println!("exchange, 0 B       {:8.1} ns, median of 5 × {messages}", whole[2]);
    println!("of it five reads    {reads:8.1} ns");
    println!("recording a sample  {:8.1} ns (limit 40)", whole[2] - reads);
}

fn exchange_ns(messages: u64) -> f64 {
    let file = tempfile::tempfile().expect("a temporary file");
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    SampleFile::create(&file, messages).expect("a sample file");
    let mut samples = SampleFile::open(path.as_ref()).expect("the same sample file");
    let mailbox = Rc::new(RefCell::new(vec![0; 8]));
    let mut link = Link {
        publisher: Box::new(Echo(Rc::clone(&mailbox))),
        subscriber: Box::new(Reply(mailbox, vec![0; 8])),
        clock: Clock::Monotonic,
    };
    let prepare = prepare(messages);
    let done = link.ping(&prepare, &mut samples, 0, &AtomicBool::new(false)).expect("an exchange");
    assert_eq!(done.received, messages);
    assert_eq!(samples.records().len() as u64, messages);
    (done.end_ns - done.begin_ns) as f64 / messages as f64
}

fn prepare(messages: u64) -> Prepare {
    Prepare {
        protocol: PROTOCOL,
        system: "echo".into(),
        role: Role::Ping,
        run: "record".into(),
        domain: 0,
        payload_bytes: 0,
        messages,
        duration_ns: 0,
        warmup_messages: 1_000,
        warmup_ns: 0,
        rate_hz: None,
        reply_timeout_ns: 10_000_000_000,
        match_timeout_ns: 0,
        record_every: 1,
        parts_every: 1,
        ring: false,
        samples: None,
        directory: ".".into(),
        lock_memory: false,
        seed: 0,
        workload: Workload::Roundtrip,
        touch: Touch::Stamps,
        arrivals: Default::default(),
        frame: None,
        pong_samples: None,
        pong_cpu: None,
        pong_fifo: None,
        subscribers: 1,
        publishers: 1,
        index: 0,
        topics: 1,
        reliability: Default::default(),
        depth: DEPTH_DEFAULT,
        recording: None,
        taken_counter: None,
        network: None,
        identity: None,
        enclave: None,
        options: Default::default(),
    }
}
