//! What viewers publish, where that is allowed.

use std::collections::BTreeMap;

use super::hub::{Client, Hub};
use super::protocol::ClientChannel;
use crate::publish::Target;

/// The topics that one viewer publishes, by the ids that it gives them.
#[derive(Default)]
pub(super) struct Publishing(BTreeMap<u32, Target>);

impl Publishing {
    /// Opens topics. It asks nodes for types, and so makes the viewer's own requests wait.
    pub(super) fn advertise(&mut self, client: &Client, channels: &[ClientChannel], hub: &Hub) {
        for ClientChannel { id, topic, encoding, schema_name } in channels {
            let opened = match hub.publishing() {
                None => {
                    Err("viewers may not publish; `myelin view --publish` allows it".to_owned())
                }
                Some(_) if self.0.contains_key(id) => Err(format!("channel {id} is in use")),
                Some(_) if self.0.len() >= TOPICS_MAX => {
                    Err(format!("there are {TOPICS_MAX} topics already"))
                }
                Some(_) if encoding != "json" => {
                    Err(format!("messages in {encoding:?} are not published, only JSON"))
                }
                Some((session, place)) => Target::open(session.clone(), place, topic, None)
                    // One that is new, or has several types.
                    .or_else(|_| Target::open(session.clone(), place, topic, Some(schema_name)))
                    .map_err(|error| error.to_string()),
            };
            match opened {
                Ok(target) => {
                    hub.event(format!("a viewer publishes {}", target.name()));
                    self.0.insert(*id, target);
                }
                Err(problem) => client.problem(&format!("{topic}: {problem}")),
            }
        }
    }

    pub(super) fn unadvertise(&mut self, channels: &[u32]) {
        channels.iter().for_each(|id| drop(self.0.remove(id)));
    }

    /// Publishes a message: its channel, and a text of JSON.
    pub(super) fn publish(&self, client: &Client, message: &[u8]) {
        let Some((id, text)) = message.split_first_chunk() else {
            return client.problem("the message is broken");
        };
        let id = u32::from_le_bytes(*id);
        let Some(target) = self.0.get(&id) else {
            return client.problem(&format!("channel {id} is not advertised"));
        };
        let value = serde_json::from_slice(text).map_err(|error| error.to_string());
        let sample = value.and_then(|it| target.encode(&it).map_err(|error| error.to_string()));
        let published =
            sample.and_then(|it| target.publish(&it).map_err(|error| error.to_string()));
        if let Err(problem) = published {
            client.problem(&format!("{}: {problem}", target.name()));
        }
    }
}

/// Of one viewer.
const TOPICS_MAX: usize = 64;
