//! Events: news for an endpoint's user about the other side.

use std::collections::VecDeque;
use std::ffi::{CString, c_char};

use myelin::{Event, Mismatch, Setting};

use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, myelin_code};
use crate::sized::{self, sized};
use crate::text;

/// The kind of an event. More kinds may be added: ignore those that you do not know.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_event_kind {
    /// The other side has come: `endpoint`, `pid`.
    MYELIN_EVENT_MATCHED = 1,
    /// The other side has gone, or has `died`.
    MYELIN_EVENT_UNMATCHED = 2,
    /// The other side offers less than requested: `text` says what to change.
    MYELIN_EVENT_QOS_REDUCED = 3,
    /// `number` samples were lost.
    MYELIN_EVENT_LOST = 4,
    /// A late subscriber is no longer waited for.
    MYELIN_EVENT_PASSED_OVER = 5,
    /// The subscriber is waited for again.
    MYELIN_EVENT_CAUGHT_UP = 6,
    /// The other side cannot be matched: `text` says why.
    MYELIN_EVENT_INCOMPATIBLE = 7,
    /// A publisher was silent for longer than `deadline_ns`: once for each silence, a quarter of it late at
    /// most. The next sample ends it, without an event. At a publisher, `endpoint` is its own.
    MYELIN_EVENT_DEADLINE_MISSED = 8,
    /// A publisher gave no sign of life for longer than the subscriber's `liveliness_ns`: it neither
    /// published nor called `myelin_publisher_assert_liveliness`. Once for each silence.
    MYELIN_EVENT_LIVELINESS_LOST = 9,
    /// The publisher gives signs of life again.
    MYELIN_EVENT_LIVELINESS_REGAINED = 10,
    /// A sample of `number` bytes from another host found no room: `text` says what to do.
    MYELIN_EVENT_BUFFER_TOO_SMALL = 11,
    /// The other side wrote invalid data, and is disconnected.
    MYELIN_EVENT_CORRUPT = 12,
    /// The two sides fit, and one has no room for the match: `text` says why. It is tried again.
    MYELIN_EVENT_REFUSED = 13,
    /// An event that this library has no number for yet.
    MYELIN_EVENT_OTHER = 0,
}
use myelin_event_kind::*;

/// An event. Members that its kind does not use are 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_event {
    /// sizeof(struct myelin_event): MYELIN_INIT(myelin_event).
    pub size: usize,
    /// Its kind.
    pub kind: myelin_event_kind,
    /// The other side's process; 0 on another host, and for kinds without a process.
    pub pid: u32,
    /// The other side.
    pub endpoint: u64,
    /// A number of samples or bytes.
    pub number: u64,
    /// The reason, and what to do; or NULL. Valid until the next event is taken from the same
    /// handle, or the handle is closed.
    pub text: *const c_char,
    /// Whether the other side's process has ended without closing its node: also by a return from `main`.
    pub died: bool,
    /// For MYELIN_EVENT_QOS_REDUCED and MYELIN_EVENT_INCOMPATIBLE: what the publisher offers and what
    /// the subscriber requests, or NULL; valid like `text`.
    pub offered: *const c_char,
    pub requested: *const c_char,
    /// Of which setting; MYELIN_SETTING_NONE for another version of the library.
    pub setting: myelin_setting,
}

/// A setting that two endpoints of a topic do not agree on.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_setting {
    /// None.
    MYELIN_SETTING_NONE = 0,
    /// The type of the samples.
    MYELIN_SETTING_TYPE = 1,
    /// The depth.
    MYELIN_SETTING_DEPTH = 2,
    /// Reliability.
    MYELIN_SETTING_RELIABILITY = 3,
    /// Whether samples are kept for late subscribers.
    MYELIN_SETTING_DURABILITY = 4,
    /// The deadline.
    MYELIN_SETTING_DEADLINE = 5,
    /// Who asserts liveliness.
    MYELIN_SETTING_LIVELINESS = 6,
    /// How often liveliness is asserted.
    MYELIN_SETTING_LIVELINESS_LEASE = 7,
    /// One that this library has no number for yet.
    MYELIN_SETTING_OTHER = -1,
}

impl From<Option<Setting>> for myelin_setting {
    fn from(setting: Option<Setting>) -> Self {
        use myelin_setting::*;
        match setting {
            None => MYELIN_SETTING_NONE,
            Some(Setting::Type) => MYELIN_SETTING_TYPE,
            Some(Setting::Depth) => MYELIN_SETTING_DEPTH,
            Some(Setting::Reliability) => MYELIN_SETTING_RELIABILITY,
            Some(Setting::Durability) => MYELIN_SETTING_DURABILITY,
            Some(Setting::Deadline) => MYELIN_SETTING_DEADLINE,
            Some(Setting::Liveliness) => MYELIN_SETTING_LIVELINESS,
            Some(Setting::LivelinessLease) => MYELIN_SETTING_LIVELINESS_LEASE,
            Some(_) => MYELIN_SETTING_OTHER,
        }
    }
}

