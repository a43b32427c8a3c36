//! Publishers and their loans.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;

use myelin::{DynamicType, GuardCondition, Loan, Published, Publisher};

use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::event::{Events, myelin_event};
use crate::sized::{self, sized};
use crate::slots::Slots;
use crate::topic::{TopicHandle, myelin_topic};
use crate::wait_set::myelin_guard_condition;
use crate::{handle, payload, text};

/// Publishes samples of a topic. One thread at a time uses it and its loans.
pub enum myelin_publisher {}

pub struct PublisherHandle {
    /// Borrowed from `publisher`, so they are dropped first. Not borrowed during a publish, which
    /// may run callbacks.
    loans: RefCell<Slots<Loan<'static, [u8]>>>,
    events: RefCell<Events>,
    /// The topic's type.
    dynamic_type: Option<Arc<DynamicType>>,
    publisher: Publisher<[u8]>,
}

impl PublisherHandle {
    /// Checks that so many bytes are a payload.
    #[inline]
    fn check(&self, bytes: usize) -> Result<(), Failure> {
        self.dynamic_type
            .as_ref()
            .map_or(Ok(()), |dynamic_type| payload::check(dynamic_type, bytes))
    }
}

/// Settings of a publisher. 0 in a member, or NULL instead of the struct, is the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_publisher_options {
    /// sizeof(struct myelin_publisher_options): MYELIN_INIT(myelin_publisher_options).
    pub size: usize,
    /// How many loans over 104 B it may have at once: 1 to 4,096; 0: 8.
    pub loans_max: u32,
    /// Whether samples carry the time when they were published; false: if MYELIN_TIMESTAMPS is 1.
    pub timestamps: bool,
    /// The largest payload, in bytes; 0: 2^40 - 1.
    pub payload_bytes_max: u64,
    /// Memory for its payloads, in bytes; 0: half the machine's memory.
    pub memory_max: u64,
    /// Whether it publishes only to subscribers on this host, even on a node with a network.
    pub this_host_only: bool,
    /// The liveliness lease that it offers: it publishes or asserts its liveliness at least once in
    /// this time; 0: none. Others see it, and MYELIN_MATCHING_REQUESTED_OFFERED compares it.
    pub liveliness_ns: u64,
}

/// Memory for one sample, which the program owns until it is published or discarded.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_loan {
    /// sizeof(struct myelin_loan): MYELIN_INIT(myelin_loan).
    pub size: usize,
    /// The loan's id at its owner. Do not change it.
    pub id: u64,
    /// Where to write, aligned to 64: zeros, or bytes of an earlier sample. Write all of it. Valid
    /// until it is published or discarded, or its owner is closed. With `dds_cdr` and more than 104
    /// B, the alignment is that of the bytes behind the message's header of 4 B.
    pub data: *mut c_void,
    /// How many bytes.
    pub bytes: usize,
}

/// The result of a publish.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_published {
    /// sizeof(struct myelin_published): MYELIN_INIT(myelin_published).
    pub size: usize,
    /// How many samples its publisher published before it.
    pub sequence: u64,
    /// How many late reliable subscribers were not waited for.
    pub passed_over: u32,
}

sized! {
    myelin_publisher_options up to size: usize;
    myelin_loan up to bytes: usize;
    myelin_published up to sequence: u64;
}

