//! Columns of numbers as short texts, which `assets/packed.js` reads.
//!
//! An integer is written as the difference to the previous one, with its sign in the lowest bit.
//! Each character has five bits, lowest first, and a sixth bit that says whether more follow. These
//! are the variable-length quantities of source maps. They need no separators, and a slowly
//! changing column needs little more than one character per number.

/// Packs integers.
pub(super) fn integers(values: impl IntoIterator<Item = i64>) -> String {
    let mut text = String::new();
    let mut before = 0;
    for value in values {
        put(&mut text, value - before);
        before = value;
    }
    text
}

/// Packs positive figures to within 0.05 %, as logarithms; 0 and unknown values have their own
/// codes.
pub(super) fn logarithms(values: impl IntoIterator<Item = Option<f64>>) -> String {
    integers(values.into_iter().map(|value| match value {
        None => UNKNOWN,
        Some(value) if value <= 0.0 => ZERO,
        Some(value) => ((STEPS * value.ln()).round() as i64).max(ZERO + 1),
    }))
}

/// Packs figures to within half of `step`; negative ones become 0.
pub(super) fn multiples(values: impl IntoIterator<Item = Option<f64>>, step: f64) -> String {
    integers(values.into_iter().map(|value| match value {
        None => UNKNOWN,
        Some(value) => (value / step).round().max(0.0) as i64,
    }))
}

fn put(text: &mut String, value: i64) {
    let mut rest = (value.unsigned_abs() << 1) | u64::from(value < 0);
    loop {
        let (digit, more) = (rest & 31, rest >> 5);
        text.push(char::from(DIGITS[(digit | if more > 0 { 32 } else { 0 }) as usize]));
        if more == 0 {
            return;
        }
        rest = more;
    }
}

/// None of these characters has a meaning in JSON or HTML.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Steps of a logarithm per factor of e.
const STEPS: f64 = 1000.0;
/// Below the logarithm of every double: 1000 × ln(1e-308) is −709,196.
const UNKNOWN: i64 = -1_000_000;
const ZERO: i64 = -999_999;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<i64> {
        let (mut values, mut before, mut rest, mut shift) = (Vec::new(), 0, 0u64, 0);
        for byte in text.bytes() {
            let digit = DIGITS.iter().position(|known| *known == byte).unwrap() as u64;
            rest |= (digit & 31) << shift;
            shift += 5;
            if digit & 32 == 0 {
                let size = (rest >> 1) as i64;
                before += if rest & 1 == 1 { -size } else { size };
                values.push(before);
                (rest, shift) = (0, 0);
            }
        }
        values
    }

    proptest! {
        #[test]
        fn packed_integers_are_restored(
            values in prop::collection::vec(-1_000_000_000i64..1_000_000_000, 0..99),
        ) {
            prop_assert_eq!(read(&integers(values.clone())), values);
        }

        #[test]
        fn packed_logarithms_have_the_documented_precision(value in 1e-4f64..1e9) {
            let found = (read(&logarithms([Some(value)]))[0] as f64 / STEPS).exp();
            prop_assert!((found / value - 1.0).abs() < 0.0006);
        }
    }

    #[test]
    fn unknown_values_stay_absent_when_packed() {
        let text = logarithms([None, Some(0.0), Some(1.0)]);
        assert_eq!(read(&text), [UNKNOWN, ZERO, 0]);
        assert_eq!(read(&multiples([Some(0.26), None], 0.1)), [3, UNKNOWN]);
    }
}
