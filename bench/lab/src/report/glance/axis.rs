//! A logarithmic axis.

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
}

/// Of the axis, at either end.
const ROOM: f64 = 0.04;
