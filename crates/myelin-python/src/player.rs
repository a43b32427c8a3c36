//! A player: it publishes what was recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin_bag::player::{Control, PlayError};
use myelin_bag::{OpenError, Recording, Time};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::bag::os_error;
use crate::call::forks;
use crate::errors::{busy, closed, exception, raised};
use crate::info::representation;
use crate::node::{Node, limit};
use crate::recorder::{node_or_own, pause, warn};
use crate::released::{Released, released};

/// Publishes a recording, at the times at which it was published.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Player {
    paths: Vec<PathBuf>,
    control: Control,
    topics: Vec<String>,
    refused: Vec<String>,
    /// Locked with the GIL, for a moment.
    state: Mutex<State>,
    forks: u32,
}

enum State {
    Stands(Box<Released<myelin_bag::Player>>),
    Plays(JoinHandle<Run>),
    /// Until another call of it returns.
    InUse,
    Closed,
}

type Run = (myelin_bag::Player, Result<myelin_bag::player::Played, PlayError>);

/// What was published.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct Played {
    messages: u64,
    bytes: u64,
    /// How long it took, in seconds.
    duration: f64,
    /// Half of the messages were not later than this, in seconds; None without messages.
    lateness_p50: Option<f64>,
    /// 99 % were not later.
    lateness_p99: Option<f64>,
    lateness_max: Option<f64>,
    /// By how many seconds it took longer than planned, because this host could not keep up.
    delayed: f64,
    /// How many times a reliable subscriber was late and was not waited for.
    passed_over: u64,
    /// Messages that are no samples of their type, and were left out.
    unfit: u64,
    /// Parts of the files that cannot be read, and were left out.
    unreadable: u64,
    /// How many times it began again.
    repeats: u64,
    /// Whether it was closed before its end.
    is_stopped: bool,
}

representation!(Played: messages, bytes, duration, lateness_p99, is_stopped);

/// A file, or several.
#[derive(FromPyObject)]
enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

