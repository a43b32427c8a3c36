//! Subscribers.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;

use myelin::{FdSubscriber, GuardCondition, Interrupter, Sample, SampleBuffer, Subscriber};

use crate::callback::{self, Context, myelin_callback};
use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::event::{Events, myelin_event};
use crate::handle::Pool;
use crate::node;
use crate::sample::{self, myelin_sample};
use crate::sized::{self, sized};
use crate::topic::{TopicHandle, myelin_topic};
use crate::wait_set::myelin_guard_condition;
use crate::{handle, text};

/// Takes samples of a topic. One thread at a time uses it; any thread may interrupt it.
pub enum myelin_subscriber {}

pub struct SubscriberHandle {
    subscriber: UnsafeCell<Either>,
    /// Buffers for the samples that the program gets.
    samples: UnsafeCell<Pool>,
    events: RefCell<Events>,
    interrupter: Interrupter,
}

enum Either {
    Plain(Subscriber<[u8]>),
    WithFd(FdSubscriber<[u8]>),
}

impl SubscriberHandle {
    /// # Safety
    /// One thread at a time uses it, and no reference of an earlier call is left.
    #[allow(clippy::mut_from_ref, reason = "the caller sees to it")]
    #[inline]
    unsafe fn subscriber(&self) -> &mut Subscriber<[u8]> {
        // SAFETY: as the caller promises.
        match unsafe { &mut *self.subscriber.get() } {
            Either::Plain(it) => it,
            Either::WithFd(it) => it,
        }
    }

    /// # Safety
    /// As [`subscriber`](Self::subscriber).
    pub unsafe fn watch(&self, set: &myelin::WaitSetHandle) -> Result<myelin::Key, myelin::Error> {
        // SAFETY: as the caller promises.
        set.add(unsafe { self.subscriber() })
    }

    /// Takes a sample directly into the handle table, where it stays, and fills the program's
    /// struct.
    ///
    /// # Safety
    /// As [`subscriber`](Self::subscriber); `to` has been checked.
    #[inline(always)]
    unsafe fn give(
        &self,
        to: *mut myelin_sample,
        take: impl for<'a> FnOnce(
            &mut Subscriber<[u8]>,
            &'a mut SampleBuffer<[u8]>,
        ) -> Result<Option<&'a Sample<[u8]>>, myelin::Error>,
    ) -> Result<myelin_code, Failure> {
        // SAFETY: as the caller promises; `spare` alone is borrowed of it, until it is given.
        let (samples, subscriber) = unsafe { (&mut *self.samples.get(), self.subscriber()) };
        let mut spare = samples.spare()?;
        let id = spare.handle();
        let Some(sample) = take(subscriber, spare.buffer())? else { return Ok(MYELIN_NOTHING) };
        // SAFETY: as the caller promises.
        unsafe { sized::fill(to, sample::fields_of(sample, id)) };
        spare.give();
        Ok(MYELIN_OK)
    }
}

/// Settings of a subscriber. 0 in a member, or NULL instead of the struct, is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_subscriber_options {
    /// sizeof(struct myelin_subscriber_options): MYELIN_INIT(myelin_subscriber_options).
    pub size: usize,
    /// How many samples over 104 B it may hold at once: 1 to 4,096; 0: 16.
    pub held_max: u32,
    /// How many publishers it may be matched with: 1 to 4,096; 0: 16.
    pub publishers_max: u32,
    /// `enum myelin_wait`: how it waits.
    pub wait: i32,
    /// Whether it has a descriptor for an epoll loop: `myelin_subscriber_descriptor`.
    pub descriptor: bool,
    /// An event is raised for a publisher that neither publishes nor asserts its liveliness for so
    /// many ns; 0: none. Publishers set nothing for it.
    pub liveliness_ns: u64,
    /// Memory for samples from other hosts, in bytes; 0: half the machine's memory.
    pub memory_max: u64,
    /// Matches only publishers of other nodes, not those of its own node.
    pub ignore_own_node: bool,
}

sized! { myelin_subscriber_options up to size: usize; }

