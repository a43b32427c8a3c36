//! The publishers and subscribers of this node, and their matches as they see them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::control_plane::qos_monitor::QosMonitor;
use crate::data_plane::publication::PublicationShared;
use crate::data_plane::subscription::SubscriptionShared;
use crate::error::Error;
use crate::event::{Event, Inbox};
use crate::topic::{EndpointId, SubscriberQos, Topic};
use crate::waiting::wait::now_ns;

/// A publisher of this node.
pub(crate) struct LocalPublication {
    pub(crate) shared: Arc<PublicationShared>,
    /// By subscriber.
    pub(crate) matches: BTreeMap<EndpointId, Match>,
    /// Subscribers with which a match has failed for a reason that may pass.
    pub(crate) retries: BTreeMap<EndpointId, Retry>,
    pub(crate) monitor: Option<QosMonitor>,
}

/// A subscriber of this node. It ends when its reader and all samples are gone, so it is not kept
/// alive from here.
pub(crate) struct LocalSubscription {
    pub(crate) id: EndpointId,
    pub(crate) topic: Topic,
    pub(crate) qos: SubscriberQos,
    pub(crate) shared: Weak<SubscriptionShared>,
    pub(crate) inbox: Arc<Inbox>,
    /// By publisher.
    pub(crate) matches: BTreeMap<EndpointId, Match>,
    /// Publishers with which a match has failed for a reason that may pass.
    pub(crate) retries: BTreeMap<EndpointId, Retry>,
}

/// A match, or one that is being made.
#[derive(Debug)]
pub(crate) struct Match {
    /// The link to the other side's node.
    pub(crate) via: u64,
    /// The other side's process.
    pub(crate) pid: u32,
    /// Samples flow. Otherwise an offer is made, or accepted.
    pub(crate) complete: bool,
    pub(crate) monitor: Option<QosMonitor>,
}

/// When to try again to make a match.
#[derive(Debug)]
pub(crate) struct Retry {
    pub(crate) due_ns: u64,
    pause_ns: u64,
}

impl Retry {
    /// A match has failed: it is to be tried again, if `error` is one that may pass.
    pub(crate) fn note(retries: &mut BTreeMap<EndpointId, Retry>, id: EndpointId, error: &Error) {
        if !matches!(error, Error::PeerCorrupt { .. } | Error::LayoutVersion { .. }) {
            let first = Retry { due_ns: now_ns() + PAUSE_NS_MIN, pause_ns: PAUSE_NS_MIN };
            retries.entry(id).or_insert(first);
        }
    }

    /// Those that are to be tried now; if that fails too, the next time is later.
    pub(crate) fn due(
        retries: &mut BTreeMap<EndpointId, Retry>,
        now_ns: u64,
        has_room: impl Fn(EndpointId) -> bool,
    ) -> Vec<EndpointId> {
        let mut due = Vec::new();
        for (id, retry) in retries.iter_mut().filter(|(_, retry)| retry.due_ns <= now_ns) {
            let mut pause_ns = PAUSE_NS_MIN;
            if has_room(*id) {
                retry.pause_ns = (2 * retry.pause_ns).min(PAUSE_NS_MAX);
                pause_ns = retry.pause_ns;
                due.push(*id);
            }
            retry.due_ns = now_ns + pause_ns;
        }
        due
    }
}

const PAUSE_NS_MIN: u64 = 50_000_000;
const PAUSE_NS_MAX: u64 = 1_000_000_000;

impl LocalPublication {
    /// The match, or the making of it, ends.
    pub(crate) fn lose(&mut self, subscriber: EndpointId, died: bool) {
        let Some(ended) = self.matches.remove(&subscriber) else { return };
        if ended.complete {
            self.shared.detach(subscriber);
            let pid = ended.pid;
            self.shared.inbox().push(Event::Unmatched { endpoint: subscriber, pid, died });
        }
    }
}

impl LocalSubscription {
    /// The match, or the making of it, ends.
    pub(crate) fn lose(&mut self, publisher: EndpointId, died: bool) {
        let Some(ended) = self.matches.remove(&publisher) else { return };
        if let Some(shared) = self.shared.upgrade() {
            match ended.complete {
                true => shared.publisher_gone(publisher),
                false => shared.publisher_never_came(publisher),
            }
        }
        if ended.complete {
            self.tell(Event::Unmatched { endpoint: publisher, pid: ended.pid, died });
        }
    }

    /// Tells the user, and ends a wait for it if need be.
    pub(crate) fn tell(&self, event: Event) {
        match self.shared.upgrade() {
            Some(shared) => shared.tell(event),
            None => self.inbox.push(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::subscription::Reader;
    use crate::data_plane::writer::Writer;
    use crate::topic::PublisherQos;
    use crate::waiting::wake_table::WakeTable;

    #[test]
    fn a_match_that_was_never_complete_leaves_its_connection_free() {
        let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
        let qos = SubscriberQos { publishers_max: 1, ..SubscriberQos::default() };
        let (mut reader, shared) =
            Reader::create(1, &topic, qos, &WakeTable::create().unwrap()).unwrap();
        for publisher in 2..5 {
            let (mut writer, publication) =
                Writer::create(publisher, &topic, PublisherQos::default()).unwrap();
            writer.publish_copy(&[1]).unwrap();
            let fd = publication.descriptor().try_clone_to_owned().unwrap();
            assert_eq!(shared.reserve(publisher, fd, Vec::new()).unwrap(), 0);
            let begun = Match { via: 0, pid: 0, complete: false, monitor: None };
            let mut subscription = LocalSubscription {
                id: 1,
                topic: topic.clone(),
                qos,
                shared: Arc::downgrade(&shared),
                inbox: Arc::default(),
                matches: BTreeMap::from([(publisher, begun)]),
                retries: BTreeMap::new(),
            };
            subscription.lose(publisher, true);
            assert!(subscription.inbox.drain().is_empty(), "it was not matched");
            assert!(reader.take().unwrap().is_none());
        }
    }
}
