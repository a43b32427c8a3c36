//! The driver's description of itself, and its messages about what is missing.

use std::path::Path;
use std::process::Command;

use myelin_bench_kit::protocol::{Description, Reliability, Wait};

use crate::EXECUTABLE;
use crate::support::describe;

#[test]
fn the_systems_say_what_they_are() {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    let names: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ros2.rcl-fastrtps",
            "ros2.rcl-myelin",
            "ros2.rclcpp",
            "ros2.rclcpp-myelin",
            "ros2.rclcpp-intra"
        ]
    );
    for system in &systems {
        let wait = match system.name.as_str() {
            "ros2.rcl-fastrtps" => Wait::Block,
            "ros2.rcl-myelin" => Wait::Adaptive,
            _ => Wait::Callback,
        };
        assert!(system.wait == wait && system.loans && !system.daemon && !system.floor);
        assert_eq!(system.streams.reliability, [Reliability::BestEffort], "{}", system.name);
        let remedies = ["set ROS2_PREFIX", "MYELIN_RMW", "README.md", "apt-get install"];
        if let Some(missing) = &system.missing {
            assert!(remedies.iter().any(|remedy| missing.contains(remedy)), "{missing}");
        }
    }
}

#[test]
fn a_missing_middleware_is_named_with_the_remedy() {
    let described = Command::new(EXECUTABLE).arg("describe").env("MYELIN_RMW", "/nowhere").output();
    let Description { systems, .. } = serde_json::from_slice(&described.unwrap().stdout).unwrap();
    let missing = systems[1].missing.as_deref().unwrap();
    let is_built_in = !missing.starts_with("not built in");
    assert!(missing.contains(if is_built_in { "no librmw_myelin.so" } else { "ROS2_PREFIX" }));
    assert!(missing.contains(if is_built_in { "MYELIN_RMW" } else { "README.md" }), "{missing}");
}
