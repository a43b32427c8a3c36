//! Sessions on a simulated host: in which order they measure, when they add another block, and what
//! is left to do after an end at any point.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use myelin_bench_kit::protocol::{Command, Done, Event, Ready, Role, System};
use myelin_bench_kit::samples::{Record, SampleFile};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::host::{ProcessId, ProcessMessage, ProcessSpec, RunOnHost};
use crate::input_error::Source;
use crate::observe::Observation;
use crate::plan::size::Durations;
use crate::progress::View;
use crate::scenario::Scenario;
use crate::summary::Summary;

/// A host whose processes carry out commands at once. Their delays depend on the seed and the
/// message size of their run.
struct MadeUp {
    messages: Option<Sender<ProcessMessage>>,
    started: BTreeMap<ProcessId, ProcessSpec>,
    /// Relative spread of delays between runs.
    spread: f64,
    /// Called when a run begins, with the number of runs begun before.
    at_run: Box<dyn FnMut(usize) + Send>,
    begun: usize,
}

impl MadeUp {
    fn new(spread: f64, at_run: impl FnMut(usize) + Send + 'static) -> Box<Self> {
        let (messages, started) = Default::default();
        Box::new(MadeUp { messages, started, spread, at_run: Box::new(at_run), begun: 0 })
    }

    fn say_event(&self, id: ProcessId, event: Event) {
        let messages = self.messages.as_ref().expect("within a run");
        messages.send(ProcessMessage::Event(id, event)).expect("the lab listens");
    }

    fn message_count(&self) -> u64 {
        self.started[&ProcessId::first(Role::Ping)].prepare.messages
    }

    /// The counts of a process at its end.
    fn done(&self) -> Done {
        let messages = self.message_count();
        Done { sent: messages, received: messages, end_ns: messages * PERIOD_NS, ..Done::default() }
    }
}

impl Host for MadeUp {
    fn begin(&mut self, _: &RunOnHost, messages: Sender<ProcessMessage>) -> Result<(), String> {
        (self.at_run)(self.begun);
        self.begun += 1;
        self.messages = Some(messages);
        Ok(())
    }

    fn start(&mut self, start: ProcessSpec) -> Result<u64, String> {
        let id = start.id;
        self.started.insert(id, start);
        self.say_event(id, Event::Ready(Ready::default()));
        Ok(0)
    }

    fn send(&mut self, role: Role, command: &Command) -> Result<(), String> {
        if role == Role::Pong && matches!(command, Command::Stop) {
            self.say_event(ProcessId::first(Role::Pong), Event::Done(self.done()));
        }
        Ok(())
    }

    fn go(&mut self, roles: &[Role], _: Duration) -> Result<u64, String> {
        if roles.contains(&Role::Ping) {
            self.say_event(ProcessId::first(Role::Ping), Event::Done(self.done()));
        }
        Ok(0)
    }

    fn ended(&mut self, _: ProcessId, _: Duration) -> Result<Option<String>, String> {
        Ok(Some("none of them ends before its time".into()))
    }

    fn files(&self) -> Vec<(ProcessId, Arc<SampleFile>)> {
        Vec::new()
    }

    fn observe(&mut self, _: &[u32]) -> Result<(), String> {
        Ok(())
    }

    fn observed(&mut self) -> Result<Observation, String> {
        Ok(Observation { wall_ns: self.message_count() * PERIOD_NS, ..Observation::default() })
    }

