//! Writers, readers, and discovery.

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{HEARTBEAT, HEARTBEAT_DISCOVERING};
use crate::entity::{Endpoint, Entity, Guid, Listener, Remote, contained, visited_remote};
use crate::error::{Error, check};
use crate::participant::{BAD_PARAMETER, Participant, has_own_configuration, set_user_data};
use crate::{exit, ffi};

/// The samples that a writer keeps for slow readers. A reader keeps none; the setting may tell what
/// its program keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// So many of the newest samples.
    KeepLast(u32),
    /// All samples.
    KeepAll,
}

/// How to make an endpoint.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The topic's name: letters, digits, `_` and `/`.
    pub topic: String,
    /// The type's name.
    pub type_name: String,
    /// Empty for the default partition.
    pub partitions: Vec<String>,
    /// The endpoint's user data in discovery.
    pub user_data: Vec<u8>,
    /// Whether lost samples are sent again.
    pub reliable: bool,
    /// What it keeps.
    pub history: History,
    /// Samples that are kept or requested for late readers; 0 for none.
    pub history_late: u32,
    /// How long CycloneDDS itself may hold up a reliable write.
    pub block_max: Duration,
}

/// Notified when CycloneDDS releases a written sample.
pub trait Release: Send + Sync {
    /// A sample of so many bytes (head and payload) has been released: all have acknowledged it, or
    /// it was never needed. Any thread may call it.
    fn released(&self, bytes: usize);
}

/// Writes messages. Any thread may use it, but only one at a time writes.
pub struct Writer {
    entity: Entity,
    sample_type: *const ffi::Type,
    instance: *mut ffi::Instance,
    guid: Guid,
    /// Whether it keeps nothing that it sends, and sends within the call.
    in_place: bool,
}

// SAFETY: type and instance live as long as the writer and do not change; CycloneDDS's calls are for any
// thread.
unsafe impl Send for Writer {}
// SAFETY: as above.
unsafe impl Sync for Writer {}

/// Passes messages to its [`Listener`]. Any thread may use it.
pub struct Reader {
    entity: Entity,
}

/// Tells its [`Listener`] of the writers, or of the readers, in the domain.
pub struct Discovery {
    _entity: Entity,
}

/// The participants of other processes, also those that DDS Security refuses.
pub struct Participants {
    entity: Entity,
    participant: Arc<Participant>,
}

impl Writer {
    /// A writer.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Other`].
    pub fn create(
        participant: &Arc<Participant>,
        settings: &Settings,
        listener: Box<dyn Listener>,
    ) -> Result<Writer, Error> {
        let (mut sample_type, mut instance) = (std::ptr::null(), std::ptr::null_mut());
        let entity = Entity::create(participant, listener, |listener| {
            with_settings(settings, |settings| {
                // SAFETY: the settings live for the call, the listener as long as the entity.
                unsafe {
                    let participant = participant.entity;
                    let made = (&raw mut sample_type, &raw mut instance);
                    ffi::myelin_dds_writer(participant, settings, listener, made.0, made.1)
                }
            })
        });
        let entity = entity.map_err(|error| named(error, &settings.topic, participant, true))?;
        // With a user's configuration another thread may send.
        let in_place = !settings.reliable && !has_own_configuration();
        let guid = Guid::default();
        let mut writer = Writer { entity, sample_type, instance, guid, in_place };
        writer.guid = writer.entity.guid()?;
        Ok(writer)
    }

    /// Writes `head` and `payload` as one message, which begins with the encapsulation header. It
    /// makes a copy, except of a large best-effort message of whole words, which is sent from its
    /// place. `release` is notified when the message is no longer needed, also if the write fails.
    /// `hold_back` is called once the message is made, and may wait: the message is sent when it
    /// returns.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Other`], with `timeout` if CycloneDDS has no room.
    pub fn write<R: Release>(
        &self,
        head: &[u8],
        payload: &[u8],
        release: Arc<R>,
        hold_back: impl FnOnce(),
    ) -> Result<(), Error> {
        let context = Arc::into_raw(release);
        // SAFETY: the bytes live for the call, and nothing refers to them after the write below;
        // the type lives as long as the writer; the context is a reference that `released` takes
        // back.
        let sample = unsafe {
            ffi::myelin_dds_sample(
                self.sample_type,
                head.as_ptr().cast(),
                head.len(),
                payload.as_ptr().cast(),
                payload.len(),
                u8::from(self.in_place),
                Some(released::<R>),
                context.cast_mut().cast(),
            )
        };
        if sample.is_null() {
            let bytes = head.len() + payload.len();
            // SAFETY: no sample has taken it.
            unsafe { released::<R>(context.cast_mut().cast(), bytes) };
            return if exit::has_ended() { Ok(()) } else { Err(Error::Memory(bytes)) };
        }
        hold_back();
        // SAFETY: the write takes our reference to the sample, whether it succeeds or not.
        let code = unsafe { ffi::myelin_dds_write(self.entity.number, sample) };
        match check("writing", code) {
            Err(_) if exit::has_ended() => Ok(()), // nobody can take it any more
            written => written.map(drop),
        }
    }

