//! The clock of timestamps.

/// The time now, in nanoseconds of `CLOCK_MONOTONIC`. The clock is the same for all processes of a
/// host. It is never set back and does not follow the date. It starts with the host, and stands
/// still while the host is suspended. Times of two hosts cannot be compared. It takes no system
/// call.
///
/// ```
/// let begin = myelin::now();
/// assert!(myelin::now() >= begin);
/// ```
#[inline]
pub fn now() -> u64 {
    myelin_shm::waiting::wait::now_ns()
}
