//! A CPU quota that holds runs up: the runs are not valid, and the first screen says why.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::own_host;
use crate::support::{bench, complaint, finish, runs, scenario, summary};

/// A cgroup with a quota of 20 ms in each 100, which is removed when it is dropped.
struct Group(PathBuf);

impl Group {
    /// `None`, with a message, where no cgroup can be made.
    fn make() -> Option<Self> {
        let name = format!("myelin-test-{}", std::process::id());
        let of_one = Path::new("/sys/fs/cgroup/cpu").join(&name);
        let of_two = Path::new("/sys/fs/cgroup").join(&name);
        let one = || -> io::Result<PathBuf> {
            fs::create_dir(&of_one)?;
            fs::write(of_one.join("cpu.cfs_period_us"), "100000")?;
            fs::write(of_one.join("cpu.cfs_quota_us"), "20000")?;
            Ok(of_one.clone())
        };
        let two = || -> io::Result<PathBuf> {
            fs::create_dir(&of_two)?;
            fs::write(of_two.join("cpu.max"), "20000 100000")?;
            Ok(of_two.clone())
        };
        match one().or_else(|_| two()) {
            Ok(folder) => Some(Group(folder)),
            Err(error) => {
                let _ = fs::remove_dir(&of_two);
                println!(
                    "skipped: no cgroup for the CPU: {error}; run it as root, with cgroups writable"
                );
                None
            }
        }
    }

    /// The command as a process of this group.
    fn run(&self, command: &Command) -> Command {
        let mut within = Command::new("sh");
        within.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        within.arg(command.get_program()).args(command.get_args());
        within.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        within
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).expect("nothing of it runs any more");
    }
}

#[test]
fn runs_that_a_quota_held_up_are_not_valid() {
    let Some(group) = Group::make() else { return };
    let _host = own_host::enter();
    let place = tempfile::tempdir().unwrap();
    let file = scenario(place.path(), &["os.futex"], 64, 0.5, 1);
    let out = place.path().join("out");
    let output = finish(&mut group.run(&bench(&["run", &file, "--out", out.to_str().unwrap()])));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}{}", complaint(&output));
    let counted = &runs(&out)[0]["observation"]["throttling"];
    assert!(counted["throttled_periods"].as_u64().unwrap() > 0, "{counted}");
    let summary = summary(&out);
    let cell = &summary["cells"][0];
    assert_eq!(cell["valid"], false);
    let reason = cell["invalid_reasons"][0].as_str().unwrap();
    assert!(reason.starts_with("run 1: a CPU quota held it up in "), "{reason}");
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("✗ Not all figures can be trusted: 0 of 1 cells valid"), "{said}");
    assert!(flat.contains("a CPU quota (20000 of each 100000 µs) held up the runs in"), "{said}");
}
