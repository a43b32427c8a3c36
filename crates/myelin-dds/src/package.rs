//! How to install CycloneDDS 0.10 in this distribution. The build script uses this file, too.

/// The text of `/etc/os-release`; empty if there is none.
pub fn os_release() -> String {
    std::fs::read_to_string("/etc/os-release").unwrap_or_default()
}

/// The remedy, from the text of `/etc/os-release`. It names the package of Debian 12, or the package of Debian 13
/// and Ubuntu 24.04.
pub fn install(os_release: &str, bookworm: &str, later: &str) -> String {
    let values = os_release.lines().filter_map(|line| Some(line.split_once('=')?.1));
    let words: Vec<&str> = values.flat_map(|value| value.trim_matches('"').split(' ')).collect();
    let is = |word| words.contains(&word);
    if is("bookworm") {
        format!("apt-get install {bookworm}")
    } else if is("bullseye") || is("jammy") {
        "build CycloneDDS 0.10; Debian 11 and Ubuntu 22.04 have no package of it".to_owned()
    } else if is("debian") || is("ubuntu") {
        format!("apt-get install {later}")
    } else {
        "install CycloneDDS 0.10".to_owned()
    }
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
            ("ID=fedora\n", "install CycloneDDS 0.10"),
            ("", "install CycloneDDS 0.10"),
        ] {
            assert_eq!(install(os_release, "old", "new"), expected, "{os_release}");
        }
        let none = install("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\n", "old", "new");
        assert!(none.contains("no package"), "{none}");
    }
}