/// Makes a publisher of a topic. `options` may be NULL. On return it is matched with the
/// subscribers that exist on this host, except those of processes that do not answer within
/// `match_limit_ns` of the node's options.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_open(
    topic: *mut myelin_topic,
    options: *const myelin_publisher_options,
    publisher: *mut *mut myelin_publisher,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(publisher, std::ptr::null_mut(), "publisher")?;
        let topic = handle::get::<TopicHandle>(handle::of_pointer(topic))?;
        let options = sized::read(options)?;
        let mut builder = topic.topic.publisher_builder();
        builder = builder.this_host_only(options.this_host_only);
        if options.timestamps {
            builder = builder.timestamps(true);
        }
        if options.liveliness_ns != 0 {
            builder = builder.liveliness(text::duration(options.liveliness_ns));
        }
        if options.loans_max != 0 {
            builder = builder.loans_max(options.loans_max);
        }
        if options.payload_bytes_max != 0 {
            builder = builder.payload_bytes_max(options.payload_bytes_max);
        }
        if options.memory_max != 0 {
            builder = builder.memory_max(options.memory_max);
        }
        let made = Box::new(PublisherHandle {
            loans: RefCell::default(),
            events: RefCell::default(),
            dynamic_type: topic.dynamic_type.clone(),
            publisher: builder.open()?,
        });
        publisher.write(handle::to_pointer(handle::insert(made)?));
        Ok(MYELIN_OK)
    })
}

/// Closes it. Its loans are discarded; subscribers can still take published samples. An error from
/// a callback inside a publish of the same publisher.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_close(publisher: *mut myelin_publisher) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        if of(publisher)?.publisher.is_publishing() {
            return Err(Failure::handle(
                "this thread is inside a publish call of this publisher; close it after the call",
            ));
        }
        drop(handle::remove::<PublisherHandle>(handle::of_pointer(publisher))?);
        Ok(MYELIN_OK)
    })
}

/// Publishes a copy of `bytes` bytes, a whole payload of the topic's type. `published` may be NULL.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_publish_copy(
    publisher: *mut myelin_publisher,
    data: *const c_void,
    bytes: usize,
    published: *mut myelin_published,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let publisher = of(publisher)?;
        publisher.check(bytes)?;
        let data = text::bytes(data, bytes)?;
        check(published)?;
        write_published(publisher.publisher.publish_copy(data)?, published)
    })
}

/// Lends memory for a payload of `bytes` bytes. Several loans may be out at once.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_loan(
    publisher: *mut myelin_publisher,
    bytes: usize,
    loan: *mut myelin_loan,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let publisher = of(publisher)?;
        publisher.check(bytes)?;
        sized::check(loan)?;
        // The publisher is in a box, and its loans are dropped before it.
        let its: &'static Publisher<[u8]> = &*std::ptr::from_ref(&publisher.publisher);
        let mut lent = its.loan(bytes)?;
        let data = lent.as_bytes_mut().as_mut_ptr().cast();
        let id = publisher.loans.borrow_mut().put(lent);
        sized::write(loan, myelin_loan { size: 0, id, data, bytes })?;
        Ok(MYELIN_OK)
    })
}

/// Publishes a loan, without a copy if it has more than 104 bytes. The program does not own it any
/// more, also if this fails, and `data` becomes NULL. A second time gives MYELIN_ERROR_LOAN.
/// `published` may be NULL.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_publish(
    publisher: *mut myelin_publisher,
    loan: *mut myelin_loan,
    published: *mut myelin_published,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let publisher = of(publisher)?;
        check(published)?;
        let lent = publisher.loans.borrow_mut().take(end(loan)?)?;
        write_published(lent.publish()?, published)
    })
}

/// Gives a loan back without publishing it.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_discard(
    publisher: *mut myelin_publisher,
    loan: *mut myelin_loan,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let lent = of(publisher)?.loans.borrow_mut().take(end(loan)?)?;
        drop(lent);
        Ok(MYELIN_OK)
    })
}

/// Allocates memory for `count` payloads of `bytes` bytes, so that the first loans need not
/// allocate it.
///
/// # Safety
/// As `myelin_publisher_loan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_reserve(
    publisher: *mut myelin_publisher,
    count: u32,
    bytes: usize,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        of(publisher)?.publisher.reserve(count, bytes)?;
        Ok(MYELIN_OK)
    })
}

/// Its endpoint id, as in events, samples and graphs. The upper 40 bits are the id of its node.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_endpoint(
    publisher: *mut myelin_publisher,
    endpoint: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(endpoint, of(publisher)?.publisher.id(), "endpoint")?;
        Ok(MYELIN_OK)
    })
}

