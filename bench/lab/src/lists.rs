//! Helpers for lists in a meaningful order, such as that of a plan or a file, which sets and maps
//! would lose.

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
