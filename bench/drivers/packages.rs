//! What the build scripts of drivers say of a library that is not installed: its packages in this
//! distribution, by `scripts/packages.tsv`. A file and no crate: build scripts take it in by its path.

// Each takes what it needs.
#![allow(dead_code)]

use std::path::Path;

/// What to tell the user who has no `need`, a line of the table.
pub fn not_installed(need: &str) -> String {
    println!("cargo:rerun-if-changed={TABLE}");
    println!("cargo:rerun-if-changed={OS_RELEASE}");
    // Only of a clone is the table there.
    let table = std::fs::read_to_string(Path::new(TABLE)).unwrap_or_default();
    let os_release = std::fs::read_to_string(OS_RELEASE).unwrap_or_default();
    format!("not installed: {}", remedy(&table, &os_release, need))
}

/// What to do, by the texts of the table and of `/etc/os-release`.
pub fn remedy(table: &str, os_release: &str, need: &str) -> String {
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    let head = rows.first().map_or(&[][..], Vec::as_slice);
    // An empty cell, or one that is left out, is as the one to its left.
    let cell = |name: &str, column: usize| {
        let row = rows.iter().find(|row| row.get(NEED) == Some(&name))?;
        let column = column.min(row.len() - 1);
        row[NEED + 1..=column].iter().rfind(|cell| !cell.is_empty()).copied()
    };
    if let Some(column) = column(head, os_release) {
        return match cell(need, column) {
            Some(packages) if packages != NONE => format!("apt-get install {packages}"),
            _ => {
                let name = cell("name", column).unwrap_or_default();
                format!("{name} has no {need} that this driver can use")
            }
        };
    }
    let debian = head.iter().position(|name| *name == NEWEST_DEBIAN);
    match debian.and_then(|debian| cell(need, debian)) {
        Some(packages) => format!("install {need}, which is {packages} in Debian"),
        None => format!("install {need}"),
    }
}

/// The table's column of this distribution: by its codename, that of what it is derived from, or, of a
/// newer one, the last of its kind. `scripts/setup` chooses alike.
fn column(head: &[&str], os_release: &str) -> Option<usize> {
    let value = |name: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"')
    };
    let of = |codename: &str| head.iter().position(|it| *it == codename);
    let codenames = ["VERSION_CODENAME", "UBUNTU_CODENAME", "DEBIAN_CODENAME"];
    if let Some(column) = codenames.iter().find_map(|name| of(value(name))) {
        return Some(column);
    }
    let kinds = format!("{} {}", value("ID"), value("ID_LIKE"));
    let is = |kind: &str| kinds.split(' ').any(|it| it == kind);
    match () {
        () if is("ubuntu") => of(NEWEST_UBUNTU),
        () if is("debian") => of(NEWEST_DEBIAN),
        () => None,
    }
}

const TABLE: &str = "../../../scripts/packages.tsv";
const OS_RELEASE: &str = "/etc/os-release";
const NEED: usize = 1;
const NONE: &str = "-";
const NEWEST_DEBIAN: &str = "trixie";
const NEWEST_UBUNTU: &str = "resolute";
