//! The driver's one system.

use myelin_bench_kit::protocol::{Prepare, Role, System, Transport, Wait, Workload};
use myelin_bench_kit::{Clock, Driver, Error, Fan, Link};

use crate::fan;
use crate::options::Options;
use crate::simulate::{self, Mute, Silence};

/// The driver of the middleware that does not exist.
pub struct Synthetic;

impl Driver for Synthetic {
    fn systems(&self) -> Vec<System> {
        vec![System {
            name: "synthetic".into(),
            about: "delivers with the delays and faults that [options.synthetic] states".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            wait: Wait::None,
            transport: Transport::None,
            topology: Default::default(),
            loans: false,
            daemon: false,
            missing: None,
            payload_bytes_max: 0,
            floor: false,
            workloads: vec![Workload::Roundtrip, Workload::Publish],
        }]
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        let options = Options::of(prepare)?;
        match prepare.workload {
            Workload::Roundtrip => Ok(()),
            Workload::Publish => fan::check(&options, prepare),
            Workload::Stream | Workload::Image => Err(Error::new("not yet")),
        }
    }

    fn open(&self, prepare: &Prepare) -> Result<Link, Error> {
        let options = Options::of(prepare)?;
        if prepare.role == Role::Ping {
            return Ok(simulate::open(options, prepare));
        }
        let (publisher, subscriber) = (Box::new(Mute), Box::new(Silence));
        Ok(Link { publisher, subscriber, clock: Clock::Monotonic })
    }

    fn open_publish(&self, prepare: &Prepare) -> Result<Fan, Error> {
        let options = Options::of(prepare)?;
        fan::check(&options, prepare)?;
        Ok(fan::open(&options, prepare))
    }
}
