//! Names of topics, nodes and services as people type them: with `*` and `?`, with or without the
//! `/` of ROS 2 in front, and misspelt.

use std::collections::BTreeSet;

pub use myelin::pattern::{is_match, is_pattern};

/// The name that is most like a misspelt one, if one is like it.
pub fn nearest<'a>(name: &str, of: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |it: &&str| strsim::damerau_levenshtein(name, it) <= 1 + name.chars().count() / 3;
    let of: BTreeSet<&str> = of.into_iter().collect();
    let of_same_end = |it: &&&str| it.trim_start_matches('/') == name.trim_start_matches('/');
    if let Some(same) = of.iter().find(of_same_end) {
        return Some(same);
    }
    let likeness = |it: &&str| strsim::damerau_levenshtein(name, it);
    of.into_iter().filter(near).min_by_key(likeness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_or_none() {
        let names = ["/scan", "camera/left", "camera/right"];
        assert_eq!(nearest("scan", names), Some("/scan"));
        assert_eq!(nearest("camera/lfet", names), Some("camera/left"));
        assert_eq!(nearest("odometry", names), None);
    }
}
