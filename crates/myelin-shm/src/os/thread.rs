//! The library's own threads: their name, the CPUs they run on, and their scheduling policy.

use std::io::Error as IoError;
use std::os::unix::thread::JoinHandleExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError};
use std::thread::JoinHandle;

use rustix::process::{Pid, Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::error::Error;
use crate::sync::lock;

/// Settings of the threads that a node starts: its own, its callbacks', the one that wakes
/// asynchronous tasks. By default the CPUs are those of the process's first thread, and the policy
/// is that of the thread that opens the node, without its real-time priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The first part of their names; a hyphen and the thread's role follow. The kernel shows 15
    /// bytes in total. Empty: `myelin`.
    pub name: String,
    /// The CPUs they may run on, by number; empty: those of the process's first thread.
    pub cpus: Vec<usize>,
    /// Their scheduling policy.
    pub policy: Policy,
}

/// A scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`; in a program that runs as `SCHED_BATCH` or `SCHED_IDLE`, that policy.
    #[default]
    Usual,
    /// `SCHED_FIFO` with a priority from 1 to 99. It needs `CAP_SYS_NICE`, or a limit on real-time
    /// priorities (`ulimit -r`) that allows it.
    Fifo(u8),
}

impl Threads {
    /// Fails with the name of an invalid field.
    pub fn check(&self) -> Result<(), Error> {
        let wrong =
            |field, value: String, remedy| Error::Setting { topic: None, field, value, remedy };
        if self.name.contains(char::is_control) {
            let remedy = "a thread's name has no control characters";
            return Err(wrong("the threads' name", self.name.clone(), remedy));
        }
        if let Some(cpu) = self.cpus.iter().find(|cpu| **cpu >= CpuSet::MAX_CPU) {
            return Err(wrong(
                "the threads' CPUs",
                cpu.to_string(),
                "CPUs are numbered from 0 to 1,023",
            ));
        }
        match self.policy {
            Policy::Fifo(priority) if !(1..=99).contains(&priority) => {
                let remedy = "a priority of SCHED_FIFO is 1 to 99";
                Err(wrong("the threads' policy", priority.to_string(), remedy))
            }
            _ => Ok(()),
        }
    }

