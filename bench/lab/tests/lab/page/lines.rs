//! Positions of the lines that a browser has drawn, read back from the document.

use super::dom::{attribute, elements};

/// The points of every line with this label, one list for each piece.
pub fn lines(html: &str, label: &str) -> Vec<Vec<(f64, f64)>> {
    let ours = |tag: &&str| attribute(tag, "aria-label") == Some(label);
    let paths = elements(html, "path").filter(ours);
    let pieces = paths.flat_map(|tag| attribute(tag, "d").unwrap_or_default().split('M').skip(1));
    let point = |text: &str| {
        let (x, y) = text.split_once(',')?;
        Some((x.parse().ok()?, y.trim_end_matches('Z').parse().ok()?))
    };
    pieces.map(|piece| piece.split('L').filter_map(point).collect()).collect()
}