#[pymethods]
impl Player {
    /// Opens a recording: a file, a folder of files, or several. Nothing is published before `play`.
    #[new]
    #[pyo3(signature = (
        path, topics=None, *, exclude=None, rename=None, rate=1.0, start=None, end=None, repeat=false,
        wait_for_slow=false, clock_hz=None, by="publish", node=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        py: Python<'_>,
        path: Paths,
        topics: Option<Vec<String>>,
        exclude: Option<Vec<String>>,
        rename: Option<BTreeMap<String, String>>,
        rate: f64,
        start: Option<f64>,
        end: Option<f64>,
        repeat: bool,
        wait_for_slow: bool,
        clock_hz: Option<f64>,
        by: &str,
        node: Option<Bound<'_, Node>>,
    ) -> PyResult<Player> {
        let paths = match path {
            Paths::One(path) => vec![path],
            Paths::Several(paths) => paths,
        };
        let by = time_of(by)?;
        let recording = released(py, || Recording::open(&paths)).map_err(not_played)?;
        for (path, report) in recording.reports() {
            if !report.is_lossless() {
                let lost = report.lost().known;
                warn(py, &format!("{}: at least {lost} messages are lost", path.display()))?;
            }
        }
        let node = node_or_own(py, node.as_ref(), "player")?;
        let mut builder = myelin_bag::Player::builder(&node);
        builder = builder.rate(rate).repeat(repeat).wait_for_slow(wait_for_slow).by(by);
        for pattern in topics.iter().flatten() {
            builder = builder.topic(pattern);
        }
        for pattern in exclude.iter().flatten() {
            builder = builder.exclude(pattern);
        }
        for (from, to) in rename.iter().flatten() {
            builder = builder.rename(from, to);
        }
        if let Some(hz) = clock_hz {
            builder = builder.clock_hz(hz);
        }
        if start.is_some() || end.is_some() {
            let (begin_ns, _) = released(py, || recording.times(by)).map_err(not_played)?;
            if let Some(start) = start {
                builder = builder.start_ns(place_ns(begin_ns, start)?);
            }
            if let Some(end) = end {
                builder = builder.end_ns(place_ns(begin_ns, end)?);
            }
        }
        let player = released(py, || builder.open(recording)).map_err(not_played)?;
        Ok(Player {
            paths,
            control: player.control(),
            topics: player.topics().map(ToOwned::to_owned).collect(),
            refused: player.refused().iter().map(ToString::to_string).collect(),
            state: Mutex::new(State::Stands(Box::new(Released::new(player)))),
            forks: forks(),
        })
    }

    /// The names under which topics are published.
    #[getter]
    fn topics(&self) -> Vec<String> {
        self.topics.clone()
    }

    /// Why topics are left out, a sentence each.
    #[getter]
    fn refused(&self) -> Vec<String> {
        self.refused.clone()
    }

    /// Starts to play, or goes on if it is paused. Returns at once; see `wait`.
    fn play(&self) -> PyResult<()> {
        if !self.start()? {
            self.control.resume();
        }
        Ok(())
    }

    /// Stands still, until `play`. Called before `play`, it stands still at the begin.
    fn pause(&self) -> PyResult<()> {
        self.check(&self.state())?;
        self.control.pause();
        self.start().map(drop)
    }

    /// Pauses, and publishes the next message.
    fn step(&self) -> PyResult<()> {
        self.check(&self.state())?;
        self.control.step();
        self.start().map(drop)
    }

    /// Goes to a place, in seconds from the begin of what is played; it is paused or plays as before.
    fn seek(&self, to: f64) -> PyResult<()> {
        self.check(&self.state())?;
        self.control.seek(place_ns(self.control.status().begin_ns, to)?);
        Ok(())
    }

    /// How many times as fast as it was recorded.
    #[getter]
    fn rate(&self) -> f64 {
        self.control.status().rate
    }

    #[setter]
    fn set_rate(&self, rate: f64) -> PyResult<()> {
        if !(rate > 0.0 && rate <= RATE_MAX) {
            let message =
                format!("rate is {rate}; use a number above 0, and at most {RATE_MAX:.0}");
            return Err(exception("WrongSetting", message));
        }
        self.check(&self.state())?;
        self.control.set_rate(rate);
        Ok(())
    }

    /// Where it is, in seconds from the begin of what is played.
    #[getter]
    fn position(&self) -> f64 {
        let status = self.control.status();
        match *self.state() {
            State::Stands(_) if status.messages == 0 => 0.0,
            _ => (status.position_ns - status.begin_ns) as f64 / 1e9,
        }
    }

    /// How many seconds are played.
    #[getter]
    fn duration(&self) -> f64 {
        let status = self.control.status();
        (status.end_ns - status.begin_ns) as f64 / 1e9
    }

    #[getter]
    fn is_paused(&self) -> bool {
        self.control.status().is_paused
    }

    /// How many messages it has published.
    #[getter]
    fn messages(&self) -> u64 {
        self.control.status().messages
    }

    /// Waits for the end, for at most `timeout` seconds (None: for ever), and returns what was
    /// published; None if the time is over. `play` plays it once more.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Played>> {
        let (limit, begun) = (limit(timeout)?, Instant::now());
        self.check(&self.state())?;
        loop {
            let is_finished = match &*self.state() {
                State::Plays(thread) => thread.is_finished(),
                State::Stands(_) => {
                    let message = "this player does not play; call play() before wait()";
                    return Err(exception("BagError", message.to_owned()));
                }
                State::InUse => return Err(busy("player", false)),
                State::Closed => return Err(closed("player")),
            };
            if is_finished {
                return self.end(py);
            }
            if begun.elapsed() >= limit {
                return Ok(None);
            }
            pause(py, limit.saturating_sub(begun.elapsed()))?;
        }
    }

    /// Waits until a topic, or all topics together, have so many subscribers, for at most `timeout`
    /// seconds (None: for ever). False if the time is over. Call it before `play`.
    #[pyo3(signature = (count=1, topic=None, timeout=None))]
    fn wait_for_subscribers(
        &self,
        py: Python<'_>,
        count: usize,
        topic: Option<String>,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let (limit, begun) = (limit(timeout)?, Instant::now());
        if let Some(topic) = topic.as_ref().filter(|it| !self.topics.contains(it)) {
            let message = format!("this player has no topic {topic:?}; it has {:?}", self.topics);
            return Err(exception("WrongSetting", message));
        }
        self.check(&self.state())?;
        loop {
            let matched = match &*self.state() {
                State::Stands(player) => player.matched(topic.as_deref()),
                State::Closed => return Err(closed("player")),
                _ => return Err(busy("player", false)),
            };
            if matched >= count {
                return Ok(true);
            }
            if begun.elapsed() >= limit {
                return Ok(false);
            }
            pause(py, limit.saturating_sub(begun.elapsed()))?;
        }
    }

    /// Ends it, and its publishers.
    fn close(&self, py: Python<'_>) {
        let state = std::mem::replace(&mut *self.state(), State::Closed);
        if self.forks != forks() {
            // Its thread does not exist in this process, so that nobody could wait for it.
            return std::mem::forget(state);
        }
        self.control.stop();
        released(py, || match state {
            State::Plays(thread) => drop(thread.join()),
            State::Stands(player) => drop(player.into_inner()),
            State::InUse | State::Closed => {}
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<Player {:?}>", self.paths)
    }
}

impl Player {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts its thread; false if it runs already.
    fn start(&self) -> PyResult<bool> {
        let mut state = self.state();
        self.check(&state)?;
        let mut player = match std::mem::replace(&mut *state, State::Closed) {
            State::Stands(player) => player.into_inner(),
            other => {
                *state = other;
                return Ok(false);
            }
        };
        let thread = std::thread::Builder::new().name("myelin-play".to_owned());
        let started = thread.spawn(move || {
            let played = player.run();
            (player, played)
        });
        // Without a thread the player is gone, too.
        let thread = started
            .map_err(|error| exception("BagError", format!("no thread can be started: {error}")))?;
        *state = State::Plays(thread);
        Ok(true)
    }

    fn check(&self, state: &State) -> PyResult<()> {
        match state {
            _ if self.forks != forks() => Err(raised(myelin::Error::Forked)),
            State::Closed => Err(closed("player")),
            _ => Ok(()),
        }
    }

    /// Takes the player back from its thread, which has ended.
    fn end(&self, py: Python<'_>) -> PyResult<Option<Played>> {
        let state = std::mem::replace(&mut *self.state(), State::InUse);
        let State::Plays(thread) = state else {
            *self.state() = state;
            return Err(busy("player", false));
        };
        match released(py, || thread.join()) {
            Ok((player, played)) => {
                let player = Box::new(Released::new(player));
                let mut state = self.state();
                // Another thread may have closed it meanwhile.
                if matches!(*state, State::InUse) {
                    *state = State::Stands(player);
                }
                drop(state);
                Ok(Some(Played::from(played.map_err(not_played)?)))
            }
            Err(_) => {
                *self.state() = State::Closed;
                Err(exception("BagError", "the player has failed".to_owned()))
            }
        }
    }
}

impl Drop for Player {
    /// A player that is forgotten goes on in its thread until then.
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.state(), State::Closed);
        if self.forks != forks() {
            return std::mem::forget(state);
        }
        self.control.stop();
        drop(Released::new(Joined(state)));
    }
}

