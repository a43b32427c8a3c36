//! What a subscriber has of a publisher whose samples come by DDS and, in runs, by the lane. A fence in
//! DDS stands where a run begins, and the lane says where it is over: so the order is that of the
//! publisher, whichever of the two is faster.

use std::collections::VecDeque;

/// Samples that wait for their fence, and messages that wait for the end of a run. `M` is a message of
/// DDS, `B` a sample of the lane.
#[derive(Debug)]
pub(in crate::network) struct LaneInbox<M, B> {
    /// Whether each fence comes for sure; otherwise nothing waits for one.
    waits: bool,
    /// Whether the publisher may send by the lane.
    is_connected: bool,
    /// The newest run that DDS has reached, and the newest that is over.
    reached: u64,
    over: u64,
    /// Up to this run, no fence is waited for.
    given_up: u64,
    /// The run that the lane is in.
    run: Option<Run>,
    /// The number in DDS of the newest fence passed: earlier messages come too late.
    passed: u64,
    samples: VecDeque<Waiting<B>>,
    /// The sum of their sizes.
    bytes: usize,
    messages: VecDeque<(u64, Option<u64>, M)>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    number: u64,
    /// The number of its fence in DDS.
    fence: u64,
}

#[derive(Debug)]
struct Waiting<B> {
    run: Run,
    number: u64,
    sample: B,
    bytes: usize,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::network) enum Next<M, B> {
    Message(M),
    /// The sample with this number by the lane.
    Sample(u64, B),
    /// The fence with this number in DDS, which is no sample.
    Fence(u64),
}

impl<M, B> LaneInbox<M, B> {
    pub(in crate::network) fn new(waits: bool) -> Self {
        LaneInbox {
            waits,
            is_connected: false,
            reached: 0,
            over: 0,
            given_up: 0,
            run: None,
            passed: 0,
            samples: VecDeque::new(),
            bytes: 0,
            messages: VecDeque::new(),
        }
    }

    /// A message with this number has come by DDS; `fence`: it is that of this run.
    pub(in crate::network) fn message(&mut self, sequence: u64, fence: Option<u64>, message: M) {
        if sequence <= self.passed && sequence > 0 {
            return; // it has been counted as lost
        }
        if self.messages.len() == WAITING_MAX {
            self.messages.pop_front(); // a gap in the count
        }
        self.messages.push_back((sequence, fence, message));
    }

    /// The publisher is asked to send by the lane.
    pub(in crate::network) fn ask(&mut self) {
        self.is_connected = true;
        self.pause(self.reached);
    }

    /// A run begins, with a fence of this number in DDS.
    pub(in crate::network) fn run(&mut self, number: u64, fence: u64) {
        self.pause(number.saturating_sub(1));
        self.run = Some(Run { number, fence });
    }

    /// The runs up to this one are over.
    pub(in crate::network) fn pause(&mut self, run: u64) {
        self.over = self.over.max(run);
        self.run = None;
    }

    /// The publisher sends no more, and none of what is missing.
    pub(in crate::network) fn end(&mut self) {
        self.disconnect();
        self.given_up = self.samples.back().map_or(0, |waiting| waiting.run.number);
    }

    /// The connection has gone. What is missing comes by DDS, if at all.
    pub(in crate::network) fn disconnect(&mut self) {
        (self.is_connected, self.run) = (false, None);
    }

    /// A sample of so many bytes has come by the lane.
    pub(in crate::network) fn sample(&mut self, number: u64, sample: B, bytes: usize) {
        let Some(run) = self.run else { return };
        self.samples.push_back(Waiting { run, number, sample, bytes });
        self.bytes += bytes;
        while self.samples.len() > WAITING_MAX
            || (self.bytes > SAMPLE_BYTES_MAX && self.samples.len() > 1)
        {
            self.take_sample(); // the fence was lost
        }
    }

    fn take_sample(&mut self) -> Option<Waiting<B>> {
        let waiting = self.samples.pop_front()?;
        self.bytes -= waiting.bytes;
        Some(waiting)
    }

