//! Hosts that lack, forbid or do something: the library works, or the error says what is missing,
//! where, and what to do. `docs/reference/limits.md` is the list of these tests. Each runs on a
//! host of its own: this program again, in namespaces, under limits, as another user.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;
mod support;

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use myelin::{Event, Node};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use support::until;
use tempfile::TempDir;

/// A folder in which every user may make a folder.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    folder
}

#[test]
fn a_folder_that_is_missing_or_something_else_is_named() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").unwrap();
    std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
    let refused = |path: PathBuf, words: &[&str]| {
        let error = Node::builder("t").runtime_dir(&path).open().unwrap_err().to_string();
        for word in words.iter().chain([&path.to_str().unwrap()]) {
            assert!(error.contains(word), "{word:?} is not in {error}");
        }
    };
    refused(at("missing/two"), &["No such file", "mkdir -p", "MYELIN_RUNTIME_DIR"]);
    refused(at("dangling"), &["No such file", "MYELIN_RUNTIME_DIR"]);
    refused(at("file"), &["Not a directory", "remove the file"]);
    refused(at("file/below"), &["Not a directory", "MYELIN_RUNTIME_DIR"]);
    let long = at(&"x".repeat(90));
    fs::create_dir(&long).unwrap();
    refused(long, &["107 bytes", "shorter"]);
    refused(at(&"x".repeat(300)), &["too long", "MYELIN_RUNTIME_DIR"]);
    refused("/proc".into(), &["set "]);
    assert!(fs::read_dir(folder.path()).unwrap().count() == 3, "nothing is left behind");
}

#[test]
fn a_folder_of_another_user_or_open_to_others_is_refused() {
    let folder = folder();
    let own = folder.path().join(format!("myelin-{}", rustix::process::geteuid().as_raw()));
    fs::create_dir(&own).unwrap();
    let refused = |word: &str| {
        let error = Node::builder("t").runtime_dir(folder.path()).open().unwrap_err().to_string();
        assert!(error.contains(own.to_str().unwrap()) && error.contains(word), "{error}");
    };
    fs::set_permissions(&own, Permissions::from_mode(0o755)).unwrap();
    refused("chmod 700");
    fs::remove_dir(&own).unwrap();
    fs::write(&own, "").unwrap();
    refused("it is not a folder; remove it");
    fs::remove_file(&own).unwrap();
    if is_root() {
        fs::create_dir(&own).unwrap();
        std::os::unix::fs::chown(&own, Some(USER), Some(USER)).unwrap();
        refused("it belongs to user 1000");
    }
}

#[test]
fn a_folder_that_cannot_be_written_says_so() {
    let mounted =
        |options: &str| format!("mount -t tmpfs -o {options} none \"$MYELIN_RUNTIME_DIR\"");
    let cases = [
        (mounted("ro"), "Read-only file system"),
        (mounted("nr_inodes=1"), "no space left in"),
        (mounted("nr_inodes=3"), "no space left in"),
    ];
    for (mount, word) in cases {
        let folder = folder();
        let Some(said) = in_mounts(&mount, "once", &folder) else { return };
        said.refusal(&["no", word, folder.path().to_str().unwrap()]);
    }
    let folder = folder();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let Some(command) = as_user(&[]) else { return };
    Program::start(command, "once", &folder).refusal(&["Permission denied", "set another folder"]);
}

#[test]
fn a_noexec_nodev_folder_works() {
    let folder = folder();
    let mount = "mount -t tmpfs -o noexec,nosuid,nodev,size=64k none \"$MYELIN_RUNTIME_DIR\"";
    let Some(said) = in_mounts(mount, "once", &folder) else { return };
    said.expect("published 33554432");
}

#[test]
fn a_relative_folder_is_resolved_once() {
    let folder = folder();
    let mut command = itself::itself();
    command.current_dir(folder.path());
    let first = Program::begin(command, "wanderer", Path::new("."));
    first.expect("open");
    fs::remove_dir_all(own_folder(&folder)).unwrap();
    first.expect_warning("has been made again");
    let second = talker("second", &folder);
    meet(&first, "wanderer", &second, "second");
}

