//! Each example's publisher in Rust, C, C++ and Python with each language's subscriber: they print
//! the same.
//!
//! Python is used if `MYELIN_PYTHON` names an interpreter that has the module; then only its pairs
//! run, as in `scripts/python`. The pair of Rust with Rust is a test of the Rust examples.

mod support;
#[allow(dead_code, reason = "the library's own tests use all of it")]
#[path = "../../myelin/tests/support/hosts.rs"]
mod two;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use support::{Place, WATCHDOG, crate_folder, end, rust_example, said, start};
use two::Hosts;

const C_EXAMPLES: &str = "../../examples/c";
const CPP_EXAMPLES: &str = "../../examples/cpp";
const PYTHON_EXAMPLES: &str = "../../examples/python";

#[test]
fn the_other_side() {
    if two::role().is_some() {
        two::be_a_host();
    }
}

#[test]
fn hello() {
    pairs("hello", |said| said.ends_with("4: hello, number 5\n") && said.lines().count() == 5);
}

#[test]
fn typed() {
    pairs("typed", |said| {
        said.contains("40000000 ns: [0.0, 0.0, 9.81] m/s², 21.5 °C") && said.lines().count() == 5
    });
}

#[test]
fn image() {
    pairs("image", |said| {
        said.ends_with("image 9: 4665600 B, brightness 9\n") && said.lines().count() == 10
    });
}

#[test]
fn queue() {
    pairs("queue", |said| said == "did 100000 jobs, lost 0, sum 4999950000\n");
}

/// In Python this is an asyncio loop.
#[test]
fn epoll() {
    pairs("epoll", |said| said.ends_with("at 9 m, 0.5 m/s\n") && said.lines().count() == 10);
}

#[test]
fn wait_set() {
    pairs("wait_set", |said| {
        said.contains("wheels at 9 m, 9.5 m\n")
            && said.contains("5 m to the goal\n")
            && said.lines().count() == 11
    });
}

#[test]
fn service() {
    for_each_pair("service", |server, client| {
        let place = Place::new();
        let serving = place.start(&server.path, &server.arguments("serve"));
        let called = place.run(&client.path, &client.arguments("call"));
        assert!(called.ends_with("25601 points to 15 m, 20 m\n"), "{called}");
        assert_eq!(said(end(serving)), "planned 5 paths\n");
    });
}

/// Each on a host of its own, if namespaces can be made; otherwise both on this host.
#[test]
fn two_hosts() {
    if !Path::new("/usr/include/dds/dds.h").exists() {
        println!("skipped: CycloneDDS is not installed: apt-get install cyclonedds-dev");
        return;
    }
    let is_right = |said: &str| {
        said.ends_with("at 9 m, 4.5 m, heading 0.25 rad\n") && said.lines().count() == 10
    };
    let Some(hosts) = Hosts::new() else { return pairs("two_hosts", is_right) };
    for_each_pair("two_hosts", |publisher, subscriber| {
        let commands = (hosts.one.command(&publisher.path), hosts.other.command(&subscriber.path));
        pair(commands, publisher, subscriber, is_right);
    });
}

/// In C++, and in each pair of C++ and Python. The camera is a row of files.
#[test]
fn opencv_camera() {
    let cflags = Command::new("pkg-config").args(["--cflags", "opencv4"]).output();
    let Some(cflags) = cflags.ok().filter(|it| it.status.success()) else {
        println!(
            "skipped: OpenCV for C++ is not installed: apt-get install libopencv-dev pkg-config"
        );
        return;
    };
    // Its headers have warnings.
    let cflags = String::from_utf8(cflags.stdout).unwrap().replace("-I", "-isystem");
    let libraries = ["core", "highgui", "imgcodecs", "videoio"].map(|it| format!("-lopencv_{it}"));
    let options = cflags.split_whitespace().chain(["-Wl,--no-as-needed"]);
    let options: Vec<&str> = options.chain(libraries.iter().map(String::as_str)).collect();
    let place = Place::new();
    let path = place.compile(&format!("{CPP_EXAMPLES}/opencv_camera.cpp"), &options);
    let cpp = Program { language: "C++", path, script: None };
    let python = std::env::var_os("MYELIN_PYTHON").map(PathBuf::from);
    let python = python.filter(|python| {
        let imported = Command::new(python).args(["-c", "import cv2"]).output();
        imported.is_ok_and(|output| output.status.success())
    });
    let python = python.map(|path| Program {
        language: "Python",
        path,
        script: Some(python_script("opencv_camera")),
    });
    // Side by side, because a viewer waits for 5 s before it ends.
    std::thread::scope(|scope| match &python {
        None => views(&cpp, &cpp),
        Some(python) => {
            scope.spawn(|| views(&cpp, python));
            views(python, &cpp);
        }
    });
}

