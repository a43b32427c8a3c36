//! One sample for each subscriber though there are two ways to it, and invalid messages.

use std::process::{Command, Stdio};
use std::time::Duration;

use myelin_ros::sensor_msgs::Image;
use myelin_ros::std_msgs::String as RosString;
use myelin_ros::{Message, RosNode};

use crate::host::{Host, on_own_host};
use crate::kind::{POSE, Quality, STRING};
use crate::peer::{Middleware, PREAMBLE, Peer, WATCHDOG};
use crate::talk::{node, words};

/// Both of our processes are DDS participants and could receive from each other over DDS as well.
#[test]
fn on_one_host_a_sample_comes_once() {
    if Middleware::CycloneDds.program().is_none() {
        return;
    }
    on_own_host("corner::on_one_host_a_sample_comes_once", || {
        let host = Host::Same;
        let node = node(&host);
        let mut subscriber = (STRING.subscriber)(&node, Quality::Reliable);
        let theirs = ["sub", STRING.name, STRING.dds_topic, "10"];
        let theirs = Peer::start(&host, Middleware::CycloneDds, &theirs);
        let mut ours = Command::new(std::env::current_exe().unwrap());
        ours.args(["corner::a_publisher_of_ours", "--exact", "--ignored", "--nocapture"]);
        let ours = ours.stdout(Stdio::null()).status().unwrap();
        assert!(ours.success());
        // All samples have been sent over the network, too, and have arrived there.
        assert_eq!(theirs.line(), "matched 1");
        for n in 0..STRING.count {
            assert_eq!(theirs.line(), format!("got {n}"));
        }
        theirs.end();
        let mut next = || subscriber.receive(WATCHDOG).unwrap().expect("a sample is missing");
        for n in 0..STRING.count {
            assert_eq!(next(), n);
        }
        // A sample over the network now comes after all earlier ones over the network.
        let last = words("pub", &STRING, "1", Quality::Reliable);
        let mut last = Peer::start(&host, Middleware::CycloneDds, &last);
        last.begin(|| assert_eq!(next(), PREAMBLE));
        assert_eq!(std::iter::repeat_with(next).find(|n| *n != PREAMBLE), Some(0));
        assert_eq!(last.line(), "published 1");
        last.end();
        assert_eq!(subscriber.receive(Duration::ZERO).unwrap(), None);
    });
}

/// For two subscribers: one of ours, and one of CycloneDDS.
#[test]
#[ignore = "a process of `on_one_host_a_sample_comes_once`"]
fn a_publisher_of_ours() {
    let publisher = (STRING.publisher)(&node(&Host::Same), Quality::Reliable);
    publisher.wait_for_match(2);
    (0..STRING.count).for_each(|n| publisher.publish(n));
}

#[test]
fn a_truncated_message_is_an_error_with_its_field_and_the_next_one_is_read() {
    const TEST: &str =
        "corner::a_truncated_message_is_an_error_with_its_field_and_the_next_one_is_read";
    if Middleware::FastDds.program().is_none() {
        return;
    }
    on_own_host(TEST, || {
        let host = Host::Same;
        let node = node(&host);
        assert_eq!(field::<RosString>(&node, &host, "String", "chatter"), "data");
        assert_eq!(field::<Image>(&node, &host, "Image", "camera/image"), "data");
    });
}

/// The error of a truncated message names the field; a whole message follows.
fn field<M: Message + 'static>(
    node: &myelin::Node,
    host: &Host,
    kind: &str,
    topic: &str,
) -> String {
    let mut subscriber = node.ros_topic::<M>(topic).unwrap().subscriber().unwrap();
    let dds_topic = format!("rt/{topic}");
    let faulty = ["pub", kind, &dds_topic, "1", "truncated"];
    let faulty = Peer::start(host, Middleware::FastDds, &faulty);
    let mut next = || subscriber.receive(WATCHDOG).unwrap().expect("none came");
    let sample = next();
    let Err(myelin_ros::Error::Decode { message, source }) = sample.decode() else {
        panic!("a truncated message was read");
    };
    assert_eq!(message, M::TYPE);
    faulty.end();
    let mut sound = Peer::start(host, Middleware::FastDds, &["pub", kind, &dds_topic, "1"]);
    sound.begin(|| while next().decode().is_err() {});
    sound.end();
    source.field().to_owned()
}

/// The size of plain data is known: a sample of another size never reaches the subscriber.
#[test]
fn plain_data_of_a_wrong_size_is_left_out() {
    if Middleware::FastDds.program().is_none() {
        return;
    }
    on_own_host("corner::plain_data_of_a_wrong_size_is_left_out", || {
        let host = Host::Same;
        let mut subscriber = (POSE.subscriber)(&node(&host), Quality::Reliable);
        let faulty = ["pub", POSE.name, POSE.dds_topic, "3", "truncated"];
        let faulty = Peer::start(&host, Middleware::FastDds, &faulty);
        assert_eq!(faulty.line(), "matched 1");
        faulty.end(); // it publishes first
        let sound = words("pub", &POSE, "2", Quality::Reliable);
        let mut sound = Peer::start(&host, Middleware::FastDds, &sound);
        let mut next = || subscriber.receive(WATCHDOG).unwrap().expect("none came");
        sound.begin(|| assert_eq!(next(), PREAMBLE));
        assert_eq!(std::iter::repeat_with(next).find(|n| *n != PREAMBLE), Some(0));
        sound.end();
    });
}
