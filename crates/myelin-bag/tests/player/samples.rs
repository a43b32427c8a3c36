//! The bytes, the types and the order of what is played.

use std::path::Path;

use myelin::{Change, Matching, PlainData, Reliability};
use myelin_bag::player::{PlayError, Played, PlayerBuilder};
use myelin_bag::{Player, Recording, Schema};

use crate::robot::{MS, Robot, SECOND, collect, next, next_numbers, numbers};

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Pose {
    stamp_ns: u64,
    at: [f32; 3],
    id: u32,
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Tag(u8);

fn play(builder: &PlayerBuilder, path: &Path) -> Played {
    builder.open(Recording::open([path]).unwrap()).unwrap().run().unwrap()
}

#[test]
fn subscribers_of_every_kind_of_type_get_the_recorded_bytes() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let pose = "Pose{stamp_ns: u64 @0, at: [f32; 3] @8, id: u32 @20} 24";
    let poses = file.topic("pose", &Schema::layout(pose), None);
    let slices = file.topic("slice", &Schema::layout(&format!("[{pose}]")), None);
    let tag = "(Tag{0: u8 @0} 1, [f64] @8)";
    let tagged = file.topic("tagged", &Schema::layout(tag), None);
    let large = file.topic("large", &Schema::layout("u128"), None);
    let bytes = file.topic("bytes", &Schema::layout("[u8]"), None);
    let json = file.topic("json", &Schema::new("jsonschema", "Any", "{}"), None);

    let mut sample = [0; 24];
    (0..24).for_each(|at| sample[at] = at as u8);
    let two = [sample, sample].concat();
    let of_tag = [&[7, 0, 0, 0, 0, 0, 0, 0][..], &1.5_f64.to_ne_bytes()].concat();
    let image: Vec<u8> = (0..300_000_u32).map(|it| it as u8).collect();
    for (number, (topic, sample)) in [
        (&poses, &sample[..]),
        (&slices, &two),
        (&slices, &[]),
        (&tagged, &of_tag),
        (&large, &[3; 16]),
        (&bytes, &image),
        (&json, b"{\"x\": 1}"),
    ]
    .into_iter()
    .enumerate()
    {
        file.write(topic, SECOND + number as u64, sample);
    }
    let path = file.finish();

    let node = &robot.node;
    let (_a, poses) = collect(&node.topic::<Pose>("pose"));
    let (_b, slices) = collect(&node.topic::<[Pose]>("slice"));
    let (_c, tagged) = collect(&node.topic::<(Tag, [f64])>("tagged"));
    let (_d, large) = collect(&node.topic::<u128>("large"));
    let (_e, bytes) = collect(&node.topic::<[u8]>("bytes"));
    let (_f, json) = collect(&node.topic::<[u8]>("json"));
    let mut player =
        Player::builder(&robot.player).open(Recording::open([&path]).unwrap()).unwrap();
    assert!(player.refused().is_empty(), "{:?}", player.refused());
    assert_eq!((player.matched(None), player.matched(Some("pose"))), (6, 1));
    let played = player.run().unwrap();
    assert_eq!((played.messages, played.unfit, played.unreadable), (7, 0, 0));

    assert_eq!(next(&poses, 1), [sample]);
    assert_eq!(next(&slices, 2), [two, vec![]]);
    // The hole between header and elements is empty.
    assert_eq!(next(&tagged, 1), [of_tag]);
    assert_eq!(next(&large, 1), [[3; 16]]);
    assert_eq!(next(&bytes, 1), [image]);
    assert_eq!(next(&json, 1), [b"{\"x\": 1}"]);
}

#[test]
fn messages_of_one_time_keep_the_order_of_the_file() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let topic = file.topic("number", &Schema::layout("u64"), None);
    // Three times, of 50 messages each.
    for number in 0..150_u64 {
        file.write(&topic, SECOND + number / 50 * MS, &number.to_ne_bytes());
    }
    let path = file.finish();
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let played = play(&Player::builder(&robot.player), &path);
    assert_eq!((played.messages, played.bytes), (150, 150 * 12));
    assert_eq!(next_numbers(&samples, 150), (0..150).collect::<Vec<_>>());
}

