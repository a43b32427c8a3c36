//! Peers that send endless messages that are neither requests nor expected replies.

use super::wire::{HELLO, REPLIED, ReplyOf, RequestOf, header_bytes};
use super::*;
use crate::service::server::Service;

type Requests = RequestOf<u64, u64>;
type Replies = ReplyOf<u64, u64>;

#[test]
fn a_flood_of_requests_does_not_block_other_requests() {
    let (_folder, node) = node();
    let mut service = service(&node);
    let client = node.client::<u64, u64>("s").unwrap();
    until("the server", || service.take().unwrap().is_none() && is_ready(&client));
    let floods: Vec<_> = (1..=FLOODS)
        .map(|id| {
            let flood = publisher::<Requests>(&node, &requests_of("s").unwrap(), None).unwrap();
            assert!(flood.wait_for_match(1, WATCHDOG));
            let hello = header_bytes([id, HELLO]);
            (0..DEPTH).for_each(|_| assert!(flood.publish_copy(&hello).is_ok()));
            flood
        })
        .collect();
    assert!(service.take().unwrap().is_none());
    assert!(service.wait(Duration::ZERO).unwrap(), "one look took all of the flood");
    let mut pending = client.send(&3).unwrap();
    service.receive(WATCHDOG).unwrap().expect("it asks").reply(&9).unwrap();
    assert_eq!(*pending.receive(WATCHDOG).unwrap().unwrap(), 9);
    drop(floods);
}

/// Replies that a server sent before it died count, however many messages lie in front of them.
#[test]
fn a_flood_of_replies_does_not_block_a_reply_before_its_servers_end() {
    let (_folder, node) = node();
    let mut service = service(&node);
    let client = node.client::<u64, u64>("s").unwrap();
    until("the server", || service.take().unwrap().is_none() && is_ready(&client));
    let mut pending = client.send(&3).unwrap();
    let floods: Vec<_> = (0..FLOODS)
        .map(|_| {
            let flood = publisher::<Replies>(&node, &replies_of("s", client.id()), None).unwrap();
            assert!(flood.wait_for_match(1, WATCHDOG));
            let late = header_bytes([u64::MAX, REPLIED]);
            (0..DEPTH).for_each(|_| assert!(flood.publish_copy(&late).is_ok()));
            flood
        })
        .collect();
    let request = service.receive(WATCHDOG).unwrap().expect("it asks");
    request.reply(&9).unwrap();
    drop((request, service));
    until("its end", || client.servers() == 0);
    client.wait_for_service(Duration::ZERO).unwrap();
    assert!(client.late() <= TAKEN_MAX as u64, "one look took all of the flood");
    assert_eq!(*pending.receive(WATCHDOG).unwrap().unwrap(), 9);
    let error = client.send(&3).unwrap_err();
    assert!(matches!(error, Error::NoServer { .. }), "{error:?}");
    assert!(error.to_string().contains("no server now;"), "{error}");
    drop(floods);
}

fn node() -> (tempfile::TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder("test").runtime_dir(folder.path()).open().unwrap();
    (folder, node)
}

fn service(node: &Node) -> Service<u64, u64> {
    node.service("s").unwrap()
}

fn is_ready(client: &Client<u64, u64>) -> bool {
    client.wait_for_service(Duration::ZERO).unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WATCHDOG, "waited in vain for: {what}");
        std::thread::yield_now();
    }
}

const FLOODS: u64 = 3;
const WATCHDOG: Duration = Duration::from_secs(60);
