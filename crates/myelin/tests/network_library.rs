//! The network's library is loaded only when a node uses the network. Mappings belong to a process,
//! so each test starts itself again.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;
mod support;

use myelin::{Error, Node};

#[test]
fn without_the_option_the_network_library_is_not_loaded() {
    starts("not_asked", &[]);
}

fn not_asked() {
    let (_folder, node) = support::node();
    works(&node);
    assert_eq!(mapped(), [""; 0]);
}

#[test]
fn with_the_option_the_network_library_is_loaded() {
    starts("asked", &[]);
}

fn asked() {
    match open_to_the_network() {
        Ok(_node) => assert!(!mapped().is_empty()),
        Err(error) => println!("skipped: {error}"),
    }
}

#[test]
fn a_library_that_is_missing_is_named_with_the_remedy_and_this_host_goes_on() {
    for library in ["/nowhere/libddsc.so", "libc.so.6"] {
        starts("missing", &[("MYELIN_CYCLONEDDS", library)]);
    }
}

fn missing() {
    let error = open_to_the_network().unwrap_err();
    assert!(matches!(error, Error::Network { .. }), "{error:?}");
    let said = error.to_string();
    if !said.contains("built without it") {
        let named = std::env::var("MYELIN_CYCLONEDDS").unwrap();
        // For a wrong library, the loader names the first function that is missing.
        assert!(said.contains(&named) || said.contains("undefined symbol: dds_"), "{said}");
        assert!(said.contains("set MYELIN_CYCLONEDDS to the path"), "{said}");
    }
    let (_folder, node) = support::node();
    works(&node);
}

/// Its structures are those of the version that this was built for.
#[test]
fn a_library_of_another_version_is_refused_with_both() {
    let is_its = |file: &String| file.contains("/libddsc.so.0.10.");
    let mapped = open_to_the_network().ok().and_then(|_node| mapped().into_iter().find(is_its));
    let Some(library) = mapped else { return println!("skipped: there is no CycloneDDS 0.10") };
    let folder = tempfile::tempdir().unwrap();
    for (version, role) in [("0.9.1", "other_version"), ("0.10.9", "asked")] {
        let other = folder.path().join(format!("libddsc.so.{version}"));
        std::fs::copy(&library, &other).unwrap();
        starts(role, &[("MYELIN_CYCLONEDDS", other.to_str().unwrap())]);
    }
}

/// ROS 2's, if it is newer than the faults that are known; others are passed over.
#[test]
fn a_sound_library_of_ros_is_preferred() {
    let is_its = |file: &String| file.contains("/libddsc.so.0.10.");
    let mapped = open_to_the_network().ok().and_then(|_node| mapped().into_iter().find(is_its));
    let Some(library) = mapped else { return println!("skipped: there is no CycloneDDS 0.10") };
    let prefix = tempfile::tempdir().unwrap();
    let lib = prefix.path().join("lib/any-linux-gnu");
    std::fs::create_dir_all(&lib).unwrap();
    let copy = |version: &str| std::fs::copy(&library, lib.join(format!("libddsc.so.{version}")));
    copy("0.10.3").unwrap();
    copy("0.11.0").unwrap();
    std::fs::write(lib.join("libddsc.so.0.10.99"), "not a library").unwrap();
    let variable = [("AMENT_PREFIX_PATH", prefix.path().to_str().unwrap())];
    starts("not_of_ros", &variable);
    copy("0.10.98").unwrap();
    starts("of_ros", &variable);
}

fn of_ros() {
    let _node = open_to_the_network().unwrap();
    let files = mapped();
    assert!(
        files.iter().any(|file| file.ends_with("any-linux-gnu/libddsc.so.0.10.98")),
        "{files:?}"
    );
}

fn not_of_ros() {
    let _node = open_to_the_network().unwrap();
    assert!(!mapped().iter().any(|file| file.contains("any-linux-gnu")));
}

fn other_version() {
    let said = open_to_the_network().unwrap_err().to_string();
    let both = ["libddsc.so.0.9.1 is version 0.9.1", "built for CycloneDDS 0.10"];
    assert!(both.iter().all(|part| said.contains(part)), "{said}");
}

fn open_to_the_network() -> Result<Node, Error> {
    let folder = tempfile::tempdir().unwrap();
    Node::builder("asks").runtime_dir(folder.path()).network(true).open()
}

fn works(node: &Node) {
    let (publisher, mut subscriber) = support::ends(&node.topic::<u64>("counter"));
    publisher.publish_copy(&7).unwrap();
    assert_eq!(*subscriber.receive(support::WATCHDOG).unwrap().unwrap(), 7);
}

/// Files of CycloneDDS, and of its dependencies, in this process's memory.
fn mapped() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let is_its = |file: &&str| ["ddsc", "crypto", "iceoryx"].iter().any(|name| file.contains(name));
    files.filter(is_its).map(String::from).collect()
}

fn starts(role: &str, variables: &[(&str, &str)]) {
    let mut command = itself::itself();
    command.args(["--exact", "the_other_side", "--nocapture"]).env(ROLE, role);
    command.env_remove("MYELIN_NETWORK").envs(variables.iter().copied());
    assert!(command.status().unwrap().success(), "{role} {variables:?}");
}

#[test]
fn the_other_side() {
    match std::env::var(ROLE).as_deref() {
        Ok("not_asked") => not_asked(),
        Ok("asked") => asked(),
        Ok("missing") => missing(),
        Ok("other_version") => other_version(),
        Ok("of_ros") => of_ros(),
        Ok("not_of_ros") => not_of_ros(),
        _ => {}
    }
}

const ROLE: &str = "MYELIN_TEST_ROLE";
