//! Requests and replies, within a process and across processes: the test starts itself again as the
//! other side, and kills or stops it.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;
mod support;

use std::collections::HashSet;
use std::sync::mpsc;
use std::time::Duration;

use myelin::{CALLS_MAX, Client, Error, Event, Node, PlainData, Service, Wait};
use support::other_side::{FOLDER, Other, ROLE};
use support::{WATCHDOG, until};

/// The client and its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PlainData)]
#[repr(C)]
struct Ask {
    client: u64,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Answer {
    client: u64,
    number: u64,
    square: u64,
}

fn answer(ask: &Ask) -> Answer {
    Answer { client: ask.client, number: ask.number, square: ask.number * ask.number }
}

fn service(node: &Node) -> Service<Ask, Answer> {
    node.service("square").unwrap()
}

fn client(node: &Node) -> Client<Ask, Answer> {
    node.client("square").unwrap()
}

/// Asks `calls` questions, one after the other.
fn ask(client: &Client<Ask, Answer>, who: u64, calls: u64) {
    for number in 0..calls {
        let question = Ask { client: who, number };
        assert_eq!(*client.call(&question, WATCHDOG).unwrap(), answer(&question));
    }
}

#[test]
fn a_client_of_every_wait_strategy_is_served_by_a_server_of_every_one() {
    let (_folder, node) = support::node();
    for wait in WAITS {
        let mut service = service(&node);
        service.set_wait(wait);
        let client = client(&node);
        client.set_wait(wait);
        let server = std::thread::spawn(move || {
            for _ in 0..CALLS {
                let request = service.receive(WATCHDOG).unwrap().expect("it asks");
                request.reply(&answer(&request)).unwrap();
            }
        });
        ask(&client, 0, CALLS);
        server.join().unwrap();
        assert_eq!(client.late(), 0);
    }
}

#[test]
fn a_server_works_by_callback_in_a_wait_set_and_in_an_executor() {
    let (_folder, node) = support::node();
    let client = client(&node);

    let callback = service(&node).on_request(|request| request.reply(&answer(&request)).unwrap());
    let callback = callback.unwrap();
    ask(&client, 1, CALLS);
    until("all calls", || callback.calls() >= CALLS);
    drop(callback);
    until("its end", || client.servers() == 0);

    let mut executor = node.executor().unwrap();
    let serve = |request: myelin::Request<Ask, Answer>| request.reply(&answer(&request)).unwrap();
    executor.on_request(service(&node), serve).unwrap();
    let stop = executor.stop_guard();
    let thread = std::thread::spawn(move || {
        executor.run().unwrap();
        drop(executor);
    });
    ask(&client, 2, CALLS);
    stop.trigger();
    thread.join().unwrap();
    until("its end", || client.servers() == 0);

    let mut service = service(&node);
    let mut set = node.wait_set().unwrap();
    let key = set.add_service(&service).unwrap();
    let stop = set.guard_condition().unwrap();
    let end = stop.clone();
    let thread = std::thread::spawn(move || {
        while !set.wait(WATCHDOG).unwrap().contains(&stop.key()) {
            while let Some(request) = service.take().unwrap() {
                request.reply(&answer(&request)).unwrap();
            }
        }
        drop((key, set));
    });
    ask(&client, 3, CALLS);
    end.trigger();
    thread.join().unwrap();
}

#[test]
fn sixteen_clients_at_once_each_get_their_own_replies() {
    let (_folder, node) = support::node();
    let _serving = service(&node).on_request(|request| request.reply(&answer(&request)).unwrap());
    std::thread::scope(|scope| {
        for who in 0..16 {
            let node = &node;
            scope.spawn(move || ask(&client(node), who, CALLS));
        }
    });
}

#[test]
fn several_calls_in_flight_are_replied_to_in_any_order_and_by_any_thread() {
    let (_folder, node) = support::node();
    let mut service = service(&node);
    let server = std::thread::spawn(move || {
        let mut requests = Vec::new();
        while requests.len() < CALLS_MAX {
            requests.push(service.receive(WATCHDOG).unwrap().expect("it asks"));
        }
        let worker = std::thread::spawn(move || {
            while let Some(request) = requests.pop() {
                request.reply(&answer(&request)).unwrap();
            }
        });
        worker.join().unwrap();
        service
    });
    let client = client(&node);
    assert!(client.wait_for_service(WATCHDOG).unwrap());
    let asks = (0..CALLS_MAX as u64).map(|number| Ask { client: 0, number });
    let mut pending: Vec<_> = asks.map(|ask| (ask, client.send(&ask).unwrap())).collect();
    let error = client.send(&Ask { client: 0, number: 0 }).unwrap_err();
    assert!(matches!(error, Error::TooMany { limit, .. } if limit == CALLS_MAX as u64), "{error}");
    for (ask, reply) in &mut pending {
        assert_eq!(*reply.receive(WATCHDOG).unwrap().expect("it comes"), answer(ask));
        assert!(reply.take().unwrap().is_none(), "once");
    }
    drop(server.join().unwrap());
    assert_eq!(client.late(), 0);
}

#[test]
fn a_large_request_and_a_large_reply_are_read_where_they_were_written() {
    let (_folder, node) = support::node();
    let mut service = node.service::<[u32], (Ask, [u64])>("double").unwrap();
    let client = node.client::<[u32], (Ask, [u64])>("double").unwrap();
    let server = std::thread::spawn(move || {
        let request = service.receive(WATCHDOG).unwrap().expect("it asks");
        assert!(is_in_a_slot(request.as_ptr().addr()));
        let mut reply = request.loan(request.len()).unwrap();
        let (header, doubles) = reply.parts_mut();
        *header = Ask { client: 7, number: doubles.len() as u64 };
        for (double, number) in doubles.iter_mut().zip(request.iter()) {
            *double = 2 * u64::from(*number);
        }
        reply.send().unwrap();
        service
    });
    assert!(client.wait_for_service(WATCHDOG).unwrap());
    let mut request = client.loan(LARGE).unwrap();
    request.iter_mut().zip(0..).for_each(|(to, number)| *to = number);
    let mut pending = request.send().unwrap();
    let reply = pending.receive(WATCHDOG).unwrap().expect("it comes");
    assert!(is_in_a_slot(std::ptr::from_ref(reply.header()).addr()));
    assert_eq!(*reply.header(), Ask { client: 7, number: LARGE as u64 });
    assert!(reply.slice().iter().copied().eq((0..LARGE as u64).map(|number| 2 * number)));
    let kept = reply.clone();
    drop((reply, pending, server.join().unwrap()));
    drop(client);
    assert_eq!(kept.slice()[LARGE - 1], 2 * (LARGE as u64 - 1), "it outlives both sides");
}

/// Whether an address of this process lies in a publisher's slots.
fn is_in_a_slot(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("memfd:myelin-slots")).any(|line| {
        let (from, to) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
        let bound = |text| usize::from_str_radix(text, 16).unwrap();
        (bound(from)..bound(to)).contains(&address)
    })
}

