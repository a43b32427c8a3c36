//! The message about a library that pkg-config does not find, and the packages that contain it.

use std::process::Command;

use myelin_bench_build::{packages, probe};

/// The file in Debian's liblcm-dev.
const LCM: &str = "Name: lcm\nDescription: LCM\nVersion: 1.3.1\nRequires: glib-2.0 gthread-2.0\n\
    Libs: -llcm\n";
const REMEDY: &str = "not installed: apt-get install liblcm-dev libglib2.0-dev";

/// pkg-config's output about LCM if only `files` exist.
fn said(files: &[(&str, &str)]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "lcm"]).env_remove("PKG_CONFIG_PATH");
    match command.env("PKG_CONFIG_LIBDIR", folder.path()).output() {
        Ok(output) => Some(String::from_utf8(output.stderr).unwrap()),
        Err(error) => {
            println!("left out: pkg-config: {error}");
            None
        }
    }
}

#[test]
fn a_library_that_another_requires_is_named() {
    let Some(said) = said(&[("lcm.pc", LCM)]) else { return };
    assert_eq!(
        probe::not_found("lcm", REMEDY, &said),
        "not installed: glib-2.0, which lcm requires; apt-get install liblcm-dev libglib2.0-dev"
    );
}

#[test]
fn a_missing_library_is_not_said_to_require_others() {
    let Some(said) = said(&[]) else { return };
    assert_eq!(
        probe::not_found("lcm", REMEDY, &said),
        "not installed: apt-get install liblcm-dev libglib2.0-dev"
    );
}

/// What to do about a `need` in the distribution of this `/etc/os-release`.
fn remedy(need: &str, os_release: &str) -> String {
    packages::remedy(include_str!("../../../../scripts/packages.tsv"), os_release, need)
}

#[test]
fn packages_are_those_of_the_distribution() {
    for (codename, packages) in [
        ("bookworm", "apt-get install libfastrtps-dev libfastcdr-dev"),
        ("trixie", "apt-get install libfastdds-dev libfastcdr-dev"),
        ("jammy", "apt-get install libfastrtps-dev libfastcdr-dev"),
        ("bullseye", "Debian 11 has no Fast DDS that this driver can use"),
    ] {
        let os_release = format!("ID=debian\nVERSION_CODENAME={codename}\n");
        assert_eq!(remedy("Fast DDS", &os_release), packages, "{codename}");
    }
    let of_all = remedy("LCM", "ID=ubuntu\nVERSION_CODENAME=resolute\n");
    assert_eq!(of_all, "apt-get install liblcm-dev libglib2.0-dev");
    let jammy = remedy("CycloneDDS", "ID=ubuntu\nVERSION_CODENAME=jammy\n");
    assert_eq!(jammy, "Ubuntu 22.04 has no CycloneDDS that this driver can use");
}

#[test]
fn packages_of_a_derivative_are_those_of_what_it_derives_from() {
    let mint = "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_CODENAME=virginia\n\
        UBUNTU_CODENAME=jammy\n";
    assert!(remedy("CycloneDDS", mint).starts_with("Ubuntu 22.04 has no"));
    let newer = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=later\n";
    assert!(remedy("Fast DDS", newer).contains("libfastdds-dev"));
    let testing = "ID=debian\nVERSION_CODENAME=later\n";
    assert!(remedy("Fast DDS", testing).contains("libfastdds-dev"));
}

#[test]
fn unknown_distributions_get_the_debian_name() {
    let fedora = remedy("ZeroMQ", "ID=fedora\nVERSION_ID=44\n");
    assert_eq!(fedora, "install ZeroMQ, which is libzmq3-dev in Debian");
    assert_eq!(remedy("ZeroMQ", ""), fedora);
}
