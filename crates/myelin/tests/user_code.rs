//! No lock of the library is held while user code runs, wherever the library calls it ([`PLACES`]):
//! user code may call anything of the library, and its panic ends nothing.

mod support;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Wake};
use std::thread;
use std::time::Duration;

use futures_core::Stream;
use myelin::{Callback, Error, Node, Sample, SharedPublisher, Topic};
use support::{WATCHDOG, node, until};

/// Whether it ends before the watchdog does. A thread that hangs is left behind.
fn ends(what: &str, run: impl FnOnce() + Send + 'static) {
    let (to, from) = mpsc::channel();
    let thread = thread::spawn(move || {
        run();
        to.send(()).unwrap();
    });
    match from.recv_timeout(WATCHDOG) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what} hangs"),
        _ => thread.join().unwrap(),
    }
}

/// A shared publisher of the topic, and a callback of it.
fn shared(
    topic: &Topic<[u8]>,
    call: impl FnMut(&Sample<[u8]>) + Send + 'static,
) -> (SharedPublisher<[u8]>, Callback) {
    let publisher = topic.publisher().unwrap().shared();
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    (publisher, subscriber.on_sample(call).unwrap())
}

/// Two threads publish `bytes` bytes, each to a topic whose function publishes to the other's.
fn cross(bytes: usize) {
    const ROUNDS: u64 = 20;
    let (_folder, node) = node();
    let publishers: [Arc<OnceLock<SharedPublisher<[u8]>>>; 2] = Default::default();
    // Waits until both functions run, at the first call.
    let both = Arc::new(Barrier::new(2));
    let topics = ["a", "b"].map(|name| node.topic::<[u8]>(name).depth(64));
    let mut callbacks = Vec::new();
    for (at, topic) in topics.iter().enumerate() {
        let (other, both) = (publishers[1 - at].clone(), both.clone());
        let mut is_first = true;
        let (publisher, callback) = shared(topic, move |sample| {
            if sample[0] == 1 {
                return;
            }
            if std::mem::take(&mut is_first) {
                both.wait();
            }
            let mut loan = other.get().unwrap().loan(bytes).unwrap();
            loan.fill(1);
            loan.publish().unwrap();
            other.get().unwrap().publish_copy(&[1]).unwrap();
            drop(other.get().unwrap().loan(1_000).unwrap());
        });
        publishers[at].set(publisher).unwrap();
        callbacks.push(callback);
    }
    thread::scope(|scope| {
        for publisher in &publishers {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    publisher.get().unwrap().publish_copy(&vec![0; bytes]).unwrap();
                }
            });
        }
    });
    until("all calls", || callbacks.iter().all(|callback| callback.calls() == 3 * ROUNDS));
    let ended =
        callbacks.iter().all(|it| it.panics() == 0 && it.lost() == 0 && it.error().is_none());
    assert!(ended);
}

#[test]
fn threads_that_publish_on_each_others_topics_do_not_wait_for_each_other() {
    ends("crossing in the ring", || cross(8));
    ends("crossing in slots", || cross(1_000));
}

#[test]
fn a_callback_may_use_the_shared_publisher_that_runs_it() {
    ends("a publisher in its own callback", || {
        let (_folder, node) = node();
        let its: Arc<OnceLock<SharedPublisher<[u8]>>> = Arc::default();
        let (to, from) = mpsc::channel();
        let of_callback = its.clone();
        let (publisher, callback) = shared(&node.topic("count"), move |sample| {
            let publisher = of_callback.get().unwrap();
            to.send(sample.to_vec()).unwrap();
            if sample.len() < 1_000 {
                publisher.publish_copy(&vec![sample[0] + 1; sample.len() * 10]).unwrap();
                drop(publisher.loan(500).unwrap());
                publisher.reserve(2, 500).unwrap();
                publisher.assert_liveliness().unwrap();
            }
        });
        its.set(publisher.clone()).unwrap();
        assert_eq!(publisher.publish_copy(&[0]).unwrap().sequence, 0);
        for count in 0..4 {
            let sample = from.recv_timeout(WATCHDOG).unwrap();
            assert_eq!(sample, vec![count; 10_usize.pow(u32::from(count))], "in order");
        }
        until("the calls to end", || callback.calls() == 4);
        assert_eq!((callback.panics(), callback.lost()), (0, 0));
        drop(callback);
        drop(its);
    });
}

