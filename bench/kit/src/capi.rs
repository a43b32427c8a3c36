//! The kit for C and C++: `include/myelin_bench_kit.h`. An adaptor there is a table of functions;
//! the kit's ready-made main, [`myelin_bench_main`], does the rest.
//!
//! Errors cross the boundary as a negative return value and a text set by
//! [`myelin_bench_error`]. All calls come from one thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::process::ExitCode;
use std::rc::Rc;

use crate::clock;
use crate::driver::{Driver, Link, Publisher, RoundTrip, Stream, Subscriber};
use crate::error::{Error, Reason};
use crate::protocol::{self, Prepare, Reliability};

/// `struct myelin_bench_system`: see the header.
#[repr(C)]
pub struct CSystem {
    name: *const c_char,
    about: *const c_char,
    version: *const c_char,
    wait: c_int,
    transport: c_int,
    loans: c_int,
    missing: *const c_char,
    payload_bytes_max: u64,
    streams: c_int,
    reliability: c_int,
    publishers_max: u32,
    subscribers_max: u32,
    topics_max: u32,
    across_hosts: c_int,
}

/// `struct myelin_bench_prepare`: see the header.
#[repr(C)]
pub struct CPrepare {
    system: *const c_char,
    run: *const c_char,
    directory: *const c_char,
    options_json: *const c_char,
    is_ping: c_int,
    domain: u32,
    payload_bytes: u64,
    message_bytes: u64,
    match_timeout_ns: u64,
    seed: u64,
    one_way: c_int,
    reliable: c_int,
    depth: u32,
    publishers: u32,
    subscribers: u32,
    index: u32,
    topics: u32,
    interface: *const c_char,
    own: *const c_char,
    peer: *const c_char,
    port: u16,
}

/// `struct myelin_bench_link`: see the header. Functions that may be missing are optional.
#[repr(C)]
pub struct CLink {
    open: extern "C" fn(*const CPrepare, *mut *mut c_void) -> c_int,
    loan: Option<extern "C" fn(*mut c_void, usize, *mut *mut c_void) -> c_int>,
    publish_loan: Option<extern "C" fn(*mut c_void) -> c_int>,
    publish: extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    wait: Option<extern "C" fn(*mut c_void, u64) -> c_int>,
    take: extern "C" fn(*mut c_void, u64, *mut *const c_void, *mut usize) -> c_int,
    release: Option<extern "C" fn(*mut c_void)>,
    close: extern "C" fn(*mut c_void),
    select: Option<extern "C" fn(*mut c_void, u32)>,
}

/// `struct myelin_bench_driver`: see the header.
#[repr(C)]
pub struct CDriver {
    abi: u32,
    systems: *const CSystem,
    system_count: usize,
    link: CLink,
}

// SAFETY: the tables are constant for the life of the program, as the header demands.
unsafe impl Sync for CDriver {}
// SAFETY: as above.
unsafe impl Sync for CLink {}

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
    // SAFETY: the caller's promise.
    let (message, remedy) = unsafe { (text(message), text(remedy)) };
    LAST_ERROR.with_borrow_mut(|last| *last = Reason { message, remedy, ..Reason::default() });
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_bench_now_ns() -> u64 {
    clock::monotonic_ns()
}

/// The whole `main` of a driver written in C or C++. Returns the exit status.
///
/// # Safety
/// `driver` points to a table that lives as long as the program, filled in as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bench_main(driver: *const CDriver) -> c_int {
    // SAFETY: the caller's promise.
    let driver = unsafe { &*driver };
    if driver.abi != ABI {
        eprintln!("driver built for kit ABI {}, this kit has {ABI}: rebuild it", driver.abi);
        return 2;
    }
    let code = crate::main(driver);
    c_int::from(code != ExitCode::SUCCESS)
}

