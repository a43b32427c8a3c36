use super::*;

const ROUNDTRIP: &str = "name = \"x\"\n\n[workload]\nkind = \"roundtrip\"\npayload_bytes = [0, 64]\n\
    rate_hz = [1, \"max\"]\nmessages = 100\n\n[plan]\nsystems = [\"os.*\"]\n\
    tunings = [\"default\"]\ntopology = \"two-processes\"\nruns = 3\n";

const IMAGE: &str = "name = \"x\"\n\n[workload]\nkind = \"image\"\n\
    frames = [\"1440x1080\", \"320x240\"]\nmessages = 100\n\n[plan]\nsystems = [\"os.*\"]\n\
    tunings = [\"default\"]\ntopology = \"any\"\nruns = 3\n";

const MODULES: &str = "name = \"x\"\n\n[workload]\nkind = \"stream\"\nduration_s = 5\n\
    warmup_s = 0.5\nmodules = [\n  { name = \"a\", payload_bytes = 64, rate_hz = 10 },\n  \
    { name = \"b\", payload_bytes = 64, rate_hz = 100 },\n]\n\n[plan]\nsystems = [\"os.*\"]\n\
    tunings = [\"default\"]\ntopology = \"any\"\nruns = 3\n";

const HOSTS: &str = "name = \"x\"\n\n[workload]\nkind = \"stream\"\npayload_bytes = [64]\n\
    rate_hz = [100]\nduration_s = 10.0\n\n[plan]\nsystems = [\"os.*\"]\n\
    tunings = [\"default\"]\ntopology = \"two-hosts\"\nruns = 3\n\n[network]\n";

fn stream() -> String {
    IMAGE
        .replace("\"image\"", "\"stream\"\nrate_hz = [30, 100]")
        .replace("frames = [\"1440x1080\", \"320x240\"]", "payload_bytes = [64]\narrivals = []")
}

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(Source::new("x.toml", text)).map_err(|error| error.to_string())
}

fn workload(text: &str) -> Workload {
    parse(text).unwrap().workload
}

fn error_of(text: &str) -> String {
    parse(text).unwrap_err()
}

/// Each case names a text to replace, its replacement, and the start of the expected error.
fn refused(text: &str, cases: &[(&str, &str, &str)]) {
    for (good, bad, expected) in cases {
        assert!(text.contains(good), "{good}");
        let error = error_of(&text.replacen(good, bad, 1));
        let expected = format!("x.toml:{expected}");
        assert!(error.starts_with(&expected), "{error:?} does not start with {expected:?}");
        assert!(!error.contains('\n'), "{error:?}");
    }
}

const REPLAY: &str = "name = \"x\"\n\n[workload]\nkind = \"replay\"\n\
    recording = { file = \"a.mcap\", topics = [\"/a\"], start_s = 1, end_s = 2 }\n\n[plan]\n\
    systems = [\"os.*\"]\ntunings = [\"default\"]\ntopology = \"any\"\nruns = 3\n";

#[test]
fn a_replay_has_a_recording_instead_of_sizes_and_rates() {
    let replay = workload(REPLAY);
    let recording = replay.recording.unwrap();
    assert_eq!((recording.file.as_str(), recording.speed), ("a.mcap", 1.0));
    assert_eq!((replay.duration_s, replay.warmup_s), (60.0, 1.0));
    let two_hosts = REPLAY.replace("\"any\"", "\"two-hosts\"");
    assert!(error_of(&two_hosts).contains("cannot be run across hosts"));
    refused(
        REPLAY,
        &[
            (
                "recording =",
                "rate_hz = [1]\nrecording =",
                "5: rate_hz: not a key of kind \"replay\"",
            ),
            ("recording =", "messages = 1\nrecording =", "5: messages: not a key of kind"),
            ("end_s = 2", "end_s = 1", "5: end_s: 1 is not after start_s, 1"),
            ("end_s = 2", "speed = 0", "5: speed: 0 is out of range"),
            ("end_s = 2", "until = 0", "5: unknown field `until`"),
            ("recording = {", "# {", "3: recording: nothing given"),
        ],
    );
}

