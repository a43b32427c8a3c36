//! Nodes find each other, across processes, users and deaths. Each test has a folder of its own; the
//! other processes are this binary again, in the role of `helper`.
//!
//! Nothing is timed: conditions are waited for under a watchdog.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use myelin_shm::Error;
use myelin_shm::event::Event;
use myelin_shm::layout::VERSION;
use myelin_shm::leftovers;
use myelin_shm::node::{
    Counters, EndpointInfo, Graph, MatchInfo, MatchState, Node, NodeOptions, Publisher, Subscriber,
    TypeInfo,
};
use myelin_shm::record::Schema;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::waiting::wait::{NEVER, Wait};

use discovery_support::{
    ECHOES, ENDPOINTS, Helper, LastChange, NODES, ROLE, WATCHDOG, echo_topics, is_root, now_ns,
    number, until,
};

mod discovery_support;

fn topic() -> Topic {
    Topic { name: "image".into(), type_name: "Image".into(), type_hash: 1 }
}

fn node(folder: &Path) -> Node {
    Node::open(options(folder)).unwrap()
}

fn options(folder: &Path) -> NodeOptions {
    let folder = Some(folder.to_owned());
    NodeOptions { name: "test".into(), runtime_dir: folder, ..NodeOptions::default() }
}

fn publisher(node: &Node) -> Publisher {
    node.publisher(topic(), PublisherQos::default()).unwrap()
}

fn subscriber(node: &Node) -> Subscriber {
    node.subscriber(topic(), SubscriberQos::default()).unwrap()
}

/// A folder and what is in it.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn assert_empty(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Publishes until the subscriber has taken a sample of that length.
fn passes(publisher: &mut Publisher, subscriber: &mut Subscriber, length: usize) {
    let payload = vec![7; length];
    until("a sample", || {
        publisher.writer.publish_copy(&payload).unwrap();
        subscriber.reader.take().unwrap().is_some_and(|taken| taken.bytes() == payload)
    });
}

#[test]
fn endpoints_of_one_node_match() {
    let folder = folder();
    let node = node(folder.path());
    let mut publisher = publisher(&node);
    let mut subscriber = subscriber(&node);
    assert_eq!((publisher.matched(), subscriber.matched()), (1, 1), "at once: no thread is asked");
    for length in [8, 100_000, 1_000_000] {
        passes(&mut publisher, &mut subscriber, length);
    }
    let pid = std::process::id();
    assert_eq!(publisher.events(), [Event::Matched { endpoint: subscriber.id(), pid }]);
    let endpoint = publisher.id();
    drop(publisher);
    let gone = Event::Unmatched { endpoint, pid, died: false };
    assert_eq!(subscriber.events(), [Event::Matched { endpoint, pid }, gone]);
    drop((subscriber, node));
    assert_empty(folder.path());
}

#[test]
fn nodes_of_one_process_match() {
    let folder = folder();
    let (one, other) = (node(folder.path()), node(folder.path()));
    let mut subscriber = subscriber(&one);
    let mut publisher = publisher(&other);
    assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    for length in [8, 100_000, 1_000_000, 5_000_000] {
        passes(&mut publisher, &mut subscriber, length);
    }
    assert_eq!(one.peers().unwrap().len(), 1);
    let topics = other.topics().unwrap();
    assert_eq!((topics.len(), topics[0].publishers, topics[0].subscribers), (1, 1, 1));
    drop((subscriber, publisher, one, other));
    assert_empty(folder.path());
}

/// The node's thread maps new slot segments while others take; a publisher's end comes after them.
#[test]
fn all_samples_can_be_taken_after_the_event_of_the_publishers_end() {
    const SIZES: [usize; 5] = [8, 200, 10_000, 300_000, 3_000_000];
    let folder = folder();
    let (one, other) = (node(folder.path()), node(folder.path()));
    let mut subscriber = subscriber(&one);
    for _ in 0..20 {
        let mut publisher = publisher(&other);
        assert!(publisher.wait_for_match(1, WATCHDOG));
        for size in SIZES {
            publisher.writer.publish_copy(&vec![7; size]).unwrap();
        }
        drop(publisher);
        let has_ended = |event: &Event| matches!(event, Event::Unmatched { .. });
        until("its end", || subscriber.events().iter().any(has_ended));
        for size in SIZES {
            assert_eq!(subscriber.reader.take().unwrap().unwrap().bytes().len(), size);
        }
        assert!(!subscriber.reader.has_unread());
    }
}

/// The other side of each match has existed for long, so no match is waited for.
#[test]
fn the_first_samples_of_new_endpoints_arrive_in_both_directions() {
    let folder = folder();
    let helper = Helper::start("echo", folder.path());
    helper.expect("open");
    // By default 20 ms, in which a busy machine may not run the other process.
    let match_limit = Some(WATCHDOG);
    let node = Node::open(NodeOptions { match_limit, ..options(folder.path()) }).unwrap();
    let mut ends: Vec<_> = (0..=ECHOES)
        .map(|number| {
            let (request, answer) = echo_topics(number);
            let asking = || node.publisher(request.clone(), PublisherQos::default()).unwrap();
            // Either may come first.
            let early = number.is_multiple_of(2).then(asking);
            let answers = node.subscriber(answer, SubscriberQos::default()).unwrap();
            let mut requests = early.unwrap_or_else(asking);
            if number == ECHOES {
                assert!(
                    requests.wait_for_match(1, WATCHDOG) && answers.wait_for_match(1, WATCHDOG)
                );
            }
            requests.writer.publish_copy(&[number as u8]).unwrap();
            (answers, requests)
        })
        .collect();
    let mut takes = |number: usize| ends[number].0.reader.take().unwrap().is_some();
    until("the last answer", || takes(ECHOES));
    let lost = (0..ECHOES).filter(|number| !takes(*number)).count();
    assert_eq!(lost, 0, "of {ECHOES}");
    helper.stop();
}

