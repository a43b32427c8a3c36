//! A logarithmic axis.

use serde::Serialize;

use super::picture::Quantity;

/// A value on an axis, where it lies, in per cent, and what stands there.
#[derive(Clone, Serialize)]
pub(in crate::report) struct Tick {
    pub value: f64,
    pub at: f64,
    pub label: String,
}

/// From its lowest value to its highest.
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
}

impl Axis {
    /// As long as these values need; what lies on no such axis is left out.
    pub(super) fn new(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low <= high { Self { low, high } } else { Self { low: 1.0, high: 10.0 } }
    }

    /// With some room at both ends.
    pub(super) fn with_room(self) -> Self {
        let room = (self.high / self.low).powf(ROOM).max(1.1);
        Self { low: self.low / room, high: self.high * room }
    }

    /// Where a value lies, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let length = (self.high / self.low).ln().max(1e-9);
        ((value.max(f64::MIN_POSITIVE) / self.low).ln() / length).clamp(0.0, 1.0)
    }

    /// The same in per cent.
    pub(super) fn at(&self, value: f64) -> f64 {
        tidy(100.0 * self.share(value))
    }

    /// Where a way from one value to another begins, and how long it is, in per cent.
    pub(super) fn span(&self, ends: [f64; 2]) -> [f64; 2] {
        let [one, other] = ends.map(|end| self.at(end));
        [one.min(other), tidy((other - one).abs())]
    }

    /// Powers of ten; of little more than a decade, 1, 2 and 5 of each.
    pub(super) fn ticks(&self, quantity: Quantity) -> Vec<Tick> {
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let steps: &[f64] = if self.high / self.low < 30.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let values = decades.flat_map(|decade| steps.iter().map(move |it| it * 10f64.powi(decade)));
        let inside = values.filter(|value| (self.low..=self.high).contains(value));
        let tick = |value| Tick { value, at: self.at(value), label: quantity.round(value) };
        inside.map(tick).collect()
    }
}

/// Hundredths are finer than a pixel.
pub(super) fn tidy(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Of the axis, at either end.
const ROOM: f64 = 0.04;
