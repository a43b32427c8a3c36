//! Writes what was taken: the thread that may wait for the disk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use myelin::{Clock, EndpointId, Sample};

use super::buffer::Taken;
use super::losses;
use super::output::{Message, Output};
use super::status::{End, Shared, TopicState};
use crate::error::WriteError;
use crate::format::Metadata;
use crate::names::{LOSSES, RECORDING, REPEATED};
use crate::recorded_losses::RecordedLosses;

/// Writes to an output until the buffer is closed and empty.
pub(super) struct Writing<O: Output> {
    output: O,
    shared: Arc<Shared>,
    topics: Vec<Arc<TopicState>>,
    /// The losses that the recording has, by topic.
    recorded: Vec<RecordedLosses>,
    /// What late subscribers would get, by topic: it begins the next part.
    latched: BTreeMap<usize, Latched>,
    /// So many messages end the recording.
    messages_max: Option<u64>,
    messages: u64,
    begin_ns: u64,
    /// The number of the part.
    part: u64,
    /// The records that the part has.
    records: Records,
    losses_sequence: u32,
    /// Whether the output has lost something since its losses were looked at.
    has_lost: bool,
    /// For what a message has besides its sample.
    scratch: Vec<u8>,
    flushed: Instant,
    looked: Instant,
}

type Records = Vec<(&'static str, Metadata)>;

/// The latched samples of a topic, by publisher.
#[derive(Default)]
struct Latched {
    publishers: BTreeMap<EndpointId, VecDeque<Kept>>,
    count: usize,
}

/// What has become of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    /// It was given to the output, which counts it if it is lost.
    Given,
    /// The output had no room for it.
    Behind,
}

struct Kept {
    publish_ns: u64,
    sample: Sample<[u8]>,
}

impl<O: Output> Writing<O> {
    pub(super) fn new(output: O, shared: Arc<Shared>, messages_max: Option<u64>) -> Writing<O> {
        let now = Instant::now();
        Writing {
            output,
            shared,
            topics: Vec::new(),
            recorded: Vec::new(),
            latched: BTreeMap::new(),
            messages_max,
            messages: 0,
            begin_ns: Clock::system().now(),
            part: 0,
            records: Records::new(),
            losses_sequence: 0,
            has_lost: false,
            scratch: Vec::new(),
            flushed: now,
            looked: now,
        }
    }

    /// To the end of the recording; the output is complete then.
    pub(super) fn run(mut self) {
        let mut taken = Vec::new();
        loop {
            self.add_topics();
            let is_open = self.shared.buffer.pop(&mut taken, LOOK_INTERVAL);
            // Those of these samples.
            self.add_topics();
            for taken in taken.drain(..) {
                self.write(&taken);
                self.shared.buffer.release(&taken);
                if self.looked.elapsed() >= LOOK_INTERVAL {
                    self.look();
                }
            }
            if !is_open {
                break;
            }
            if self.looked.elapsed() >= LOOK_INTERVAL {
                self.look();
            }
        }
        self.finish_part();
        self.shared.set_progress(self.output.progress());
    }

    fn add_topics(&mut self) {
        for state in self.shared.topics_from(self.topics.len()) {
            if let Err(error) = self.output.add_topic(&state.topic) {
                self.failed(&error);
            }
            self.topics.push(state);
            self.recorded.push(RecordedLosses::default());
        }
    }

