//! What other threads do with a player: pause, step, seek, stop, and look.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::timeline::Timeline;
use super::wake::Wake;

/// Controls a player from other threads; a clone controls the same one. Made by
/// [`Player::control`](super::Player::control).
#[derive(Clone, Debug)]
pub struct Control(pub(super) Arc<Shared>);

/// How far a player is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// Where it is, in ns since 1970.
    pub position_ns: u64,
    /// Where it begins.
    pub begin_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// Whether it is paused.
    pub is_paused: bool,
    /// The rate that was chosen.
    pub rate: f64,
    /// Messages that were published.
    pub messages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Command {
    Pause,
    Resume,
    Toggle,
    Step,
    Seek(u64),
    SeekBy(i64),
    Rate(f64),
    Scale(f64),
}

/// Between a player and its controls.
#[derive(Debug)]
pub(super) struct Shared {
    pub wake: Wake,
    commands: Mutex<Vec<Command>>,
    is_stopped: AtomicBool,
    timeline: Mutex<Timeline>,
    pub messages: AtomicU64,
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl Shared {
    pub(super) fn new(timeline: Timeline, begin_ns: u64, end_ns: u64) -> Shared {
        Shared {
            wake: Wake::default(),
            commands: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            timeline: Mutex::new(timeline),
            messages: AtomicU64::new(0),
            begin_ns,
            end_ns,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        // ORDER: Relaxed: no other data depends on it.
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(super) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut *lock(&self.commands))
    }

    pub(super) fn show(&self, timeline: &Timeline) {
        lock(&self.timeline).clone_from(timeline);
    }
}

impl Control {
    /// Stands still.
    pub fn pause(&self) {
        self.send(Command::Pause);
    }

    /// Goes on.
    pub fn resume(&self) {
        self.send(Command::Resume);
    }

    /// Pauses, or goes on.
    pub fn toggle(&self) {
        self.send(Command::Toggle);
    }

    /// Pauses, and publishes the next message.
    pub fn step(&self) {
        self.send(Command::Step);
    }

    /// Goes to a place, in ns since 1970: within what is played. The latched samples from before are
    /// published, and it is paused or plays as before.
    pub fn seek(&self, to_ns: u64) {
        self.send(Command::Seek(to_ns));
    }

    /// Goes so many ns ahead, or back.
    pub fn seek_by(&self, ns: i64) {
        self.send(Command::SeekBy(ns));
    }

    /// Plays so many times as fast as it was recorded.
    pub fn set_rate(&self, rate: f64) {
        self.send(Command::Rate(rate));
    }

    /// Plays so many times as fast as now.
    pub fn scale_rate(&self, factor: f64) {
        self.send(Command::Scale(factor));
    }

    /// Ends [`Player::run`](super::Player::run).
    pub fn stop(&self) {
        // ORDER: Relaxed: as in `is_stopped`; the wake is rung behind it.
        self.0.is_stopped.store(true, Ordering::Relaxed);
        self.0.wake.ring();
    }

    /// Where it is now.
    pub fn status(&self) -> Status {
        let timeline = lock(&self.0.timeline).clone();
        let Shared { begin_ns, end_ns, .. } = *self.0;
        let position_ns = timeline.bag_ns(myelin::now());
        Status {
            position_ns: position_ns.clamp(begin_ns, end_ns),
            begin_ns,
            end_ns,
            is_paused: timeline.is_paused(),
            rate: timeline.rate(),
            // ORDER: Relaxed: the number stands for itself.
            messages: self.0.messages.load(Ordering::Relaxed),
        }
    }

    fn send(&self, command: Command) {
        lock(&self.0.commands).push(command);
        self.0.wake.ring();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
