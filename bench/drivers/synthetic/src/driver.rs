//! The driver's two systems.

use myelin_bench_kit::protocol::{
    Prepare, Reliability, Role, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Clock, Driver, Error, Fan, Link, RoundTrip, Stream};

use crate::options::Options;
use crate::simulate::{self, Mute, Silence};
use crate::{across, fan, stream};

/// The driver of the simulated middleware.
pub struct Synthetic;

impl Driver for Synthetic {
    fn systems(&self) -> Vec<System> {
        let reliability = || vec![Reliability::BestEffort, Reliability::Reliable];
        let about = "delivers with the delays and faults that [options.synthetic] states";
        let two_processes = System {
            across_hosts: true,
            workloads: vec![
                Workload::Roundtrip,
                Workload::Publish,
                Workload::Stream,
                Workload::Image,
                Workload::Replay,
            ],
            // Pong knows one publisher's schedule; each pong works by itself, with any number of
            // topics. Nothing is lost or blocked unless the options ask for it.
            streams: Streams {
                reliability: reliability(),
                subscribers_max: 0,
                topics_max: 0,
                ..Streams::default()
            },
            ..System::new("synthetic", about, VERSION, Wait::None, Transport::None)
        };
        let about = "the same within one process, by calling a function";
        let one_process = System {
            topology: Topology::OneProcess,
            workloads: vec![Workload::Stream, Workload::Image, Workload::Publish],
            streams: Streams { reliability: reliability(), ..Streams::default() },
            ..System::new(CALLS, about, VERSION, Wait::Callback, Transport::None)
        };
        vec![two_processes, one_process]
    }

    /// The options say themselves what is wrong with a key.
    fn has_option(&self, _key: &str) -> bool {
        true
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        let options = Options::of(prepare)?;
        if prepare.network.is_some() {
            return across::check(&options, prepare);
        }
        match prepare.workload {
            Workload::Roundtrip => Ok(()),
            Workload::Publish => fan::check(&options, prepare),
            _ if prepare.system == CALLS => Ok(()),
            _ => stream::check(&options),
        }
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        let options = Options::of(prepare)?;
        if let Some(network) = &prepare.network {
            return across::open(options, prepare, network);
        }
        if prepare.role == Role::Ping {
            return Ok(Box::new(simulate::open(options, prepare)));
        }
        Ok(Box::new(Link::new(Mute, Silence)))
    }

    fn open_publish(&self, prepare: &Prepare) -> Result<Fan, Error> {
        let options = Options::of(prepare)?;
        Ok(fan::open(&options, prepare))
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let options = Options::of(prepare)?;
        if let Some(network) = &prepare.network {
            return across::open_stream(&options, prepare, network);
        }
        Ok(match prepare.system == CALLS {
            true => stream::open_calls(&options, prepare),
            false => stream::open(&options, prepare)?,
        })
    }

    fn clock(&self, prepare: &Prepare) -> Result<Clock, Error> {
        match prepare.network {
            Some(_) => Options::of(prepare)?.clock_across(prepare),
            None => Ok(Clock::Monotonic),
        }
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The system in one process.
const CALLS: &str = "synthetic.call";
