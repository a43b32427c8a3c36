//! The samples of one type of a topic.

use std::time::Duration;

use myelin::{EndpointInfo, Graph, Node, ObservedSample, Observer, Subscriber, WaitSet};

use super::line::{Columns, Meta, Writer};
use super::{Options, is_same};
use crate::Error;
use crate::document::Format;
use crate::ros;
use crate::text::{counted, printable};

/// Reads a topic.
#[derive(Debug)]
pub(super) struct Source {
    /// The name for people, with nothing that a terminal obeys.
    pub(super) name: String,
    pub(super) type_name: String,
    endpoint: EndpointInfo,
    pub(super) format: Format,
    columns: Columns,
    input: Input,
    /// When the next sample may be shown.
    due_ns: u64,
    /// Samples that were shown.
    pub(super) shown: u64,
    taken: u64,
    /// Samples that were overwritten before they were taken.
    overwritten: u64,
    /// Samples without a payload.
    gone: u64,
    /// Of both, since the last sample that was shown.
    missed_before: u64,
}

pub(super) struct Settings {
    pub(super) format: Format,
    pub(super) columns: Columns,
    /// Of the topic's publishers.
    pub(super) depth: u32,
    pub(super) history: u32,
}

enum Input {
    Observer { observer: Observer<[u8]>, sample: Box<ObservedSample<[u8]>> },
    Subscriber(Box<Subscriber<[u8]>>),
}

impl Source {
    /// Takes part in the wait set if there is one, and looks otherwise.
    pub(super) fn open(
        node: &Node,
        graph: &Graph,
        endpoint: &EndpointInfo,
        settings: Settings,
        wait_set: Option<&WaitSet>,
    ) -> Result<Source, Error> {
        let Settings { format, columns, depth, history } = settings;
        let topic = ros::any_topic(node, endpoint, graph)?.topic();
        let topic = topic.depth(depth.clamp(1, DEPTH_MAX)).transient_local(history.min(depth));
        let input = match wait_set {
            None => Input::Observer { observer: topic.observer()?, sample: Box::default() },
            Some(set) => {
                let subscriber =
                    topic.subscriber_builder().publishers_max(PUBLISHERS_MAX).open()?;
                set.add(&subscriber)?;
                Input::Subscriber(Box::new(subscriber))
            }
        };
        Ok(Source {
            name: printable(ros::topic_name(endpoint)).into_owned(),
            type_name: ros::type_name(endpoint).into_owned(),
            endpoint: endpoint.clone(),
            format,
            columns,
            input,
            due_ns: 0,
            shown: 0,
            taken: 0,
            overwritten: 0,
            gone: 0,
            missed_before: 0,
        })
    }

    /// Whether it reads the samples of an endpoint.
    pub(super) fn is_of(&self, endpoint: &EndpointInfo) -> bool {
        is_same(&self.endpoint, endpoint)
    }

    pub(super) fn is_of_topic(&self, endpoint: &EndpointInfo) -> bool {
        self.endpoint.topic == endpoint.topic
    }

    /// Appends the text of what has come, a bounded number of samples.
    pub(super) fn read(
        &mut self,
        writer: &mut Writer,
        options: &Options,
        to: &mut String,
    ) -> Result<(), Error> {
        for _ in 0..BATCH {
            if to.len() > TEXT_BYTES || options.count.is_some_and(|it| self.shown >= it) {
                return Ok(());
            }
            let is_due = match options.every {
                Some(_) => myelin::now() >= self.due_ns,
                None => true,
            };
            if !self.take(is_due, writer, options, to)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes a sample; false if there is none.
    fn take(
        &mut self,
        is_due: bool,
        writer: &mut Writer,
        options: &Options,
        to: &mut String,
    ) -> Result<bool, Error> {
        let held;
        let (mut meta, payload) = match &mut self.input {
            Input::Observer { observer, .. } if !is_due => {
                let Some(header) = observer.take_header()? else { return Ok(false) };
                self.overwritten += header.overwritten_before;
                self.missed_before += header.overwritten_before;
                self.taken += 1;
                return Ok(true);
            }
            Input::Observer { observer, sample } => {
                if !observer.take_into(sample)? {
                    return Ok(false);
                }
                let header = sample.header();
                self.overwritten += header.overwritten_before;
                self.missed_before += header.overwritten_before;
                let meta = Meta {
                    publisher: header.publisher,
                    sequence: header.sequence,
                    published_ns: header.published_ns,
                    missed_before: 0,
                };
                (meta, sample.as_bytes())
            }
            Input::Subscriber(subscriber) => {
                let Some(sample) = subscriber.take()? else { return Ok(false) };
                self.overwritten += sample.lost_before();
                self.missed_before += sample.lost_before();
                let meta = Meta {
                    publisher: sample.publisher(),
                    sequence: sample.sequence(),
                    published_ns: sample.published_at().unwrap_or(0),
                    missed_before: 0,
                };
                held = sample;
                (meta, is_due.then_some(&held[..]))
            }
        };
        self.taken += 1;
        if !is_due {
            return Ok(true);
        }
        let Some(payload) = payload else {
            self.gone += 1;
            self.missed_before += 1;
            return Ok(true);
        };
        let (name, number) = (&self.name, meta.sequence);
        let broken = |error: String| {
            Error::Failed(format!("{name}, sample {number}: {}", printable(&error)))
        };
        let document = self.format.read(payload).map_err(broken)?;
        if let Some(filter) = &options.filter
            && !filter.holds(&document).map_err(|error| broken(error.to_string()))?
        {
            return Ok(true);
        }
        meta.missed_before = self.missed_before;
        let written = writer.write(&self.name, &meta, &document, &self.columns, to);
        written.map_err(|error| broken(error.to_string()))?;
        self.missed_before = 0;
        self.shown += 1;
        if let Some(every) = options.every {
            self.due_ns = myelin::now() + every.as_nanos() as u64;
        }
        Ok(true)
    }

    /// How long to wait before the next look.
    pub(super) fn interval(&self) -> Duration {
        match &self.input {
            Input::Observer { observer, .. } => observer.interval(),
            Input::Subscriber(_) => Duration::MAX,
        }
    }

    pub(super) fn wait(&mut self, limit: Duration) -> Result<(), Error> {
        match &mut self.input {
            Input::Observer { observer, .. } => observer.wait(limit)?,
            Input::Subscriber(subscriber) => subscriber.wait(limit)?,
        };
        Ok(())
    }

    /// What was missed, in a sentence.
    pub(super) fn missed(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.gone > 0 {
            parts.push(format!(
                "{} of {} without payload, which was gone before it was read (--subscribe keeps it)",
                self.gone,
                counted(self.taken, "sample")
            ));
        }
        if self.overwritten > 0 {
            parts
                .push(format!("missed {} that came too fast", counted(self.overwritten, "sample")));
        }
        (!parts.is_empty()).then(|| format!("{}: {}", self.name, parts.join("; ")))
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Input::Observer { .. } => "Observer",
            Input::Subscriber(_) => "Subscriber",
        })
    }
}

/// Of one topic at a time, so that none starves the others.
const BATCH: usize = 256;
/// Text that is printed before more is read.
const TEXT_BYTES: usize = 1 << 20;
const DEPTH_MAX: u32 = 65_535;
/// Of a subscriber.
const PUBLISHERS_MAX: u32 = 4096;
