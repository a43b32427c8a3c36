//! What a subscriber has of a publisher that sends by the lane. DDS brings the order: each sample, or
//! a reference to one that comes by the lane. Here references and samples meet. So the order, the
//! count and the losses are those of DDS, and a sample whose bytes do not come is a gap in the count.

use std::collections::VecDeque;

use super::frame::Notice;

/// References without samples, and samples without references. `M` is a message of DDS, `B` the bytes
/// of a sample.
#[derive(Debug)]
pub(in crate::network) struct LaneInbox<M, B> {
    /// Whether the publisher sends by DDS what the lane has lost.
    is_resent: bool,
    state: State,
    /// The first number that is ours. `None`: no reference is.
    from: Option<u64>,
    /// The newest number that has come by the current connection, in order: earlier ones do not.
    newest: Option<u64>,
    /// The newest reference that has been resolved.
    resolved: Option<u64>,
    /// Each with its number and its size, and the sum of the sizes.
    samples: VecDeque<(u64, B, usize)>,
    bytes: usize,
    messages: VecDeque<(Option<Notice>, M)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing comes by the lane.
    Off,
    /// The publisher has been asked, and may have begun.
    Asked,
    On,
}

/// The next message, in order.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::network) enum Next<M, B> {
    /// It is a sample itself.
    Message(M),
    /// It is a reference, to this sample.
    Referred(M, B),
    /// It has brought an earlier sample. Its number in DDS is no loss.
    Nothing(M),
}

impl<M, B> LaneInbox<M, B> {
    pub(in crate::network) fn new(is_resent: bool) -> Self {
        LaneInbox {
            is_resent,
            state: State::Off,
            from: None,
            newest: None,
            resolved: None,
            samples: VecDeque::new(),
            bytes: 0,
            messages: VecDeque::new(),
        }
    }

    /// Whether no message waits.
    pub(in crate::network) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// A message has come by DDS. `sample`: makes the sample that it brings, if it resends one.
    pub(in crate::network) fn receive(
        &mut self,
        notice: Option<Notice>,
        message: M,
        sample: impl FnOnce(&M) -> Option<(B, usize)>,
    ) {
        if let Some(Notice::Resent(number)) = notice
            && let Some((sample, bytes)) = sample(&message)
        {
            self.keep(number, sample, bytes);
        }
        if self.messages.len() == WAITING_MAX {
            self.messages.pop_front(); // a gap in the count
        }
        self.messages.push_back((notice, message));
    }

    /// The publisher is asked to begin.
    pub(in crate::network) fn ask(&mut self) {
        self.state = State::Asked;
    }

    /// The publisher sends by the lane from this number on.
    pub(in crate::network) fn start(&mut self, number: u64) {
        // What is missing from before comes by DDS, if it is sent again.
        if !self.is_resent || self.from.is_none() {
            self.from = Some(number);
        }
        (self.state, self.newest) = (State::On, None);
    }

    /// The publisher sends no more, and none of what is missing.
    pub(in crate::network) fn end(&mut self) {
        (self.state, self.from) = (State::Off, None);
    }

    /// The connection has gone.
    pub(in crate::network) fn disconnect(&mut self) {
        self.state = State::Off;
    }

    /// A sample of so many bytes has come by the lane.
    pub(in crate::network) fn sample(&mut self, number: u64, sample: B, bytes: usize) {
        self.newest = self.newest.max(Some(number));
        self.keep(number, sample, bytes);
    }

    fn keep(&mut self, number: u64, sample: B, bytes: usize) {
        let is_ours = self.from.is_some_and(|from| number >= from);
        if !is_ours || self.resolved.is_some_and(|resolved| number <= resolved) {
            return;
        }
        let Err(at) = self.samples.binary_search_by_key(&number, |(number, ..)| *number) else {
            return; // it came twice
        };
        self.samples.insert(at, (number, sample, bytes));
        self.bytes += bytes;
        while self.samples.len() > WAITING_MAX
            || (self.bytes > SAMPLE_BYTES_MAX && self.samples.len() > 1)
        {
            self.take_sample(); // the references were lost
        }
    }

    fn take_sample(&mut self) -> Option<B> {
        let (_, sample, bytes) = self.samples.pop_front()?;
        self.bytes -= bytes;
        Some(sample)
    }