/// Each creation reads once more what others have sent, after its own announcement.
#[test]
fn of_two_endpoints_made_at_the_same_time_one_waits_for_the_match() {
    let folder = folder();
    let match_limit = Some(WATCHDOG);
    let open = || Node::open(NodeOptions { match_limit, ..options(folder.path()) }).unwrap();
    let (one, other) = (open(), open());
    for round in 0..500 {
        let start = Barrier::new(2);
        let (publisher, subscriber) = std::thread::scope(|scope| {
            let publisher = scope.spawn(|| {
                start.wait();
                publisher(&one)
            });
            start.wait();
            let subscriber = subscriber(&other);
            (publisher.join().unwrap(), subscriber)
        });
        let is_known = publisher.matched() + subscriber.matched() > 0;
        assert!(is_known, "neither has waited for the other in round {round}");
    }
}

/// The creation waits for it once, for some milliseconds, until it has answered.
#[test]
fn a_process_that_is_stopped_holds_up_no_new_endpoint() {
    let folder = folder();
    let helper = Helper::start("subscriber", folder.path());
    helper.expect("open");
    let node = node(folder.path());
    assert_eq!(publisher(&node).matched(), 1);
    helper.signal(libc::SIGSTOP);
    let begin = Instant::now();
    drop((0..500).map(|_| publisher(&node)).collect::<Vec<_>>());
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(5), "each has waited: {took:?}");
    helper.signal(libc::SIGCONT);
    until("a publisher that is matched at once", || publisher(&node).matched() == 1);
    helper.stop();
}

#[test]
fn a_sample_outlives_its_subscriber_and_both_nodes_handles() {
    let folder = folder();
    let (one, other) = (node(folder.path()), node(folder.path()));
    let mut subscriber = subscriber(&one);
    let mut publisher = publisher(&other);
    assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    publisher.writer.publish_copy(&[1; 1000]).unwrap();
    let mut taken = None;
    until("the sample", || {
        taken = taken.take().or(subscriber.reader.take().unwrap());
        taken.is_some()
    });
    drop((subscriber, one));
    for _ in 0..100 {
        publisher.writer.publish_copy(&[2; 1000]).unwrap();
    }
    assert_eq!(taken.as_ref().unwrap().bytes(), [1; 1000]);
    assert_eq!(publisher.matched(), 1, "what is held is not reused");
    drop(taken);
    until("the subscriber to be forgotten", || publisher.matched() == 0);
    drop((publisher, other));
    assert_empty(folder.path());
}

#[test]
fn processes_match_in_either_start_order() {
    let folder = folder();
    let early = Helper::start("subscriber", folder.path());
    early.expect("open");
    let node = node(folder.path());
    let mut publisher = publisher(&node);
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let late = Helper::start("subscriber", folder.path());
    assert!(publisher.wait_for_match(2, WATCHDOG));
    let pids: Vec<u32> = publisher.events().iter().map(pid_matched).collect();
    assert_eq!(pids, [early.pid(), late.pid()]);
    for helper in [&early, &late] {
        helper.expect("matched");
        until("it to take", || {
            publisher.writer.publish_copy(&[3; 5000]).unwrap();
            helper.has_said("took 5000")
        });
    }
    early.stop();
    late.stop();
    until("them to leave", || publisher.matched() == 0);
    let events = publisher.events();
    assert!(events.iter().all(|event| matches!(event, Event::Unmatched { died: false, .. })));
    drop((publisher, node));
    assert_empty(folder.path());
}

