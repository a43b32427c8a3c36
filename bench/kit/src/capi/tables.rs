//! The structures of `include/myelin_bench_kit.h`, and how to read those of a driver that was
//! compiled with an older header. The header explains each member.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::error::Error;
use crate::message::HEADER_BYTES;
use crate::protocol::{
    Prepare, Reliability, Streams, System, Topology, Touch, Transport, Wait, Workload,
};

/// `struct myelin_bench_system`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CSystem {
    struct_size: usize,
    name: *const c_char,
    about: *const c_char,
    version: *const c_char,
    wait: c_int,
    transport: c_int,
    loans: c_int,
    workloads: u32,
    missing: *const c_char,
    payload_bytes_max: u64,
    reliability: c_int,
    publishers_max: u32,
    subscribers_max: u32,
    topics_max: u32,
    across_hosts: c_int,
    one_process: c_int,
    daemon: c_int,
    loan_bytes_min: u64,
    depth_max: u32,
    secure: c_int,
}

/// `struct myelin_bench_prepare`.
#[repr(C)]
pub struct CPrepare {
    pub(super) struct_size: usize,
    pub(super) system: *const c_char,
    pub(super) run: *const c_char,
    pub(super) directory: *const c_char,
    pub(super) options_json: *const c_char,
    pub(super) is_ping: c_int,
    pub(super) domain: u32,
    pub(super) payload_bytes: u64,
    pub(super) message_bytes: u64,
    pub(super) match_timeout_ns: u64,
    pub(super) seed: u64,
    pub(super) one_way: c_int,
    pub(super) reliable: c_int,
    pub(super) depth: u32,
    pub(super) publishers: u32,
    pub(super) subscribers: u32,
    pub(super) index: u32,
    pub(super) topics: u32,
    pub(super) interface: *const c_char,
    pub(super) own: *const c_char,
    pub(super) peer: *const c_char,
    pub(super) port: u16,
    pub(super) workload: u32,
    pub(super) file_prefix: *const c_char,
    pub(super) kit: *const Prepare,
    pub(super) publishes: c_int,
    pub(super) subscribes: c_int,
    pub(super) others: u32,
    pub(super) match_until_ns: u64,
    pub(super) enclave: *const c_char,
}

impl CPrepare {
    /// The order that it was made from, for functions of a driver in Rust.
    pub fn of_kit(&self) -> &Prepare {
        // SAFETY: only the kit makes such a structure, from data that outlives it.
        unsafe { &*self.kit }
    }
}

/// `myelin_bench_call`.
pub type CCall = unsafe extern "C" fn(*mut c_void, *const c_void, usize);

/// `struct myelin_bench_link`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CLink {
    struct_size: usize,
    pub(super) open: Option<extern "C" fn(*const CPrepare, *mut *mut c_void) -> c_int>,
    pub(super) loan: Option<extern "C" fn(*mut c_void, usize, *mut *mut c_void) -> c_int>,
    pub(super) publish_loan: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub(super) publish: Option<extern "C" fn(*mut c_void, *const c_void, usize) -> c_int>,
    pub(super) wait: Option<extern "C" fn(*mut c_void, u64) -> c_int>,
    pub(super) take:
        Option<extern "C" fn(*mut c_void, u64, *mut *const c_void, *mut usize) -> c_int>,
    pub(super) release: Option<extern "C" fn(*mut c_void)>,
    pub(super) close: Option<extern "C" fn(*mut c_void)>,
    pub(super) select: Option<extern "C" fn(*mut c_void, u32)>,
    pub(super) subscribe: Option<extern "C" fn(*mut c_void, u32, *mut *mut c_void) -> c_int>,
    pub(super) unsubscribe: Option<extern "C" fn(*mut c_void)>,
    pub(super) listen: Option<extern "C" fn(*mut c_void, CCall, *mut c_void) -> c_int>,
    pub(super) unlisten: Option<extern "C" fn(*mut c_void)>,
}