/// Makes a subscriber of a topic. `options` may be NULL. On return it is matched with the
/// publishers that exist on this host, with the same exception as for a publisher.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_open(
    topic: *mut myelin_topic,
    options: *const myelin_subscriber_options,
    subscriber: *mut *mut myelin_subscriber,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(subscriber, std::ptr::null_mut(), "subscriber")?;
        let topic = handle::get::<TopicHandle>(handle::of_pointer(topic))?;
        let options = sized::read(options)?;
        let mut builder = topic.topic.subscriber_builder();
        if options.held_max != 0 {
            builder = builder.held_max(options.held_max);
        }
        if options.publishers_max != 0 {
            builder = builder.publishers_max(options.publishers_max);
        }
        if options.liveliness_ns != 0 {
            builder = builder.liveliness(text::duration(options.liveliness_ns));
        }
        if options.memory_max != 0 {
            builder = builder.memory_max(options.memory_max);
        }
        builder = builder.ignore_own_node(options.ignore_own_node);
        let wait = node::wait(options.wait)?;
        let made = if options.descriptor {
            Either::WithFd(builder.open_with_fd()?)
        } else {
            Either::Plain(builder.open()?)
        };
        let interrupter = match &made {
            Either::Plain(it) => it.interrupter(),
            Either::WithFd(it) => it.interrupter(),
        };
        let made = SubscriberHandle {
            subscriber: UnsafeCell::new(made),
            samples: UnsafeCell::default(),
            events: RefCell::default(),
            interrupter,
        };
        made.subscriber().set_wait(wait);
        subscriber.write(handle::to_pointer(handle::insert(Box::new(made))?));
        Ok(MYELIN_OK)
    })
}

/// Closes it. Samples that are held stay valid.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_close(
    subscriber: *mut myelin_subscriber,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<SubscriberHandle>(handle::of_pointer(subscriber))?);
        Ok(MYELIN_OK)
    })
}

/// The next sample, if there is one; never waits. MYELIN_NOTHING if there is none; `sample` is
/// unchanged then.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_take(
    subscriber: *mut myelin_subscriber,
    sample: *mut myelin_sample,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let subscriber = of(subscriber)?;
        sized::check(sample)?;
        subscriber.give(sample, |it, into| it.take_into(into))
    })
}

/// Takes the next sample; waits for it for at most `limit_ns` (MYELIN_FOREVER: no limit).
/// MYELIN_NOTHING if the time is over, or if the wait was interrupted, or, with a deadline or
/// liveliness, if a publisher has fallen silent.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_receive(
    subscriber: *mut myelin_subscriber,
    limit_ns: u64,
    sample: *mut myelin_sample,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let subscriber = of(subscriber)?;
        sized::check(sample)?;
        let limit = text::duration(limit_ns);
        subscriber.give(sample, |it, into| it.receive_into(into, limit))
    })
}

/// Waits until there is a sample to take, like `myelin_subscriber_receive`, without taking it.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_wait(
    subscriber: *mut myelin_subscriber,
    limit_ns: u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let is_there = of(subscriber)?.subscriber().wait(text::duration(limit_ns))?;
        Ok(if is_there { MYELIN_OK } else { MYELIN_NOTHING })
    })
}

/// Ends the running wait, or else the next one. Any thread, and a signal handler.
///
/// # Safety
/// No other thread closes it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_interrupt(
    subscriber: *mut myelin_subscriber,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        of(subscriber)?.interrupter.interrupt();
        Ok(MYELIN_OK)
    })
}

/// A descriptor for your own epoll: readable when there may be a sample or an event. Take until
/// nothing is left, then wait for it again; level- and edge-triggered both work. The subscriber
/// owns it: do not close it. The subscriber must be made with `descriptor` set.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_descriptor(
    subscriber: *mut myelin_subscriber,
    descriptor: *mut c_int,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let Either::WithFd(it) = &*of(subscriber)?.subscriber.get() else {
            return Err(Failure::setting(
                "this subscriber has no descriptor; set myelin_subscriber_options.descriptor",
            ));
        };
        text::put(descriptor, it.as_raw_fd(), "descriptor")?;
        Ok(MYELIN_OK)
    })
}

/// MYELIN_OK if there are published samples that have not been taken, otherwise MYELIN_NOTHING. A
/// sample in new memory cannot be taken before a thread of the node has mapped that memory. Until
/// then `myelin_subscriber_take` returns MYELIN_NOTHING, a wait goes on, and this returns MYELIN_OK.
/// If you learn of a publisher's end by other means than an event, such as the end of its process,
/// take until nothing is unread.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_has_unread(
    subscriber: *mut myelin_subscriber,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let has_unread = of(subscriber)?.subscriber().has_unread();
        Ok(if has_unread { MYELIN_OK } else { MYELIN_NOTHING })
    })
}