/// Publication and record of two messages in opposite orders.
#[test]
fn either_time_can_be_chosen() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let topic = file.topic("number", &Schema::layout("u64"), None);
    for (number, publish_ns) in [(1_u64, SECOND + 2 * MS), (2, SECOND)] {
        let mut head = myelin_bag::MessageHead::default();
        (head.channel, head.publish_ns) = (topic.id, publish_ns);
        head.log_ns = SECOND + number * MS;
        let message = [&[0, 1, 0, 0][..], &number.to_ne_bytes()].concat();
        file.writer.write(&head, &[&message]).unwrap();
    }
    let path = file.finish();
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    play(&Player::builder(&robot.player), &path);
    assert_eq!(next_numbers(&samples, 2), [2, 1]);
    play(&Player::builder(&robot.player).by(myelin_bag::Time::Log), &path);
    assert_eq!(next_numbers(&samples, 2), [1, 2]);
}

#[test]
fn topics_of_ros_2_are_published_as_by_rmw_myelin() {
    let robot = Robot::new();
    let qos = "- history: keep_last\n  depth: 7\n  reliability: reliable\n  durability: \
        transient_local\n  deadline:\n    sec: 9223372036\n    nsec: 854775807\n";
    let mut file = robot.file("run.mcap");
    let schema = Schema::new("ros2msg", "std_msgs/msg/String", "string data\n");
    let topic = file.topic("/chatter", &schema, Some(qos));
    let message = [0, 1, 0, 0, 3, 0, 0, 0, b'h', b'i', 0];
    file.write(&topic, SECOND, &message);
    let path = file.finish();

    let wanted = robot.node.topic::<[u8]>("rt/chatter").dds_cdr("std_msgs::msg::dds_::String_");
    let wanted = wanted.matching(Matching::RequestedOffered).reliable_keep_last();
    let (_callback, samples) = collect(&wanted.transient_local(7));
    let mut player =
        Player::builder(&robot.player).open(Recording::open([&path]).unwrap()).unwrap();
    player.run().unwrap();
    assert_eq!(next(&samples, 1), [message]);

    let mut found = robot.node.discover("rt/*");
    let changes = found.changes().unwrap().into_iter();
    let endpoints = changes.filter_map(|it| match it {
        Change::Found(endpoint) if endpoint.is_publisher => Some(endpoint),
        _ => None,
    });
    let [endpoint] = &endpoints.collect::<Vec<_>>()[..] else { panic!("one publisher") };
    assert_eq!(endpoint.type_name, "CDR std_msgs::msg::dds_::String_");
    assert_eq!(endpoint.attributes.get("ros.depth"), Some(&b"7"[..]));
    assert_eq!(endpoint.qos.transient_local, 7);
    assert_ne!(endpoint.qos.reliability, Reliability::Reliable);
    assert!(endpoint.qos.is_reliable());
    // Late joiners get what was latched, as long as the player is there.
    let (_late, samples) = collect(&wanted_again(&robot));
    assert_eq!(next(&samples, 1), [message]);
}

fn wanted_again(robot: &Robot) -> myelin::Topic<[u8]> {
    let topic = robot.node.topic::<[u8]>("rt/chatter").dds_cdr("std_msgs::msg::dds_::String_");
    topic.transient_local(1)
}

