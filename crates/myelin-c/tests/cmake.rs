//! CMake projects that use the library from a clone: both ways have the target `myelin::myelin`.

mod support;

use std::path::Path;
use std::process::Command;

use support::{Place, crate_folder, end, said, target};

#[test]
fn a_clone_is_a_subdirectory() {
    builds_and_talks("add_subdirectory(@CRATE@ myelin)");
}

#[test]
fn a_clone_is_fetched_content_that_find_package_finds() {
    builds_and_talks(
        "include(FetchContent)
        FetchContent_Declare(myelin SOURCE_DIR @CRATE@ OVERRIDE_FIND_PACKAGE)
        find_package(myelin REQUIRED)",
    );
}

/// A project with the lines `takes` builds the C++ example twice, and the second time it builds
/// nothing; then two of the programs talk.
fn builds_and_talks(takes: &str) {
    if Command::new("cmake").arg("--version").output().is_err() {
        println!("skipped: CMake is not installed: apt-get install cmake");
        return;
    }
    let (place, project) = (Place::new(), tempfile::tempdir().unwrap());
    let examples = crate_folder().join("../../examples/cpp").canonicalize().unwrap();
    let lists = format!(
        "cmake_minimum_required(VERSION 3.24)
        project(robot C CXX)
        set(CMAKE_CXX_STANDARD 17)
        {}
        add_executable(hello {}/hello.cpp)
        target_link_libraries(hello PRIVATE myelin::myelin)",
        takes.replace("@CRATE@", crate_folder().to_str().unwrap()),
        examples.display()
    );
    std::fs::write(project.path().join("CMakeLists.txt"), lists).unwrap();
    let build = project.path().join("build");
    cmake(&["-S", project.path().to_str().unwrap(), "-DCMAKE_BUILD_TYPE=Debug"], &build);
    cmake(&["--build"], &build);
    let program = build.join("hello");
    let first = program.metadata().unwrap().modified().unwrap();
    cmake(&["--build"], &build);
    assert_eq!(program.metadata().unwrap().modified().unwrap(), first);

    let subscribing = place.start(&program, &["subscribe"]);
    place.run(&program, &["publish"]);
    let heard = said(end(subscribing));
    assert!(heard.ends_with("4: hello, number 5\n"), "{heard}");
}

fn cmake(arguments: &[&str], build: &Path) {
    let mut command = Command::new("cmake");
    command.args(arguments);
    if arguments[0] == "-S" {
        command.arg("-B");
    }
    let output = command
        .arg(build)
        .env("CARGO", env!("CARGO"))
        .env("CARGO_TARGET_DIR", target())
        .output()
        .expect("cmake");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