#[test]
fn samples_of_threads_that_share_a_publisher_come_in_order_and_once() {
    const SAMPLES: u64 = 500;
    let (_folder, node) = node();
    let (next, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (its_next, its_wrong) = (next.clone(), wrong.clone());
    let topic = node.topic("count").depth(16).reliable(WATCHDOG);
    let (publisher, callback) = shared(&topic, move |sample| {
        let expected = its_next.fetch_add(1, Ordering::Relaxed);
        its_wrong.fetch_add(u64::from(sample.sequence() != expected), Ordering::Relaxed);
    });
    thread::scope(|scope| {
        for length in [8, 100, 200, 10_000] {
            let publisher = publisher.clone();
            scope.spawn(move || {
                (0..SAMPLES).for_each(|_| _ = publisher.publish_copy(&vec![0; length]).unwrap());
            });
        }
    });
    until("all calls", || callback.calls() == 4 * SAMPLES);
    assert_eq!((wrong.load(Ordering::Relaxed), callback.lost()), (0, 0));
}

#[test]
fn a_publish_that_waits_for_a_subscriber_leaves_the_others_their_publisher() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("slow").depth(1).reliable(WATCHDOG);
    let publisher = topic.publisher().unwrap().shared();
    let mut subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&[0]).unwrap();
    let waiting: Vec<_> = (1..3)
        .map(|count| {
            let publisher = publisher.clone();
            thread::spawn(move || publisher.publish_copy(&[count]).map(|it| it.sequence))
        })
        .collect();
    ends("a call beside a publish that waits", move || {
        let take = |subscriber: &mut myelin::Subscriber<[u8]>| {
            let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
            drop(sample);
        };
        // Other calls, whether the two wait already or not.
        for _ in 0..20 {
            drop(publisher.loan(1_000).unwrap());
            publisher.assert_liveliness().unwrap();
            assert_eq!(publisher.matched(), 1);
            thread::sleep(Duration::from_millis(1));
        }
        assert!(waiting.iter().all(|thread| !thread.is_finished()), "the ring is full");
        (0..3).for_each(|_| take(&mut subscriber));
        let mut published: Vec<_> =
            waiting.into_iter().map(|it| it.join().unwrap().unwrap()).collect();
        published.sort_unstable();
        assert_eq!(published, [1, 2]);
    });
}

#[test]
fn a_publish_that_has_waited_too_long_gives_its_loan_back() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("slow").depth(1).reliable_or_fail(Duration::from_millis(1));
    let publisher = topic.publisher_builder().loans_max(1).open().unwrap().shared();
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&[0]).unwrap();
    for _ in 0..3 {
        let outcome = publisher.loan(1_000).unwrap().publish();
        assert!(matches!(outcome, Err(Error::ReliableTimeout { .. })), "{outcome:?}");
    }
    drop(subscriber);
    publisher.loan(1_000).unwrap().publish().unwrap();
}

/// For a publisher that is not shared: its callback may drop a loan of it.
#[test]
fn a_loan_that_is_dropped_in_its_publishers_callback_is_not_lost() {
    use std::cell::RefCell;
    thread_local! {
        static LOAN: RefCell<Option<myelin::Loan<'static, [u8]>>> = const { RefCell::new(None) };
    }
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image");
    let publisher = topic.publisher_builder().loans_max(1).open().unwrap();
    let publisher: &'static myelin::Publisher<[u8]> = Box::leak(Box::new(publisher));
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let callback = subscriber.on_sample(|_| LOAN.with(|loan| drop(loan.take()))).unwrap();
    for count in 0..3 {
        LOAN.set(Some(publisher.loan(1_000).expect("the one loan is free")));
        publisher.publish_copy(&[count]).unwrap();
        assert!(LOAN.with(|loan| loan.borrow().is_none()), "the callback ran in the publish");
    }
    drop(callback);
}

/// A function of the user's.
type Call = Arc<dyn Fn() + Send + Sync>;

/// The object that a function is set with is kept until its calls have been counted.
type Kept = Box<dyn Any + Send>;

/// Sets a function somewhere, and causes a call of it.
type Place = fn(&Node, Call) -> Kept;

/// All places where the library calls user code.
const PLACES: &[(&str, Place)] = &[
    ("on_sample, in the publish", in_publish),
    ("on_sample, in the publish of a shared publisher", in_shared_publish),
    ("on_sample, in the callback's thread", in_callback_thread),
    ("on_sample_concurrent", in_concurrent_callback),
    ("the end of an on_sample function", end_of_callback),
    ("the end of an on_sample_concurrent function", end_of_concurrent_callback),
    ("an executor's on_sample", in_executor),
    ("an executor's on_timer", in_timer),
    ("on_request, in the client's call", in_request),
    ("on_event of a publisher", on_event_of_publisher),
    ("on_event of a subscriber", on_event_of_subscriber),
    ("the end of an on_event function", end_of_on_event),
    ("on_graph_change", on_graph_change),
    ("the end of an on_graph_change function", end_of_on_graph_change),
    ("Waker::wake", waker),
];

