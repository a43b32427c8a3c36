//! The distribution by its `/etc/os-release`, and how to install CycloneDDS 0.10 there. Build scripts use this
//! file, too: that of this crate, and those of the bench's drivers.

/// The text of `/etc/os-release`; empty if there is none.
pub fn os_release() -> String {
    std::fs::read_to_string("/etc/os-release").unwrap_or_default()
}

/// The remedy, from the text of `/etc/os-release`. It names the package of Debian 12, or the package of Debian 13
/// and Ubuntu 24.04.
pub fn install(os_release: &str, bookworm: &str, later: &str) -> String {
    let codenames = codenames(os_release);
    let is = |codename| codenames.contains(&codename);
    if is("bookworm") {
        format!("apt-get install {bookworm}")
    } else if is("bullseye") || is("jammy") {
        "build CycloneDDS 0.10; Debian 11 and Ubuntu 22.04 have no package of it".to_owned()
    } else if is_like(os_release, "debian") || is_like(os_release, "ubuntu") {
        format!("apt-get install {later}")
    } else {
        "install CycloneDDS 0.10".to_owned()
    }
}

/// The codenames of the distribution and of those that it is derived from; empty where there is none.
pub fn codenames(os_release: &str) -> [&str; 3] {
    ["VERSION_CODENAME", "UBUNTU_CODENAME", "DEBIAN_CODENAME"].map(|name| value(os_release, name))
}

/// Whether it is `id`, or says that it is like it.
pub fn is_like(os_release: &str, id: &str) -> bool {
    let names = ["ID", "ID_LIKE"];
    names.iter().flat_map(|name| value(os_release, name).split(' ')).any(|it| it == id)
}

fn value<'a>(os_release: &'a str, name: &str) -> &'a str {
    let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_default().trim_matches('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_that_of_the_distribution() {
        for (os_release, expected) in [
            ("ID=debian\nVERSION_CODENAME=bookworm\n", "apt-get install old"),
            ("VERSION_CODENAME=trixie\nID=debian\n", "apt-get install new"),
            ("ID=ubuntu\nID_LIKE=debian\nUBUNTU_CODENAME=noble\n", "apt-get install new"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt-get install new"),
            ("ID=linuxmint\nID_LIKE=debian\nDEBIAN_CODENAME=bookworm\n", "apt-get install old"),
            ("ID=fedora\nPRETTY_NAME=\"not debian\"\n", "install CycloneDDS 0.10"),
            ("ID=fedora\n", "install CycloneDDS 0.10"),
            ("", "install CycloneDDS 0.10"),
        ] {
            assert_eq!(install(os_release, "old", "new"), expected, "{os_release}");
        }
        let none = install("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\n", "old", "new");
        assert!(none.contains("no package"), "{none}");
    }
}
