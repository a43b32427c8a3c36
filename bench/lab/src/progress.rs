//! Progress of a session: a live view on a terminal, plain lines elsewhere.
//!
//! The view is below the log and is redrawn in place; the cursor stays visible, and the log can be
//! scrolled back. During a run an idle-class thread draws it ([`Viewer`]); between runs the lab
//! draws it itself.
//!
//! ```text
//! last runs
//!   p50     9.41 µs  p99     31.2 µs  CPU   88.1 %  lost        0  os.pipe default 64B 2/3
//! ! p50     19.0 µs  p99     77.0 µs  CPU   91.0 %  lost        3  os.udp default 64B 1/3
//! ▸ quick os.udp default 64B, run 2 of 3
//!    41 %  4/9 runs, 12 s done, 17 s left  messages 9000 of 20 000  [████████░░░░░░░░░░░░]
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::{Term, style, truncate_str};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use myelin_bench_kit::protocol::Workload;

use crate::live::{Lines, Monitor, Trigger};
use crate::observe::sampler::{come_last, stay_off_real_time_cpus, thread_cpu_ns};
use crate::plan::size::{Durations, words};
use crate::report::format::{count, cpu_percent, or_dash, us_or_dash};
use crate::run::{Running, Watch};
use crate::stderr::print_line;
use crate::summary::Cell;

/// How a session shows its progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// A live view on a terminal, plain lines elsewhere.
    #[default]
    Live,
    /// Plain lines, even on a terminal.
    Plain,
    /// The figures of each second of a run, as lines on standard output.
    Seconds,
}

pub struct Progress {
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    view: View,
    trigger: Option<Arc<Trigger>>,
    viewer: Option<Viewer>,
    monitor: Option<Monitor>,
    eta: Eta,
    said: usize,
    now: Option<Title>,
    /// Lines of the last runs, oldest first, and whether each run is valid.
    finished: VecDeque<(String, bool)>,
}

#[derive(Clone, Debug)]
pub struct Title {
    pub scenario: String,
    /// System, tuning and parameter point.
    pub cell: String,
    /// Number of the run within its cell, from 1.
    pub run: u32,
    /// Planned number of runs of the cell.
    pub runs: u32,
}

impl Progress {
    /// Progress without runs; [`made_before`](Self::made_before) and [`add`](Self::add) add them.
    /// `trigger` watches every run.
    pub fn new(durations: Durations, view: View, trigger: Option<Arc<Trigger>>) -> Self {
        Progress {
            bar: (view == View::Live).then(bar).flatten(),
            view,
            trigger,
            viewer: None,
            monitor: None,
            eta: Eta::new(durations),
            said: 0,
            now: None,
            finished: VecDeque::new(),
        }
    }

    /// Whether there is a view that shows the figures of finished runs.
    pub fn is_live(&self) -> bool {
        self.bar.is_some()
    }

    /// Adds a run of `cell` from an earlier session that took `seconds`.
    pub fn made_before(&mut self, cell: usize, seconds: f64) {
        self.eta.made_before(cell, seconds);
        self.said = self.eta.tenth();
    }

    /// Adds runs of `cells` to those that are left.
    pub fn add(&mut self, cells: impl Iterator<Item = usize>) {
        self.eta.add(cells);
        self.said = self.eta.tenth();
    }

    pub fn begin_run(&mut self, cell: usize, title: Title) {
        self.eta.begin(cell);
        self.now = Some(title);
        self.show();
    }

    /// Ends the run in progress, of `cell`, which took `seconds`; `alone` has its own figures,
    /// unless it failed.
    pub fn finish_run(&mut self, cell: usize, seconds: f64, alone: Option<&Cell>) {
        self.eta.finish(cell, seconds);
        if self.is_live() {
            let is_good = alone.is_some_and(|cell| cell.valid);
            let line = self.now.take().map(|title| (finished_line(&title, alone), is_good));
            self.finished.extend(line);
            self.finished.drain(..self.finished.len().saturating_sub(FINISHED_MAX));
        } else if self.view != View::Seconds && self.eta.tenth() > self.said {
            self.said = self.eta.tenth();
            print_line(self.eta.words(0.0));
        }
        self.show();
    }

