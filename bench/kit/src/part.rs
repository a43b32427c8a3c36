//! The parts of a measuring process, by workload, role and topology: what it opens and runs.

use std::sync::atomic::AtomicBool;

use crate::callback_pong::CallbackPong;
use crate::calls::Audience;
use crate::check::check;
use crate::copies::Streaming;
use crate::driver::{Answerer, Driver, Fan, RoundTrip, Stream};
use crate::error::Error;
use crate::fan;
use crate::flood::Flood;
use crate::one_process::OneProcess;
use crate::protocol::{Done, Prepare, Role, Topology, Workload};
use crate::samples::SampleFile;
use crate::startup::{self, Started};
use crate::stream::{StreamPublisher, StreamSubscriber};

/// Remarks for the report on this process.
pub(crate) fn notes(prepare: &Prepare) -> Vec<String> {
    match prepare.workload == Workload::Image && Streaming::best() == Streaming::Memcpy {
        true => vec!["no streaming stores here: both copies of a frame are memcpy".into()],
        false => Vec::new(),
    }
}

/// The ends that the driver has opened, matched.
pub(crate) enum Opened {
    RoundTrip(Box<dyn RoundTrip>),
    Answerer(Answerer),
    Fan(Fan),
    Stream(Stream),
}

impl Opened {
    pub(crate) fn new(driver: &dyn Driver, prepare: &Prepare) -> Result<Self, Error> {
        let is_one_process = check(driver, prepare)?.topology == Topology::OneProcess;
        match prepare.workload {
            Workload::Roundtrip if prepare.role == Role::Pong => {
                match driver.open_answerer(prepare)? {
                    Some(answerer) => Ok(Opened::Answerer(answerer)),
                    None => driver.open(prepare).map(Opened::RoundTrip),
                }
            }
            Workload::Roundtrip => driver.open(prepare).map(Opened::RoundTrip),
            Workload::Publish if !is_one_process => driver.open_publish(prepare).map(Opened::Fan),
            Workload::Publish => driver.open_stream(prepare).map(Opened::Stream),
            _ => driver.open_stream(prepare).map(Opened::Stream),
        }
    }
}

/// A part with everything it needs. It stays until the lab stops the process, so that the lab
/// observes the state of the run.
pub(crate) enum Part {
    RoundTrip(Box<dyn RoundTrip>, SampleFile),
    CallbackPong(Box<CallbackPong>),
    Fan(Fan, SampleFile),
    Audience(Audience, SampleFile),
    StreamPublisher(StreamPublisher, SampleFile),
    StreamSubscriber(Box<StreamSubscriber>),
    Flood(Box<Flood>, SampleFile),
    Started(Started),
    OneProcess(Box<OneProcess>, SampleFile),
}

impl Part {
    pub(crate) fn new(
        opened: Opened,
        prepare: &Prepare,
        samples: SampleFile,
    ) -> Result<Self, Error> {
        let is_one_process = |stream: &Stream| !stream.receivers.is_empty();
        Ok(match opened {
            Opened::RoundTrip(ends) => Part::RoundTrip(ends, samples),
            Opened::Answerer(answerer) => {
                Part::CallbackPong(Box::new(CallbackPong::new(answerer, prepare, samples)))
            }
            Opened::Fan(fan) => Part::Fan(fan, samples),
            Opened::Stream(stream) if prepare.workload == Workload::Publish => {
                Part::Audience(Audience::new(stream, prepare)?, samples)
            }
            Opened::Stream(stream) if prepare.workload == Workload::Startup => {
                Part::Started(startup::start(stream, prepare, &samples)?)
            }
            Opened::Stream(stream) if prepare.role != Role::Ping => {
                Part::StreamSubscriber(Box::new(StreamSubscriber::new(stream, prepare, samples)?))
            }
            Opened::Stream(stream) if is_one_process(&stream) => {
                Part::OneProcess(Box::new(OneProcess::new(stream, prepare)?), samples)
            }
            Opened::Stream(stream) if prepare.workload == Workload::Flood => {
                Part::Flood(Box::new(Flood::new(stream, prepare)?), samples)
            }
            Opened::Stream(stream) => {
                Part::StreamPublisher(StreamPublisher::new(stream, prepare)?, samples)
            }
        })
    }

    /// When the first message of a start-up arrived; 0 for other workloads.
    pub(crate) fn first_ns(&self) -> u64 {
        match self {
            Part::Started(started) => started.first_ns,
            _ => 0,
        }
    }

    pub(crate) fn run(
        &mut self,
        prepare: &Prepare,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        match self {
            Part::RoundTrip(ends, samples) if prepare.role == Role::Ping => {
                ends.ping(prepare, samples, start_ns, stop)
            }
            Part::RoundTrip(ends, samples) => ends.pong(prepare, samples, stop),
            Part::CallbackPong(pong) => pong.run(stop),
            Part::Fan(fan, samples) if prepare.role == Role::Ping => {
                fan::ping(fan, prepare, samples, start_ns, stop)
            }
            Part::Fan(fan, _) => fan::pong(fan, prepare, stop),
            Part::Audience(audience, samples) => audience.run(prepare, samples, start_ns, stop),
            Part::StreamPublisher(publisher, samples) => {
                publisher.run(prepare, samples, start_ns, stop)
            }
            Part::StreamSubscriber(subscriber) => subscriber.run(start_ns, stop),
            Part::Flood(flood, samples) => flood.run(prepare, samples, start_ns, stop),
            Part::Started(started) => Ok(started.done(prepare.role)),
            Part::OneProcess(both, samples) => both.run(prepare, samples, start_ns, stop),
        }
    }
}
