//! A session with Zenoh, and the number of processes at the other end.
//!
//! A publisher's matching status says whether there is a subscriber, but not how many, and a
//! subscriber gets no information about publishers. So each process declares a liveliness token
//! after everything else. Zenoh delivers declarations in order, so a process that sees the token
//! has seen the rest.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::{Error, clock};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::sample::SampleKind;
use zenoh::{Session, Wait};

use crate::config::{self, Endpoints};
use crate::{Variant, meet};

/// A session that has not matched yet.
pub struct Peer<'a> {
    /// Must be kept as long as anything declared on it.
    pub session: Session,
    prepare: &'a Prepare,
    variant: &'a Variant,
    until_ns: u64,
    /// The gate for shared memory, held until all of this process's segments exist.
    gate: Cell<Option<File>>,
}

/// Keeps this process visible to the other end.
pub struct Presence {
    _token: LivelinessToken,
    _others: Subscriber<()>,
}

impl<'a> Peer<'a> {
    /// Opens the session of `prepare.role`: pong listens, ping connects to all pongs.
    pub fn open(prepare: &'a Prepare, variant: &'a Variant) -> Result<Self, Error> {
        meet::clean()?;
        meet::leave_nothing();
        let until_ns = prepare.match_until_ns();
        let mut endpoints = Endpoints::default();
        if prepare.role == Role::Ping {
            for index in 0..prepare.subscribers {
                let endpoint = match &prepare.network {
                    Some(network) => Some(variant.endpoint(network.peer_at(index as u16))),
                    None => meet::ask(prepare, index, until_ns)?,
                };
                let endpoint = endpoint.ok_or_else(|| absent(prepare, index as usize))?;
                endpoints.connect.push(endpoint);
            }
        } else {
            endpoints.listen.push(match (&prepare.network, variant.shared_memory) {
                (Some(network), _) => variant.endpoint(network.own_at(prepare.index as u16)),
                (None, true) => {
                    format!("unixsock-stream/{}", meet::socket_path(prepare).display())
                }
                (None, false) => variant.endpoint((Ipv4Addr::LOCALHOST, 0).into()),
            });
        }
        let config = config::of(prepare, variant.shared_memory, &endpoints);
        let gate = Cell::new(variant.shared_memory.then(meet::gate).transpose()?);
        let session = zenoh::open(config::parse(&config)?).wait();
        let session = session.map_err(|error| failed("open its session", error))?;
        if prepare.role != Role::Ping && prepare.network.is_none() {
            // The port is known now.
            let locators = session.info().locators().wait();
            endpoints.listen = locators.iter().map(ToString::to_string).collect();
            let endpoint = endpoints.listen.first().cloned();
            let endpoint =
                endpoint.ok_or_else(|| Error::new("Zenoh does not listen on any address"))?;
            meet::tell(prepare, endpoint)?;
        }
        let config = config::of(prepare, variant.shared_memory, &endpoints);
        config::write(prepare, &config)?;
        Ok(Peer { session, prepare, variant, until_ns, gate })
    }

    /// Declares the token and returns when all others have declared theirs. Must come after
    /// everything that uses shared memory.
    pub fn matched(&self, publishers: &[Publisher<'_>]) -> Result<Presence, Error> {
        drop(self.gate.take());
        let prepare = self.prepare;
        let expected = prepare.others() as usize;
        let (own, other) = match prepare.role {
            Role::Ping => (PING, PONG),
            _ => (PONG, PING),
        };
        let seen = Arc::new((Mutex::new(BTreeSet::new()), Condvar::new()));
        let theirs = Arc::clone(&seen);
        let liveliness = self.session.liveliness();
        let others = liveliness
            .declare_subscriber(key(prepare, other, "*"))
            .history(true)
            .callback(move |sample| {
                let name = sample.key_expr().to_string();
                let mut names = theirs.0.lock().unwrap_or_else(PoisonError::into_inner);
                match sample.kind() {
                    SampleKind::Put => names.insert(name),
                    SampleKind::Delete => names.remove(&name),
                };
                theirs.1.notify_one();
            })
            .wait()
            .map_err(|error| failed("watch for the other end", error))?;
        let token = liveliness
            .declare_token(key(prepare, own, prepare.index))
            .wait()
            .map_err(|error| failed("announce itself", error))?;
        let mut names = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        while names.len() < expected || !have_subscribers(publishers, expected)? {
            let left_ns = self.until_ns.saturating_sub(clock::monotonic_ns());
            if left_ns == 0 {
                return Err(absent(prepare, names.len()));
            }
            let limit = Duration::from_nanos(left_ns).min(LOOK_AGAIN);
            let waited = seen.1.wait_timeout(names, limit);
            names = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(names);
        self.check_transport()?;
        Ok(Presence { _token: token, _others: others })
    }

    /// Checks the transport: Zenoh silently falls back to the socket if the two do not agree on
    /// shared memory.
    fn check_transport(&self) -> Result<(), Error> {
        if !self.variant.shared_memory {
            return Ok(());
        }
        meet::remove_socket(&meet::socket_path(self.prepare))?;
        // Outside of Tokio, Zenoh 1.10 panics here with the low-latency transport.
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
        let _inside = tokio.enter();
        match self.session.info().transports().wait().all(|transport| transport.is_shm()) {
            true => Ok(()),
            false => Err(Error::new("Zenoh does not use shared memory with the other side")
                .remedy("check the room in /dev/shm and `ulimit -l`")),
        }
    }
}

/// The key expression of `what` in this run.
pub fn key(prepare: &Prepare, what: &str, index: impl std::fmt::Display) -> String {
    format!("myelin/{}/{}/{what}/{index}", prepare.system, prepare.run)
}

/// Whether all publishers have subscribers, by Zenoh's matching status; true if none are expected.
fn have_subscribers(publishers: &[Publisher<'_>], expected: usize) -> Result<bool, Error> {
    for publisher in publishers {
        let status = publisher.matching_status().wait();
        let status = status.map_err(|error| failed("read its matching status", error))?;
        if expected > 0 && !status.matching() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The error if too few processes have come.
fn absent(prepare: &Prepare, found: usize) -> Error {
    let (who, expected) = (if prepare.role == Role::Ping { PONG } else { PING }, prepare.others());
    let seconds = prepare.match_timeout_ns as f64 * 1e-9;
    let text = match expected {
        1 => format!("{who} did not connect within {seconds} s"),
        _ => format!("{found} of {expected} {who}s connected within {seconds} s"),
    };
    Error::new(text).remedy(format!("see {who}'s log in the results folder"))
}

/// The error of a call of Zenoh.
pub fn failed(what: &str, error: impl std::fmt::Display) -> Error {
    Error::new(format!("Zenoh could not {what}: {error}"))
}

const PING: &str = "ping";
const PONG: &str = "pong";
/// A change wakes the thread; this only limits the cost of a missed one.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
