//! Whether a program stands still: stopped, in a debugger, out of files, waiting for a device.

use super::finding::Finding;
use super::snapshot::Program;

/// Why a program does nothing; `None` if nothing says so. `role` is `publisher`, `subscriber` or
/// `node`; `what` follows from it.
pub fn judge(program: &Program, role: &'static str, what: &str) -> Option<Finding> {
    let now = program.now()?;
    let (label, pid) = (program.label(), now.pid);
    let finding = if let Some((tracer, tool)) = &now.tracer
        && now.state.eq_ignore_ascii_case(&'t')
    {
        let found = format!("{label} is halted by {tool} (process {tracer}), a debugger: {what}");
        Finding::change(
            id(role, "traced"),
            found,
            format!("continue it in {tool}, or end {tool}: kill {tracer}"),
        )
    } else if now.is_stopped() {
        let found = format!("{label} is stopped by a signal (SIGSTOP, Ctrl-Z): {what}");
        Finding::command(id(role, "stopped"), found, format!("kill -CONT {pid}"))
    } else if now.is_out_of_files() && program.is_silent {
        out_of_files(program)?
    } else if now.state == 'D'
        && program.process.as_ref().is_some_and(|(before, _)| before.state == 'D')
    {
        let found = format!("{label} waits for a disk or a device and cannot go on: {what}");
        Finding::command(id(role, "blocked"), found, format!("sudo cat /proc/{pid}/stack"))
    } else {
        return None;
    };
    Some(finding.of(&program.name, pid))
}

/// A program that has no file left to open.
fn out_of_files(program: &Program) -> Option<Finding> {
    let now = program.now()?;
    let (open, limit) = now.files?;
    let found = format!(
        "{} has {open} open files, as many as it may (RLIMIT_NOFILE): programs that start now do not \
         match it",
        program.label()
    );
    let command = format!("sudo prlimit --nofile={} --pid {}", (limit * 4).max(1024), now.pid);
    Some(Finding::command("files_short", found, command).of(&program.name, now.pid))
}

/// A program that does not answer, for no visible reason.
pub fn unresponsive(program: &Program, role: &'static str) -> Finding {
    let label = match program.pid {
        0 => "a node in another container, or a stopped one,".to_owned(),
        _ => program.label(),
    };
    let found = format!("{label} does not answer");
    let command = match program.pid {
        0 => "myelin doctor --only leftovers".to_owned(),
        pid => format!("cat /proc/{pid}/status"),
    };
    Finding::command(id(role, "silent_node"), found, command).of(&program.name, program.pid)
}

fn id(role: &str, what: &str) -> &'static str {
    match (role, what) {
        ("publisher", "stopped") => "publisher_stopped",
        ("publisher", "traced") => "publisher_traced",
        ("publisher", "blocked") => "publisher_blocked",
        ("subscriber", "stopped") => "subscriber_stopped",
        ("subscriber", "traced") => "subscriber_traced",
        ("subscriber", "blocked") => "subscriber_blocked",
        (_, "stopped") => "node_stopped",
        (_, "traced") => "node_traced",
        (_, "blocked") => "node_blocked",
        _ => "node_unresponsive",
    }
}