fn pid_matched(event: &Event) -> u32 {
    match event {
        Event::Matched { pid, .. } => *pid,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_killed_process_is_reported_dead_and_its_socket_is_removed() {
    let folder = folder();
    let ours = node(folder.path());
    let mut subscriber = subscriber(&ours);
    let publisher = publisher(&ours);
    let mut helper = Helper::start("both", folder.path());
    assert!(subscriber.wait_for_match(2, WATCHDOG) && publisher.wait_for_match(2, WATCHDOG));
    let mut held = None;
    until("a sample of its", || {
        held = held.take().or(subscriber.reader.take().unwrap());
        held.is_some()
    });
    helper.kill();
    until("the ends", || publisher.matched() == 1 && subscriber.matched() == 1);
    let pid = helper.pid();
    let is_death = |event: &Event| matches!(event, Event::Unmatched { died: true, pid: its, .. } if *its == pid);
    assert!(publisher.events().iter().any(is_death) && subscriber.events().iter().any(is_death));
    assert_eq!(held.unwrap().bytes(), [9; 1000], "what is held outlives its publisher");
    let found = leftovers::scan(Some(folder.path())).unwrap();
    assert_eq!((found.live.len(), found.dead.len()), (1, 1));
    let next = node(folder.path());
    assert!(leftovers::scan(Some(folder.path())).unwrap().dead.is_empty());
    drop((publisher, subscriber, next, ours));
    assert_empty(folder.path());
}

#[test]
fn the_death_of_a_subscriber_ends_a_reliable_publishers_wait() {
    let folder = folder();
    let node = node(folder.path());
    let block_max = WATCHDOG;
    let qos = PublisherQos {
        reliability: Reliability::Reliable,
        depth: 2,
        block_max,
        ..PublisherQos::default()
    };
    let mut publisher = node.publisher(topic(), qos).unwrap();
    let mut helper = Helper::start("idle", folder.path());
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let publishing = std::thread::spawn(move || {
        for _ in 0..10 {
            publisher.writer.publish_copy(&[1]).unwrap();
        }
    });
    helper.kill();
    publishing.join().unwrap();
}

#[test]
fn endpoints_of_different_domains_do_not_match() {
    let folder = folder();
    let (zero, one) =
        (node(folder.path()), Node::open(NodeOptions { domain: 1, ..options(folder.path()) }));
    let one = one.unwrap();
    let (publisher, subscriber) = (publisher(&zero), subscriber(&one));
    let witness = node(folder.path());
    until("a node of its own domain", || zero.peers().unwrap().len() == 1);
    assert!(one.peers().unwrap().is_empty());
    assert_eq!((publisher.matched(), subscriber.matched()), (0, 0));
    drop((publisher, subscriber, zero, one, witness));
    assert_empty(folder.path());
}

#[test]
fn another_type_is_an_error_that_names_both_and_an_event_at_the_first() {
    let folder = folder();
    let helper = Helper::start("subscriber", folder.path());
    helper.expect("open");
    let node = node(folder.path());
    until("its endpoints", || !node.topics().unwrap().is_empty());
    let other = Topic { type_name: "Cloud".into(), type_hash: 2, ..topic() };
    let error = node.publisher(other.clone(), PublisherQos::default()).unwrap_err();
    assert!(matches!(error, Error::TypeMismatch { pid, .. } if pid == helper.pid()));
    let text = error.to_string();
    assert!(text.contains("Image") && text.contains("Cloud"), "{text}");
    // The same with a publisher of the first type and a subscriber of the second on one node.
    let first = publisher(&node);
    assert!(node.subscriber(other, SubscriberQos::default()).is_err());
    drop(first);
}

#[test]
fn two_types_at_the_same_time_raise_events_on_both_sides() {
    let folder = folder();
    // They make their endpoints before they know of each other's only by chance; so it is tried.
    until("a race that both lose", || {
        let (one, other) = (node(folder.path()), node(folder.path()));
        let cloud = Topic { type_name: "Cloud".into(), type_hash: 2, ..topic() };
        let made = std::thread::scope(|scope| {
            let there = scope.spawn(|| other.subscriber(cloud, SubscriberQos::default()));
            (one.publisher(topic(), PublisherQos::default()), there.join().unwrap())
        });
        let (Ok(publisher), Ok(subscriber)) = made else { return false };
        let is_told = |events: Vec<Event>| {
            events.iter().any(|event| matches!(event, Event::Incompatible { .. }))
        };
        let mut told = (false, false);
        until("both events", || {
            told = (told.0 || is_told(publisher.events()), told.1 || is_told(subscriber.events()));
            told == (true, true)
        });
        true
    });
}

#[test]
fn a_folder_open_to_others_is_refused() {
    let folder = folder();
    let own = folder.path().join(format!("myelin-{}", rustix::process::geteuid().as_raw()));
    std::fs::create_dir(&own).unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = Node::open(options(folder.path())).unwrap_err();
    assert!(error.to_string().contains("0755"), "{error}");
    if !is_root("a folder of another user") {
        return;
    }
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
    let error = Node::open(options(folder.path())).unwrap_err();
    assert!(matches!(error, Error::NoPermission { .. }));
    let says = |words: &str| error.to_string().contains(words);
    assert!(
        says("65534") && says("root") && says("MYELIN_RUNTIME_DIR"),
        "who, and the ways out: {error}"
    );
}

#[test]
fn a_full_folder_is_an_error_that_names_it() {
    if !is_root("a full file system") {
        return;
    }
    let folder = folder();
    for inodes in 1..=4 {
        // A mount of the helper's own, which ends with it.
        let script = format!(
            "mount -t tmpfs -o size=4k,nr_inodes={inodes} none {0} && exec \"$@\"",
            folder.path().display()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]);
        let helper = Helper::start_by(command, "idle", folder.path());
        match inodes {
            4 => helper.expect("open"),
            _ => helper.expect("error no space left in"),
        }
    }
}

#[test]
fn users_match_only_in_a_groups_domain() {
    if !is_root("two users") {
        return;
    }
    let folder = folder();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let group = 4_242;
    let ours = Node::open(NodeOptions { group: Some(group), ..options(folder.path()) }).unwrap();
    let alone = node(folder.path());
    let (mut shared, private) = (publisher(&ours), publisher(&alone));
    let member = Helper::start_as("subscriber", folder.path(), 65_534, group, Some(group));
    member.expect("matched");
    until("it to take", || {
        shared.writer.publish_copy(&[3; 5000]).unwrap();
        member.has_said("took 5000")
    });
    let apart = Helper::start_as("subscriber", folder.path(), 65_534, group, None);
    apart.expect("open");
    let outsider = Helper::start_as("subscriber", folder.path(), 65_534, 65_534, Some(group));
    outsider.expect("error no permission");
    apart.stop();
    member.stop();
    assert_eq!(private.matched(), 0);
    assert!(private.events().is_empty());
    drop((shared, private, ours, alone));
    assert_empty(folder.path());
}

#[test]
fn nodes_that_start_together_all_match_exactly_once() {
    let folder = folder();
    let helpers: Vec<_> = (0..20).map(|_| Helper::start("one_of_20", folder.path())).collect();
    helpers.iter().for_each(|helper| helper.expect("complete"));
    helpers.iter().for_each(Helper::stop);
    drop(helpers);
    assert_empty(folder.path());
}

#[test]
fn a_stopped_process_delays_no_other_and_matches_when_continued() {
    let folder = folder();
    let helper = Helper::start("subscriber", folder.path());
    helper.expect("open");
    helper.signal(libc::SIGSTOP);
    let node = node(folder.path());
    let publisher = publisher(&node);
    assert_eq!(publisher.matched(), 0);
    helper.signal(libc::SIGCONT);
    assert!(publisher.wait_for_match(1, WATCHDOG));
}

#[test]
fn a_forked_child_does_not_share_its_parents_node() {
    let folder = folder();
    let helper = Helper::start("forker", folder.path());
    helper.expect("child forked");
    let node = node(folder.path());
    let publisher = publisher(&node);
    assert!(publisher.wait_for_match(1, WATCHDOG));
    drop(helper); // kills the parent; the child lives on and must not keep the links open
    until("the end of the match", || publisher.matched() == 0);
}

#[test]
fn a_process_out_of_descriptors_continues_after_a_raised_limit() {
    let folder = folder();
    let poor = Helper::start("poor", folder.path());
    poor.expect("poor");
    let node = node(folder.path());
    let mut publisher = publisher(&node);
    poor.allow_files(3);
    assert!(publisher.wait_for_match(1, WATCHDOG));
    until("it to take", || {
        publisher.writer.publish_copy(&[3; 5000]).unwrap();
        poor.has_said("took 5000")
    });
}

#[test]
fn an_offer_that_lost_its_descriptors_is_declined_and_the_next_accepted() {
    let folder = folder();
    let poor = Helper::start("poor_when_linked", folder.path());
    poor.expect("open");
    let node = node(folder.path());
    poor.expect("poor");
    let first = publisher(&node);
    let mut reason = None;
    until("the refusal", || {
        reason = reason.take().or(first.events().into_iter().find_map(|event| match event {
            Event::Refused { reason, .. } => Some(reason),
            _ => None,
        }));
        reason.is_some()
    });
    let reason = reason.unwrap();
    assert!(reason.contains(" may have 3 (RLIMIT_NOFILE); raise it (ulimit -n"), "{reason}");
    poor.allow_files(3);
    assert!(first.wait_for_match(1, WATCHDOG) && publisher(&node).wait_for_match(1, WATCHDOG));
}

#[test]
fn missed_deadlines_and_their_end_are_reported() {
    let folder = folder();
    let node = node(folder.path());
    let limit = Some(Duration::from_millis(20));
    let qos = SubscriberQos { deadline: limit, liveliness: limit, ..SubscriberQos::default() };
    let mut publisher = publisher(&node);
    let subscriber = node.subscriber(topic(), qos).unwrap();
    let endpoint = publisher.id();
    let mut events = Vec::new();
    let mut has = |event: Event| {
        until("an event", || {
            events.extend(subscriber.events());
            events.contains(&event)
        });
    };
    has(Event::DeadlineMissed { endpoint });
    has(Event::LivelinessLost { endpoint });
    publisher.writer.assert_liveliness().unwrap();
    has(Event::LivelinessRegained { endpoint });
}

#[test]
fn invalid_messages_and_other_versions_end_only_the_link() {
    use std::io::Write;
    let folder = folder();
    let node = node(folder.path());
    let mut publisher = publisher(&node);
    let mut subscriber = subscriber(&node);
    for greeting in [&b"\xff nonsense"[..], b"\x01myelinH1\x63\0\0\0\0\0\0\0", b"\x02"] {
        let path = leftovers::scan(Some(folder.path())).unwrap().live[0].path.clone();
        let mut socket = discovery_support::seqpacket(&path);
        socket.write_all(greeting).unwrap();
        discovery_support::read_to_end(&mut socket);
    }
    let refused = node.refused().unwrap();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].pid, std::process::id());
    let both = format!("layout 99, this program {VERSION}");
    let names_both = |reason: &str| reason.contains(&both);
    assert!(names_both(&refused[0].reason), "{refused:?}");
    for events in [publisher.events(), subscriber.events()] {
        let is_told = |event: &Event| matches!(event, Event::Incompatible { reason, .. } if names_both(reason));
        assert!(events.iter().any(is_told), "{events:?}");
    }
    passes(&mut publisher, &mut subscriber, 1000);
}