    fn write(&mut self, taken: &Taken) {
        let state = self.topics[taken.topic].clone();
        if Some(self.messages) == self.messages_max {
            state.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.shared.is_discarding.load(Ordering::Relaxed) {
            state.recorder.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let bytes = taken.sample.as_bytes();
        if self.output.is_part_due(taken.log_ns, bytes.len() as u64) {
            self.next_part(taken.log_ns);
        }
        self.messages += 1;
        state.given.fetch_add(1, Ordering::Relaxed);
        state.given_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        // The file has the lower half of the number.
        let sequence = taken.sample.sequence() as u32;
        let Taken { topic, log_ns, publish_ns, .. } = *taken;
        let times = (log_ns, publish_ns);
        if self.put(&state, (topic, sequence), times, &taken.sample, false) == Put::Behind {
            state.given.fetch_sub(1, Ordering::Relaxed);
            state.given_bytes.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
            state.recorder.fetch_add(1, Ordering::Relaxed);
        }
        if taken.latched > 0 && self.output.has_parts() {
            self.keep(taken);
        }
        if Some(self.messages) == self.messages_max {
            self.shared.end(End::Count);
        }
    }

    fn put(
        &mut self,
        state: &TopicState,
        (topic, sequence): (usize, u32),
        (log_ns, publish_ns): (u64, u64),
        sample: &Sample<[u8]>,
        is_repeated: bool,
    ) -> Put {
        let data = &state.topic.format.message(sample.as_bytes(), &mut self.scratch)[..];
        let message = Message { topic, sequence, log_ns, publish_ns, is_repeated, data };
        match self.output.write(&message) {
            Ok(()) => Put::Given,
            Err(WriteError::Behind) => Put::Behind,
            Err(error) => {
                self.failed(&error);
                Put::Given
            }
        }
    }

    /// Keeps a latched sample: the last ones of each publisher. Those of a publisher that has gone
    /// stay until another one comes.
    fn keep(&mut self, taken: &Taken) {
        let Taken { topic, latched, publish_ns, sample, .. } = taken;
        let all = self.latched.entry(*topic).or_default();
        if !all.publishers.contains_key(&sample.publisher()) {
            let records = &self.shared.records;
            all.publishers.retain(|publisher, _| !records.is_gone(*publisher));
            all.count = all.publishers.values().map(VecDeque::len).sum();
        }
        let kept = all.publishers.entry(sample.publisher()).or_default();
        while kept.len() >= *latched as usize || all.count >= LATCHED_MAX {
            if kept.pop_front().is_none() {
                let name = &self.topics[*topic].topic.name;
                let what = "latched samples are repeated in further files";
                self.shared.report(format!("{name}: only {LATCHED_MAX} {what}"));
                return;
            }
            all.count -= 1;
        }
        kept.push_back(Kept { publish_ns: *publish_ns, sample: sample.clone() });
        all.count += 1;
    }

    fn next_part(&mut self, log_ns: u64) {
        self.finish_part();
        if let Err(error) = self.output.begin_part() {
            self.failed(&error);
            return;
        }
        self.part += 1;
        self.records.clear();
        let mut repeated = Metadata::new();
        for (topic, latched) in std::mem::take(&mut self.latched) {
            let state = self.topics[topic].clone();
            let mut published = Vec::new();
            for Kept { publish_ns, sample } in latched.publishers.values().flatten() {
                // Who plays the file from its begin gets it there.
                let times = (log_ns, log_ns);
                self.put(&state, (topic, sample.sequence() as u32), times, sample, true);
                self.shared.repeated.fetch_add(1, Ordering::Relaxed);
                published.push(*publish_ns);
            }
            repeated.insert(state.topic.name.clone(), format!("{published:?}"));
            self.latched.insert(topic, latched);
        }
        if !repeated.is_empty() {
            self.records.push((REPEATED, repeated));
        }
    }

    /// Some times a second.
    fn look(&mut self) {
        self.looked = Instant::now();
        self.count_lost();
        for number in 1..self.topics.len() {
            if self.topics[number].losses() != self.recorded[number] {
                self.write_losses(number);
            }
        }
        if self.flushed.elapsed() >= FLUSH_INTERVAL {
            self.flush();
        }
        if let Some(why) = self.output.check() {
            self.shared.end(End::LittleSpace(why));
        }
        self.shared.set_progress(self.output.progress());
    }

    fn flush(&mut self) {
        self.flushed = Instant::now();
        let has_records = self.records.iter().any(|(name, _)| *name == RECORDING);
        if !has_records && self.messages > 0 {
            // So early that a recorder that is killed leaves them.
            let mut records = self.shared.records.metadata();
            records.push((RECORDING, self.facts()));
            records.append(&mut self.records);
            self.records = records;
            let written = self.output.write_records(&self.records);
            self.check(written);
        }
        let flushed = self.output.advance();
        self.check(flushed);
    }

    fn write_losses(&mut self, number: usize) {
        let state = self.topics[number].clone();
        let total = state.losses();
        self.recorded[number] = total;
        let (now_ns, data) = (Clock::system().now(), losses::message(&total, &state.topic.name));
        let written = self.output.write(&Message {
            topic: 0,
            sequence: self.losses_sequence,
            log_ns: now_ns,
            publish_ns: now_ns,
            is_repeated: false,
            data: &[&data],
        });
        self.losses_sequence = self.losses_sequence.wrapping_add(1);
        self.check(written);
    }

    fn finish_part(&mut self) {
        self.count_lost();
        for number in 1..self.topics.len() {
            self.write_losses(number);
        }
        let flushed = self.output.flush();
        self.check(flushed);
        self.count_lost();
        // The shortest and most important ones come first: the disk may be full.
        let mut records = vec![(LOSSES, self.losses()), (RECORDING, self.facts())];
        let is_new = |it: &(&str, Metadata)| !self.records.contains(it);
        records.extend(self.shared.records.metadata().into_iter().filter(is_new));
        records.extend(self.records.iter().find(|(name, _)| *name == REPEATED).cloned());
        let finished = self.output.finish(&records);
        self.check(finished);
        self.count_lost();
    }

    fn losses(&self) -> Metadata {
        let topics = self.topics.iter().skip(1);
        let lossy = topics.map(|it| (it, it.losses())).filter(|(_, losses)| losses.total() > 0);
        lossy.map(|(it, losses)| (it.topic.name.clone(), losses::text(&losses))).collect()
    }

    fn facts(&self) -> Metadata {
        let mut facts = Metadata::new();
        let mut add = |name: &str, value: String| facts.insert(name.to_owned(), value);
        add("version", env!("CARGO_PKG_VERSION").to_owned());
        add("begin_ns", self.begin_ns.to_string());
        add("now_ns", Clock::system().now().to_string());
        add("part", self.part.to_string());
        add("messages", self.messages.to_string());
        match self.shared.why_ended() {
            None => {}
            Some(End::Stopped) => _ = add("end", "stopped".to_owned()),
            Some(End::Count) => _ = add("end", "count".to_owned()),
            Some(End::LittleSpace(why) | End::Failed(why)) => _ = add("end", why),
        }
        facts
    }

    fn check(&mut self, written: Result<(), WriteError>) {
        if let Err(error) = written {
            self.failed(&error);
        }
    }

    /// A message was not written. If no further one can be, the recording ends.
    fn failed(&mut self, error: &WriteError) {
        self.has_lost = true;
        match error {
            WriteError::Full(why) => self.shared.end(End::Failed(format!("{error}: {why}"))),
            WriteError::Io(_) | WriteError::Ended => {
                self.shared.end(End::Failed(error.to_string()))
            }
            other => self.shared.report(other.to_string()),
        }
    }

    fn count_lost(&mut self) {
        if std::mem::take(&mut self.has_lost) {
            for (state, lost) in self.topics.iter().zip(self.output.lost()) {
                state.disk.store(lost, Ordering::Relaxed);
            }
        }
    }
}

/// Names of metadata.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// What a recorder that is killed loses at most.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Of a topic, of all its publishers: they are borrowed, and a subscriber borrows so many at most.
const LATCHED_MAX: usize = 128;