#[test]
fn every_built_in_scenario_parses() {
    for scenario in Scenario::built_in() {
        assert!(!scenario.about.is_empty(), "{}", scenario.name);
    }
}

#[test]
fn a_first_answer_gives_all_systems_the_same_time() {
    let workload = Scenario::load("quick").unwrap().workload;
    assert!(workload.warmup_ns(None) > 0 && workload.duration_s > 0.0);
    // A round trip of one microsecond still fills the time.
    assert!(workload.messages as f64 >= workload.duration_s * 1e6);
    let slow = workload.seconds_at_most(Some(4_000.0)).unwrap();
    assert_eq!(slow, workload.seconds_at_most(Some(1e6)).unwrap());
    // A run needs only a few megabytes of memory and disk.
    assert!(workload.records_at_most(None) * 64 < 8 << 20);
}

#[test]
fn a_good_scenario_is_read_whole() {
    let scenario = parse(ROUNDTRIP).unwrap();
    assert_eq!(scenario.workload.payload_bytes, [0, 64]);
    assert_eq!(scenario.workload.rate_hz, [Some(1.0), None]);
    assert_eq!((scenario.workload.touch, scenario.plan.runs), (Touch::Stamps, 3));
    let header = ROUNDTRIP.replace("[plan]", "touch = \"header\"\n[plan]");
    assert_eq!(workload(&header).touch, Touch::Header);
    let unsaid = ROUNDTRIP.replace("topology = \"two-processes\"\n", "");
    assert_eq!(parse(&unsaid).unwrap().plan.topology, [Topology::TwoProcesses]);
}

#[test]
fn a_plan_of_an_earlier_version_is_read_and_ours_is_read_again() {
    let scenario = parse(ROUNDTRIP).unwrap();
    let mut json = serde_json::to_value(&scenario).unwrap();
    assert!(json["plan"].get("precision").is_none(), "absent, not null");
    let workload = json["workload"].as_object_mut().unwrap();
    assert!(workload.remove("touch").is_some() && workload.remove("subscribers").is_some());
    json["plan"]["topology"] = "two-processes".into();
    let earlier: Scenario = serde_json::from_value(json).unwrap();
    assert_eq!(earlier.workload.subscribers, [1]);
    assert_eq!(earlier.plan.topology, [Topology::TwoProcesses]);
    assert!(earlier.workload.frames.is_empty() && earlier.workload.arrivals.is_empty());
    for scenario in Scenario::built_in() {
        let json = serde_json::to_value(&scenario).unwrap();
        let again: Scenario = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(again).unwrap(), json);
    }
}

#[test]
fn errors_name_file_line_key_and_remedy() {
    refused(
        ROUNDTRIP,
        &[
            ("\"roundtrip\"", "\"roundtrp\"", "4: unknown variant `roundtrp`"),
            ("messages = 100", "mesages = 100", "7: unknown field `mesages`; did you mean `messag"),
            ("[1, \"max\"]", "[-5]", "6: rate_hz: -5 is out of range; give messages a second, ab"),
            ("[1, \"max\"]", "[\"fast\"]", "6: rate_hz: \"fast\" is out of range"),
            ("[0, 64]", "[0,\n -1]", "6: payload_bytes: -1 is out of range; use 0 to 1073741824"),
            ("runs = 3", "runs = 0", "13: runs: 0 is out of range; use 1 to 1000"),
            ("name = \"x\"", "name = \"a/b\"", "1: name: \"a/b\" is not a plain word; use up to 6"),
            ("[\"default\"]", "[\"fast\"]", "11: unknown variant `fast`"),
            ("runs = 3", "runs = \"many\"", "13: invalid type"),
            ("[plan]", "[plan", "9: "),
        ],
    );
}