    /// Prints a text without breaking the view.
    pub fn say(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| print_line(text)),
            None => print_line(text),
        }
    }

    pub fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn show(&self) {
        if let Some(bar) = &self.bar {
            let (rows, columns) = Term::stderr().size();
            let now = self.now.as_ref();
            bar.set_message(lines(&self.finished, now, rows.into(), columns.into()).join("\n"));
            self.eta.show(bar, 0.0, "");
        }
    }
}

impl Watch for Progress {
    fn begin(&mut self, running: Running) {
        let lines = (self.view == View::Seconds).then(|| {
            let title = self.now.as_ref().map_or("", |title| &title.cell);
            Lines::new(title, running.prepare.payload_bytes)
        });
        if lines.is_some() || self.trigger.is_some() {
            self.monitor = Monitor::start(running.clone(), lines, self.trigger.clone());
        }
        if let Some(bar) = &self.bar {
            self.viewer = Viewer::start(bar.clone(), running, self.eta.clone());
        }
    }

    fn end(&mut self) -> u64 {
        let watched_ns = self.monitor.take().and_then(Monitor::stop).unwrap_or(0);
        watched_ns + self.viewer.take().and_then(Viewer::stop).unwrap_or(0)
    }
}

/// The lines above the bar. With little room the line of the current run stays longest.
fn lines(
    finished: &VecDeque<(String, bool)>,
    now: Option<&Title>,
    rows: usize,
    columns: usize,
) -> Vec<String> {
    // On some terminals a line wraps if it fills the last column.
    let fit = |text: &str| truncate_str(text, columns.saturating_sub(1), "…").into_owned();
    let shown = finished.iter().rev().take(rows.saturating_sub(ROWS_BELOW)).rev();
    let mut lines: Vec<String> = shown
        .map(|(line, is_good)| match is_good {
            true => fit(line),
            false => style(fit(line)).for_stderr().red().to_string(),
        })
        .collect();
    if !lines.is_empty() {
        lines.insert(0, style(fit("last runs")).for_stderr().dim().to_string());
    }
    lines.extend(now.map(|Title { scenario, cell, run, runs }| {
        let now = fit(&format!("▸ {scenario} {cell}, run {run} of {runs}"));
        style(now).for_stderr().bold().to_string()
    }));
    lines
}

/// The figures come first, because they have the same width in every line.
fn finished_line(title: &Title, alone: Option<&Cell>) -> String {
    let Title { cell: name, run, runs, .. } = title;
    let Some(cell) = alone else { return format!("! failed  {name} {run}/{runs}") };
    let latency = match cell.workload {
        Workload::Roundtrip => &cell.round_trip_us,
        Workload::Publish => &cell.write_us,
        _ => &cell.one_way_us,
    };
    let [p50, p99] = [latency.and_then(|it| it.p50), latency.and_then(|it| it.p99)];
    let mark = if cell.valid { " " } else { "!" };
    format!(
        "{mark} p50 {:>8} µs  p99 {:>8} µs  CPU {:>6} %  lost {:>8}  {name} {run}/{runs}",
        us_or_dash(p50),
        us_or_dash(p99),
        or_dash(cell.cpu_percent, cpu_percent),
        or_dash(cell.lost, count)
    )
}

/// A bar on standard error; `None` if that is no terminal, or a terminal that cannot move its
/// cursor.
fn bar() -> Option<ProgressBar> {
    let kind = std::env::var("TERM").unwrap_or_default();
    // It is drawn on request, and hardly ever otherwise.
    let target = ProgressDrawTarget::stderr_with_hz(1);
    if target.is_hidden() || matches!(kind.as_str(), "" | "dumb" | "unknown") {
        return None;
    }
    let style = ProgressStyle::with_template("{msg}\n  {percent:>3} %  {prefix}  [{wide_bar}]");
    let style = style.expect("the template is part of the program").progress_chars("█░");
    Some(ProgressBar::with_draw_target(Some(PARTS), target).with_style(style))
}

/// The progress of a session in time; a run of one cell may last a hundred times as long as that of
/// another.
#[derive(Clone)]
struct Eta {
    begin: Instant,
    durations: Durations,
    /// Cells of the runs left, without the run in progress.
    left: Vec<usize>,
    now: Option<usize>,
    done: usize,
    done_s: f64,
}

impl Eta {
    fn new(durations: Durations) -> Self {
        let begin = Instant::now();
        Eta { begin, durations, left: Vec::new(), now: None, done: 0, done_s: 0.0 }
    }