impl Driver for CDriver {
    fn systems(&self) -> Vec<protocol::System> {
        // SAFETY: the header demands `system_count` valid entries.
        let systems = unsafe { std::slice::from_raw_parts(self.systems, self.system_count) };
        // SAFETY: the header demands NUL-terminated or null texts.
        systems.iter().map(|system| unsafe { describe(system) }).collect()
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        let system = self.system(prepare)?;
        open(self.table(), prepare, system.loans)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let system = self.system(prepare)?;
        if !system.workloads.contains(&protocol::Workload::Stream) {
            return Err(Error::new(format!("{}: no streams in this driver", prepare.system))
                .remedy("leave the system out of plan.systems"));
        }
        open_stream(self.table(), prepare, system.loans)
    }
}

impl CDriver {
    fn system(&self, prepare: &Prepare) -> Result<protocol::System, Error> {
        let found = self.systems().into_iter().find(|system| system.name == prepare.system);
        found.ok_or_else(|| Error::new(format!("no system {}", prepare.system)))
    }

    fn table(&self) -> &'static CLink {
        // SAFETY: the header demands that the table lives as long as the program.
        unsafe { &*std::ptr::from_ref(&self.link) }
    }
}

/// Opens one role of a stream through a table of C functions: ping's publisher or pong's
/// subscriber.
pub fn open_stream(table: &'static CLink, prepare: &Prepare, loans: bool) -> Result<Stream, Error> {
    let Link { publisher, subscriber, clock } = link(table, prepare, loans)?;
    Ok(match prepare.role {
        protocol::Role::Ping => Stream { clock, ..Stream::ping(publisher) },
        _ => Stream { clock, ..Stream::pong(subscriber) },
    })
}

/// Opens one role through a table of C functions; `loans` says whether this system writes into
/// loaned memory.
pub fn open(
    table: &'static CLink,
    prepare: &Prepare,
    loans: bool,
) -> Result<Box<dyn RoundTrip>, Error> {
    Ok(Box::new(link(table, prepare, loans)?))
}

fn link(
    table: &'static CLink,
    prepare: &Prepare,
    loans: bool,
) -> Result<Link<CPublisher, CSubscriber>, Error> {
    let options = serde_json::to_string(&prepare.options).expect("JSON serialises");
    let texts = [
        c_text(&prepare.system)?,
        c_text(&prepare.run)?,
        c_text(&prepare.directory.to_string_lossy())?,
        c_text(&options)?,
    ];
    let network = prepare.network.as_ref();
    let way = network.map(|way| [way.interface.clone(), way.own.to_string(), way.peer.to_string()]);
    let way = way.iter().flatten().map(|text| c_text(text)).collect::<Result<Vec<_>, _>>()?;
    let [interface, own, peer] =
        [0, 1, 2].map(|index| way.get(index).map_or(std::ptr::null(), |text| text.as_ptr()));
    let c_prepare = CPrepare {
        system: texts[0].as_ptr(),
        run: texts[1].as_ptr(),
        directory: texts[2].as_ptr(),
        options_json: texts[3].as_ptr(),
        is_ping: c_int::from(prepare.role == protocol::Role::Ping),
        domain: prepare.domain,
        payload_bytes: prepare.payload_bytes,
        message_bytes: prepare.payload_bytes + crate::message::HEADER_BYTES as u64,
        match_timeout_ns: prepare.match_timeout_ns,
        seed: prepare.seed,
        one_way: c_int::from(prepare.workload.is_one_way()),
        reliable: c_int::from(prepare.reliability == Reliability::Reliable),
        depth: prepare.depth,
        publishers: prepare.publishers,
        subscribers: prepare.subscribers,
        index: prepare.index,
        topics: prepare.topics,
        interface,
        own,
        peer,
        port: network.map_or(0, |way| way.port),
    };
    let mut context = std::ptr::null_mut();
    check((table.open)(&c_prepare, &mut context), "open")?;
    let ends = Rc::new(Ends { table, context });
    Ok(Link::new(CPublisher { ends: Rc::clone(&ends), loans }, CSubscriber(ends)))
}

struct Ends {
    table: &'static CLink,
    context: *mut c_void,
}

impl Drop for Ends {
    fn drop(&mut self) {
        (self.table.close)(self.context);
    }
}

struct CPublisher {
    ends: Rc<Ends>,
    loans: bool,
}

