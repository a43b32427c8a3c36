//! Preparation of a driver's own process before it measures. The lab sets affinity, scheduling
//! class and timer slack before the driver starts, so that every thread of the middleware inherits
//! them. Memory can only be locked and pre-faulted from within; the same holds for settings of the
//! kit's own threads.

use crate::clock::read_ns;
use crate::error::Error;

/// CPU time of all threads of this process, including ended ones, in nanoseconds.
pub fn cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of this thread, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Locks all present and future memory and touches [`STACK_BYTES`] of the stack, so that no page
/// fault disturbs the measurement.
pub fn lock_memory() -> Result<(), Error> {
    // SAFETY: mlockall has no preconditions.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
        let reason = std::io::Error::last_os_error();
        return Err(Error::new(format!("mlockall: {reason}"))
            .remedy("needs CAP_IPC_LOCK or a higher `ulimit -l`"));
    }
    touch_stack();
    Ok(())
}

/// Raises this process's limit of open files as far as allowed, up to 65,536. With a thousand
/// topics a middleware that opens a file for each exceeds the usual 1,024.
pub fn allow_open_files() {
    // SAFETY: the calls take integers and valid limits. If raising fails, the middleware meets the
    // old limit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_cur.max(limit.rlim_max.min(1 << 16));
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Pins this thread to `cpu`.
pub fn pin_thread(cpu: u32) -> Result<(), Error> {
    // SAFETY: all-zero bytes are an empty set of CPUs.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu as usize >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(Error::new(format!("pong_cpu: CPU {cpu} does not exist")));
    }
    // SAFETY: the set is valid and has room for the CPU, as checked above.
    unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    // SAFETY: the set is valid and of this size; 0 is the calling thread.
    if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } != 0 {
        let reason = std::io::Error::last_os_error();
        return Err(Error::new(format!("pinning pong's thread to CPU {cpu}: {reason}"))
            .remedy("name a CPU that this process may use"));
    }
    Ok(())
}

/// Puts this thread into `SCHED_FIFO`.
pub fn set_thread_fifo(priority: u32) -> Result<(), Error> {
    // SAFETY: all-zero bytes are a valid sched_param.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority as libc::c_int;
    // SAFETY: the parameters are valid; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) } != 0 {
        let reason = std::io::Error::last_os_error();
        return Err(Error::new(format!("SCHED_FIFO {priority} for pong's thread: {reason}"))
            .remedy("needs CAP_SYS_NICE or a higher `ulimit -r`"));
    }
    Ok(())
}

#[inline(never)]
fn touch_stack() {
    let mut stack = [0u8; STACK_BYTES];
    for page in stack.chunks_mut(4096) {
        // SAFETY: a valid, writable byte; volatile so that the store is not optimised out.
        unsafe { std::ptr::write_volatile(page.as_mut_ptr(), 1) };
    }
}

/// How much of the stack is pre-faulted.
pub const STACK_BYTES: usize = 512 * 1024;
