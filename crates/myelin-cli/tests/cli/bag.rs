//! `myelin bag`: recordings that are looked at, mended, cut, merged, compared and exported.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use myelin_bag::{
    BagReader, Channel, MessageHead, Options, Schema, Selection, TopicFormat, Writer,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::python;
use crate::support::{complaint, finish, myelin, signal, wait_for};

/// A folder with recordings.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What is in it.
    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap();
        let names = names.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// `myelin bag …`, run in this folder.
    fn bag(&self, words: &[&str]) -> Output {
        finish(&mut self.command(words))
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = myelin(&["bag"]);
        command.current_dir(self.0.path()).args(words);
        command
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{:?}", output.status))
}

fn objects(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

const START_NS: u64 = 1_795_817_302_000_000_000;

/// Ten seconds of three topics: poses at 10 Hz, a text of ROS 2 at 1 Hz, and images.
fn record(path: &Path, change: impl Fn(u32) -> f64) {
    let mut options = Options::default();
    (options.chunk_bytes, options.has_checksums) = (4096, true);
    options.profile = "ros2".into();
    let mut writer = Writer::create(path, options).unwrap();
    let pose = TopicFormat::new(&Schema::layout("Pose{id: u8 @0, at: [f64; 2] @8} 24"));
    let image = TopicFormat::new(&Schema::layout("(Size{width: u32 @0} 4, [u8] @4)"));
    let text = Schema::new("ros2msg", "std_msgs/msg/String", "string data\n");
    let text = TopicFormat::new(&text);
    let mut add = |topic: &str, format: &TopicFormat, metadata: &[(&str, &str)]| {
        let schema = writer.add_schema(&format.schema().as_schema()).unwrap();
        let mut channel: Channel = format.channel(topic, schema);
        let metadata = metadata.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        channel.metadata.extend(metadata);
        writer.add_channel(&channel).unwrap()
    };
    let latched = [("offered_qos_profiles", "- durability: transient_local")];
    let ids =
        [add("pose", &pose, &[]), add("/chatter", &text, &latched), add("image", &image, &[])];
    for number in 0..100_u32 {
        let log_ns = START_NS + u64::from(number) * 100_000_000;
        let head =
            |channel, sequence| MessageHead { channel, sequence, log_ns, publish_ns: log_ns - 7 };
        let mut sample = [0; 24];
        sample[0] = number as u8;
        sample[8..16].copy_from_slice(&change(number).to_le_bytes());
        sample[16..].copy_from_slice(&f64::from(number).to_le_bytes());
        let message = pose.message(&sample, &mut Vec::new()).concat();
        writer.write(&head(ids[0], number + 1), &[&message]).unwrap();
        if number % 10 == 0 {
            let text = format!("a;{}\0", number / 10);
            let message = [&[0, 1, 0, 0, 4, 0, 0, 0][..], text.as_bytes()];
            writer.write(&head(ids[1], number / 10 + 1), &message).unwrap();
            let sample = [&100_u32.to_le_bytes()[..], &[number as u8; 40_000]].concat();
            let mut length = Vec::new();
            writer.write(&head(ids[2], number), &image.message(&sample, &mut length)).unwrap();
        }
    }
    writer.finish().unwrap();
}

#[test]
fn info_is_read_from_the_summary() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    let output = folder.bag(&["info", "run.mcap"]);
    assert_eq!(code(&output), 0, "{}", complaint(&output));
    let text = stdout(&output);
    for part in [
        "9.900 s, 120 messages",
        "from 2026-11-27T22:08:22Z",
        "to   2026-11-27T22:08:31.900Z",
        "not compressed",
        "profile ros2",
        "TOPIC",
        "std_msgs/msg/String",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let [info] = &objects(&folder.bag(&["info", "run.mcap", "--json"]))[..] else { panic!() };
    assert_eq!((&info["messages"], &info["is_complete"]), (&120.into(), &true.into()));
    assert_eq!(info["start_ns"], START_NS);
    let topics = info["topics"].as_array().unwrap();
    let names: Vec<_> = topics.iter().map(|it| it["topic"].as_str().unwrap()).collect();
    assert_eq!(names, ["/chatter", "image", "pose"]);
    assert_eq!(topics[2]["rate_hz"], 10.0);
    let bytes = topics[1]["bytes"].as_u64().unwrap();
    assert!((400_000..410_000).contains(&bytes), "{bytes}");

    // A file that was cut is read, and says so.
    let whole = fs::read(folder.path("run.mcap")).unwrap();
    fs::write(folder.path("cut.mcap"), &whole[..whole.len() / 2]).unwrap();
    let output = folder.bag(&["info", "cut.mcap"]);
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("myelin bag repair"), "{}", stdout(&output));
}