/// A viewer has room for one publisher, and keeps the last image of a camera that is killed. The
/// next camera gets the room when the rest of the first one's images has been read.
#[test]
fn a_held_sample_does_not_block_the_next_publisher() {
    let folder = folder();
    let node = node(folder.path());
    let qos = SubscriberQos { publishers_max: 1, ..SubscriberQos::default() };
    let mut viewer = node.subscriber(topic(), qos).unwrap();
    let mut camera = Helper::start("both", folder.path());
    let mut image = None;
    until("an image", || {
        image = viewer.reader.take().unwrap().or(image.take());
        image.is_some()
    });
    camera.kill();
    until("the end of the match", || viewer.matched() == 0);
    let restarted = Helper::start("both", folder.path());
    restarted.expect("open");
    until("the refusal", || {
        viewer.events().iter().any(|event| {
            matches!(event, Event::Refused { reason, .. }
                if reason.contains("publishers_max") && reason.contains(&topic().name))
        })
    });
    assert_eq!(viewer.matched(), 0);
    let kept = image.unwrap();
    let mut next = None;
    until("the restarted camera's image", || {
        next = viewer.reader.take().unwrap();
        next.as_ref().is_some_and(|image| image.publisher != kept.publisher)
    });
    assert!(kept.bytes().len() == 1000 && kept.bytes().iter().all(|byte| *byte == 9));
    drop(next);
    assert_eq!(viewer.reader.shared().borrowed(), 1);
    drop(kept);
    assert_eq!(viewer.reader.shared().borrowed(), 0);
}

