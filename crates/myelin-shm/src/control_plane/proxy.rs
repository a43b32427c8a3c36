//! A publisher that represents one on another route. It is matched with one subscriber of its own
//! node and not announced, so the subscriber takes its samples like all others.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::control_plane::protocol::Input;
use crate::data_plane::publication::{PublicationState, RemoteSubscriber, Writer};
use crate::data_plane::subscription::SubscriptionState;
use crate::error::Error;
use crate::node::Node;
use crate::os::descriptor::duplicate;
use crate::topic::{EndpointId, PublisherQos, Reliability};
use crate::waiting::remote_wake_table::RemoteWakeTables;

/// Publishes to one subscriber the samples of a publisher on another route. For that subscriber, it
/// is a match with a publisher of process 0. Dropping it ends the match. It stays in the publishing
/// thread; callbacks of the subscriber run in their own threads.
#[derive(Debug)]
pub struct Proxy {
    /// The publishing side.
    pub writer: Writer,
    id: EndpointId,
    subscriber: EndpointId,
    node: Node,
}

impl Proxy {
    pub(crate) fn create(
        node: &Node,
        subscription: &Arc<SubscriptionState>,
        qos: PublisherQos,
    ) -> Result<Proxy, Error> {
        let topic = subscription.topic().clone();
        let id = node.core().lock().new_endpoint(&topic)?;
        let (writer, publication) = Writer::create(id, &topic, qos)?;
        let descriptor = own(publication.descriptor())?;
        let connection = subscription.reserve(id, descriptor, Vec::new())?;
        let attached =
            view(subscription, &publication, connection).and_then(|view| publication.attach(view));
        let start = attached.inspect_err(|_| subscription.connections.publisher_never_came(id))?;
        let grows = Arc::downgrade(subscription);
        publication.on_growth(Box::new(move |segment| {
            let Some(subscription) = grows.upgrade() else { return };
            let Ok(fd) = own(segment.fd.as_fd()) else { return };
            let (number, bytes, slots) = (segment.number, segment.slot_bytes, segment.slots);
            // Before its first sample is published, so the subscriber does not wait for it yet.
            let _ = subscription.connections.map_segment(id, number, bytes, slots, fd);
        }));
        subscription.start(id, start);
        let subscriber = subscription.id();
        node.core().change(|reactor| reactor.proxy_came(id, subscriber, &qos));
        Ok(Proxy { writer, id, subscriber, node: node.clone() })
    }

    /// Its endpoint id, which its samples and events carry.
    pub fn id(&self) -> EndpointId {
        self.id
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let (id, subscriber) = (self.id, self.subscriber);
        if !self.node.core().is_forked() {
            let gone = Input::ProxyGone { publisher: id, subscriber };
            self.node.core().change(|reactor| reactor.drive(gone));
        }
    }
}

/// The proxy's view of the subscriber, made in the same way as other publishers' views.
fn view(
    subscription: &SubscriptionState,
    publication: &PublicationState,
    connection: u32,
) -> Result<RemoteSubscriber, Error> {
    let (segment, wake_descriptors) = subscription.passed_to(connection)?;
    let qos = subscription.qos();
    RemoteSubscriber::map(
        subscription.id(),
        std::process::id(),
        subscription.topic(),
        qos.reliability == Reliability::Reliable,
        qos.transient_local,
        connection,
        publication.id(),
        segment,
        wake_descriptors,
        &mut RemoteWakeTables::default(),
    )
}

fn own(fd: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    duplicate(fd, "passing a proxy's memory on")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::event::Event;
    use crate::node::NodeOptions;
    use crate::topic::{SubscriberQos, Topic};

    fn topic() -> Topic {
        Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 }
    }

    #[test]
    fn proxy_samples_reach_one_subscriber_and_other_nodes_do_not_see_it() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let folder = Some(folder.path().to_owned());
            Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap()
        };
        let (node, other) = (open(), open());
        let mut ours = node.subscriber(topic(), SubscriberQos::default()).unwrap();
        let mut theirs = other.subscriber(topic(), SubscriberQos::default()).unwrap();
        let mut proxy = node.proxy(ours.reader.shared(), PublisherQos::default()).unwrap();
        let (id, large) = (proxy.id(), vec![7; 100_000]);
        assert_eq!(ours.events(), [Event::Matched { endpoint: id, pid: 0 }]);
        proxy.writer.publish_copy(&[1]).unwrap();
        proxy.writer.publish_copy(&large).unwrap();
        let first = ours.reader.take().unwrap().unwrap();
        assert_eq!((first.publisher, first.bytes()), (id, &[1][..]));
        drop(proxy);
        assert_eq!(ours.matched(), 0);
        assert_eq!(ours.reader.take().unwrap().unwrap().bytes(), large, "it is still there");
        assert!(theirs.reader.take().unwrap().is_none());
        assert!(theirs.events().is_empty());
        let publishers = node.topics().unwrap().iter().map(|topic| topic.publishers).sum::<usize>();
        assert_eq!(publishers, 0);
    }

    #[test]
    fn a_proxy_over_the_limit_is_refused_and_freed_places_are_reused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Some(folder.path().to_owned());
        let node =
            Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap();
        let qos = SubscriberQos { publishers_max: 1, ..SubscriberQos::default() };
        let mut subscriber = node.subscriber(topic(), qos).unwrap();
        for round in 0..3 {
            let proxy = node.proxy(subscriber.reader.shared(), PublisherQos::default());
            let _proxy = proxy.unwrap_or_else(|error| panic!("round {round}: {error}"));
            let second = node.proxy(subscriber.reader.shared(), PublisherQos::default());
            assert!(matches!(second, Err(Error::TooMany { .. })));
            drop(_proxy);
            assert!(subscriber.reader.take().unwrap().is_none());
        }
    }

    /// It is started again and again while the subscriber's program does not take.
    #[test]
    fn a_publisher_finds_room_at_a_subscriber_that_does_not_take() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let folder = Some(folder.path().to_owned());
            Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap()
        };
        let (node, other) = (open(), open());
        let publish = |writer: &mut Writer, round| {
            (0..3).for_each(|_| _ = writer.publish_copy(&[round]).unwrap());
        };
        let by_proxy = |subscriber: &crate::node::Subscriber, round| {
            let proxy = node.proxy(subscriber.reader.shared(), PublisherQos::default());
            let mut proxy = proxy.unwrap_or_else(|error| panic!("round {round}: {error}"));
            publish(&mut proxy.writer, round);
        };
        let on_this_host = |round| {
            let mut publisher = other.publisher(topic(), PublisherQos::default()).unwrap();
            assert!(publisher.wait_for_match(1, Duration::from_secs(60)), "round {round}");
            publish(&mut publisher.writer, round);
        };
        for is_by_proxy in [true, false] {
            let qos = SubscriberQos { publishers_max: 2, depth: 4, ..SubscriberQos::default() };
            let mut subscriber = node.subscriber(topic(), qos).unwrap();
            (0..5).for_each(|round| match is_by_proxy {
                true => by_proxy(&subscriber, round),
                false => on_this_host(round),
            });
            let (mut taken, begun) = (Vec::new(), Instant::now());
            // What the last one has published is there once this node's thread knows of it.
            while taken.len() < 6 && begun.elapsed() < Duration::from_secs(60) {
                taken.extend(subscriber.reader.take().unwrap().map(|sample| sample.bytes()[0]));
            }
            taken.sort_unstable();
            assert_eq!(taken, [3, 3, 3, 4, 4, 4], "those of the last two");
            assert_eq!(subscriber.reader.lost(), 9, "those of the first three");
        }
    }
}
