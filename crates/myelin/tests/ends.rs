//! Objects end in any order, in their own callbacks, with their thread, with their process. Nothing
//! hangs, and nothing is left: descriptors, threads and mappings are the same as before.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;
mod support;

use std::any::Any;
use std::cell::RefCell;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use myelin::{Callback, Client, Node, Pending, Publisher, Service, Subscriber};
use support::{WATCHDOG, ends, until};

/// The open resources of a process.
#[derive(Debug)]
struct Open {
    descriptors: usize,
    threads: usize,
    mappings: usize,
}

fn open() -> Open {
    let entries = |folder: &str| std::fs::read_dir(folder).unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    Open {
        descriptors: entries("/proc/self/fd"),
        threads: entries("/proc/self/task"),
        mappings: maps.lines().filter(|line| line.contains("myelin")).count(),
    }
}

/// After `act` the same resources are open as before. The first run is for those that stay for the
/// whole process.
fn leaves_nothing(mut act: impl FnMut()) {
    act();
    let before = open();
    for _ in 0..3 {
        act();
    }
    let mut now = open();
    // The kernel lists a thread for a moment after the join, also in the numbers of before.
    let has_more = |now: &Open| {
        now.descriptors > before.descriptors
            || now.threads > before.threads
            || now.mappings > before.mappings
    };
    let begun = Instant::now();
    while has_more(&now) && begun.elapsed() < WATCHDOG {
        std::thread::yield_now();
        now = open();
    }
    assert!(!has_more(&now), "{now:?}, {before:?} before");
}

/// A node's parts, all kinds that can be matched with each other.
fn parts() -> Vec<Box<dyn Any + Send>> {
    let (folder, node) = support::node();
    let (publisher, mut subscriber) = ends(&node.topic::<[u8]>("image"));
    publisher.publish_copy(&[7; 1_000]).unwrap();
    let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
    let shared = node.topic::<[u8]>("shared").publisher().unwrap().shared();
    let loan = shared.loan(1_000).unwrap();
    let called = node.topic::<[u8]>("image").subscriber().unwrap().on_sample(|_| ()).unwrap();
    let service = node.service::<u64, u64>("waits").unwrap();
    let serving = node.service::<u64, u64>("serves").unwrap();
    let serving = serving.on_request(|request| request.reply(&*request).unwrap()).unwrap();
    let client = node.client::<u64, u64>("serves").unwrap();
    let reply = client.call(&3, WATCHDOG).unwrap();
    let set = node.wait_set().unwrap();
    let key = set.add(&subscriber).unwrap();
    let guard = set.guard_condition().unwrap();
    let interrupter = subscriber.interrupter();
    vec![
        Box::new(folder),
        Box::new(node),
        Box::new(publisher),
        Box::new(subscriber),
        Box::new(sample),
        Box::new(shared),
        Box::new(loan),
        Box::new(called),
        Box::new(service),
        Box::new(serving),
        Box::new(client),
        Box::new(reply),
        Box::new((set, key)),
        Box::new(guard),
        Box::new(interrupter),
    ]
}

#[test]
fn drops_in_any_order_and_thread_leave_nothing() {
    alone("orders");
}

fn orders() {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    leaves_nothing(|| {
        for _ in 0..8 {
            let mut parts = parts();
            while !parts.is_empty() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let part = parts.swap_remove((random >> 33) as usize % parts.len());
                match random >> 63 {
                    0 => drop(part),
                    _ => std::thread::spawn(move || drop(part)).join().unwrap(),
                }
            }
        }
    });
}

/// Drops inside an object's own callback: the handle of the callback, of the publisher that is
/// publishing, of the node, of a service.
#[test]
fn objects_may_be_dropped_in_their_own_callback() {
    alone("own_callbacks");
}

fn own_callbacks() {
    leaves_nothing(|| {
        let (_folder, node) = support::node();
        let (to, called): (Sender<()>, Receiver<()>) = mpsc::channel();
        let slot: Arc<Mutex<Vec<Box<dyn Any + Send>>>> = Arc::default();
        let drops = |to: &Sender<()>| {
            let (slot, to) = (slot.clone(), to.clone());
            move || {
                let all = std::mem::take(&mut *slot.lock().unwrap());
                drop(all);
                let _ = to.send(());
            }
        };
        let publisher = node.topic::<u64>("count").publisher().unwrap();
        let ended = drops(&to);
        let subscriber = node.topic::<u64>("count").subscriber().unwrap();
        let callback: Callback = subscriber.on_sample(move |_| ended()).unwrap();
        assert!(publisher.wait_for_match(1, WATCHDOG));
        let other = node.topic::<u64>("other").publisher().unwrap();
        let inner = node.clone();
        slot.lock().unwrap().extend([
            Box::new(callback) as Box<dyn Any + Send>,
            Box::new(other),
            Box::new(inner),
        ]);
        publisher.publish_copy(&1).unwrap();
        called.recv_timeout(WATCHDOG).unwrap();

        let ended = drops(&to);
        let service: Service<u64, u64> = node.service("own").unwrap();
        let serving = service.on_request(move |request| {
            let _ = request.reply(&*request);
            ended();
        });
        slot.lock().unwrap().push(Box::new(serving.unwrap()));
        let client: Client<u64, u64> = node.client("own").unwrap();
        assert_eq!(*client.call(&4, WATCHDOG).unwrap(), 4);
        called.recv_timeout(WATCHDOG).unwrap();
        until("the end of the service", || client.servers() == 0);
    });
}

