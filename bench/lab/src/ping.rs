//! `myelin bench ping`: a scenario from options of a command line. The scenario is written as the text
//! of a file and read like one, so the printed file and the run never differ.

use myelin_bench_kit::protocol::{Topology, Wait};

use crate::input_error::{InputError, Source};
use crate::registry::{Registry, SystemDriver};
use crate::scenario::{Scenario, Tuning};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Ping {
    /// Names or patterns of systems; none: those of the scenario `quick` that are installed.
    pub systems: Vec<String>,
    /// Bytes of payload; each is a cell.
    pub payload_bytes: Vec<u64>,
    /// Messages a second; each is a cell. `None` is back to back. Without any, the usual rate of the
    /// workload.
    pub rate_hz: Vec<Option<f64>>,
    /// Seconds of each run.
    pub duration_s: f64,
    /// Only systems that wait in one of these ways; all if there are none.
    pub waits: Vec<Wait>,
    /// Subscribers of a stream, each in its own process; each number is a cell. None: round trips.
    pub subscribers: Vec<u32>,
    /// The tunings; each is a cell.
    pub tunings: Vec<Tuning>,
    /// Runs of each cell.
    pub runs: u32,
}

impl Ping {
    /// The scenario as the text of a file, and one line for each system that was left out.
    ///
    /// # Errors
    /// A pattern that matches no system, or none that is left.
    pub fn text(&self, registry: &Registry) -> Result<(String, Vec<String>), InputError> {
        let mut notes = Vec::new();
        let systems = self.chosen(registry, &mut notes)?;
        let is_one_way = !self.subscribers.is_empty();
        let (kind, about) = match is_one_way {
            false => ("roundtrip", "round trips"),
            true => ("stream", "messages one way"),
        };
        let rates: Vec<String> = self.rate_hz.iter().map(|rate| written(*rate)).collect();
        let rate = match (&rates[..], is_one_way) {
            ([], false) => "\"max\"".to_owned(),
            ([], true) => written(Some(STREAM_HZ)),
            (rates, _) => rates.join(", "),
        };
        let subscribers = match is_one_way {
            true => format!("subscribers = {:?}\n", self.subscribers),
            false => String::new(),
        };
        let tunings: Vec<&str> = self.tunings.iter().map(|tuning| tuning.name()).collect();
        // Without a list of systems those in one process would stand beside all others.
        let topology = if self.systems.is_empty() { Topology::TwoProcesses.name() } else { "any" };
        let text = format!(
            "name = \"ping\"\nabout = \"{about}, from the command line\"\n\n[workload]\n\
             kind = \"{kind}\"\npayload_bytes = {sizes:?}\nrate_hz = [{rate}]\n\
             duration_s = {seconds:?}\n{subscribers}\n[plan]\nsystems = {systems:?}\n\
             tunings = {tunings:?}\ntopology = \"{topology}\"\nruns = {runs}\n",
            sizes = self.payload_bytes,
            seconds = self.duration_s,
            runs = self.runs,
        );
        Ok((text, notes))
    }

    /// Reads the text as a scenario file.
    ///
    /// # Errors
    /// Values that contradict each other.
    pub fn scenario(text: &str) -> Result<Scenario, InputError> {
        Scenario::parse(Source::new("", text))
    }

    /// Patterns as they were given, or the names of the systems if not all that match are meant.
    fn chosen(
        &self,
        registry: &Registry,
        notes: &mut Vec<String>,
    ) -> Result<Vec<String>, InputError> {
        let patterns = match self.systems.is_empty() {
            true => usual(registry),
            false => self.systems.clone(),
        };
        let all = registry.matching(&patterns)?;
        let largest = self.payload_bytes.iter().copied().max().unwrap_or(0);
        let waits = |entry: &&SystemDriver| {
            self.waits.is_empty() || self.waits.contains(&entry.system.wait)
        };
        let has_room = |entry: &&SystemDriver| {
            let most = entry.system.payload_bytes_max;
            entry.system.missing.is_some() || most == 0 || largest <= most
        };
        for entry in all.iter().filter(|entry| waits(entry) && !has_room(entry)) {
            let (name, most) = (&entry.system.name, entry.system.payload_bytes_max);
            notes.push(format!("{name} left out: it carries {most} B at most"));
        }
        let left = all.iter().filter(|entry| waits(entry) && has_room(entry));
        let left: Vec<String> = left.map(|entry| entry.system.name.clone()).collect();
        if left.is_empty() {
            let given = patterns.join(", ");
            return Err(match notes.is_empty() {
                true => InputError::new(format!("--wait: no system of {given} waits like this"))
                    .remedy("`myelin bench list systems` says how each waits"),
                false => InputError::new(format!("--size: {largest} B: {}", notes.join("; "))),
            });
        }
        Ok(if left.len() == all.len() { patterns } else { left })
    }
}

