//! Reads a scenario from its text: checks keys and limits, fills in defaults, then checks values
//! against each other.

use myelin_bench_kit::pingpong::LOST_IN_A_ROW_MAX;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::de::DeTable;

use super::keys::{self, KINDS};
use super::{
    Arrivals, Kind, Link, Precision, Recording, Scenario, Selection, TOPOLOGIES, Topology,
    TuningChoice, Workload, frame_name, network,
};
use crate::input_error::{InputError, Source};
use crate::lists::{ascending, distinct};
use crate::stats::interval::RUNS_MIN;

type Checked = Result<(), InputError>;

impl Scenario {
    /// Reads a scenario's text and checks it.
    pub fn parse(source: Source) -> Result<Self, InputError> {
        let document = source.document()?;
        keys::check(&source, &document)?;
        let mut scenario: Scenario =
            toml::from_str(source.text()).map_err(|error| source.toml_error(&error))?;
        let empty = DeTable::new();
        let table = |name: &str| {
            let table = document.get(name).and_then(|table| table.get_ref().as_table());
            table.unwrap_or(&empty)
        };
        scenario.workload.complete(&source, table("workload"))?;
        scenario.workload.check(&source)?;
        scenario.plan.complete(&source, table("plan"))?;
        scenario.plan.check(&source, scenario.workload.kind)?;
        scenario.tuning.check(&source)?;
        if let Some(link) = &mut scenario.network {
            link.complete(&source, table("network"))?;
            link.check(&source, &scenario.plan, &scenario.workload)?;
        }
        drop(document);
        Ok(Scenario { source, ..scenario })
    }
}

impl Workload {
    /// Fills in the defaults of keys that `table` leaves out. They may depend on the kind.
    fn complete(&mut self, source: &Source, table: &DeTable<'_>) -> Checked {
        let names = KINDS.map(|kind| format!("{:?}", kind.name())).join(", ");
        let remedy = format!("use one of {names}");
        given(source, "workload.kind", table.contains_key("kind"), &remedy)?;
        match self.kind {
            _ if table.contains_key("warmup_messages") && table.contains_key("warmup_s") => {
                let error = source.wrong("workload.warmup_s", "warmup_messages is given as well");
                return Err(error.remedy("leave out one"));
            }
            _ if table.contains_key("warmup_messages") || table.contains_key("warmup_s") => {}
            // At a sensor's rate a number of messages takes long: 500 take 17 s at 30 Hz.
            Kind::Stream | Kind::Image | Kind::Replay => self.warmup_s = 1.0,
            Kind::Roundtrip | Kind::Publish if self.is_slow_to_warm_up() => self.warmup_s = 1.0,
            // Start-ups are measured cold.
            Kind::Startup => self.warmup_messages = 0,
            Kind::Roundtrip | Kind::Publish | Kind::Flood => {}
        }
        if self.kind == Kind::Replay && self.duration_s == 0.0 {
            self.duration_s = REPLAY_SECONDS;
        }
        if self.rate_hz.is_empty() {
            self.rate_hz.push(match self.kind {
                Kind::Roundtrip | Kind::Flood | Kind::Startup => None,
                // Known once the recording has been read.
                Kind::Replay => None,
                // As fast as the fastest sensors, and slow enough to keep up.
                Kind::Publish => Some(20_000.0),
                // The rate of a control loop.
                Kind::Stream => Some(100.0),
                // The rate of a camera.
                Kind::Image => Some(30.0),
            });
        }
        each_once(&mut self.payload_bytes);
        each_once(&mut self.rate_hz);
        each_once(&mut self.frames);
        for counts in [&mut self.subscribers, &mut self.publishers, &mut self.topics] {
            each_once(counts);
        }
        if !self.frames.is_empty() {
            self.payload_bytes = self.frames.iter().map(|frame| frame.bytes()).collect();
        }
        if table.contains_key("modules") {
            let own = ["payload_bytes", "rate_hz"].into_iter();
            if let Some(key) = own.into_iter().find(|key| table.contains_key(*key)) {
                let text = "modules set their own sizes and rates";
                let error = source.wrong(&format!("workload.{key}"), text);
                return Err(error.remedy("leave out one of the two"));
            }
            self.payload_bytes = self.modules.iter().map(|module| module.payload_bytes).collect();
            self.rate_hz = self.modules.iter().map(|module| Some(module.rate_hz)).collect();
            let remedy =
                "for instance [{ name = \"lidar\", payload_bytes = 1048576, rate_hz = 10 }]";
            given(source, "workload.modules", !self.modules.is_empty(), remedy)?;
        }
        Ok(())
    }