#[test]
fn a_misspelt_key_is_reported_first() {
    let text = ROUNDTRIP.replace("runs = 3\n", "").replace("kind =", "knid =");
    refused(
        &text,
        &[("", "", "4: unknown field `knid`; did you mean `kind`?; expected one of `k")],
    );
    let text = ROUNDTRIP.replace("[0, 64]", "[-1]").replace("tunings", "tunnings");
    refused(&text, &[("", "", "11: unknown field `tunnings`; did you mean `tunings`?")]);
    let first = "7: unknown field `mesages`; did you mean `messages`?";
    refused(&text, &[("messages", "mesages", first)]);
}

#[test]
fn a_missing_key_is_reported_with_its_choices() {
    refused(
        ROUNDTRIP,
        &[
            ("kind = \"roundtrip\"\n", "", "3: kind: nothing given; use one of \"roundtrip\""),
            ("messages = 100", "", "3: messages: nothing given; give messages, duration_s or both"),
            ("payload_bytes = [0, 64]\n", "", "3: payload_bytes: nothing given; name at least one"),
            ("runs = 3\n", "", "9: runs: nothing given; for instance 5"),
            ("systems = [\"os.*\"]\n", "", "9: systems: nothing given; for instance"),
            ("tunings = [\"default\"]\n", "", "9: tunings: nothing given; for instance"),
        ],
    );
}

#[test]
fn a_key_of_another_workload_kind_is_refused() {
    let publish = ROUNDTRIP.replace("\"roundtrip\"", "\"publish\"\nsubscribers = [0, 8, 8]");
    refused(
        ROUNDTRIP,
        &[
            (
                "messages = 100",
                "messages = 100\nsubscribers = [1]",
                "8: subscribers: not a key of kind \"roundtrip\"; leave it out: it belongs to kind \
                 \"publish\"",
            ),
            ("messages", "touch = \"headers\"\nmessages", "7: unknown variant `headers`; did you"),
        ],
    );
    refused(
        &publish,
        &[
            (
                "messages",
                "reply_timeout_ms = 10\nmessages",
                "8: reply_timeout_ms: not a key of kind \"publish\"; leave it out: its messages \
                 have no answers",
            ),
            ("[0, 8, 8]", "[-1]", "5: subscribers: -1 is out of range; use 0 to 4096"),
            ("[0, 8, 8]", "[]", "5: subscribers: nothing given"),
        ],
    );
    let read = workload(&publish);
    assert_eq!((read.kind, &read.subscribers[..]), (Kind::Publish, &[0, 8][..]));
    let unsaid = publish.replace("rate_hz = [1, \"max\"]\n", "");
    assert_eq!(workload(&unsaid).rate_hz, [Some(20_000.0)]);
}

#[test]
fn a_warm_up_is_messages_or_time() {
    let timed = workload(&ROUNDTRIP.replace("messages = 100", "messages = 100\nwarmup_s = 0.5"));
    assert_eq!((timed.warmup_at(Some(10.0)), timed.warmup_ns(Some(10.0))), (5, 0));
    assert_eq!((timed.warmup_at(None), timed.warmup_ns(None)), (5_000_000, 500_000_000));
    let counted = workload(&ROUNDTRIP.replace("[1, \"max\"]", "[\"max\"]"));
    assert_eq!((counted.warmup_at(None), counted.warmup_ns(None)), (500, 0));
}

#[test]
fn the_default_warm_up_at_a_low_rate_is_a_second() {
    let warmup =
        |text: &str| [Some(30.0), Some(100.0), None].map(|rate| workload(text).warmup_at(rate));
    assert_eq!(warmup(&stream()), [30, 100, 500]);
    assert_eq!(warmup(IMAGE)[0], 30);
    let slow = ROUNDTRIP.replace("[1, ", "[30, ");
    assert_eq!(warmup(&slow)[..2], [30, 100]);
    assert_eq!(warmup(&slow.replace("roundtrip", "publish"))[..2], [30, 100]);
    assert_eq!(warmup(&slow.replace("[30, ", "[500, ")), [500, 500, 500]);
    let given = stream().replace("messages =", "warmup_messages = 500\nmessages =");
    assert_eq!(warmup(&given), [500, 500, 500]);
}

