//! The network resources that are open while an interface leads to other hosts.

use std::sync::Arc;

use myelin_dds::{Calls, Discovery, Endpoint, Participant};

use super::flow::{Flow, Word};
use super::host::Host;
use super::queue::{Queue, Task};
use super::{inlet, outlet, said};
use crate::Error;

/// A node's part in a DDS domain, bound to one interface.
pub(super) struct Session {
    pub(super) host: Host,
    pub(super) queue: Arc<Queue>,
    pub(super) participant: Arc<Participant>,
    flow: Flow,
    /// Of writers and of readers.
    discoveries: [Discovery; 2],
}

impl Session {
    pub(super) fn open(
        participant: Arc<Participant>,
        host: Host,
        queue: &Arc<Queue>,
    ) -> Result<Session, Error> {
        let discovery = |writers| {
            let news = Box::new(News(queue.clone()));
            Discovery::create(&participant, writers, news).map_err(said)
        };
        let discoveries = [discovery(true)?, discovery(false)?];
        let flow = Flow::create(&participant, queue)?;
        Ok(Session { host, queue: queue.clone(), participant, flow, discoveries })
    }

    /// Sends a word to an endpoint elsewhere. Called by the node's thread.
    pub(super) fn say(&self, word: Word) {
        self.flow.say(word);
    }

    /// Whether nodes elsewhere miss words, because they do not acknowledge.
    pub(super) fn has_silent_peers(&self) -> bool {
        self.flow.has_silent()
    }

    /// Forgets those of them that answer: all words must be repeated for them.
    pub(super) fn forget_answering_peers(&self) {
        self.flow.forget_answering();
    }

    /// The words of readers elsewhere.
    pub(super) fn hear(&self) -> Vec<Word> {
        self.flow.hear()
    }

    /// Calls `visit` with every writer (true) and reader of the domain, including those of this
    /// process.
    pub(super) fn visit_discovered(&self, visit: &mut dyn FnMut(bool, Endpoint)) {
        let [writers, readers] = &self.discoveries;
        let _ = writers.visit(&mut |endpoint| visit(true, endpoint));
        let _ = readers.visit(&mut |endpoint| visit(false, endpoint));
    }

    /// Finds endpoints that are on a topic of ours with another type.
    pub(super) fn compare(&self, inlets: &[Arc<inlet::Shared>], outlets: &[Arc<outlet::Shared>]) {
        self.visit_discovered(&mut |is_writer, endpoint| match is_writer {
            true => inlets.iter().for_each(|inlet| inlet.end.compare(&endpoint, self.host)),
            false => outlets.iter().for_each(|outlet| outlet.end.compare(&endpoint, self.host)),
        });
    }
}

/// Reports that an endpoint has been discovered, or has gone.
struct News(Arc<Queue>);

impl Calls for News {
    fn news(&self) {
        self.0.ask(Task::Discovery);
    }
}
