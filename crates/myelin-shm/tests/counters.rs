//! What endpoints count is seen by other nodes: exactly, by cause, while the owner is stopped and after
//! it was killed, and never for another endpoint.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use myelin_shm::counters::MappedCounters;
use myelin_shm::node::{Counters, Node, NodeOptions};
use myelin_shm::record::Kind;
use myelin_shm::topic::{EndpointId, PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::waiting::wait::now_ns;

use discovery_support::{Helper, ROLE, WATCHDOG, until};

#[allow(dead_code, reason = "this file needs some of the roles")]
mod discovery_support;

fn topic(name: &str) -> Topic {
    Topic { name: name.into(), type_name: "T".into(), type_hash: 1 }
}

fn node(folder: &Path) -> Node {
    let runtime_dir = Some(folder.to_owned());
    Node::open(NodeOptions { runtime_dir, ..NodeOptions::default() }).unwrap()
}

/// What a node can read of an endpoint without asking.
fn counters(node: &Node, endpoint: EndpointId) -> Counters {
    let graph = node.graph().unwrap();
    graph.endpoints.iter().find(|it| it.id == endpoint).unwrap().counters.unwrap()
}

#[test]
fn others_see_what_endpoints_count_and_losses_by_cause() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (node(folder.path()), node(folder.path()));
    let qos = PublisherQos { timestamps: true, ..PublisherQos::default() };
    let mut camera = ours.publisher(topic("camera"), qos).unwrap();
    let mut viewer = ours.subscriber(topic("camera"), SubscriberQos::default()).unwrap();
    let reliability = Reliability::Reliable;
    let block_max = Duration::from_millis(1);
    let qos = PublisherQos { depth: 4, reliability, block_max, ..PublisherQos::default() };
    let mut joints = ours.publisher(topic("joints"), qos).unwrap();
    let qos = SubscriberQos { reliability, ..SubscriberQos::default() };
    let mut control = ours.subscriber(topic("joints"), qos).unwrap();
    until("the peer's endpoints", || other.graph().unwrap().endpoints.len() == 4);
    assert!(other.graph().unwrap().endpoints.iter().all(|it| it.counters.is_none()));
    other.graph_within(WATCHDOG).unwrap();

    let begin_ns = now_ns();
    (0..20).for_each(|_| _ = camera.writer.publish_copy(&[1; 1000]).unwrap());
    (0..10).for_each(|_| _ = joints.writer.publish_copy(&[1; 24]).unwrap());
    let Counters::Publisher { published: 20, published_bytes: 20_000, last_published_ns, .. } =
        counters(&other, camera.id())
    else {
        panic!("{:?}", counters(&other, camera.id()))
    };
    assert!((begin_ns..=now_ns()).contains(&last_published_ns));
    let mut held: Vec<_> = std::iter::from_fn(|| viewer.reader.take().unwrap()).collect();
    held.truncate(2);
    let took = counters(&other, viewer.id());
    let Counters::Subscriber { taken: 8, lost: 12, lost_overwritten: 12, held: 2, .. } = took
    else {
        panic!("{took:?}")
    };
    let Counters::Subscriber { last_taken_ns, lateness, .. } = took else { unreachable!() };
    assert_eq!(last_taken_ns, last_published_ns);
    assert!(lateness.measured() > 0 && lateness.max_ns <= now_ns() - begin_ns);
    while control.reader.take().unwrap().is_some() {}
    let took = counters(&other, control.id());
    let Counters::Subscriber { taken: 4, lost: 6, lost_passed_over: 6, held: 0, .. } = took else {
        panic!("{took:?}")
    };
    drop(held);
    assert!(matches!(counters(&other, viewer.id()), Counters::Subscriber { held: 0, .. }));
    assert_eq!(counters(&other, viewer.id()), counters(&ours, viewer.id()));
}

#[test]
fn the_counters_of_a_stopped_process_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let helper = Helper::start("subscriber", folder.path());
    helper.expect("open");
    let (ours, other) = (node(folder.path()), node(folder.path()));
    let mut publisher = ours.publisher(topic("t"), PublisherQos::default()).unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for length in 1..=3 {
        publisher.writer.publish_copy(&vec![1; length]).unwrap();
        helper.expect(&format!("took {length}"));
    }
    let graph = other.graph_within(WATCHDOG).unwrap();
    let its = graph.endpoints.iter().find(|it| !it.is_publisher).unwrap();
    helper.signal(libc::SIGSTOP);
    (0..20).for_each(|_| _ = publisher.writer.publish_copy(&[1]).unwrap());
    let late = node(folder.path());
    for _ in 0..2 {
        let graph = other.graph_within(Duration::from_millis(20)).unwrap();
        assert!(graph.silent.contains(&its.node));
        assert!(matches!(counters(&other, its.id), Counters::Subscriber { taken: 3, lost: 0, .. }));
        let of_publisher = counters(&other, publisher.id());
        assert!(matches!(of_publisher, Counters::Publisher { published: 23, .. }));
        // A node that has never had an answer has no memory of it.
        let graph = late.graph_within(Duration::from_millis(20)).unwrap();
        assert!(graph.endpoints.iter().all(|it| it.node != its.node || it.counters.is_none()));
    }
    helper.signal(libc::SIGCONT);
    until("its losses", || {
        matches!(counters(&other, its.id), Counters::Subscriber { lost_overwritten: 12, .. })
    });
    until("the memory", || {
        let graph = late.graph_within(WATCHDOG).unwrap();
        graph.endpoints.iter().all(|it| it.counters.is_some())
    });
    helper.stop();
}

