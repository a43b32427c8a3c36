//! Checks whether there is memory for a new segment. A memfd has no limit of its own: without this
//! check the kernel would kill a process instead of returning an error.

use std::path::{Path, PathBuf};

/// A limit that a segment counts against.
struct Pool {
    /// The file with the limit.
    path: PathBuf,
    /// The limit, in bytes.
    limit: u64,
    /// The memory that can be allocated without evicting anything except pages that are also on a
    /// disk.
    left: u64,
    remedy: &'static str,
}

/// Why a segment of `bytes` cannot be made now, and what to do; `None` if there is no known
/// obstacle. It checks the machine (`MemAvailable`) and the control groups of this process, of
/// either version.
pub(crate) fn shortage(bytes: u64) -> Option<String> {
    shortage_of(Path::new("/"), bytes)
}

/// `root` is used in place of `/`.
fn shortage_of(root: &Path, bytes: u64) -> Option<String> {
    let pools = machine(root).into_iter().chain(groups(root, &V2)).chain(groups(root, &V1));
    let is_short = |pool: &Pool| bytes + reserve(pool.limit) > pool.left;
    let pool = pools.filter(is_short).min_by_key(|pool| pool.left)?;
    let Pool { path, limit, left, remedy } = pool;
    let path = Path::new("/").join(path.strip_prefix(root).unwrap_or(&path)); // the usual path, for people
    Some(format!("{left} B of {limit} B are free ({}); {remedy}", path.display()))
}

/// The memory that is left to others: the rest of the machine, or of the container.
fn reserve(limit: u64) -> u64 {
    (limit / 16).min(RESERVE_BYTES_MAX)
}

fn machine(root: &Path) -> Option<Pool> {
    let path = root.join("proc/meminfo");
    let text = std::fs::read_to_string(&path).ok()?;
    let bytes = |key| number_after(&text, key).map(|kib| kib * 1024);
    let (limit, left) = (bytes("MemTotal:")?, bytes("MemAvailable:")?);
    Some(Pool { path, limit, left, remedy: "end other programs, or lower payload or depth" })
}

/// The files of a version of control groups, and their names.
struct Version {
    folder: &'static str,
    controller: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Fields of `memory.stat`: used memory that can be reclaimed without a loss.
    reclaimable: &'static [&'static str],
}

const V2: Version = Version {
    folder: "sys/fs/cgroup",
    controller: "",
    limit: "memory.max",
    used: "memory.current",
    reclaimable: &["inactive_file ", "active_file ", "slab_reclaimable "],
};
const V1: Version = Version {
    folder: "sys/fs/cgroup/memory",
    controller: "memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimable: &["total_inactive_file ", "total_active_file "],
};

/// This process's group and those above it. In a container the file system shows the container's
/// group as the root, whatever name `/proc` gives.
fn groups(root: &Path, version: &'static Version) -> impl Iterator<Item = Pool> {
    let own = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let is_ours = |controllers: &str| controllers.split(',').any(|it| it == version.controller);
    let group = own.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(":/")?;
        is_ours(controllers).then(|| group.to_owned())
    });
    let top = root.join(version.folder);
    let folders: Vec<_> = group.into_iter().map(|group| top.join(group)).collect();
    let all = folders.iter().flat_map(|folder| folder.ancestors());
    let within = all.take_while(|folder| folder.starts_with(&top));
    let pools: Vec<_> = within.filter_map(|folder| pool(folder, version)).collect();
    pools.into_iter()
}

fn pool(folder: &Path, version: &Version) -> Option<Pool> {
    let read = |name| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name| read(name)?.trim().parse::<u64>().ok();
    let (limit, used) = (number(version.limit)?, number(version.used)?);
    let stat = read("memory.stat").unwrap_or_default();
    let reclaimable = version.reclaimable.iter().filter_map(|key| number_after(&stat, key)).sum();
    let left = limit.saturating_sub(used.saturating_sub(reclaimable));
    let remedy = "give this container or service more memory (--memory, MemoryMax=)";
    Some(Pool { path: folder.join(version.limit), limit, left, remedy })
}

/// The number in the line that begins with `key`.
fn number_after(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

const RESERVE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    /// A host with 8 GiB, 4 of them free, and `files` in addition.
    fn host(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let meminfo = ("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
        for (path, text) in files.iter().chain([&meminfo]) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_machine_keeps_a_reserve() {
        let root = host(&[]);
        assert_eq!(shortage_of(root.path(), 3 * GIB), None);
        let reason = shortage_of(root.path(), 4 * GIB).unwrap();
        assert!(
            reason.contains("4294967296 B of 8589934592 B are free (/proc/meminfo)"),
            "{reason}"
        );
    }

    #[test]
    fn page_cache_of_a_group_of_version_2_is_free() {
        let stat = "anon 50000000\nfile 950000000\ninactive_file 900000000\nactive_file 50000000\n\
                    slab_reclaimable 10000000\n";
        let files = |current: &'static str| {
            [
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
                ("sys/fs/cgroup/a/memory.current", current),
                ("sys/fs/cgroup/a/memory.stat", stat),
            ]
        };
        let full_of_cache = host(&files("1063741824"));
        assert_eq!(shortage_of(full_of_cache.path(), 512 * MIB), None);
        let reason = shortage_of(full_of_cache.path(), GIB).unwrap();
        let words = "970000000 B of 1073741824 B are free (/sys/fs/cgroup/a/memory.max); give this";
        assert!(reason.starts_with(words), "{reason}");
    }

    #[test]
    fn a_group_of_version_1_counts_below_a_hybrid_and_within_a_container() {
        for group in ["/docker/abc", "/"] {
            let cgroup = format!("5:cpu,cpuacct:/\n4:memory:{group}\n0::/\n");
            let root = host(&[
                ("proc/self/cgroup", &cgroup),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000000\n"),
                ("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file 20000000\n"),
            ]);
            assert_eq!(shortage_of(root.path(), 32 * MIB), None, "a small container has some use");
            let reason = shortage_of(root.path(), 64 * MIB).unwrap();
            assert!(reason.starts_with("54217728 B of 134217728 B are free"), "{reason}");
        }
    }
}