#[test]
fn bad_files_are_one_line_with_the_path() {
    let folder = Folder::new();
    fs::write(folder.path("text.mcap"), "not a recording").unwrap();
    fs::write(folder.path("empty.mcap"), "").unwrap();
    fs::write(folder.path("secret.mcap"), "").unwrap();
    fs::set_permissions(folder.path("secret.mcap"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::create_dir(folder.path("folder")).unwrap();
    record(&folder.path("run.mcap"), f64::from);
    let before = folder.names();
    let verbs: [&[&str]; 7] = [
        &["info"],
        &["check"],
        &["repair", "OUT"],
        &["cut", "OUT"],
        &["merge", "run.mcap", "-o", "OUT"],
        &["diff", "run.mcap"],
        &["export", "-o", "OUT"],
    ];
    for (file, status) in [
        ("missing.mcap", 3),
        ("text.mcap", 1),
        ("empty.mcap", 1),
        ("folder", 1),
        ("secret.mcap", 1),
    ] {
        // Root may read everything.
        let is_readable = fs::File::open(folder.path(file)).is_ok();
        if file == "secret.mcap" && is_readable {
            continue;
        }
        for verb in verbs {
            let words = [&verb[..1], &[file], &verb[1..]].concat();
            let output = folder.bag(&words);
            // Status 1 of `diff` says that files differ.
            let status = if verb[0] == "diff" && status == 1 { 2 } else { status };
            let text = complaint(&output);
            assert_eq!(code(&output), status, "{words:?}: {text}");
            assert_eq!(text.lines().count(), 1, "{words:?}: {text}");
            assert!(text.starts_with("error: ") && text.contains(file), "{words:?}: {text}");
        }
    }
    assert_eq!(folder.names(), before, "nothing was written");
}

#[test]
fn outputs_are_whole_or_not_there() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    record(&folder.path("old"), f64::from);
    let old = fs::read(folder.path("old")).unwrap();
    let before = folder.names();
    for words in [
        &["repair", "run.mcap", "old"][..],
        &["cut", "run.mcap", "old"],
        &["merge", "run.mcap", "-o", "old"],
        &["export", "run.mcap", "--topic", "pose", "-o", "old"],
    ] {
        let output = folder.bag(words);
        assert_eq!(code(&output), 2, "{words:?}: {}", complaint(&output));
        assert!(complaint(&output).contains("--force overwrites it"), "{}", complaint(&output));
        assert_eq!(
            (fs::read(folder.path("old")).unwrap() == old, folder.names()),
            (true, before.clone())
        );

        // A limit of the size of files is as a disk that is full.
        let mut command = folder.command(words);
        command.arg("--force");
        // SAFETY: only an async-signal-safe call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                let limit = libc::rlimit { rlim_cur: 1000, rlim_max: 1000 };
                match libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let output = finish(&mut command);
        assert_eq!(code(&output), 1, "{words:?}: {}", complaint(&output));
        assert!(complaint(&output).contains("old"), "{}", complaint(&output));
        assert_eq!(
            (fs::read(folder.path("old")).unwrap() == old, folder.names()),
            (true, before.clone())
        );
    }
    let output = folder.bag(&["cut", "run.mcap", "old", "--force", "--topic", "pose"]);
    assert_eq!(code(&output), 0, "{}", complaint(&output));
    assert_ne!(fs::read(folder.path("old")).unwrap(), old);
    let output = folder.bag(&["cut", "run.mcap", "no/such/folder.mcap"]);
    assert_eq!(code(&output), 1);
    assert!(complaint(&output).contains("no/such/folder.mcap"), "{}", complaint(&output));
}

/// The signal comes as soon as the new file is begun.
#[test]
fn ctrl_c_leaves_nothing() {
    let folder = Folder::new();
    // So large that it takes long.
    let mut options = Options::default();
    options.small_bytes_max = 0;
    let mut writer = Writer::create(folder.path("run.mcap"), options).unwrap();
    let topic = "/a".to_owned();
    let channel = writer.add_channel(&Channel { topic, ..Channel::default() }).unwrap();
    for log_ns in 0..60_000 {
        let head = MessageHead { channel, log_ns, ..MessageHead::default() };
        writer.write(&head, &[b"x"]).unwrap();
    }
    drop(writer);
    let is_written = || folder.names().iter().any(|name| name.ends_with(".part"));
    let mut child = folder.command(&["cut", "run.mcap", "out.mcap"]).spawn().unwrap();
    let status = wait_for("the begin of the new file, or its end", || {
        if is_written() {
            signal(child.id(), libc::SIGINT);
            return Some(child.wait().unwrap());
        }
        child.try_wait().unwrap()
    });
    assert!(!is_written(), "{:?}", folder.names());
    // A fast machine may have ended before.
    assert!(status.success() || !folder.path("out.mcap").exists(), "{status}");
}

#[test]
fn broken_files_are_checked_and_repaired() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    let output = folder.bag(&["check", "run.mcap"]);
    assert_eq!((code(&output), stdout(&output)), (0, "run.mcap: right, 120 messages\n".to_owned()));

    let mut bytes = fs::read(folder.path("run.mcap")).unwrap();
    let image = bytes.windows(900).position(|it| it == [50; 900]).unwrap();
    bytes[image] ^= 1;
    fs::write(folder.path("bad.mcap"), &bytes).unwrap();
    let output = folder.bag(&["check", "bad.mcap", "--json"]);
    assert_eq!(code(&output), 3);
    let [found] = &objects(&output)[..] else { panic!() };
    assert_eq!((&found["is_right"], &found["lost_messages"]), (&false.into(), &1.into()));
    let at = found["findings"][0]["at"].as_u64().unwrap();
    assert!((1..image as u64).contains(&at), "{found}");
    let output = folder.bag(&["repair", "bad.mcap", "good.mcap"]);
    assert_eq!(code(&output), 3, "{}", complaint(&output));
    assert!(stdout(&output).contains("good.mcap: 119 messages, 1 lost"), "{}", stdout(&output));
    assert_eq!(code(&folder.bag(&["check", "good.mcap"])), 0);
    let output = folder.bag(&["repair", "run.mcap", "same.mcap", "--json"]);
    assert_eq!((code(&output), &objects(&output)[0]["is_lossless"]), (0, &true.into()));

    // What is made of a broken file says what it lacks.
    let output = folder.bag(&["cut", "bad.mcap", "part.mcap"]);
    assert_eq!(code(&output), 3);
    assert!(complaint(&output).contains("1 part cannot be read"), "{}", complaint(&output));
    fs::write(folder.path("end.mcap"), &bytes[..bytes.len() - 300]).unwrap();
    let output = folder.bag(&["merge", "run.mcap", "end.mcap", "-o", "both.mcap"]);
    assert_eq!(code(&output), 3);
    assert!(complaint(&output).contains("the file is broken"), "{}", complaint(&output));
}

