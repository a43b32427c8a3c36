//! Where `scripts/setup` puts environments for tests, which several programs of tests look for.

use std::path::PathBuf;

/// The folder, as in `scripts/setup`; `None` without a home.
pub fn cache() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || Some(PathBuf::from(of("HOME")?).join(".cache"));
    let users = || of("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    of("MYELIN_CACHE").map(PathBuf::from).or_else(|| Some(users()?.join("myelin")))
}
