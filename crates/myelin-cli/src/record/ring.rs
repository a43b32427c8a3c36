//! The flight recorder: `myelin record --ring`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use myelin_bag::recorder::RecordedTopic;
use myelin_bag::ring::{Ring, RingOptions, SaveError, Saved, Trigger};
use myelin_bag::{Channel, MessageType, OwnedSchema};
use myelin_tools::Error;
use myelin_tools::document::Document;
use myelin_tools::filter::Filter;
use myelin_tools::session::Session;
use myelin_tools::text::{counted, printable};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{above_zero, max_rate, time};
use crate::complete;
use crate::output::{note, print};

/// See [`Ring`].
#[derive(Args)]
#[command(next_help_heading = "Flight recorder")]
pub struct FlightRecorder {
    /// Keep the newest messages, of this time, and write them to a file when something happens:
    /// SIGUSR1, `myelin record --trigger`, or one of the --on options.
    #[arg(long, value_name = "TIME", value_parser = time,
          conflicts_with_all = ["split_size", "split_time", "keep_free", "count"])]
    ring: Option<Duration>,
    /// Write what comes after it, too, for this time.
    #[arg(long, value_name = "TIME", value_parser = time, requires = "ring")]
    after: Option<Duration>,
    /// How much is kept at most; by default 1GiB.
    #[arg(long, value_name = "SIZE", value_parser = above_zero, requires = "ring")]
    ring_size: Option<u64>,
    /// Where it is kept; by default .myelin-ring beside the files. It survives a killed recorder, and
    /// on a disk a power failure.
    #[arg(long, value_name = "DIR", requires = "ring")]
    ring_dir: Option<PathBuf>,
    /// When a message fulfils a condition, such as 'battery: voltage < 22'.
    #[arg(long, value_name = "TOPIC: CONDITION", requires = "ring")]
    on: Vec<String>,
    /// When a topic that had this rate falls below it.
    #[arg(long, value_name = "TOPIC=HZ", value_parser = max_rate, requires = "ring")]
    on_rate: Vec<(String, f64)>,
    /// When messages of a topic are lost; '*' is any topic.
    #[arg(long, value_name = "TOPIC", requires = "ring", add = complete::topics())]
    on_loss: Vec<String>,
    /// When this process ends, for any reason.
    #[arg(long, value_name = "PID", requires = "ring")]
    on_exit: Vec<u32>,
    /// Make the flight recorders of this domain write their files now.
    #[arg(long, conflicts_with = "ring")]
    trigger: bool,
}

impl FlightRecorder {
    pub fn is_ring(&self) -> bool {
        self.ring.is_some()
    }

    pub fn is_trigger(&self) -> bool {
        self.trigger
    }

    /// Opens the ring. What a recorder that was killed has left is written out before.
    pub fn open(&self, saves: &Path, saved: myelin_bag::Options) -> Result<Ring, Error> {
        let folder = saves.parent().unwrap_or(Path::new("")).join(".myelin-ring");
        let folder = self.ring_dir.clone().unwrap_or(folder);
        match Ring::salvage(&folder, saves, &saved) {
            Ok(None) => {}
            Ok(Some(saved)) => note(&format!(
                "a recorder that ended before has left messages: {}",
                saved.path.display()
            )),
            Err(error) => return Err(Error::Failed(error.to_string())),
        }
        let mut options = RingOptions::new(self.ring.unwrap_or_default(), saves);
        options.after = self.after.unwrap_or_default();
        options.saved = saved;
        if let Some(bytes) = self.ring_size {
            options.bytes_max = bytes;
        }
        let ring = Ring::open(&folder, options);
        let mut ring = ring.map_err(|error| Error::Failed(error.to_string()))?;
        ring.remove_at_end();
        for trigger in self.triggers()? {
            ring.add_trigger(trigger);
        }
        Ok(ring)
    }