/// The patterns of `quick` for which there is a driver here.
fn usual(registry: &Registry) -> Vec<String> {
    let quick = Scenario::load("quick").expect("it is part of the program and tested");
    let is_here = |pattern: &String| registry.matching(std::slice::from_ref(pattern)).is_ok();
    quick.plan.systems.into_iter().filter(is_here).collect()
}

/// A rate as scenarios write it.
fn written(rate_hz: Option<f64>) -> String {
    rate_hz.map_or_else(|| "\"max\"".to_owned(), |rate_hz| format!("{rate_hz:?}"))
}

/// The rate of a stream without `--rate`: fast enough for a p99 within a second.
const STREAM_HZ: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Kind;

    fn ping() -> Ping {
        Ping {
            systems: Vec::new(),
            payload_bytes: vec![64],
            rate_hz: Vec::new(),
            duration_s: 1.0,
            waits: Vec::new(),
            subscribers: Vec::new(),
            tunings: vec![Tuning::Default],
            runs: 1,
        }
    }

    fn registry() -> Registry {
        let mut entries = ["os.futex", "os.pipe", "a.poll"].map(SystemDriver::named);
        entries[1].system.payload_bytes_max = 1000;
        entries[2].system.wait = Wait::Poll;
        Registry::of(entries.into())
    }

    fn read(ping: &Ping) -> (Scenario, Vec<String>) {
        let (text, notes) = ping.text(&registry()).unwrap();
        (Ping::scenario(&text).unwrap_or_else(|error| panic!("{error}\n{text}")), notes)
    }

    #[test]
    fn without_options_it_is_one_round_trip_of_the_usual_systems() {
        let (scenario, notes) = read(&ping());
        assert_eq!(scenario.plan.systems, ["os.*"], "the others of `quick` have no driver here");
        assert_eq!(
            (scenario.workload.kind, scenario.workload.rate_hz),
            (Kind::Roundtrip, vec![None])
        );
        assert_eq!(scenario.plan.topology, [Topology::TwoProcesses]);
        assert!(notes.is_empty());
    }

    #[test]
    fn every_option_is_in_the_file() {
        let (scenario, _) = read(&Ping {
            systems: vec!["os.futex".into(), "a.*".into()],
            payload_bytes: vec![0, 1 << 20],
            rate_hz: vec![Some(0.5), Some(1000.0)],
            duration_s: 2.5,
            subscribers: vec![1, 4],
            tunings: vec![Tuning::Default, Tuning::Tuned],
            runs: 7,
            ..ping()
        });
        let workload = &scenario.workload;
        assert_eq!(scenario.plan.systems, ["os.futex", "a.*"]);
        assert_eq!((workload.kind, workload.duration_s), (Kind::Stream, 2.5));
        assert_eq!(workload.payload_bytes, [0, 1 << 20]);
        assert_eq!(workload.rate_hz, [Some(0.5), Some(1000.0)]);
        assert_eq!(workload.subscribers, [1, 4]);
        assert_eq!(scenario.plan.tunings, [Tuning::Default, Tuning::Tuned]);
        assert_eq!((scenario.plan.runs, scenario.plan.topology.len()), (7, 2));
        let (unrated, _) = read(&Ping { subscribers: vec![1], ..ping() });
        assert_eq!(unrated.workload.rate_hz, [Some(STREAM_HZ)], "a stream needs a rate");
    }

    #[test]
    fn systems_that_wait_otherwise_or_are_too_small_are_left_out() {
        let all = || vec!["*".to_owned()];
        let (scenario, notes) = read(&Ping { systems: all(), waits: vec![Wait::Poll], ..ping() });
        assert_eq!((scenario.plan.systems, notes.len()), (vec!["a.poll".to_owned()], 0));
        let large = Ping { systems: all(), payload_bytes: vec![64, 1001], ..ping() };
        let (scenario, notes) = read(&large);
        assert_eq!(scenario.plan.systems, ["os.futex", "a.poll"]);
        assert_eq!(notes, ["os.pipe left out: it carries 1000 B at most"]);
        let none = Ping { systems: all(), waits: vec![Wait::Callback], ..ping() };
        let error = none.text(&registry()).unwrap_err().to_string();
        assert!(error.starts_with("--wait: no system of * waits like this"), "{error}");
        let one = Ping { systems: vec!["os.pipe".into()], ..large };
        let error = one.text(&registry()).unwrap_err().to_string();
        assert!(error.starts_with("--size: 1001 B: os.pipe left out"), "{error}");
        let unknown = Ping { systems: vec!["os.fute".into()], ..ping() };
        let error = unknown.text(&registry()).unwrap_err().to_string();
        assert!(error.contains("did you mean `os.futex`"), "{error}");
    }
}