    /// Whether `warmup_messages` take longer than a second at one of the rates.
    fn is_slow_to_warm_up(&self) -> bool {
        self.rate_hz.iter().flatten().any(|rate_hz| *rate_hz < self.warmup_messages as f64)
    }

    fn check(&self, source: &Source) -> Checked {
        let has_end = self.messages > 0 || self.duration_s > 0.0 || self.kind == Kind::Startup;
        for (key, is_given, remedy) in [
            ("messages", has_end, "give messages, duration_s or both"),
            (
                "frames",
                !self.frames.is_empty() || self.kind != Kind::Image,
                "for instance [\"1440x1080\"]",
            ),
            (
                "payload_bytes",
                !self.payload_bytes.is_empty() || self.kind == Kind::Replay,
                "name at least one size",
            ),
            ("subscribers", !self.subscribers.is_empty(), "name at least one number"),
            ("publishers", !self.publishers.is_empty(), "name at least one number"),
            ("topics", !self.topics.is_empty(), "name at least one number"),
        ] {
            given(source, &format!("workload.{key}"), is_given, remedy)?;
        }
        for (place, frame) in self.frames.iter().enumerate() {
            let twin = |other: &&super::Frame| other.bytes() == frame.bytes();
            if let Some(twin) = self.frames[..place].iter().find(twin) {
                let (name, twin) = (frame_name(*frame), frame_name(*twin));
                let text = format!("{name} has the same number of bytes as {twin}");
                let error = source.wrong(&format!("workload.frames.{place}"), text);
                return Err(error.remedy("leave out one: the size identifies a cell"));
            }
        }
        self.check_recording(source)?;
        self.check_modules(source)?;
        self.check_loads(source)?;
        self.check_arrivals(source)
    }

    fn check_recording(&self, source: &Source) -> Checked {
        let is_given = self.recording.is_some() || self.kind != Kind::Replay;
        given(source, "workload.recording", is_given, "for instance { file = \"drive.mcap\" }")?;
        let Some(Recording { start_s, end_s: Some(end_s), .. }) = self.recording else {
            return Ok(());
        };
        if end_s <= start_s {
            let text = format!("{end_s} is not after start_s, {start_s}");
            let remedy = "both are seconds after the first message of the recording";
            return Err(source.wrong("workload.recording.end_s", text).remedy(remedy));
        }
        Ok(())
    }

    fn check_modules(&self, source: &Source) -> Checked {
        for (place, module) in self.modules.iter().enumerate() {
            let before = &self.modules[..place];
            let wrong = |text: String| source.wrong(&format!("workload.modules.{place}"), text);
            if before.iter().any(|other| other.name == module.name) {
                let text = format!("two are named {:?}", module.name);
                return Err(wrong(text).remedy("give each its own name"));
            }
            let sends = |module: &super::Module| (module.payload_bytes, module.rate_hz);
            if let Some(twin) = before.iter().find(|other| sends(other) == sends(module)) {
                let text = format!("{:?} sends the same messages as {:?}", module.name, twin.name);
                return Err(wrong(text).remedy("leave out one of the two"));
            }
        }
        Ok(())
    }

