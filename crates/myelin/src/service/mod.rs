//! Requests and replies, on topics. All clients of the service `plan` publish their requests on
//! `plan/request`; the server publishes the replies to a client on a topic that this one alone
//! subscribes to, `plan/reply/<client>`. So a reply reaches nobody else, a client that is stopped holds
//! up nobody else, and other hosts are reached as by any topic.
//!
//! A client first says hello, by a request without a payload, and the server makes the way back; the
//! client asks once that is matched. It has at most [`CALLS_MAX`] calls out, no more than the rings
//! of both topics hold, so neither side ever waits for room on its host.

mod calls;
mod client;
mod events;
mod server;
mod wire;

pub use client::{Client, Pending, Reply, RequestLoan};
pub use server::{ReplyLoan, Request, Service};

use std::time::Duration;

use crate::node::Node;
use crate::payload::Payload;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::{Error, Topic};

/// Calls of one client that can be unanswered at once, those included that it no longer waits for.
pub const CALLS_MAX: usize = 64;

/// Clients of one service.
pub const SERVICE_CLIENTS_MAX: usize = myelin_shm::limits::CONNECTIONS_MAX as usize;

/// The topic of a service's requests or of one client's replies.
fn topic<T: Payload + ?Sized>(node: &Node, name: &str) -> Topic<T> {
    node.topic(name).depth(DEPTH).reliable_or_fail(ROOM_LIMIT)
}

fn publisher<T: Payload + ?Sized>(node: &Node, name: &str) -> Result<Publisher<T>, Error> {
    topic(node, name).publisher_builder().loans_max(DEPTH).open()
}

fn subscriber<T: Payload + ?Sized>(node: &Node, name: &str) -> Result<Subscriber<T>, Error> {
    let builder = topic(node, name).subscriber_builder();
    builder.held_max(HELD_MAX).publishers_max(SERVICE_CLIENTS_MAX as u32).open()
}

fn requests_of(service: &str) -> String {
    format!("{service}/request")
}

fn replies_of(service: &str, client: u64) -> String {
    format!("{service}/reply/{client:016x}")
}

/// Room for all calls, and for a hello to each of a few servers.
const DEPTH: u32 = 2 * CALLS_MAX as u32;
/// How long to wait for a link to another host to have room.
const ROOM_LIMIT: Duration = Duration::from_secs(1);
/// Requests that a server, and replies that a client may keep at once.
const HELD_MAX: u32 = 256;
