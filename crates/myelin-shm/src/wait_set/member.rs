//! The members of a wait set, by the numbers of their ready bits.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use crate::data_plane::subscription::{PrefetchList, SubscriptionState};
use crate::layout::ReadyTable;
use crate::os::prefetch;
use crate::sync::{AtomicBool, Ordering};
use crate::wait_set::Key;
use crate::wait_set::guard::Triggered;
use crate::waiting::notify;
use crate::waiting::wake_table::{ReadyBit, word_and_bit};

/// A member that its set does not report, because a thread is working on it. The set looks at it
/// again when this is dropped, by any thread.
#[derive(Debug)]
pub struct Paused {
    pub(super) ready_bit: Arc<ReadyBit>,
    pub(super) set: u32,
    pub(super) is_paused: Arc<AtomicBool>,
}

impl Drop for Paused {
    fn drop(&mut self) {
        if !self.ready_bit.table().is_forked() {
            // ORDER: Release pairs with the acquire in `take_news`: the takes made meanwhile are
            // seen.
            self.is_paused.store(false, Ordering::Release);
            self.ready_bit.notify(self.set as usize);
        }
    }
}

/// Used only by the set's thread.
#[derive(Default)]
pub(super) struct MemberTable {
    /// By number.
    members: Vec<Option<Member>>,
    numbers: HashMap<Key, u32>,
    /// Words of the ready table in which members have bits, with these.
    words: Vec<(usize, u64)>,
}

/// A subscriber, a guard condition, or the set itself.
pub(super) struct Member {
    pub(super) key: Key,
    /// Not given to another member until the set has released it.
    pub(super) ready_bit: Arc<ReadyBit>,
    pub(super) what: Watched,
    /// The set does not look at it before it is resumed.
    pub(super) is_paused: Arc<AtomicBool>,
    /// The addresses that the next look at it will read.
    pub(super) next: PrefetchList,
}

pub(super) enum Watched {
    Subscriber(Weak<SubscriptionState>),
    GuardCondition(Weak<Triggered>),
    /// The set's own bit: there are changes to apply.
    Changes,
}

impl MemberTable {
    /// Returns the member's number.
    pub(super) fn insert(&mut self, member: Member) -> u32 {
        let number = member.ready_bit.number();
        let at = number as usize;
        if self.members.len() <= at {
            self.members.resize_with(at + 1, || None);
        }
        self.numbers.insert(member.key, number);
        self.members[at] = Some(member);
        let (word, bit) = word_and_bit(number);
        match self.words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, mask)) => *mask |= bit,
            None => self.words.push((word, bit)),
        }
        number
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Member> {
        let member = self.members[number as usize].take()?;
        self.numbers.remove(&member.key);
        let (word, bit) = word_and_bit(number);
        self.words.iter_mut().filter(|(at, _)| *at == word).for_each(|(_, mask)| *mask &= !bit);
        self.words.retain(|(_, mask)| *mask != 0);
        Some(member)
    }

    pub(super) fn clear(&mut self) {
        self.members.clear();
    }

    /// Members have smaller numbers.
    pub(super) fn numbers_end(&self) -> usize {
        self.members.len()
    }

    pub(super) fn number_of(&self, key: Key) -> Option<u32> {
        self.numbers.get(&key).copied()
    }

    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&Member> {
        self.members.get(number as usize)?.as_ref()
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Member> {
        self.members.get_mut(number as usize)?.as_mut()
    }

    /// The keys of the subscribers.
    pub(super) fn subscribers(&self) -> impl Iterator<Item = Key> {
        let is_subscriber = |it: &&Member| matches!(it.what, Watched::Subscriber(_));
        self.members.iter().flatten().filter(is_subscriber).map(|it| it.key)
    }

    /// Whether the ready bit of a member is set.
    #[inline]
    pub(super) fn have_ready_bits(&self, table: &ReadyTable) -> bool {
        // ORDER: Relaxed: `collect` acquires.
        let load = |word: usize| table.ready[word].load(Ordering::Relaxed);
        self.words.iter().any(|(word, mask)| load(*word) & mask != 0)
    }

    /// Takes the ready bits of the members, and adds their numbers to `to`.
    #[inline]
    pub(super) fn collect(&self, table: &ReadyTable, to: &mut Vec<u32>) {
        for (word, mask) in &self.words {
            let mut bits = notify::collect(&table.ready[*word], *mask);
            while bits != 0 {
                let number = *word as u32 * 64 + bits.trailing_zeros();
                if let Some(member) = self.get(number) {
                    member.prefetch();
                }
                to.push(number);
                bits &= bits - 1;
            }
        }
    }
}

impl Member {
    pub(super) fn new(key: Key, ready_bit: Arc<ReadyBit>, what: Watched) -> Member {
        let is_paused = Arc::new(AtomicBool::new(false));
        Member { key, ready_bit, what, is_paused, next: PrefetchList::default() }
    }

    /// Fetches into the caches everything that a look and a take will read, all at once.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        if let Watched::Subscriber(shared) = &self.what {
            SubscriptionState::prefetch(shared.as_ptr());
            prefetch::to_read(Arc::as_ptr(&self.is_paused).cast());
            self.next.prefetch();
        }
    }

    /// Finds ready bits that one of its publishers has taken away from another.
    pub(super) fn look_for_overlooked(&self) {
        if let Watched::Subscriber(shared) = &self.what
            && let Some(shared) = shared.upgrade()
        {
            shared.look_for_overlooked();
        }
    }

    /// The set no longer watches the subscriber. A bit that the set has taken may have been for
    /// another set that the subscriber is in by now, so that set is woken.
    pub(super) fn pass_on(&self, set: u32) {
        if let Watched::Subscriber(shared) = &self.what
            && let Some(shared) = shared.upgrade()
            && shared.sleeper.set().is_some_and(|its| its != set)
        {
            shared.sleeper.notify_set();
        }
    }
}

impl std::fmt::Debug for MemberTable {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.words.fmt(to)
    }
}
