//! `myelin node` and `myelin service` on the nodes of this process.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use myelin::{Matching, Node, PlainData, Topic};
use serde_json::{Value, json};

use crate::support::{complaint, finish, myelin};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Goal {
    x: f64,
    y: f64,
}

#[derive(Clone, Copy)]
struct ByHand(#[expect(dead_code, reason = "its bytes count")] u64);

// SAFETY: a number.
unsafe impl PlainData for ByHand {
    const LAYOUT_HASH: u64 = 1;
    fn type_name() -> std::borrow::Cow<'static, str> {
        "ByHand".into()
    }
}

fn node(folder: &Path, name: &str) -> Node {
    Node::builder(name).runtime_dir(folder).open().unwrap()
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command: Command = myelin(arguments);
    finish(command.arg("--runtime-dir").arg(folder))
}

fn text(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", complaint(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn lines(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let text = text(folder, &[arguments, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// It ends with this status and one line that has these words.
fn fails(folder: &Path, arguments: &[&str], status: i32, words: &[&str]) {
    let output = run(folder, arguments);
    let line = complaint(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {line}");
    assert_eq!((line.lines().count(), output.stdout.len()), (1, 0), "{arguments:?}: {line}");
    words.iter().for_each(|word| assert!(line.contains(word), "{arguments:?}: {word}: {line}"));
}

#[test]
fn nodes_are_listed_with_what_they_use_and_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (talker, viewer) = (node(folder.path(), "talker"), node(folder.path(), "viewer"));
    let imu = talker.topic::<Goal>("imu").publisher().unwrap();
    let subscriber = viewer.topic::<Goal>("imu").subscriber().unwrap();
    let _kept = talker.topic::<u64>("map").publisher().unwrap();
    let late = viewer.topic::<u64>("map").transient_local(1);
    let _refused = late.matching(Matching::RequestedOffered).subscriber().unwrap();
    let _service = talker.service::<Goal, u64>("plan").unwrap();
    let _client = viewer.client::<Goal, u64>("plan").unwrap();
    assert!(subscriber.wait_for_match(1, Duration::from_secs(60)));
    assert_eq!(imu.matched(), 1);

    let nodes = lines(folder.path(), &["node", "list"]);
    let names: Vec<_> = nodes.iter().map(|it| it["node"].as_str().unwrap()).collect();
    assert_eq!(names, ["talker", "viewer"], "the tool's own is left out");
    assert_eq!((&nodes[0]["publishers"], &nodes[0]["language"]), (&2.into(), &"Rust".into()));
    assert_eq!(nodes[0]["pid"], std::process::id());
    assert!(nodes[0]["cpu_percent"].is_number() && nodes[0]["memory_bytes"].as_u64() > Some(0));

    let info = &lines(folder.path(), &["node", "info", "/viewer"])[0];
    let imu = info["subscribes"].as_array().unwrap().iter().find(|it| it["topic"] == "imu");
    assert_eq!(imu.unwrap()["matched"], json!(["talker"]), "{info}");
    assert_eq!((&info["calls"], &info["serves"]), (&json!(["plan"]), &json!([])));
    let problems = info["problems"].as_array().unwrap();
    let of_map = problems.iter().find_map(|it| it.as_str().filter(|it| it.starts_with("map: ")));
    assert!(
        of_map.is_some_and(|it| it.contains("talker") && it.contains("transient local")),
        "{info}"
    );
    assert_eq!(lines(folder.path(), &["node", "info", "*"]).len(), 2);
    let people = text(folder.path(), &["node", "info", "talker"]);
    assert!(people.contains("publishes") && people.contains("serves      plan"), "{people}");
}

#[test]
fn a_service_is_called_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let server = node(folder.path(), "planner");
    let plan = server.service::<Goal, [f64]>("plan").unwrap();
    let _serving = plan.on_request(|goal| {
        goal.reply(&[goal.x, goal.y, goal.x + goal.y]).unwrap();
    });
    let _by_hand = server.service::<ByHand, u64>("by_hand").unwrap();
    let client = node(folder.path(), "client");
    let _waits = client.client::<Goal, u64>("nobody").unwrap();

    let services = lines(folder.path(), &["service", "list"]);
    let of = |name: &str| services.iter().find(|it| it["service"] == name).unwrap();
    assert_eq!(of("plan")["types"], json!(["Goal -> [f64]"]));
    assert_eq!(of("nobody")["servers"], json!([]));
    let info = &lines(folder.path(), &["service", "info", "plan"])[0];
    assert_eq!(info["request"], json!(["x: f64", "y: f64"]), "{info}");
    assert_eq!(info["reply"], json!(["[f64]"]), "{info}");
    assert!(text(folder.path(), &["service", "list"]).contains("no server"));

    let call = |service: &str, request: &str| {
        text(folder.path(), &["service", "call", service, request, "--timeout", "60s"])
    };
    assert_eq!(call("plan", r#"{"x": 1.5, "y": 2}"#), "[1.5, 2.0, 3.5]\n");
    assert_eq!(call("plan", "{}"), "[0.0, 0.0, 0.0]\n");
    let fails = |arguments: &[&str], status, words: &[&str]| {
        fails(folder.path(), &[&["service", "call"], arguments].concat(), status, words);
    };
    fails(&["plan", "{"], 2, &["JSON"]);
    fails(&["plan", r#"{"z": 1}"#], 2, &["z"]);
    fails(&["nobody"], 3, &["no server"]);
    fails(&["by_hand", "{}"], 1, &["not known", "planner["]);
}

#[test]
fn a_server_that_does_not_answer_has_status_3() {
    let folder = tempfile::tempdir().unwrap();
    let server = node(folder.path(), "planner");
    let _deaf = server.service::<u64, u64>("plan").unwrap();
    fails(folder.path(), &["service", "call", "plan", "1", "--timeout", "50ms"], 3, &["plan"]);
}

/// What `rmw_myelin` does for a server: requests on one topic, and a topic of replies for each
/// client, named after the publisher of its requests.
#[test]
fn a_service_of_ros_2_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let server = node(folder.path(), "adder");
    let messages = |name: &str, of: &str, fields: &str| -> Topic<[u8]> {
        let ty = format!("example_interfaces::srv::dds_::AddTwoInts_{of}_");
        let topic = server.topic::<[u8]>(name).dds_cdr(&ty).schema("ros2msg", fields.as_bytes());
        topic.depth(10).reliable_keep_last().matching(Matching::RequestedOffered)
    };
    let requests = messages("rq/addRequest", "Request", "int64 a\nint64 b\n");
    let mut requests = requests.subscriber().unwrap();
    let _shared = messages("rr/addReply", "Response", "int64 sum\n").publisher().unwrap();
    let calls = std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let request = r#"{"a": 40, "b": 2}"#;
            text(folder.path(), &["service", "call", "add", request, "--timeout", "60s"])
        });
        assert!(requests.wait_for_match(1, Duration::from_secs(60)));
        let graph = server.graph().unwrap();
        let client =
            graph.endpoints.iter().find(|it| it.topic == "rq/addRequest" && it.is_publisher);
        let name = format!("rr/addReply {:016x}", client.unwrap().id);
        let replies = messages(&name, "Response", "int64 sum\n").publisher().unwrap();
        assert!(replies.wait_for_match(1, Duration::from_secs(60)));
        let request = requests.receive(Duration::from_secs(60)).unwrap().expect("a request");
        let number = |at: usize| i64::from_le_bytes(request[at..at + 8].try_into().unwrap());
        let sum = (number(20) + number(28)).to_le_bytes();
        replies.publish_copy(&[&request[..20], &sum[..]].concat()).unwrap();
        caller.join().unwrap()
    });
    assert_eq!(calls, "{\"sum\": 42}\n");
    let services = lines(folder.path(), &["service", "list"]);
    assert_eq!(services[0]["service"], "/add");
    assert_eq!(services[0]["types"], json!(["example_interfaces/srv/AddTwoInts"]));
    let info = &lines(folder.path(), &["service", "info", "/add"])[0];
    assert_eq!(info["request"], json!(["a: i64", "b: i64"]), "{info}");
}
