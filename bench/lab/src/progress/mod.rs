//! What the user sees while it runs: a live view on a terminal, plain lines elsewhere.
//!
//! The view stands below the log and is drawn anew in place: no alternate screen, no raw mode, and
//! the cursor stays visible. So there is nothing to restore, however the lab ends, and what it has
//! said can be scrolled back to. While a run lasts, a thread that comes last looks at it
//! (`viewer`); between runs the lab draws itself.

mod course;
mod look;
mod panel;
mod view;
mod viewer;

use std::time::Instant;

use course::Course;
use panel::Panel;
pub use view::{Finished, Title};
use view::{State, lines};
use viewer::Viewer;

use crate::plan::size::{Durations, words};
use crate::run::watch::{Running, Watch};

/// The progress of a session.
pub struct Progress {
    /// `None` while a viewer has it, and without a terminal.
    live: Option<Live>,
    viewer: Option<Viewer>,
    course: Course,
    begin: Instant,
    said: usize,
}

impl Progress {
    /// Of runs that are still to be named, by [`made_before`](Self::made_before) and
    /// [`add`](Self::add). `plain` are lines, even on a terminal.
    pub fn new(durations: Durations, plain: bool) -> Self {
        let panel = if plain { None } else { Panel::open() };
        Progress {
            live: panel.map(|panel| Live { panel, state: State::default() }),
            viewer: None,
            course: Course::new(durations),
            begin: Instant::now(),
            said: 0,
        }
    }

    /// Whether there is a view, to which figures of finished runs are of use.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// A run of `cell` was made in an earlier session, and took so long.
    pub fn made_before(&mut self, cell: usize, seconds: f64) {
        self.course.made_before(cell, seconds);
        self.said = self.course.tenth();
    }

    /// Runs of `cells` are to come; those that were are still.
    pub fn add(&mut self, cells: impl Iterator<Item = usize>) {
        self.course.add(cells);
        self.said = self.course.tenth();
    }

    /// A run of `cell` begins.
    pub fn begin_run(&mut self, cell: usize, title: Title) {
        self.course.begin(cell);
        if let Some(live) = &mut self.live {
            live.state.begin(title);
        }
        self.show();
    }

    /// The run in progress, of `cell`, is over, has taken so long and yielded these figures.
    pub fn finish_run(&mut self, cell: usize, seconds: f64, finished: Option<Finished>) {
        self.course.finish(cell, seconds);
        if let Some(live) = &mut self.live {
            live.state.finish(finished);
        } else if self.course.tenth() > self.said {
            self.said = self.course.tenth();
            let (done, all) = (self.course.done, self.course.all());
            let elapsed = words(self.begin.elapsed().as_secs_f64());
            let left = words(self.course.left_s(0.0));
            eprintln!("{done}/{all} runs, {elapsed} done, {left} left");
        }
        self.show();
    }

    /// Says something without tearing the view.
    pub fn say(&mut self, text: &str) {
        if let Some(live) = &mut self.live {
            live.panel.clear();
        }
        eprintln!("{text}");
    }

    /// Takes the view off the screen.
    pub fn end(&mut self) {
        self.live = None;
    }

    fn show(&mut self) {
        if let Some(live) = &mut self.live {
            live.state.time = self.course.time(0.0, self.begin);
            live.draw();
        }
    }
}

impl Watch for Progress {
    fn begin(&mut self, running: Running) {
        if let Some(live) = self.live.take() {
            self.viewer = Viewer::start(live, running, self.course.clone(), self.begin);
        }
    }

    fn end(&mut self) -> u64 {
        let Some((live, spent_ns)) = self.viewer.take().and_then(Viewer::stop) else {
            return 0;
        };
        self.live = Some(live);
        spent_ns
    }
}

/// A view and what it shows.
struct Live {
    panel: Panel,
    state: State,
}

impl Live {
    fn draw(&mut self) {
        let (rows, columns) = self.panel.size();
        self.panel.draw(&lines(&self.state, rows, columns));
    }
}