#[test]
fn nodes_with_removed_sockets_match_new_nodes_again() {
    let folder = folder();
    let old = [talker("one", &folder), talker("two", &folder)];
    meet(&old[0], "one", &old[1], "two");
    fs::remove_dir_all(own_folder(&folder)).unwrap();
    let new = talker("new", &folder);
    for (old, name) in old.iter().zip(["one", "two"]) {
        meet(old, name, &new, "new");
        old.expect_warning(
            "was removed and has been made again; if logind removed it (RemoveIPC=yes)",
        );
    }
    assert!(!old[0].has_said("lost two"), "what had met has not parted");
}

#[test]
fn a_single_removed_socket_is_made_again() {
    let folder = folder();
    let old = talker("old", &folder);
    let sockets = own_folder(&folder).join("0");
    let socket = fs::read_dir(&sockets).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&socket).unwrap();
    until("the socket", || socket.exists());
    meet(&old, "old", &talker("new", &folder), "new");
}

#[test]
fn a_folder_made_by_another_program_is_named() {
    let folder = folder();
    let old = talker("old", &folder);
    let own = own_folder(&folder);
    fs::rename(&own, folder.path().join("elsewhere")).unwrap();
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, Permissions::from_mode(0o755)).unwrap();
    old.expect_warning("new programs cannot reach this node: its socket");
    old.expect_warning("chmod 700");
    fs::set_permissions(&own, Permissions::from_mode(0o700)).unwrap();
    meet(&old, "old", &talker("new", &folder), "new");
}

#[test]
fn a_socket_without_permission_is_named() {
    let folder = folder();
    let Some(command) = as_user(&[]) else { return };
    let old = Program::start(command, "old", &folder);
    old.expect("open");
    let sockets = folder.path().join("myelin-1000/0");
    let socket = fs::read_dir(&sockets).unwrap().next().unwrap().unwrap().path();
    fs::set_permissions(&socket, Permissions::from_mode(0o000)).unwrap();
    let new = Program::start(as_user(&[]).unwrap(), "new", &folder);
    new.expect_warning("this node does not reach another one");
    new.expect_warning(&format!("{}: Permission denied", socket.display()));
}

#[test]
fn a_node_continues_and_warns_after_a_change_of_user() {
    if !is_root() {
        return;
    }
    for how in ["setuid", "seteuid"] {
        let folder = folder();
        let changed = Program::start(itself::itself(), how, &folder);
        changed.expect("open");
        changed.expect_warning("runs as user 1000 now, but its node was opened as user 0");
        let root = talker("root", &folder);
        meet(&changed, how, &root, "root");
        // A node that it opens later is among the others.
        let user = Program::start(as_user(&[]).unwrap(), "user", &folder);
        user.expect("heard second");
    }
}

#[test]
fn another_users_program_is_refused_on_both_sides() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let user = Program::start(as_user(&[]).unwrap(), "user", &folder);
    user.expect("open");
    // Root may look into all folders; this process considers itself a program of the user.
    let stranger = Program::start(itself::itself(), "regains_root", &folder);
    user.expect("event it runs as user 0, but programs of user 1000 match only each other");
    user.expect_warning("it runs as user 0, but programs of user 1000");
    stranger.expect_warning("runs as user 0 now, but its node was opened as user 1000");
}

#[test]
fn programs_of_a_user_match_across_user_namespaces() {
    for inside in [&["unshare", "-Ur"][..], &["unshare", "-U", "--map-user=1000"], UNSHARE_PIDS] {
        let folder = folder();
        let (Some(outside), Some(inside)) = (as_user(&[]), as_user(inside)) else { return };
        let outside = Program::start(outside, "outside", &folder);
        let inside = Program::start(inside, "inside", &folder);
        meet(&outside, "outside", &inside, "inside");
    }
}

#[test]
fn an_unmapped_user_gets_a_warning() {
    let folder = folder();
    let Some(inside) = as_user(&["unshare", "-U"]) else { return };
    let inside = Program::start(inside, "inside", &folder);
    inside.expect_warning("its user has no mapping outside of its user namespace");
}

