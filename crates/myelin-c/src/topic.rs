//! Topics: a name, a type, settings.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use myelin::{DynamicType, Matching, Node, Topic};

use crate::error::{Failure, MYELIN_OK, enter, myelin_code};
use crate::node::{attributes, myelin_attribute, myelin_node};
use crate::payload::{self, myelin_payload};
use crate::sized::{self, sized};
use crate::{handle, text};

/// A name, a type and settings from which publishers and subscribers are made. Any thread may use
/// it.
pub enum myelin_topic {}

pub struct TopicHandle {
    pub topic: Topic<[u8]>,
    /// The type that a payload must fit; `None` if every payload fits.
    pub dynamic_type: Option<Arc<DynamicType>>,
}

/// Whether a publisher waits for a subscriber that is behind.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the program's, read as numbers")]
pub enum myelin_reliability {
    /// It never waits; a subscriber that is behind loses the oldest samples and can read how many.
    MYELIN_BEST_EFFORT = 0,
    /// It waits for at most `reliable_ns`, then passes the late subscriber over.
    MYELIN_RELIABLE = 1,
    /// It waits for at most `reliable_ns`, then publishing fails for all subscribers.
    MYELIN_RELIABLE_OR_FAIL = 2,
    /// Like MYELIN_BEST_EFFORT, and samples lost on the way from and to other hosts are sent again,
    /// as long as they are among the newest `depth`: ROS 2's KEEP_LAST, reliable.
    MYELIN_KEEP_LAST = 3,
}

/// Which settings of the other side match.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the program's, read as numbers")]
pub enum myelin_matching {
    /// All. A subscriber that requests more than its publisher offers gets
    /// MYELIN_EVENT_QOS_REDUCED.
    MYELIN_MATCHING_EXACT = 0,
    /// Only if the publisher offers at least what the subscriber requests, by the rules of DDS:
    /// reliability, history, deadline, liveliness. Otherwise both get MYELIN_EVENT_INCOMPATIBLE. It
    /// applies if one of the two sides chooses it, on this host.
    MYELIN_MATCHING_REQUESTED_OFFERED = 1,
}

/// Settings of both sides. 0 in a member, or NULL instead of the struct, is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_topic_options {
    /// sizeof(struct myelin_topic_options): MYELIN_INIT(myelin_topic_options).
    pub size: usize,
    /// How many samples a subscriber can be behind without a loss: 1 to 65,535; 0: 8.
    pub depth: u32,
    /// `enum myelin_reliability`.
    pub reliability: i32,
    /// How long a reliable publisher waits, in ns. Used only if `reliability` is reliable.
    pub reliable_ns: u64,
    /// How many samples a late subscriber gets; at most the depth.
    pub transient_local: u32,
    /// The longest time between two samples of a publisher, in ns; 0: none. Each side that sets it
    /// gets an event for a longer silence; the two sides are not compared. A subscriber watches
    /// each publisher from the match on: a publisher that never came misses no deadline. A
    /// publisher watches itself.
    pub deadline_ns: u64,
    /// The name of an IDL type whose CDR is the payload, for other DDS programs; NULL: only
    /// Myelin's.
    pub dds_type: *const c_char,
    /// The topic's name among DDS programs; NULL: the same name.
    pub dds_name: *const c_char,
    /// Samples are whole CDR messages of `dds_type`, with their header: for a topic of bytes.
    pub dds_cdr: bool,
    /// User data of the endpoints in DDS, in front of Myelin's own: text of the form `key=value;`,
    /// such as ROS 2's `typehash=`; NULL: none.
    pub dds_user_data: *const c_char,
    /// Meets other DDS programs of one DDS implementation only, by its number in RTPS; 0: all.
    pub dds_vendor: u16,
    /// What else others see of the endpoints: `attribute_count` elements.
    pub attributes: *const myelin_attribute,
    /// 0: none.
    pub attribute_count: usize,
    /// `enum myelin_matching`.
    pub matching: i32,
    /// For a topic of bytes: what `schema` is, such as `ros2msg`; NULL: none.
    pub schema_encoding: *const c_char,
    /// How its samples are to be read by programs that were not compiled with their type: of
    /// `schema_bytes` bytes, at most 65,536.
    pub schema: *const c_void,
    /// Bytes of `schema`.
    pub schema_bytes: usize,
    /// How long a sample is valid, in ns; 0: for ever. The library drops no sample for it: others see
    /// it in the graph.
    pub lifespan_ns: u64,
    /// Whether only the program asserts liveliness, for an endpoint alone, as in ROS 2's
    /// MANUAL_BY_TOPIC. Others see it, and MYELIN_MATCHING_REQUESTED_OFFERED compares it.
    pub is_alive_by_topic: bool,
}