fn views(camera: &Program, viewer: &Program) {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    for (number, brightness) in [0, 50, 100].into_iter().enumerate() {
        let mut image = b"P6\n320 240\n255\n".to_vec();
        image.resize(image.len() + 320 * 240 * 3, brightness);
        std::fs::write(folder.path().join(format!("image_{number}.ppm")), image).unwrap();
    }
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    let (video, last) = (path("image_%d.ppm"), path("last.ppm"));
    let mut words = viewer.arguments("view");
    words.extend((viewer.language == "Python").then_some("--save").into_iter().chain([&*last]));
    let viewing = place.start(&viewer.path, &words);
    let node = place.node();
    let begun = std::time::Instant::now();
    while !node.graph().unwrap().endpoints.iter().any(|it| it.topic == "camera") {
        assert!(begun.elapsed() < WATCHDOG, "no viewer");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let words = [camera.arguments("publish"), vec![&*video]].concat();
    assert_eq!(place.run(&camera.path, &words), "published 3 images of 320 x 240\n");
    assert_eq!(said(end(viewing)), "the last image was number 2\n");
    let seen = std::fs::read(&last).unwrap();
    let pixels = &seen[seen.len() - 320 * 240 * 3..];
    let pair = format!("{} to {}", camera.language, viewer.language);
    assert!(pixels.iter().all(|it| *it == 100), "{pair}");
}

fn pairs(example: &str, is_right: impl Fn(&str) -> bool) {
    for_each_pair(example, |publisher, subscriber| {
        let place = Place::new();
        let commands = (place.command(&publisher.path), place.command(&subscriber.path));
        pair(commands, publisher, subscriber, &is_right);
    });
}

fn pair(
    commands: (Command, Command),
    publisher: &Program,
    subscriber: &Program,
    is_right: impl Fn(&str) -> bool,
) {
    let subscribing = start(commands.1, &subscriber.arguments("subscribe"));
    let published = quiet(start(commands.0, &publisher.arguments("publish")));
    assert!(published.starts_with("published"), "{published}");
    let taken = quiet(subscribing);
    assert!(is_right(&taken), "{} to {}: {taken}", publisher.language, subscriber.language);
}

/// Its output; Python warns about objects that are left open.
fn quiet(child: Child) -> String {
    let output: Output = end(child);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("Warning") && !error.contains("Exception ignored"), "{error}");
    said(output)
}

/// An example in a language.
struct Program {
    language: &'static str,
    path: PathBuf,
    /// The script, for an interpreter.
    script: Option<String>,
}

impl Program {
    fn arguments<'a>(&'a self, role: &'a str) -> Vec<&'a str> {
        let script = self.script.as_deref().map(|script| ["-X", "dev", script]);
        script.into_iter().flatten().chain([role]).collect()
    }
}

/// Calls `run` with every pair that has the language under test on a side.
fn for_each_pair(example: &str, run: impl Fn(&Program, &Program)) {
    let place = Place::new();
    let c = place.compile(&format!("{C_EXAMPLES}/{example}.c"), &[]);
    let cpp = place.compile(&format!("{CPP_EXAMPLES}/{example}.cpp"), &[]);
    let compiled = |language, path| Program { language, path, script: None };
    let mut programs =
        vec![compiled("Rust", rust_example(example)), compiled("C", c), compiled("C++", cpp)];
    let python = std::env::var_os("MYELIN_PYTHON").map(PathBuf::from);
    programs.extend(python.as_ref().map(|interpreter| Program {
        language: "Python",
        path: interpreter.clone(),
        script: Some(python_script(example)),
    }));
    for first in &programs {
        for second in &programs {
            let languages = [first.language, second.language];
            let is_ours = match python {
                Some(_) => languages.contains(&"Python"),
                None => languages != ["Rust", "Rust"],
            };
            if is_ours {
                println!("{example}: {} to {}", first.language, second.language);
                run(first, second);
            }
        }
    }
}

fn python_script(example: &str) -> String {
    let name = match example {
        "epoll" => "async_for",
        "queue" => "queue_", // Python has a module of that name
        example => example,
    };
    let path = crate_folder().join(PYTHON_EXAMPLES).join(name).with_extension("py");
    path.to_str().expect("a path in UTF-8").into()
}
