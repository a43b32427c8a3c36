//! The times of messages: of the host's date, by a clock that costs no system call.

use myelin::Clock;

/// What the date is ahead of the library's clock, which is not set back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    ns: u64,
}

impl Offset {
    /// The offset now. The date may be set while a recording runs.
    pub(super) fn now() -> Offset {
        let before_ns = myelin::now();
        let date_ns = Clock::system().now();
        let after_ns = myelin::now();
        Offset { ns: date_ns.saturating_sub(before_ns / 2 + after_ns / 2) }
    }

    /// The date at a time of [`myelin::now`].
    pub(super) fn date_ns(self, at_ns: u64) -> u64 {
        self.ns.saturating_add(at_ns)
    }
}
