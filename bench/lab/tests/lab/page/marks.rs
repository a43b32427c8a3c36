//! Positions of the signs and lines that a browser has drawn, read back from the document.

use super::dom::{attribute, elements};

/// A mark by its label, and its position.
#[derive(Debug)]
pub struct Mark {
    pub label: String,
    pub x: f64,
    pub y: f64,
}

/// Every sign whose label begins with `prefix`; its name is the rest of the label.
pub fn signs(html: &str, prefix: &str) -> Vec<Mark> {
    let signs = ["circle", "path"].into_iter().flat_map(|name| elements(html, name));
    signs.filter_map(|tag| mark(tag, prefix)).collect()
}

fn mark(tag: &str, prefix: &str) -> Option<Mark> {
    let label = attribute(tag, "aria-label")?.strip_prefix(prefix)?.to_owned();
    let (x, y) = match attribute(tag, "transform") {
        Some(moved) => moved.strip_prefix("translate(")?.strip_suffix(')')?.split_once(',')?,
        None => (attribute(tag, "cx")?, attribute(tag, "cy")?),
    };
    Some(Mark { label, x: x.parse().unwrap(), y: y.parse().unwrap() })
}

/// The figures of a page, each as text.
pub fn figures(dom: &str) -> impl Iterator<Item = &str> {
    dom.split("<figure").skip(1).map(|figure| figure.split("</figure>").next().unwrap())
}

/// Asserts that all positions are a linear and monotonic function of the values, or of their
/// logarithms.
pub fn assert_scale(pairs: &[(f64, f64)], is_log: bool) {
    let of = |value: f64| if is_log { value.ln() } else { value };
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
    let low = pairs.iter().min_by(by_value).unwrap();
    let high = pairs.iter().max_by(by_value).unwrap();
    let slope = (high.1 - low.1) / (of(high.0) - of(low.0));
    assert!((high.1 - low.1).abs() > 5.0, "values {low:?} and {high:?} are drawn in one place");
    for (value, place) in pairs {
        let expected = low.1 + slope * (of(*value) - of(low.0));
        assert!((place - expected).abs() < 0.6, "{value} is drawn at {place}, not at {expected}");
    }
}
