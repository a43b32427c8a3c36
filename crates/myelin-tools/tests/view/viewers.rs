//! Foxglove's own client library as a viewer.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Imu, Robot, WATCHDOG, node_script};

#[test]
fn foxgloves_client_shows_a_robot() {
    let Some(mut script) = node_script("client.js") else { return };
    let (robot, publisher) = Robot::new(|node| node.topic::<Imu>("imu").publisher().unwrap());
    script.arg(robot.view.urls().websocket).stdout(Stdio::piped());
    let mut viewer = script.spawn().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for id in 0..5 {
        let imu = Imu { acceleration: [1.0, 2.0, 3.5], id, ..Imu::default() };
        publisher.publish_copy(&imu).unwrap();
    }
    let lines = BufReader::new(viewer.stdout.take().unwrap()).lines();
    let lines: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(viewer.wait().unwrap().success(), "{lines:?}");
    assert_eq!(lines[0], "myelin view [\"connectionGraph\"]");
    assert_eq!(lines[1], "imu cdr ros2msg myelin/msg/Imu");
    assert_eq!(lines[2], "connectionGraph imu");
    for (id, line) in lines[3..].iter().enumerate() {
        assert_eq!(line, &format!("message 0 {{\"y\":2,\"id\":{id},\"isNow\":true}}"));
    }
    assert_eq!(lines.len(), 8, "{lines:?}");
}
