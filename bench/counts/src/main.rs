//! The calls of the hot path in Rust, for `scripts/counts`: each operation runs [`EACH`] times within a function
//! `counted_OPERATION`, of which callgrind counts the instructions, between two marks in strace's output. `counts.c`,
//! `counts.cpp` and `counts.py` do the same.
//!
//! All run in one thread; only a wake-up needs a second one.

use std::ffi::CStr;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use myelin::{Error, Executor, Node, Order, Payload, Publisher, Subscriber, Wait};

/// Fits into a slot of the ring.
type Small = [u8; 64];
/// Goes by a loan's memory.
type Large = [u8; 4096];

fn main() -> Result<(), Error> {
    let (from, to) = (Node::new("from")?, Node::new("to")?);

    let (publisher, mut subscriber) = matched::<Small>(&from, &to, "copy")?;
    counted!(publish_copy, || publisher.publish_copy(&[7; 64]).map(drop));
    while subscriber.take()?.is_some() {}
    counted!(publish_copy_take, || {
        publisher.publish_copy(&[7; 64])?;
        take(&mut subscriber)
    });

    let shared = from.topic::<Small>("shared").publisher()?.shared();
    let mut subscriber = to.topic::<Small>("shared").subscriber()?;
    assert!(shared.wait_for_match(1, LIMIT) && subscriber.wait_for_match(1, LIMIT));
    counted!(shared_publish_copy_take, || {
        shared.publish_copy(&[7; 64])?;
        take(&mut subscriber)
    });

    let (publisher, mut subscriber) = matched::<Large>(&from, &to, "loan")?;
    let lend = || {
        let mut loan = publisher.loan()?;
        loan[0] = 7;
        loan.publish().map(drop)
    };
    lend()?;
    assert!(subscriber.receive(LIMIT)?.is_some()); // it has mapped the memory
    counted!(loan_publish, lend);
    while subscriber.take()?.is_some() {}
    counted!(loan_publish_take, || {
        lend()?;
        assert!(subscriber.take()?.is_some_and(|sample| sample[0] == 7));
        Ok(())
    });

    // Observers of another node: one that looks meanwhile, and one that never does.
    let (publisher, mut subscriber) = matched::<Small>(&from, &to, "observed copy")?;
    let observers = [to.topic::<Small>("observed copy"), to.topic("observed copy")];
    let mut observers = observers.map(|topic| topic.observer().expect("an observer"));
    counted!(observed_publish_copy, || publisher.publish_copy(&[7; 64]).map(drop));
    assert!(observers[0].take()?.is_some() && subscriber.take()?.is_some());

    let (publisher, mut subscriber) = matched::<Large>(&from, &to, "observed loan")?;
    let lend = || {
        let mut loan = publisher.loan()?;
        loan[0] = 7;
        loan.publish().map(drop)
    };
    lend()?;
    assert!(subscriber.receive(LIMIT)?.is_some());
    let observers = [to.topic::<Large>("observed loan"), to.topic("observed loan")];
    let mut observers = observers.map(|topic| topic.observer().expect("an observer"));
    counted!(observed_loan_publish, lend);
    assert!(observers[0].take()?.is_some() && subscriber.take()?.is_some());

    let others = (0..10).map(|number| to.topic::<Small>(&format!("set/{number}")).subscriber());
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let (publisher, mut subscriber) = matched::<Small>(&from, &to, "set")?;
    let mut set = to.wait_set()?;
    for other in &others {
        set.add(other)?;
    }
    set.add(&subscriber)?;
    counted!(wait_set_turn, || {
        publisher.publish_copy(&[7; 64])?;
        assert_eq!(set.wait(LIMIT)?.len(), 1);
        take(&mut subscriber)
    });

    let (publisher, subscriber) = matched::<Small>(&from, &to, "executor")?;
    let mut executor = to.executor()?;
    executor.on_sample(subscriber, |sample| _ = black_box(sample[0]))?;
    counted!(executor_turn, || {
        publisher.publish_copy(&[7; 64])?;
        executor.turn(LIMIT).map(drop)
    });

    // For each sample of a backlog.
    let (publisher, mut executor) = with_backlog(&from, &to, "backlog")?;
    for _ in 0..EACH / BACKLOG {
        fill(&publisher)?;
        once!(executor_backlog, || executor.run());
    }
    let (publisher, mut executor) = with_backlog(&from, &to, "backlog/timer")?;
    executor.on_timer(Duration::from_hours(1), || {})?;
    for _ in 0..EACH / BACKLOG {
        fill(&publisher)?;
        once!(executor_backlog_timer, || executor.run());
    }
    let (publisher, mut executor) = with_backlog(&from, &to, "backlog/oldest")?;
    executor.set_order(Order::OldestFirst);
    for _ in 0..EACH / BACKLOG {
        fill(&publisher)?;
        once!(executor_backlog_oldest, || executor.run());
    }

    let (publisher, subscriber) = matched::<Small>(&from, &from, "callback")?;
    let callback = subscriber.on_sample(|sample| _ = black_box(sample[0]))?;
    let before = callback.calls();
    counted!(callback, || publisher.publish_copy(&[7; 64]).map(drop));
    assert_eq!(callback.calls() - before, u64::from(WARM_UP + EACH));

    let mut service = from.service::<Small, Small>("service")?;
    let client = to.client::<Small, Small>("service")?;
    while !client.wait_for_service(Duration::from_millis(1))? {
        service.take()?;
    }
    let mut call = |limit| {
        let mut pending = client.send(&[7; 64])?;
        service.receive(limit)?.expect("a request").reply(&[8; 64])?;
        assert!(pending.receive(limit)?.is_some_and(|reply| reply[63] == 8));
        Ok::<_, Error>(())
    };
    call(LIMIT)?; // the first one may take a moment
    counted!(service_call, || call(Duration::ZERO));

    let (publisher, mut subscriber) = matched::<Small>(&from, &to, "wake")?;
    subscriber.set_wait(Wait::Block);
    let (thread, taken) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: no preconditions.
            thread.store(unsafe { libc::gettid() } as u32, Ordering::Release);
            for _ in 0..WAKES {
                assert!(subscriber.receive(LIMIT).expect("it waits").is_some());
                taken.fetch_add(1, Ordering::Release);
            }
        });
        for wakes in 0..WAKES {
            while taken.load(Ordering::Acquire) < wakes || !sleeps(thread.load(Ordering::Acquire)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            once!(wake, || publisher.publish_copy(&[7; 64]).map(drop));
        }
    });
    Ok(())
}

