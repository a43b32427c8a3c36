//! `myelin top`: all topics and nodes on one screen, or as text.
//!
//! One thread looks at the domain at each interval, one reads keys, one waits for signals, and one
//! looks at the samples of the topic whose details are open. This thread draws what they send.

pub mod details;
pub mod keys;
pub mod look;
pub mod model;
pub mod observation;
pub mod plain;
pub mod screen;
pub mod signals;
pub mod snapshot;
pub mod table;
pub mod terminal;
pub mod text;

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyEvent};
use libc::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use self::look::Looker;
use self::model::{Effect, Model, Opened};
use self::observation::Observation;
use self::screen::Look;
use self::signals::Blocked;
use self::snapshot::{NodeRow, Snapshot, TopicRow};
use self::table::Row;
use self::terminal::OwnScreen;
use crate::Error;

/// What a user can choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// Between two looks.
    pub interval: Duration,
    /// The name of the column to sort by.
    pub sort: Option<String>,
}

/// How it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As the user wanted it, or because nobody reads any more.
    Done,
    /// By this signal.
    Signal(i32),
}

/// What the names of a column may be.
pub fn columns() -> BTreeSet<&'static str> {
    let topics = TopicRow::COLUMNS.iter().map(|it| it.name);
    topics.chain(NodeRow::COLUMNS.iter().map(|it| it.name)).collect()
}

/// Blocks the signals that are messages here. To be called before the session is opened, whose
/// threads inherit it.
pub fn block_signals() -> Blocked {
    signals::block(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT])
}

/// Calls `print` with what is there, at each interval until it returns false; at first after one
/// interval, because rates need two looks.
///
/// # Errors
/// Those of [`Looker::look`].
pub fn each(
    mut looker: Looker,
    interval: Duration,
    blocked: Blocked,
    mut print: impl FnMut(&Snapshot) -> bool,
) -> Result<End, Error> {
    let (sender, signals) = channel();
    blocked.forward(move |signal| sender.send(signal).is_ok());
    let mut next = Instant::now();
    let mut is_first = true;
    loop {
        let snapshot = looker.look(answer_within(interval))?;
        if !std::mem::take(&mut is_first) && !print(&snapshot) {
            return Ok(End::Done);
        }
        next = (next + interval).max(Instant::now());
        while let Some(signal) = before(next, &signals) {
            match signal {
                SIGTSTP => signals::default_action(SIGTSTP),
                SIGCONT => {}
                SIGINT => return Ok(End::Done),
                other => return Ok(End::Signal(other)),
            }
        }
    }
}

/// The next signal before a time.
fn before(until: Instant, signals: &Receiver<i32>) -> Option<i32> {
    signals.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
}

/// Shows the screen until the user leaves it.
///
/// # Errors
/// Those of [`Looker::look`] and of the terminal.
pub fn show(looker: Looker, options: &Options, blocked: Blocked, look: Look) -> Result<End, Error> {
    let node = looker.session().node().clone();
    let (sender, messages) = channel();
    let send = sender.clone();
    blocked.forward(move |signal| send.send(Message::Signal(signal)).is_ok());
    let screen = OwnScreen::enter().map_err(of_terminal)?;
    read_keys(sender.clone());
    look_on(looker, options.interval, sender.clone());
    let model = Model::new(options.sort.as_deref());
    let mut shown = Shown { screen, model, look, node, sender, observation: None };
    shown.draw().and_then(|()| shown.run(&messages))
}

/// What the other threads send.
enum Message {
    Key(KeyEvent),
    Resized,
    Signal(i32),
    Looked(Box<Snapshot>),
    Failed(Error),
    Panicked,
}

/// Reports a panic of its thread, whose message is on the terminal already.
struct AtPanic(Sender<Message>);

impl Drop for AtPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Message::Panicked);
        }
    }
}

struct Shown {
    screen: OwnScreen,
    model: Model,
    look: Look,
    node: myelin::Node,
    sender: Sender<Message>,
    /// Of the open topic.
    observation: Option<(String, Observation)>,
}

impl Shown {
    /// Draws when something has changed. Messages that are there are all dealt with before.
    fn run(&mut self, messages: &Receiver<Message>) -> Result<End, Error> {
        loop {
            let Some(first) = self.next(messages)? else { continue };
            for message in std::iter::once(first).chain(messages.try_iter()) {
                if let Some(end) = self.receive(message)? {
                    return Ok(end);
                }
            }
            self.draw()?;
        }
    }

