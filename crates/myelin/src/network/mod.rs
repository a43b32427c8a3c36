//! The way to other hosts: `docs/explanation/dds.md`.

mod admission;
mod backlog;
mod dds_endpoint;
mod denied;
mod flow_channel;
mod flow_control;
mod graph;
mod host;
mod interface;
mod known_endpoints;
mod lane;
mod pending_samples;
mod reader;
mod schema_channel;
mod session;
mod settings;
mod state;
mod task_queue;
mod user_data;
mod wire;
mod worker;
mod writer;

#[cfg(feature = "any")]
pub(crate) use dds_endpoint::private_type;
pub(crate) use reader::NetworkReader;
pub(crate) use settings::Settings;
pub use state::NetworkState;
pub(crate) use worker::Network;
pub(crate) use writer::{NetworkWait, NetworkWriter};

use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};

/// A topic's settings in DDS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dds {
    /// Its name in DDS, if it is not derived from its own.
    pub(crate) name: Option<String>,
    /// Whether it is reliable in DDS, though no publisher waits.
    pub(crate) resends: bool,
    /// User data of its endpoints, in front of Myelin's.
    pub(crate) user_data: String,
    /// The only vendor whose other DDS programs understand its messages: RTPS's number of the
    /// implementation.
    pub(crate) vendor: Option<u16>,
    pub(crate) encoding: Encoding,
}

/// The serialisation of its samples in DDS.
#[derive(Clone, Debug, Default)]
pub(crate) enum Encoding {
    /// Only for Myelin: the layout's hash is the type's name.
    #[default]
    Private,
    /// The bytes are the CDR of a type of this name.
    Typed(String),
    /// The bytes are a CDR message with its header, of a type of this name.
    Message(String),
}

/// A topic from the network's point of view.
pub(crate) struct Spec {
    pub(crate) topic: Topic,
    pub(crate) dds: Dds,
    pub(crate) shape: Shape,
    pub(crate) publisher: PublisherQos,
    pub(crate) subscriber: SubscriberQos,
}

/// The shape of a payload in CDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A value of so many bytes.
    Value { bytes: usize },
    /// Elements of so many bytes each.
    Sequence {
        element: usize,
        /// The alignment of its largest primitive; at most 8, which is CDR's.
        align: usize,
        /// The alignment of its first primitive.
        first_align: usize,
    },
    /// Bytes without a CDR type: only for Myelin's own programs.
    Bytes,
}

/// The library's error for an error of the crate below.
fn network_error(error: myelin_dds::Error) -> crate::Error {
    crate::Error::Network { doing: "the way to other hosts", reason: error.to_string() }
}

/// A lock that ignores poisoning: its data is changed in single steps.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