sized! { myelin_event up to text: *const c_char; }

/// The events of one handle that the program has not taken yet.
#[derive(Default)]
pub struct Events {
    left: VecDeque<Event>,
    text: Option<CString>,
    offered: Option<CString>,
    requested: Option<CString>,
}

impl Events {
    /// Gives the program the next event.
    ///
    /// # Safety
    /// `to` is NULL or points to as many bytes as its first member says.
    pub unsafe fn next(
        &mut self,
        fresh: impl FnOnce() -> Vec<Event>,
        to: *mut myelin_event,
    ) -> Result<myelin_code, Failure> {
        // SAFETY: as the caller promises.
        unsafe { sized::check(to)? };
        if self.left.is_empty() {
            self.left.extend(fresh());
        }
        let Some(event) = self.left.pop_front() else { return Ok(MYELIN_NOTHING) };
        let mut fields = fields_of(&event);
        self.text = text_of(&event).map(text::c_string);
        let mismatch = mismatch_of(&event);
        self.offered = mismatch.map(|it| text::c_string(&it.offered));
        self.requested = mismatch.map(|it| text::c_string(&it.requested));
        fields.setting = mismatch.map(|it| it.setting).into();
        fields.text = text::pointer(&self.text);
        fields.offered = text::pointer(&self.offered);
        fields.requested = text::pointer(&self.requested);
        // SAFETY: as the caller promises.
        unsafe { sized::write(to, fields)? };
        Ok(MYELIN_OK)
    }
}

fn fields_of(event: &Event) -> myelin_event {
    let (kind, endpoint, pid, number, died) = match *event {
        Event::Matched { endpoint, pid } => (MYELIN_EVENT_MATCHED, endpoint, pid, 0, false),
        Event::Unmatched { endpoint, pid, died } => {
            (MYELIN_EVENT_UNMATCHED, endpoint, pid, 0, died)
        }
        Event::QosReduced { endpoint, pid, .. } => {
            (MYELIN_EVENT_QOS_REDUCED, endpoint, pid, 0, false)
        }
        Event::Lost { endpoint, samples } => (MYELIN_EVENT_LOST, endpoint, 0, samples, false),
        Event::PassedOver { endpoint, pid } => (MYELIN_EVENT_PASSED_OVER, endpoint, pid, 0, false),
        Event::CaughtUp { endpoint, pid } => (MYELIN_EVENT_CAUGHT_UP, endpoint, pid, 0, false),
        Event::Incompatible { endpoint, pid, .. } => {
            (MYELIN_EVENT_INCOMPATIBLE, endpoint, pid, 0, false)
        }
        Event::Refused { endpoint, pid, .. } => (MYELIN_EVENT_REFUSED, endpoint, pid, 0, false),
        Event::DeadlineMissed { endpoint } => (MYELIN_EVENT_DEADLINE_MISSED, endpoint, 0, 0, false),
        Event::LivelinessLost { endpoint } => (MYELIN_EVENT_LIVELINESS_LOST, endpoint, 0, 0, false),
        Event::LivelinessRegained { endpoint } => {
            (MYELIN_EVENT_LIVELINESS_REGAINED, endpoint, 0, 0, false)
        }
        Event::BufferTooSmall { endpoint, bytes, .. } => {
            (MYELIN_EVENT_BUFFER_TOO_SMALL, endpoint, 0, bytes, false)
        }
        Event::Corrupt { endpoint } => (MYELIN_EVENT_CORRUPT, endpoint, 0, 0, false),
        _ => (MYELIN_EVENT_OTHER, 0, 0, 0, false),
    };
    let (text, offered, requested) = (std::ptr::null(), std::ptr::null(), std::ptr::null());
    let setting = None.into();
    myelin_event { size: 0, kind, pid, endpoint, number, text, died, setting, offered, requested }
}

fn mismatch_of(event: &Event) -> Option<&Mismatch> {
    match event {
        Event::QosReduced { mismatch, .. } => Some(mismatch),
        Event::Incompatible { mismatch, .. } => mismatch.as_ref(),
        _ => None,
    }
}

fn text_of(event: &Event) -> Option<&str> {
    match event {
        Event::QosReduced { reason, .. }
        | Event::Incompatible { reason, .. }
        | Event::Refused { reason, .. } => Some(reason),
        Event::BufferTooSmall { remedy, .. } => Some(remedy),
        _ => None,
    }
}