    /// What comes next; `None` if it waits, or there is nothing.
    pub(in crate::network) fn next(&mut self) -> Option<Next<M, B>> {
        let waiting = self.samples.front().map(|waiting| waiting.run);
        if waiting.is_some_and(|run| run.number <= self.reached) {
            return self.take_sample().map(|waiting| Next::Sample(waiting.number, waiting.sample));
        }
        if !self.is_connected || self.over >= self.reached {
            match self.messages.pop_front() {
                Some((_, None, message)) => return Some(Next::Message(message)),
                Some((sequence, Some(run), _)) => return Some(self.pass(run, sequence)),
                None => {}
            }
        }
        match waiting {
            // By now it is late: a sample takes longer than a message in front of it.
            Some(Run { number, fence }) if !self.waits || number <= self.given_up => {
                Some(self.pass(number, fence))
            }
            _ => None,
        }
    }

    fn pass(&mut self, run: u64, fence: u64) -> Next<M, B> {
        self.reached = self.reached.max(run);
        self.passed = self.passed.max(fence);
        Next::Fence(fence)
    }
}

/// Messages behind a fence, and samples before one. An honest publisher has less than this under way.
const WAITING_MAX: usize = 65_536;
const SAMPLE_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Inbox = LaneInbox<u64, u64>;

    fn plain(inbox: &mut Inbox, sequence: u64) {
        inbox.message(sequence, None, sequence);
    }

    fn fence(inbox: &mut Inbox, sequence: u64, run: u64) {
        inbox.message(sequence, Some(run), sequence);
    }

    fn all(inbox: &mut Inbox) -> Vec<Next<u64, u64>> {
        std::iter::from_fn(|| inbox.next()).collect()
    }

    fn started(waits: bool) -> Inbox {
        let mut inbox = Inbox::new(waits);
        inbox.ask();
        inbox
    }

    use Next::{Fence, Message, Sample};

    #[test]
    fn a_run_follows_its_fence() {
        for waits in [true, false] {
            let mut inbox = started(waits);
            plain(&mut inbox, 1);
            fence(&mut inbox, 2, 1);
            plain(&mut inbox, 3);
            assert_eq!(all(&mut inbox), [Message(1), Fence(2)], "3 comes behind the run");
            inbox.run(1, 2);
            inbox.sample(7, 70, 8);
            assert_eq!(all(&mut inbox), [Sample(7, 70)]);
            inbox.sample(8, 80, 8);
            inbox.pause(1);
            assert_eq!(all(&mut inbox), [Sample(8, 80), Message(3)]);
        }
    }

    #[test]
    fn a_run_waits_for_its_fence_if_it_comes_for_sure() {
        let mut inbox = started(true);
        inbox.run(1, 2);
        inbox.sample(7, 70, 8);
        inbox.pause(1);
        inbox.run(2, 4);
        inbox.sample(8, 80, 8);
        assert!(all(&mut inbox).is_empty());
        plain(&mut inbox, 1);
        fence(&mut inbox, 2, 1);
        plain(&mut inbox, 3);
        assert_eq!(all(&mut inbox), [Message(1), Fence(2), Sample(7, 70), Message(3)]);
        inbox.disconnect();
        fence(&mut inbox, 4, 2);
        assert_eq!(all(&mut inbox), [Fence(4), Sample(8, 80)], "it has been acknowledged");
    }

    #[test]
    fn what_comes_behind_a_fence_that_was_lost_is_dropped() {
        let mut inbox = started(false);
        inbox.run(1, 3);
        inbox.sample(7, 70, 8);
        assert_eq!(all(&mut inbox), [Fence(3), Sample(7, 70)]);
        plain(&mut inbox, 2);
        fence(&mut inbox, 3, 1);
        plain(&mut inbox, 4);
        assert!(all(&mut inbox).is_empty());
        inbox.pause(1);
        assert_eq!(all(&mut inbox), [Message(4)]);
    }

    #[test]
    fn a_lane_that_has_gone_holds_up_nothing() {
        let mut inbox = started(true);
        fence(&mut inbox, 1, 1);
        plain(&mut inbox, 2);
        assert_eq!(all(&mut inbox), [Fence(1)]);
        inbox.disconnect();
        assert_eq!(all(&mut inbox), [Message(2)]);
        inbox.ask();
        plain(&mut inbox, 3);
        fence(&mut inbox, 4, 2);
        plain(&mut inbox, 5);
        assert_eq!(all(&mut inbox), [Message(3), Fence(4)]);
        inbox.pause(2);
        assert_eq!(all(&mut inbox), [Message(5)], "the publisher has begun and ended it before");
        inbox.run(3, 6);
        inbox.sample(9, 90, 8);
        inbox.end();
        let rest = [Fence(6), Sample(9, 90)];
        assert_eq!(all(&mut inbox), rest, "its fence may not come any more");
        inbox.sample(10, 100, 8);
        assert!(all(&mut inbox).is_empty());
    }

    #[test]
    fn it_is_bounded() {
        let mut inbox = started(true);
        inbox.run(1, 1);
        (0..2 * WAITING_MAX as u64).for_each(|number| inbox.sample(number, number, 8));
        assert_eq!(inbox.samples.len(), WAITING_MAX);
        (0..9).for_each(|number| inbox.sample(number, number, SAMPLE_BYTES_MAX / 3));
        assert_eq!((inbox.samples.len(), inbox.bytes), (3, SAMPLE_BYTES_MAX / 3 * 3));
        (1..2 * WAITING_MAX as u64).for_each(|sequence| plain(&mut inbox, sequence));
        assert_eq!(inbox.messages.len(), WAITING_MAX);
    }

    /// What a publisher sends, by each way in order.
    #[derive(Clone, Copy, Debug)]
    enum OnLane {
        Run(u64, u64),
        Sample(u64),
        Paused(u64),
    }

    fn put(inbox: &mut Inbox, item: OnLane) {
        match item {
            OnLane::Run(run, fence) => inbox.run(run, fence),
            OnLane::Sample(number) => inbox.sample(number, 1_000 + number, 8),
            OnLane::Paused(run) => inbox.pause(run),
        }
    }

    proptest! {
        /// However the two ways take turns: what is sent comes once, in order.
        #[test]
        fn each_sample_once_and_in_order(
            steps in proptest::collection::vec(0..6_u8, 0..200),
            waits: bool,
        ) {
            let mut inbox = started(waits);
            let (mut by_dds, mut by_lane) = (VecDeque::new(), VecDeque::new());
            let (mut sent, mut got) = (Vec::new(), Vec::new());
            let (mut sequence, mut number, mut run, mut is_in_run) = (0, 0, 0, false);
            for step in steps {
                match step {
                    0 | 1 if is_in_run => {
                        number += 1;
                        by_lane.push_back(OnLane::Sample(number));
                        sent.push(Next::Sample(number, 1_000 + number));
                    }
                    0 | 1 => {
                        sequence += 1;
                        by_dds.push_back((sequence, None));
                        sent.push(Next::Message(sequence));
                    }
                    2 if is_in_run => {
                        by_lane.push_back(OnLane::Paused(run));
                        is_in_run = false;
                    }
                    2 => {
                        (sequence, run, is_in_run) = (sequence + 1, run + 1, true);
                        by_dds.push_back((sequence, Some(run)));
                        by_lane.push_back(OnLane::Run(run, sequence));
                    }
                    3 | 4 => if let Some((sequence, fence)) = by_dds.pop_front() {
                        inbox.message(sequence, fence, sequence);
                    }
                    _ => if let Some(item) = by_lane.pop_front() { put(&mut inbox, item) }
                }
                got.extend(all(&mut inbox));
            }
            for (sequence, fence) in by_dds {
                inbox.message(sequence, fence, sequence);
            }
            by_lane.into_iter().for_each(|item| put(&mut inbox, item));
            inbox.disconnect();
            got.extend(all(&mut inbox));
            got.retain(|next| !matches!(next, Next::Fence(_)));
            if waits {
                prop_assert_eq!(got, sent);
            } else {
                // What DDS brings late is lost.
                let mut sent = sent.iter();
                prop_assert!(got.iter().all(|next| sent.any(|it| it == next)), "{:?}", got);
            }
        }
    }
}