    /// The next message whose turn it is; `None` if it waits for its sample, or there is none.
    pub(in crate::network) fn next(&mut self) -> Option<Next<M, B>> {
        loop {
            let (notice, _) = self.messages.front()?;
            let Some(Notice::Reference(number)) = *notice else {
                let (notice, message) = self.messages.pop_front()?;
                return Some(match notice {
                    None => Next::Message(message),
                    Some(_) => Next::Nothing(message),
                });
            };
            while self.samples.front().is_some_and(|(it, ..)| *it < number) {
                self.take_sample(); // its reference was lost
            }
            let has_it = self.samples.front().is_some_and(|(it, ..)| *it == number);
            if !has_it && self.may_come(number) {
                return None;
            }
            self.resolved = self.resolved.max(Some(number));
            let (_, message) = self.messages.pop_front()?;
            if has_it {
                let sample = self.take_sample()?;
                return Some(Next::Referred(message, sample));
            }
        }
    }

    /// Whether a missing sample may still come.
    fn may_come(&self, number: u64) -> bool {
        match (self.from, self.state) {
            (Some(from), _) if number < from => false,
            (Some(_), _) if self.is_resent => true,
            (Some(_), State::On) => self.newest.is_none_or(|newest| newest < number),
            (_, state) => state == State::Asked,
        }
    }
}