    fn triggers(&self) -> Result<Vec<Trigger>, Error> {
        let mut triggers = Vec::new();
        for text in &self.on {
            triggers.push(on_field(text)?);
        }
        let rates = self.on_rate.iter();
        triggers.extend(rates.map(|(topic, hz)| Trigger::rate_below(topic.clone(), *hz)));
        let topic = |it: &String| Some(it.clone()).filter(|it| it != "*");
        triggers.extend(self.on_loss.iter().map(|it| Trigger::on_loss(topic(it))));
        for pid in &self.on_exit {
            let trigger = Trigger::on_end_of_process(format!("process {pid} has ended"), *pid);
            triggers
                .push(trigger.map_err(|_| Error::NotFound(format!("there is no process {pid}")))?);
        }
        Ok(triggers)
    }
}

/// A message that fulfils a condition.
fn on_field(text: &str) -> Result<Trigger, Error> {
    let wrong = || Error::BadInput(format!("{text:?}: write --on 'TOPIC: CONDITION'"));
    let (topic, condition) = text.split_once(':').ok_or_else(wrong)?;
    let filter = Filter::parse(condition.trim());
    let filter = filter.map_err(|error| Error::BadInput(format!("{text:?}: {error}")))?;
    let mut reader: Option<(OwnedSchema, Option<MessageType>)> = None;
    let mut bytes = Vec::new();
    let is_true = move |topic: &RecordedTopic, data: &[&[u8]]| {
        // One of another type has another schema.
        if reader.as_ref().is_none_or(|(schema, _)| schema != topic.format.schema()) {
            reader = Some((topic.format.schema().clone(), reader_of(topic)));
        }
        let Some((_, Some(ty))) = &reader else { return false };
        bytes.clear();
        data.iter().for_each(|part| bytes.extend_from_slice(part));
        ty.value(&bytes).is_ok_and(|it| filter.holds(&Document::Value(it)).unwrap_or(false))
    };
    Ok(Trigger::on_message(text, topic.trim(), is_true))
}

fn reader_of(topic: &RecordedTopic) -> Option<MessageType> {
    let channel: Channel = topic.format.channel(&topic.name, 1);
    MessageType::new(&channel, Some(topic.format.schema())).ok()
}

/// Makes the flight recorders of this domain write their files.
pub fn trigger(session: &Session) -> Result<ExitCode> {
    let graph = session.graph(super::ANSWER_LIMIT)?;
    let recorders = graph.nodes.iter().filter(|it| it.name == NODE);
    let mut triggered = 0;
    for pid in recorders.filter_map(|it| Pid::from_raw(i32::try_from(it.pid).ok()?)) {
        triggered += u32::from(kill_process(pid, Signal::USR1).is_ok());
    }
    match triggered {
        0 => {
            let error = "no flight recorder runs in this domain: start one with --ring";
            Err(Error::NotFound(error.to_owned()).into())
        }
        _ => {
            print(&format!("{triggered} flight recorders write their files\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reports files that were written, or could not be.
pub fn report(saved: Vec<Result<Saved, SaveError>>, json: bool) -> Result<()> {
    for saved in saved {
        match saved {
            Ok(saved) => show(&saved, json)?,
            Err(error) => note(&format!("not saved: {error}")),
        }
    }
    Ok(())
}

fn show(saved: &Saved, json: bool) -> Result<()> {
    let (messages, reasons) = (saved.written.statistics.messages, &saved.reasons);
    let text = match json {
        true => {
            json!({ "saved": saved.path, "messages": messages, "reasons": reasons }).to_string()
        }
        false => {
            let reasons = reasons.join("; ");
            let messages = counted(messages, "message");
            format!("saved {}: {messages} ({})", saved.path.display(), printable(&reasons))
        }
    };
    print(&format!("{text}\n"))?;
    Ok(())
}

/// The name by which others find a flight recorder.
pub const NODE: &str = "myelin record --ring";