fn read(path: &Path) -> Vec<(String, MessageHead)> {
    let reader = BagReader::open(path).unwrap();
    let channels = &reader.info().definitions.channels;
    let messages = reader.messages(&Selection::default()).unwrap().map(|it| it.unwrap().head);
    messages.map(|head| (channels[&head.channel].topic.clone(), head)).collect()
}

#[test]
fn topics_and_times_are_cut_out() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    for (words, topics, count) in [
        (&["--topic", "pose"][..], &["pose"][..], 100),
        (&["--topic", "chat*", "--topic", "image"], &["/chatter", "image"], 20),
        (&["--exclude", "pose"], &["/chatter", "image"], 20),
        (&["--topic", "pose", "--start", "+1s", "--end", "+2s"], &["pose"], 10),
        (&["--topic", "pose", "--start", "-1s"], &["pose"], 11),
        (&["--topic", "pose", "--end", "2026-11-27T22:08:23Z"], &["pose"], 10),
        (&["--topic", "pose", "--start", "1795817303000000000"], &["pose"], 90),
    ] {
        let words = [&["cut", "run.mcap", "part.mcap", "--force"], words].concat();
        let output = folder.bag(&words);
        assert_eq!(code(&output), 0, "{words:?}: {}", complaint(&output));
        assert_eq!(stdout(&output), format!("part.mcap: {count} messages\n"), "{words:?}");
        let messages = read(&folder.path("part.mcap"));
        assert_eq!(messages.len(), count);
        assert!(messages.iter().all(|(topic, _)| topics.contains(&topic.as_str())), "{words:?}");
    }
    assert_eq!(code(&folder.bag(&["check", "part.mcap"])), 0);
    for how in ["lz4", "zstd"] {
        let words = ["cut", "run.mcap", "part.mcap", "--force", "--compress", how];
        assert_eq!(code(&folder.bag(&words)), 0);
        assert_eq!(read(&folder.path("part.mcap")), read(&folder.path("run.mcap")));
        assert!(stdout(&folder.bag(&["info", "part.mcap"])).contains(how));
    }
    let refused = |words: &[&str], status, part: &str| {
        let output = folder.bag(&[&["cut", "run.mcap", "new.mcap"], words].concat());
        let text = complaint(&output);
        assert_eq!(code(&output), status, "{words:?}: {text}");
        assert!(text.contains(part), "{words:?}: {text}");
        assert!(!folder.path("new.mcap").exists());
    };
    refused(&["--topic", "/chater"], 3, r#"did you mean "/chatter"?"#);
    refused(&["--exclude", "laser*"], 3, "no topic matches");
    refused(&["--start", "yesterday"], 2, "-10s");
    refused(&["--start", "+2s", "--end", "+1s"], 2, "is not before");
    refused(&["--start", "+1h"], 3, "no message is in this part");
}

