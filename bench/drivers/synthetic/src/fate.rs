//! The fate of each message, and the counts that the bench must report for it.

use myelin_bench_kit::pingpong::LOST_IN_A_ROW_MAX;

use crate::options::Options;

/// The fate of a message; in the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Never answered.
    Lost,
    /// Answered after its time limit.
    Reordered,
    /// Answered twice, in time.
    Duplicated,
    /// Answered in time, with damaged contents.
    Corrupted,
    /// Answered in time.
    Whole,
}

impl Fate {
    /// The fate of measured message `id`, counted from 0.
    pub fn of(id: u64, options: &Options) -> Self {
        let precedence = [
            (options.lose_every, Fate::Lost),
            (options.reorder_every, Fate::Reordered),
            (options.duplicate_every, Fate::Duplicated),
            (options.corrupt_every, Fate::Corrupted),
        ];
        let named = precedence.into_iter().find(|(every, _)| is_named(id, *every));
        named.map_or(Fate::Whole, |(_, fate)| fate)
    }

    /// Whether ping gets its answer before the time limit.
    pub fn is_in_time(self) -> bool {
        !matches!(self, Fate::Lost | Fate::Reordered)
    }
}

/// Whether a stall lengthens the delay of measured message `id`.
pub fn is_stalled(id: u64, options: &Options) -> bool {
    is_named(id, options.stall_every) && Fate::of(id, options).is_in_time()
}

/// How much longer measured message `id` takes.
pub fn stall_ns(id: u64, options: &Options) -> u64 {
    if is_stalled(id, options) { options.stall_ns() } else { 0 }
}

fn is_named(id: u64, every: u64) -> bool {
    every > 0 && (id + 1).is_multiple_of(every)
}

/// The expected counts of a run; see `Done` of the kit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Messages published.
    pub sent: u64,
    /// Messages answered, late or in time.
    pub received: u64,
    /// Messages never answered.
    pub lost: u64,
    /// Second answers.
    pub duplicates: u64,
    /// Answers after the answer to a later message. All of them are late.
    pub out_of_order: u64,
    /// Answers after the time limit.
    pub late: u64,
    /// Messages answered with damaged contents.
    pub corrupt: u64,
    /// Messages that a stall made slower.
    pub stalled: u64,
    /// Whether ping gives up because too many messages in a row get no answer: the run fails with
    /// the counts up to then.
    pub gives_up: bool,
}

/// The expected counts of a run of `messages` measured messages.
pub fn expected(messages: u64, options: &Options) -> Expected {
    let mut counts = Expected::default();
    let mut unanswered_in_a_row = 0;
    for id in 0..messages {
        let fate = Fate::of(id, options);
        let follows_reordered = id > 0 && Fate::of(id - 1, options) == Fate::Reordered;
        counts.sent += 1;
        counts.received += u64::from(fate != Fate::Lost);
        counts.lost += u64::from(fate == Fate::Lost);
        counts.duplicates += u64::from(fate == Fate::Duplicated);
        counts.corrupt += u64::from(fate == Fate::Corrupted);
        counts.late += u64::from(fate == Fate::Reordered);
        counts.stalled += u64::from(is_stalled(id, options));
        // After the answer to this message, if it is in time; otherwise during the wait for it.
        counts.out_of_order += u64::from(follows_reordered && fate.is_in_time());
        if fate.is_in_time() || follows_reordered {
            unanswered_in_a_row = 0;
        }
        unanswered_in_a_row += u32::from(!fate.is_in_time());
        if unanswered_in_a_row == LOST_IN_A_ROW_MAX {
            return Expected { gives_up: true, ..counts };
        }
    }
    counts
}

/// The expected counts of a stream of `messages` measured messages. A reordered message arrives
/// after the next undisturbed one.
pub fn expected_of_stream(messages: u64, options: &Options) -> Expected {
    let mut counts = Expected { sent: messages, ..Expected::default() };
    let mut held = false;
    for id in 0..messages {
        let fate = Fate::of(id, options);
        counts.received += u64::from(fate != Fate::Lost);
        counts.lost += u64::from(fate == Fate::Lost);
        counts.duplicates += u64::from(fate == Fate::Duplicated);
        counts.corrupt += u64::from(fate == Fate::Corrupted);
        counts.stalled += u64::from(is_stalled(id, options));
        counts.out_of_order += u64::from(held && fate.is_in_time());
        held = fate == Fate::Reordered || held && fate == Fate::Lost;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_fault_applies() {
        let options = Options {
            lose_every: 10,
            reorder_every: 5,
            duplicate_every: 4,
            corrupt_every: 2,
            ..Options::default()
        };
        assert_eq!(Fate::of(9, &options), Fate::Lost);
        assert_eq!(Fate::of(4, &options), Fate::Reordered);
        assert_eq!(Fate::of(3, &options), Fate::Duplicated);
        assert_eq!(Fate::of(1, &options), Fate::Corrupted);
        assert_eq!(Fate::of(0, &options), Fate::Whole);
        let counts = expected(20, &options);
        assert_eq!((counts.lost, counts.late, counts.duplicates, counts.corrupt), (2, 2, 4, 4));
        assert_eq!((counts.received, counts.out_of_order), (18, 2));
    }

    #[test]
    fn ping_gives_up_if_all_answers_are_lost_but_not_if_late() {
        let all_lost = Options { lose_every: 1, ..Options::default() };
        assert_eq!(expected(100, &all_lost).sent, 5);
        assert!(expected(100, &all_lost).gives_up);
        let all_late = Options { reorder_every: 1, ..Options::default() };
        let counts = expected(100, &all_late);
        assert_eq!((counts.received, counts.late, counts.out_of_order), (100, 100, 0));
        assert!(!counts.gives_up);
    }
}
