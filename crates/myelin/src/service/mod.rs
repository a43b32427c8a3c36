//! Requests and replies, on topics. All clients of the service `plan` publish their requests on
//! `plan/request`. The server publishes the replies to one client on a topic that only this client
//! subscribes to, `plan/reply/<client>`. So no other client sees a reply, a stopped client delays
//! no other client, and services reach other hosts as topics do.
//!
//! A client first sends a hello, by a request without a payload, and the server makes the topic for
//! the replies. `call` waits until that topic is matched. `send` does not, because the server may
//! be in the same thread; the reply then waits for the match. A client has at most [`CALLS_MAX`]
//! open calls, no more than the rings of both topics hold, so neither side ever waits for room on
//! its host.

#[cfg(feature = "any")]
mod any_client;
mod calls;
mod client;
mod events;
mod server;
mod wire;

#[cfg(feature = "any")]
pub use any_client::{AnyClient, service_types};
pub use client::{Client, Pending, Reply, RequestLoan};
pub use server::{ReplyLoan, Request, Service};

use std::time::Duration;

use myelin_shm::topic::check_name;

use crate::dynamic::DynamicType;
use crate::node::Node;
use crate::payload::Payload;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::topic::fitting;
use crate::{Error, Topic};
use wire::HEADER_BYTES;

/// How many calls of one client can be unanswered at once, including those that it no longer waits
/// for.
pub const CALLS_MAX: usize = 64;

/// How many clients one service can have.
pub const SERVICE_CLIENTS_MAX: usize = myelin_shm::limits::CONNECTIONS_MAX as usize;

/// The topic of a service's requests or of one client's replies.
fn topic<T: Payload + ?Sized>(
    node: &Node,
    name: &str,
    dynamic_type: Option<&DynamicType>,
) -> Topic<T> {
    let topic = node.topic(name).depth(DEPTH).reliable_or_fail(ROOM_LIMIT);
    match dynamic_type {
        None => topic,
        Some(dynamic_type) => topic.of(dynamic_type),
    }
}

fn publisher<T: Payload + ?Sized>(
    node: &Node,
    name: &str,
    dynamic_type: Option<&DynamicType>,
) -> Result<Publisher<T>, Error> {
    topic(node, name, dynamic_type).publisher_builder().loans_max(DEPTH).open()
}

fn subscriber<T: Payload + ?Sized>(
    node: &Node,
    name: &str,
    dynamic_type: Option<&DynamicType>,
) -> Result<Subscriber<T>, Error> {
    let builder = topic(node, name, dynamic_type).subscriber_builder();
    builder.held_max(HELD_MAX).publishers_max(SERVICE_CLIENTS_MAX as u32).open()
}

/// The types of the topics of requests and of replies, if they are known at run time only.
#[derive(Clone, Debug)]
pub(crate) struct ServiceTypes {
    request: DynamicType,
    requests: DynamicType,
    replies: DynamicType,
}

impl ServiceTypes {
    /// # Errors
    /// [`Error::Setting`] for a type whose offset would depend on its alignment: every payload of a
    /// binding lies right behind the header of two words.
    pub(crate) fn new(request: &DynamicType, reply: &DynamicType) -> Result<ServiceTypes, Error> {
        if let Some(wide) = [request, reply].into_iter().find(|it| it.align() > HEADER_BYTES) {
            return Err(Error::Setting {
                topic: None,
                field: "a service's type",
                value: wide.type_name().to_string(),
                remedy: "a type that is described at run time is aligned to at most 16 bytes",
            });
        }
        let [requests, replies] = DynamicType::of_service(request, reply);
        Ok(ServiceTypes { request: request.clone(), requests, replies })
    }
}

/// # Errors
/// [`Error::Setting`] for a name that a service cannot have.
fn requests_of(service: &str) -> Result<String, Error> {
    check_name("a service's name", service)?;
    Ok(fitting(format!("{service}/request")))
}

fn replies_of(service: &str, client: u64) -> String {
    fitting(format!("{service}/reply/{client:016x}"))
}

/// Room for all calls, and for a hello to each of a few servers.
const DEPTH: u32 = 2 * CALLS_MAX as u32;
/// How many messages one look at a topic takes before its caller checks the clock again.
const TAKEN_MAX: usize = 2 * DEPTH as usize;
/// How long to wait for a link to another host to have room.
const ROOM_LIMIT: Duration = Duration::from_secs(1);
/// How many requests a server, and how many replies a client may hold at once.
const HELD_MAX: u32 = 256;

#[cfg(test)]
mod tests;