/// `struct myelin_bench_driver`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CDriver {
    pub(super) abi: u32,
    struct_size: usize,
    systems: *const CSystem,
    system_count: usize,
    link: *const CLink,
    options: *const c_char,
    pub(super) check: Option<extern "C" fn(*const CPrepare) -> c_int>,
    pub(super) probe: Option<extern "C" fn(*mut CSystem)>,
    pub(super) notes: Option<extern "C" fn(*const CPrepare) -> *const c_char>,
    pub(super) notes_at_end: Option<extern "C" fn() -> *const c_char>,
    pub(super) start_daemon: Option<extern "C" fn(*const CPrepare, *mut *mut c_void) -> c_int>,
    pub(super) daemon_pids: Option<extern "C" fn(*mut c_void, *mut u32, usize) -> usize>,
    pub(super) check_daemon: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub(super) stop_daemon: Option<extern "C" fn(*mut c_void) -> c_int>,
    pub(super) clean: Option<extern "C" fn() -> c_int>,
}

// SAFETY: the header requires tables to be constant for the life of the program.
unsafe impl Sync for CDriver {}
// SAFETY: as above.
unsafe impl Sync for CLink {}

/// A structure of the header: numbers, pointers and optional functions, for which all zeros are
/// valid.
///
/// # Safety
/// The type must be such a structure.
unsafe trait Table: Copy {
    const NAME: &str;
    /// Its size in the first header of this series.
    const BYTES_MIN: usize;
}

// SAFETY: as `Table` requires.
unsafe impl Table for CSystem {
    const NAME: &str = "system";
    const BYTES_MIN: usize = std::mem::offset_of!(CSystem, one_process);
}

// SAFETY: as `Table` requires.
unsafe impl Table for CLink {
    const NAME: &str = "link";
    const BYTES_MIN: usize = std::mem::offset_of!(CLink, subscribe);
}

// SAFETY: as `Table` requires.
unsafe impl Table for CDriver {
    const NAME: &str = "driver";
    const BYTES_MIN: usize = std::mem::offset_of!(CDriver, check);
}

/// A copy of `table`, which has `bytes` bytes. Members that an older header lacks are 0.
///
/// # Safety
/// `table` points to `bytes` readable bytes.
unsafe fn copy<T: Table>(table: *const T, bytes: usize) -> Result<T, Error> {
    let name = T::NAME;
    if bytes < T::BYTES_MIN {
        let text = format!("struct myelin_bench_{name}: the struct_size {bytes} is wrong");
        let remedy = format!("set struct_size to MYELIN_BENCH_SIZE({name})");
        return Err(Error::new(text).remedy(remedy));
    }
    // SAFETY: zeros are a valid `T`, see `Table`.
    let mut own: T = unsafe { std::mem::zeroed() };
    let bytes = bytes.min(size_of::<T>());
    // SAFETY: required of the caller; `own` is as large, and does not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), (&raw mut own).cast::<u8>(), bytes)
    };
    Ok(own)
}

impl CDriver {
    /// A copy of the driver's table, for any header of this series.
    ///
    /// # Safety
    /// `driver` points to a table as the header requires it.
    pub(super) unsafe fn read(driver: *const CDriver) -> Result<CDriver, Error> {
        // SAFETY: this is the first member in every version.
        let abi = unsafe { driver.cast::<u32>().read() };
        if !(ABI_MIN..=ABI).contains(&abi) {
            let text = format!(
                "the driver was built for kit ABI {abi}, but this kit has {ABI_MIN} \
                                to {ABI}"
            );
            return Err(Error::new(text).remedy("rebuild the driver with this kit's header"));
        }
        // SAFETY: this is the second member in every version of this series.
        let bytes = unsafe { (&raw const (*driver).struct_size).read() };
        // SAFETY: required of the caller.
        unsafe { copy(driver, bytes) }
    }

    pub(super) fn systems(&self) -> Result<Vec<CSystem>, Error> {
        let Some(first) = std::ptr::NonNull::new(self.systems.cast_mut()) else {
            return Ok(Vec::new());
        };
        // SAFETY: the header requires `system_count` valid entries; this is the first member of the
        // first one.
        let stride = unsafe { first.as_ptr().cast::<usize>().read() };
        let entry = |index| {
            // SAFETY: `system_count` entries of the same size follow each other.
            let entry = unsafe { first.as_ptr().byte_add(index * stride) };
            // SAFETY: as above.
            unsafe { copy(entry, entry.cast::<usize>().read()) }
        };
        (0..self.system_count).map(entry).collect()
    }