/// How many subscribers it is matched with now.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_matched(
    publisher: *mut myelin_publisher,
    subscribers: *mut usize,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(subscribers, of(publisher)?.publisher.matched(), "subscribers")?;
        Ok(MYELIN_OK)
    })
}

/// Waits until it is matched with so many subscribers, for at most `limit_ns`; MYELIN_NOTHING if
/// the time is over.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_wait_for_match(
    publisher: *mut myelin_publisher,
    subscribers: usize,
    limit_ns: u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let limit = text::duration(limit_ns);
        let have_come = of(publisher)?.publisher.wait_for_match(subscribers, limit);
        Ok(if have_come { MYELIN_OK } else { MYELIN_NOTHING })
    })
}

/// Tells subscribers with a liveliness lease that it is alive, without publishing.
///
/// # Safety
/// As `myelin_publisher_loan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_assert_liveliness(
    publisher: *mut myelin_publisher,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        of(publisher)?.publisher.assert_liveliness()?;
        Ok(MYELIN_OK)
    })
}

/// Waits until other hosts and DDS programs have acknowledged all samples published for them, for
/// at most `limit_ns`; MYELIN_NOTHING if the time is over. It does not wait for subscribers on this
/// host, which can take a sample as soon as it is published. A best-effort publisher gets no
/// acknowledgements.
///
/// # Safety
/// As `myelin_publisher_loan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_wait_for_acknowledgements(
    publisher: *mut myelin_publisher,
    limit_ns: u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let limit = text::duration(limit_ns);
        let all = of(publisher)?.publisher.wait_for_acknowledgements(limit);
        Ok(if all { MYELIN_OK } else { MYELIN_NOTHING })
    })
}

/// The next event of its matches; MYELIN_NOTHING if there is none.
///
/// # Safety
/// As `myelin_publisher_loan`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_event(
    publisher: *mut myelin_publisher,
    event: *mut myelin_event,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let publisher = of(publisher)?;
        publisher.events.borrow_mut().next(|| publisher.publisher.events(), event)
    })
}

/// Triggers the guard condition from now on whenever there is an event to take, and once now if there are
/// events already. A second call replaces the first.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_publisher_on_event(
    publisher: *mut myelin_publisher,
    guard: *mut myelin_guard_condition,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let guard = handle::get::<GuardCondition>(handle::of_pointer(guard))?;
        of(publisher)?.publisher.trigger_on_event(guard);
        guard.trigger();
        Ok(MYELIN_OK)
    })
}

#[inline]
unsafe fn of<'a>(publisher: *mut myelin_publisher) -> Result<&'a PublisherHandle, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle::get::<PublisherHandle>(handle::of_pointer(publisher)) }
}

/// The number of a loan that ends; the program does not own its memory any more.
///
/// # Safety
/// `loan` is NULL or valid.
#[inline]
pub unsafe fn end(loan: *mut myelin_loan) -> Result<u64, Failure> {
    // SAFETY: as the caller promises.
    unsafe { sized::check(loan)? };
    // SAFETY: the first version has this member.
    let id = unsafe { (*loan).id };
    // SAFETY: the first version has both members.
    unsafe { ((*loan).data, (*loan).bytes) = (std::ptr::null_mut(), 0) };
    Ok(id)
}

#[inline]
unsafe fn check(published: *mut myelin_published) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    if published.is_null() { Ok(()) } else { unsafe { sized::check(published) } }
}

/// # Safety
/// `published` has been [checked](check).
#[inline]
unsafe fn write_published(
    it: Published,
    published: *mut myelin_published,
) -> Result<myelin_code, Failure> {
    if !published.is_null() {
        let Published { sequence, passed_over, .. } = it;
        let fields = myelin_published { size: 0, sequence, passed_over };
        // SAFETY: as the caller promises.
        unsafe { sized::fill(published, fields) };
    }
    Ok(MYELIN_OK)
}