    fn records(&mut self, id: ProcessId) -> Result<Vec<Record>, String> {
        let prepare = &self.started[&id].prepare;
        let seed = prepare.seed + prepare.payload_bytes;
        let of_run: f64 = StdRng::seed_from_u64(seed).random_range(1.0..1.0 + self.spread);
        let record = |number: u64| {
            let entry_ns = number * PERIOD_NS;
            // Messages of a run differ, so that there are percentiles.
            let delay_ns = (20_000.0 * of_run) as u64 + number % 100;
            let there_ns = entry_ns + delay_ns / 2;
            let ping = Record {
                id: number,
                intended_ns: entry_ns,
                publish_entry_ns: entry_ns,
                publish_return_ns: entry_ns + 100,
                take_return_ns: entry_ns + delay_ns,
                ..Record::default()
            };
            let pong = Record {
                id: number,
                take_return_ns: there_ns,
                publish_return_ns: there_ns + 100,
                ..Record::default()
            };
            if id.role == Role::Ping { ping } else { pong }
        };
        Ok((0..self.message_count()).map(record).collect())
    }

    fn end(&mut self) {
        self.messages = None;
        self.started.clear();
    }

    fn clean(&mut self, _: &Path) {}
}

/// Three cells of a scenario with the keys `repeats`.
fn plan(repeats: &str, seed: u64) -> (Plan, Vec<SystemDriver>) {
    let text = format!(
        "name = \"test\"\nabout = \"a test\"\n\n[workload]\nkind = \"roundtrip\"\n\
         payload_bytes = [0, 64, 128]\nmessages = 500\nwarmup_messages = 10\n\n[plan]\n\
         systems = [\"made-up\"]\ntunings = [\"default\"]\n{repeats}\n"
    );
    let scenario = Scenario::parse(Source::new("test.toml", &text)).unwrap();
    let system = r#"{"name": "made-up", "about": "", "wait": "none", "transport": "none"}"#;
    let system: System = serde_json::from_str(system).unwrap();
    let entries = vec![SystemDriver { system, executable: PathBuf::from("nowhere") }];
    (Plan::new(vec![(scenario, entries.clone())], seed, "test".into()), entries)
}

/// This machine: runs of another one are not counted.
fn machine() -> Machine {
    static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::read);
    MACHINE.clone()
}

/// A session in its own folder.
struct Session {
    place: tempfile::TempDir,
    plan: Plan,
    systems: Vec<SystemDriver>,
}

impl Session {
    fn new(repeats: &str, seed: u64) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (plan, systems) = plan(repeats, seed);
        Folder::create(&place.path().join("out"), &plan, &machine()).unwrap();
        Session { place, plan, systems }
    }

    fn lines(&self) -> PathBuf {
        self.place.path().join("out/runs.jsonl")
    }

    /// Starts or continues, until the end or until `here` or `interrupted` ends it.
    fn measure(&self, here: Box<MadeUp>, interrupted: &AtomicBool) {
        let (mut folder, ..) = Folder::open(&self.place.path().join("out")).unwrap();
        folder.claim().unwrap();
        let machines = (machine(), None);
        let progress = Progress::new(Durations::new(&self.plan), View::Plain, None);
        let shown = (progress, false);
        Measuring::new(&mut folder, &self.plan, &self.systems, machines, here, interrupted, shown)
            .finish()
            .unwrap();
    }

    fn finish(&self) {
        self.measure(MadeUp::new(SPREAD, |_| {}), &AtomicBool::new(false));
    }

    /// Order, cell and repeat of each stored run.
    fn made(&self) -> Vec<[u32; 3]> {
        let (mut folder, ..) = Folder::open(&self.place.path().join("out")).unwrap();
        let runs = folder.runs().unwrap().runs;
        assert!(runs.iter().all(|run| run.failure.is_none()), "{runs:?}");
        runs.iter().map(|run| [run.plan.order, run.plan.cell as u32, run.plan.repeat]).collect()
    }

    /// The summary of its folder.
    fn summary(&self) -> Summary {
        crate::session::read(&self.place.path().join("out")).unwrap().summary
    }

    fn counts(&self) -> [usize; 3] {
        [0, 1, 2].map(|cell| self.made().iter().filter(|run| run[1] == cell).count())
    }

    /// A copy of the session, with only `bytes` as its list of runs.
    fn cut_off_at(&self, bytes: &[u8]) -> Self {
        let other = Session::new(ADAPTIVE, SEED);
        for run in fs::read_dir(self.place.path().join("out/runs")).unwrap() {
            let run = run.unwrap();
            let copy = other.place.path().join("out/runs").join(run.file_name());
            fs::create_dir_all(&copy).unwrap();
            for file in fs::read_dir(run.path()).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), copy.join(file.file_name())).unwrap();
            }
        }
        fs::write(other.lines(), bytes).unwrap();
        other
    }
}