#[test]
fn a_publisher_over_the_limit_matches_when_another_leaves() {
    let folder = folder();
    let node = node(folder.path());
    let qos = SubscriberQos { publishers_max: 2, ..SubscriberQos::default() };
    let mut subscriber = node.subscriber(topic(), qos).unwrap();
    let [first, second, mut third] = [0; 3].map(|_| publisher(&node));
    let refused = |events: Vec<Event>| events.iter().any(|it| matches!(it, Event::Refused { .. }));
    until("the refusal", || refused(third.events()));
    assert_eq!(third.matched(), 0);
    drop(first);
    assert!(subscriber.reader.take().unwrap().is_none());
    assert!(third.wait_for_match(1, WATCHDOG));
    passes(&mut third, &mut subscriber, 500);
    drop(second);
}

#[test]
fn a_match_without_descriptors_is_made_when_there_are_some() {
    let folder = folder();
    let poor = Helper::start("short_for_a_while", folder.path());
    poor.expect("open");
    let node = node(folder.path());
    poor.expect("poor");
    let mut publisher = publisher(&node);
    poor.expect("relieved");
    assert!(publisher.wait_for_match(1, WATCHDOG));
    until("it to take", || {
        publisher.writer.publish_copy(&[3; 5000]).unwrap();
        poor.has_said("took 5000")
    });
}

#[test]
fn silence_ends_a_wait_and_makes_the_descriptor_readable() {
    let folder = folder();
    let node = node(folder.path());
    let deadline = Some(Duration::from_millis(20));
    let qos = SubscriberQos { deadline, descriptor: true, ..SubscriberQos::default() };
    let publisher = publisher(&node);
    let mut subscriber = node.subscriber(topic(), qos).unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let has = |events: &[Event], is: fn(&Event) -> bool| events.iter().any(is);
    // Without a limit; each silence ends one wait.
    assert!(!subscriber.reader.wait(Wait::Block, NEVER).unwrap());
    let events = subscriber.events();
    assert!(has(&events, |event| matches!(event, Event::DeadlineMissed { .. })), "{events:?}");
    assert!(subscriber.reader.take().unwrap().is_none());
    assert!(!is_readable(&subscriber));
    let events = std::thread::scope(|scope| {
        scope.spawn(|| drop(publisher));
        assert!(!subscriber.reader.wait(Wait::Adaptive, NEVER).unwrap());
        subscriber.events()
    });
    assert!(has(&events, |event| matches!(event, Event::Unmatched { .. })), "{events:?}");

    let mut next = self::publisher(&node);
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    until("silence, seen by the descriptor", || {
        next.writer.publish_copy(&[1]).unwrap();
        while subscriber.reader.take().unwrap().is_some() {}
        // On a busy machine the deadline may have passed by now: then once more.
        if !subscriber.events().is_empty() {
            return false;
        }
        until("the descriptor", || is_readable(&subscriber));
        assert!(subscriber.reader.take().unwrap().is_none(), "there is no sample, but an event");
        has(&subscriber.events(), |event| matches!(event, Event::DeadlineMissed { .. }))
    });
}

#[test]
fn unmet_requests_of_a_subscriber_are_reported() {
    let folder = folder();
    let node = node(folder.path());
    let publisher = publisher(&node);
    let reliability = Reliability::Reliable;
    let logger = SubscriberQos { depth: 8_192, reliability, ..SubscriberQos::default() };
    let logger = node.subscriber(topic(), logger).unwrap();
    assert!(logger.wait_for_match(1, WATCHDOG));
    let mut reasons = Vec::new();
    until("both", || {
        reasons.extend(logger.events().into_iter().filter_map(|event| match event {
            Event::QosReduced { endpoint, reason, .. } if endpoint == publisher.id() => {
                Some(reason)
            }
            _ => None,
        }));
        reasons.len() >= 2
    });
    assert!(reasons[0].contains("8192") && reasons[0].contains('8'), "{reasons:?}");
    assert!(reasons[1].contains("does not wait"), "{reasons:?}");
    let error =
        node.publisher(topic(), PublisherQos { transient_local: 4_000, ..PublisherQos::default() });
    let error = error.unwrap_err().to_string();
    let says = |word: &str| error.contains(word);
    assert!(says(&topic().name) && says("transient_local is 4000") && says("depth"), "{error}");
}

