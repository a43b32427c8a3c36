//! A running robot, seen by a client.

use myelin::Node;
use myelin_tools::session::{Place, Session};
use myelin_tools::view::{Options, View};
use serde_json::json;

use crate::support::{Client, Imu, Robot, WATCHDOG, options, wait_for};

fn imu(id: u32) -> Imu {
    Imu { acceleration: [0.5, -1.0, 9.81], id, ..Imu::default() }
}

#[test]
fn samples_of_plain_data_arrive_as_cdr_with_a_schema() {
    let prepare =
        |node: &Node| node.topic::<Imu>("imu").publisher_builder().timestamps(true).open().unwrap();
    let (robot, publisher) = Robot::new(prepare);
    // Nobody looks, so the topic has no subscriber.
    assert_eq!(publisher.matched(), 0);
    let mut client = Client::viewer(&robot.view);
    let channel = client.channel("imu");
    assert_eq!(channel["encoding"], "cdr");
    assert_eq!(channel["schemaEncoding"], "ros2msg");
    let schema = channel["schema"].as_str().unwrap();
    let lines: Vec<_> = schema.lines().collect();
    assert_eq!(
        lines,
        ["uint64 stamp_ns", "float64[3] acceleration", "uint32 id", "float32 temperature"]
    );
    client.subscribe(7, &channel);
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for id in 0..3 {
        publisher.publish_copy(&imu(id)).unwrap();
    }
    let now_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    for id in 0..3 {
        let (subscription, time_ns, data) = client.message();
        assert_eq!((subscription, &data[..4]), (7, [0, 1, 0, 0].as_slice()));
        assert_eq!(data[4..], *bytes(&imu(id)));
        let age = now_ns.as_nanos() as i128 - i128::from(time_ns);
        assert!((-1_000_000_000..60_000_000_000).contains(&age), "{age}");
    }
    client.send(json!({"op": "unsubscribe", "subscriptionIds": [7]}));
    wait_for("the subscriber to go", || (publisher.matched() == 0).then_some(()));
    assert_eq!(robot.view.summary().messages, 3);
}

/// The bytes of a struct without holes.
fn bytes(imu: &Imu) -> Vec<u8> {
    let mut bytes = imu.stamp_ns.to_le_bytes().to_vec();
    imu.acceleration.iter().for_each(|it| bytes.extend(it.to_le_bytes()));
    bytes.extend(imu.id.to_le_bytes());
    bytes.extend(imu.temperature.to_le_bytes());
    bytes
}

#[test]
fn topics_come_and_go_and_change_their_type() {
    let (robot, ()) = Robot::new(|_| ());
    let mut client = Client::viewer(&robot.view);
    let first = robot.node.topic::<f64>("speed").publisher().unwrap();
    let channel = client.channel("speed");
    client.subscribe(1, &channel);
    assert!(first.wait_for_match(1, WATCHDOG));
    first.publish_copy(&1.5).unwrap();
    assert_eq!(client.message().2[4..], 1.5_f64.to_le_bytes());

    drop(first);
    assert_eq!(client.json("unadvertise")["channelIds"], json!([channel["id"]]));
    let second = robot.node.topic::<Imu>("speed").publisher().unwrap();
    let channel = client.channel("speed");
    assert_eq!(channel["schemaName"], "myelin/msg/Imu");
    client.subscribe(1, &channel);
    assert!(second.wait_for_match(1, WATCHDOG));
    second.publish_copy(&imu(4)).unwrap();
    assert_eq!(client.message().2[4..], *bytes(&imu(4)));
}

#[test]
fn ros_2_messages_and_their_names_are_as_they_are() {
    let (robot, publisher) = Robot::new(|node| {
        let topic = node.topic::<[u8]>("rt/chatter").dds_cdr("std_msgs::msg::dds_::String_");
        topic.schema("ros2msg", b"string data\n").publisher().unwrap()
    });
    let mut client = Client::viewer(&robot.view);
    let channel = client.channel("/chatter");
    assert_eq!(channel["schemaName"], "std_msgs/msg/String");
    assert_eq!(channel["schema"], "string data\n");
    client.subscribe(1, &channel);
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let message = [&[0, 1, 0, 0, 3, 0, 0, 0], b"hi\0".as_slice()].concat();
    publisher.publish_copy(&message).unwrap();
    assert_eq!(client.message().2, message);
}