impl Publisher for CPublisher {
    fn has_loans(&self) -> bool {
        self.loans
    }

    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let loan = self.ends.table.loan.ok_or_else(|| Error::new("this system has no loans"))?;
        let mut memory = std::ptr::null_mut();
        check(loan(self.ends.context, len, &mut memory), "loan")?;
        // SAFETY: the header demands `len` writable bytes, the caller's until publish_loan; the
        // kit writes into them and reads none.
        Ok(unsafe { std::slice::from_raw_parts_mut(memory.cast(), len) })
    }

    fn publish_loan(&mut self) -> Result<(), Error> {
        let publish = self.ends.table.publish_loan;
        let publish = publish.ok_or_else(|| Error::new("this system has no loans"))?;
        check(publish(self.ends.context), "publish_loan").map(drop)
    }

    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let (bytes, len) = (message.as_ptr().cast(), message.len());
        check((self.ends.table.publish)(self.ends.context, bytes, len), "publish").map(drop)
    }

    fn select(&mut self, topic: u32) {
        if let Some(select) = self.ends.table.select {
            select(self.ends.context, topic);
        }
    }
}

struct CSubscriber(Rc<Ends>);

impl Subscriber for CSubscriber {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let Some(wait) = self.0.table.wait else {
            return Ok(None);
        };
        Ok(Some(check(wait(self.0.context, until_ns), "wait")? > 0))
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let (mut bytes, mut len) = (std::ptr::null(), 0);
        let taken = (self.0.table.take)(self.0.context, until_ns, &mut bytes, &mut len);
        if check(taken, "take")? == 0 {
            return Ok(None);
        }
        // SAFETY: the header demands `len` readable bytes that stay valid until release.
        Ok(Some(unsafe { std::slice::from_raw_parts(bytes.cast(), len) }))
    }

    fn release(&mut self) {
        if let Some(release) = self.0.table.release {
            release(self.0.context);
        }
    }
}

fn check(status: c_int, call: &str) -> Result<c_int, Error> {
    if status >= 0 {
        return Ok(status);
    }
    let mut reason = LAST_ERROR.take();
    if reason.message.is_empty() {
        reason.message = format!("{call} failed with {status}");
    }
    Err(reason.into())
}

/// # Safety
/// The texts are null or NUL-terminated.
unsafe fn describe(system: &CSystem) -> protocol::System {
    // SAFETY: the caller's promise.
    let read = |pointer| unsafe { text(pointer) };
    protocol::System {
        topology: protocol::Topology::TwoProcesses,
        name: read(system.name),
        about: read(system.about),
        version: read(system.version),
        wait: match system.wait {
            0 => protocol::Wait::Poll,
            2 => protocol::Wait::Adaptive,
            _ => protocol::Wait::Block,
        },
        transport: match system.transport {
            0 => protocol::Transport::Loopback,
            1 => protocol::Transport::SharedMemory,
            _ => protocol::Transport::Kernel,
        },
        loans: system.loans != 0,
        daemon: false,
        missing: (!system.missing.is_null()).then(|| read(system.missing)),
        payload_bytes_max: system.payload_bytes_max,
        across_hosts: system.across_hosts != 0,
        floor: false,
        workloads: match system.streams {
            0 => protocol::Workload::roundtrip_only(),
            _ => {
                let mut all = protocol::Workload::roundtrip_only();
                all.extend(protocol::Workload::streams());
                all
            }
        },
        streams: protocol::Streams {
            reliability: match system.reliability {
                2 => vec![Reliability::Reliable],
                3 => vec![Reliability::BestEffort, Reliability::Reliable],
                _ => vec![Reliability::BestEffort],
            },
            publishers_max: most(system.publishers_max),
            subscribers_max: most(system.subscribers_max),
            topics_max: most(system.topics_max),
        },
    }
}

/// A limit as the header has it, as the protocol has it.
fn most(limit: u32) -> u32 {
    match limit {
        0 => 1,
        u32::MAX => 0,
        limit => limit,
    }
}

/// # Safety
/// `pointer` is null or NUL-terminated.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::new("a NUL character in a text of the protocol"))
}

/// Version of the tables; `MYELIN_BENCH_ABI` in the header.
pub const ABI: u32 = 4;