sized! { myelin_topic_options up to size: usize; }

/// Names a topic and its payload; if `payload` is NULL, any number of bytes. `options` may be NULL.
/// Nothing is checked with other programs before a publisher or subscriber is made.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_topic_open(
    node: *mut myelin_node,
    name: *const c_char,
    payload: *const myelin_payload,
    options: *const myelin_topic_options,
    topic: *mut *mut myelin_topic,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(topic, std::ptr::null_mut(), "topic")?;
        let node: &Node = handle::get(handle::of_pointer(node))?;
        let dynamic_type = payload::dynamic_type(payload)?;
        let made = node.dynamic_topic(text::required(name, "name")?, &dynamic_type);
        let made = with(made, sized::read(options)?, payload.is_null())?;
        let dynamic_type = (!dynamic_type.fits_all()).then(|| Arc::new(dynamic_type));
        let handle = Box::new(TopicHandle { topic: made, dynamic_type });
        topic.write(handle::to_pointer(handle::insert(handle)?));
        Ok(MYELIN_OK)
    })
}

unsafe fn with(
    mut topic: Topic<[u8]>,
    options: myelin_topic_options,
    is_bytes: bool,
) -> Result<Topic<[u8]>, Failure> {
    if options.depth != 0 {
        topic = topic.depth(options.depth);
    }
    let limit = text::duration(options.reliable_ns);
    topic = match options.reliability {
        0 => topic,
        1 => topic.reliable(limit),
        2 => topic.reliable_or_fail(limit),
        3 => topic.reliable_keep_last(),
        other => {
            return Err(Failure::setting(format_args!(
                "reliability is {other}; set it to one of enum myelin_reliability"
            )));
        }
    };
    topic = topic.transient_local(options.transient_local);
    if options.deadline_ns != 0 {
        topic = topic.deadline(text::duration(options.deadline_ns));
    }
    let lifespan = (options.lifespan_ns != 0).then(|| text::duration(options.lifespan_ns));
    topic = topic.announced_only(lifespan, options.is_alive_by_topic);
    topic = match options.matching {
        0 => topic,
        1 => topic.matching(Matching::RequestedOffered),
        other => {
            return Err(Failure::setting(format_args!(
                "matching is {other}; set it to one of enum myelin_matching"
            )));
        }
    };
    // SAFETY: as the caller promises.
    for (name, value) in unsafe { attributes(options.attributes, options.attribute_count)? } {
        topic = topic.attribute(name, value);
    }
    // SAFETY: as the caller promises.
    let optional = |text, what| unsafe { text::optional(text, what) };
    if let Some(name) = optional(options.dds_name, "dds_name")? {
        topic = topic.dds_name(name);
    }
    if let Some(text) = optional(options.dds_user_data, "dds_user_data")? {
        topic = topic.dds_user_data(text);
    }
    if options.dds_vendor != 0 {
        topic = topic.dds_vendor(options.dds_vendor);
    }
    if let Some(encoding) = optional(options.schema_encoding, "schema_encoding")? {
        // SAFETY: as the caller promises.
        topic =
            topic.schema(encoding, unsafe { text::bytes(options.schema, options.schema_bytes)? });
    }
    match optional(options.dds_type, "dds_type")? {
        Some(_) if options.dds_cdr && !is_bytes => {
            Err(Failure::setting("dds_cdr is for topics of bytes; pass NULL as payload"))
        }
        None if options.dds_cdr => {
            Err(Failure::setting("dds_cdr is set and dds_type is NULL; name the type"))
        }
        Some(name) if options.dds_cdr => Ok(topic.dds_cdr(name)),
        Some(name) => Ok(topic.dds_type(name)),
        None => Ok(topic),
    }
}

/// Closes a topic's handle. Objects made from it go on.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_topic_close(topic: *mut myelin_topic) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<TopicHandle>(handle::of_pointer(topic))?);
        Ok(MYELIN_OK)
    })
}
