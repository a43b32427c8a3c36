//! Tracks sequence numbers: whether a message is new, late or a duplicate.

/// Remembers the newest [`WINDOW`] numbers. An older one counts as late, not as a duplicate.
pub(crate) struct SequenceWindow {
    /// The highest number so far plus one.
    next: u64,
    bits: [u64; WORDS],
}

/// How a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// Its number is the highest so far.
    Newest,
    /// For the first time, after a higher number.
    Late,
    /// Repeatedly.
    Again,
}

impl SequenceWindow {
    pub(crate) fn new() -> Self {
        SequenceWindow { next: 0, bits: [0; WORDS] }
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, number: u64) -> Came {
        if number >= self.next {
            self.forget(self.next, number);
            self.set(number);
            self.next = number + 1;
            return Came::Newest;
        }
        if self.next - number > WINDOW {
            return Came::Late;
        }
        let again = self.bits[word(number)] & bit(number) != 0;
        self.set(number);
        if again { Came::Again } else { Came::Late }
    }

    /// The highest number so far plus one; 0 if there is none.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Clears the bits of the numbers from `from` to `to`.
    #[inline(always)]
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= WINDOW {
            self.bits = [0; WORDS];
            return;
        }
        for number in from..=to {
            self.bits[word(number)] &= !bit(number);
        }
    }

    #[inline(always)]
    fn set(&mut self, number: u64) {
        self.bits[word(number)] |= bit(number);
    }
}

fn word(number: u64) -> usize {
    (number % WINDOW / 64) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

const WORDS: usize = 16;
/// A duplicate is recognised within this many numbers.
const WINDOW: u64 = 64 * WORDS as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_window_agrees_with_a_set(steps in prop::collection::vec(0u64..40, 1..400)) {
            let (mut window, mut set, mut base) = (SequenceWindow::new(), BTreeSet::new(), 0u64);
            for step in steps {
                let number = (base + step).saturating_sub(20);
                base = base.max(number);
                let expected = match set.last() {
                    Some(highest) if number <= *highest => {
                        if set.contains(&number) { Came::Again } else { Came::Late }
                    }
                    _ => Came::Newest,
                };
                prop_assert_eq!(window.note(number), expected);
                set.insert(number);
            }
            prop_assert_eq!(window.next(), set.last().unwrap() + 1);
        }
    }

    #[test]
    fn a_message_from_before_a_wide_gap_counts_as_late() {
        let mut window = SequenceWindow::new();
        window.note(5);
        assert_eq!(window.note(5 + WINDOW), Came::Newest);
        assert_eq!(window.note(6 + WINDOW - 1), Came::Again);
        assert_eq!(window.note(6), Came::Late);
        assert_eq!(window.note(5), Came::Late, "forgotten");
    }
}