#[test]
fn without_a_server_a_call_says_so_and_with_a_late_one_it_succeeds() {
    let (_folder, node) = support::node();
    let client = client(&node);
    let limit = Duration::from_millis(20);
    let error = client.call(&Ask { client: 0, number: 0 }, limit).unwrap_err();
    assert!(matches!(error, Error::NoServer { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("\"square\"") && text.contains("20ms"), "{text}");
    assert!(matches!(client.send(&Ask { client: 0, number: 0 }), Err(Error::NoServer { .. })));
    assert!(!client.wait_for_service(Duration::ZERO).unwrap());

    std::thread::scope(|scope| {
        let asking = scope.spawn(move || ask(&client, 0, 1));
        let _serving = service(&node).on_request(|it| it.reply(&answer(&it)).unwrap()).unwrap();
        asking.join().unwrap();
    });
}

/// The case of a node that polls everything.
#[test]
fn a_client_and_a_server_of_one_thread_match() {
    let (_folder, node) = support::node();
    let (mut service, client) = (service(&node), client(&node));
    assert!(client.wait_for_service(WATCHDOG).unwrap());
    for number in 0..3 {
        let question = Ask { client: 0, number };
        let mut pending = client.send(&question).unwrap();
        assert!(pending.take().unwrap().is_none());
        let request = service.receive(WATCHDOG).unwrap().expect("it asks");
        request.reply(&answer(&request)).unwrap();
        assert_eq!(*pending.receive(WATCHDOG).unwrap().expect("it comes"), answer(&question));
    }
    // A client that asks and goes gets no answer.
    drop(client.send(&Ask { client: 0, number: 0 }).unwrap());
    let request = service.receive(WATCHDOG).unwrap().expect("it asks");
    drop(client);
    request.reply(&answer(&request)).unwrap();
}

#[test]
fn another_type_on_either_side_is_an_error_with_both_types() {
    let (_folder, node) = support::node();
    let _service = service(&node);
    let of_request = node.client::<u64, Answer>("square").unwrap_err();
    let of_reply = node.client::<Ask, [u64]>("square").unwrap_err();
    for (error, ours) in [(of_request, "u64 -> Answer"), (of_reply, "Ask -> [u64]")] {
        assert!(matches!(error, Error::TypeMismatch { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("Ask -> Answer") && text.contains(ours), "{text}");
    }
}

#[test]
fn a_request_that_is_dropped_and_a_callback_that_panics_are_an_error_at_once() {
    let (_folder, node) = support::node();
    let callback = service(&node).on_request(|request| {
        if request.number == 1 {
            std::panic::resume_unwind(Box::new("odd"));
        }
    });
    let callback = callback.unwrap();
    let client = client(&node);
    for number in 0..2 {
        let error = client.call(&Ask { client: 0, number }, WATCHDOG).unwrap_err();
        assert!(matches!(error, Error::NoReply { .. }), "{error:?}");
    }
    until("the panic", || callback.panics() == 1);
}

#[test]
fn a_request_is_replied_to_once() {
    let (_folder, node) = support::node();
    let (to, from) = mpsc::channel();
    let _serving = service(&node).on_request(move |request| {
        request.reply(&answer(&request)).unwrap();
        to.send(request.reply(&answer(&request)).unwrap_err().to_string()).unwrap();
    });
    let client = client(&node);
    ask(&client, 0, 1);
    assert!(from.recv_timeout(WATCHDOG).unwrap().contains("once"));
    ask(&client, 0, 1);
    assert_eq!(client.late(), 0);
}

#[test]
fn a_reply_after_the_limit_is_dropped_and_counted() {
    let (_folder, node) = support::node();
    let mut service = service(&node);
    let client = client(&node);
    let (go_on, may_go_on) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let first = service.receive(WATCHDOG).unwrap().expect("it asks");
        first.reply(&answer(&first)).unwrap();
        let late = service.receive(WATCHDOG).unwrap().expect("it asks again");
        may_go_on.recv_timeout(WATCHDOG).unwrap();
        late.reply(&answer(&late)).unwrap();
        let next = service.receive(WATCHDOG).unwrap().expect("it asks once more");
        next.reply(&answer(&next)).unwrap();
    });
    // After a reply both topics are matched: however short the limit is, the next call sends.
    client.call(&Ask { client: 0, number: 2 }, WATCHDOG).unwrap();
    let question = Ask { client: 0, number: 3 };
    let error = client.call(&question, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::ReplyTimeout { .. }), "{error:?}");
    go_on.send(()).unwrap();
    let next = Ask { client: 0, number: 4 };
    assert_eq!(*client.call(&next, WATCHDOG).unwrap(), answer(&next));
    assert_eq!(client.late(), 1);
    server.join().unwrap();
}

#[test]
fn two_servers_get_every_request_and_one_reply_counts() {
    let (_folder, node) = support::node();
    let client = client(&node);
    let (to, from) = mpsc::channel();
    let serving = [1, 2].map(|server| {
        let to = to.clone();
        let serve = move |request: myelin::Request<Ask, Answer>| {
            request.reply(&answer(&request)).unwrap();
            to.send((server, request.number)).unwrap();
        };
        service(&node).on_request(serve).unwrap()
    });
    until("both", || client.servers() == 2);
    ask(&client, 0, CALLS);
    let served: HashSet<(u64, u64)> = from.iter().take(2 * CALLS as usize).collect();
    assert_eq!(served.len(), 2 * CALLS as usize);
    until("the second replies", || {
        assert!(client.wait_for_service(WATCHDOG).unwrap());
        client.late() == CALLS
    });
    drop(serving);
}

#[test]
fn a_server_that_leaves_ends_the_calls_and_the_next_one_serves() {
    let (_folder, node) = support::node();
    let mut first = service(&node);
    let client = client(&node);
    let server = std::thread::spawn(move || {
        let request = first.receive(WATCHDOG).unwrap().expect("it asks");
        drop(first); // and keeps the request
        request
    });
    let error = client.call(&Ask { client: 0, number: 0 }, Duration::MAX).unwrap_err();
    assert!(matches!(error, Error::ServerGone { .. }), "{error:?}");
    drop(server.join().unwrap());
    until("its end", || client.servers() == 0);
    let _serving = service(&node).on_request(|request| request.reply(&answer(&request)).unwrap());
    ask(&client, 0, CALLS);
}

#[test]
fn a_server_that_is_killed_at_any_point_ends_the_call_at_once() {
    let (folder, node) = support::node();
    let client = client(&node);
    let mut replies = 0;
    for kill in 0..KILLS {
        let mut other = Other::start(itself::itself(), "serve", folder.path());
        until("the server", || client.servers() > 0);
        client.set_wait(WAITS[kill as usize / 4 % 4]);
        // From the first moment until well into its work.
        let ask_first = u64::from(kill % 4);
        let (begin, may_begin) = mpsc::channel();
        std::thread::scope(|scope| {
            let other = &mut other;
            scope.spawn(move || {
                may_begin.recv().unwrap();
                (0..kill * 500).for_each(|_| std::hint::spin_loop());
                other.0.kill().unwrap();
            });
            if ask_first > 0 {
                ask(&client, 0, ask_first);
            }
            begin.send(()).unwrap();
            replies += ask_until_it_is_gone(&client);
        });
        other.0.wait().unwrap();
        until("its end", || client.servers() == 0);
    }
    assert!(replies > 0);
    let _serving = service(&node).on_request(|request| request.reply(&answer(&request)).unwrap());
    ask(&client, 0, CALLS);
    assert_eq!(client.late(), 0);
}

/// How many replies came before the server was gone.
fn ask_until_it_is_gone(client: &Client<Ask, Answer>) -> u64 {
    for number in 0.. {
        let question = Ask { client: 0, number };
        match client.send(&question).and_then(|mut pending| pending.receive(WATCHDOG)) {
            Ok(Some(reply)) => assert_eq!(*reply, answer(&question)),
            Ok(None) => panic!("nothing has ended the call"),
            Err(Error::ServerGone { .. }) => return number,
            // It does not exist yet, or not any more.
            Err(Error::NoServer { .. }) if client.servers() > 0 => std::thread::yield_now(),
            Err(Error::NoServer { .. }) => return number,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("there are more numbers")
}

fn serve(node: &Node) {
    let mut service = service(node);
    while let Some(request) = service.receive(WATCHDOG).unwrap() {
        request.reply(&answer(&request)).unwrap();
    }
}

#[test]
fn killed_clients_do_not_disturb_the_server() {
    let (folder, node) = support::node();
    let callback = service(&node).on_request(|request| {
        // Replies whether or not the client still exists.
        request.reply(&answer(&request)).unwrap();
    });
    let callback = callback.unwrap();
    let ours = client(&node);
    for kill in 0..KILLS {
        let mut other = Other::start(itself::itself(), "ask_for_ever", folder.path());
        let before = callback.calls();
        if kill % 3 > 0 {
            until("its first calls", || callback.calls() > before + u64::from(kill % 3));
        }
        ask(&ours, 1, 3);
        other.0.kill().unwrap();
        other.0.wait().unwrap();
        ask(&ours, 1, 3);
    }
    assert_eq!(callback.panics(), 0);
    assert!(callback.error().is_none());
    let unmatched = |events: Vec<Event>| {
        events.into_iter().filter(|event| matches!(event, Event::Unmatched { .. })).count()
    };
    assert_eq!(unmatched(ours.events()), 0);
}

fn ask_for_ever(node: &Node) {
    let client = client(node);
    loop {
        ask(&client, 2, 1);
    }
}

#[test]
fn a_server_that_is_stopped_ends_a_call_by_its_limit_and_goes_on() {
    let (folder, node) = support::node();
    let client = client(&node);
    let other = Other::start(itself::itself(), "serve", folder.path());
    let pid = rustix::process::Pid::from_child(&other.0);
    ask(&client, 0, 1);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::UNTRACED);
    assert!(status.unwrap().is_some_and(|(_, status)| status.stopped()), "all its threads stand");
    let stopped = Ask { client: 0, number: 5 };
    let error = client.call(&stopped, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, Error::ReplyTimeout { .. }), "{error:?}");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    ask(&client, 0, CALLS);
    assert_eq!(client.late(), 1);
}

#[test]
fn the_other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = std::env::var_os(FOLDER).unwrap();
    let node = Node::builder(&role).runtime_dir(folder).open().unwrap();
    match role.as_str() {
        "serve" => serve(&node),
        "ask_for_ever" => ask_for_ever(&node),
        _ => panic!("{role}"),
    }
}

const WAITS: [Wait; 4] = [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive];
const CALLS: u64 = 200;
const KILLS: u32 = 50;
const LARGE: usize = 300_000;