    /// The functions of the driver's links.
    pub(super) fn link(&self) -> Result<CLink, Error> {
        if self.link.is_null() {
            return Err(Error::new("this driver has no functions: its middleware is missing"));
        }
        // SAFETY: the header requires a table whose first member is its size.
        unsafe { copy(self.link, self.link.cast::<usize>().read()) }
    }

    /// Whether the driver knows an option with this name.
    pub(super) fn has_option(&self, key: &str) -> bool {
        // SAFETY: the header requires a text or null.
        unsafe { text(self.options) }.split_whitespace().any(|option| option == key)
    }
}

impl CSystem {
    /// Whether messages of a run are written into loans. If they are copied in any case, that is so
    /// only if loans are measured.
    pub(super) fn writes_into_loans(&self, prepare: &Prepare) -> bool {
        let bytes = (HEADER_BYTES as u64).saturating_add(prepare.payload_bytes);
        self.loans != 0 && (bytes >= self.loan_bytes_min || prepare.touch == Touch::Header)
    }

    /// For a probe: the middleware was found, in this version.
    pub fn found(&mut self, version: &'static CStr) {
        self.version = version.as_ptr();
    }

    /// For a probe: sets why the system cannot run, unless a reason is set already.
    pub fn lacks(&mut self, missing: &'static CStr) {
        if self.missing.is_null() {
            self.missing = missing.as_ptr();
        }
    }

    /// The system in the form of the protocol.
    pub(super) fn describe(&self) -> System {
        // SAFETY: the header requires NUL-terminated or null texts.
        let read = |pointer| unsafe { text(pointer) };
        let kinds = |all: &[(u32, Workload)]| {
            let named = all.iter().filter(|(bit, _)| self.workloads & bit != 0);
            named.map(|(_, workload)| *workload).collect()
        };
        System {
            name: read(self.name),
            about: read(self.about),
            version: read(self.version),
            wait: match self.wait {
                0 => Wait::Poll,
                2 => Wait::Adaptive,
                3 => Wait::Predictive,
                4 => Wait::Callback,
                _ => Wait::Block,
            },
            transport: match self.transport {
                0 => Transport::Loopback,
                1 => Transport::SharedMemory,
                3 => Transport::Process,
                _ => Transport::Kernel,
            },
            topology: match self.one_process {
                0 => Topology::TwoProcesses,
                _ => Topology::OneProcess,
            },
            loans: self.loans != 0,
            daemon: self.daemon != 0,
            missing: (!self.missing.is_null()).then(|| read(self.missing)),
            payload_bytes_max: self.payload_bytes_max,
            across_hosts: self.across_hosts != 0,
            secure: self.secure != 0,
            floor: false,
            workloads: match self.workloads {
                0 => Workload::roundtrip_only(),
                _ => kinds(&WORKLOADS),
            },
            streams: Streams {
                reliability: match self.reliability {
                    2 => vec![Reliability::Reliable],
                    3 => vec![Reliability::BestEffort, Reliability::Reliable],
                    _ => vec![Reliability::BestEffort],
                },
                publishers_max: most(self.publishers_max),
                subscribers_max: most(self.subscribers_max),
                topics_max: most(self.topics_max),
                depth_max: self.depth_max,
            },
        }
    }
}

/// The bit of a workload.
pub(super) fn bit(workload: Workload) -> u32 {
    let found = WORKLOADS.iter().find(|(_, known)| *known == workload);
    found.map_or(0, |(bit, _)| *bit)
}

/// Converts a limit of the header to one of the protocol.
fn most(limit: u32) -> u32 {
    match limit {
        0 => 1,
        u32::MAX => 0,
        limit => limit,
    }
}

/// A copy of a text; an empty one for null.
///
/// # Safety
/// `pointer` is null or NUL-terminated.
pub(super) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: required of the caller.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Version of the tables; `MYELIN_BENCH_ABI` in the header.
const ABI: u32 = 10;
/// The first version of this series.
const ABI_MIN: u32 = 5;
/// `MYELIN_BENCH_ROUNDTRIP` and so on.
const WORKLOADS: [(u32, Workload); 7] = [
    (1, Workload::Roundtrip),
    (2, Workload::Stream),
    (4, Workload::Image),
    (8, Workload::Flood),
    (16, Workload::Startup),
    (32, Workload::Publish),
    (64, Workload::Replay),
];
