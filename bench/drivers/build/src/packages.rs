//! The message about a library that is not installed. It names the packages of this distribution, from
//! `scripts/packages.tsv`.

// Its other user has a use for all of it.
#[allow(dead_code)]
#[path = "../../../../crates/myelin-dds/src/package.rs"]
mod package;

use std::path::Path;

/// An error for a driver that is built for another architecture: the middlewares that are installed are those of
/// the architecture that builds.
pub fn built_here() -> Result<(), String> {
    let of = |variable: &str| {
        let triple = std::env::var(variable).unwrap_or_default();
        triple.split('-').next().map(str::to_owned)
    };
    if of("HOST") == of("TARGET") { Ok(()) } else { Err(BUILT_ELSEWHERE.to_owned()) }
}

/// The message for a user without `need`, a line of the table.
pub fn not_installed(need: &str) -> String {
    println!("cargo:rerun-if-changed={TABLE}");
    println!("cargo:rerun-if-changed={OS_RELEASE}");
    // The table exists only in a clone.
    let table = std::fs::read_to_string(Path::new(TABLE)).unwrap_or_default();
    format!("not installed: {}", remedy(&table, &package::os_release(), need))
}

/// The remedy, from the texts of the table and of `/etc/os-release`.
pub fn remedy(table: &str, os_release: &str, need: &str) -> String {
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    let head = rows.first().map_or(&[][..], Vec::as_slice);
    // An empty or missing cell has the value of the cell to its left.
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

/// The table's column for this distribution: by its codename, or by the codename of the distribution that it is
/// derived from. A newer distribution gets the newest column of its kind. `scripts/setup` chooses in the same way.
fn column(head: &[&str], os_release: &str) -> Option<usize> {
    let of = |codename: &str| head.iter().position(|it| *it == codename);
    if let Some(column) = package::codenames(os_release).into_iter().find_map(of) {
        return Some(column);
    }
    if package::is_like(os_release, "ubuntu") {
        of(NEWEST_UBUNTU)
    } else if package::is_like(os_release, "debian") {
        of(NEWEST_DEBIAN)
    } else {
        None
    }
}

const BUILT_ELSEWHERE: &str = "not in this package, which was built on another architecture: \
    in a clone on this machine, make bench builds it";
const TABLE: &str = "../../../scripts/packages.tsv";
const OS_RELEASE: &str = "/etc/os-release";
const NEED: usize = 1;
const NONE: &str = "-";
const NEWEST_DEBIAN: &str = "trixie";
const NEWEST_UBUNTU: &str = "resolute";