/// A session that is never interrupted; some of its cells need more blocks than others.
fn whole() -> Session {
    let session = Session::new(ADAPTIVE, SEED);
    session.finish();
    let counts = session.counts();
    let differ = counts.contains(&12) && counts.iter().any(|count| *count < 12);
    assert!(differ && session.made().len() > 18, "{counts:?}: nothing is decided in mid-way");
    session
}

#[test]
fn equal_runs_stop_at_the_first_interval() {
    let session = Session::new(ADAPTIVE, SEED);
    session.measure(MadeUp::new(1e-9, |_| {}), &AtomicBool::new(false));
    assert_eq!(session.counts(), [7; 3], "of at most twelve, seven have one");
    let cells = session.summary().cells;
    let repeats = cells.iter().map(|cell| cell.repeats.expect("it was asked for"));
    let narrow: Vec<_> = repeats.map(|it| (it.is_narrow, it.reached_percent)).collect();
    assert_eq!(narrow, [(true, Some(0.0)); 3]);
}

/// A killed process leaves its folder in the state of that moment.
#[test]
fn a_session_killed_in_any_run_measures_no_run_twice() {
    let made = whole().made();
    let session = Session::new(ADAPTIVE, SEED);
    // One more run each time, until none is left.
    for _ in 0..made.len() {
        let dying = MadeUp::new(SPREAD, |begun| assert!(begun < 1, "as the test wants it"));
        let never = AtomicBool::new(false);
        let _ = catch_unwind(AssertUnwindSafe(|| session.measure(dying, &never)));
    }
    assert_eq!(session.made(), made);
    let lines = fs::read(session.lines()).unwrap();
    session.finish();
    assert_eq!(fs::read(session.lines()).unwrap(), lines, "there was something left to be done");
}

#[test]
fn a_run_list_cut_off_at_any_byte_is_completed() {
    let whole = whole();
    let (made, lines) = (whole.made(), fs::read(whole.lines()).unwrap());
    let ends: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == b'\n').collect();
    // Before, within and after the first line, a line of a further block, and the last line.
    for end in [ends[0], ends[16], ends[ends.len() - 1]] {
        for at in [end.saturating_sub(40), end, end + 1] {
            let session = whole.cut_off_at(&lines[..at]);
            session.finish();
            let after = fs::read(session.lines()).unwrap();
            let kept = lines[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            assert!(after.starts_with(&lines[..kept]), "cut off at {at}: a line was rewritten");
            assert_eq!(session.made(), made, "cut off at {at}");
        }
    }
}

#[test]
fn an_interrupted_session_ends_after_its_run_and_is_resumed() {
    let made = whole().made();
    let session = Session::new(ADAPTIVE, SEED);
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let stopping = MadeUp::new(SPREAD, move |begun| flag.store(begun == 16, Ordering::Relaxed));
    session.measure(stopping, &interrupted);
    assert_eq!(session.made(), made[..16], "the run under way is forgotten");
    let notes = session.summary().notes;
    let is_told = |note: &String| note.contains("incomplete: intervals are wider than requested");
    assert!(notes.iter().any(is_told), "{notes:?}");
    session.finish();
    assert_eq!(session.made(), made);
    assert!(!session.summary().notes.iter().any(is_told));
}

/// Cells become narrow after different numbers of runs, or never.
const ADAPTIVE: &str = "runs = 5\nruns_max = 12\ninterval_percent = 12";
const SPREAD: f64 = 0.2;
const SEED: u64 = 11;
const PERIOD_NS: u64 = 100_000;
