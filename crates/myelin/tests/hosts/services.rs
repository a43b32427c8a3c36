//! Requests and replies between two hosts, and on one at the same time.

use std::time::Duration;

use myelin::{Client, Error, Node, Service};

use crate::node;
use crate::support::WATCHDOG;
use crate::two::{Hosts, Process, heard, say};

#[test]
fn a_service_is_called_from_its_own_host_and_from_another_and_its_death_ends_the_calls() {
    let Some(hosts) = Hosts::new() else { return };
    let mut clients = [hosts.one.run("call_a_service"), hosts.other.run("call_a_service")];
    clients.iter_mut().for_each(|client| client.hears("ready"));
    let server = hosts.one.run("serve_until_killed");
    clients.iter_mut().for_each(|client| client.hears("called"));
    server.kill();
    clients.iter_mut().for_each(|client| client.hears("gone"));
    let next = hosts.other.run("serve_until_told");
    for client in &mut clients {
        client.say("again");
    }
    clients.into_iter().for_each(Process::ends);
    next.ends();
    // The killed server has left its socket on the other host, for the next node there to remove.
    assert!(hosts.other.leftovers().is_empty(), "{:?}", hosts.other.leftovers());
}

fn service(node: &Node) -> Service<[u64], [u64]> {
    node.service("double").unwrap()
}

fn client(node: &Node) -> Client<[u64], [u64]> {
    node.client("double").unwrap()
}

pub(crate) fn serve_until_killed() {
    let node = node("server");
    let mut service = service(&node);
    while let Some(request) = service.receive(WATCHDOG).unwrap() {
        if request.is_empty() {
            std::mem::forget(request); // never replied to
            continue;
        }
        let mut reply = request.loan(request.len()).unwrap();
        reply.iter_mut().zip(request.iter()).for_each(|(to, number)| *to = 2 * number);
        reply.send().unwrap();
    }
}

pub(crate) fn serve_until_told() {
    let node = node("server");
    let serving = service(&node).on_request(|request| {
        let doubles: Vec<u64> = request.iter().map(|number| 2 * number).collect();
        request.reply(&doubles).unwrap();
    });
    let _serving = serving.unwrap();
    std::io::read_to_string(std::io::stdin()).unwrap();
}

pub(crate) fn call_a_service() {
    let node = node("client");
    let client = client(&node);
    say("ready");
    call(&client);
    say("called");
    let error = client.call(&[], WATCHDOG).unwrap_err();
    assert!(matches!(error, Error::ServerGone { .. }), "{error:?}");
    say("gone");
    heard("again");
    call(&client);
    assert_eq!(client.late(), 0);
}

/// Small, and large, and several at once.
fn call(client: &Client<[u64], [u64]>) {
    assert!(client.wait_for_service(WATCHDOG).unwrap());
    let requests: Vec<Vec<u64>> = (1..40).map(|round| vec![round; LARGE >> (round % 16)]).collect();
    let mut pending: Vec<_> =
        requests.iter().map(|request| client.send(request).unwrap()).collect();
    for (request, reply) in requests.iter().zip(&mut pending) {
        let reply = reply.receive(WATCHDOG).unwrap().expect("it comes");
        assert!(reply.iter().copied().eq(request.iter().map(|number| 2 * number)));
    }
    for round in 0..100 {
        assert_eq!(client.call(&[round], Duration::from_secs(30)).unwrap()[0], 2 * round);
    }
}

const LARGE: usize = 100_000;
