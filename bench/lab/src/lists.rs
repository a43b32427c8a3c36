//! Helpers for lists in a meaningful order, such as that of a plan or a file, which sets and maps
//! would lose; and numbers of things as texts.

use std::collections::BTreeSet;

/// The items without repetitions, in order.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    items.into_iter().fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

/// The items without repetitions, ascending.
pub(crate) fn ascending<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    BTreeSet::from_iter(items).into_iter().collect()
}

/// Groups items by key, in the order of the first item of each.
pub(crate) fn grouped<K: PartialEq, V>(
    items: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, same)) => same.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// The first `most` items, and the number of others: `a; b; and 3 more`.
pub(crate) fn few(items: &[String], most: usize) -> String {
    let shown = items.iter().take(most).cloned().collect::<Vec<_>>().join("; ");
    match items.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// An integer with digits in groups of three from 10 000 on, separated by a no-break space.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut grouped = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push('\u{a0}');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 system`, `3 systems`.
pub(crate) fn plural(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", count(number as u64), if number == 1 { "" } else { "s" })
}

/// Systems that cannot be measured, given all of them by name and with what is missing: those of one
/// driver with the same reason together, as `fastdds.*` if they are all that the driver has there.
pub(crate) fn unmeasured<'a>(
    systems: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
) -> Vec<(String, &'a str)> {
    let driver = |name: &'a str| name.split('.').next().unwrap_or(name);
    let missing = systems.clone().filter_map(|(name, reason)| Some((name, reason?)));
    let groups = grouped(missing.map(|(name, reason)| ((driver(name), reason), name)));
    let label = |((of, reason), names): ((&'a str, &'a str), Vec<&str>)| {
        let all = systems.clone().filter(|(name, _)| driver(name) == of).count();
        let is_all = names.len() > 1 && names.len() == all;
        (if is_all { format!("{of}.*") } else { names.join(", ") }, reason)
    };
    groups.into_iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_with_the_same_missing_part_are_named_together() {
        let (fastdds, roudi) = (Some("needs Fast DDS"), Some("needs iceoryx"));
        let systems = [
            ("os.futex", None),
            ("cyclonedds.udp", None),
            ("cyclonedds.iceoryx", roudi),
            ("cyclonedds.iceoryx-copy", roudi),
            ("fastdds.udp", fastdds),
            ("fastdds.shm", fastdds),
            ("lcm.udpm", Some("needs LCM")),
        ];
        let groups = unmeasured(systems.into_iter());
        let names: Vec<&str> = groups.iter().map(|(names, _)| &**names).collect();
        assert_eq!(names, ["cyclonedds.iceoryx, cyclonedds.iceoryx-copy", "fastdds.*", "lcm.udpm"]);
        assert_eq!(groups[1].1, "needs Fast DDS");
    }

    #[test]
    fn no_system_is_named_if_all_can_be_measured() {
        assert!(unmeasured([("os.futex", None)].into_iter()).is_empty());
    }
}