#[test]
fn frames_give_their_size_and_a_camera_its_rate() {
    let Scenario { workload, plan, .. } = parse(IMAGE).unwrap();
    assert_eq!(workload.payload_bytes, [4_665_600, 230_400]);
    assert_eq!(workload.frames[1], Frame { width: 320, height: 240 });
    assert_eq!(workload.rate_hz, [Some(30.0)]);
    assert_eq!(plan.topology, [Topology::TwoProcesses, Topology::OneProcess]);
    refused(
        IMAGE,
        &[
            ("1440x1080", "1440", "5: frames: \"1440\" is out of range; give width x height"),
            ("1440x1080", "0x9", "5: frames: \"0x9\" is out of range"),
            ("1440x1080", "240x320", "5: frames: 320x240 has the same number of bytes as"),
            ("[\"1440x1080\", \"320x240\"]", "[]", "5: frames: nothing given"),
            ("messages", "payload_bytes = [1]\nmessages", "6: payload_bytes: not a key of kind"),
            ("messages", "touch = \"header\"\nmessages", "6: touch: not a key of"),
            ("messages", "publishers = [1]\nmessages", "6: publishers: not a key"),
            ("messages", "subscribers = [0]\nmessages", "6: subscribers: 0 is out"),
            ("\"image\"", "\"stream\"", "5: frames: not a key of kind \"stream\""),
            ("\"any\"", "\"three\"", "11: topology: unknown \"three\"; use \"two-"),
            ("\"any\"", "[]", "11: topology: nothing given; use \"two-"),
        ],
    );
}

#[test]
fn arrivals_are_cases_with_names() {
    let with = |cases: &str| stream().replace("= []", &format!("= [{cases}]"));
    let read = workload(&with(
        "{ name = \"even\" }, { name = \"late\", jitter_percent = 5.0, missing_one_in = 10, \
         period_factor = 0.5 }",
    ));
    assert_eq!(read.arrivals[0].arrivals, Arrivals::default());
    let late = read.arrivals[1].arrivals;
    assert_eq!((late.jitter_percent, late.missing_one_in), (5.0, 10));
    let timed = Workload { messages: 0, duration_s: 1.0, ..read };
    assert_eq!(timed.records_at_most(Some(30.0)), 62, "the period halves in the middle");
    for (cases, expected) in [
        ("{ name = \"a b\" }", "name: \"a b\" is not a plain word; use up to 32"),
        ("{ name = \"a\" }, { name = \"a\" }", "arrivals: two cases are named \"a\""),
        ("{ name = \"a\", jitter_percent = 60.0 }", "jitter_percent: 60.0 is out of range"),
        ("{ name = \"a\", missing_one_in = 1 }", "missing_one_in: 1 is out of range"),
        ("{ name = \"a\", period_factor = 0.0 }", "period_factor: 0.0 is out of range"),
        (
            "{ name = \"a\", jiter_percent = 1 }",
            "unknown field `jiter_percent`; did you mean `jitter_percent`?; expected one of `name`",
        ),
    ] {
        refused(&with(cases), &[("", "", &format!("7: {expected}"))]);
    }
}

#[test]
fn an_uneven_schedule_needs_a_rate() {
    let text = stream().replace("[30, 100]", "[30, \"max\"]");
    let even = text.replace("= []", "= [{ name = \"even\" }]");
    assert_eq!(workload(&even).arrivals.len(), 1);
    let drift = text.replace("= []", "= [{ name = \"drift\", drift_ppm_per_s = 10.0 }]");
    refused(&drift, &[("", "", "7: arrivals: \"drift\" changes a rate")]);
}