#[test]
fn files_are_merged_in_order_of_time() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    for (name, words) in [("a.mcap", ["--end", "+5s"]), ("b.mcap", ["--start", "+5s"])] {
        assert_eq!(code(&folder.bag(&[&["cut", "run.mcap", name], &words[..]].concat())), 0);
    }
    let output = folder.bag(&["merge", "b.mcap", "a.mcap", "-o", "both.mcap"]);
    assert_eq!(code(&output), 0, "{}", complaint(&output));
    let reader = BagReader::open(folder.path("both.mcap")).unwrap();
    assert_eq!(reader.info().definitions.channels.len(), 3);
    assert_eq!(reader.info().profile, "ros2");
    let metadata = reader.info().definitions.channels.values().map(|it| &it.metadata);
    assert_eq!(metadata.filter(|it| it.contains_key("offered_qos_profiles")).count(), 1);
    // The second part begins with the latched message of before.
    let output = folder.bag(&["diff", "run.mcap", "both.mcap", "--exclude", "chatter"]);
    assert_eq!((code(&output), stdout(&output)), (0, "the same: 2 topics\n".to_owned()));
    let [chatter] = &objects(&folder.bag(&["diff", "run.mcap", "both.mcap", "--json"]))[..] else {
        panic!()
    };
    assert_eq!(chatter["messages"], serde_json::json!([10, 11]));
}