fn in_publish(node: &Node, call: Call) -> Kept {
    let (publisher, subscriber) = support::ends(&node.topic::<u64>("main"));
    let callback = subscriber.on_sample(move |_| call()).unwrap();
    publisher.publish_copy(&1).unwrap();
    Box::new(callback)
}

fn in_shared_publish(node: &Node, call: Call) -> Kept {
    let (publisher, callback) = shared(&node.topic("main"), move |_| call());
    publisher.publish_copy(&[1]).unwrap();
    Box::new(callback)
}

fn in_callback_thread(node: &Node, call: Call) -> Kept {
    let topic = node.topic::<u64>("main").transient_local(1);
    let publisher = topic.publisher().unwrap();
    publisher.publish_copy(&1).unwrap();
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    Box::new((subscriber.on_sample(move |_| call()).unwrap(), publisher))
}

fn in_concurrent_callback(node: &Node, call: Call) -> Kept {
    let (publisher, subscriber) = support::ends(&node.topic::<u64>("main"));
    let callback = subscriber.on_sample_concurrent(move |_| call()).unwrap();
    publisher.publish_copy(&1).unwrap();
    Box::new(callback)
}

/// Calls when it is dropped.
struct AtEnd(Call);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0();
    }
}

fn end_of_callback(node: &Node, call: Call) -> Kept {
    let (publisher, subscriber) = support::ends(&node.topic::<u64>("main"));
    let at_end = AtEnd(call);
    drop(subscriber.on_sample(move |_| _ = &at_end).unwrap());
    Box::new(publisher)
}

fn end_of_concurrent_callback(node: &Node, call: Call) -> Kept {
    let (publisher, subscriber) = support::ends(&node.topic::<u64>("main"));
    let publisher = publisher.shared();
    let at_end = AtEnd(call);
    let callback = subscriber.on_sample_concurrent(move |_| _ = &at_end).unwrap();
    publisher.publish_copy(&1).unwrap();
    drop(callback);
    Box::new(publisher)
}

fn in_executor(node: &Node, call: Call) -> Kept {
    let (publisher, subscriber) = support::ends(&node.topic::<u64>("main"));
    let mut executor = node.executor().unwrap();
    executor.on_sample(subscriber, move |_| call()).unwrap();
    publisher.publish_copy(&1).unwrap();
    let _ = catch_unwind(AssertUnwindSafe(|| executor.turn(WATCHDOG).unwrap()));
    Box::new(executor)
}

fn in_timer(node: &Node, call: Call) -> Kept {
    let mut executor = node.executor().unwrap();
    executor.on_timer(Duration::from_millis(1), move || call()).unwrap();
    let _ = catch_unwind(AssertUnwindSafe(|| executor.turn(WATCHDOG).unwrap()));
    Box::new(executor)
}

fn in_request(node: &Node, call: Call) -> Kept {
    let service = node.service::<u64, u64>("ask").unwrap();
    let serving = service.on_request(move |request| {
        let answer = *request;
        call();
        request.reply(&answer).unwrap();
    });
    let client = node.client::<u64, u64>("ask").unwrap();
    assert!(client.wait_for_service(WATCHDOG).unwrap());
    let _ = client.call(&1, WATCHDOG);
    Box::new((serving.unwrap(), client))
}

fn on_event_of_publisher(node: &Node, call: Call) -> Kept {
    let topic = node.topic::<u64>("main");
    let publisher = topic.publisher().unwrap();
    publisher.on_event(move || call()).unwrap();
    Box::new((topic.subscriber().unwrap(), publisher))
}

fn on_event_of_subscriber(node: &Node, call: Call) -> Kept {
    let topic = node.topic::<u64>("main");
    let subscriber = topic.subscriber().unwrap();
    subscriber.on_event(move || call()).unwrap();
    Box::new((topic.publisher().unwrap(), subscriber))
}

fn end_of_on_event(node: &Node, call: Call) -> Kept {
    let publisher = node.topic::<u64>("main").publisher().unwrap();
    let at_end = AtEnd(call);
    publisher.on_event(move || _ = &at_end).unwrap();
    drop(publisher);
    Box::new(())
}

