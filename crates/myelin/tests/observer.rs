//! Observers as programs use them.

mod support;

use std::time::Duration;

use myelin::{Missing, Node, ObservedSample, PlainData};
use support::{WATCHDOG, node};

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Imu {
    stamp_ns: u64,
    acceleration: [f64; 3],
}

#[test]
fn typed_samples_slices_and_headers_are_observed() {
    let (folder, node) = node();
    let tool = Node::builder("tool").runtime_dir(folder.path()).open().unwrap();
    let mut observer = tool.topic::<Imu>("imu").observer().unwrap();
    let publisher = node.topic::<Imu>("imu").publisher_builder().timestamps(true).open().unwrap();
    let imu = Imu { stamp_ns: 7, acceleration: [0.0, 0.0, 9.81] };
    let before = myelin::now();
    publisher.publish_copy(&imu).unwrap();
    let sample = observer.receive(WATCHDOG).unwrap().unwrap();
    assert_eq!((sample.payload(), sample.missing()), (Some(&imu), None));
    assert_eq!(sample.as_bytes().unwrap().len(), 32);
    let header = *sample.header();
    assert_eq!((header.publisher, header.sequence, header.length), (publisher.id(), 0, 32));
    assert!((before..=myelin::now()).contains(&header.published_ns));
    publisher.publish_copy(&imu).unwrap();
    assert_eq!(observer.receive_header(WATCHDOG).unwrap().unwrap().sequence, 1);
    assert!(observer.take().unwrap().is_none() && observer.take_header().unwrap().is_none());

    let (images, mut observer) = {
        let topic = tool.topic::<(Imu, [u16])>("images");
        (node.topic::<(Imu, [u16])>("images").publisher().unwrap(), topic.observer().unwrap())
    };
    let mut image = images.loan(1_000).unwrap();
    *image.header_mut() = imu;
    image.slice_mut().fill(9);
    image.publish().unwrap();
    let sample = observer.receive(WATCHDOG).unwrap().unwrap();
    let view = sample.payload().unwrap();
    assert_eq!((*view.header(), view.slice()), (imu, &[9; 1_000][..]));
    let loan = images.loan(1_000).unwrap();
    drop(loan); // it has used the memory
    images.loan(1_000).unwrap().publish().unwrap();
    let loan = images.loan(1_000).unwrap();
    let mut again = ObservedSample::new();
    assert!(observer.take_into(&mut again).unwrap());
    assert_eq!((again.missing(), again.payload().is_none()), (Some(Missing::Reused), true));
    assert_eq!(again.header().length, 32 + 2_000);
    drop(loan);
    let counts = observer.publishers();
    assert_eq!((counts[0].seen, counts[0].without_payload, counts[0].published), (2, 1, 2));
    assert_eq!(images.matched() + publisher.matched(), 0);
}

#[cfg(feature = "any")]
#[test]
fn a_topic_of_an_unknown_type_is_observed() {
    let (folder, node) = node();
    let tool = Node::builder("tool").runtime_dir(folder.path()).open().unwrap();
    let publisher = node.topic::<Imu>("imu").publisher().unwrap();
    let topic = tool.any_topic("imu", WATCHDOG).unwrap();
    let mut observer = topic.topic().observer().unwrap();
    publisher.publish_copy(&Imu { stamp_ns: 7, acceleration: [1.0, 2.0, 3.0] }).unwrap();
    let sample = observer.receive(WATCHDOG).unwrap().unwrap();
    let value = topic.value(sample.as_bytes().unwrap()).unwrap();
    assert_eq!(value.get("acceleration[2]").unwrap().as_f64().unwrap(), 3.0);
}

#[test]
fn the_interval_is_at_most_100_ms_and_a_wait_ends_at_its_limit() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count");
    let mut observer = topic.observer().unwrap();
    assert!(!observer.wait(Duration::ZERO).unwrap());
    assert!(observer.receive(Duration::from_millis(1)).unwrap().is_none());
    assert!(observer.interval() <= Duration::from_millis(100));
    let _publisher = topic.publisher().unwrap();
    assert_eq!(observer.publishers().len(), 1);
    assert_eq!(observer.interval(), Duration::from_millis(1), "it does not know the rate yet");
}
