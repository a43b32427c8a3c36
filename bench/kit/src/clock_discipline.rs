//! How this host's clocks are synchronised, by its own account: its wall clock against the clock of
//! the run, whether the kernel considers it synchronised, and PTP's state if linuxptp runs.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::clock::{Clock, read_ns};
use crate::protocol::{ClockDiscipline, Ptp};

/// Reads the current state. Takes some milliseconds, up to a second if PTP runs.
pub(crate) fn observe(clock: &Clock) -> ClockDiscipline {
    let (is_synchronised, error_max_ns) = kernel();
    let ptp = Path::new(PTP4L).exists().then(ask_ptp).flatten();
    ClockDiscipline { is_synchronised, error_max_ns, clock: identity(clock), ptp, ..read(clock) }
}

/// Identifies a CLOCK_MONOTONIC: there is one for each boot and for each time namespace
/// (time_namespaces(7), since Linux 5.6).
fn identity(clock: &Clock) -> Option<String> {
    let Clock::Monotonic = clock else { return None };
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// Reads both clocks at once: the wall clock between two reads of the other. It makes several
/// attempts and uses the one with the shortest distance.
fn read(clock: &Clock) -> ClockDiscipline {
    let one = |_| {
        let before_ns = clock.now();
        let wall_ns = read_ns(libc::CLOCK_REALTIME);
        let width_ns = clock.now() - before_ns;
        ClockDiscipline {
            monotonic_ns: before_ns + width_ns / 2,
            wall_ns,
            width_ns,
            ..ClockDiscipline::default()
        }
    };
    (0..READS).map(one).min_by_key(|discipline| discipline.width_ns).unwrap_or_default()
}

/// adjtimex(2); with no modes set it changes nothing.
fn kernel() -> (bool, u64) {
    // SAFETY: all-zero bytes are a valid timex.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is a valid timex.
    let answered = unsafe { libc::adjtimex(&mut state) } >= 0;
    let is_synchronised = answered && state.status & libc::STA_UNSYNC == 0;
    (is_synchronised, u64::try_from(state.maxerror).unwrap_or(0) * 1_000)
}

/// Asks linuxptp's management client; `None` if it is missing or does not answer in time.
fn ask_ptp() -> Option<Ptp> {
    let mut child = Command::new("pmc")
        .args(["-u", "-b", "0", "GET TIME_STATUS_NP"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let text = ends_in_time(&mut child).then(|| child.wait_with_output()).and_then(Result::ok)?;
    parse(&String::from_utf8_lossy(&text.stdout))
}

/// Whether a program with little output has ended in time; otherwise it is killed.
fn ends_in_time(child: &mut Child) -> bool {
    let deadline = Instant::now() + PMC_LIMIT;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Parses the answer to GET TIME_STATUS_NP, as pmc(8) prints it.
fn parse(text: &str) -> Option<Ptp> {
    let value = |key: &str| {
        let mut lines = text.lines().map(str::split_whitespace);
        lines.find_map(|mut words| (words.next()? == key).then(|| words.next())?)
    };
    Some(Ptp {
        grandmaster: value("gmIdentity")?.to_owned(),
        offset_ns: value("master_offset")?.parse().ok()?,
    })
}

const READS: u32 = 20;
/// The management socket of ptp4l(8).
const PTP4L: &str = "/var/run/ptp4l";
const PMC_LIMIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_pmc_is_parsed() {
        let text = "sending: GET TIME_STATUS_NP\n\
            \ta0369f.fffe.8b1b58-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP \n\
            \t\tmaster_offset              -37\n\
            \t\tingress_time               1717171717000000000\n\
            \t\tcumulativeScaledRateOffset +0.000000000\n\
            \t\tscaledLastGmPhaseChange    0\n\
            \t\tgmTimeBaseIndicator        0\n\
            \t\tlastGmPhaseChange          0x0000'0000000000000000.0000\n\
            \t\tgmPresent                  true\n\
            \t\tgmIdentity                 001d0f.fffe.e97aa2\n";
        let found = parse(text).unwrap();
        assert_eq!((found.grandmaster.as_str(), found.offset_ns), ("001d0f.fffe.e97aa2", -37));
        assert_eq!(parse("sending: GET TIME_STATUS_NP\n"), None, "nobody answered");
    }

    #[test]
    fn only_the_clock_of_the_machine_is_shared() {
        let here = observe(&Clock::Monotonic).clock;
        assert!(here.is_some() && here == observe(&Clock::Monotonic).clock);
        let shift = crate::clock::Shift::new(0, 0.0).unwrap();
        assert_eq!(observe(&Clock::Shifted(shift)).clock, None);
    }

    #[test]
    fn both_clocks_are_read_at_once() {
        let discipline = observe(&Clock::Monotonic);
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let apart_ns = since.abs_diff(discipline.wall_ns);
        assert!(apart_ns < 60_000_000_000, "{apart_ns}");
        let ahead = |discipline: &ClockDiscipline| {
            discipline.wall_ns as i64 - discipline.monotonic_ns as i64
        };
        let again = observe(&Clock::Monotonic);
        let moved_ns = ahead(&again).abs_diff(ahead(&discipline));
        assert!(moved_ns <= 1_000_000 + discipline.width_ns + again.width_ns, "{moved_ns}");
    }
}
