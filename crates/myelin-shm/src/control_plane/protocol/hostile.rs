//! A node and one peer that says what it likes, for tests and the fuzz target `messages`.

use crate::control_plane::directory::NODE_SHIFT;
use crate::control_plane::link::Credentials;
use crate::control_plane::message::Message;
use crate::control_plane::protocol::{Action, Input, Protocol};
#[cfg(fuzzing)]
use crate::limits::MATCHES_TOLD_MAX;
use crate::topic::{AnnouncedQos, EndpointId, Reliability, Topic};

/// A node that has met a peer, which has a publisher and a subscriber. What the node says is taken at
/// once; of memory and descriptors there is none.
pub(crate) struct Met(pub(crate) Protocol<()>);

pub(crate) const LINK: u64 = 2;
pub(crate) const PEER: u64 = 2 << NODE_SHIFT;
pub(crate) const PUBLISHER: EndpointId = PEER | 1;
pub(crate) const SUBSCRIBER: EndpointId = PEER | 2;
const QOS: AnnouncedQos =
    AnnouncedQos { depth: 1, reliability: Reliability::BestEffort, history: 0 };

impl Met {
    pub(crate) fn new() -> Met {
        let mut met = Met(Protocol::new(1 << NODE_SHIFT, String::new(), 1));
        let who = Credentials { pid: 2, uid: 1 };
        met.handle(Input::Linked { link: LINK, who, called: None });
        let name = String::new();
        met.handle(Input::Hello { link: LINK, node: PEER, name, owner: Some(1) });
        let topic = |name: &str| Topic { name: name.into(), type_name: "T".into(), type_hash: 7 };
        met.hears(Message::Published { publisher: PUBLISHER, topic: topic("a"), qos: QOS });
        met.hears(Message::Subscribed { subscriber: SUBSCRIBER, topic: topic("b"), qos: QOS });
        met
    }

    /// The messages that are sent.
    pub(crate) fn handle(&mut self, input: Input<()>) -> Vec<Message> {
        let mut sent = Vec::new();
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for action in self.0.handle(0, input) {
                match action {
                    Action::Send { message, .. } => sent.push(message),
                    Action::Drain { link } => inputs.push(Input::Drained { link }),
                    Action::Count { link } => {
                        inputs.push(Input::Counted { link, counted: Vec::new() });
                    }
                    _ => {}
                }
            }
        }
        sent
    }

    pub(crate) fn hears(&mut self, message: Message) -> Vec<Message> {
        let descriptors = vec![(); message.descriptors()];
        self.handle(Input::Said { link: LINK, message, descriptors })
    }

    #[cfg(test)]
    pub(crate) fn is_linked(&self) -> bool {
        self.0.peers().count() == 1
    }
}

/// A peer that is asked, and says these messages, each after a byte that says how long it is.
#[cfg(fuzzing)]
pub(crate) fn talk(mut bytes: &[u8]) {
    let mut met = Met::new();
    let topic = Topic { name: "a".into(), type_name: "T".into(), type_hash: 7 };
    let id = met.0.new_endpoint(&topic).expect("it is the first");
    met.handle(Input::SubscriberMade { id, topic, qos: QOS, ignore_own_node: false });
    met.handle(Input::Survey);
    while let Some((length, rest)) = bytes.split_first() {
        let (message, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = rest;
        match Message::decode(message) {
            Ok(message) => drop(met.hears(message)),
            Err(_) => drop(met.handle(Input::Nonsense { link: LINK })),
        }
    }
    let graph = met.0.graph(&Vec::new(), Some(met.0.survey()));
    assert!(graph.matches.len() <= MATCHES_TOLD_MAX + 1);
    assert!(graph.endpoints.iter().any(|it| it.id == id));
    met.handle(Input::Ended { link: LINK });
    assert_eq!(met.0.graph(&Vec::new(), None).endpoints.len(), 1, "what it said has gone with it");
}
