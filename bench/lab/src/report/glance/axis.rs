//! A logarithmic axis.

use serde::{Deserialize, Serialize};

/// A value on an axis, its position in per cent, and its label.
#[derive(Clone, Serialize)]
pub(in crate::report) struct Tick {
    pub value: f64,
    pub at: f64,
    pub label: String,
}

/// The range from the lowest to the highest value.
#[derive(Deserialize, Serialize)]
pub(in crate::report) struct Axis {
    pub low: f64,
    pub high: f64,
}

impl Axis {
    /// An axis that spans these values; values that are not positive are left out.
    pub(super) fn new(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low <= high { Self { low, high } } else { Self { low: 1.0, high: 10.0 } }
    }

    /// Adds some room at both ends.
    pub(super) fn with_room(self) -> Self {
        let room = (self.high / self.low).powf(ROOM).max(1.1);
        Self { low: self.low / room, high: self.high * room }
    }

    /// The position of a value, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let length = (self.high / self.low).ln().max(1e-9);
        ((value.max(f64::MIN_POSITIVE) / self.low).ln() / length).clamp(0.0, 1.0)
    }

    /// The position of a value, in per cent.
    pub(in crate::report) fn at(&self, value: f64) -> f64 {
        tidy(100.0 * self.share(value))
    }

    /// The start and the length of a line between the given values, in per cent.
    pub(in crate::report) fn span(&self, ends: &[f64]) -> Vec<f64> {
        let [one, other] = [ends[0], ends[1]].map(|end| self.at(end));
        vec![one.min(other), tidy((other - one).abs())]
    }

    /// Powers of ten; for little more than a decade 1, 2 and 5 of each; for less, finer steps until
    /// at least one tick lies inside.
    pub(super) fn ticks(&self, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let steps: &[f64] = match self.high / self.low {
            ratio if ratio < 1.5 => &FINE,
            ratio if ratio < 2.6 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            ratio if ratio < 30.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let values = decades.flat_map(|decade| steps.iter().map(move |it| it * 10f64.powi(decade)));
        let inside = values.filter(|value| (self.low..=self.high).contains(value));
        let tick = |value| Tick { value, at: self.at(value), label: label(value) };
        inside.map(tick).collect()
    }
}

/// Rounds to hundredths of a per cent, which are finer than a pixel.
pub(super) fn tidy(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// No step is more than 1.2 times the one before.
const FINE: [f64; 17] =
    [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0];
/// Fraction of the axis, at either end.
const ROOM: f64 = 0.04;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_has_a_tick_and_room_for_its_labels() {
        for low in (0..400).map(|place| 10f64.powf(f64::from(place) / 100.0)) {
            for length in [1.0, 1.1, 1.3, 2.0, 2.4, 3.0, 9.0, 25.0, 90.0, 9e3] {
                let axis = Axis { low, high: low * length }.with_room();
                let ticks = axis.ticks(|value| value.to_string()).len();
                assert!((1..=6).contains(&ticks), "{ticks} from {low} on, {length} times");
            }
        }
    }
}