#[test]
fn topics_are_chosen_and_renamed() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    for (number, name) in
        ["arm/left", "arm/right", "leg", "/foot", "/myelin/losses"].iter().enumerate()
    {
        let topic = file.topic(name, &Schema::layout("u64"), None);
        file.write(&topic, SECOND, &(number as u64).to_ne_bytes());
    }
    let path = file.finish();
    let names = |builder: PlayerBuilder| {
        let player = builder.open(Recording::open([&path]).unwrap());
        player.map(|it| it.topics().map(str::to_owned).collect::<Vec<_>>())
    };
    let builder = || Player::builder(&robot.player);
    assert_eq!(names(builder()).unwrap(), ["arm/left", "arm/right", "leg", "/foot"]);
    assert_eq!(names(builder().topic("/myelin/losses")).unwrap(), ["/myelin/losses"]);
    assert_eq!(names(builder().topic("arm/*").exclude("*/left")).unwrap(), ["arm/right"]);
    assert_eq!(names(builder().topic("leg").rename("leg", "toe")).unwrap(), ["toe"]);
    assert_eq!(names(builder().topic("foot").rename("foot", "/toe")).unwrap(), ["/toe"]);
    for wrong in [builder().topic("amr/*"), builder().exclude("a"), builder().rename("b", "c")] {
        assert!(matches!(names(wrong), Err(PlayError::NoTopic(_))));
    }
    let error = names(builder().exclude("*")).unwrap_err();
    assert!(matches!(error, PlayError::Nothing), "{error}");
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = names(builder().rate(rate)).unwrap_err().to_string();
        assert!(error.starts_with("the rate is"), "{error}");
    }
}

/// One topic of two types: the second has no publisher, and the first is played.
#[test]
fn a_topic_that_cannot_be_published_blocks_no_other() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let unknown = file.topic("unknown", &Schema::layout("ByHand{?} 2"), None);
    let number = file.topic("number", &Schema::layout("u64"), None);
    file.write(&unknown, SECOND, &[1, 2]);
    file.write(&number, SECOND, &5_u64.to_ne_bytes());
    let path = file.finish();
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let mut player =
        Player::builder(&robot.player).open(Recording::open([&path]).unwrap()).unwrap();
    let [refused] = player.refused() else { panic!("{:?}", player.refused()) };
    assert!(refused.to_string().starts_with("unknown: the layout is"), "{refused}");
    assert_eq!(player.run().unwrap().messages, 1);
    assert_eq!(next_numbers(&samples, 1), [5]);
}

#[test]
fn what_is_no_sample_is_left_out_and_counted() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let topic = file.topic("number", &Schema::layout("u64"), None);
    for message in
        [&[0, 1, 0, 0, 1, 2, 3][..], &[9; 12], b"", &[0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]]
    {
        let mut head = myelin_bag::MessageHead::default();
        (head.channel, head.log_ns, head.publish_ns) = (topic.id, SECOND, SECOND);
        file.writer.write(&head, &[message]).unwrap();
    }
    let path = file.finish();
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let played = play(&Player::builder(&robot.player), &path);
    assert_eq!((played.messages, played.unfit), (1, 3));
    assert_eq!(next_numbers(&samples, 1), [7]);
}

#[test]
fn a_slow_reliable_subscriber_is_waited_for_by_choice() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 2_000);
    let topic = robot.node.topic::<u64>("number").depth(4);
    let topic = topic.reliable(std::time::Duration::from_secs(60));
    let mut subscriber = topic.subscriber().unwrap();
    let builder = Player::builder(&robot.player).rate(1e6).wait_for_slow(true);
    let mut player = builder.open(Recording::open([&path]).unwrap()).unwrap();
    let playing = std::thread::spawn(move || player.run().unwrap());
    for expected in 0..2_000_u64 {
        let sample = subscriber.receive(crate::robot::WATCHDOG).unwrap().expect("a sample");
        assert_eq!(*sample, expected);
    }
    let played = playing.join().unwrap();
    assert_eq!((played.messages, subscriber.lost()), (2_000, 0));
}

#[test]
fn a_simulated_clock_follows_the_recording() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 100);
    let clock = robot.node.simulated_clock().unwrap();
    let builder = Player::builder(&robot.player).clock_hz(1_000.0);
    let mut player = builder.open(Recording::open([&path]).unwrap()).unwrap();
    let playing = std::thread::spawn(move || player.run().unwrap());
    assert!(clock.wait_until(SECOND + 50 * MS, crate::robot::WATCHDOG));
    playing.join().unwrap();
    let now = clock.now();
    assert!((SECOND + 50 * MS..SECOND + 200 * MS).contains(&now), "{now}");
}