/// A pending call is dropped before or after its reply, with its client or before.
#[test]
fn dropped_pending_calls_end() {
    alone("pending");
}

fn pending() {
    leaves_nothing(|| {
        let (_folder, node) = support::node();
        let mut service: Service<u64, u64> = node.service("s").unwrap();
        for drops_first in [false, true] {
            let client: Client<u64, u64> = node.client("s").unwrap();
            assert!(client.wait_for_service(WATCHDOG).unwrap());
            let calls: Vec<Pending<'_, u64, u64>> =
                (0..9).map(|number| client.send(&number).unwrap()).collect();
            let requests: Vec<_> =
                (0..9).map(|_| service.receive(WATCHDOG).unwrap().expect("it asks")).collect();
            if drops_first {
                drop(calls);
                drop(client);
                requests.iter().for_each(|request| request.reply(&0).unwrap());
            } else {
                drop(requests);
                drop(calls);
            }
        }
    });
}

/// Thread-local objects end with their thread, among its other thread-local values.
#[test]
fn thread_locals_are_dropped_with_the_thread() {
    alone("threads");
}

type Kept = (Callback, Publisher<u64>, Subscriber<u64>, Client<u64, u64>, Node, tempfile::TempDir);

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
    /// Initialised first, so that it ends last: objects that end before it may still publish.
    static FIRST: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Publishes when it is dropped.
struct Publishes(Publisher<u64>);

impl Drop for Publishes {
    fn drop(&mut self) {
        let _ = self.0.publish_copy(&9);
    }
}

fn kept() -> Kept {
    let (folder, node) = support::node();
    let (publisher, subscriber) = ends(&node.topic::<u64>("count"));
    let callback = node.topic::<u64>("count").subscriber().unwrap().on_sample(|_| ()).unwrap();
    publisher.publish_copy(&1).unwrap();
    let _ = node.client::<u64, u64>("nobody").unwrap().call(&1, Duration::ZERO);
    let client = node.client("nobody").unwrap();
    let last = Publishes(node.topic("count").publisher().unwrap());
    FIRST.with(|first| first.borrow_mut().push(Box::new(last)));
    (callback, publisher, subscriber, client, node, folder)
}

fn threads() {
    leaves_nothing(|| {
        std::thread::spawn(|| KEPT.with(|it| *it.borrow_mut() = Some(kept()))).join().unwrap();
    });
}

/// All objects that a process still has when it returns from `main` or calls `exit` end with it.
#[test]
fn statics_end_with_the_process() {
    for role in ["returns", "exits", "exits_in_a_callback"] {
        alone(role);
    }
}

static OF_PROCESS: OnceLock<Mutex<Kept>> = OnceLock::new();

fn returns() {
    OF_PROCESS.get_or_init(|| Mutex::new(kept()));
    KEPT.with(|it| *it.borrow_mut() = Some(kept()));
    // A destructor of C, after all destructors of Rust.
    extern "C" fn at_exit() {
        if let Some(Ok(mut kept)) = OF_PROCESS.get().map(Mutex::lock) {
            let _ = kept.1.publish_copy(&5);
            let _ = kept.2.take();
        }
    }
    // SAFETY: a function that does not unwind.
    assert_eq!(unsafe { libc::atexit(at_exit) }, 0);
}

fn exits() {
    returns();
    std::process::exit(0);
}

fn exits_in_a_callback() {
    let (_folder, node) = support::node();
    let publisher = node.topic::<u64>("count").publisher().unwrap();
    let subscriber = node.topic::<u64>("count").subscriber().unwrap();
    let _callback = subscriber.on_sample(|_| std::process::exit(0)).unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&1).unwrap();
    std::thread::sleep(WATCHDOG);
    panic!("the process has not ended");
}

/// Runs in a process of its own: resources that other tests open are not counted, and a hanging
/// process is ended.
fn alone(role: &str) {
    let mut command = itself::itself();
    command.args(["--exact", "the_other_side", "--nocapture"]).env(ROLE, role);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > 2 * WATCHDOG {
            child.kill().unwrap();
            panic!("{role} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{role}: {status}");
}

#[test]
fn the_other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.as_str() {
        "orders" => orders(),
        "own_callbacks" => own_callbacks(),
        "pending" => pending(),
        "threads" => threads(),
        "returns" => returns(),
        "exits" => exits(),
        "exits_in_a_callback" => exits_in_a_callback(),
        _ => panic!("{role}"),
    }
}

const ROLE: &str = "MYELIN_TEST_ROLE";