/// A reliable publisher, a subscriber that reads, and a process that is stopped.
#[test]
fn a_stopped_process_costs_others_no_sample_and_matches_again() {
    let folder = folder();
    let node = node(folder.path());
    let reliability = Reliability::Reliable;
    let block_max = Duration::from_millis(5);
    let qos = PublisherQos { depth: 64, reliability, block_max, ..PublisherQos::default() };
    let mut imu = node.publisher(topic(), qos).unwrap();
    let qos = SubscriberQos { reliability, ..SubscriberQos::default() };
    let mut controller = node.subscriber(topic(), qos).unwrap();
    let logger = Helper::start("subscriber", folder.path());
    assert!(imu.wait_for_match(2, WATCHDOG) && controller.wait_for_match(1, WATCHDOG));
    logger.signal(libc::SIGSTOP);
    let mut passed_over = 0;
    let mut publish = |expected: u64| {
        passed_over = imu.writer.publish_copy(&[1; 24]).unwrap().passed_over;
        let taken = controller.reader.take().unwrap().expect("it has been published");
        assert_eq!((taken.sequence, taken.lost_before), (expected, 0));
        passed_over
    };
    let said = (0..1_000).map(&mut publish).collect::<Vec<_>>();
    assert_eq!(said[..64], [0; 64], "there is room for them");
    assert_eq!(said[64..], [1; 936]);
    logger.signal(libc::SIGCONT);
    let mut sequence = 1_000;
    until("it to catch up", || {
        let waited_for = publish(sequence) == 0;
        sequence += 1;
        waited_for
    });
    assert_eq!(controller.reader.lost(), 0);
    let events = imu.events();
    let told = events.iter().filter(|event| match event {
        Event::PassedOver { pid, .. } | Event::CaughtUp { pid, .. } => *pid == logger.pid(),
        _ => false,
    });
    assert_eq!(told.count(), 2, "{events:?}");
    until("its loss", || logger.has_said("lost"));
    logger.stop();
}

/// Node ids are not secret. A process that greets as another user's node must not end that node's
/// link.
#[test]
fn a_process_that_claims_another_processes_node_is_refused() {
    let folder = folder();
    let (one, other) = (node(folder.path()), node(folder.path()));
    let (mut publisher, mut subscriber) = (publisher(&one), subscriber(&other));
    assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    for (called, claimed) in [(&one, &other), (&other, &one)] {
        let socket = format!("{:010x}.sock", called.id().unwrap() >> 24);
        let socket = called.runtime_dir().join(socket);
        let role = format!("impostor {} {}", socket.display(), claimed.id().unwrap());
        Helper::start(&role, folder.path()).expect("ended");
    }
    let ended = |events: Vec<Event>| events.iter().any(|it| matches!(it, Event::Unmatched { .. }));
    assert!(!ended(publisher.events()) && !ended(subscriber.events()));
    passes(&mut publisher, &mut subscriber, 1000);
}

