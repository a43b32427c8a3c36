//! `scripts/setup` and the Makefile with programs that only note how they were called: nothing is
//! installed and nothing is built.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Of what a bare system with Rust has.
const NEW_ENOUGH: &str = "echo rustc 1.999.0";

/// A machine whose package manager and Rust are scripts.
struct Machine {
    folder: TempDir,
}

impl Machine {
    /// With this codename in its `/etc/os-release`, as root, with packages for everything.
    fn new(os_release: &str) -> Self {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(machine.path("bin")).unwrap();
        fs::write(machine.path("os-release"), os_release).unwrap();
        machine.program("dpkg-query", "exit 1");
        machine.program("apt-cache", "echo '  Candidate: 1.0'");
        machine.program("apt-get", "exit 0");
        machine.program("id", "echo 0");
        machine.program("sudo", "exit 1");
        machine.program("python3", "exit 0");
        machine.program("npm", "exit 0");
        machine.program("cargo", "exit 0");
        machine.program("rustc", NEW_ENOUGH);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a program of these lines, which notes its arguments first.
    fn program(&self, name: &str, lines: &str) {
        let path = self.path("bin").join(name);
        let called = self.path("called");
        let text = format!("#!/bin/sh\necho \"{name} $*\" >>\"{}\"\n{lines}\n", called.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// `scripts/setup WHAT`.
    fn set_up(&self, what: &str) -> Output {
        self.command(&Path::new(REPOSITORY).join("scripts/setup")).arg(what).output().unwrap()
    }

    /// A program on this machine: without the other one's Rust and settings.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("OS_RELEASE", self.path("os-release")).env("HOME", self.folder.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        for name in
            ["CARGO_HOME", "CARGO_TARGET_DIR", "MYELIN_CACHE", "XDG_CACHE_HOME", "MAKEFLAGS"]
        {
            command.env_remove(name);
        }
        for name in ["ROS2_PREFIX", "CYCLONEDDS11_PREFIX", "MAKELEVEL", "MFLAGS"] {
            command.env_remove(name);
        }
        command
    }

    /// How programs were called whose line begins so.
    fn called(&self, start: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("called")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const DEBIAN_11: &str = "ID=debian\nVERSION_CODENAME=bullseye\n";
const DEBIAN_12: &str = "ID=debian\nVERSION_CODENAME=bookworm\n";
const DEBIAN_13: &str = "ID=debian\nVERSION_CODENAME=trixie\n";
const INSTALL: &str = "apt-get install -y -q --no-install-recommends";

#[test]
fn each_distribution_gets_its_own_names() {
    for (os_release, has, has_not) in [
        (DEBIAN_12, "libfastrtps-dev", "libfastdds-dev"),
        (DEBIAN_13, "libfastdds-dev", "libfastrtps-dev"),
        (
            "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nUBUNTU_CODENAME=noble\n",
            "cyclonedds-dev",
            "libfastdds-dev",
        ),
    ] {
        let machine = Machine::new(os_release);
        let output = machine.set_up("bench");
        assert!(output.status.success(), "{}", said(&output));
        let calls = machine.called(INSTALL);
        assert_eq!(calls.len(), 1, "at once: {calls:?}");
        assert!(calls[0].contains(has) && !calls[0].contains(has_not), "{calls:?}");
        assert!(calls[0].contains(" gcc ") && !calls[0].contains("valgrind"), "{calls:?}");
    }
}

#[test]
fn test_programs_run_in_a_folder_with_a_space() {
    let machine = Machine::new(DEBIAN_12);
    let folder = machine.path("my robot/mÿelin");
    for name in ["scripts", "target"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    for name in ["side-by-side", "failed-tests"] {
        let script = Path::new("scripts").join(name);
        fs::copy(Path::new(REPOSITORY).join(&script), folder.join(&script)).unwrap();
    }
    let program = folder.join("program-0");
    fs::write(&program, "#!/bin/sh\necho \"test result: ok. $# passed;\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // Cargo splits the variable at spaces, too.
    let cargo = "CARGO_PKG_NAME=robot exec $CARGO_TARGET_ARM_ROBOT_RUNNER \"$PWD/program-0\" 'a b'";
    let mut command = machine.command(&folder.join("scripts/side-by-side"));
    command.current_dir(&folder).env("MYELIN_TARGET", "arm-robot").args(["sh", "-c", cargo]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\ntest result: ok. 1 passed;\n"), "{output:?}");
}

#[test]
fn missing_packages_of_a_distribution_are_named_and_not_installed() {
    let machine = Machine::new(DEBIAN_11);
    let output = machine.set_up("bench");
    assert!(output.status.success(), "{}", said(&output));
    let line =
        "left out, because Debian 11 has no package that suits: CycloneDDS, iceoryx, Fast DDS\n";
    assert!(said(&output).contains(line), "{}", said(&output));
    let calls = machine.called(INSTALL);
    assert!(calls[0].contains(" gcc g++ ") && calls[0].contains("libzmq3-dev"), "{calls:?}");
    assert!(!calls[0].contains("cyclonedds") && !calls[0].contains("iceoryx"), "{calls:?}");
}

#[test]
fn a_package_that_cannot_be_installed_stops_no_other() {
    let machine = Machine::new(DEBIAN_12);
    let refused = "case \" $* \" in *' iceoryx '*) echo 'E: it is broken' >&2; exit 100 ;; esac";
    machine.program("apt-get", refused);
    let output = machine.set_up("bench");
    assert!(output.status.success(), "{}", said(&output));
    let line = "could not install, and going on without: iceoryx (E: it is broken)\n";
    assert!(said(&output).ends_with(line), "{}", said(&output));
    let calls = machine.called(INSTALL);
    for package in ["gcc", "libzmq3-dev", "libfastcdr-dev"] {
        assert!(calls.contains(&format!("{INSTALL} {package}")), "{package}: {calls:?}");
    }
}

#[test]
fn a_package_that_apt_does_not_know_stops_no_other() {
    let machine = Machine::new(DEBIAN_12);
    let unknown = "case $2 in iceoryx) echo '  Candidate: (none)' ;; liblcm-dev) ;; \
        *) echo '  Candidate: 1.0' ;; esac";
    machine.program("apt-cache", unknown);
    let output = machine.set_up("bench");
    assert!(output.status.success(), "{}", said(&output));
    let line = "left out, because apt has no such package here: iceoryx liblcm-dev\n";
    assert!(said(&output).contains(line), "{}", said(&output));
    assert_eq!(machine.called("apt-get update").len(), 1, "its lists may be old");
    let calls = machine.called(INSTALL);
    assert!(calls[0].contains(" gcc ") && !calls[0].contains(" iceoryx "), "{calls:?}");
}

#[test]
fn without_root_set_up_prints_the_commands() {
    let machine = Machine::new(DEBIAN_13);
    machine.program("id", "echo 1000");
    let output = machine.set_up("bench");
    assert!(output.status.success(), "{}", said(&output));
    let line = "not installed; to have them, type: sudo apt-get install gcc g++ ";
    assert!(said(&output).contains(line), "{}", said(&output));
    assert!(machine.called("apt-get").is_empty());
    machine.program("sudo", "[ \"$1\" = -n ] || exec \"$@\"");
    assert!(machine.set_up("bench").status.success());
    assert_eq!(machine.called(INSTALL).len(), 1);
}

#[test]
fn other_distributions_get_a_list_of_packages() {
    for os_release in ["ID=fedora\n", "ID=arch\n", ""] {
        let machine = Machine::new(os_release);
        let output = machine.set_up("bench");
        assert!(output.status.success(), "{}", said(&output));
        let text = said(&output);
        assert!(text.contains("    CycloneDDS: cyclonedds-dev cyclonedds-tools\n"), "{text}");
        assert!(text.contains("    compilers: gcc g++ libc6-dev pkg-config\n"), "{text}");
        assert!(machine.called("apt-get").is_empty());
    }
}

#[test]
fn a_debian_that_is_newer_than_the_table_is_taken_for_the_newest() {
    let machine = Machine::new("ID=debian\nPRETTY_NAME=\"Debian next\"\nVERSION_CODENAME=next\n");
    let output = machine.set_up("bench");
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("Debian next is not in scripts/packages.tsv"),
        "{}",
        said(&output)
    );
    assert!(machine.called(INSTALL)[0].contains("libfastdds-dev"));
}

#[test]
fn missing_or_old_rust_is_reported_with_the_command() {
    let machine = Machine::new(DEBIAN_12);
    let has_rustup = Path::new("/usr/bin/rustup").exists();
    let text = said(&machine.set_up("bench"));
    assert!(!text.contains("type: "), "{text}");
    for (rustc, complaint) in [
        ("echo 'rustc 1.63.0 (4b91a6ea7 2022-08-08)'", "Rust 1.63.0 is too old, 1."),
        ("echo 'error: no such toolchain' >&2; exit 1", "rustc says: error: no such toolchain"),
    ] {
        machine.program("rustc", rustc);
        let output = machine.set_up("bench");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let text = said(&output);
        assert!(text.contains(complaint) && text.contains("; type: "), "{text}");
        assert!(has_rustup || text.contains("https://sh.rustup.rs"), "{text}");
        machine.program("rustup", "exit 0");
        let text = said(&machine.set_up("bench"));
        assert!(text.contains("type: rustup toolchain install 1."), "{text}");
        fs::remove_file(machine.path("bin/rustup")).unwrap();
    }
    assert!(!machine.called(INSTALL).is_empty(), "packages come first");
}

#[test]
fn an_old_python_is_reported() {
    let machine = Machine::new(DEBIAN_11);
    machine.program("python3", "case \"$2\" in *exit*) exit 1 ;; *) echo 3.9 ;; esac");
    let output = machine.set_up("test");
    assert!(output.status.success(), "{}", said(&output));
    let line = "left out, because Python is 3.9 and 3.10 is needed: Myelin's Python module\n";
    assert!(said(&output).ends_with(line), "{}", said(&output));
    assert!(machine.called("python3 -m venv").is_empty());
}

/// The Makefile and its scripts in a folder of this name below the machine's; those that build only
/// note that they were called.
fn clone_to(machine: &Machine, name: &str) -> PathBuf {
    let clone = machine.path(name);
    fs::create_dir_all(clone.join("scripts")).unwrap();
    for file in ["Makefile", "Cargo.toml", "rust-toolchain.toml"] {
        fs::copy(Path::new(REPOSITORY).join(file), clone.join(file)).unwrap();
    }
    for file in ["setup", "packages.tsv", "build-first"] {
        let path = format!("scripts/{file}");
        fs::copy(Path::new(REPOSITORY).join(&path), clone.join(&path)).unwrap();
    }
    for script in ["c-library", "python", "build-zenoh", "rmw", "cyclonedds11", "test"] {
        machine.program(script, "exit 0");
        fs::rename(machine.path("bin").join(script), clone.join("scripts").join(script)).unwrap();
    }
    clone
}

#[test]
fn make_works_in_a_folder_with_a_space_and_an_umlaut() {
    let machine = Machine::new(DEBIAN_12);
    let clone = clone_to(&machine, "my robot/m\u{ff}elin");
    let home = machine.path("ho me");
    for folder in ["ros2", "cyclonedds11"] {
        fs::create_dir_all(home.join(".cache/myelin").join(folder)).unwrap();
    }
    // Its first half, which a Makefile that splits at spaces takes for the home.
    fs::create_dir_all(machine.path("ho/.cache/myelin/ros2")).unwrap();
    let called = machine.path("called");
    let build = format!(
        "mkdir -p \"$CARGO_TARGET_DIR/release\"\n\
         printf '#!/bin/sh\\necho \"myelin $*\" \"$ROS2_PREFIX\" \"$CYCLONEDDS11_PREFIX\" >>\"{}\"\\n' \
         >\"$CARGO_TARGET_DIR/release/myelin\"\nchmod +x \"$CARGO_TARGET_DIR/release/myelin\"",
        called.display()
    );
    machine.program("cargo", &build);
    machine.program("cmake", "exit 0");
    for goal in ["bench", "bench-all", "shm", "test"] {
        let _ = fs::remove_file(&called);
        let mut make = machine.command(Path::new("make"));
        let output = make.current_dir(&clone).arg(goal).env("HOME", &home).output().unwrap();
        assert!(output.status.success(), "{goal}: {}", said(&output));
        if goal == "test" {
            assert_eq!(machine.called("test "), ["test short"]);
            continue;
        }
        let runs = machine.called("myelin bench run ");
        let prefixes = ["ros2", "cyclonedds11"]
            .map(|it| home.join(".cache/myelin").join(it).display().to_string());
        assert_eq!(runs.len(), 1, "{goal}: {}", said(&output));
        assert!(runs[0].ends_with(&prefixes.join(" ")), "{goal}: {runs:?}");
        assert_eq!(machine.called("rmw").len(), 1, "{goal}");
        assert!(clone.join("target/release/myelin").exists(), "{goal}");
    }
}

#[test]
fn a_prefix_that_is_given_empty_stays_empty() {
    let machine = Machine::new(DEBIAN_12);
    let clone = clone_to(&machine, "clone");
    fs::create_dir_all(machine.path(".cache/myelin/ros2")).unwrap();
    let dry = |prefix: Option<&str>| {
        let mut make = machine.command(Path::new("make"));
        make.current_dir(&clone).args(["-s", "-f", "Makefile", "-f", "-", "show"]);
        make.envs(prefix.map(|prefix| ("ROS2_PREFIX", prefix)));
        make.stdin(fs::File::open(clone.join("show.mk")).unwrap());
        String::from_utf8(make.output().unwrap().stdout).unwrap()
    };
    fs::write(clone.join("show.mk"), "show:\n\t@echo \"[$$ROS2_PREFIX]\"\n").unwrap();
    let found = machine.path(".cache/myelin/ros2");
    assert_eq!(dry(None), format!("[{}]\n", found.display()));
    assert_eq!(dry(Some("")), "[]\n");
    assert_eq!(dry(Some("/opt/ros/jazzy")), "[/opt/ros/jazzy]\n");
}