/// Messages behind a reference without a sample, and samples without references. An honest publisher
/// sends references first, and has less than this under way.
const WAITING_MAX: usize = 65_536;
const SAMPLE_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Inbox = LaneInbox<u64, u64>;

    fn refer(inbox: &mut Inbox, message: u64, number: u64) {
        inbox.receive(Some(Notice::Reference(number)), message, |_| None);
    }

    fn plain(inbox: &mut Inbox, message: u64) {
        inbox.receive(None, message, |_| None);
    }

    fn resend(inbox: &mut Inbox, message: u64, number: u64) {
        inbox.receive(Some(Notice::Resent(number)), message, |_| Some((number, 8)));
    }

    fn all(inbox: &mut Inbox) -> Vec<Next<u64, u64>> {
        std::iter::from_fn(|| inbox.next()).collect()
    }

    fn started(is_resent: bool) -> Inbox {
        let mut inbox = Inbox::new(is_resent);
        inbox.ask();
        inbox.start(5);
        inbox
    }

    #[test]
    fn samples_come_in_the_order_of_dds() {
        let mut inbox = started(false);
        refer(&mut inbox, 1, 5);
        plain(&mut inbox, 2);
        refer(&mut inbox, 3, 6);
        assert!(all(&mut inbox).is_empty(), "the first one waits for its sample");
        inbox.sample(5, 5, 8);
        assert_eq!(all(&mut inbox), [Next::Referred(1, 5), Next::Message(2)]);
        inbox.sample(6, 6, 8);
        assert_eq!(all(&mut inbox), [Next::Referred(3, 6)]);
        inbox.sample(7, 7, 8);
        refer(&mut inbox, 4, 7);
        assert_eq!(all(&mut inbox), [Next::Referred(4, 7)], "the sample was first");
    }

    #[test]
    fn what_the_lane_drops_is_a_gap() {
        let mut inbox = started(false);
        (5..8).for_each(|number| refer(&mut inbox, number, number));
        inbox.sample(7, 7, 8);
        assert_eq!(all(&mut inbox), [Next::Referred(7, 7)]);
        inbox.sample(8, 8, 8);
        inbox.sample(9, 9, 8);
        refer(&mut inbox, 9, 9);
        assert_eq!(all(&mut inbox), [Next::Referred(9, 9)], "the reference to 8 was lost");
    }

    #[test]
    fn references_from_before_the_match_are_dropped() {
        let mut inbox = Inbox::new(true);
        refer(&mut inbox, 1, 3);
        plain(&mut inbox, 2);
        assert_eq!(all(&mut inbox), [Next::Message(2)]);
        inbox.ask();
        refer(&mut inbox, 3, 4);
        refer(&mut inbox, 4, 5);
        assert!(all(&mut inbox).is_empty(), "it may have begun");
        inbox.start(5);
        inbox.sample(5, 5, 8);
        assert_eq!(all(&mut inbox), [Next::Referred(4, 5)]);
    }

    #[test]
    fn a_lost_connection_loses_best_effort_samples() {
        let mut inbox = started(false);
        refer(&mut inbox, 1, 5);
        inbox.disconnect();
        refer(&mut inbox, 2, 6);
        plain(&mut inbox, 3);
        assert_eq!(all(&mut inbox), [Next::Message(3)]);
        inbox.ask();
        refer(&mut inbox, 4, 8);
        inbox.start(8);
        inbox.sample(8, 8, 8);
        assert_eq!(all(&mut inbox), [Next::Referred(4, 8)]);
    }

    #[test]
    fn a_lost_connection_loses_no_reliable_sample() {
        let mut inbox = started(true);
        refer(&mut inbox, 1, 5);
        refer(&mut inbox, 2, 6);
        inbox.sample(5, 5, 8);
        assert_eq!(all(&mut inbox), [Next::Referred(1, 5)]);
        inbox.disconnect();
        plain(&mut inbox, 3);
        assert!(all(&mut inbox).is_empty());
        // Its acknowledgement was lost, so it is sent again.
        resend(&mut inbox, 4, 5);
        inbox.ask();
        inbox.start(7);
        refer(&mut inbox, 6, 7);
        inbox.sample(7, 7, 8);
        assert!(all(&mut inbox).is_empty(), "6 is still to come");
        resend(&mut inbox, 5, 6);
        let rest = [Next::Message(3), Next::Nothing(4), Next::Referred(6, 7), Next::Nothing(5)];
        assert_eq!(inbox.next(), Some(Next::Referred(2, 6)));
        assert_eq!(all(&mut inbox), rest);
    }

    #[test]
    fn a_publisher_that_waits_no_longer_ends_the_wait() {
        let mut inbox = started(true);
        refer(&mut inbox, 1, 5);
        plain(&mut inbox, 2);
        inbox.end();
        assert_eq!(all(&mut inbox), [Next::Message(2)]);
    }

    #[test]
    fn it_is_bounded() {
        let mut inbox = started(true);
        let small = 5..2 * WAITING_MAX as u64;
        small.for_each(|number| inbox.sample(number, number, 8));
        assert_eq!(inbox.samples.len(), WAITING_MAX);
        let large = 2 * WAITING_MAX as u64..;
        large.take(9).for_each(|number| inbox.sample(number, number, SAMPLE_BYTES_MAX / 3));
        assert_eq!((inbox.samples.len(), inbox.bytes), (3, SAMPLE_BYTES_MAX / 3 * 3));
        (0..2 * WAITING_MAX as u64).for_each(|number| refer(&mut inbox, number, u64::MAX));
        assert_eq!(inbox.messages.len(), WAITING_MAX);
    }

    proptest! {
        /// Whatever comes late, is dropped or is cut off: samples come in order, once, and nothing
        /// waits for ever behind a lane that has gone.
        #[test]
        fn each_sample_once_and_in_order(steps in proptest::collection::vec(0..6_u8, 0..200)) {
            let (mut inbox, mut message, mut number) = (started(false), 0, 4);
            let (mut on_lane, mut got) = (VecDeque::new(), Vec::new());
            for step in steps {
                match step {
                    0 => { message += 1; plain(&mut inbox, message); }
                    1 | 2 => {
                        (message, number) = (message + 1, number + 1);
                        refer(&mut inbox, message, number);
                        on_lane.push_back(number);
                    }
                    3 => drop(on_lane.pop_front()),
                    4 => if let Some(number) = on_lane.pop_front() { inbox.sample(number, number, 8) },
                    _ => {
                        inbox.disconnect();
                        on_lane.clear();
                        inbox.ask();
                        inbox.start(number + 1);
                    }
                }
                got.extend(all(&mut inbox));
            }
            inbox.disconnect();
            got.extend(all(&mut inbox));
            prop_assert!(inbox.is_empty());
            let messages = got.iter().map(|next| match next {
                Next::Message(message) | Next::Referred(message, _) | Next::Nothing(message) => *message,
            });
            let messages: Vec<u64> = messages.collect();
            prop_assert!(messages.is_sorted_by(|one, next| one < next));
        }
    }
}