#[test]
fn a_late_client_gets_what_a_topic_keeps() {
    let (robot, publisher) = Robot::new(|node| {
        let topic = node.topic::<f64>("map").depth(8).transient_local(2);
        topic.publisher().unwrap()
    });
    for value in [1.0, 2.0, 3.0] {
        publisher.publish_copy(&value).unwrap();
    }
    // The second one subscribes when the server has taken the samples.
    for _ in 0..2 {
        let mut client = Client::viewer(&robot.view);
        let channel = client.channel("map");
        client.subscribe(1, &channel);
        let values = [client.message().2, client.message().2];
        assert_eq!(values.map(|it| it[4..].to_vec()), [2.0_f64, 3.0].map(|it| it.to_le_bytes()));
        std::mem::forget(client);
    }
}

#[test]
fn only_selected_topics_are_shown() {
    let (robot, _publishers) =
        Robot::with(crate::support::options(), vec!["cam*".to_owned()], |node| {
            ["camera", "imu"].map(|name| node.topic::<f64>(name).publisher().unwrap())
        });
    let mut client = Client::viewer(&robot.view);
    let advertised = client.json("advertise");
    let names: Vec<_> =
        advertised["channels"].as_array().unwrap().iter().map(|it| &it["topic"]).collect();
    assert_eq!(names, ["camera"]);

    let place = Place { runtime_dir: Some(robot.folder.path().to_owned()), ..Place::default() };
    let session = Session::open("second", &place).unwrap();
    let error = View::robot(session, &place, vec!["camara".to_owned()], &options()).err().unwrap();
    assert_eq!(error.status(), 3);
    assert!(error.to_string().contains("did you mean \"camera\""), "{error}");
}

