//! The kit for C and C++: `include/myelin_bench_kit.h`. A driver in these languages is a table of
//! functions; the kit's ready-made main, [`myelin_bench_main`], does the rest. The drivers of C
//! libraries in this repository use it, too.
//!
//! ```text
//! tables.rs   the header's structures, of any supported version of the header
//! ends.rs     publisher, subscriber and function calls of a link
//! ```
//! Errors cross the boundary as a negative return value and a text set by [`myelin_bench_error`].

mod ends;
mod tables;

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::process::ExitCode;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use self::ends::{COpened, CPublisher, CSubscriber};
pub use self::tables::{CDriver, CPrepare, CSystem};
use self::tables::{bit, text};
use crate::clock::{self, Clock};
use crate::driver::{Answerer, Daemon, Driver, Fan, Link, Receiver, RoundTrip, Stream, Subscriber};
use crate::error::{Error, Reason};
use crate::protocol::{Prepare, Reliability, Role, System, Topology, Wait};

thread_local! {
    static LAST_ERROR: RefCell<Reason> = const {
        RefCell::new(Reason { message: String::new(), remedy: String::new(), key: String::new() })
    };
}

/// Sets the text of the error that the caller is about to return. Texts are copied.
///
/// # Safety
/// Both arguments are null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bench_error(message: *const c_char, remedy: *const c_char) {
    // SAFETY: required of the caller.
    unsafe { myelin_bench_option_error(null(), message, remedy) };
}

/// Like [`myelin_bench_error`], and names `key` of the options as the cause.
///
/// # Safety
/// All arguments are null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bench_option_error(
    key: *const c_char,
    message: *const c_char,
    remedy: *const c_char,
) {
    // SAFETY: required of the caller.
    let [key, message, remedy] = [key, message, remedy].map(|pointer| unsafe { text(pointer) });
    LAST_ERROR.set(Reason { message, remedy, key });
}

/// Converts the result of a driver's function in Rust to the status that the kit expects.
pub fn status(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            LAST_ERROR.set(error.into_reason());
            -1
        }
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_bench_now_ns() -> u64 {
    clock::monotonic_ns()
}

/// The whole `main` of a driver written in C or C++. Returns the exit status.
///
/// # Safety
/// `driver` points to a table that is filled in as the header requires and lives as long as the
/// program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bench_main(driver: *const CDriver) -> c_int {
    // As in Rust's main: a closed pipe becomes an error. SAFETY: no handler is called.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // SAFETY: required of the caller.
    match unsafe { self::driver(driver) } {
        Ok(driver) => c_int::from(crate::main(&driver) != ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("{error}: {}", error.remedy);
            2
        }
    }
}

/// The driver that a table describes, for callers within the same process.
///
/// # Safety
/// See [`myelin_bench_main`].
pub unsafe fn driver(table: *const CDriver) -> Result<CDriver, Error> {
    // SAFETY: required of the caller.
    unsafe { CDriver::read(table) }
}

impl Driver for CDriver {
    fn systems(&self) -> Vec<System> {
        let probed = |mut system: CSystem| {
            if let Some(probe) = self.probe {
                probe(&mut system);
            }
            system.describe()
        };
        match CDriver::systems(self) {
            Ok(systems) => systems.into_iter().map(probed).collect(),
            Err(error) => {
                eprintln!("{error}: {}", error.remedy);
                Vec::new()
            }
        }
    }

    fn system(&self, name: &str) -> Option<System> {
        self.entry(name).ok().map(|entry| entry.describe())
    }

    fn has_option(&self, key: &str) -> bool {
        CDriver::has_option(self, key)
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        match self.check {
            Some(check) => checked(check(&*PrepareWithTexts::new(prepare)?), "check").map(drop),
            None => Ok(()),
        }
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        let opened = self.opened(prepare)?;
        Ok(Box::new(Link::new(self.publisher(prepare, &opened)?, opened.subscriber()?)))
    }