#[test]
fn other_namespaces_do_not_prevent_a_match() {
    for options in [&["-n"][..], &["-i"], &["-pf", "--kill-child", "--mount-proc"], TIME, &["-C"]] {
        let words: Vec<_> = ["unshare"].into_iter().chain(options.iter().copied()).collect();
        let folder = folder();
        let Some(inside) = wrapped(&words) else { continue };
        let outside = talker("outside", &folder);
        let inside = Program::start(inside, "inside", &folder);
        meet(&outside, "outside", &inside, "inside");
        inside.kill();
        outside.expect("lost");
    }
}

#[test]
fn without_proc_samples_pass_both_ways() {
    let folder = folder();
    let start = |role| in_mounts("umount -l /proc", role, &folder);
    let Some(alone) = start("once") else { return };
    alone.expect("published 33554432");
    let (outside, inside) = (talker("outside", &folder), start("inside").unwrap());
    meet(&outside, "outside", &inside, "inside");
    // The end of another node causes neither a signal nor an endless wake-up.
    for name in ["second", "third"] {
        let other = start(name).unwrap();
        meet(&other, name, &inside, "inside");
        other.kill();
        until("the end of the match", || {
            inside.count("lost") == if name == "second" { 1 } else { 2 }
        });
    }
}

#[test]
fn a_proc_with_hidepid_works() {
    let folder = folder();
    let mount = "mount -t proc -o hidepid=2 none /proc";
    let script = format!("{mount} && exec \"$@\"");
    let words = ["unshare", "-m", "sh", "-c", &script, "sh"];
    let words: Vec<_> = words.into_iter().chain(AS_USER.iter().copied()).collect();
    let Some(command) = wrapped_at(&words, &open_program()) else { return };
    Program::start(command, "once", &folder).expect("published 33554432");
}

#[test]
fn programs_under_batch_and_idle_can_open_nodes() {
    for policy in [&["chrt", "--idle", "0"][..], &["chrt", "--batch", "0"], &["nice", "-n", "19"]] {
        let folder = folder();
        let Some(command) = as_user(policy) else { return };
        Program::start(command, "once", &folder).expect("published 33554432");
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_on_both_sides() {
    let folder = folder();
    let words = &["RLIMIT_FSIZE", "ulimit -f", "2097152 B"];
    once("limit fsize 2097152", &folder).refusal(&[&["published 65536"], &words[..]].concat());
    // No node without memory for its announcements.
    once("limit fsize 512", &folder).refusal(&["no memory for a shared segment", "RLIMIT_FSIZE"]);
}

#[test]
fn a_limit_on_locked_memory_is_named_on_both_sides() {
    let folder = folder();
    let Some(command) = as_user(&[]) else { return };
    let words = ["may lock 6291456 B (RLIMIT_MEMLOCK)", "(mlockall)", "ulimit -l"];
    Program::start(command, "locked", &folder)
        .refusal(&[&["published 65536"], &words[..]].concat());
    // The subscriber lacks memory, and the publisher learns why.
    let subscriber = Program::start(as_user(&[]).unwrap(), "locked_subscriber", &folder);
    subscriber.expect("locked");
    let publisher = Program::start(as_user(&[]).unwrap(), "large", &folder);
    for side in [&publisher, &subscriber] {
        side.expect("event no memory for a shared segment");
        side.expect_warning("may lock 6291456 B");
        assert!(!side.has_said("corrupt"), "{:?}", side.said);
    }
}

#[test]
fn a_limit_on_the_address_space_is_named() {
    let folder = folder();
    once("space", &folder).refusal(&["RLIMIT_AS", "ulimit -v"]);
}

#[test]
fn a_limit_on_open_files_is_named_and_left_alone() {
    let folder = folder();
    once("files", &folder).refusal(&[
        "may have 8 (RLIMIT_NOFILE)",
        "ulimit -n",
        "limit is still 8",
    ]);
}

#[test]
fn a_node_that_cannot_accept_links_is_named_on_both_sides() {
    let folder = folder();
    let full = Program::start(itself::itself(), "full", &folder);
    full.expect("full");
    let caller = talker("caller", &folder);
    full.expect_warning("this node does not answer new programs: too many open files");
    let pid = full.child.lock().unwrap().id();
    let unanswered = format!("process {pid} does not answer");
    caller.expect_warning(&unanswered);
    let limit = getrlimit(Resource::Nofile);
    prlimit(Pid::from_raw(pid as i32), Resource::Nofile, limit).unwrap();
    meet(&full, "full", &caller, "caller");
    assert_eq!(caller.said.lock().unwrap().iter().filter(|it| it.contains(&unanswered)).count(), 1);
}

#[test]
fn a_limit_on_threads_is_named() {
    let folder = folder();
    let Some(command) = as_user(&[]) else { return };
    let said = Program::start(command, "limit nproc 1", &folder);
    said.refusal(&["starting a thread", "1 threads of this user (RLIMIT_NPROC", "TasksMax="]);
}

#[test]
fn a_container_full_of_page_cache_has_room() {
    let folder = folder();
    let group = |current: u64| {
        format!(
            "group=$(sed -n s/^0:://p /proc/self/cgroup) && mount -t tmpfs none /sys/fs/cgroup && \
             mkdir -p /sys/fs/cgroup/$group && cd /sys/fs/cgroup/$group && \
             echo 1073741824 >memory.max && echo {current} >memory.current && \
             printf 'inactive_file 900000000\\nactive_file 50000000\\n' >memory.stat"
        )
    };
    let Some(said) = in_mounts(&group(1_063_741_824), "once", &folder) else { return };
    said.expect("published 33554432");
    let Some(said) = in_mounts(&group(2_000_000_000), "once", &folder) else { return };
    said.refusal(&["published 65536", "memory.max", "MemoryMax="]);
}

#[test]
fn a_full_group_of_version_1_is_an_error_and_no_kill() {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.split_once(":memory:/")).map(|(_, own)| own);
    let top = Path::new("/sys/fs/cgroup/memory").join(own.unwrap_or_default());
    let group = top.join(format!("myelin-test-{}", std::process::id()));
    if own.is_none() || fs::create_dir(&group).is_err() {
        println!("left out: no group of version 1 can be made here");
        return;
    }
    fs::write(group.join("memory.limit_in_bytes"), (128 << 20).to_string()).unwrap();
    let folder = folder();
    let script = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.display());
    let said = Program::start(wrapped(&["sh", "-c", &script, "sh"]).unwrap(), "fill", &folder);
    said.refusal(&["memory.limit_in_bytes", "134217728 B", "--memory"]);
    drop(said);
    until("the end of the group", || fs::remove_dir(&group).is_ok());
}

