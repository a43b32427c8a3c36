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
        let two_processes = System {
            name: "synthetic".into(),
            about: "delivers with the delays and faults that [options.synthetic] states".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            wait: Wait::None,
            transport: Transport::None,
            topology: Topology::TwoProcesses,
            loans: false,
            daemon: false,
            missing: None,
            payload_bytes_max: 0,
            across_hosts: true,
            floor: false,
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
                reliability: vec![Reliability::BestEffort, Reliability::Reliable],
                subscribers_max: 0,
                topics_max: 0,
                ..Streams::default()
            },
        };
        let one_process = System {
            name: CALLS.into(),
            about: "the same within one process, by calling a function".into(),
            wait: Wait::Callback,
            topology: Topology::OneProcess,
            across_hosts: false,
            workloads: stream::CALL_WORKLOADS.to_vec(),
            streams: Streams {
                reliability: two_processes.streams.reliability.clone(),
                ..Streams::default()
            },
            ..two_processes.clone()
        };
        vec![two_processes, one_process]
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
            across::check(&options, prepare)?;
            return across::open(options, prepare, network);
        }
        if prepare.role == Role::Ping {
            return Ok(Box::new(simulate::open(options, prepare)));
        }
        Ok(Box::new(Link::new(Mute, Silence)))
    }

    fn open_publish(&self, prepare: &Prepare) -> Result<Fan, Error> {
        self.check(prepare)?;
        let options = Options::of(prepare)?;
        Ok(fan::open(&options, prepare))
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        self.check(prepare)?;
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

/// The system in one process.
const CALLS: &str = "synthetic.call";
