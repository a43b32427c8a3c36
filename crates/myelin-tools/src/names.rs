//! Names of topics, nodes and services as people type them: with `*` and `?`, with or without the
//! `/` of ROS 2 in front, and misspelt.

use std::collections::BTreeSet;

/// Whether `name` matches `pattern`: `*` stands for any text and `?` for one character. The time is
/// at most the product of both lengths.
pub fn is_match(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<_>, Vec<_>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut of_name, mut star) = (0, 0, None);
    while of_name < name.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, of_name));
                at += 1;
            }
            (Some(&c), _) if c == '?' || c == name[of_name] => {
                at += 1;
                of_name += 1;
            }
            (_, Some((of_star, from))) => {
                at = of_star + 1;
                of_name = from + 1;
                star = Some((of_star, from + 1));
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

/// Whether a pattern may stand for several names.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

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
    fn patterns_match_whole_names() {
        for (pattern, name, matches) in [
            ("camera/*", "camera/left", true),
            ("camera/*", "camera", false),
            ("*/left", "camera/left", true),
            ("camera/?eft", "camera/left", true),
            ("*a*b*", "xaxbx", true),
            ("*a*b", "xaxbx", false),
            ("", "", true),
        ] {
            assert_eq!(is_match(pattern, name), matches, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn the_nearest_name_is_found_or_none() {
        let names = ["/scan", "camera/left", "camera/right"];
        assert_eq!(nearest("scan", names), Some("/scan"));
        assert_eq!(nearest("camera/lfet", names), Some("camera/left"));
        assert_eq!(nearest("odometry", names), None);
    }
}