/// Waits for the thread when it is dropped.
struct Joined(State);

impl Drop for Joined {
    fn drop(&mut self) {
        if let State::Plays(thread) = std::mem::replace(&mut self.0, State::Closed) {
            drop(thread.join());
        }
    }
}

impl From<myelin_bag::player::Played> for Played {
    fn from(played: myelin_bag::player::Played) -> Self {
        let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
        let lateness = played.lateness;
        Played {
            messages: played.messages,
            bytes: played.bytes,
            duration: played.duration.as_secs_f64(),
            lateness_p50: lateness.map(|it| seconds(it.p50_ns)),
            lateness_p99: lateness.map(|it| seconds(it.p99_ns)),
            lateness_max: lateness.map(|it| seconds(it.max_ns)),
            delayed: played.delayed.as_secs_f64(),
            passed_over: played.passed_over,
            unfit: played.unfit,
            unreadable: played.unreadable,
            repeats: played.repeats,
            is_stopped: played.is_stopped,
        }
    }
}

/// A time by its name.
pub fn time_of(by: &str) -> PyResult<Time> {
    match by {
        "log" => Ok(Time::Log),
        "publish" => Ok(Time::Publish),
        _ => Err(exception("WrongSetting", format!("by is {by:?}; use log or publish"))),
    }
}

/// A place so many seconds behind a begin.
pub fn place_ns(begin_ns: u64, seconds: f64) -> PyResult<u64> {
    if seconds.is_nan() || seconds < 0.0 {
        let message = format!(
            "a place in a recording is {seconds}; use seconds from its begin, which are not negative"
        );
        return Err(exception("WrongSetting", message));
    }
    Ok(begin_ns.saturating_add((seconds * 1e9).round() as u64))
}

fn not_played(error: PlayError) -> PyErr {
    match error {
        PlayError::Open { path, error: OpenError::Io(error) } => os_error(&path, &error),
        PlayError::Node(error) => raised(error),
        PlayError::NoTopic(_) | PlayError::Setting { .. } | PlayError::Nothing => {
            exception("WrongSetting", error.to_string())
        }
        other => exception("BagError", other.to_string()),
    }
}

const RATE_MAX: f64 = 1e6;