#[test]
fn a_system_call_filter_is_named_or_tolerated() {
    let folder = folder();
    once("forbidden memfd_create", &folder).refusal(&["memfd_create is forbidden", "seccomp"]);
    once("forbidden socket", &folder)
        .refusal(&["AF_UNIX are forbidden", "RestrictAddressFamilies"]);
    once("forbidden futex_waitv", &folder).expect("published 33554432");
    once("forbidden sched_setscheduler", &folder).expect("published 33554432");
}

#[test]
fn unusual_environments_work() {
    let scripts = ["umask 0777", "unset HOME PATH USER", "ulimit -s 128", "cd / && exec 0<&-"];
    for script in scripts {
        let folder = folder();
        let script = format!("{script}; exec \"$@\"");
        let Some(command) = wrapped(&["/bin/sh", "-c", &script, "sh"]) else { return };
        Program::start(command, "once", &folder).expect("published 33554432");
    }
}

/// Each line of the table in `docs/reference/limits.md` names a test of this file, and each test is in it.
#[test]
fn the_page_of_limits_names_these_tests() {
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/limits.md"))
            .unwrap();
    let names: Vec<_> = include_str!("odd_hosts.rs")
        .split("#[test]\nfn ")
        .skip(1)
        .filter_map(|test| Some(test.split_once("()")?.0))
        .filter(|name| !["the_page_of_limits_names_these_tests", "program"].contains(name))
        .collect();
    let lines = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| What"));
    for line in lines.clone() {
        assert!(names.iter().any(|name| line.contains(name)), "no test in: {line}");
    }
    for name in names {
        assert!(
            lines.clone().any(|line| line.contains(name)),
            "docs/reference/limits.md lacks {name}"
        );
    }
}

