//! Recordings that are written.

use std::ffi::{CString, c_char};
use std::time::Duration;

use myelin_bag::Recorder;
use myelin_bag::recorder::{FileOptions, Files, Status};

use crate::error::{MYELIN_BAG_NOTHING, MYELIN_BAG_OK, c_string, enter, myelin_bag_code};
use crate::input::{self, sized};

/// Records topics, from when it is opened until it is closed.
pub struct myelin_recorder {
    recorder: Recorder,
    /// Of the last `myelin_recorder_topic_at`.
    texts: std::sync::Mutex<(CString, CString)>,
}

/// What is recorded, and how. Without topics and types, all topics are. Patterns have `*` and `?`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_recorder_options {
    /// sizeof(struct myelin_recorder_options): MYELIN_BAG_INIT(myelin_recorder_options).
    pub size: usize,
    /// Names or patterns of topics.
    pub topics: *const *const c_char,
    pub topic_count: usize,
    /// Names or patterns of types.
    pub types: *const *const c_char,
    pub type_count: usize,
    /// Names or patterns of topics that are left out.
    pub exclude: *const *const c_char,
    pub exclude_count: usize,
    /// Topics whose reliable publishers wait for the recorder.
    pub reliable: *const *const c_char,
    pub reliable_count: usize,
    /// The name of its node; NULL: recorder.
    pub node: *const c_char,
    /// The folder of sockets; NULL: MYELIN_RUNTIME_DIR, or the default.
    pub runtime_dir: *const c_char,
    /// The domain plus 1; 0: MYELIN_DOMAIN, or 0.
    pub domain_plus_1: u32,
    /// Whether the topics of ROS 2's services are recorded, too.
    pub services: bool,
    /// Whether its oldest files are removed to keep space free.
    pub delete_oldest: bool,
    /// Ends after so many messages; 0: no limit.
    pub messages_max: u64,
    /// How many bytes of samples may wait to be written; 0: 256 MiB.
    pub buffer_bytes: u64,
    /// A file of so many bytes, or of messages of so long a time, is followed by another; 0: no limit.
    pub split_bytes: u64,
    pub split_time_ns: u64,
    /// So many bytes of the disk stay free.
    pub keep_free_bytes: u64,
}

/// How a recording goes, or how it went.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct myelin_recorder_status_fields {
    /// MYELIN_BAG_INIT(myelin_recorder_status_fields).
    pub size: usize,
    /// How long it has run.
    pub elapsed_ns: u64,
    /// Its messages, and the bytes of their samples.
    pub messages: u64,
    pub bytes: u64,
    /// Messages that were left out because of a limit of their topic's rate.
    pub skipped: u64,
    /// Messages that are not in the recording: their publisher overwrote them before they were taken,
    /// the recorder had no room for them, they could not be written.
    pub lost_publisher_ring: u64,
    pub lost_recorder: u64,
    pub lost_disk: u64,
    /// Bytes of samples that are not written yet.
    pub buffered_bytes: u64,
    /// The bytes of its files.
    pub file_bytes: u64,
    /// How many topics it has found.
    pub topics: usize,
    /// Whether it ends or has ended, also by itself: it has as many messages as were wanted, or the
    /// disk is full.
    pub is_ending: bool,
}

/// A topic that is recorded. Texts are valid until the next call of `myelin_recorder_topic_at`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_recorded_topic {
    /// sizeof(struct myelin_recorded_topic): MYELIN_BAG_INIT(myelin_recorded_topic).
    pub size: usize,
    pub name: *const c_char,
    pub type_name: *const c_char,
    /// How many are there now.
    pub publishers: u64,
    /// In the recording.
    pub messages: u64,
    pub bytes: u64,
    /// As in `myelin_recorder_status_fields`.
    pub lost_publisher_ring: u64,
    pub lost_recorder: u64,
    pub lost_disk: u64,
}

sized!(myelin_recorder_options, myelin_recorder_status_fields, myelin_recorded_topic);