    /// The next message asks the readers for an immediate acknowledgement. Without it they
    /// acknowledge when nothing has been written for a heartbeat's interval.
    pub fn request_acknowledgements(&self) {
        // SAFETY: the type lives as long as the writer; 16 bytes.
        unsafe { ffi::myelin_dds_request_acknowledgements(self.sample_type, self.guid.as_ptr()) };
    }

    /// Whether endpoints are coming to its domain: heartbeats of all writers, those of discovery
    /// among them, are rarer meanwhile. With a configuration of the user nothing changes.
    pub fn set_discovering(&self, is_discovering: bool) {
        if has_own_configuration() {
            return;
        }
        let interval = if is_discovering { HEARTBEAT_DISCOVERING } else { HEARTBEAT };
        // SAFETY: the type lives as long as the writer, and its domain, too.
        unsafe {
            ffi::myelin_dds_set_heartbeats(self.sample_type, interval.as_nanos() as i64);
        }
    }

    /// Releases the samples kept for the reader that has acknowledged least, and keeps nothing more
    /// for it until it answers again: it loses the messages until then. `None` if nothing is kept
    /// for any reader.
    pub fn pass_over(&self) -> Option<Guid> {
        let mut reader = Guid::default();
        // SAFETY: the type lives as long as the writer; 16 bytes each.
        let found = unsafe {
            let writer = self.guid.as_ptr();
            ffi::myelin_dds_pass_over(self.sample_type, writer, reader.as_mut_ptr())
        };
        (found > 0).then_some(reader)
    }

    /// Whether written samples are kept until this reader has acknowledged them.
    pub fn is_waited_for(&self, reader: &Guid) -> bool {
        // SAFETY: the type lives as long as the writer; 16 bytes each.
        unsafe {
            let writer = self.guid.as_ptr();
            ffi::myelin_dds_is_waited_for(self.sample_type, writer, reader.as_ptr()) > 0
        }
    }

    /// Waits until everything written is acknowledged, for at most `limit`. False if the time is
    /// over.
    pub fn wait_for_acknowledgements(&self, limit: Duration) -> bool {
        let limit_ns = i64::try_from(limit.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: no preconditions.
        unsafe { ffi::myelin_dds_wait_for_acks(self.entity.number, limit_ns) == 0 }
    }

    /// Its GUID in DDS.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Whether CycloneDDS still has its participant: it deletes one whose certificate or permissions
    /// have run out.
    pub fn has_participant(&self) -> bool {
        // SAFETY: the type lives as long as the writer; 16 bytes.
        unsafe { ffi::myelin_dds_has_participant(self.sample_type, self.guid.as_ptr()) > 0 }
    }

    /// Announces other user data from now on.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn set_user_data(&self, user_data: &[u8]) -> Result<(), Error> {
        set_user_data(self.entity.number, user_data)
    }

    /// Calls `visit` with every reader it is matched with. Must not be called by a [`Listener`] of a
    /// writer: a write that waits for the calling thread would wait for ever.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn visit_matched(&self, visit: &mut dyn FnMut(Endpoint)) -> Result<(), Error> {
        self.entity.visit_matched(true, visit)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.entity.is_forked() {
            // SAFETY: it was made with the writer, which is still there, and its type with it.
            unsafe { ffi::myelin_dds_drop_instance(self.sample_type, self.instance) };
        }
    }
}

impl Reader {
    /// A reader.
    ///
    /// # Errors
    /// [`Error::Name`], [`Error::Other`].
    pub fn create(
        participant: &Arc<Participant>,
        settings: &Settings,
        listener: Box<dyn Listener>,
    ) -> Result<Reader, Error> {
        let entity = Entity::create(participant, listener, |listener| {
            with_settings(settings, |settings| {
                // SAFETY: the settings live for the call, the listener as long as the entity.
                unsafe { ffi::myelin_dds_reader(participant.entity, settings, listener) }
            })
        });
        let entity = entity.map_err(|error| named(error, &settings.topic, participant, false))?;
        Ok(Reader { entity })
    }

