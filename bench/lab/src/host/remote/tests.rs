//! An agent in this process, over a socket.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use myelin_bench_kit::protocol::Event;

use super::super::agent;
use super::*;

/// An agent in this process, and its folder.
fn served() -> (RemoteHost, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent");
    let (lab, agent) = UnixStream::pair().unwrap();
    let input = agent.try_clone().unwrap();
    std::thread::spawn(move || agent::serve(input, agent, path));
    (over(lab).unwrap(), folder)
}

fn over(lab: UnixStream) -> Result<RemoteHost> {
    let input = lab.try_clone().unwrap();
    RemoteHost::over("b", input, lab, io::empty(), None)
}

fn begin(directory: &Path) -> RunOnHost {
    let (run, interface) = ("test".into(), "lo".into());
    RunOnHost { run, directory: directory.into(), awake: false, interface }
}

fn start(executable: &Path) -> ProcessSpec {
    let prepare = serde_json::json!({
        "protocol": 1, "system": "a.b", "role": "pong", "run": "test", "domain": 1,
        "payload_bytes": 1, "messages": 1, "duration_ns": 0, "warmup_messages": 0,
        "rate_hz": null, "reply_timeout_ns": 1, "match_timeout_ns": 1, "record_every": 1,
        "samples": null, "directory": "", "lock_memory": false, "seed": 0
    });
    ProcessSpec {
        id: ProcessId::first(Role::Pong),
        executable: executable.into(),
        settings: crate::tuning::Settings::default(),
        capacity: Some(3),
        pong_capacity: None,
        reads_taken_counter: false,
        prepare: serde_json::from_value(prepare).unwrap(),
    }
}

/// A driver that writes a file into its run's folder, reports ready, and runs until it is stopped.
fn script(folder: &Path) -> PathBuf {
    let path = folder.join("driver");
    let text = "#!/bin/sh\nread -r prepare\n\
        folder=$(printf %s \"$prepare\" | sed 's/.*\"directory\":\"\\([^\"]*\\)\".*/\\1/')\n\
        echo written > \"$folder/driver.conf\"; echo complaint >&2; echo '{\"ready\": {}}'\n\
        read -r stop; echo nonsense\n";
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

#[test]
fn a_remote_process_is_started_and_its_files_are_fetched() {
    let (mut remote, folder) = served();
    let (sender, messages) = mpsc::channel();
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    remote.begin(&begin(&results), sender).unwrap();
    remote.start(start(&script(folder.path()))).unwrap();
    let ready = messages.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(ready, ProcessMessage::Event(_, Event::Ready(_))), "{ready:?}");
    remote.observe(&[]).unwrap();
    remote.send(Role::Pong, &Command::Stop).unwrap();
    let nonsense = messages.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(
        matches!(&nonsense, ProcessMessage::Nonsense(_, line) if line == "nonsense"),
        "{nonsense:?}"
    );
    assert!(remote.observed().unwrap().wall_ns > 0);
    assert_eq!(remote.records(ProcessId::first(Role::Pong)).unwrap(), []);
    remote.end();
    let read = |name: &str| fs::read_to_string(results.join(name)).unwrap();
    assert_eq!((read("driver.conf"), read("pong.log")), ("written\n".into(), "complaint\n".into()));
    assert!(fs::read_dir(folder.path().join("agent")).unwrap().next().is_none());
}

#[test]
fn remote_failures_name_the_host() {
    let (mut remote, folder) = served();
    let error = remote.observed().unwrap_err();
    assert_eq!(error, "host b: no run has begun");
    remote.begin(&begin(folder.path()), mpsc::channel().0).unwrap();
    let ping = ProcessId::first(Role::Ping);
    let looks = ProcessSpec { id: ping, reads_taken_counter: true, ..start(Path::new("x")) };
    let error = remote.start(looks).unwrap_err();
    assert!(error.contains("cannot see what pong took on another host"), "{error}");
    let error = remote.start(start(Path::new("/no/driver"))).unwrap_err();
    assert!(error.starts_with("host b: /no/driver: No such file"), "{error}");
    remote.check().unwrap();
}

#[test]
fn a_lost_or_invalid_agent_is_named() {
    for (bytes, expected) in [
        (&b""[..], "the connection to host b is lost: its agent closed the connection"),
        (
            b"Last login: today from far away",
            "the connection to host b is lost: it does not follow",
        ),
        (b"\x81\xa5hello", "the connection to host b is lost: its agent closed"),
    ] {
        let (lab, mut agent) = UnixStream::pair().unwrap();
        agent.write_all(bytes).unwrap();
        drop(agent);
        let error = over(lab).err().expect("no agent").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
