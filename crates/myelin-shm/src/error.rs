//! The library's errors; each message says what to do.

use std::path::PathBuf;
use std::time::Duration;

use crate::os::descriptor;

/// Any error of the library. A call that returns one has changed nothing: no sample was published
/// or taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The payload is larger than the publisher allows.
    #[error(
        "topic {topic:?}: a payload of {bytes} B is over the limit of {limit} B; raise the \
         publisher's payload_bytes_max, or send it in parts"
    )]
    PayloadTooLarge {
        /// The topic's name.
        topic: String,
        /// The requested size.
        bytes: u64,
        /// The allowed size.
        limit: u64,
    },
    /// The publisher's slots would need more memory than it may use.
    #[error(
        "topic {topic:?}: the publisher's slots would take {wanted} B, over its memory_max of \
         {limit} B: its subscribers hold or have not read {out} samples; release samples sooner, \
         lower the depth, or raise memory_max"
    )]
    MemoryLimit {
        /// The topic's name.
        topic: String,
        /// Bytes after the growth.
        wanted: u64,
        /// The publisher's limit, in bytes.
        limit: u64,
        /// Slots that cannot be reused now.
        out: usize,
    },
    /// A callback inside a publish uses the same publisher.
    #[error(
        "a callback uses this publisher inside its own publish call; share the publisher, or make \
         another one for the callback"
    )]
    Reentered,
    /// A segment cannot be made or mapped: memory is short, or a limit forbids it.
    #[error("no memory for a shared segment of {bytes} B: {reason}")]
    NoMemory {
        /// Size of the segment, in bytes.
        bytes: u64,
        /// Which limit forbids it, and what to do.
        reason: String,
    },
    /// The file system of the sockets is full.
    #[error(
        "no space left in {path}; remove files there, or mount it larger (mount -o \
         remount,size=…,nr_inodes=…)"
    )]
    NoSpace {
        /// The folder.
        path: PathBuf,
    },
    /// The folder belongs to someone else, or is open to others.
    #[error("no permission for {path}: {reason}")]
    NoPermission {
        /// The folder or socket.
        path: PathBuf,
        /// The owner or the fault, and what to do.
        reason: String,
    },
    /// Two endpoints of a topic do not agree on its type.
    #[error(
        "topic {topic:?} carries {theirs} (process {pid}), not {ours}; use the same type on both \
         sides (a struct: the same names, types and order of all fields), or another topic name"
    )]
    TypeMismatch {
        /// The topic's name.
        topic: String,
        /// This endpoint's type, with its layout hash.
        ours: String,
        /// The other endpoint's type, with its layout hash.
        theirs: String,
        /// The other endpoint's process.
        pid: u32,
    },
    /// A segment or a peer has another version of the layout.
    #[error(
        "the other side uses shared-memory layout {theirs}, this program {ours}; build both with \
         the same version of Myelin"
    )]
    LayoutVersion {
        /// This library's version of the layout.
        ours: u64,
        /// The other side's version.
        theirs: u64,
    },
    /// A peer wrote invalid data; it has been disconnected.
    #[error("a peer's shared memory or message is corrupt ({what}); it has been disconnected")]
    PeerCorrupt {
        /// What was invalid.
        what: &'static str,
    },
    /// The subscriber already holds as many samples as it may.
    #[error(
        "topic {topic:?}: this subscriber already holds {held} samples, its limit; drop some before \
         taking more, or raise held_max"
    )]
    TooManyHeld {
        /// The topic's name.
        topic: String,
        /// The limit.
        held: u32,
    },
    /// The publisher already has as many loans as it may.
    #[error(
        "topic {topic:?}: this publisher already has {loans} loans out, its limit; publish or drop \
         some first, or raise loans_max"
    )]
    TooManyLoans {
        /// The topic's name.
        topic: String,
        /// The limit.
        loans: u32,
    },
    /// A publisher with `reliable_or_fail` waited too long for a subscriber.
    #[error(
        "topic {topic:?}: subscriber {subscriber:#x} (process {pid}) has not read for {waited:?} \
         and the depth is full; it is too slow or stopped: raise depth or the time limit, make it \
         best effort, or skip slow subscribers (reliable instead of reliable_or_fail)"
    )]
    ReliableTimeout {
        /// The topic's name.
        topic: String,
        /// The slowest subscriber's endpoint id.
        subscriber: u64,
        /// Its process.
        pid: u32,
        /// The time limit.
        waited: Duration,
    },
    /// The service has no server.
    #[error(
        "service {service:?}: no server {}; start one, wait longer, or check whether it is in \
         another domain or folder{reason}",
        if waited.is_zero() { "now".to_owned() } else { format!("within {waited:?}") }
    )]
    NoServer {
        /// The service's name.
        service: String,
        /// How long the call waited.
        waited: Duration,
        /// Why an existing server cannot be used, if there is one.
        reason: String,
    },
    /// The server of a call has left or died.
    #[error(
        "service {service:?}: the server ended before it replied; it may or may not have carried \
         out the request: send it again only if that is safe"
    )]
    ServerGone {
        /// The service's name.
        service: String,
    },
    /// The server dropped a request without a reply.
    #[error("service {service:?}: the server dropped the request without a reply; see its log")]
    NoReply {
        /// The service's name.
        service: String,
    },
    /// The reply to a call has not come in time.
    #[error(
        "service {service:?}: no reply within {waited:?}; the server is slow or stopped: allow \
         more time, or check it"
    )]
    ReplyTimeout {
        /// The service's name.
        service: String,
        /// The time limit.
        waited: Duration,
    },
    /// A setting is out of range.
    #[error("{}{field} is {value}: {remedy}", of_topic(topic.as_deref()))]
    Setting {
        /// The topic's name, if it is a setting of a topic.
        topic: Option<String>,
        /// The field.
        field: &'static str,
        /// What it was set to.
        value: String,
        /// The allowed values.
        remedy: &'static str,
    },
    /// A table is full.
    #[error("{}{what}: at most {limit}", of_topic(topic.as_deref()))]
    TooMany {
        /// The topic's name, if it is a table of a topic.
        topic: Option<String>,
        /// The contents of the table.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// This process already has as many open files as it may.
    #[error(
        "too many open files: process {} may have {} (RLIMIT_NOFILE); raise it (ulimit -n, \
         LimitNOFILE=)",
        std::process::id(),
        descriptor::limit()
    )]
    TooManyFiles,
    /// The host lacks a feature, or one of its limits is reached: `docs/reference/limits.md`.
    #[error("{doing}: {reason}")]
    Host {
        /// The action that failed.
        doing: &'static str,
        /// What is missing, where, and what to do.
        reason: String,
    },
    /// The latency guard is not available.
    #[error("the latency guard cannot hold /dev/cpu_dma_latency at 0 µs ({source}); {remedy}")]
    LatencyGuard {
        /// What to do.
        remedy: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The handle was made before a `fork`, and this is the child.
    #[error("this handle belongs to the parent process; open a node of the child's own after fork")]
    Forked,
    /// The object was closed, by this thread or another one.
    #[error("this {what} is closed; make another one")]
    Closed {
        /// The kind of object.
        what: &'static str,
    },
    /// The network to other hosts failed.
    #[error("{doing}: {reason}")]
    Network {
        /// The action that failed.
        doing: &'static str,
        /// The cause, and what to do.
        reason: String,
    },
    /// Any other failure of the operating system.
    #[error("{doing}: {source}")]
    System {
        /// The action that failed.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Error {
    /// An error of the operating system while `doing` something.
    pub fn system(doing: &'static str, error: impl Into<std::io::Error>) -> Self {
        let source = error.into();
        match source.raw_os_error() {
            Some(libc::EMFILE) => Error::TooManyFiles,
            _ => Error::System { doing, source },
        }
    }
}

fn of_topic(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("topic {name:?}: "))
}
