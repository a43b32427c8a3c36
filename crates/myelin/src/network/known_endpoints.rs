//! The endpoints of the domain that DDS has discovered, as far as Myelin reads them. CycloneDDS's
//! threads add and remove them, the node's thread looks at what is new.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use myelin_dds::{Endpoint, Guid, Listener};

use super::lock;
use super::task_queue::{Task, TaskQueue};

/// Writers (true) and readers, those of this process too. They are as many as CycloneDDS knows.
#[derive(Default)]
pub(super) struct KnownEndpoints(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_guid: BTreeMap<Guid, (bool, Arc<Endpoint>)>,
    /// Those that no `take` has returned.
    new: BTreeSet<Guid>,
}

impl Known {
    fn all(&self) -> Vec<(bool, Arc<Endpoint>)> {
        self.by_guid.values().cloned().collect()
    }
}

impl KnownEndpoints {
    /// All that are there now.
    pub(super) fn all(&self) -> Vec<(bool, Arc<Endpoint>)> {
        lock(&self.0).all()
    }

    /// Those that are new or have changed since the last call, or all.
    pub(super) fn take(&self, all: bool) -> Vec<(bool, Arc<Endpoint>)> {
        let mut known = lock(&self.0);
        let new = std::mem::take(&mut known.new);
        match all {
            true => known.all(),
            false => new.iter().map(|guid| known.by_guid[guid].clone()).collect(),
        }
    }

    fn insert(&self, is_writer: bool, endpoint: Endpoint) {
        let (mut known, guid) = (lock(&self.0), endpoint.guid);
        known.by_guid.insert(guid, (is_writer, Arc::new(endpoint)));
        known.new.insert(guid);
    }

    fn remove(&self, guid: &Guid) {
        let mut known = lock(&self.0);
        known.by_guid.remove(guid);
        known.new.remove(guid);
    }
}

/// Keeps them, and has the node's thread look.
pub(super) struct DiscoveryListener {
    pub(super) are_writers: bool,
    pub(super) known: Arc<KnownEndpoints>,
    pub(super) queue: Arc<TaskQueue>,
}

impl Listener for DiscoveryListener {
    fn appeared(&self, endpoint: Endpoint) {
        self.known.insert(self.are_writers, endpoint);
        self.queue.push(Task::Discovery);
    }

    fn disappeared(&self, guid: Guid) {
        self.known.remove(&guid);
        self.queue.push(Task::Discovery);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(number: u8, user_data: &[u8]) -> Endpoint {
        Endpoint {
            handle: 0,
            guid: [number; 16],
            topic: "rt/a".to_owned(),
            type_name: "A".to_owned(),
            user_data: user_data.to_vec(),
            reliable: None,
            transient_local: None,
            by_topic: None,
            deadline: None,
            lifespan: None,
            lease: None,
        }
    }

    fn guids(endpoints: Vec<(bool, Arc<Endpoint>)>) -> Vec<u8> {
        endpoints.iter().map(|(_, endpoint)| endpoint.guid[0]).collect()
    }

    #[test]
    fn what_is_new_is_taken_once_and_what_has_gone_is_kept_nowhere() {
        let known = KnownEndpoints::default();
        (1..=4).for_each(|number| known.insert(number < 3, endpoint(number, b"")));
        known.remove(&[2; 16]);
        known.remove(&[9; 16]);
        assert_eq!(guids(known.take(false)), [1, 3, 4]);
        assert!(known.take(false).is_empty());
        known.insert(true, endpoint(1, b"changed"));
        let [(true, changed)] = &known.take(false)[..] else { panic!("one writer") };
        assert_eq!(changed.user_data, b"changed");
        known.insert(true, endpoint(5, b""));
        assert_eq!(guids(known.all()), [1, 3, 4, 5]);
        assert_eq!(guids(known.take(true)), [1, 3, 4, 5]);
        assert!(known.take(false).is_empty(), "all of them have been taken");
        [1, 3, 4, 5].iter().for_each(|number| known.remove(&[*number; 16]));
        let Known { by_guid, new } = &*lock(&known.0);
        assert!(by_guid.is_empty() && new.is_empty());
    }
}