/// Does nothing when it is run as a test.
#[test]
fn program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<_> = role.split(' ').collect();
    let number = || words.last().unwrap().parse::<u64>().unwrap();
    match words[0] {
        "once" => publish_once(),
        "limit" => {
            let of = if words[1] == "fsize" { Resource::Fsize } else { Resource::Nproc };
            set_limit(of, number());
            publish_once();
        }
        "space" => {
            // Slightly more than there is now.
            let pages = fs::read_to_string("/proc/self/statm").unwrap();
            let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
            set_limit(Resource::As, pages * 4096 + (24 << 20));
            publish_once();
        }
        "files" => {
            set_limit(Resource::Nofile, 8);
            publish_once();
            say(&format!("limit is still {}", getrlimit(Resource::Nofile).current.unwrap()));
        }
        "forbidden" => {
            forbid(match words[1] {
                "memfd_create" => libc::SYS_memfd_create,
                "futex_waitv" => libc::SYS_futex_waitv,
                "socket" => libc::SYS_socket,
                _ => libc::SYS_sched_setscheduler,
            });
            publish_once();
        }
        "fill" => fill(),
        "locked" => {
            lock_memory();
            publish_once();
        }
        "locked_subscriber" => locked_subscriber(),
        "large" => large(),
        "wanderer" => {
            let node = open();
            std::env::set_current_dir("/").unwrap();
            talk(&[node], "wanderer");
        }
        "full" => {
            let node = open();
            set_limit(Resource::Nofile, 3); // open descriptors stay open
            say("full");
            until("room", || getrlimit(Resource::Nofile).current > Some(3));
            talk(&[node], "full");
        }
        "setuid" | "seteuid" => change_user(words[0]),
        "regains_root" => regain_root(),
        name => talk(&[open()], name),
    }
}

fn open() -> Node {
    Node::new("test").unwrap()
}

/// Publishes payloads of several sizes to itself, and prints how far it came.
fn publish_once() {
    let published = || -> Result<(), myelin::Error> {
        let node = Node::new("once")?;
        let topic = node.topic::<[u8]>("once");
        let mut subscriber = topic.subscriber()?;
        let publisher = topic.publisher()?;
        for bytes in [10, 1 << 16, 1 << 20, 4 << 20, 32 << 20] {
            publisher.publish_copy(&vec![7; bytes])?;
            assert_eq!(subscriber.take()?.map(|sample| sample.len()), Some(bytes));
            say(&format!("published {bytes}"));
        }
        Ok(())
    };
    if let Err(error) = published() {
        say(&format!("error {error}"));
    }
}

/// Publishes to a subscriber that keeps all samples.
fn fill() {
    let node = open();
    let topic = node.topic::<[u8]>("t").depth(60);
    let mut subscriber = topic.subscriber_builder().held_max(60).open().unwrap();
    let publisher = topic.publisher().unwrap();
    let mut held = Vec::new();
    for _ in 0..60 {
        match publisher.publish_copy(&[7; 4 << 20]) {
            Ok(_) => held.extend(subscriber.take().unwrap()),
            Err(error) => return say(&format!("error {error}")),
        }
    }
    say("published all");
}

/// Prints which publishers it receives and loses; publishes its name until its input is closed.
fn talk(nodes: &[Node], name: &str) {
    let topic = |node: &Node| node.topic::<[u8]>("talk");
    let publishers: Vec<_> = nodes.iter().map(|node| topic(node).publisher().unwrap()).collect();
    let mut subscribers: Vec<_> =
        nodes.iter().map(|node| topic(node).subscriber().unwrap()).collect();
    say("open");
    let mut heard = Vec::new();
    let is_open = input();
    let names = if nodes.len() > 1 { vec![name, "second"] } else { vec![name] };
    while is_open() {
        for (publisher, name) in publishers.iter().zip(&names) {
            publisher.publish_copy(name.as_bytes()).unwrap();
        }
        for subscriber in &mut subscribers {
            while let Some(sample) = subscriber.take().unwrap() {
                let other = String::from_utf8(sample.to_vec()).unwrap();
                if !heard.contains(&other) {
                    say(&format!("heard {other}"));
                    heard.push(other);
                }
            }
            say_events(subscriber.events());
        }
    }
}

fn say_events(events: Vec<Event>) {
    for event in events {
        match event {
            Event::Unmatched { .. } => say("lost"),
            Event::Incompatible { reason, .. } | Event::Refused { reason, .. } => {
                say(&format!("event {reason}"));
            }
            Event::Corrupt { .. } => say("corrupt"),
            _ => {}
        }
    }
}

