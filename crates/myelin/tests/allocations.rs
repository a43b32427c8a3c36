//! Publishing and taking allocate nothing after the first time, and for a small sample not even the
//! first time.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use myelin::Wait;
use support::{WATCHDOG, ends, node};

/// Counts the allocations of the calling thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as demanded of our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as demanded of our caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_after_warming_up() {
    let (_folder, node) = node();
    let (small, mut small_taker) = ends(&node.topic::<[f64; 4]>("small"));
    let (large, mut large_taker) = ends(&node.topic::<[u8]>("large"));
    let fd_topic = node.topic::<u64>("fd");
    let (with_fd, mut fd_taker) =
        (fd_topic.publisher().unwrap(), fd_topic.subscriber_with_fd().unwrap());
    assert!(with_fd.wait_for_match(1, WATCHDOG));
    large_taker.set_wait(Wait::Block);
    let mut held = std::collections::VecDeque::with_capacity(8);
    let mut round = |number: u64| {
        small.publish_copy(&[1.0; 4]).unwrap();
        assert_eq!(small_taker.receive(WATCHDOG).unwrap().unwrap()[3], 1.0);
        assert!(small_taker.take().unwrap().is_none());

        let mut loan = large.loan(10_000 + number as usize % 3).unwrap();
        loan[0] = number as u8;
        drop(large.loan(5_000).unwrap());
        loan.publish().unwrap();
        let sample = large_taker.receive(WATCHDOG).unwrap().unwrap();
        assert_eq!(sample[0], number as u8);
        held.push_back(sample.clone());
        if held.len() > 4 {
            held.pop_front();
        }

        with_fd.publish_copy(&number).unwrap();
        assert_eq!(*fd_taker.take().unwrap().unwrap(), number);
        assert!(fd_taker.take().unwrap().is_none());
        assert!(large.events().len() + large_taker.events().len() <= 2);
    };
    (0..100).for_each(&mut round);
    let before = ALLOCATIONS.get();
    (100..10_100).for_each(&mut round);
    assert_eq!(ALLOCATIONS.get() - before, 0, "allocations in 10,000 rounds");
}

/// A topic with observers, which look while it publishes: no more heap, no more shared memory, no
/// match.
#[test]
fn a_publisher_allocates_nothing_for_observers() {
    let (_folder, node) = node();
    let memory_bytes = |id| {
        let graph = node.graph().unwrap();
        match graph.endpoints.iter().find(|it| it.id == id).unwrap().counters {
            Some(myelin::Counters::Publisher { memory_bytes, .. }) => memory_bytes,
            counters => panic!("{counters:?}"),
        }
    };
    let mut grown = Vec::new();
    for observers in [0, 20] {
        let topic = node.topic::<[u8]>(&format!("{observers} observers"));
        let (publisher, mut subscriber) = ends(&topic);
        let mut observers: Vec<_> = (0..observers).map(|_| topic.observer().unwrap()).collect();
        let mut round = |number: usize, looks: bool| {
            let mut loan = publisher.loan(10_000).unwrap();
            loan[0] = 1;
            loan.publish().unwrap();
            publisher.publish_copy(&[1; 64]).unwrap();
            while subscriber.take().unwrap().is_some() {}
            let looking = observers.len().max(1);
            if let Some(observer) = observers.get_mut(number % looking).filter(|_| looks) {
                while observer.take().unwrap().is_some() {}
            }
        };
        (0..100).for_each(|number| round(number, true));
        let before = (memory_bytes(publisher.id()), ALLOCATIONS.get());
        (0..1_000).for_each(|number| round(number, false));
        assert_eq!(ALLOCATIONS.get() - before.1, 0);
        (0..100).for_each(|number| round(number, true));
        assert_eq!(memory_bytes(publisher.id()), before.0);
        assert_eq!(publisher.matched(), 1);
        grown.push(before.0);
    }
    assert_eq!(grown[0], grown[1], "bytes of shared memory");
}

/// Otherwise its heap pages would have to be faulted in, in the middle of a publish.
#[test]
fn the_first_sample_of_a_topic_allocates_nothing() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<[f64; 4]>("small"));
    let before = ALLOCATIONS.get();
    publisher.publish_copy(&[1.0; 4]).unwrap();
    assert_eq!(ALLOCATIONS.get() - before, 0, "by the publish");
    let sample = subscriber.take().unwrap().unwrap();
    assert_eq!((ALLOCATIONS.get() - before, sample[3]), (0, 1.0), "by the take");
}
