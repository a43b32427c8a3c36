//! Limits of CPU time by cgroups, versions 1 and 2: the quota, and how often it held processes up.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::root::Root;

/// A limit of CPU time: processes that have used it up stand still until the period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// The time on all CPUs together.
    pub quota_us: u64,
    /// Of each period.
    pub period_us: u64,
}

/// How often a quota held processes up (`cpu.stat`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Throttling {
    /// Periods in which it had used up its quota.
    pub throttled_periods: u64,
    /// How long it stood still, summed over the CPUs.
    pub throttled_us: u64,
    /// All periods in which the cgroup ran.
    pub periods: u64,
}

impl CpuQuota {
    /// The tightest quota of the cgroups of this process; `None` without a limit.
    pub fn read(root: &Root) -> Option<Self> {
        let of_folder = |folder: String| {
            let line = |name: &str| root.line(&format!("{folder}/{name}"));
            let both = line("cpu.max")
                .or_else(|| Some(line("cpu.cfs_quota_us")? + " " + &line("cpu.cfs_period_us")?))?;
            let (quota, period) = both.split_once(' ')?;
            // Without a limit, the quota is `max` or -1.
            let (quota_us, period_us) = (quota.parse().ok()?, period.parse().ok()?);
            (period_us > 0).then_some(CpuQuota { quota_us, period_us })
        };
        let quotas = folders(root).into_iter().filter_map(of_folder);
        quotas.min_by(|a, b| (a.quota_us * b.period_us).cmp(&(b.quota_us * a.period_us)))
    }
}

impl Throttling {
    /// The counts of the cgroups of this process since they were made, those of all groups added;
    /// `None` if the kernel does not count.
    pub fn read(root: &Root) -> Option<Self> {
        let of_folder = |folder: String| {
            let text = root.line(&format!("{folder}/cpu.stat"))?;
            let value = |name: &str| {
                let mut lines = text.lines().filter_map(|line| line.split_once(' '));
                lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
            };
            let time_us = value("throttled_usec").or(value("throttled_time").map(|ns| ns / 1000));
            Some(Throttling {
                periods: value("nr_periods")?,
                throttled_periods: value("nr_throttled")?,
                throttled_us: time_us?,
            })
        };
        folders(root).into_iter().filter_map(of_folder).reduce(Self::and)
    }

    /// The counts of both.
    pub fn and(self, other: Self) -> Self {
        Throttling {
            periods: self.periods + other.periods,
            throttled_periods: self.throttled_periods + other.throttled_periods,
            throttled_us: self.throttled_us + other.throttled_us,
        }
    }

    /// What was counted from `self` to `later`.
    pub fn until(self, later: Self) -> Self {
        Throttling {
            periods: later.periods.saturating_sub(self.periods),
            throttled_periods: later.throttled_periods.saturating_sub(self.throttled_periods),
            throttled_us: later.throttled_us.saturating_sub(self.throttled_us),
        }
    }

    /// Whether the processes stood still at all.
    pub fn is_any(&self) -> bool {
        self.throttled_periods > 0 || self.throttled_us > 0
    }
}

/// The folders of this process's cgroups that may limit CPU time: its own and those above.
fn folders(root: &Root) -> Vec<String> {
    let groups = root.line("/proc/self/cgroup").unwrap_or_default();
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let hierarchy = match controllers {
            "" => Some("/sys/fs/cgroup".to_owned()),
            all => all.split(',').any(|it| it == "cpu").then(|| format!("/sys/fs/cgroup/{all}")),
        };
        // In a container the folders of outer groups may be out of sight.
        let groups = Path::new(group).ancestors().map(|it| it.display().to_string());
        let groups: Vec<String> = groups.collect();
        let of_hierarchy = move |hierarchy: String| {
            let folder = move |group: &String| hierarchy.clone() + group.trim_end_matches('/');
            groups.iter().map(folder).collect::<Vec<_>>()
        };
        hierarchy.map(of_hierarchy).unwrap_or_default()
    };
    groups.lines().flat_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of these files.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(folder.path());
        (folder, root)
    }

    const GROUPS: (&str, &str) =
        ("proc/self/cgroup", "2:cpu,cpuacct:/robot/arm\n1:memory:/\n0::/robot\n");

    #[test]
    fn the_tightest_cpu_quota_is_found() {
        let found = |files: &[(&str, &str)]| {
            let (_folder, root) = machine(files);
            CpuQuota::read(&root).map(|it| (it.quota_us, it.period_us))
        };
        assert_eq!(found(&[]), None);
        let unlimited = [
            GROUPS,
            ("sys/fs/cgroup/robot/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/robot/arm/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/robot/arm/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(found(&unlimited), None);
        let mut limited = unlimited.to_vec();
        limited.push(("sys/fs/cgroup/cpu.max", "150000 100000\n"));
        assert_eq!(found(&limited), Some((150_000, 100_000)));
        limited.push(("sys/fs/cgroup/cpu,cpuacct/robot/cpu.cfs_quota_us", "20000\n"));
        limited.push(("sys/fs/cgroup/cpu,cpuacct/robot/cpu.cfs_period_us", "100000\n"));
        assert_eq!(found(&limited), Some((20_000, 100_000)));
    }

    #[test]
    fn throttling_of_both_versions_is_counted() {
        let found = |files: &[(&str, &str)]| {
            let (_folder, root) = machine(files);
            Throttling::read(&root)
        };
        assert_eq!(found(&[GROUPS]), None);
        // The root group of version 2 has times, but no periods.
        let root = ("sys/fs/cgroup/cpu.stat", "usage_usec 9\nuser_usec 5\nsystem_usec 4\n");
        assert_eq!(found(&[GROUPS, root]), None);
        let two = "usage_usec 9\nnr_periods 78\nnr_throttled 73\nthrottled_usec 5800000\n";
        let of_two = ("sys/fs/cgroup/robot/cpu.stat", two);
        let expected = Throttling { periods: 78, throttled_periods: 73, throttled_us: 5_800_000 };
        assert_eq!(found(&[GROUPS, root, of_two]), Some(expected));
        let one = "nr_periods 2\nnr_throttled 1\nthrottled_time 3000000\n";
        let of_one = ("sys/fs/cgroup/cpu,cpuacct/robot/arm/cpu.stat", one);
        let own = Throttling { periods: 2, throttled_periods: 1, throttled_us: 3_000 };
        assert_eq!(found(&[GROUPS, of_one]), Some(own));
        assert_eq!(found(&[GROUPS, of_one, of_two]), Some(own.and(expected)));
        assert!(!expected.until(expected).is_any() && own.until(expected).is_any());
    }
}
