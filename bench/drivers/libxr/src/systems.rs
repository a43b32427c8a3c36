//! The systems of this driver and what the kit calls.

use myelin_bench_kit::protocol::{
    Prepare, Role, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Clock, Driver, Error, Receiver, RoundTrip, Stream};

use crate::ends::Topic;
use crate::link::{self, Table};

/// The driver of LibXR's topics.
pub struct LibXr;

impl Driver for LibXr {
    fn systems(&self) -> Vec<System> {
        VARIANTS.iter().map(Variant::system).collect()
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        Variant::of(prepare)?.check(prepare).map(drop)
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(format!("{}: one process, so no round trips", prepare.system))
            .remedy("leave the system out of plan.systems"))
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let variant = Variant::of(prepare)?;
        let table = variant.check(prepare)?;
        if prepare.role != Role::Ping {
            let name = variant.name;
            return Err(Error::new(format!("{name}: ping has both ends; there is no other role")));
        }
        if !link::is_ready() {
            return Err(Error::new("LibXR's clock is not set up"));
        }
        let topic = Topic::create(table, &prepare.run)?;
        let receiver = |_| match variant.wait {
            Wait::Callback => Ok(Receiver::Calls(Box::new(topic.callback()))),
            _ => Ok(Receiver::Takes(Box::new(topic.waiting()?))),
        };
        let receivers = (0..prepare.subscribers).map(receiver).collect::<Result<_, Error>>()?;
        let publisher = Some(Box::new(topic.publisher()?) as Box<_>);
        Ok(Stream { publisher, receivers, clock: Clock::Monotonic })
    }
}

/// A way to receive that is a system of its own.
struct Variant {
    name: &'static str,
    about: &'static str,
    wait: Wait,
    workloads: &'static [Workload],
}

const VARIANTS: [Variant; 2] = [
    Variant {
        name: "libxr.callback",
        about: "LibXR topic, own object published by reference, callback in the publisher's thread",
        wait: Wait::Callback,
        workloads: &[Workload::Stream, Workload::Image, Workload::Publish],
    },
    Variant {
        name: "libxr.sync",
        about: "LibXR topic, own object published, copied to a SyncSubscriber in another thread",
        wait: Wait::Block,
        workloads: &[Workload::Stream, Workload::Image],
    },
];

impl Variant {
    fn of(prepare: &Prepare) -> Result<&'static Self, Error> {
        let found = VARIANTS.iter().find(|variant| variant.name == prepare.system);
        found.ok_or_else(|| Error::new(format!("libxr has no system `{}`", prepare.system)))
    }

    fn system(&self) -> System {
        let largest = link::tables().last().map_or(0, |table| table.payload_bytes);
        System {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            version: link::version().to_owned(),
            wait: self.wait,
            transport: Transport::Process,
            topology: Topology::OneProcess,
            // The publisher's own object, which LibXR passes on by reference.
            loans: true,
            daemon: false,
            missing: link::missing().map(str::to_owned),
            payload_bytes_max: largest as u64,
            across_hosts: false,
            floor: false,
            workloads: self.workloads.to_vec(),
            streams: Streams::default(),
        }
    }

    /// Whether this can run; the table for the size of its messages.
    fn check(&self, prepare: &Prepare) -> Result<&'static Table, Error> {
        if let Some(missing) = link::missing() {
            return Err(Error::new(missing));
        }
        if let Some(key) = prepare.options.keys().next() {
            return Err(Error::new(format!("libxr has no options, so no `{key}`")).key(key));
        }
        if !self.workloads.contains(&prepare.workload) {
            let (name, workload) = (self.name, prepare.workload.name());
            return Err(Error::new(format!("{name} cannot run the workload {workload}"))
                .remedy("leave the system out of plan.systems"));
        }
        table_for(self.name, prepare.payload_bytes)
    }
}

/// A topic carries one C++ type, so that the sizes are those the adaptor was compiled with.
fn table_for(name: &str, payload_bytes: u64) -> Result<&'static Table, Error> {
    let tables = link::tables();
    let found = tables.iter().find(|table| table.payload_bytes as u64 == payload_bytes);
    found.ok_or_else(|| {
        let sizes: Vec<_> = tables.iter().map(|table| table.payload_bytes.to_string()).collect();
        let sizes = sizes.join(", ");
        Error::new(format!("{name}: no type of {payload_bytes} B of payload was compiled in"))
            .remedy(format!("choose one of {sizes}; or add it to bench/drivers/libxr/src/link.cpp"))
    })
}