#[test]
fn the_graph_has_matches_and_reasons_for_mismatches() {
    let folder = folder();
    let (one, other) = (node(folder.path()), node(folder.path()));
    let qos = SubscriberQos { publishers_max: 1, depth: 5, ..SubscriberQos::default() };
    let subscriber = one.subscriber(topic(), qos).unwrap();
    let first = publisher(&other);
    assert!(first.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    let second = publisher(&other);
    let state = |node: &Node, ours: u64, theirs: u64| {
        let graph = node.graph().unwrap();
        let found = graph.matches.into_iter().find(|it| (it.endpoint, it.other) == (ours, theirs));
        found.map(|it| it.state)
    };
    let is_refused = |state: Option<MatchState>| match state {
        Some(MatchState::Refused { reason, .. }) => reason.contains("publishers_max"),
        _ => false,
    };
    until("the refusal, at both", || {
        is_refused(state(&one, subscriber.id(), second.id()))
            && is_refused(state(&other, second.id(), subscriber.id()))
    });
    assert_eq!(state(&one, subscriber.id(), first.id()), Some(MatchState::Matched));
    for graph in [one.graph().unwrap(), other.graph().unwrap()] {
        let mut nodes = [one.id().unwrap(), other.id().unwrap()];
        nodes.sort_unstable();
        assert_eq!(graph.nodes.iter().map(|it| it.node).collect::<Vec<_>>(), nodes);
        let is_ours = |it: &&EndpointInfo| it.id == subscriber.id();
        let told = graph.endpoints.iter().find(is_ours).expect("it is told to all");
        assert_eq!((told.node, told.is_publisher), (one.id().unwrap(), false));
        let Topic { name, type_name, type_hash } = topic();
        assert_eq!((&told.topic, &told.type_name, told.type_hash), (&name, &type_name, type_hash));
        assert_eq!((told.depth, told.reliable, told.transient_local), (5, false, 0));
        assert_eq!(graph.endpoints.len(), 3);
    }
}

#[test]
fn an_unmatched_node_gets_the_counts_of_others() {
    let folder = folder();
    let helper = Helper::start("subscriber", folder.path());
    let one = node(folder.path());
    one.describe(1, || Schema::of_layout("Image".to_owned())).unwrap();
    let mut publisher = publisher(&one);
    helper.expect("matched");
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for length in [8, 100_000, 200_000] {
        publisher.writer.publish_copy(&vec![1; length]).unwrap();
        helper.expect(&format!("took {length}"));
    }
    let other = node(folder.path());
    until("both peers", || other.peers().unwrap().len() == 2);
    let graph = other.graph_within(WATCHDOG).unwrap();
    assert_eq!((&graph.silent[..], &graph.incomplete[..]), (&[][..], &[][..]));
    let [subscribed] =
        &graph.endpoints.iter().filter(|it| !it.is_publisher).collect::<Vec<_>>()[..]
    else {
        panic!("{graph:?}")
    };
    let id = publisher.id();
    let of_publisher = |graph: &Graph| {
        let publisher = graph.endpoints.iter().find(|it| it.id == id);
        publisher.expect("it is known to all").counters
    };
    let Some(Counters::Publisher { published: 3, published_bytes: 300_008, memory_bytes, .. }) =
        of_publisher(&graph)
    else {
        panic!("{graph:?}")
    };
    assert!(memory_bytes > 300_000, "{memory_bytes} B");
    let Some(Counters::Subscriber { taken: 3, lost: 0, held: 0, memory_bytes: 4096.., .. }) =
        subscribed.counters
    else {
        panic!("{graph:?}")
    };
    let told = |endpoint, other| MatchInfo { endpoint, other, state: MatchState::Matched };
    let mut matches = [told(publisher.id(), subscribed.id), told(subscribed.id, publisher.id())];
    matches.sort_unstable_by_key(|each| each.endpoint);
    assert_eq!(graph.matches, matches);
    let schema = Some(Schema::of_layout("Image".into()).into());
    assert_eq!(graph.types, [TypeInfo { hash: 1, name: "Image".into(), schema }]);
    // Nodes that are not asked report no matches, but their counters can be read from now on.
    publisher.writer.publish_copy(&[1]).unwrap();
    let graph = other.graph().unwrap();
    assert!(graph.matches.is_empty());
    assert!(matches!(of_publisher(&graph), Some(Counters::Publisher { published: 4, .. })));
    let new = node(folder.path());
    until("its peers", || new.peers().unwrap().len() == 3);
    assert!(of_publisher(&new.graph().unwrap()).is_none(), "a node that has never asked");
    assert!(of_publisher(&one.graph().unwrap()).is_some(), "its own");
}

#[test]
fn losses_and_held_samples_are_counted() {
    let folder = folder();
    let (one, other) = (node(folder.path()), node(folder.path()));
    let mut publisher = publisher(&one);
    let mut subscriber = subscriber(&one);
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    (0..20).for_each(|_| _ = publisher.writer.publish_copy(&[1; 1000]).unwrap());
    let held: Vec<_> = (0..2).map(|_| subscriber.reader.take().unwrap().unwrap()).collect();
    assert_eq!(held[0].lost_before, 12);
    let graph = other.graph_within(WATCHDOG).unwrap();
    let told = graph.endpoints.iter().find(|it| it.id == subscriber.id()).unwrap();
    let Some(Counters::Subscriber { taken: 2, lost: 12, lost_overwritten: 12, held: 2, .. }) =
        told.counters
    else {
        panic!("{told:?}")
    };
}

#[test]
fn a_stopped_process_is_named_and_answers_later() {
    let folder = folder();
    let helper = Helper::start("subscriber", folder.path());
    helper.expect("open");
    let (one, other) = (node(folder.path()), node(folder.path()));
    until("all peers", || one.peers().unwrap().len() == 2);
    let peers = one.peers().unwrap();
    let stopped = peers.iter().find(|peer| peer.pid == helper.pid()).unwrap().node;
    helper.signal(libc::SIGSTOP);
    for _ in 0..3 {
        let graph = one.graph_within(Duration::from_millis(20)).unwrap();
        assert!(graph.silent.contains(&stopped), "{:x?}", graph.silent);
        assert!(graph.endpoints.iter().all(|it| it.counters.is_none()));
    }
    // Several may ask at once, and a silent node keeps no other from answering.
    let others_answer = || one.graph_within(Duration::from_millis(20)).unwrap().silent == [stopped];
    std::thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(|| until("the other's answer", others_answer))));
    });
    helper.signal(libc::SIGCONT);
    let graph = one.graph_within(WATCHDOG).unwrap();
    assert!(graph.silent.is_empty() && graph.endpoints.iter().all(|it| it.counters.is_some()));
    drop(other);
}

#[test]
fn a_process_that_never_greets_keeps_no_other_from_answering() {
    let folder = folder();
    let helper = Helper::start("subscriber", folder.path());
    helper.expect("open");
    helper.signal(libc::SIGSTOP);
    let (one, new) = (node(folder.path()), node(folder.path()));
    let publisher = publisher(&one);
    until("the other's answer", || {
        let graph = new.graph_within(Duration::from_millis(100)).unwrap();
        let is_ours = |it: &&EndpointInfo| it.id == publisher.id();
        graph.endpoints.iter().find(is_ours).is_some_and(|it| it.counters.is_some())
    });
}

