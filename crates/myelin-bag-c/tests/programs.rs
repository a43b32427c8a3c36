//! Programs in C and C++ record, read and play, with this process at the other end.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_program_in_cpp_records_reads_and_plays() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    std::fs::DirBuilder::new().mode(0o700).create(&sockets).unwrap();
    let node = myelin::Node::builder("test").runtime_dir(&sockets).open().unwrap();
    let layout = "Imu{stamp_ns: u64 @0, acceleration: [f64; 3] @8} 32";
    let ty = myelin::DynamicType::from_layout(layout).unwrap();
    let imu = node.dynamic_topic("imu", &ty).depth(256).publisher().unwrap();
    let camera = node.topic::<[u16]>("camera").publisher().unwrap();
    let played = node.dynamic_topic("played", &ty).depth(256).reliable(WATCHDOG);
    let mut played = played.subscriber().unwrap();

    let path = folder.path().join("run.mcap");
    let mut command = Command::new(compile(folder.path(), "bag.cpp"));
    command.arg(&path).env("MYELIN_RUNTIME_DIR", &sockets).env_remove("MYELIN_DOMAIN");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut expect = |line: &str| assert_eq!(lines.next().unwrap().unwrap(), line);
    let mut to = child.stdin.take().unwrap();

    expect("records");
    assert!(imu.wait_for_match(1, WATCHDOG) && camera.wait_for_match(1, WATCHDOG));
    let sample = |number: u64| {
        let acceleration = [0.0, 1.0, number as f64 / 8.0].map(f64::to_ne_bytes).concat();
        [&number.to_ne_bytes()[..], &acceleration].concat()
    };
    for number in 0..100 {
        imu.publish_copy(&sample(number)).unwrap();
    }
    camera.publish_copy(&[1, 2, 65535]).unwrap();
    writeln!(to, "read").unwrap();

    expect("stepped");
    for number in 0..100 {
        let got = played.receive(WATCHDOG).unwrap().expect("it is played");
        assert_eq!(got.as_bytes(), sample(number));
        if number == 0 {
            writeln!(to, "play").unwrap();
        }
    }
    expect("played");
    writeln!(to, "end").unwrap();
    assert!(child.wait().unwrap().success());

    let program = compile(folder.path(), "bag.c");
    let output = Command::new(program).arg(&path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 100);
    assert!(text.lines().all(|line| line.ends_with(" 32")), "{text}");
}

/// Compiles a program of `tests/programs` with `libmyelin_bag.so`.
fn compile(folder: &Path, source: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target: PathBuf = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().into();
    let made = Command::new(here.join("../../scripts/c-library"))
        .arg("bag")
        .env("CARGO", env!("CARGO"))
        .env("CARGO_TARGET_DIR", target)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(made.status.success(), "scripts/c-library bag failed");
    let library = String::from_utf8(made.stdout).unwrap().trim_end().to_owned();
    let is_cpp = source.ends_with(".cpp");
    let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
    let program = folder.join(source.replace('.', "-"));
    let compiled = Command::new(compiler)
        .args([standard, "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(here.join("tests/programs").join(source))
        .arg(format!("-I{}", here.join("include").display()))
        .args([format!("-L{library}"), format!("-Wl,-rpath,{library}"), "-lmyelin_bag".into()])
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}; apt-get install g++"));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

/// Nothing here takes nearly so long.
const WATCHDOG: Duration = Duration::from_secs(120);
