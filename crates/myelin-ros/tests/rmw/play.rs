//! ROS 2 nodes take what `myelin play` publishes, and follow its clock.

use myelin_bag::{Channel, MessageHead, Options, Player, Recording, Schema, Writer};

use crate::host::Host;
use crate::node::{Node, Rmw, WATCHDOG};
use crate::talk::on_a_host;

#[test]
fn nodes_take_a_recording_and_follow_its_clock() {
    on_a_host("play::nodes_take_a_recording_and_follow_its_clock", || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.mcap");
        let mut writer = Writer::create(&path, Options::default()).unwrap();
        let schema = Schema::new("ros2msg", "std_msgs/msg/String", "string data\n");
        let mut channel = Channel {
            schema: writer.add_schema(&schema).unwrap(),
            topic: "/String".into(),
            encoding: "cdr".into(),
            ..Channel::default()
        };
        let qos =
            "- history: keep_last\n  depth: 10\n  reliability: reliable\n  durability: volatile\n";
        channel.metadata.insert("offered_qos_profiles".into(), qos.into());
        let channel = writer.add_channel(&channel).unwrap();
        for number in 0..20_u64 {
            let text = format!("message {number}\0");
            let length = (text.len() as u32).to_le_bytes();
            let time = 1_000_000_000_000 + number * 5_000_000;
            let head = MessageHead { channel, sequence: 0, log_ns: time, publish_ns: time };
            writer.write(&head, &[&[0, 1, 0, 0], &length, text.as_bytes()]).unwrap();
        }
        writer.finish().unwrap();

        let listener = Node::start(&Host::Same, Rmw::Myelin, &["sub", "listener", "String"]);
        let follower = Node::start(&Host::Same, Rmw::Myelin, &["time", "follower"]);
        let node = myelin::Node::new("player").unwrap();
        let builder = Player::builder(&node).clock_hz(100.0);
        let mut player = builder.open(Recording::open([&path]).unwrap()).unwrap();
        assert!(player.refused().is_empty(), "{:?}", player.refused());
        assert!(player.wait_for_subscribers(Some("/String"), 1, WATCHDOG));
        let control = player.control();
        let playing = std::thread::spawn(move || player.run().unwrap());
        for number in 0..20 {
            listener.wait_for("a message", |line| line == format!("String {number}"));
        }
        playing.join().unwrap();
        drop(control);

        // As long as it is paused, the time stands still, and is known to those who come.
        let builder = Player::builder(&node).clock_hz(100.0).paused(true);
        let mut player = builder.open(Recording::open([&path]).unwrap()).unwrap();
        let control = player.control();
        let playing = std::thread::spawn(move || player.run().unwrap());
        let line = follower.wait_for("the time", |line| line.starts_with("time"));
        assert_eq!(line, "time 1000");
        control.stop();
        assert!(playing.join().unwrap().is_stopped);
        listener.end();
        follower.end();
    });
}
