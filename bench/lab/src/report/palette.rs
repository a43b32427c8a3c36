//! The style of each system, the same on every page: the family gives a hue; the variant a sign, a
//! dash and a shade.
//!
//! Signs and dashes help readers who confuse hues; no two systems of the tables share hue, sign and
//! dash. Systems that are not in the tables come after them: variants in the order of the page,
//! families all in the last hue.

use serde::Serialize;

use super::format;
use super::view::{Traits, View};
use crate::lists::distinct;

/// How every plot draws one system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Style {
    pub name: String,
    pub floor: bool,
    /// The name up to the first dot.
    pub family: String,
    /// How it waits, unless it sleeps.
    pub wait: &'static str,
    /// A CSS colour for light and dark pages.
    pub colour: String,
    /// Plot's name of the symbol.
    pub symbol: &'static str,
    /// The symbol as a character; not used for the floor, which is drawn as dashed lines.
    pub sign: &'static str,
    /// A dash pattern; empty for a solid line.
    pub dash: &'static str,
}

/// The styles of all measured systems, in the order of the summary.
pub(super) fn palette(view: &View) -> Vec<Style> {
    let listed = view.analysis.summary.systems.iter().map(|system| system.name.as_str());
    let names = distinct(listed.chain(view.entries().map(|entry| entry.system.name)));
    let measured =
        |name: &str| view.entries().map(|it| it.system).find(|system| system.name == name);
    let systems: Vec<Traits> = names.into_iter().filter_map(measured).collect();
    let names: Vec<_> = systems.iter().map(|system| (system.name, system.floor)).collect();
    let wait = |(style, system): (Style, &Traits)| Style {
        wait: format::wait_remark(system.wait),
        ..style
    };
    styles(&names).into_iter().zip(&systems).map(wait).collect()
}

fn styles(names: &[(&str, bool)]) -> Vec<Style> {
    let style = |(at, &(name, floor)): (usize, &(&str, bool))| {
        let (hue, listed) = place(name, floor);
        // Variants that are not in the table follow it, in order.
        let place = listed.unwrap_or_else(|| {
            let before = names[..at].iter().filter(|other| place(other.0, other.1) == (hue, None));
            FAMILIES.get(hue).map_or(0, |(_, all)| all.split(' ').count()) + before.count()
        });
        let (symbol, sign) = SYMBOLS[place % SYMBOLS.len()];
        Style {
            name: name.to_owned(),
            floor,
            family: name.split('.').next().unwrap_or(name).to_owned(),
            wait: "",
            colour: if floor { FLOOR.to_owned() } else { shade(hue - 1, place) },
            symbol,
            sign,
            dash: match floor {
                true => FLOOR_DASHES[place % FLOOR_DASHES.len()],
                false => DASHES[place % DASHES.len()],
            },
        }
    };
    names.iter().enumerate().map(style).collect()
}

/// The hue of a system, and its position among the variants of its family; `None` if it is not in
/// the tables. All floors share a hue.
fn place(name: &str, floor: bool) -> (usize, Option<usize>) {
    let (family, variant) = name.split_once('.').unwrap_or((name, ""));
    let known = FAMILIES.iter().position(|(known, _)| *known == family);
    let known = known.filter(|&hue| floor == (FAMILIES[hue].0 == FLOORS));
    let listed = known.and_then(|hue| FAMILIES[hue].1.split(' ').position(|it| it == variant));
    (known.unwrap_or(if floor { 0 } else { FAMILIES.len() }), listed)
}

fn shade(hue: usize, place: usize) -> String {
    match place % 3 {
        0 => format!("var(--system-{hue})"),
        1 => format!("color-mix(in oklab, var(--system-{hue}) 68%, var(--ink))"),
        _ => format!("color-mix(in oklab, var(--system-{hue}) 74%, var(--paper))"),
    }
}

const FLOOR: &str = "var(--floor)";
/// The family of the floor, the first of [`FAMILIES`].
const FLOORS: &str = "os";

