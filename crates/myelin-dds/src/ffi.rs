//! `bridge.h`, in Rust.

use std::ffi::{c_char, c_void};
use std::marker::{PhantomData, PhantomPinned};

/// A type of CycloneDDS.
#[repr(C)]
pub struct Type {
    _private: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// A sample of CycloneDDS, with a reference count.
#[repr(C)]
pub struct Sample {
    _private: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// The common part of all samples with one key.
#[repr(C)]
pub struct Instance {
    _private: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct Settings {
    pub topic: *const c_char,
    pub type_name: *const c_char,
    pub partitions: *const *const c_char,
    pub partitions_count: u32,
    pub user_data: *const c_void,
    pub user_data_bytes: usize,
    pub reliable: u8,
    pub transient_local: u8,
    pub depth: i32,
    pub history: i32,
    pub block_max_ns: i64,
}

#[repr(C)]
pub struct Listener {
    pub context: *mut c_void,
    pub received: unsafe extern "C" fn(*mut c_void, *const Received) -> u8,
    pub appeared: Visit,
    pub disappeared: Visit,
    pub changed: unsafe extern "C" fn(*mut c_void),
    pub matched: unsafe extern "C" fn(*mut c_void, i32, u32),
    pub incompatible: unsafe extern "C" fn(*mut c_void, i32, u32),
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Received {
    pub sample: *mut Sample,
    pub message: *const c_void,
    pub bytes: usize,
    pub sequence: u64,
    pub writer: u64,
}

#[repr(C)]
pub struct Endpoint {
    pub handle: u64,
    pub guid: *const u8,
    pub topic: *const c_char,
    pub type_name: *const c_char,
    pub user_data: *const c_void,
    pub user_data_bytes: usize,
    pub reliable: i8,
    pub transient_local: i8,
    pub by_topic: i8,
    pub deadline_ns: i64,
    pub lifespan_ns: i64,
    pub lease_ns: i64,
}

#[repr(C)]
pub struct Remote {
    pub guid: *const u8,
    pub host: *const c_char,
    pub process: *const c_char,
    pub pid: *const c_char,
    pub addresses: *const c_char,
    pub user_data: *const c_void,
    pub user_data_bytes: usize,
    pub has_identity: u8,
    pub is_admitted: u8,
}

#[repr(C)]
pub struct Property {
    pub name: *const c_char,
    pub value: *const c_char,
}

pub type Heard = unsafe extern "C" fn(*const c_char);
pub type Released = unsafe extern "C" fn(*mut c_void, usize);
pub type Visit = unsafe extern "C" fn(*mut c_void, *const Endpoint);
pub type VisitRemote = unsafe extern "C" fn(*mut c_void, *const Remote);

/// The functions, each of which does nothing once the process ends ([`crate::exit`]).
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// The same, at any time.
        pub mod bridge {
            use super::*;

            declare! { $(fn $name($($argument: $type),*) $(-> $result)?;)* }
        }
        $(
            #[allow(clippy::too_many_arguments)] // as in C
            pub unsafe fn $name($($argument: $type),*) $(-> $result)? {
                match crate::exit::enter() {
                    // SAFETY: as the caller promises.
                    Some(_call) => unsafe { bridge::$name($($argument),*) },
                    None => Ended::ended(),
                }
            }
        )*
    };
}

/// What is linked; without CycloneDDS nothing is ever opened, so none is called.
macro_rules! declare {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        #[cfg(have_cyclonedds)]
        unsafe extern "C" {
            $(pub fn $name($($argument: $type),*) $(-> $result)?;)*
        }
        $(
            #[cfg(not(have_cyclonedds))]
            pub unsafe fn $name($(_: $type),*) $(-> $result)? {
                unreachable!("no participant can be opened")
            }
        )*
    };
}

/// What a function returns once the process ends.
trait Ended {
    fn ended() -> Self;
}

impl Ended for () {
    fn ended() {}
}

impl Ended for i32 {
    /// `DDS_RETCODE_ALREADY_DELETED`.
    fn ended() -> i32 {
        -9
    }
}

impl Ended for *mut Sample {
    /// As without memory.
    fn ended() -> *mut Sample {
        std::ptr::null_mut()
    }
}

// What needs no participant.
declare! {
    fn myelin_dds_load(library: *const c_char) -> *const c_char;
    fn myelin_dds_file() -> *const c_char;
    fn myelin_dds_log(heard: Heard);
    fn myelin_dds_text(code: i32) -> *const c_char;
}

functions! {
    fn myelin_dds_domain(domain: u32, configuration: *const c_char) -> i32;
    fn myelin_dds_participant(
        domain: u32,
        user_data: *const c_void,
        user_data_bytes: usize,
        properties: *const Property,
        properties_count: usize,
    ) -> i32;
    fn myelin_dds_announce_only(participant: i32, topic: *const c_char) -> i32;
    fn myelin_dds_sockets(
        participant: i32,
        topic: *const c_char,
        sockets: *mut i32,
        sockets_max: i32,
    ) -> i32;
    fn myelin_dds_writer(
        participant: i32,
        settings: *const Settings,
        listener: *const Listener,
        type_made: *mut *const Type,
        instance: *mut *mut Instance,
    ) -> i32;
    fn myelin_dds_drop_instance(sample_type: *const Type, instance: *mut Instance);
    fn myelin_dds_reader(
        participant: i32,
        settings: *const Settings,
        listener: *const Listener,
    ) -> i32;
    fn myelin_dds_discovery(participant: i32, writers: u8, listener: *const Listener) -> i32;
    fn myelin_dds_sample(
        sample_type: *const Type,
        head: *const c_void,
        head_bytes: usize,
        payload: *const c_void,
        payload_bytes: usize,
        in_place: u8,
        released: Option<Released>,
        context: *mut c_void,
    ) -> *mut Sample;
    fn myelin_dds_request_acknowledgements(sample_type: *const Type, writer: *const u8);
    fn myelin_dds_set_heartbeats(sample_type: *const Type, interval_ns: i64);
    fn myelin_dds_pass_over(sample_type: *const Type, writer: *const u8, reader: *mut u8) -> i32;
    fn myelin_dds_is_waited_for(
        sample_type: *const Type,
        writer: *const u8,
        reader: *const u8,
    ) -> i32;
    fn myelin_dds_has_participant(sample_type: *const Type, writer: *const u8) -> i32;
    fn myelin_dds_write(writer: i32, sample: *mut Sample) -> i32;
    fn myelin_dds_release(sample: *mut Sample);
    fn myelin_dds_hold(sample: *mut Sample);
    fn myelin_dds_guid(endpoint: i32, guid: *mut u8) -> i32;
    fn myelin_dds_visit_matched(
        endpoint: i32,
        is_writer: u8,
        visit: Visit,
        context: *mut c_void,
    ) -> i32;
    fn myelin_dds_participants(participant: i32, listener: *const Listener) -> i32;
    fn myelin_dds_visit_participants(
        participant: i32,
        participants: i32,
        topic: *const c_char,
        visit: VisitRemote,
        context: *mut c_void,
    ) -> i32;
    fn myelin_dds_set_user_data(
        entity: i32,
        user_data: *const c_void,
        user_data_bytes: usize,
    ) -> i32;
    fn myelin_dds_wait_for_acks(writer: i32, limit_ns: i64) -> i32;
    fn myelin_dds_delete(entity: i32) -> i32;
}
