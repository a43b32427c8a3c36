//! The driver's description of itself, and its messages about what is missing.

use std::path::Path;
use std::process::Command;

use myelin_bench_kit::protocol::{Description, Transport, Wait};

use crate::EXECUTABLE;
use crate::support::describe;

#[test]
fn the_systems_say_what_they_are() {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    let names: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
    let kinds = ["udp", "myelin", "myelin-block", "myelin-copy", "iceoryx"];
    assert_eq!(names, kinds.map(|kind| format!("cyclonedds11.{kind}")));
    for system in &systems {
        let (is_udp, is_copy) = (system.name.ends_with("udp"), system.name.ends_with("-copy"));
        assert_eq!(system.transport == Transport::Loopback, is_udp, "{}", system.name);
        assert_eq!(system.loans, !is_udp && !is_copy, "{}", system.name);
        assert_eq!(system.daemon, system.name.ends_with("iceoryx"), "{}", system.name);
        let looks = ["myelin", "myelin-copy"].iter().any(|kind| system.name.ends_with(kind));
        let wait = if looks { Wait::Adaptive } else { Wait::Block };
        assert_eq!(system.wait, wait, "{}", system.name);
        if let Some(missing) = &system.missing {
            println!("left out: {}: {missing}", system.name);
            let remedies = ["make cyclonedds11", "README.md", "apt-get install"];
            assert!(remedies.iter().any(|remedy| missing.contains(remedy)), "{missing}");
        }
    }
}

#[test]
fn a_missing_plug_in_is_named_with_the_remedy() {
    let described =
        Command::new(EXECUTABLE).arg("describe").env("MYELIN_PSMX", "/nowhere").output();
    let Description { systems, .. } = serde_json::from_slice(&described.unwrap().stdout).unwrap();
    let missing = systems[1].missing.as_deref().unwrap();
    let is_built_in = !missing.starts_with("not built in");
    assert!(missing.contains(if is_built_in { "MYELIN_PSMX" } else { "not built in" }));
    assert!(missing.contains("make cyclonedds11") || missing.contains("README.md"), "{missing}");
}
