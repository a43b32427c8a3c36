//! What the user sees while it runs: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of a plan.
pub struct Progress {
    bar: Option<ProgressBar>,
    all: usize,
    done: usize,
    at_start: usize,
    begin: Instant,
    said: usize,
}

impl Progress {
    /// Of `all` runs, `done` are finished already.
    pub fn new(all: usize, done: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(
                "{bar:30} {percent:>3} %  {elapsed_precise} done, {eta_precise} left  {msg}",
            );
            let bar = ProgressBar::new(all as u64 * STEPS);
            bar.set_position(done as u64 * STEPS);
            bar.reset_eta();
            bar.with_style(style.expect("a valid template"))
        });
        Progress { bar, all, done, at_start: done, begin: Instant::now(), said: 0 }
    }

    /// A run begins.
    pub fn begin_run(&mut self, system: &str, tuning: &str, point: &str) {
        if let Some(bar) = &self.bar {
            let (next, all) = (self.done + 1, self.all);
            bar.set_message(format!("{next}/{all} {system} {tuning} {point}"));
        }
    }

    /// The run in progress is done to this part, 0 to 1.
    pub fn within_run(&mut self, part: f64) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64 * STEPS + (part * STEPS as f64) as u64);
        }
    }

    /// The run in progress is over.
    pub fn finish_run(&mut self) {
        self.done += 1;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64 * STEPS);
            return;
        }
        let tenth = self.done * 10 / self.all;
        if tenth > self.said {
            self.said = tenth;
            let elapsed = self.begin.elapsed().as_secs_f64();
            let made = (self.done - self.at_start).max(1) as f64;
            let left = elapsed / made * (self.all - self.done) as f64;
            let (done, all) = (self.done, self.all);
            eprintln!("{done}/{all} runs, {elapsed:.0} s done, {left:.0} s left");
        }
    }

    /// Says what went wrong without tearing the bar.
    pub fn complain(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Clears the bar.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Positions of the bar within one run.
const STEPS: u64 = 100;