/// Starts to record to a file, which must not exist. On return it has subscribed to the topics that
/// are there; those that come later are recorded from when they are found. Options may be NULL.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_recorder_open(
    path: *const c_char,
    options: *const myelin_recorder_options,
    recorder: *mut *mut myelin_recorder,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let path = input::required(path, "path")?;
        let options = input::read(options)?;
        let (name, folder) = (
            input::optional(options.node, "node's name")?,
            input::optional(options.runtime_dir, "runtime_dir")?,
        );
        let node = input::node(name, "recorder", options.domain_plus_1, folder)?;
        let mut builder = Recorder::builder(&node).services(options.services);
        for pattern in input::list(options.topics, options.topic_count, "topic")? {
            builder = builder.topic(pattern);
        }
        for pattern in input::list(options.types, options.type_count, "type")? {
            builder = builder.of_type(pattern);
        }
        for pattern in input::list(options.exclude, options.exclude_count, "excluded topic")? {
            builder = builder.exclude(pattern);
        }
        for pattern in input::list(options.reliable, options.reliable_count, "reliable topic")? {
            builder = builder.reliable(pattern);
        }
        if options.messages_max > 0 {
            builder = builder.messages_max(options.messages_max);
        }
        if options.buffer_bytes > 0 {
            builder = builder.buffer_bytes(options.buffer_bytes);
        }
        let given = |value: u64| (value > 0).then_some(value);
        let mut files = FileOptions::default();
        files.split_bytes = given(options.split_bytes);
        files.split_time = given(options.split_time_ns).map(Duration::from_nanos);
        files.keep_free_bytes = given(options.keep_free_bytes);
        files.delete_oldest = options.delete_oldest;
        let started = builder.start(Files::create(path, files)?)?;
        input::give(
            recorder,
            "recorder",
            myelin_recorder { recorder: started, texts: Default::default() },
        )?;
        Ok(MYELIN_BAG_OK)
    })
}

/// How it goes.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_recorder_status(
    recorder: *mut myelin_recorder,
    status: *mut myelin_recorder_status_fields,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let recorder = &input::object(recorder, "recorder")?.recorder;
        input::write(status, fields(&recorder.status(), recorder.is_ending()))?;
        Ok(MYELIN_BAG_OK)
    })
}

/// The topic with this number, from 0 on, in the order in which they were found; MYELIN_BAG_NOTHING
/// after the last.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_recorder_topic_at(
    recorder: *mut myelin_recorder,
    index: usize,
    topic: *mut myelin_recorded_topic,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let recorder = input::object(recorder, "recorder")?;
        let status = recorder.recorder.status();
        let Some(it) = status.topics.get(index) else { return Ok(MYELIN_BAG_NOTHING) };
        let mut texts = recorder.texts.lock().unwrap_or_else(|it| it.into_inner());
        *texts = (c_string(&it.name), c_string(&it.type_name));
        let fields = myelin_recorded_topic {
            size: 0,
            name: texts.0.as_ptr(),
            type_name: texts.1.as_ptr(),
            publishers: it.publishers,
            messages: it.messages,
            bytes: it.bytes,
            lost_publisher_ring: it.losses.publisher_ring,
            lost_recorder: it.losses.recorder,
            lost_disk: it.losses.disk,
        };
        input::write(topic, fields)?;
        Ok(MYELIN_BAG_OK)
    })
}

/// Ends the recording without waiting. `myelin_recorder_close` waits.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_recorder_end(recorder: *mut myelin_recorder) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        input::object(recorder, "recorder")?.recorder.end();
        Ok(MYELIN_BAG_OK)
    })
}

/// Ends the recording: takes what was published before, waits until all is written, and closes the
/// handle. The status may be NULL.
///
/// # Safety
/// Pointers are NULL or valid; nobody uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_recorder_close(
    recorder: *mut myelin_recorder,
    status: *mut myelin_recorder_status_fields,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let recorder = input::take_back(recorder, "recorder")?.recorder;
        let recorded = recorder.finish();
        if !status.is_null() {
            input::write(status, fields(&recorded.status, true))?;
        }
        Ok(MYELIN_BAG_OK)
    })
}

fn fields(status: &Status, is_ending: bool) -> myelin_recorder_status_fields {
    myelin_recorder_status_fields {
        size: 0,
        elapsed_ns: u64::try_from(status.elapsed.as_nanos()).unwrap_or(u64::MAX),
        messages: status.messages,
        bytes: status.bytes,
        skipped: status.skipped,
        lost_publisher_ring: status.losses.publisher_ring,
        lost_recorder: status.losses.recorder,
        lost_disk: status.losses.disk,
        buffered_bytes: status.buffered_bytes,
        file_bytes: status.progress.bytes,
        topics: status.topics.len(),
        is_ending,
    }
}
