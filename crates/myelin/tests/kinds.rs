//! Payloads besides numbers, structs and slices: headers with slices, text, lists and truth values
//! in structs; and publishers that threads share.

mod support;

use std::collections::HashMap;

use myelin::{Bool, BoundedVec, Error, FixedString, HeaderSlice, PlainData};
use support::{WATCHDOG, ends, node};

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Frame {
    stamp_ns: u64,
    width: u16,
    height: u16,
    is_rectified: Bool,
    camera: FixedString<15>,
}

fn frame() -> Frame {
    let camera = FixedString::new("left").unwrap();
    Frame { stamp_ns: 7, width: 30, height: 20, is_rectified: true.into(), camera }
}

#[test]
fn a_header_and_a_slice_of_any_length_arrive_together() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<(Frame, [u8])>("image"));
    for length in [0, 1, 63, 64, 72, 73, 600, 1_000_000] {
        let mut image = publisher.loan(length).unwrap();
        let (header, pixels) = image.parts_mut();
        *header = Frame { height: length as u16, ..frame() };
        pixels.iter_mut().zip(0..).for_each(|(pixel, at)| *pixel = (at % 251) as u8);
        image.publish().unwrap();

        let image = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
        assert_eq!(*image.header(), Frame { height: length as u16, ..frame() });
        assert_eq!(image.slice().len(), length);
        assert!(image.slice().iter().zip(0..).all(|(pixel, at)| *pixel == (at % 251) as u8));
        // A taken sample can be published unchanged.
        publisher.publish_copy(&image).unwrap();
        let again = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
        assert_eq!(again.as_bytes(), image.as_bytes());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C, align(64))]
struct Line([u8; 64]);

#[test]
fn elements_are_aligned_behind_a_header_of_any_size() {
    let (_folder, node) = node();
    let topic = node.topic::<([u8; 5], [Line])>("lines");
    assert_eq!(HeaderSlice::<[u8; 5], Line>::SLICE_OFFSET, 64);
    assert_eq!(HeaderSlice::<[u8; 5], u32>::SLICE_OFFSET, 8);
    assert_eq!(HeaderSlice::<u64, u8>::SLICE_OFFSET, 8);
    let (publisher, mut subscriber) = ends(&topic);
    for length in [0, 1, 3] {
        let mut lines = publisher.loan(length).unwrap();
        *lines.header_mut() = [5; 5];
        lines.slice_mut().fill(Line([9; 64]));
        lines.publish().unwrap();
        let lines = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
        assert_eq!(*lines.header(), [5; 5]);
        assert_eq!(lines.slice(), vec![Line([9; 64]); length]);
        assert!(lines.slice().as_ptr().addr().is_multiple_of(64));
    }
    // In a callback, too, where a small sample is lent from its publisher's memory.
    let (to, from) = std::sync::mpsc::channel();
    let (publisher, subscriber) = ends(&node.topic::<(u8, [u128])>("wide"));
    let callback = subscriber.on_sample(move |sample| to.send(sample.slice().to_vec()).unwrap());
    let _callback = callback.unwrap();
    let mut loan = publisher.loan(2).unwrap();
    loan.slice_mut().copy_from_slice(&[1, 2]);
    loan.publish().unwrap();
    assert_eq!(from.recv_timeout(WATCHDOG).unwrap(), [1, 2]);
}

#[test]
fn a_partial_element_is_refused_and_another_header_is_another_type() {
    let (_folder, node) = node();
    let topic = node.topic::<(u64, [u32])>("points");
    let (publisher, _subscriber) = ends(&topic);
    let error = publisher.loan(usize::MAX).unwrap_err();
    assert!(matches!(error, Error::PayloadTooLarge { .. }), "{error}");
    for error in [
        node.topic::<(i64, [u32])>("points").subscriber().unwrap_err(),
        node.topic::<(u64, [u8])>("points").subscriber().unwrap_err(),
        node.topic::<[u32]>("points").subscriber().unwrap_err(),
    ] {
        assert!(matches!(error, Error::TypeMismatch { .. }), "{error}");
        assert!(error.to_string().contains("(u64, [u32])"), "{error}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Scene {
    stamp_ns: u64,
    parts: BoundedVec<Part, 4>,
    path: BoundedVec<[f32; 2], 3>,
    note: FixedString<12>,
}

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Part {
    id: u32,
    name: FixedString<7>,
    is_held: Bool,
}

#[test]
fn lists_text_and_truth_values_arrive_inside_structs() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<Scene>("scene"));
    let part = |id, name, held: bool| Part {
        id,
        name: FixedString::new(name).unwrap(),
        is_held: held.into(),
    };
    let scene = Scene {
        stamp_ns: myelin::now(),
        parts: BoundedVec::from_slice(&[part(1, "bolt", false), part(2, "nut", true)]).unwrap(),
        path: BoundedVec::new(),
        note: FixedString::truncated("a note that is too long"),
    };
    publisher.publish_copy(&scene).unwrap();
    let seen = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
    assert_eq!(*seen, scene);
    assert_eq!((seen.parts.len(), seen.path.len()), (2, 0));
    assert!(seen.parts[1].is_held.get() && seen.parts[1].name == "nut");
    assert_eq!(seen.note.to_string(), "a note that ");
}

#[test]
fn threads_that_share_a_publisher_publish_each_sample_once_and_in_one_sequence() {
    let (_folder, node) = node();
    let topic = node.topic::<[u64]>("work").depth(64).reliable(WATCHDOG);
    let (publisher, mut subscriber) = ends(&topic);
    let publisher = publisher.shared();
    let threads = (0..4).map(|thread: u64| {
        let publisher = publisher.clone();
        std::thread::spawn(move || {
            for number in 0..ROUNDS {
                // Large and small, loaned and copied, in turns.
                let length = if number % 2 == 0 { 3 } else { 100 };
                let mut loan = publisher.loan(length).unwrap();
                loan.fill(thread << 32 | number);
                match number % 3 {
                    0 => publisher.publish_copy(&loan).unwrap(),
                    _ => loan.publish().unwrap(),
                };
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    let mut next = HashMap::new();
    for sequence in 0..4 * ROUNDS {
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("there are more");
        assert_eq!(sample.sequence(), sequence);
        assert!(sample.iter().all(|value| *value == sample[0]));
        let (thread, number) = (sample[0] >> 32, sample[0] & 0xffff_ffff);
        let expected = next.entry(thread).or_insert(0);
        assert_eq!(number, *expected, "each thread's in order");
        *expected += 1;
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(subscriber.take().unwrap().is_none());
    // A loan keeps its publisher alive.
    let loan = publisher.loan(1_000).unwrap();
    drop(publisher);
    assert_eq!(loan.publish().unwrap().sequence, 4 * ROUNDS);
}

const ROUNDS: u64 = 2_000;