    fn check_loads(&self, source: &Source) -> Checked {
        for (place, load) in self.loads.iter().enumerate() {
            let wrong = |key: &str, text: String| {
                source.wrong(&format!("workload.loads.{place}{key}"), text)
            };
            if self.loads[..place].iter().any(|other| other.name == load.name) {
                let text = format!("two are named {:?}", load.name);
                return Err(wrong("", text).remedy("give each its own name"));
            }
            for rate_hz in &self.rate_hz {
                let is_warm_up_known =
                    rate_hz.is_some() || self.warmup_s > 0.0 || self.warmup_messages == 0;
                let Some(seconds) = self.measured_s(*rate_hz).filter(|_| is_warm_up_known) else {
                    let text = "nothing says how long it lasts: messages go back to back";
                    let remedy = "give duration_s and warmup_s, or rate_hz in messages a second";
                    return Err(wrong("", text.into()).remedy(remedy));
                };
                if seconds * load.rate_hz < 1.0 {
                    let text = format!("{:?} sends nothing in {seconds} s", load.name);
                    let remedy = "use a longer run, or a higher rate";
                    return Err(wrong(".rate_hz", text).remedy(remedy));
                }
            }
        }
        Ok(())
    }

    fn check_arrivals(&self, source: &Source) -> Checked {
        for (place, case) in self.arrivals.iter().enumerate() {
            let wrong = |text: String| source.wrong(&format!("workload.arrivals.{place}"), text);
            if self.arrivals[..place].iter().any(|other| other.name == case.name) {
                let text = format!("two cases are named {:?}", case.name);
                return Err(wrong(text).remedy("give each its own name"));
            }
            let is_even = case.arrivals == Arrivals::default();
            if !is_even && self.rate_hz.contains(&None) {
                let text = format!("{:?} changes a rate, but there is no rate", case.name);
                let remedy = "give rate_hz in messages a second, without \"max\"";
                return Err(wrong(text).remedy(remedy));
            }
        }
        Ok(())
    }
}

impl Selection {
    fn complete(&mut self, source: &Source, table: &DeTable<'_>) -> Checked {
        self.tunings = ascending(std::mem::take(&mut self.tunings));
        each_once(&mut self.topology);
        let (text, key, remedy) = match (table.get("runs_max"), table.get("interval_percent")) {
            (None, None) => return Ok(()),
            (Some(most), Some(interval)) => {
                let wrong = |error| source.toml_error(&error);
                let (most, interval) = (most.clone(), interval.clone());
                self.precision = Some(Precision {
                    runs_max: u32::deserialize(most.into_deserializer()).map_err(wrong)?,
                    interval_percent: f64::deserialize(interval.into_deserializer())
                        .map_err(wrong)?,
                });
                return Ok(());
            }
            (Some(_), None) => (
                "without interval_percent, the lab does not know when fewer runs are enough",
                "runs_max",
                "add interval_percent, for instance 5, or use only runs",
            ),
            (None, Some(_)) => (
                "without runs_max, the number of runs has no limit",
                "interval_percent",
                "add runs_max, for instance 15",
            ),
        };
        Err(source.wrong(&format!("plan.{key}"), text).remedy(remedy))
    }

    fn check(&self, source: &Source, kind: Kind) -> Checked {
        for (key, is_given, remedy) in [
            ("systems", !self.systems.is_empty(), "for instance [\"os.*\"]"),
            ("tunings", !self.tunings.is_empty(), "for instance [\"default\"]"),
            ("runs", self.runs > 0, "for instance 5"),
            ("topology", !self.topology.is_empty(), TOPOLOGIES),
        ] {
            given(source, &format!("plan.{key}"), is_given, remedy)?;
        }
        let wrong = |text: String| source.wrong("plan.topology", text);
        if self.topology.contains(&Topology::TwoHosts) {
            if self.topology.len() > 1 {
                let remedy = "write a separate scenario for processes on one host";
                return Err(wrong("\"two-hosts\" cannot be combined with another topology".into())
                    .remedy(remedy));
            }
            // Flood and start-up: ping reads memory that pong writes. Replay: both read one file.
            if matches!(kind, Kind::Flood | Kind::Startup | Kind::Replay) {
                let text = format!("kind {:?} cannot be run across hosts", kind.name());
                let remedy = "use \"two-processes\", or kind = \"stream\" or \"roundtrip\"";
                return Err(wrong(text).remedy(remedy));
            }
        }
        let Some(Precision { runs_max, .. }) = self.precision else {
            return Ok(());
        };
        let wrong = |text: String| source.wrong("plan.runs_max", text);
        if runs_max < self.runs {
            let text = format!("{runs_max} is less than runs, {}", self.runs);
            let remedy = "use a runs_max of at least runs, or fewer runs";
            return Err(wrong(text).remedy(remedy));
        }
        if (runs_max as usize) < RUNS_MIN {
            let remedy = format!("use at least {RUNS_MIN}, or leave out interval_percent");
            return Err(wrong(format!("{runs_max} runs have no interval")).remedy(remedy));
        }
        Ok(())
    }
}