fn on_graph_change(node: &Node, call: Call) -> Kept {
    node.on_graph_change(move || call()).unwrap();
    Box::new(node.topic::<u64>("main").publisher().unwrap())
}

fn end_of_on_graph_change(node: &Node, call: Call) -> Kept {
    let at_end = AtEnd(call);
    node.on_graph_change(move || _ = &at_end).unwrap();
    node.on_graph_change(|| ()).unwrap();
    Box::new(())
}

struct Waking(Call);

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.0();
    }
}

fn waker(node: &Node, call: Call) -> Kept {
    let (publisher, subscriber) = support::ends(&node.topic::<u64>("main"));
    let mut stream = subscriber.into_stream().unwrap();
    let waker = Arc::new(Waking(call)).into();
    let mut context = Context::from_waker(&waker);
    // Samples of the other side may be there already.
    while let Poll::Ready(sample) = pin!(&mut stream).poll_next(&mut context) {
        drop(sample.unwrap().unwrap());
    }
    publisher.publish_copy(&1).unwrap();
    Box::new((stream, publisher))
}

/// One side of two that run the same code at the same time.
struct Side {
    node: Node,
    publisher: SharedPublisher<[u8]>,
    _callback: Callback,
}

impl Side {
    fn new(node: &Node) -> Side {
        let (publisher, _callback) = shared(&node.topic("side"), |_| ());
        Side { node: node.clone(), publisher, _callback }
    }

    /// Calls of the library that lock something, with endpoints that are made and dropped.
    fn use_library(&self) {
        self.publisher.publish_copy(&[1]).unwrap();
        self.publisher.loan(1_000).unwrap().publish().unwrap();
        assert!(self.publisher.matched() > 0);
        self.publisher.events();
        self.node.graph().unwrap();
        self.node.graph_within(WATCHDOG).unwrap();
        let (publisher, subscriber) = support::ends(&self.node.topic::<u64>("other"));
        let callback = subscriber.on_sample(|_| ()).unwrap();
        publisher.on_event(|| ()).unwrap();
        publisher.publish_copy(&1).unwrap();
        drop(callback);
        drop(publisher);
        self.node.on_graph_change(|| ()).unwrap();
    }
}

#[test]
fn user_code_may_call_the_library_from_any_callback() {
    for (name, place) in PLACES {
        ends(name, move || {
            let folder = tempfile::tempdir().unwrap();
            let open = |name| Node::builder(name).runtime_dir(folder.path()).open().unwrap();
            let nodes = ["one", "two"].map(open);
            let sides = Arc::new(nodes.each_ref().map(Side::new));
            // How many functions run, so that the first calls cross.
            let running = Arc::new((Mutex::new(0), Condvar::new()));
            let kept: Vec<_> = nodes
                .clone()
                .map(|node| {
                    let (sides, running) = (sides.clone(), running.clone());
                    let calls = Arc::new(AtomicU64::new(0));
                    let count = calls.clone();
                    let call = move || {
                        // Its own actions may call it again, and so on.
                        if count.load(Ordering::Relaxed) < 2 {
                            *running.0.lock().unwrap() += 1;
                            running.1.notify_all();
                            let both = running.0.lock().unwrap();
                            let limit = Duration::from_millis(100);
                            drop(running.1.wait_timeout_while(both, limit, |count| *count < 2));
                            sides.iter().for_each(Side::use_library);
                        }
                        count.fetch_add(1, Ordering::Relaxed);
                    };
                    let call: Call = Arc::new(call);
                    (thread::spawn(move || place(&node, call)), calls)
                })
                .into();
            let kept: Vec<_> =
                kept.into_iter().map(|(it, calls)| (it.join().unwrap(), calls)).collect();
            until("both calls", || kept.iter().all(|(_, calls)| calls.load(Ordering::Relaxed) > 0));
        });
    }
}

#[test]
fn a_panic_in_user_code_is_contained() {
    // Not for drops of a function itself: there a panic ends the program, in any Rust program.
    for (name, place) in PLACES.iter().filter(|(name, _)| !name.starts_with("the end")) {
        ends(name, move || {
            let (_folder, node) = node();
            let calls = Arc::new(AtomicU64::new(0));
            let count = calls.clone();
            let call: Call = Arc::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
                // The message of `panic!` would look like this test's failure.
                std::panic::resume_unwind(Box::new("odd"));
            });
            let kept = place(&node, call.clone());
            until("the call", || calls.load(Ordering::Relaxed) > 0);
            // Discovery and calls go on: another node, and the same again.
            drop(kept);
            let (publisher, mut subscriber) = support::ends(&node.topic::<u64>("later"));
            publisher.publish_copy(&7).unwrap();
            assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 7);
            let before = calls.load(Ordering::Relaxed);
            let _kept = place(&node, call);
            until("the next call", || calls.load(Ordering::Relaxed) > before);
        });
    }
}

