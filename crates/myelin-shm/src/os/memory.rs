//! How much memory a new segment may take. A memfd has no limit of its own: without this the kernel
//! would look for a process to kill instead of saying no.

use std::path::Path;

/// Bytes that can be allocated without pushing anything out: the least of what the machine
/// (`MemAvailable`) and this process's control group (`memory.max`, version 2) leave.
pub fn available() -> u64 {
    let machine = read_kib("/proc/meminfo", "MemAvailable:").unwrap_or(u64::MAX);
    machine.min(left_in_group().unwrap_or(u64::MAX))
}

fn left_in_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let number = |path: &Path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let root = Path::new("/sys/fs/cgroup");
    let folders = root.join(group).ancestors().map(Path::to_owned).collect::<Vec<_>>();
    let within = folders.iter().take_while(|folder| folder.starts_with(root));
    within
        .filter_map(|folder| {
            let max = number(&folder.join("memory.max"))?;
            Some(max.saturating_sub(number(&folder.join("memory.current"))?))
        })
        .min()
}

fn read_kib(path: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