/// How many samples were lost so far because it was further behind than its depth.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_lost(
    subscriber: *mut myelin_subscriber,
    samples: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(samples, of(subscriber)?.subscriber().lost(), "samples")?;
        Ok(MYELIN_OK)
    })
}

/// Its endpoint id, as in events, samples and graphs. The upper 40 bits are the id of its node.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_endpoint(
    subscriber: *mut myelin_subscriber,
    endpoint: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(endpoint, of(subscriber)?.subscriber().id(), "endpoint")?;
        Ok(MYELIN_OK)
    })
}

/// How many publishers it is matched with now.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_matched(
    subscriber: *mut myelin_subscriber,
    publishers: *mut usize,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(publishers, of(subscriber)?.subscriber().matched(), "publishers")?;
        Ok(MYELIN_OK)
    })
}

/// Waits until it is matched with so many publishers, for at most `limit_ns`; MYELIN_NOTHING if the
/// time is over.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_wait_for_match(
    subscriber: *mut myelin_subscriber,
    publishers: usize,
    limit_ns: u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let limit = text::duration(limit_ns);
        let have_come = of(subscriber)?.subscriber().wait_for_match(publishers, limit);
        Ok(if have_come { MYELIN_OK } else { MYELIN_NOTHING })
    })
}

/// The next event of its matches; MYELIN_NOTHING if there is none.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_event(
    subscriber: *mut myelin_subscriber,
    event: *mut myelin_event,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let handle = of(subscriber)?;
        handle.events.borrow_mut().next(|| handle.subscriber().events(), event)
    })
}

/// Triggers the guard condition from now on whenever there is an event to take, and once now if there are
/// events already. A second call replaces the first.
///
/// # Safety
/// As `myelin_subscriber_take`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_on_event(
    subscriber: *mut myelin_subscriber,
    guard: *mut myelin_guard_condition,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let guard = handle::get::<GuardCondition>(handle::of_pointer(guard))?;
        of(subscriber)?.subscriber().trigger_on_event(guard);
        guard.trigger();
        Ok(MYELIN_OK)
    })
}

/// A function that is called with each sample. The sample is lent for the length of the call;
/// `myelin_sample_clone` keeps it. The function must not throw or longjmp.
pub type myelin_on_sample =
    Option<unsafe extern "C" fn(sample: *const myelin_sample, context: *mut c_void)>;

/// Calls `call` with each sample from now on, until the callback is closed. The subscriber is used
/// up: its handle is closed, unless MYELIN_ERROR_HANDLE or MYELIN_ERROR_SETTING is returned. For
/// samples of this process it runs inside the publish, in the publisher's thread; for others in a
/// thread of its own; never twice at once. `release`, if it is not NULL, is called once with
/// `context`, after the last call; also if this fails.
///
/// # Safety
/// Pointers are NULL or valid; `call` and `release` may run in any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_subscriber_on_sample(
    subscriber: *mut myelin_subscriber,
    call: myelin_on_sample,
    context: *mut c_void,
    release: Option<unsafe extern "C" fn(context: *mut c_void)>,
    callback: *mut *mut myelin_callback,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let context = Context::new(context, release);
        let call = callback::prepare(call, callback)?;
        if let Either::WithFd(_) = &*of(subscriber)?.subscriber.get() {
            return Err(Failure::setting(
                "a subscriber with a descriptor cannot be called back; make it without one",
            ));
        }
        let taken = handle::remove::<SubscriberHandle>(handle::of_pointer(subscriber))?;
        let Either::Plain(plain) = taken.subscriber.into_inner() else {
            unreachable!("the kind was checked above")
        };
        let made = plain.on_sample(move |sample: &Sample<[u8]>| {
            sample::lend(sample, |lent| call(lent, context.pointer()));
        })?;
        callback::give(made, callback)
    })
}

#[inline]
unsafe fn of<'a>(subscriber: *mut myelin_subscriber) -> Result<&'a SubscriberHandle, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle::get::<SubscriberHandle>(handle::of_pointer(subscriber)) }
}