    /// Starts a thread that does `role`. It takes no signals; they are for the program's own
    /// threads.
    ///
    /// # Errors
    /// [`Error::System`] if no further thread can be started, or it may not run as chosen.
    pub(crate) fn spawn(
        &self,
        role: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<Thread, Error> {
        self.start(std::thread::Builder::new(), role, run)
    }

    /// Like `spawn`, for a thread that runs no user code and needs some kilobytes of stack: the
    /// whole stack is resident in a process that locks its memory, as a real-time process does.
    pub(crate) fn spawn_small(
        &self,
        role: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<Thread, Error> {
        self.start(std::thread::Builder::new().stack_size(SMALL_STACK_BYTES), role, run)
    }

    fn start(
        &self,
        builder: std::thread::Builder,
        role: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<Thread, Error> {
        let prefix = if self.name.is_empty() { "myelin" } else { &self.name };
        let builder = builder.name(format!("{prefix}-{role}"));
        stay_loaded();
        let work = Arc::<Work>::default();
        let its = work.clone();
        let body = move || its.wait_for().into_iter().for_each(|run| run());
        let handle = without_signals(|| builder.spawn(body)).map_err(refused)?;
        if let Err((doing, error)) = self.apply(&handle) {
            work.set(State::Taken);
            return Err(Error::system(doing, error));
        }
        work.set(State::Ready(Box::new(run)));
        Ok(Thread { handle, work })
    }

    /// Applies the settings to a thread.
    fn apply(&self, thread: &JoinHandle<()>) -> Result<(), (&'static str, IoError)> {
        if cfg!(miri) {
            return Ok(());
        }
        let outcome = |doing, code: i32| match code {
            0 => Ok(()),
            code => Err((doing, IoError::from_raw_os_error(code))),
        };
        let thread = thread.as_pthread_t();
        let pin = |cpus: &CpuSet| {
            let cpus = std::ptr::from_ref(cpus).cast();
            // SAFETY: the thread has not been joined; a set of CPUs is plain bits for both crates.
            unsafe { libc::pthread_setaffinity_np(thread, size_of::<CpuSet>(), cpus) }
        };
        let set_policy = |policy, priority| {
            let parameters = libc::sched_param { sched_priority: priority };
            // SAFETY: the parameters outlive the call; the thread has not been joined.
            unsafe { libc::pthread_setschedparam(thread, policy, &raw const parameters) }
        };
        // Unset properties may be forbidden to change; the thread then runs like the one that
        // starts it.
        if self.cpus.is_empty() {
            // The first thread's id is that of the process.
            let first = sched_getaffinity(Pid::from_raw(std::process::id() as i32));
            let _ = first.map(|cpus| pin(&cpus));
        } else {
            let mut chosen = CpuSet::new();
            self.cpus.iter().for_each(|cpu| chosen.set(*cpu));
            outcome("pinning a thread to its CPUs", pin(&chosen))?;
        }
        match self.policy {
            Policy::Usual if is_real_time() => {
                set_policy(libc::SCHED_OTHER, 0);
                Ok(())
            }
            Policy::Usual => Ok(()),
            Policy::Fifo(priority) => outcome(
                "setting a thread's policy (CAP_SYS_NICE)",
                set_policy(libc::SCHED_FIFO, i32::from(priority)),
            ),
        }
    }
}

/// A thread that the library has started.
///
/// The library does not wait for a thread that has not begun: it may first need the loader's lock,
/// which the waiting thread holds while a library's constructors or destructors run in `dlopen` or
/// `dlclose`.
#[derive(Debug)]
pub struct Thread {
    handle: JoinHandle<()>,
    work: Arc<Work>,
}

impl Thread {
    /// Whether it is the caller. `std::thread::current` would panic where the thread-local values
    /// of a thread have ended, as in a destructor that C runs after them.
    pub fn is_current(&self) -> bool {
        // SAFETY: no preconditions.
        self.handle.as_pthread_t() == unsafe { libc::pthread_self() }
    }

    /// Waits for its end. It has been asked to end: if it has not begun, its work is done here
    /// instead.
    pub fn join(self) {
        if !self.begin_here() {
            let _ = self.handle.join(); // a panic ends here, wherever it occurred
        }
    }

    /// Does its work here if it has not begun. Whether that was so.
    fn begin_here(&self) -> bool {
        self.take_work().map(|run| catch_unwind(AssertUnwindSafe(run))).is_some()
    }

    /// Its work, if it has not begun. It will do nothing then.
    pub(crate) fn take_work(&self) -> Option<Run> {
        self.work.take()
    }
}

/// The work of a thread. The thread that takes it does it.
#[derive(Default)]
struct Work {
    state: Mutex<State>,
    changed: Condvar,
}

/// What a thread does.
pub(crate) type Run = Box<dyn FnOnce() + Send>;

#[derive(Default)]
enum State {
    /// The thread must not begin yet.
    #[default]
    Unset,
    Ready(Run),
    Taken,
}

impl Work {
    fn set(&self, state: State) {
        *lock(&self.state) = state;
        self.changed.notify_one();
    }

    fn take(&self) -> Option<Run> {
        match std::mem::replace(&mut *lock(&self.state), State::Taken) {
            State::Ready(run) => Some(run),
            State::Unset | State::Taken => None,
        }
    }

    /// Waits for the work, in the thread. A channel's thread-local data would need the loader's
    /// lock.
    fn wait_for(&self) -> Option<Run> {
        let is_unset = |state: &mut State| matches!(state, State::Unset);
        let set = self.changed.wait_while(lock(&self.state), is_unset);
        drop(set.unwrap_or_else(PoisonError::into_inner));
        self.take()
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Work").finish_non_exhaustive()
    }
}

/// A seq-cst fence in all threads of this process, at no cost to the other threads. False if the
/// kernel has none, or may not use it.
pub(crate) fn barrier() -> bool {
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: no memory is passed.
    let call = |command: i32| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
    !cfg!(miri) && call(REGISTER_PRIVATE_EXPEDITED) && call(PRIVATE_EXPEDITED)
}

/// Keeps the library that contains this code mapped until the process ends: a thread that was not
/// waited for begins after `dlclose`.
fn stay_loaded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if cfg!(miri) {
            return;
        }
        // SAFETY: `info` is plain data, filled in before it is read; the address is one of this
        // library. The program itself is not a library: there the loader finds none, and nothing is
        // done.
        unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            let here = (stay_loaded as fn()) as *const libc::c_void;
            if libc::dladdr(here, &raw mut info) != 0 && !info.dli_fname.is_null() {
                let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
                libc::dlopen(info.dli_fname, how);
            }
        }
    });
}