fn change_user(how: &str) {
    let node = open();
    // SAFETY: no preconditions.
    let changed = unsafe {
        match how {
            "setuid" => libc::setgid(USER) + libc::setuid(USER),
            _ => libc::setegid(USER) + libc::seteuid(USER),
        }
    };
    assert_eq!(changed, 0);
    talk(&[node, open()], how);
}

/// Opens a node as the user, becomes root again, and calls another node of the user.
fn regain_root() {
    use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketType};
    // SAFETY: no preconditions.
    assert_eq!(unsafe { libc::seteuid(USER) }, 0);
    let sockets = Path::new(&std::env::var("MYELIN_RUNTIME_DIR").unwrap()).join("myelin-1000/0");
    let socket = fs::read_dir(sockets).unwrap().next().unwrap().unwrap().path();
    let _node = open();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::seteuid(0) }, 0);
    let ours = net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    net::connect(&ours, &SocketAddrUnix::new(&socket).unwrap()).unwrap();
    let is_open = input();
    while is_open() {}
}

/// Locks all later mappings, up to a limit that every user has.
fn lock_memory() {
    set_limit(Resource::Memlock, 6 << 20);
    // SAFETY: no preconditions.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_FUTURE) }, 0);
}

fn locked_subscriber() {
    let node = open();
    let subscriber = node.topic::<[u8]>("large").subscriber().unwrap();
    let is_open = input();
    lock_memory();
    say("locked");
    while is_open() {
        say_events(subscriber.events());
    }
}

fn large() {
    let publisher = open().topic::<[u8]>("large").publisher().unwrap();
    let is_open = input();
    while is_open() {
        if publisher.matched() > 0 {
            publisher.publish_copy(&[7; 32 << 20]).unwrap();
        }
        say_events(publisher.events());
    }
}

fn set_limit(of: Resource, limit: u64) {
    setrlimit(of, Rlimit { current: Some(limit), maximum: getrlimit(of).maximum }).unwrap();
}

/// Makes the kernel refuse a system call, as a container's filter does, or systemd's for families
/// of sockets.
fn forbid(call: i64) {
    let error = if call == libc::SYS_socket { libc::EAFNOSUPPORT } else { libc::EPERM };
    let (load, equal, answer) = (0x20, 0x15, 0x06); // BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        line(load, 0, 0, 0),
        line(equal, 0, 1, call as u32),
        line(answer, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        line(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the program outlives the calls, which copy it.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(set, 0);
}

fn say(text: &str) {
    println!("@ {text}");
    std::io::stdout().flush().unwrap();
}

/// Whether the input is open; waits a moment each time.
fn input() -> impl Fn() -> bool {
    let is_open = Arc::new(Mutex::new(true));
    let closes = is_open.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        *closes.lock().unwrap() = false;
    });
    move || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        *is_open.lock().unwrap()
    }
}

/// A program on an odd host; killed when dropped.
struct Program {
    child: Mutex<Child>,
    _stdin: Option<ChildStdin>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Program {
    fn start(command: Command, role: &str, folder: &TempDir) -> Program {
        Self::begin(command, role, folder.path())
    }

    fn begin(mut command: Command, role: &str, folder: &Path) -> Program {
        command.args(["--exact", "program", "--nocapture"]);
        command.env(ROLE, role).env("MYELIN_RUNTIME_DIR", folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let said = said.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    said.lock().unwrap().push(line);
                }
            });
        }
        let stdin = child.stdin.take();
        Program { child: Mutex::new(child), _stdin: stdin, said }
    }

    fn has(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.said.lock().unwrap().iter().any(|line| is_it(line))
    }

    fn count(&self, text: &str) -> usize {
        let said = self.said.lock().unwrap();
        said.iter().filter(|line| line.ends_with(&format!("@ {text}"))).count()
    }

    fn has_said(&self, text: &str) -> bool {
        self.has(|line| line.split_once("@ ").is_some_and(|(_, said)| said.starts_with(text)))
    }

    fn expect(&self, text: &str) {
        self.wait(text, || self.has_said(text));
    }

    fn expect_warning(&self, text: &str) {
        self.wait(text, || self.has(|line| line.contains("myelin: ") && line.contains(text)));
    }

    /// Waits; fails at once if the program has ended unexpectedly.
    fn wait(&self, what: &str, is_so: impl Fn() -> bool) {
        until(what, || {
            let ended = self.child.lock().unwrap().try_wait().unwrap();
            let is_so = is_so();
            if !is_so && ended.is_some() {
                std::thread::sleep(std::time::Duration::from_millis(100)); // its last output
            }
            assert!(
                is_so || ended.is_none() || self.has(|line| line.contains(what)),
                "{what:?}: {ended:?} {:#?}",
                self.said.lock().unwrap()
            );
            is_so
        });
    }

    /// It ends in good order, and its output contains these words.
    fn refusal(&self, words: &[&str]) {
        let status = self.child.lock().unwrap().wait().unwrap();
        until("the end of its output", || self.has(|line| line.starts_with("test result")));
        let said = self.said.lock().unwrap().join("\n");
        assert!(status.success() && said.contains("@ error "), "{status:?} {said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is not in {said}");
        }
    }

    fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