/// Families with their variants. The style sheet has the hue of the first one after the floor as
/// `--system-0`, and one more hue for families that are not listed. Append, never insert: a
/// position determines a style.
const FAMILIES: [(&str, &str); 15] = [
    (FLOORS, "futex spin pipe udp tcp unix-stream unix-dgram eventfd spin-futex call tcp-tls"),
    (
        "myelin",
        "shm-block shm-poll shm-predictive shm-adaptive local-callback local-wait local-predictive \
         dds dds-secure",
    ),
    ("cyclonedds", "udp iceoryx iceoryx-copy udp-tuned iceoryx-loan udp-secure"),
    ("iceoryx2", "event poll"),
    ("fastdds", "udp shm datasharing"),
    ("zenoh", "tcp shm tls"),
    ("lcm", "udpm"),
    ("zeromq", "ipc"),
    ("iceoryx", "waitset poll"),
    ("libxr", "callback sync"),
    ("ros2", "rcl-fastrtps rcl-myelin rclcpp rclcpp-myelin rclcpp-intra"),
    ("cyclonedds11", "udp myelin iceoryx myelin-copy myelin-block"),
    ("cyberrt", "shm shm-multicast arena intra rtps"),
    ("horus", "shm"),
    ("ecal", "shm shm-zero-copy"),
];

/// Names in Plot, and the same symbols as characters.
const SYMBOLS: [(&str, &str); 7] = [
    ("circle", "●"),
    ("square", "■"),
    ("triangle", "▲"),
    ("diamond", "◆"),
    ("star", "★"),
    ("cross", "✚"),
    ("wye", "▼"),
];

const DASHES: [&str; 4] = ["", "7 2.5", "2.5 2", "10 2.5 2.5 2.5"];

const FLOOR_DASHES: [&str; 12] = [
    "5 3",
    "1.5 2.5",
    "8 3 1.5 3",
    "3 2",
    "10 4",
    "6 2 1.5 2 1.5 2",
    "1 4",
    "4 5",
    "12 2 2 2",
    "2 1.2",
    "9 2 1.5 2 1.5 2 1.5 2",
    "15 3",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<(String, bool)> {
        let variants = |(family, variants): &(&str, &'static str)| {
            let (family, floor) = ((*family).to_owned(), *family == FLOORS);
            variants.split(' ').map(move |variant| (format!("{family}.{variant}"), floor))
        };
        FAMILIES.iter().flat_map(variants).collect()
    }

    fn of(names: &[(String, bool)]) -> Vec<Style> {
        styles(&names.iter().map(|(name, floor)| (name.as_str(), *floor)).collect::<Vec<_>>())
    }

    #[test]
    fn no_two_systems_look_alike_even_without_shades() {
        let mut names = all();
        names.extend(["x.a", "x.b", "y.a", "myelin.new", "synthetic"].map(|it| (it.into(), false)));
        names.push(("os.new".to_owned(), true));
        let styles = of(&names);
        for (place, one) in styles.iter().enumerate() {
            for other in &styles[..place] {
                let hue = |style: &Style| {
                    let name = style.colour.split("--").nth(1)?;
                    Some(name.split([')', ' ']).next()?.to_owned())
                };
                let alike = hue(one) == hue(other)
                    && one.dash == other.dash
                    && (one.floor || one.sign == other.sign);
                assert!(!alike, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_systems_style_is_the_same_on_every_page() {
        let all = all();
        for (place, style) in of(&all).into_iter().enumerate() {
            assert_eq!(of(&all[place..=place]), [style]);
        }
    }

    #[test]
    fn every_hue_is_in_the_style_sheet() {
        let css = include_str!("assets/report.css");
        for hue in 0..FAMILIES.len() {
            assert_eq!(css.matches(&format!("--system-{hue}: #")).count(), 2, "light and dark");
        }
    }
}