    /// The next message. While it waits, details are drawn again now and then.
    fn next(&mut self, messages: &Receiver<Message>) -> Result<Option<Message>, Error> {
        let limit = match self.observation {
            Some(_) if !self.model.is_frozen() => DETAILS_EVERY,
            _ => Duration::MAX,
        };
        match messages.recv_timeout(limit) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => self.draw().map(|()| None),
            Err(RecvTimeoutError::Disconnected) => Ok(Some(Message::Panicked)),
        }
    }

    fn receive(&mut self, message: Message) -> Result<Option<End>, Error> {
        match message {
            Message::Key(key) => {
                let action = keys::action(key, self.model.mode());
                match action.and_then(|action| self.model.act(action)) {
                    Some(Effect::Quit) => return Ok(Some(End::Done)),
                    // The group gets it, as from the terminal; so do we, as a message.
                    Some(Effect::Suspend) => {
                        let _ = rustix::process::kill_current_process_group(
                            rustix::process::Signal::TSTP,
                        );
                    }
                    Some(Effect::Redraw) => self.screen.clear().map_err(of_terminal)?,
                    None => {}
                }
            }
            Message::Resized => {}
            Message::Signal(SIGTSTP) => {
                let stop = || signals::default_action(SIGTSTP);
                self.screen.suspended(stop).map_err(of_terminal)?;
            }
            // Stopped by SIGSTOP, it could not restore the terminal; the shell may have.
            Message::Signal(SIGCONT) => self.screen.suspended(|| ()).map_err(of_terminal)?,
            Message::Signal(SIGINT) => return Ok(Some(End::Done)),
            Message::Signal(signal) => return Ok(Some(End::Signal(signal))),
            Message::Looked(snapshot) => self.model.update(*snapshot),
            Message::Failed(error) => return Err(error),
            Message::Panicked => {
                let error = io::Error::other("has panicked, see above");
                return Err(Error::Io { what: "a thread of top".to_owned(), error });
            }
        }
        self.follow();
        Ok(None)
    }

    /// Observes the open topic, and no other.
    fn follow(&mut self) {
        let topic = match self.model.opened() {
            Some(Opened::Topic(name)) => Some(name),
            _ => None,
        };
        if self.observation.as_ref().map(|(name, _)| name) != topic {
            let begin = |name: &String| {
                let at_panic = AtPanic(self.sender.clone());
                (name.clone(), Observation::begin(self.node.clone(), name.clone(), at_panic))
            };
            self.observation = topic.map(begin);
        }
    }

    fn draw(&mut self) -> Result<(), Error> {
        let observed = self.observation.as_ref().map(|(_, it)| it.observed());
        self.model.observe(observed);
        let (model, look) = (&mut self.model, self.look);
        let terminal = self.screen.terminal();
        terminal.draw(|frame| screen::draw(frame, model, look)).map_err(of_terminal)?;
        Ok(())
    }
}

fn read_keys(sender: Sender<Message>) {
    std::thread::spawn(move || {
        let _at_panic = AtPanic(sender.clone());
        loop {
            let message = match crossterm::event::read() {
                Ok(Event::Key(key)) => Message::Key(key),
                Ok(Event::Resize(..)) => Message::Resized,
                Ok(_) => continue,
                Err(error) => Message::Failed(of_terminal(error)),
            };
            let has_failed = matches!(message, Message::Failed(_));
            if sender.send(message).is_err() || has_failed {
                return;
            }
        }
    });
}

/// Looks at each interval.
fn look_on(mut looker: Looker, interval: Duration, sender: Sender<Message>) {
    std::thread::spawn(move || {
        let _at_panic = AtPanic(sender.clone());
        let mut next = Instant::now();
        // The first look has no rates: the second follows soon.
        let mut pause = interval.min(FIRST_PAUSE);
        loop {
            let message = match looker.look(answer_within(interval)) {
                Ok(snapshot) => Message::Looked(Box::new(snapshot)),
                Err(error) => Message::Failed(error),
            };
            let has_failed = matches!(message, Message::Failed(_));
            if sender.send(message).is_err() || has_failed {
                return;
            }
            next = (next + pause).max(Instant::now());
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            pause = interval;
        }
    });
}

/// How long nodes have to answer: a stopped one must not hold up the others.
fn answer_within(interval: Duration) -> Duration {
    (interval / 2).min(Duration::from_millis(500))
}

fn of_terminal(error: io::Error) -> Error {
    Error::Io { what: "the terminal".to_owned(), error }
}

const DETAILS_EVERY: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