impl TuningChoice {
    fn check(&self, source: &Source) -> Checked {
        if self.ping_cpu.is_some() && self.ping_cpu == self.pong_cpu {
            return Err(source
                .wrong("tuning.pong_cpu", "the same as ping_cpu")
                .remedy("`tuned` pins the two to different CPUs; use two"));
        }
        Ok(())
    }
}

impl Link {
    /// Fills in the rate of a named link.
    fn complete(&mut self, source: &Source, table: &DeTable<'_>) -> Checked {
        let Some(link) = table.get("link") else {
            return Ok(());
        };
        let Some(name) = link.get_ref().as_str() else {
            let error = source.wrong("network.link", "not a word");
            return Err(error.remedy(format!("use {}", network::names())));
        };
        if table.contains_key("rate_mbit") {
            let error =
                source.wrong("network.rate_mbit", format!("link = {name:?} is given as well"));
            return Err(error.remedy("leave out one"));
        }
        self.rate_mbit = network::rate_of(name).map_err(|error| error.at(source, link.span()))?;
        Ok(())
    }

    fn check(&self, source: &Source, plan: &Selection, workload: &Workload) -> Checked {
        if !plan.is_across_hosts() {
            let text = "[network]: all processes are on one host, so there is no link";
            let remedy = "leave it out, or use plan.topology = \"two-hosts\"";
            return Err(source.error(source.place("network"), text).remedy(remedy));
        }
        self.conditions().check().map_err(|(field, text)| {
            source.wrong(&format!("network.{field}"), text).remedy("raise delay_ms")
        })?;
        let Some(cut) = self.cut else {
            return Ok(());
        };
        // With several rates, the highest has the shortest run.
        let shortest = (workload.rate_hz.iter())
            .filter_map(|rate| workload.seconds_at_most(*rate))
            .fold(f64::INFINITY, f64::min);
        if cut.at_s + cut.for_s > shortest {
            let text = format!(
                "the cut ends after {} s, but the run after {shortest}",
                cut.at_s + cut.for_s
            );
            let remedy = "use a longer run: it must show what a system does after the cut";
            return Err(source.wrong("network.cut", text).remedy(remedy));
        }
        // Ping gives up after this many lost answers in a row.
        let patience_s = workload.reply_timeout_ms as f64 * 1e-3 * f64::from(LOST_IN_A_ROW_MAX);
        if workload.kind == Kind::Roundtrip && cut.for_s >= patience_s {
            let least = (cut.for_s * 1e3 / f64::from(LOST_IN_A_ROW_MAX)) as u64 + 1;
            let text = format!(
                "in {} s ping loses more than {LOST_IN_A_ROW_MAX} answers in a row and gives up",
                cut.for_s
            );
            let remedy = format!("set workload.reply_timeout_ms to {least} or more");
            return Err(source.wrong("network.cut", text).remedy(remedy));
        }
        Ok(())
    }
}

/// The limit of a replay, unless the scenario has another one.
const REPLAY_SECONDS: f64 = 60.0;

fn given(source: &Source, path: &str, is_given: bool, remedy: &str) -> Checked {
    let missing = || source.wrong(path, "nothing given").remedy(remedy);
    if is_given { Ok(()) } else { Err(missing()) }
}

/// Drops repeated parameter points.
fn each_once<T: PartialEq>(values: &mut Vec<T>) {
    *values = distinct(std::mem::take(values));
}
