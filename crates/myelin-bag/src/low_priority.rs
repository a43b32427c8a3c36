//! Threads that run when nothing else wants the CPU.

#![expect(unsafe_code, reason = "one call of libc, for which rustix has none")]

/// Puts the calling thread into `SCHED_IDLE`, if the system allows it.
///
/// A thread that wakes takes the CPU from such a thread at once, and the kernel counts a CPU that
/// runs nothing else as idle. A thread of low priority by `nice` keeps the CPU for its slice of some
/// milliseconds, and a publisher or the recorder would wait for that long. The price: on a machine
/// whose CPUs are all busy these threads get hardly any time. So nobody may wait for them.
pub(crate) fn run_when_idle() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the parameters are read during the call.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) };
}