#[test]
fn a_module_has_a_size_and_a_rate() {
    let read = workload(MODULES);
    assert_eq!(read.modules[1].name, "b");
    assert_eq!((read.warmup_at(Some(10.0)), read.warmup_at(Some(100.0))), (5, 50));
    refused(
        MODULES,
        &[
            ("\"b\"", "\"a\"", "9: modules: two are named \"a\""),
            ("\"b\"", "\"b c\"", "9: name: \"b c\" is not a plain word"),
            (
                "rate_hz = 100 ",
                "rate_hz = 10 ",
                "9: modules: \"b\" sends the same messages as \"a\"",
            ),
            ("rate_hz = 100 ", "rate_hz = 0 ", "9: rate_hz: 0 is out of range"),
            ("[plan]", "rate_hz = [1]\n[plan]", "12: rate_hz: modules set their own"),
            ("warmup_s", "warmup_messages = 5\nwarmup_s", "7: warmup_s: warmup_messages is"),
            ("warmup_s", "depth = 0\nwarmup_s", "6: depth: 0 is out of range"),
            ("warmup_s", "topics = []\nwarmup_s", "6: topics: nothing given"),
            ("warmup_s", "publishers = [0]\nwarmup_s", "6: publishers: 0 is out of range"),
            (
                "warmup_s",
                "reliability = \"relible\"\nwarmup_s",
                "6: unknown variant `relible`; did you mean `reliable`?",
            ),
            ("\"stream\"\nduration_s = 5\nwarmup_s = 0.5", "\"flood\"", "5: modules: not a key of"),
            ("\"stream\"\nduration_s = 5", "\"startup\"", "5: warmup_s: not a key of kind \"start"),
        ],
    );
}

#[test]
fn runs_max_and_interval_percent_need_each_other() {
    let with = |keys: &str| ROUNDTRIP.replace("runs = 3", keys);
    let asked = |keys: &str| parse(&with(keys)).unwrap().plan.precision;
    assert_eq!(asked("runs = 5"), None);
    let few = Precision { interval_percent: 0.5, runs_max: 5 };
    assert_eq!(asked("runs = 3\nruns_max = 5\ninterval_percent = 0.5"), Some(few));
    let mut quick = Scenario::load("quick").unwrap();
    quick.plan.precision = Some(few);
    quick.apply_quick();
    assert_eq!(quick.plan.precision, None, "a first impression repeats nothing");
    for (keys, expected) in [
        (
            "runs = 5\nruns_max = 15",
            "14: runs_max: without interval_percent, the lab does not know \
                                     when fewer runs are enough;",
        ),
        (
            "runs = 5\ninterval_percent = 5",
            "14: interval_percent: without runs_max, the number of \
                                            runs has no limit",
        ),
        (
            "runs = 9\nruns_max = 8\ninterval_percent = 5",
            "14: runs_max: 8 is less than runs, 9; use a runs_max of at least runs",
        ),
        (
            "runs = 3\ninterval_percent = 5\nruns_max = 4",
            "15: runs_max: 4 runs have no interval; use at least 5,",
        ),
        (
            "runs = 3\ninterval_percent = 0\nruns_max = 9",
            "14: interval_percent: 0 is out of range; use 0.01 to 100",
        ),
        (
            "runs = 3\ninterval_percent = nan\nruns_max = 9",
            "14: interval_percent: nan is out of range",
        ),
        (
            "runs = 3\ninterval_percent = 5\nruns_max = 2000",
            "15: runs_max: 2000 is out of range; use 1 to 1000",
        ),
        ("runs = 3\nrun_max = 9", "14: unknown field `run_max`; did you mean `runs_max"),
    ] {
        refused(&with(keys), &[("", "", expected)]);
    }
}