fn matched<T: Payload>(
    from: &Node,
    to: &Node,
    name: &str,
) -> Result<(Publisher<T>, Subscriber<T>), Error> {
    let (publisher, subscriber) = (from.topic(name).publisher()?, to.topic(name).subscriber()?);
    assert!(publisher.wait_for_match(1, LIMIT) && subscriber.wait_for_match(1, LIMIT));
    Ok((publisher, subscriber))
}

/// An executor that stops after [`BACKLOG`] samples.
fn with_backlog(from: &Node, to: &Node, name: &str) -> Result<(Publisher<Small>, Executor), Error> {
    let topic = from.topic::<Small>(name).depth(BACKLOG);
    let publisher = topic.publisher_builder().timestamps(true).open()?;
    let subscriber = to.topic::<Small>(name).depth(BACKLOG).subscriber()?;
    assert!(publisher.wait_for_match(1, LIMIT) && subscriber.wait_for_match(1, LIMIT));
    let executor = to.executor()?;
    let stop = executor.stop_guard();
    executor.on_sample(subscriber, move |sample| {
        if sample[0] == LAST {
            stop.trigger();
        }
    })?;
    Ok((publisher, executor))
}

/// Not inlined: where else they are called, publish and loan are to be inlined as in a program.
#[cold]
fn fill(publisher: &Publisher<Small>) -> Result<(), Error> {
    for sample in 1..=BACKLOG {
        let mut loan = publisher.loan()?;
        loan[0] = if sample == BACKLOG { LAST } else { 0 };
        loan.publish()?;
    }
    Ok(())
}

fn take(subscriber: &mut Subscriber<Small>) -> Result<(), Error> {
    assert!(subscriber.take()?.is_some_and(|sample| sample[63] == 7));
    Ok(())
}

/// Whether a thread of this process sleeps.
fn sleeps(thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
}

type Operation<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

fn repeat(times: u32, operation: Operation) {
    (0..times).for_each(|_| operation().expect("it succeeds"));
}

/// A line in strace's output: a write to no descriptor, which fails.
fn mark(what: &CStr) {
    // SAFETY: the text has so many bytes.
    unsafe { libc::write(-1, what.as_ptr().cast(), what.count_bytes()) };
}

/// Runs an operation once, counted under its name.
macro_rules! once {
    ($name:ident, $operation:expr) => {
        counted!(@ $name, 1, &mut $operation)
    };
}

/// Runs an operation [`WARM_UP`] times, and [`EACH`] times counted under its name.
macro_rules! counted {
    ($name:ident, $operation:expr) => {
        let mut operation = $operation;
        repeat(WARM_UP, &mut operation);
        counted!(@ $name, EACH, &mut operation);
    };
    (@ $name:ident, $times:expr, $operation:expr) => {{
        #[unsafe(export_name = concat!("counted_", stringify!($name)))]
        #[inline(never)]
        fn counted(operation: Operation) {
            black_box(stringify!($name)); // functions that are the same would become one
            repeat($times, operation);
        }
        mark(const { as_c(concat!("counted ", stringify!($name), "\0")) });
        counted($operation);
        mark(c"counted");
    }};
}
use {counted, once};

const fn as_c(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("it ends by 0"),
    }
}

const LIMIT: Duration = Duration::from_secs(30);
const WARM_UP: u32 = 100;
const EACH: u32 = 200;
const WAKES: u32 = 20;
const BACKLOG: u32 = 50;
const LAST: u8 = 9;