/// Whether the calling thread has a policy above all usual ones. `SCHED_BATCH` and `SCHED_IDLE` do
/// not count: they are meant for the whole program, and leaving `SCHED_IDLE` needs a permission.
fn is_real_time() -> bool {
    // SAFETY: no preconditions; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    ![libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE].contains(&policy)
}

/// Why no further thread could be started.
fn refused(error: IoError) -> Error {
    let doing = "starting a thread";
    if error.raw_os_error() != Some(libc::EAGAIN) && error.raw_os_error() != Some(libc::ENOMEM) {
        return Error::system(doing, error);
    }
    let [threads, locked, space] = [Resource::Nproc, Resource::Memlock, Resource::As].map(limit);
    let reason = format!(
        "the system refuses ({error}). Its limits: {threads} threads of this user (RLIMIT_NPROC, \
         ulimit -u), {space} B of address space (RLIMIT_AS, ulimit -v), {locked} B of locked \
         memory (RLIMIT_MEMLOCK, ulimit -l; counts after mlockall), and pids.max of this container \
         or service (--pids-limit, TasksMax=); raise the limit that is reached"
    );
    Error::Host { doing, reason }
}

fn limit(of: Resource) -> String {
    getrlimit(of).current.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

const SMALL_STACK_BYTES: usize = 256 << 10;

/// Calls `spawn` with all signals blocked; a thread inherits that.
fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are plain data that the calls fill in before they are read.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use rustix::thread::sched_setaffinity;

    use super::*;

    fn policy() -> i32 {
        // SAFETY: no preconditions; 0 is this thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri knows no CPUs")]
    fn a_thread_has_its_settings_whichever_thread_starts_it() {
        let all = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
        let look = |threads: &Threads| {
            let (to, from) = mpsc::channel();
            let run = move || {
                let name = std::thread::current().name().map(str::to_owned);
                to.send((name, sched_getaffinity(None).unwrap(), policy())).unwrap();
            };
            threads.spawn("node", run).unwrap().handle.join().unwrap();
            from.recv().unwrap()
        };
        let chosen = Threads { name: "lidar".into(), cpus: vec![cpu], policy: Policy::Usual };
        let (name, cpus, policy) = look(&chosen);
        assert_eq!((name.as_deref(), cpus.count(), policy), (Some("lidar-node"), 1, 0));
        assert!(cpus.is_set(cpu));
        // The starting thread is pinned; this one is not.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut one = CpuSet::new();
                one.set(cpu);
                sched_setaffinity(None, &one).unwrap();
                let (name, cpus, policy) = look(&Threads::default());
                assert_eq!((name.as_deref(), policy), (Some("myelin-node"), 0));
                assert_eq!(cpus, all);
            });
        });
    }

    #[test]
    fn impossible_settings_are_refused() {
        let of = |threads: Threads| threads.check().unwrap_err().to_string();
        let error = of(Threads { policy: Policy::Fifo(100), ..Threads::default() });
        assert!(error.contains("1 to 99"), "{error}");
        let error = of(Threads { cpus: vec![5000], ..Threads::default() });
        assert!(error.contains("5000"), "{error}");
        let error = of(Threads { name: "a\0".into(), ..Threads::default() });
        assert!(error.contains("control"), "{error}");
        assert!(Threads::default().check().is_ok());
    }
}