    fn open_answerer(&self, prepare: &Prepare) -> Result<Option<Answerer>, Error> {
        if self.entry(&prepare.system)?.describe().wait != Wait::Callback {
            return Ok(None);
        }
        let opened = self.opened(prepare)?;
        let publisher = Box::new(self.publisher(prepare, &opened)?);
        let source = Box::new(opened.receiver());
        Ok(Some(Answerer { publisher, source, clock: Clock::Monotonic }))
    }

    fn open_publish(&self, prepare: &Prepare) -> Result<Fan, Error> {
        let opened = self.opened(prepare)?;
        if prepare.role == Role::Ping {
            return Ok(Fan::publisher(Box::new(self.publisher(prepare, &opened)?)));
        }
        let subscriber = |index| {
            let subscriber = CSubscriber::new(opened.subscribe(index)?)?;
            Ok(Box::new(subscriber) as Box<dyn Subscriber>)
        };
        Ok(Fan::subscribers(
            (0..prepare.subscribers).map(subscriber).collect::<Result<_, Error>>()?,
        ))
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let system = self.entry(&prepare.system)?.describe();
        let opened = self.opened(prepare)?;
        let publisher = || Ok::<_, Error>(Box::new(self.publisher(prepare, &opened)?));
        let is_called = system.wait == Wait::Callback;
        if system.topology == Topology::OneProcess {
            let receiver = |index| {
                let receiver = opened.subscribe(index)?;
                Ok(match is_called {
                    true => Receiver::Calls(Box::new(receiver)),
                    false => Receiver::Takes(Box::new(CSubscriber::new(receiver)?)),
                })
            };
            let receivers = (0..prepare.subscribers).map(receiver).collect::<Result<_, Error>>()?;
            return Ok(Stream::one_process(publisher()?, receivers));
        }
        Ok(match prepare.role {
            Role::Ping => Stream::publisher(publisher()?),
            _ if is_called => {
                let receivers = vec![Receiver::Calls(Box::new(opened.receiver()))];
                Stream { publisher: None, receivers, clock: Clock::Monotonic }
            }
            _ => Stream::subscriber(Box::new(opened.subscriber()?)),
        })
    }

    fn notes(&self, prepare: &Prepare) -> Vec<String> {
        match (self.notes, PrepareWithTexts::new(prepare)) {
            // SAFETY: the header requires a text or null, valid until the next call.
            (Some(notes), Ok(given)) => lines(unsafe { text(notes(&*given)) }),
            _ => Vec::new(),
        }
    }

    fn notes_at_end(&self) -> Vec<String> {
        // SAFETY: see `notes`.
        self.notes_at_end.map_or(Vec::new(), |notes| lines(unsafe { text(notes()) }))
    }

    fn start_daemon(&self, prepare: &Prepare) -> Result<Box<dyn Daemon>, Error> {
        let needs = self.entry(&prepare.system)?.describe().daemon;
        let Some(start) = self.start_daemon.filter(|_| needs) else {
            return Err(Error::new(format!("{} needs no daemon", prepare.system)));
        };
        let mut context = null_mut();
        checked(start(&*PrepareWithTexts::new(prepare)?, &mut context), "start_daemon")?;
        Ok(Box::new(CDaemon { driver: *self, context }))
    }

    fn clean(&self) -> Result<(), Error> {
        self.clean.map_or(Ok(()), |clean| checked(clean(), "clean").map(drop))
    }
}

impl CDriver {
    /// The system `name` in the driver's table.
    fn entry(&self, name: &str) -> Result<CSystem, Error> {
        let found = CDriver::systems(self)?.into_iter().find(|entry| entry.describe().name == name);
        found.ok_or_else(|| Error::new(format!("no system {name}")))
    }

    /// Opens one role of a run.
    fn opened(&self, prepare: &Prepare) -> Result<Arc<COpened>, Error> {
        COpened::open(self.link()?, &*PrepareWithTexts::new(prepare)?)
    }

    fn publisher(&self, prepare: &Prepare, opened: &Arc<COpened>) -> Result<CPublisher, Error> {
        opened.publisher(self.entry(&prepare.system)?.writes_into_loans(prepare))
    }
}

/// A `struct myelin_bench_prepare` and the texts that it points to.
struct PrepareWithTexts<'a> {
    prepare: CPrepare,
    _texts: Vec<CString>,
    _of: &'a Prepare,
}