    fn made_before(&mut self, cell: usize, seconds: f64) {
        self.durations.learn(cell, seconds);
        self.done += 1;
        self.done_s += seconds;
    }

    fn add(&mut self, cells: impl Iterator<Item = usize>) {
        self.left.extend(cells);
    }

    fn begin(&mut self, cell: usize) {
        if let Some(place) = self.left.iter().position(|left| *left == cell) {
            self.left.swap_remove(place);
        }
        self.now = Some(cell);
    }

    fn finish(&mut self, cell: usize, seconds: f64) {
        self.made_before(cell, seconds);
        self.now = None;
    }

    fn all(&self) -> usize {
        self.done + self.left.len() + usize::from(self.now.is_some())
    }

    /// Finished part of the session in tenths.
    fn tenth(&self) -> usize {
        self.done * 10 / self.all().max(1)
    }

    /// Seconds left, if `part` of the run in progress is done.
    fn left_s(&self, part: f64) -> f64 {
        let now = self.now.map_or(0.0, |cell| self.durations.of(cell) * (1.0 - part));
        now + self.left.iter().map(|cell| self.durations.of(*cell)).sum::<f64>()
    }

    fn words(&self, part: f64) -> String {
        let (done, left) = (words(self.begin.elapsed().as_secs_f64()), words(self.left_s(part)));
        format!("{}/{} runs, {done} done, {left} left", self.done, self.all())
    }

    /// Draws the estimate, and a text about the run in progress.
    fn show(&self, bar: &ProgressBar, part: f64, run: &str) {
        bar.set_position((PARTS as f64 * self.part_done(part)) as u64);
        bar.set_prefix(self.words(part) + run);
        bar.force_draw();
    }

    /// Finished part of the session, 0 to 1.
    fn part_done(&self, part: f64) -> f64 {
        let done = self.done_s + self.now.map_or(0.0, |cell| self.durations.of(cell) * part);
        done / (done + self.left_s(part)).max(f64::MIN_POSITIVE)
    }
}

/// The thread that refreshes the view of a run in progress.
///
/// It runs under SCHED_IDLE and avoids the CPUs of real-time threads, like the observing thread
/// (`observe::sampler`). A run that ends before the first refresh is not disturbed at all. The cost
/// of a refresh is measured: the thread sleeps longer after an expensive one, so that the total
/// stays below [`COST_PERCENT_MAX`].
struct Viewer {
    stop: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Viewer {
    /// Shows `running` in `bar` until it is stopped or dropped; `eta` is the session's estimate.
    /// The thread is ready and asleep when this returns. `None` if there is no memory for a thread.
    fn start(bar: ProgressBar, running: Running, eta: Eta) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        let (ready, readiness) = mpsc::channel();
        let view = move || {
            stay_off_real_time_cpus(running.processes.iter().map(|(_, pid)| *pid));
            come_last();
            let _ = ready.send(());
            view(&bar, &running, &eta, &stopped)
        };
        let thread = std::thread::Builder::new().name("view".into()).spawn(view).ok()?;
        // Fails at once if it has panicked.
        let _ = readiness.recv();
        Some(Viewer { stop, thread })
    }

    /// CPU time of refreshing, in ns; `None` if the thread panicked. Neither its start nor its end
    /// counts, which is after the run.
    fn stop(self) -> Option<u64> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

fn view(bar: &ProgressBar, running: &Running, eta: &Eta, stopped: &Receiver<()>) -> u64 {
    let (begin_ns, run_begin) = (thread_cpu_ns(), Instant::now());
    let (mut spent_ns, mut pause) = (0, FIRST_REFRESH);
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let before_ns = thread_cpu_ns();
        let exchanges = running.exchanges();
        let part = running.part(exchanges, run_begin.elapsed());
        eta.show(bar, part, &messages(running, exchanges));
        let now_ns = thread_cpu_ns();
        let cost_ns = now_ns - before_ns;
        let cheap_ns = cost_ns as f64 * 100.0 / COST_PERCENT_MAX;
        pause = PAUSE.max(Duration::from_nanos(cheap_ns as u64));
        spent_ns = now_ns - begin_ns;
    }
    spent_ns
}

/// The progress of the run in messages.
fn messages(running: &Running, exchanges: u64) -> String {
    match (exchanges.checked_sub(running.warmup_messages()), running.messages()) {
        (None, _) => "  warming up".to_owned(),
        (Some(made), 0) => format!("  messages {}", count(made)),
        (Some(made), all) => format!("  messages {} of {}", count(made), count(all)),
    }
}

