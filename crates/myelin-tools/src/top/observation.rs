//! Looks at the samples of one topic, in a thread of its own, while its details are open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use myelin::{AnyTopic, Interrupter, Location, Node, ObservedSample, Observer};

use super::details::{Observed, ObservedText};
use crate::text::printable;

/// Ends when it is dropped; nobody waits for its thread.
pub struct Observation {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    observed: Mutex<Observed>,
    interrupter: Mutex<Option<Interrupter>>,
    has_to_end: AtomicBool,
}

impl Observation {
    /// Begins to look at the topic of this name on the wire. Its thread drops `at_end` last.
    pub fn begin(node: Node, topic: String, at_end: impl Send + 'static) -> Observation {
        let state = Arc::new(State::default());
        let of_thread = Arc::clone(&state);
        std::thread::spawn(move || {
            let _at_end = at_end;
            if let Err(problem) = observe(&node, &topic, &of_thread) {
                of_thread.change(|it| it.problem = Some(printable(&problem).into_owned()));
            }
        });
        Observation { state }
    }

    /// What it has seen so far.
    pub fn observed(&self) -> Observed {
        self.state.change(|it| it.clone())
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.state.has_to_end.store(true, Ordering::Relaxed);
        if let Some(interrupter) = &*lock(&self.state.interrupter) {
            interrupter.interrupt();
        }
    }
}

impl State {
    fn change<R>(&self, change: impl FnOnce(&mut Observed) -> R) -> R {
        change(&mut lock(&self.observed))
    }

    fn has_to_end(&self) -> bool {
        self.has_to_end.load(Ordering::Relaxed)
    }
}

fn observe(node: &Node, name: &str, state: &State) -> Result<(), String> {
    let topic = learn(node, name)?;
    let mut observer = topic.topic().observer().map_err(|error| error.to_string())?;
    *lock(&state.interrupter) = Some(observer.interrupter());
    if let Some(problem) = topic.problem() {
        state.change(|it| it.problem = Some(format!("fields cannot be read: {problem}")));
    }
    let mut sample = ObservedSample::new();
    let mut shown = Instant::now().checked_sub(SHOWN_EVERY).unwrap_or_else(Instant::now);
    while !state.has_to_end() {
        observer.wait(WAIT).map_err(|error| error.to_string())?;
        if let Err(error) = drain(&mut observer, &topic, state, &mut sample, &mut shown) {
            // The others go on.
            state.change(|it| it.problem = Some(error.to_string()));
        }
    }
    Ok(())
}

/// A publisher of this host knows the type best. A topic may have several types: the first one
/// counts.
fn learn(node: &Node, wire_name: &str) -> Result<AnyTopic, String> {
    let graph = node.graph().map_err(|error| error.to_string())?;
    let of_topic = || graph.endpoints.iter().filter(|it| printable(&it.topic) == wire_name);
    let here = of_topic().find(|it| it.is_publisher && it.location == Location::ThisHost);
    let Some(found) = here.or_else(|| of_topic().next()) else {
        return Err("the topic has gone".to_owned());
    };
    if here.is_none() && of_topic().any(|it| it.is_publisher) {
        return Err("no publisher on this host: top cannot see the samples of others".to_owned());
    }
    node.any_topic_of(found, ANSWER).map_err(|error| error.to_string())
}

/// Takes what is there; of most samples only the header.
fn drain(
    observer: &mut Observer<[u8]>,
    topic: &AnyTopic,
    state: &State,
    sample: &mut ObservedSample<[u8]>,
    shown: &mut Instant,
) -> Result<(), myelin::Error> {
    while !state.has_to_end() {
        if shown.elapsed() < SHOWN_EVERY {
            let Some(header) = observer.take_header()? else { break };
            state.change(|it| it.count(&header));
            continue;
        }
        if !observer.take_into(sample)? {
            break;
        }
        *shown = Instant::now();
        let header = *sample.header();
        let value = sample.as_bytes().map(|bytes| describe(topic, bytes));
        state.change(|it| {
            it.count(&header);
            match value {
                Some(value) => {
                    let (sequence, bytes) = (header.sequence, header.length);
                    it.keep(ObservedText { sequence, bytes, value });
                }
                None => it.without_payload += 1,
            }
        });
    }
    Ok(())
}

fn describe(topic: &AnyTopic, bytes: &[u8]) -> String {
    let text = topic.value(bytes).and_then(|value| value.to_json(ELEMENTS_MAX));
    let text = text.unwrap_or_else(|error| format!("cannot be read: {error}"));
    let mut shown = printable(&text).into_owned();
    if let Some((end, _)) = shown.char_indices().nth(TEXT_MAX) {
        shown.truncate(end);
    }
    shown
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long other nodes have to answer with the schema.
const ANSWER: Duration = Duration::from_millis(500);
const WAIT: Duration = Duration::from_millis(500);
/// A sample is made text at most as often as a person can read it.
const SHOWN_EVERY: Duration = Duration::from_millis(50);
/// Elements of an array in a text.
const ELEMENTS_MAX: usize = 6;
/// Characters of a text; no terminal is wider.
const TEXT_MAX: usize = 500;