fn talker(name: &str, folder: &TempDir) -> Program {
    let talker = Program::start(itself::itself(), name, folder);
    talker.expect("open");
    talker
}

fn once(role: &str, folder: &TempDir) -> Program {
    Program::start(itself::itself(), role, folder)
}

fn meet(one: &Program, its_name: &str, other: &Program, others_name: &str) {
    one.expect(&format!("heard {others_name}"));
    other.expect(&format!("heard {its_name}"));
}

fn own_folder(folder: &TempDir) -> PathBuf {
    folder.path().join(format!("myelin-{}", rustix::process::geteuid().as_raw()))
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("left out: only root can become another user");
    }
    is_root
}

/// This program, run by the command `words`; `None`, with a reason, where the host forbids it.
fn wrapped(words: &[&str]) -> Option<Command> {
    wrapped_at(words, std::env::current_exe().unwrap().to_str().unwrap())
}

/// The same, for a program at the path `program`.
fn wrapped_at(words: &[&str], program: &str) -> Option<Command> {
    let tried = Command::new(words[0]).args(&words[1..]).arg("/bin/true").output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        println!("left out: {words:?} is not allowed here: {tried:?}");
        return None;
    }
    let mut command = Command::new(words[0]);
    let itself = itself::run(program);
    command.args(&words[1..]).arg(itself.get_program()).args(itself.get_args());
    Some(command)
}

/// This program, not by its path, because another user may not be able to use the path.
fn open_program() -> String {
    static PROGRAM: OnceLock<File> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let program = File::open(std::env::current_exe().unwrap()).unwrap();
        fcntl_setfd(&program, FdFlags::empty()).unwrap(); // for started programs
        program
    });
    format!("/proc/self/fd/{}", program.as_raw_fd())
}

/// The same as an ordinary user without rights.
fn as_user(words: &[&str]) -> Option<Command> {
    if !is_root() {
        return None;
    }
    let words: Vec<_> = AS_USER.iter().chain(words).copied().collect();
    wrapped_at(&words, &open_program())
}

/// Runs a role after `script`, which changes mounts.
fn in_mounts(script: &str, role: &str, folder: &TempDir) -> Option<Program> {
    let script = format!("({script}) >/dev/null 2>&1 || exit 77; exec \"$@\"");
    let mut tried = Command::new("unshare");
    let tried = tried.args(["-m", "true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("left out: mounts cannot be changed here");
        return None;
    }
    let mut command = Command::new("unshare");
    let itself = itself::itself();
    command.args(["-m", "sh", "-c", &script, "sh"]);
    command.arg(itself.get_program()).args(itself.get_args());
    Some(Program::start(command, role, folder))
}

const ROLE: &str = "MYELIN_TEST_ROLE";
const USER: u32 = 1000;
const AS_USER: &[&str] =
    &["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--inh-caps=-all"];
const UNSHARE_PIDS: &[&str] = &["unshare", "-U", "--map-user=1000", "-pf", "--kill-child"];
const TIME: &[&str] = &["-T", "--monotonic", "1000", "--boottime", "1000"];
