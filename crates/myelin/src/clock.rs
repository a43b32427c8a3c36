//! The clock that stamps are of.

/// The time now, in nanoseconds of `CLOCK_MONOTONIC`: the same for all processes of a host, never set
/// back, without regard to the date; it begins when the host does, and stands still while the host is
/// suspended. Times of two hosts cannot be compared. It takes no system call.
///
/// ```
/// let begin = myelin::now();
/// assert!(myelin::now() >= begin);
/// ```
#[inline]
pub fn now() -> u64 {
    myelin_shm::waiting::wait::now_ns()
}