impl std::ops::Deref for PrepareWithTexts<'_> {
    type Target = CPrepare;

    fn deref(&self) -> &CPrepare {
        &self.prepare
    }
}

impl<'a> PrepareWithTexts<'a> {
    fn new(of: &'a Prepare) -> Result<Self, Error> {
        let mut texts = Vec::new();
        let mut lend = |text: &str| {
            let text = CString::new(text)
                .map_err(|_| Error::new("a NUL character in a text of the protocol"))?;
            let pointer = text.as_ptr();
            texts.push(text);
            Ok::<_, Error>(pointer)
        };
        let options = serde_json::to_string(&of.options).expect("JSON serialises");
        let [interface, own, peer] = match &of.network {
            None => [null(); 3],
            Some(way) => {
                [lend(&way.interface)?, lend(&way.own.to_string())?, lend(&way.peer.to_string())?]
            }
        };
        let enclave = of.enclave.as_ref().map(|path| lend(&path.to_string_lossy())).transpose()?;
        let one_way = of.workload.has_one_direction();
        let of_stream = |value: u32, of_round_trip| if one_way { value } else { of_round_trip };
        let prepare = CPrepare {
            struct_size: size_of::<CPrepare>(),
            system: lend(&of.system)?,
            run: lend(&of.run)?,
            directory: lend(&of.directory.to_string_lossy())?,
            options_json: lend(&options)?,
            is_ping: c_int::from(of.role == Role::Ping),
            domain: of.domain,
            payload_bytes: of.payload_bytes,
            message_bytes: of.message_bytes() as u64,
            match_timeout_ns: of.match_timeout_ns,
            seed: of.seed,
            one_way: c_int::from(one_way),
            reliable: c_int::from(one_way && of.reliability == Reliability::Reliable),
            depth: of.depth,
            publishers: of_stream(of.publishers, 1),
            subscribers: of_stream(of.subscribers, 1),
            index: of_stream(of.index, 0),
            topics: of_stream(of.topics, 1),
            interface,
            own,
            peer,
            port: of.network.as_ref().map_or(0, |way| way.port),
            workload: bit(of.workload),
            file_prefix: lend(of.file_prefix())?,
            kit: of,
            publishes: c_int::from(of.publishes()),
            subscribes: c_int::from(of.subscribes()),
            others: of.others(),
            match_until_ns: of.match_until_ns(),
            enclave: enclave.unwrap_or(null()),
        };
        Ok(PrepareWithTexts { prepare, _texts: texts, _of: of })
    }
}

/// A daemon that the driver has started.
struct CDaemon {
    driver: CDriver,
    /// Null after it was stopped.
    context: *mut c_void,
}

impl Daemon for CDaemon {
    fn pids(&self) -> Vec<u32> {
        let Some(pids) = self.driver.daemon_pids else {
            return Vec::new();
        };
        let mut found = [0; PIDS_MAX];
        let count = pids(self.context, found.as_mut_ptr(), PIDS_MAX);
        found[..count.min(PIDS_MAX)].to_vec()
    }

    fn check(&mut self) -> Result<(), Error> {
        let check = self.driver.check_daemon;
        check.map_or(Ok(()), |check| checked(check(self.context), "check_daemon").map(drop))
    }

    fn stop(&mut self) -> Result<(), Error> {
        let context = std::mem::replace(&mut self.context, null_mut());
        match self.driver.stop_daemon {
            Some(stop) if !context.is_null() => checked(stop(context), "stop_daemon").map(drop),
            _ => Ok(()),
        }
    }
}

impl Drop for CDaemon {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Checks the return value of a driver's function.
#[inline]
fn checked(status: c_int, call: &str) -> Result<c_int, Error> {
    if status >= 0 {
        return Ok(status);
    }
    Err(failed(status, call))
}

#[cold]
fn failed(status: c_int, call: &str) -> Error {
    let mut reason = LAST_ERROR.take();
    if reason.message.is_empty() {
        reason.message = format!("{call} failed with {status}");
    }
    reason.into()
}

fn lines(text: String) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Limit of a daemon's processes.
const PIDS_MAX: usize = 64;