/// Segments of a process with this name.
fn segments_of(pid: u32, name: &str) -> Vec<OwnedFd> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|it| it.unwrap().path());
    let has_name = |path: &std::path::PathBuf| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with(name))
    };
    all.filter(has_name).map(|path| File::open(path).unwrap().into()).collect()
}

#[test]
fn mapped_counters_can_be_read_after_their_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let ours = node(folder.path());
    let mut helper = Helper::start("both", folder.path());
    helper.expect("open");
    until("its endpoints", || ours.graph().unwrap().endpoints.len() == 2);
    let graph = ours.graph().unwrap();
    let map = |kind, name| {
        let its = graph.endpoints.iter().find(|it| it.is_publisher == (kind == Kind::Publisher));
        let [fd] = segments_of(helper.pid(), name).try_into().expect("it has one");
        MappedCounters::map(its.unwrap().id, kind, fd).unwrap()
    };
    let publisher = map(Kind::Publisher, "/memfd:myelin-publication");
    let subscriber = map(Kind::Subscriber, "/memfd:myelin-subscription");
    until("samples", || matches!(subscriber.read(), Counters::Subscriber { taken: 10.., .. }));
    helper.signal(libc::SIGSTOP);
    let last = (publisher.read(), subscriber.read());
    helper.kill();
    assert_eq!((publisher.read(), subscriber.read()), last);
    until("its end", || ours.graph().unwrap().endpoints.is_empty());
    assert_eq!((publisher.read(), subscriber.read()), last);
}

/// Each pair has a number, by which its topic is named, and payloads of a length that no pair near it
/// has.
#[test]
fn counts_of_endpoints_that_come_and_go_are_never_those_of_others() {
    const PAIRS: u64 = 1_000;
    const AT_ONCE: usize = 60;
    let length = |number: u64| 1 + (number * 7_919) % 997;
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (node(folder.path()), node(folder.path()));
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut seen = std::collections::BTreeSet::new();
            while !is_over.load(Ordering::Relaxed) {
                for endpoint in other.graph_within(WATCHDOG).unwrap().endpoints {
                    let number: u64 = endpoint.topic.parse().unwrap();
                    match endpoint.counters {
                        None => continue, // it is newer than the answer
                        Some(Counters::Publisher { published, published_bytes, .. }) => {
                            let is_whole = published_bytes.is_multiple_of(length(number));
                            assert!(is_whole && endpoint.is_publisher, "{endpoint:?}");
                            assert!(published <= 1 + number % 3, "{endpoint:?}");
                            assert!(published_bytes <= (1 + number % 3) * length(number));
                        }
                        Some(Counters::Subscriber { taken, lost, .. }) => {
                            assert!(!endpoint.is_publisher && lost == 0, "{endpoint:?}");
                            assert!(taken <= 1 + number % 3, "{endpoint:?}");
                        }
                    }
                    seen.insert(endpoint.id);
                }
            }
            seen.len()
        });
        // The other thread ends with this one, also if that panics.
        let end = OnDrop(|| is_over.store(true, Ordering::Relaxed));
        let mut pairs = VecDeque::new();
        for number in 0..PAIRS {
            let name = number.to_string();
            let mut publisher = ours.publisher(topic(&name), PublisherQos::default()).unwrap();
            let mut subscriber = ours.subscriber(topic(&name), SubscriberQos::default()).unwrap();
            for _ in 0..=number % 3 {
                let payload = vec![1; length(number) as usize];
                publisher.writer.publish_copy(&payload).unwrap();
                assert!(subscriber.reader.take().unwrap().is_some());
            }
            pairs.push_back((publisher, subscriber));
            if pairs.len() > AT_ONCE {
                pairs.pop_front();
            }
        }
        // Everything that is there now is seen, and with its last counts.
        let graph = other.graph_within(WATCHDOG).unwrap();
        let known = graph.endpoints.iter().filter(|it| it.counters.is_some()).count();
        assert_eq!(known, 2 * pairs.len());
        for (publisher, _) in &pairs {
            let its = graph.endpoints.iter().find(|it| it.id == publisher.id()).unwrap();
            let number: u64 = its.topic.parse().unwrap();
            let expected = 1 + number % 3;
            let Some(Counters::Publisher { published, .. }) = its.counters else { panic!() };
            assert_eq!(published, expected);
        }
        drop(end);
        looking.join().unwrap()
    });
    assert!(seen > 2 * AT_ONCE, "{seen}");
    until("their end", || other.graph().unwrap().endpoints.is_empty());
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Not a test of its own: the other processes' code.
#[test]
fn helper() {
    if let Some(role) = std::env::var_os(ROLE) {
        discovery_support::play(role.to_str().unwrap(), topic("t"));
    }
}