    /// Its GUID in DDS.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn guid(&self) -> Result<Guid, Error> {
        self.entity.guid()
    }

    /// Calls `visit` with every writer it is matched with.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn visit_matched(&self, visit: &mut dyn FnMut(Endpoint)) -> Result<(), Error> {
        self.entity.visit_matched(false, visit)
    }
}

impl Discovery {
    /// A discovery of all writers of the domain, or of all readers, including those of this
    /// process. Those that are there already appear within the call.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn create(
        participant: &Arc<Participant>,
        writers: bool,
        listener: Box<dyn Listener>,
    ) -> Result<Discovery, Error> {
        let entity = Entity::create(participant, listener, |listener| {
            // SAFETY: the listener lives as long as the entity.
            unsafe { ffi::myelin_dds_discovery(participant.entity, u8::from(writers), listener) }
        })?;
        Ok(Discovery { _entity: entity })
    }
}

impl Participants {
    /// A discovery of all participants of the domain; its listener is notified when one has come, has
    /// changed or has gone.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn create(
        participant: &Arc<Participant>,
        listener: Box<dyn Listener>,
    ) -> Result<Participants, Error> {
        let entity = Entity::create(participant, listener, |listener| {
            // SAFETY: the listener lives as long as the entity.
            unsafe { ffi::myelin_dds_participants(participant.entity, listener) }
        })?;
        Ok(Participants { entity, participant: participant.clone() })
    }

    /// Calls `visit` with each.
    ///
    /// # Errors
    /// [`Error::Other`].
    pub fn visit(&self, visit: &mut dyn FnMut(Remote)) -> Result<(), Error> {
        let mut visit = visit;
        let (participant, topic) = (self.participant.entity, self.participant.domain_topic());
        // SAFETY: `visited_remote` takes the context for what it is; a string that ends with a zero.
        let code = unsafe {
            let (context, topic) = ((&raw mut visit).cast(), topic.as_ptr());
            let discovery = self.entity.number;
            ffi::myelin_dds_visit_participants(
                participant,
                discovery,
                topic,
                visited_remote,
                context,
            )
        };
        check("looking at the participants", code).map(drop)
    }
}

/// Converts the settings to the bridge's form.
fn with_settings(settings: &Settings, create: impl FnOnce(&ffi::Settings) -> i32) -> i32 {
    let text = |text: &str| CString::new(text);
    let partitions =
        settings.partitions.iter().map(|name| text(name)).collect::<Result<Vec<_>, _>>();
    let (Ok(topic), Ok(type_name), Ok(partitions)) =
        (text(&settings.topic), text(&settings.type_name), partitions)
    else {
        return BAD_PARAMETER;
    };
    let partitions: Vec<*const c_char> = partitions.iter().map(|name| name.as_ptr()).collect();
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let depth = match settings.history {
        History::KeepLast(depth) => number(depth.max(1)),
        History::KeepAll => 0,
    };
    create(&ffi::Settings {
        topic: topic.as_ptr(),
        type_name: type_name.as_ptr(),
        partitions: partitions.as_ptr(),
        partitions_count: partitions.len() as u32,
        user_data: settings.user_data.as_ptr().cast(),
        user_data_bytes: settings.user_data.len(),
        reliable: u8::from(settings.reliable),
        transient_local: u8::from(settings.history_late > 0),
        depth,
        history: number(settings.history_late),
        block_max_ns: i64::try_from(settings.block_max.as_nanos()).unwrap_or(i64::MAX),
    })
}

/// If CycloneDDS refuses an endpoint, the fault is the topic's name, or the enclave has no right to it.
fn named(error: Error, topic: &str, participant: &Participant, is_publisher: bool) -> Error {
    match (&error, &participant.security) {
        (Error::Other { denied: true, .. }, Some(security)) => security.denied(topic, is_publisher),
        _ => check_topic_name(topic).err().unwrap_or(error),
    }
}

/// Checks whether DDS allows this as a topic's name.
///
/// # Errors
/// [`Error::Name`].
pub fn check_topic_name(topic: &str) -> Result<(), Error> {
    let is_first = |first: char| first.is_ascii_digit();
    let is_any = |any: char| any.is_ascii_alphanumeric() || any == '_' || any == '/';
    match topic.is_empty() || topic.starts_with(is_first) || !topic.chars().all(is_any) {
        true => Err(Error::Name(topic.to_string())),
        false => Ok(()),
    }
}

unsafe extern "C" fn released<R: Release>(context: *mut c_void, bytes: usize) {
    // SAFETY: `write` has made a pointer of it, for this one call.
    let release = unsafe { Arc::from_raw(context.cast::<R>().cast_const()) };
    contained((), || release.released(bytes));
}