/// On a busy machine a node may answer later than the 10 ms for which opening waits.
#[test]
fn a_new_node_asks_also_those_that_have_not_answered_yet() {
    let folder = folder();
    let helper = Helper::start("subscriber", folder.path());
    helper.expect("open");
    helper.signal(libc::SIGSTOP);
    let new = node(folder.path());
    assert!(new.graph_within(Duration::ZERO).unwrap().endpoints.is_empty());
    let graph = std::thread::scope(|scope| {
        let asking = scope.spawn(|| new.graph_within(WATCHDOG).unwrap());
        helper.signal(libc::SIGCONT);
        asking.join().unwrap()
    });
    assert!(graph.silent.is_empty());
    assert_eq!(graph.endpoints.iter().filter(|it| it.counters.is_some()).count(), 1);
}

/// `cargo test --release -p myelin-shm --test discovery fifty -- --ignored --nocapture` measures,
/// with `MYELIN_NODES` processes of `MYELIN_ENDPOINTS` publishers each, all on topics of their own;
/// this process is one more node, without any. With `MYELIN_COUNTED` strace counts what the first
/// process sends, which makes that one slower. Another test counts that messages grow no faster than
/// endpoints and peers: `control_plane/protocol/simulation.rs`.
#[test]
#[ignore = "a measurement"]
fn fifty_processes_of_a_thousand_endpoints_each() {
    let (count, endpoints) = (number(NODES, 50), number(ENDPOINTS, 1_000));
    let folder = folder();
    let watching = node(folder.path());
    let last = LastChange::of(&watching);
    let before = pss_kb(std::process::id());
    let begin_ns = now_ns();
    let seconds = |since_ns: u64, ns: u64| (ns - since_ns) as f64 / 1e9;
    let trace = folder.path().join("trace");
    let counted = std::env::var_os("MYELIN_COUNTED").map(|_| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "--seccomp-bpf", "-e", "trace=sendmsg", "-o"]).arg(&trace);
        Helper::start_by(strace, "one_of_many", folder.path())
    });
    let others = count - usize::from(counted.is_some());
    let others = (0..others).map(|_| Helper::start("one_of_many", folder.path()));
    let helpers: Vec<_> = counted.into_iter().chain(others).collect();
    while watching.peers().unwrap().len() < count {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("{count} processes linked: {:.2} s", seconds(begin_ns, now_ns()));
    let (last_ns, _) = last.until_topics(&watching, count * endpoints);
    let lines = helpers.iter().map(|helper| {
        loop {
            if let Some(line) = helper.line("complete ") {
                let numbers = line.split(' ').map(|number| number.parse::<u64>().unwrap());
                break <[u64; 5]>::try_from(numbers.collect::<Vec<_>>()).unwrap();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let lines: Vec<_> = lines.collect();
    let of = |index: usize| lines.iter().map(move |line| line[index]);
    let (first_ns, last_ns) = (of(0).min().unwrap(), of(2).max().unwrap().max(last_ns));
    println!("{endpoints} endpoints of each made: {:.2} s each", seconds(0, of(1).max().unwrap()));
    println!("known to all: {:.2} s after the first began", seconds(first_ns, last_ns));
    println!("largest memory of a node at its peak: {} kB", of(3).max().unwrap());
    println!("CPU time of a node: {} ms", of(4).sum::<u64>() / count as u64);
    if let Ok(trace) = std::fs::read_to_string(&trace) {
        let sent = trace.lines().filter_map(|line| line.rsplit_once(" = ")?.1.parse::<u64>().ok());
        let (messages, bytes) = sent.fold((0, 0), |(all, sum), bytes| (all + 1, sum + bytes));
        println!("a node sends {messages} messages, {bytes} B");
    }
    let pss = helpers.iter().map(|helper| pss_kb(helper.pid())).sum::<u64>();
    // Memory that `topics` has used, and the test has freed, does not belong to the node. SAFETY:
    // no preconditions.
    unsafe { libc::malloc_trim(0) };
    let known_bytes = (pss_kb(std::process::id()) - before) * 1024 / (count * endpoints) as u64;
    println!("{pss} kB in all (PSS); {known_bytes} B for each endpoint known of others");
    let begin_ns = now_ns();
    let late = node(folder.path());
    let (last_ns, _) = LastChange::of(&late).until_topics(&late, count * endpoints);
    println!("known to one that comes late: {:.2} s", seconds(begin_ns, last_ns.max(begin_ns)));
    let begin_ns = now_ns();
    let graph = late.graph_within(10 * WATCHDOG).unwrap();
    let silent = graph.silent.len();
    println!("their counters: {:.2} s, {silent} nodes silent", seconds(begin_ns, now_ns()));
    assert!(graph.endpoints.iter().all(|it| it.counters.is_some()));
    drop(helpers);
    let begin_ns = now_ns();
    until("all to be gone", || late.topics().unwrap().is_empty());
    println!("gone: {:.2} s", seconds(begin_ns, now_ns()));
}

/// The memory of a process; shared memory is divided among its users.
fn pss_kb(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

fn is_readable(subscriber: &Subscriber) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let event = subscriber.reader.event().expect("its settings ask for one");
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&now)).unwrap() == 1
}

/// The other processes' code; does nothing when it is run as a test.
#[test]
fn helper() {
    if let Some(role) = std::env::var_os(ROLE) {
        discovery_support::play(role.to_str().unwrap(), topic());
    }
}