#[test]
fn a_replaced_function_is_not_running_when_the_call_returns() {
    ends("replacing a function of events", || {
        let (_folder, node) = node();
        let topic = node.topic::<u64>("main");
        let (to, from) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let goes_on = Mutex::new(goes_on);
        let has_returned = Arc::new(AtomicU64::new(0));
        let its = has_returned.clone();
        let publisher = topic.publisher().unwrap();
        let call = move || {
            to.send(()).unwrap();
            goes_on.lock().unwrap().recv().unwrap();
            its.fetch_add(1, Ordering::Relaxed);
        };
        publisher.on_event(call).unwrap();
        let _subscriber = topic.subscriber().unwrap();
        from.recv_timeout(WATCHDOG).unwrap();
        let going_on = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20)); // so that the drop is likely to wait
            go_on.send(()).unwrap();
        });
        drop(publisher);
        assert_eq!(has_returned.load(Ordering::Relaxed), 1);
        going_on.join().unwrap();

        // From inside: it replaces itself, and drops the object that it belongs to.
        let publisher = Arc::new(Mutex::new(Some(topic.publisher().unwrap())));
        let (its, its_node, (to, from)) = (publisher.clone(), node.clone(), mpsc::channel());
        let call = move || {
            its_node.on_graph_change(|| ()).unwrap();
            let publisher = its.lock().unwrap().take();
            publisher.unwrap().on_event(|| ()).unwrap();
            to.send(()).unwrap();
        };
        let set = publisher.lock().unwrap().as_ref().unwrap().on_event(call);
        set.unwrap();
        from.recv_timeout(WATCHDOG).unwrap();
        let its = node.clone();
        let (to, from) = mpsc::channel();
        node.on_graph_change(move || {
            its.on_graph_change(|| ()).unwrap();
            to.send(()).unwrap();
        })
        .unwrap();
        drop(topic.publisher().unwrap());
        from.recv_timeout(WATCHDOG).unwrap();
    });
}

/// A function of a callback's own events ends that callback.
#[test]
fn an_event_function_may_drop_its_own_callback() {
    ends("a callback that its own event ends", || {
        let (_folder, node) = node();
        let topic = node.topic::<u64>("main");
        let callback: Arc<Mutex<Option<Callback>>> = Arc::default();
        let (its, (to, from)) = (callback.clone(), mpsc::channel());
        let subscriber = topic.subscriber().unwrap();
        let call = move || {
            if let Some(callback) = its.lock().unwrap().take() {
                drop(callback);
                to.send(()).unwrap();
            }
        };
        subscriber.on_event(call).unwrap();
        *callback.lock().unwrap() = Some(subscriber.on_sample(|_| ()).unwrap());
        let _publisher = topic.publisher().unwrap();
        from.recv_timeout(WATCHDOG).unwrap();
    });
}

/// While one function of a topic runs in a publish, the callbacks of others end; the function may
/// wait for the thread that ends them.
#[test]
fn a_callback_ends_while_another_one_of_its_topic_runs() {
    ends("ending a callback beside another one", || {
        let (_folder, node) = node();
        let topic = node.topic::<u64>("main");
        let publisher = topic.publisher().unwrap();
        let other: Arc<Mutex<Option<Callback>>> = Arc::default();
        let its = other.clone();
        let subscribers = [topic.subscriber().unwrap(), topic.subscriber().unwrap()];
        assert!(publisher.wait_for_match(2, WATCHDOG));
        let [first, second] = subscribers;
        let first = first.on_sample(move |_| {
            let other = its.lock().unwrap().take();
            thread::spawn(move || drop(other)).join().unwrap();
        });
        let calls = Arc::new(AtomicU64::new(0));
        let its = calls.clone();
        let count = move |_: &Sample<u64>| _ = its.fetch_add(1, Ordering::Relaxed);
        *other.lock().unwrap() = Some(second.on_sample(count).unwrap());
        for count in 0..10 {
            publisher.publish_copy(&count).unwrap();
        }
        assert_eq!(first.unwrap().panics(), 0);
        assert_eq!(calls.load(Ordering::Relaxed), 0, "it was ended before its turn");
        until("the end of the match", || publisher.matched() == 0);
    });
}