#[test]
fn differences_are_found() {
    let folder = Folder::new();
    record(&folder.path("a.mcap"), f64::from);
    record(&folder.path("b.mcap"), |number| {
        f64::from(number) + if number == 42 { 0.25 } else { 1e-9 }
    });
    let output = folder.bag(&["diff", "a.mcap", "b.mcap"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 1, "{}", complaint(&output));
    assert!(text.contains("at[]: 1 differ by up to 0.25; first pair 42: 42, 42.25"), "{text}");
    assert!(text.ends_with("different: 1 of 3 topics\n"), "{text}");
    let output = folder.bag(&["diff", "a.mcap", "b.mcap", "--tolerance", "0", "--json"]);
    let [pose] = &objects(&output)[..] else { panic!("{}", stdout(&output)) };
    assert_eq!((&pose["topic"], &pose["different"]), (&"pose".into(), &100.into()));
    for words in [["--tolerance", "0.01"], ["--exclude", "pose"], ["--topic", "image"]] {
        let output = folder.bag(&[&["diff", "a.mcap", "b.mcap"], &words[..]].concat());
        assert_eq!(code(&output), 0, "{words:?}: {}", stdout(&output));
    }
    folder.bag(&["cut", "b.mcap", "c.mcap", "--exclude", "image", "--start", "+1s"]);
    let output = folder.bag(&["diff", "a.mcap", "c.mcap", "--all"]);
    let text = stdout(&output);
    assert!(
        text.contains("it is only in A") && text.contains("different: 2 of 3 topics"),
        "{text}"
    );
    let output = folder.bag(&["diff", "a.mcap", "a.mcap", "--tolerance", "-1"]);
    assert_eq!(code(&output), 2);
    assert_eq!(code(&folder.bag(&["diff", "a.mcap", "a.mcap", "--pair", "order", "--all"])), 0);
}

#[test]
fn messages_become_tables() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    let output = folder.bag(&["export", "run.mcap", "-o", "tables"]);
    assert_eq!(code(&output), 0, "{}", complaint(&output));
    assert!(complaint(&output).contains("bytes are left out (slice)"), "{}", complaint(&output));
    let text = fs::read_to_string(folder.path("tables/pose.csv")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        (lines[0], lines.len()),
        ("log_time_ns,publish_time_ns,sequence,id,at[0],at[1]", 101)
    );
    let (log_ns, publish_ns) = (START_NS + 300_000_000, START_NS + 300_000_000 - 7);
    assert_eq!(lines[4], format!("{log_ns},{publish_ns},4,3,3,3"));
    let text = fs::read_to_string(folder.path("tables/chatter.csv")).unwrap();
    assert!(text.lines().nth(2).unwrap().ends_with(",2,a;1"), "{text}");

    let words = ["export", "run.mcap", "--topic", "pose", "--field", "at[1]", "--field", "id"];
    let output = folder.bag(&[&words[..], &["--end", "+1s", "-o", "one.csv"]].concat());
    assert_eq!(code(&output), 0, "{}", complaint(&output));
    let text = fs::read_to_string(folder.path("one.csv")).unwrap();
    assert_eq!(text.lines().next(), Some("log_time_ns,publish_time_ns,sequence,at[1],id"));
    assert_eq!(text.lines().count(), 11);

    for (words, status, part) in [
        (&["--topic", "pose", "--field", "att", "-o", "new"][..], 2, r#"did you mean "at"?"#),
        (&["-o", "new.parquet"], 2, "name a folder"),
        (&["--topic", "pos", "-o", "new.csv"], 3, r#"did you mean "pose"?"#),
        (&["--topic", "pose", "--start", "+1h", "-o", "new.csv"], 3, "no message to export"),
        (&["--topic", "pose", "--format", "xml", "-o", "new"], 2, "parquet"),
    ] {
        let output = folder.bag(&[&["export", "run.mcap"], words].concat());
        assert_eq!(code(&output), status, "{words:?}: {}", complaint(&output));
        assert!(complaint(&output).contains(part), "{words:?}: {}", complaint(&output));
        assert!(!folder.names().iter().any(|name| name.starts_with("new")), "{words:?}");
    }
}

/// Another program reads the types and the values.
#[test]
fn tables_of_parquet_are_read_by_polars() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    for topic in ["pose", "image", "/chatter"] {
        let name = topic.trim_start_matches('/').to_owned() + ".parquet";
        let output = folder.bag(&["export", "run.mcap", "--topic", topic, "-o", &name]);
        assert_eq!(code(&output), 0, "{}", complaint(&output));
    }
    lists(&folder.path("lists.mcap"));
    let output = folder.bag(&["export", "lists.mcap", "--format", "parquet", "-o", "lists"]);
    assert_eq!(code(&output), 0, "{}", complaint(&output));
    let Some(mut command) = python::python("crates/myelin-cli/tests/cli/bag.py") else { return };
    let output = finish(command.current_dir(folder.0.path()));
    assert!(output.status.success(), "{}{}", stdout(&output), complaint(&output));
}

/// Sequences of different lengths, and JSON.
fn lists(path: &Path) {
    let mut writer = Writer::create(path, Options::default()).unwrap();
    let list = TopicFormat::new(&Schema::layout("[i16]"));
    let schema = writer.add_schema(&list.schema().as_schema()).unwrap();
    let ids = [
        writer.add_channel(&list.channel("list", schema)).unwrap(),
        writer
            .add_channel(&Channel {
                topic: "json".into(),
                encoding: "json".into(),
                ..Channel::default()
            })
            .unwrap(),
    ];
    for number in 0..10_u16 {
        let head = |channel| MessageHead {
            channel,
            sequence: number.into(),
            log_ns: number.into(),
            publish_ns: 0,
        };
        let numbers = (0..number % 4).flat_map(|it| (-10 * it.cast_signed()).to_le_bytes());
        let sample: Vec<u8> = numbers.collect();
        writer.write(&head(ids[0]), &list.message(&sample, &mut Vec::new())).unwrap();
        let json = match number {
            3 => r#"{"x": null, "name": "none"}"#.to_owned(),
            _ => format!(r#"{{"x": {number}.5, "name": "n{number}", "in": {{"ok": true}}}}"#),
        };
        writer.write(&head(ids[1]), &[json.as_bytes()]).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_terminal_of_40_columns_and_a_closed_pipe_are_enough() {
    let folder = Folder::new();
    record(&folder.path("run.mcap"), f64::from);
    record(&folder.path("other.mcap"), |_| 0.0);
    for words in
        [&["info", "run.mcap"][..], &["check", "run.mcap"], &["diff", "run.mcap", "other.mcap"]]
    {
        let mut command = folder.command(words);
        command.env("TERM", "dumb").env("LC_ALL", "de_DE.ISO-8859-1");
        let (mut master, slave) = crate::support::pty::terminal(24, 40);
        command.stdout(Stdio::from(slave.try_clone().unwrap()));
        assert!(command.status().unwrap().code().unwrap() <= 1);
        drop((command, slave));
        let mut text = Vec::new();
        // On Linux its end is an error.
        let _ = master.read_to_end(&mut text);
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains('\x1b'), "{text}");
        assert!(text.lines().all(|line| line.trim_end().chars().count() <= 40), "{text}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = finish(folder.command(words).stdout(writer));
        assert!(code(&output) <= 1 && complaint(&output).is_empty(), "{}", complaint(&output));
    }
}

/// Names in a file may be anybody's.
#[test]
fn names_of_a_file_do_nothing_to_the_terminal() {
    let folder = Folder::new();
    let mut options = Options::default();
    options.profile = "\x1b[2Jprofile".into();
    let mut writer = Writer::create(folder.path("bad.mcap"), options).unwrap();
    let schema = Schema::new("\x1b[31menc", "\x1b[31mtype", "");
    let schema = writer.add_schema(&schema).unwrap();
    let topic = "/\x1b]0;title\x07".to_owned();
    let encoding = "\x1b[31m".to_owned();
    let channel = Channel { schema, topic, encoding, ..Channel::default() };
    let channel = writer.add_channel(&channel).unwrap();
    for log_ns in [5, 4] {
        let head = MessageHead { channel, log_ns, ..MessageHead::default() };
        writer.write(&head, &[b"x"]).unwrap();
    }
    writer.finish().unwrap();
    for words in [
        &["info", "bad.mcap"][..],
        &["info", "bad.mcap", "--json"],
        &["check", "bad.mcap"],
        &["diff", "bad.mcap", "bad.mcap", "--all"],
        &["diff", "bad.mcap", "bad.mcap", "--all", "--json"],
        &["cut", "bad.mcap", "out.mcap"],
        &["export", "bad.mcap", "-o", "tables"],
        &["export", "bad.mcap", "--topic", "/\u{1b}*", "-o", "tables"],
    ] {
        let output = folder.bag(words);
        assert!(code(&output) <= 3, "{words:?}");
        let text = stdout(&output) + &complaint(&output);
        assert!(!text.contains(['\x1b', '\x07']), "{words:?}: {text:?}");
    }
}
