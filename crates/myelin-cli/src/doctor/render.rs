//! The report as text: aligned, with 80 columns except for commands, which are never broken.

use myelin_tools::text::counted;

use super::finding::{Basis, Cost, Finding, Report, State};
use super::measure::{Measured, Quantiles};
use super::network::Path;

/// The whole report; ends with a line feed.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    if let Some(findings) = &report.findings {
        for finding in findings {
            text += &one(finding);
        }
        text.push('\n');
    }
    if let Some(path) = &report.network {
        text += &path_to(path);
    }
    if let Some(measured) = &report.measured {
        text += &measurements(measured);
        text.push('\n');
    }
    if let Some(leftovers) = &report.leftovers {
        text += &leftovers.text();
    }
    if let Some(findings) = &report.findings {
        let causes = findings.iter().filter(|finding| finding.state == State::Costs).count();
        text += &match causes {
            0 => "no cause of latency was found\n".to_owned(),
            1 => "1 cause of latency was found on this host\n".to_owned(),
            causes => format!("{causes} causes of latency were found on this host\n"),
        };
    }
    text
}

fn path_to(path: &Path) -> String {
    let Path { host, address, own_address, interface, partner_missing, findings } = path;
    let named = if host == address { host.clone() } else { format!("{host} ({address})") };
    let mut text = format!("path to {named} by {interface}, from {own_address}\n");
    if let Some(reason) = partner_missing {
        text += &format!("no partner there: {reason}\n");
    }
    text.push('\n');
    text.extend(findings.iter().map(one));
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    text + &match (count(State::Costs), count(State::Unknown)) {
        (0, 0) => "\nnothing on this path needs to change\n".to_owned(),
        (0, unknown) => format!("\nnothing that was measured needs to change; {unknown} unknown\n"),
        (1, _) => "\n1 fault of this path was found\n".to_owned(),
        (faults, _) => format!("\n{faults} faults of this path were found\n"),
    }
}

fn one(finding: &Finding) -> String {
    let state = match finding.state {
        State::Costs => "costs",
        State::Note => "note",
        State::Unknown => "unknown",
        State::Ok => "ok",
    };
    let name = finding.cause;
    let found = finding.found.as_ref().or(finding.because.as_ref());
    let first = format!("{state:<STATE_WIDTH$}{name:<NAME_WIDTH$}");
    let mut text = paragraph(&first, found.map_or("", String::as_str));
    if finding.state != State::Ok
        && let Some(cost) = &finding.cost
    {
        text += &paragraph(&" ".repeat(INDENT), &cost_text(cost));
    }
    let Some(mend) = &finding.mend else { return text };
    if let Some(remark) = &mend.remark {
        let about = if mend.now.is_some() { "note" } else { "fix" };
        text += &paragraph(&" ".repeat(INDENT), &format!("{about}: {remark}"));
    }
    for (when, command) in [("now", &mend.now), ("permanently", &mend.permanent)] {
        if let Some(command) = command {
            text += &format!("  {when}:\n    {command}\n");
        }
    }
    text
}

fn cost_text(cost: &Cost) -> String {
    let what = &cost.what;
    match (cost.basis, cost.source) {
        (Basis::Measured, _) => format!("measured: {what}"),
        (Basis::Expected, Some(source)) => format!("expected: {what} [{source}]"),
        (Basis::Expected, None) => format!("expected: {what}"),
    }
}

fn measurements(measured: &Measured) -> String {
    let mut text = format!(
        "measured in {:.1} s, µs{:>21}{:>10}{:>10}\n",
        measured.took_s, "p50", "p90", "max"
    );
    match (&measured.wake_up, &measured.wake_up_missing) {
        (Some(wake_up), _) => {
            let cpus = format!("CPU {} wakes CPU {}", wake_up.waker_cpu, wake_up.sleeper_cpu);
            text += &row(&cpus, &wake_up.as_found);
            if let Some(held) = &wake_up.held_awake {
                text += &row("the same, cores held awake", held);
            }
        }
        (None, missing) => {
            let why = missing.as_deref().unwrap_or("");
            text += &format!("  wake-up across cores: {why}\n");
        }
    }
    for timer in [&measured.timer, &measured.timer_exact] {
        let slack = match timer.slack_ns {
            ns if ns >= 1_000 => format!("{} µs", ns / 1_000),
            ns => format!("{ns} ns"),
        };
        text += &row(&format!("timer late, slack {slack}"), &timer.late);
    }
    let gap = &measured.gap;
    text += &paragraph(
        "  ",
        &format!(
            "a thread that spun for {:.1} s was interrupted for {:.0} µs at most, and {} for \
             more than 10 µs",
            gap.spun_s,
            gap.longest_us,
            counted(gap.longer_than_10_us, "time")
        ),
    );
    text += &format!(
        "  reading the clock {:.0} ns; first touch of a page {:.2} µs\n",
        measured.clock_read_ns, measured.first_touch_us
    );
    text
}

fn row(what: &str, quantiles: &Quantiles) -> String {
    let Quantiles { p50_us, p90_us, max_us, .. } = quantiles;
    format!("  {what:<32}{p50_us:>8.1}  {p90_us:>8.1}  {max_us:>8.1}\n")
}

/// `text` after `first`, broken between words; further lines begin below the text.
fn paragraph(first: &str, text: &str) -> String {
    let indent = first.chars().count();
    let mut lines = vec![first.to_owned()];
    let mut used = indent;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if used > indent && used + 1 + width > WIDTH {
            lines.push(" ".repeat(indent));
            used = indent;
        }
        let line = lines.last_mut().expect("there is a first line");
        if used > indent {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += width;
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

const WIDTH: usize = 80;
const STATE_WIDTH: usize = 9;
const NAME_WIDTH: usize = 17;
const INDENT: usize = STATE_WIDTH + NAME_WIDTH;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_keeps_to_its_column() {
        let text = paragraph("costs    idle_states      ", &"µs word ".repeat(30));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with(&" ".repeat(INDENT))), "{text}");
        assert_eq!(text.matches("word").count(), 30);
    }

    #[test]
    fn a_command_is_never_wrapped() {
        let command = format!("echo {} | sudo tee /sys/somewhere", "x".repeat(100));
        let finding = Finding::new(State::Costs, "found")
            .expects("much", Some(7.0), "a book")
            .mend(&command, None)
            .remark("take care");
        let text = one(&Finding { cause: "some_cause", ..finding });
        assert!(text.lines().any(|line| line.trim() == command), "{text}");
        assert!(text.contains("expected: much [a book]") && text.contains("some_cause"), "{text}");
    }

    #[test]
    fn unknown_findings_have_a_reason_and_ok_ones_no_cost() {
        let unknown = one(&Finding::unknown("smt", "/sys/x: Permission denied".into()));
        assert!(unknown.starts_with("unknown  smt "), "{unknown}");
        assert!(unknown.contains("Permission denied"), "{unknown}");
        let fine = one(&Finding::new(State::Ok, "fine").measures("little", 0.1));
        assert_eq!(fine.lines().count(), 1, "{fine}");
    }
}