#[test]
fn link_keys_default_to_an_unshaped_link() {
    let link = |keys: &str| parse(&format!("{HOSTS}{keys}")).unwrap().network.unwrap();
    assert_eq!(link(""), Link::default());
    assert_eq!(link("link = \"1gbit\"").rate_mbit, 1_000.0);
    assert_eq!(link("mtu = 9000").mtu, 9_000);
    let slow = link("rate_mbit = 50\ndelay_ms = 4\njitter_ms = 1\nloss_percent = 0.5");
    assert_eq!((slow.rate_mbit, slow.delay_ms, slow.jitter_ms), (50.0, 4.0, 1.0));
    let keys: Vec<_> = slow.emulated_keys().collect();
    assert_eq!(keys, ["delay_ms", "jitter_ms", "loss_percent"]);
    // What the kernel does is left to it.
    assert!(!link("rate_mbit = 50\nrouted = true\nmtu = 1400").is_emulated());
    assert!(link("delay_ms = 1\nreorder_percent = 2").is_emulated());
    let cut = link("cut = { at_s = 2, for_s = 5 }").cut.unwrap();
    assert_eq!((cut.at_s, cut.for_s), (2.0, 5.0));
    for (keys, expected) in [
        ("lnk = \"1gbit\"", "16: unknown field `lnk`; did you mean `link`?"),
        ("link = \"1gibt\"", "16: no link `1gibt`; did you mean `1gbit`?; use unlimited"),
        ("link = \"1gbit\"\nrate_mbit = 5", "17: rate_mbit: link = \"1gbit\" is given"),
        ("rate_mbit = 0", "16: rate_mbit: 0 is out of range; use 0.01 to"),
        ("delay_ms = -1", "16: delay_ms: -1 is out of range; use 0 to"),
        ("jitter_ms = 1", "16: jitter_ms: 1 is more than delay_ms, 0; "),
        ("routed = 1", "16: invalid type"),
        ("reorder_percent = 1", "16: reorder_percent: a frame overtakes others by having no delay"),
        ("reorder_percent = 200", "16: reorder_percent: 200 is out of range; use 0 to 100"),
        ("loss_percent = 101", "16: loss_percent: 101 is out"),
        ("mtu = 100", "16: mtu: 100 is out of range; use 576 to 65535"),
        ("cut = { at_s = 2 }", "16: missing field `for_s`"),
        ("cut = { at_s = 2, for_s = 0 }", "16: for_s: 0 is out of range"),
        (
            "cut = { at_s = 11, for_s = 5 }",
            "16: cut: the cut ends after 16 s, but the run after 11",
        ),
    ] {
        refused(&format!("{HOSTS}{keys}"), &[("", "", expected)]);
    }
}

#[test]
fn a_round_trip_must_survive_its_cut() {
    let text = format!("{HOSTS}cut = {{ at_s = 2, for_s = 5 }}");
    let text = text.replace("\"stream\"", "\"roundtrip\"");
    let error = error_of(&text);
    assert!(error.contains("x.toml:16: cut: in 5 s ping loses more than"), "{error}");
    assert!(error.contains("reply_timeout_ms to 1001"), "{error}");
    parse(&text.replace("duration_s", "reply_timeout_ms = 1001\nduration_s")).unwrap();
}

#[test]
fn two_hosts_cannot_be_combined_and_only_they_have_a_link() {
    refused(
        HOSTS,
        &[
            ("\"two-hosts\"", "\"two-processes\"", "15: [network]: all processes are on one host"),
            (
                "\"two-hosts\"",
                "[\"two-hosts\", \"one-process\"]",
                "12: topology: \"two-hosts\" cannot be combined with another topology",
            ),
            (
                "\"stream\"\npayload_bytes = [64]\nrate_hz = [100]",
                "\"flood\"\npayload_bytes = [64]",
                "11: topology: kind \"flood\" cannot be",
            ),
        ],
    );
}

#[test]
fn ping_and_pong_need_different_cpus() {
    let with = |keys: &str| format!("{ROUNDTRIP}[tuning]\n{keys}");
    assert_eq!(parse(&with("ping_cpu = 1")).unwrap().tuning.priority, 80);
    refused(&with("ping_cpu = 1\npong_cpu = 1"), &[("", "", "16: pong_cpu: the same as ping_cpu")]);
    refused(&with("priority = 100"), &[("", "", "15: priority: 100 is out of range; use 1 to 99")]);
}

