//! The publishers and subscribers of this node, and their matches as they see them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::event::{Event, Inbox};
use crate::publication::PublicationShared;
use crate::subscription::SubscriptionShared;
use crate::topic::{EndpointId, SubscriberQos, Topic};
use crate::vigil::Vigil;

/// A publisher of this node.
pub(crate) struct LocalPublication {
    pub(crate) shared: Arc<PublicationShared>,
    pub(crate) inbox: Arc<Inbox>,
    /// By subscriber.
    pub(crate) matches: BTreeMap<EndpointId, Match>,
    pub(crate) vigil: Option<Vigil>,
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
    pub(crate) vigil: Option<Vigil>,
}

impl LocalPublication {
    /// The match, or the making of it, ends.
    pub(crate) fn lose(&mut self, subscriber: EndpointId, died: bool) {
        let Some(ended) = self.matches.remove(&subscriber) else { return };
        if ended.complete {
            self.shared.detach(subscriber);
            let pid = ended.pid;
            self.inbox.push(Event::Unmatched { endpoint: subscriber, pid, died });
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
            let pid = ended.pid;
            self.inbox.push(Event::Unmatched { endpoint: publisher, pid, died });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::Reader;
    use crate::topic::PublisherQos;
    use crate::writer::Writer;

    #[test]
    fn a_match_that_was_never_complete_leaves_its_connection_free() {
        let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
        let qos = SubscriberQos { publishers_max: 1, ..SubscriberQos::default() };
        let (mut reader, shared) = Reader::create(1, &topic, qos).unwrap();
        for publisher in 2..5 {
            let (mut writer, publication) =
                Writer::create(publisher, &topic, PublisherQos::default()).unwrap();
            writer.publish_copy(&[1]).unwrap();
            let fd = publication.descriptor().try_clone_to_owned().unwrap();
            assert_eq!(shared.reserve(publisher, fd, Vec::new()).unwrap(), 0);
            let begun = Match { via: 0, pid: 0, complete: false, vigil: None };
            let mut subscription = LocalSubscription {
                id: 1,
                topic: topic.clone(),
                qos,
                shared: Arc::downgrade(&shared),
                inbox: Arc::default(),
                matches: BTreeMap::from([(publisher, begun)]),
            };
            subscription.lose(publisher, true);
            assert!(subscription.inbox.drain().is_empty(), "it was not matched");
            assert!(reader.take().unwrap().is_none());
        }
    }
}
