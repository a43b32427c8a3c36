//! Reads ahead of the thread that publishes, so that a slow disk does not delay it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::error::PlayError;
use super::recording::Recording;
use super::wake::Wake;
use crate::reader::{Message, Time};

/// What is to be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub topics: BTreeSet<usize>,
    /// Topics that late joiners get samples of, and how many.
    pub latched: BTreeMap<usize, u32>,
    pub start_ns: u64,
    /// Exclusive.
    pub end_ns: Option<u64>,
    pub by: Time,
    /// Whether it begins again at its end.
    pub is_loop: bool,
}

/// What comes next.
pub(super) enum Item {
    /// The recording begins at this time, perhaps again by itself.
    Begin { at_ns: u64, is_repeat: bool },
    /// A message of a latched topic from before the begin.
    Latched(Entry),
    /// A message.
    Message(Entry),
    /// A part of a file cannot be read.
    Lost,
    /// There is no more.
    End,
    /// A file cannot be read.
    Failed(PlayError),
}

pub(super) struct Entry {
    pub time_ns: u64,
    pub topic: usize,
    message: Message,
}

impl Entry {
    fn new((time_ns, topic, message): (u64, usize, Message)) -> Entry {
        // A small message would keep the chunk around it in memory.
        Entry { time_ns, topic, message: message.alone() }
    }

    pub(super) fn data(&self) -> &[u8] {
        self.message.data()
    }

    /// With what is around it.
    fn bytes(&self) -> usize {
        self.data().len() + size_of::<Item>()
    }
}

/// Between the two threads.
pub(super) struct ReadAhead<'w> {
    state: Mutex<State>,
    /// There is space, or another order.
    changed: Condvar,
    wake: &'w Wake,
}

#[derive(Default)]
struct State {
    items: VecDeque<Item>,
    bytes: usize,
    /// Where to begin; not yet seen by the reader.
    order: Option<u64>,
    /// Of orders. What was read for an earlier one is thrown away.
    generation: u64,
    /// The reader waits until half of it is free, and not for each item.
    is_full: bool,
    is_closed: bool,
}

impl<'w> ReadAhead<'w> {
    pub(super) fn new(wake: &'w Wake) -> Self {
        ReadAhead { state: Mutex::default(), changed: Condvar::new(), wake }
    }

    /// From now on items begin at this time.
    pub(super) fn order(&self, from_ns: u64) {
        let mut state = self.lock();
        state.items.clear();
        state.bytes = 0;
        state.order = Some(from_ns);
        state.generation += 1;
        state.is_full = false;
        self.changed.notify_all();
    }

    /// The next item; `None` if it is not read yet: its coming wakes.
    pub(super) fn next(&self) -> Option<Item> {
        let mut state = self.lock();
        let item = state.items.pop_front()?;
        if let Item::Message(entry) | Item::Latched(entry) = &item {
            state.bytes -= entry.bytes();
        }
        if state.is_full && state.bytes <= BYTES_MAX / 2 && state.items.len() <= ITEMS_MAX / 2 {
            state.is_full = false;
            self.changed.notify_all();
        }
        Some(item)
    }

    /// Ends the reader.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The reader: returns when it is closed.
    pub(super) fn read(&self, recording: &Recording, plan: &Plan) {
        while let Some((generation, from_ns)) = self.next_order() {
            if let Err(error) = self.read_from(recording, plan, generation, from_ns) {
                self.push(generation, Item::Failed(error));
            }
        }
    }

    fn read_from(
        &self,
        recording: &Recording,
        plan: &Plan,
        generation: u64,
        from_ns: u64,
    ) -> Result<(), PlayError> {
        let (mut from_ns, mut is_repeat) = (from_ns, false);
        loop {
            let latched = self.latched(recording, plan, generation, from_ns)?;
            let before = latched.into_iter().map(Item::Latched);
            let before = before.chain([Item::Begin { at_ns: from_ns, is_repeat }]);
            for item in before {
                if !self.push(generation, item) {
                    return Ok(());
                }
            }
            let mut is_empty = true;
            let messages = recording.messages(&plan.topics, Some(from_ns), plan.end_ns, plan.by)?;
            for message in messages {
                let item = match message {
                    Ok(message) => Item::Message(Entry::new(message)),
                    Err(PlayError::Lost { .. }) => Item::Lost,
                    Err(error) => return Err(error),
                };
                is_empty &= matches!(item, Item::Lost);
                if !self.push(generation, item) {
                    return Ok(());
                }
            }
            // From the begin it would go on for ever without a message.
            if !plan.is_loop || (is_empty && from_ns <= plan.start_ns) {
                self.push(generation, Item::End);
                return Ok(());
            }
            (from_ns, is_repeat) = (plan.start_ns, true);
        }
    }

    /// The last messages of the latched topics before a time, in order of time.
    fn latched(
        &self,
        recording: &Recording,
        plan: &Plan,
        generation: u64,
        before_ns: u64,
    ) -> Result<Vec<Entry>, PlayError> {
        let topics: BTreeSet<usize> = plan.latched.keys().copied().collect();
        let mut kept: BTreeMap<usize, VecDeque<(u64, Entry)>> = BTreeMap::new();
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let messages = recording.messages(&topics, None, Some(before_ns), plan.by)?;
        for (number, message) in messages.enumerate() {
            let entry = match message {
                Ok(message) => Entry::new(message),
                Err(PlayError::Lost { .. }) => continue,
                Err(error) => return Err(error),
            };
            let count = plan.latched[&entry.topic] as usize;
            let of_topic = kept.entry(entry.topic).or_default();
            of_topic.push_back((number as u64, entry));
            let bytes = |it: &VecDeque<(u64, Entry)>| it.iter().map(|it| it.1.bytes()).sum();
            while of_topic.len() > count
                || (of_topic.len() > 1 && number % 64 == 0 && BYTES_MAX < bytes(of_topic))
            {
                of_topic.pop_front();
            }
            if !self.is_wanted(generation) {
                break;
            }
        }
        let mut all: Vec<_> = kept.into_values().flatten().collect();
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, entry)| entry).collect())
    }

    /// Waits for an order.
    fn next_order(&self) -> Option<(u64, u64)> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(from_ns) = state.order.take() {
                return Some((state.generation, from_ns));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_wanted(&self, generation: u64) -> bool {
        let state = self.lock();
        !state.is_closed && state.generation == generation
    }

    /// Waits for space; false if the item is not wanted any more.
    fn push(&self, generation: u64, item: Item) -> bool {
        let bytes = match &item {
            Item::Message(entry) | Item::Latched(entry) => entry.bytes(),
            _ => 0,
        };
        let mut state = self.lock();
        let was_empty = loop {
            if state.is_closed || state.generation != generation {
                return false;
            }
            let has_space = state.bytes + bytes <= BYTES_MAX && state.items.len() < ITEMS_MAX;
            if !state.is_full && (has_space || state.items.is_empty()) {
                break state.items.is_empty();
            }
            state.is_full = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.bytes += bytes;
        state.items.push_back(item);
        drop(state);
        if was_empty {
            self.wake.ring();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is read ahead; one item may be larger.
const BYTES_MAX: usize = 64 << 20;
const ITEMS_MAX: usize = 16_384;