const LOADED: &str = "name = \"x\"\n\n[workload]\nkind = \"stream\"\npayload_bytes = [64]\n\
    rate_hz = [1000]\nduration_s = 10\nloads = [\n  \
    { name = \"images\", payload_bytes = 1048576, rate_hz = 5, reliability = \"reliable\", depth = 4 },\n  \
    { name = \"points\", payload_bytes = 65536, rate_hz = 10 },\n]\n\n[plan]\n\
    systems = [\"os.*\"]\ntunings = [\"default\"]\nruns = 3\n";

#[test]
fn a_load_is_a_stream_as_long_as_the_run_beside_it() {
    let workload = workload(LOADED);
    let points = &workload.loads[1];
    assert_eq!((points.depth, points.reliability), (DEPTH_DEFAULT, Reliability::BestEffort));
    let load = workload.of_load(&workload.loads[0], Some(1000.0));
    assert_eq!(
        (load.kind, load.payload_bytes, load.rate_hz),
        (Kind::Stream, vec![1 << 20], vec![Some(5.0)])
    );
    assert_eq!((load.reliability, load.depth), (Reliability::Reliable, 4));
    assert_eq!((load.warmup_s, load.duration_s, load.messages), (1.0, 10.0, 0));
    let by_count =
        parse(&LOADED.replace("duration_s = 10", "messages = 5000\nwarmup_messages = 500"));
    let by_count = by_count.unwrap().workload;
    let load = by_count.of_load(&by_count.loads[0], Some(1000.0));
    let seconds = (load.warmup_s, load.duration_s);
    assert_eq!(seconds, (0.5, 5.0), "the messages of the run take as long");
    let round_trips =
        LOADED.replace("stream", "roundtrip").replace("= 10\n", "= 10\nwarmup_s = 0.5\n");
    let round_trips = parse(&round_trips).unwrap().workload;
    let load = round_trips.of_load(&round_trips.loads[0], Some(1000.0));
    assert_eq!((load.warmup_s, load.warmup_messages, load.duration_s), (0.0, 1, 10.5));
}

#[test]
fn a_load_has_a_name_and_a_run_of_known_length() {
    refused(
        LOADED,
        &[
            ("depth = 4", "dept = 4", "9: unknown field `dept`; did you mean `depth`?"),
            ("depth = 4", "depth = 0", "9: depth: 0 is out of range"),
            ("rate_hz = 5", "rate_hz = \"max\"", "9: "),
            ("\"points\"", "\"images\"", "10: loads: two are named \"images\""),
            ("\"points\"", "\"a b\"", "10: name: \"a b\" is not a plain word"),
            ("rate_hz = 10 ", "rate_hz = 0.05 ", "10: rate_hz: \"points\" sends nothing in 10 s"),
            ("\"stream\"", "\"flood\"", "6: rate_hz: not a key of kind \"flood\""),
            (
                "[1000]\nduration_s = 10",
                "[\"max\"]\nmessages = 10",
                "9: loads: nothing says how long",
            ),
        ],
    );
    let back_to_back = LOADED.replace("stream", "roundtrip").replace("rate_hz = [1000]\n", "");
    assert!(error_of(&back_to_back).contains("give duration_s and warmup_s"));
    parse(&back_to_back.replace("duration_s = 10", "duration_s = 10\nwarmup_s = 0.1")).unwrap();
    let startup =
        LOADED.replace("rate_hz = [1000]\nduration_s = 10\n", "").replace("stream", "startup");
    let error = error_of(&startup);
    let expected = "it belongs to kind \"roundtrip\", \"stream\", \"image\"";
    assert!(error.contains("loads: not a key") && error.contains(expected), "{error}");
}
