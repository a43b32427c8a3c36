use super::*;

fn title(cell: &str, run: u32) -> Title {
    Title { scenario: "quick".into(), cell: cell.into(), run, runs: 3 }
}

fn finished(verdict: Verdict) -> Finished {
    Finished { p50_us: Some(9.413), p99_us: None, cpu_percent: Some(88.14), lost: 12_345, verdict }
}

fn figures() -> Figures {
    Figures {
        of: "round trip",
        p50_us: Some(19.2),
        p99_us: None,
        lost: Some((8192, 3)),
        messages: 9000,
        messages_all: 20_000,
        is_warming_up: false,
        cpu_percent: vec![("ping".into(), 44.1), ("pong".into(), 3.456), ("iox-roudi".into(), 1.0)],
        part: 0.45,
    }
}

/// In the third of nine runs.
fn state() -> State {
    let mut state = State::default();
    state.begin(title("os.pipe default 64B", 2));
    state.finish(Some(finished(Verdict::Valid)));
    state.begin(title("os.udp tuned 1048576B-1000Hz", 1));
    state.finish(Some(finished(Verdict::Invalid)));
    state.begin(title("iceoryx.udp-shm awake 64B-100Hz", 3));
    state.figures = Some(figures());
    state.time = Time { runs: 2, runs_all: 9, part: 0.25, elapsed_s: 12.4, left_s: 370.0 };
    state
}

fn text(state: &State, rows: usize, columns: usize) -> String {
    let lines = lines(state, rows, columns);
    assert!(lines.len() <= rows, "{lines:?}");
    let widest = lines.iter().map(|line| width(&line.text)).max().unwrap_or(0);
    assert!(widest <= columns, "{widest} columns of {columns}: {lines:#?}");
    lines.iter().map(|line| line.text.trim_end()).collect::<Vec<_>>().join("\n")
}

#[test]
fn everything_is_there_in_eighty_columns() {
    let expected = "\
last runs                            p50 µs   p99 µs    CPU %     lost
  os.pipe default 64B 2/3              9.41        –     88.1   12\u{a0}345
! os.udp tuned 1048576B-1000Hz 1/3     9.41        –     88.1   12\u{a0}345

▸ quick iceoryx.udp-shm awake 64B-100Hz, run 3 of 3
  p50 19.2 µs  p99 –  of each round trip  lost 3 of 8192
  messages 9000 of 20\u{a0}000
  CPU ping 44.1 %  pong 3.46 %  iox-roudi 1.00 %
  [████████░░░░░░░░░░░░░░░░░░░░░░]  25 %  2/9 runs  12 s done, 6 min left";
    assert_eq!(text(&state(), 24, 80), expected);
}

#[test]
fn in_forty_columns_figures_wrap_and_the_table_has_fewer() {
    let expected = "\
last runs                 p50 µs  p99 µs
  os.pi… default 64B 2/3    9.41       –
! os.ud…8576B-1000Hz 1/3    9.41       –

▸ quick iceoryx.udp-shm awake 64B-100Hz…
  p50 19.2 µs  p99 –  of each round trip
  lost 3 of 8192
  messages 9000 of 20\u{a0}000
  CPU ping 44.1 %  pong 3.46 %
  iox-roudi 1.00 %
  25 %  2/9 runs  12 s done, 6 min left";
    assert_eq!(text(&state(), 24, 40), expected);
}

#[test]
fn two_hundred_columns_are_not_filled_for_their_own_sake() {
    let seen = text(&state(), 60, 200);
    assert!(seen.contains("lost 3 of 8192  messages 9000 of 20\u{a0}000\n"), "{seen}");
    assert!(seen.starts_with("last runs                            p50 µs"), "{seen}");
    assert_eq!(seen.lines().count(), 8);
}

#[test]
fn on_a_short_screen_the_run_and_the_time_left_stay() {
    let seen = text(&state(), 3, 80);
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].starts_with("▸ quick iceoryx"), "{seen}");
    assert!(lines[1].starts_with("  p50 19.2 µs"), "{seen}");
    assert!(lines[2].ends_with("6 min left"), "{seen}");
    let seen = text(&state(), 7, 80);
    assert!(!seen.contains("last runs") && seen.contains("pong 3.46 %"), "{seen}");
    for (rows, columns) in [(0, 0), (1, 1), (1, 80), (2, 7), (9, 12), (24, 3)] {
        text(&state(), rows, columns);
    }
}

#[test]
fn before_the_first_look_there_is_the_name_alone() {
    let mut state = state();
    state.figures = None;
    let seen = text(&state, 24, 80);
    assert!(!seen.contains("p50 19.2") && seen.contains("run 3 of 3\n  [███"), "{seen}");
    state.figures = Some(Figures { is_warming_up: true, lost: None, ..figures() });
    let seen = text(&state, 24, 80);
    assert!(seen.contains("of each round trip  warming up\n"), "{seen}");
}

#[test]
fn the_table_scrolls_and_marks_what_is_not_valid() {
    let mut state = state();
    for run in 1..=20 {
        state.begin(title("os.pipe default 64B", run));
        let failed = run == 20;
        state.finish(Some(finished(if failed { Verdict::Failed } else { Verdict::Valid })));
    }
    let lines = lines(&state, 24, 80);
    assert_eq!(lines.iter().filter(|line| line.text.contains("os.pipe")).count(), FINISHED_MAX);
    let last = lines.iter().find(|line| line.text.contains("20/3")).unwrap();
    assert!(last.text.starts_with('!') && last.text.trim_end().ends_with("failed"), "{last:?}");
    assert_eq!((last.tone, lines[0].tone), (Tone::Bad, Tone::Heading));
    assert!(!lines.iter().any(|line| line.text.contains(" 12/3")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.text.contains(" 13/3")), "{lines:#?}");
}