/// Resolution of the bar.
const PARTS: u64 = 1000;
/// Number of finished runs shown.
const FINISHED_MAX: usize = 8;
/// Rows for all else, and for lines that a narrow screen breaks.
const ROWS_BELOW: usize = 6;
/// Shorter runs are not disturbed by a refresh.
const FIRST_REFRESH: Duration = Duration::from_millis(500);
/// Least time between two refreshes.
const PAUSE: Duration = Duration::from_millis(250);
/// CPU budget of refreshing, in per cent of a core, in addition to observing.
const COST_PERCENT_MAX: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::registry::SystemDriver;
    use crate::scenario::Scenario;

    /// Two cells whose runs are expected to last 1.2 s and 10.2 s.
    fn eta() -> Eta {
        let text = r#"{"name": "a.x", "about": "", "wait": "block", "transport": "kernel"}"#;
        let system = serde_json::from_str(text).unwrap();
        let entry = SystemDriver { system, executable: "myelin-driver-a".into() };
        let mut scenario = Scenario::load("quick").unwrap();
        let workload = &mut scenario.workload;
        (workload.payload_bytes, workload.rate_hz) = (vec![64], vec![Some(100.0), Some(10.0)]);
        (workload.messages, workload.duration_s, workload.warmup_messages) = (100, 0.0, 0);
        workload.warmup_s = 0.0;
        scenario.plan.tunings.truncate(1);
        Eta::new(Durations::new(&Plan::new(vec![(scenario, vec![entry])], 1, String::new())))
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn the_time_left_sums_all_runs_and_grows_with_blocks() {
        let mut eta = eta();
        eta.left.extend([0, 1]);
        assert!(is_near(eta.left_s(0.0), 11.4));
        eta.begin(1);
        assert!(is_near(eta.left_s(0.5), 5.1 + 1.2));
        assert!(is_near(eta.part_done(0.5), 5.1 / 11.4));
        eta.finish(1, 20.4);
        assert!(is_near(eta.left_s(0.0), 2.4), "the other is expected to be as slow");
        eta.begin(0);
        eta.finish(0, 1.2);
        assert!(is_near(eta.left_s(0.0), 0.0) && is_near(eta.part_done(0.0), 1.0));
        assert_eq!((eta.done, eta.all(), eta.tenth()), (2, 2, 10));
        eta.left.push(1);
        assert!(is_near(eta.left_s(0.0), 20.4), "as long as the last of its kind");
        assert!(is_near(eta.part_done(0.0), 21.6 / 42.0));
        assert_eq!((eta.all(), eta.tenth()), (3, 6));
    }

    #[test]
    fn runs_of_an_earlier_session_count_as_done() {
        let mut eta = eta();
        eta.made_before(1, 30.0);
        eta.left.extend([1, 1]);
        assert!(is_near(eta.left_s(0.0), 60.0) && is_near(eta.part_done(0.0), 1.0 / 3.0));
        assert_eq!((eta.done, eta.all(), eta.tenth()), (1, 3, 3));
    }

    #[test]
    fn the_run_in_progress_stays_longest_and_every_line_fits() {
        let title = |run| Title {
            scenario: "quick".into(),
            cell: "iceoryx.udp-shm awake 64B-100Hz".into(),
            run,
            runs: 3,
        };
        let finished = VecDeque::from([1, 2].map(|run| (finished_line(&title(run), None), false)));
        let text = |rows, columns| -> Vec<String> {
            let lines = lines(&finished, Some(&title(3)), rows, columns);
            lines.iter().map(|line| console::strip_ansi_codes(line).into_owned()).collect()
        };
        let now = "▸ quick iceoryx.udp-shm awake 64B-100Hz, run 3 of 3";
        let second = "! failed  iceoryx.udp-shm awake 64B-100Hz 2/3";
        let first = "! failed  iceoryx.udp-shm awake 64B-100Hz 1/3";
        assert_eq!(text(24, 80), ["last runs", first, second, now]);
        assert_eq!(text(7, 80), ["last runs", second, now], "the latest");
        assert_eq!(text(6, 80), [now]);
        assert_eq!(text(6, 21), ["▸ quick iceoryx.udp…"]);
        assert_eq!(text(0, 0).len(), 1);
    }
}