#[test]
fn a_viewer_publishes_where_that_is_allowed() {
    let subscribe = |node: &Node| node.topic::<Imu>("goal").subscriber().unwrap();
    let options = Options { can_publish: true, ..options() };
    let (robot, mut goals) = Robot::with(options, Vec::new(), subscribe);
    let mut client = Client::new(&robot.view, "foxglove.sdk.v1");
    let info = client.json("serverInfo");
    assert_eq!(info["capabilities"], json!(["connectionGraph", "clientPublish"]));
    assert_eq!(info["supportedEncodings"], json!(["json"]));
    let advertise = |id: u32, topic: &str, encoding: &str| {
        let channel = json!({"id": id, "topic": topic, "encoding": encoding, "schemaName": "Imu"});
        json!({"op": "advertise", "channels": [channel]})
    };
    client.send(advertise(4, "goal", "json"));
    assert!(goals.wait_for_match(1, WATCHDOG));
    let publish = |id: u32, text: &str| {
        let head = [&[1][..], &id.to_le_bytes()].concat();
        tungstenite::Message::binary([&head, text.as_bytes()].concat())
    };
    client.socket.send(publish(4, r#"{"acceleration": [1, 2, 3.5], "id": 9}"#)).unwrap();
    let goal = goals.receive(WATCHDOG).unwrap().unwrap();
    assert_eq!((goal.acceleration, goal.id), ([1.0, 2.0, 3.5], 9));
    client.send(advertise(5, "goal", "protobuf"));
    client.socket.send(publish(4, r#"{"speed": 1}"#)).unwrap();
    client.socket.send(publish(6, "{}")).unwrap();
    for expected in ["only JSON", "speed", "channel 6"] {
        let status = client.json("status");
        assert!(status["message"].as_str().unwrap().contains(expected), "{expected}: {status}");
    }
    client.send(json!({"op": "unadvertise", "channelIds": [4]}));
    wait_for("the publisher to go", || (goals.matched() == 0).then_some(()));

    let (robot, _goals) = Robot::new(subscribe);
    let mut client = Client::viewer(&robot.view);
    client.send(advertise(4, "goal", "json"));
    let status = client.json("status");
    assert!(status["message"].as_str().unwrap().contains("--publish"), "{status}");
}

#[test]
fn the_connection_graph_names_nodes() {
    let (robot, _publisher) = Robot::new(|node| node.topic::<f64>("speed").publisher().unwrap());
    let mut client = Client::viewer(&robot.view);
    client.send(json!({"op": "subscribeConnectionGraph"}));
    let graph = client.json("connectionGraphUpdate");
    let name = format!("robot[{}]", std::process::id());
    assert_eq!(graph["publishedTopics"], json!([{"name": "speed", "publisherIds": [name]}]));
    let subscriber = robot.node.topic::<f64>("speed").subscriber().unwrap();
    let graph = client.json("connectionGraphUpdate");
    assert_eq!(graph["subscribedTopics"], json!([{"name": "speed", "subscriberIds": [name]}]));
    drop(subscriber);
    client.json("connectionGraphUpdate");
}

#[test]
fn requests_that_are_not_possible_are_answered_and_the_end_is_clean() {
    let (robot, publisher) = Robot::new(|node| node.topic::<f64>("speed").publisher().unwrap());
    let mut client = Client::viewer(&robot.view);
    let channel = client.channel("speed");
    client.subscribe(1, &channel);
    client.subscribe(1, &channel);
    client.subscribe(2, &channel);
    client.subscribe(3, &json!({"id": 99}));
    client.send(json!({"op": "unsubscribe", "subscriptionIds": [5]}));
    client.send(json!({"op": "getParameters", "parameterNames": []}));
    client.send(json!("nonsense"));
    client.socket.send(tungstenite::Message::binary(vec![3, 0])).unwrap();
    client.socket.send(tungstenite::Message::binary(vec![9])).unwrap();
    for expected in [
        "in use",
        "already",
        "no channel 99",
        "no subscription 5",
        "not supported",
        "cannot be read",
        "broken",
        "opcode 9",
    ] {
        let status = client.json("status");
        assert!(status["message"].as_str().unwrap().contains(expected), "{expected}: {status}");
        assert_eq!(status["level"], 2);
    }
    // It still works.
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&2.5).unwrap();
    assert_eq!(client.message().0, 1);
    client.socket.send(tungstenite::Message::Ping(vec![1, 2].into())).unwrap();
    loop {
        if let tungstenite::Message::Pong(pong) = client.socket.read().unwrap() {
            assert_eq!(&pong[..], [1, 2]);
            break;
        }
    }
    let summary = robot.view.close();
    assert_eq!((summary.clients, summary.messages, summary.dropped), (1, 1, 0));
    let end = std::iter::repeat_with(|| client.socket.read()).find_map(|it| match it {
        Ok(tungstenite::Message::Close(frame)) => Some(frame.map(|it| u16::from(it.code))),
        Ok(_) => None,
        Err(error) => panic!("{error}"),
    });
    assert_eq!(end, Some(Some(1001)));
}

#[test]
fn several_clients_get_the_same_and_unknown_schemas_are_left_out() {
    let (robot, (numbers, _packed)) = Robot::new(|node| {
        let packed = node.topic::<[u8]>("raw").schema("capnproto", &[1, 2, 3]).publisher().unwrap();
        (node.topic::<[u32]>("numbers").publisher().unwrap(), packed)
    });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::viewer(&robot.view)).collect();
    for client in &mut clients {
        let advertised = client.json("advertise");
        let channels = advertised["channels"].as_array().unwrap();
        assert_eq!(channels.len(), 1, "{advertised}");
        client.subscribe(1, &channels[0]);
    }
    wait_for("three subscriptions", || (numbers.matched() == 1).then_some(()));
    let large = vec![7; 25_000];
    // Those that subscribe later miss what came before.
    let mut missing: Vec<_> = clients.iter_mut().collect();
    while !missing.is_empty() {
        numbers.publish_copy(&large).unwrap();
        missing.retain_mut(|client| {
            client.socket.get_ref().set_nonblocking(true).unwrap();
            let read = client.socket.read();
            client.socket.get_ref().set_nonblocking(false).unwrap();
            let Ok(tungstenite::Message::Binary(bytes)) = read else { return true };
            assert_eq!(bytes.len(), 13 + 4 + 4 + 100_000);
            false
        });
    }
    assert!(robot.view.events().iter().any(|it| it.starts_with("raw is not shown")));
}
