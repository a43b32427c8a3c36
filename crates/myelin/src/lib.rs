//! Topics and services between the processes of one host, without a copy and without a daemon; and
//! to other hosts.
//!
//! A publisher writes a sample once, into shared memory; every subscriber reads it there. A payload
//! is a value of a plain type or a slice of any length, so an image of 10 MB costs as little to
//! hand over as 8 bytes.
//!
//! ```
//! use myelin::{Node, PlainData};
//!
//! #[derive(Clone, Copy, PlainData)]
//! #[repr(C)]
//! struct Imu {
//!     stamp_ns: u64,
//!     acceleration: [f64; 3],
//! }
//!
//! # fn main() -> Result<(), myelin::Error> {
//! # use std::time::Duration;
//! # let folder = tempfile::tempdir().unwrap();
//! # let node = Node::builder("doc").runtime_dir(folder.path()).open()?;
//! # if false {
//! let node = Node::new("imu-driver")?;
//! # }
//! let publisher = node.topic::<Imu>("imu").publisher()?;
//!
//! // In this process or in another one:
//! let mut subscriber = node.topic::<Imu>("imu").subscriber()?;
//! # publisher.wait_for_match(1, Duration::from_secs(60));
//!
//! publisher.publish_copy(&Imu { stamp_ns: 1, acceleration: [0.0, 0.0, 9.81] })?;
//! if let Some(imu) = subscriber.receive(Duration::from_secs(1))? {
//!     println!("{} ns: {:?}", imu.stamp_ns, imu.acceleration);
//! }
//! # Ok(()) }
//! ```
//!
//! | to | call |
//! |---|---|
//! | join a domain | [`Node::new`] |
//! | name a topic, its type and its settings | [`Node::topic`], then [`Topic`]'s settings |
//! | send | [`Publisher::publish_copy`], or [`loan`](Publisher::loan), write, [`publish`](Loan::publish) |
//! | receive | [`Subscriber::take`], [`receive`](Subscriber::receive), [`on_sample`](Subscriber::on_sample), or [`FdSubscriber`] in an epoll loop |
//! | wait for many topics in one thread | [`Node::wait_set`], then [`WaitSetHandle::add`], [`WaitSet::wait`]; with functions, [`Node::executor`]; in your own epoll, [`WaitSetHandle::descriptor`] |
//! | request and reply | [`Node::service`], [`Node::client`], then [`Client::call`] |
//! | end a wait | [`Subscriber::interrupter`], [`WaitSetHandle::guard`] |
//! | receive in an asynchronous task | `Subscriber::into_stream` (feature `stream`) |
//! | read a topic whose type the program does not know | `Node::any_topic`, `Node::discover` (feature `any`) |
//! | follow the time of a recording that is played | [`Node::simulated_clock`] |
//! | inspect | [`events`](Subscriber::events), [`lost`](Subscriber::lost), [`matched`](Subscriber::matched); the whole domain, [`Node::graph`], or [`Node::watch_graph`] for rates |
//!
//! With [`NodeBuilder::network`] the same topics reach other hosts and DDS programs, through
//! CycloneDDS, which is then loaded.
//!
//! The guide is `docs/reference/library.md`. The internals are in
//! `docs/explanation/shared-memory.md` and `docs/explanation/dds.md`.

// The derive names `::myelin`, also in this crate's own tests.
#[cfg(test)]
extern crate self as myelin;

#[cfg(feature = "any")]
mod any;
mod boolean;
mod bounded_vec;
mod callback;
mod clock;
mod dynamic;
#[doc(hidden)]
pub mod encapsulation;
mod executor;
mod fixed_string;
#[cfg(any(feature = "bytemuck", feature = "zerocopy"))]
mod foreign;
mod graph_watcher;
mod group;
mod header_slice;
#[doc(hidden)]
pub mod layout;
mod layout_hash;
#[cfg(feature = "any")]
mod layout_text;
mod loan;
mod network;
mod node;
mod observer;
#[doc(hidden)]
pub mod pattern;
mod payload;
mod plain_data;
mod process_usage;
mod publisher;
#[cfg(feature = "any")]
#[doc(hidden)]
pub mod ros;
mod sample;
mod service;
mod shared_publisher;
mod simulated_clock;
#[cfg(feature = "stream")]
mod stream;
mod subscriber;
mod topic;
mod wait_set;

#[cfg(feature = "any")]
pub use any::{AnyTopic, Discovery};
pub use boolean::Bool;
pub use bounded_vec::BoundedVec;
pub use callback::Callback;
pub use clock::now;
pub use dynamic::{DynamicType, Layout};
pub use executor::{Executor, ExecutorHandle, Order};
pub use fixed_string::FixedString;
#[cfg(feature = "bytemuck")]
pub use foreign::Pod;
#[cfg(feature = "zerocopy")]
pub use foreign::Zerocopy;
pub use graph_watcher::{
    Change, EndpointStatus, GraphStatus, GraphWatcher, MatchStatus, NodeStatus, TopicStatus,
};
pub use group::Group;
pub use header_slice::HeaderSlice;
pub use layout_hash::LayoutHash;
pub use loan::Loan;
pub use myelin_derive::PlainData;
pub use myelin_shm::Error;
pub use myelin_shm::data_plane::publication::Published;
pub use myelin_shm::event::Event;
#[doc(hidden)]
pub use myelin_shm::node::report_failure;
pub use myelin_shm::node::{
    Counters, DdsInfo, EndpointInfo, Graph, Location, MatchInfo, MatchState, PeerInfo, Policy,
    Threads, TypeInfo,
};
pub use myelin_shm::record::{
    AnnouncedQos, Attributes, LATENESS_BUCKETS, Lateness, Matching, Mismatch, NodeRecord, Schema,
    Setting,
};
pub use myelin_shm::topic::{EndpointId, Reliability};
#[doc(hidden)] // for bindings to languages that run signal handlers in the waiting thread
pub use myelin_shm::waiting::cancel;
pub use myelin_shm::waiting::wait::Wait;
#[cfg(feature = "any")]
pub use myelin_value as value;
pub use network::NetworkState;
pub use node::{Node, NodeBuilder};
pub use observer::{Missing, ObservedHeader, ObservedPublisher, ObservedSample, Observer};
pub use payload::Payload;
pub use plain_data::PlainData;
pub use publisher::Publisher;
pub use sample::{Sample, SampleBuffer};
#[cfg(feature = "any")]
pub use service::{AnyClient, service_types};
pub use service::{
    CALLS_MAX, Client, Pending, Reply, ReplyLoan, Request, RequestLoan, SERVICE_CLIENTS_MAX,
    Service,
};
pub use shared_publisher::{SharedLoan, SharedPublisher};
pub use simulated_clock::{Clock, ClockPublisher};
#[cfg(feature = "stream")]
pub use stream::SampleStream;
#[doc(hidden)]
pub use subscriber::until_ns;
pub use subscriber::{FdSubscriber, Interrupter, Subscriber};
pub use topic::{PublisherBuilder, SubscriberBuilder, Topic};
#[doc(hidden)]
pub use wait_set::KeyMap;
pub use wait_set::{GuardCondition, Key, WaitSet, WaitSetHandle};
