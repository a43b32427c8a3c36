//! Range checks that know the place of what they check.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::input_error::{InputError, Source};

/// A rate as it is written: messages a second, or a word.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Rate {
    Hertz(f64),
    Word(String),
}

/// Range checks that know the place of what they check.
pub(super) struct Limits<'a> {
    pub(super) source: &'a Source,
}

impl Limits<'_> {
    pub(super) fn within(
        &self,
        key: &str,
        value: Spanned<i64>,
        low: i64,
        high: i64,
    ) -> Result<u64, InputError> {
        let found = *value.get_ref();
        if (low..=high).contains(&found) {
            return Ok(found as u64);
        }
        Err(self.bad(value.span(), key, found, &format!("use {low} to {high}")))
    }

    pub(super) fn optional(
        &self,
        key: &str,
        value: Option<Spanned<i64>>,
        low: i64,
        high: i64,
        otherwise: u64,
    ) -> Result<u64, InputError> {
        value.map_or(Ok(otherwise), |value| self.within(key, value, low, high))
    }

    pub(super) fn seconds(
        &self,
        key: &str,
        value: Option<Spanned<f64>>,
    ) -> Result<f64, InputError> {
        let Some(value) = value else {
            return Ok(0.0);
        };
        let found = *value.get_ref();
        if found > 0.0 && found <= SECONDS_MAX {
            return Ok(found);
        }
        let remedy = format!("use more than 0 and at most {SECONDS_MAX} seconds");
        Err(self.bad(value.span(), key, found, &remedy))
    }

    pub(super) fn real(
        &self,
        key: &str,
        value: Spanned<f64>,
        low: f64,
        high: f64,
    ) -> Result<f64, InputError> {
        let found = *value.get_ref();
        if (low..=high).contains(&found) {
            return Ok(found);
        }
        Err(self.bad(value.span(), key, found, &format!("use {low} to {high}")))
    }

    pub(super) fn rate(&self, rate: Spanned<Rate>) -> Result<Option<f64>, InputError> {
        let remedy =
            "give messages a second, above 0: 0.001 to 1000000, or \"max\" for back to back";
        match rate.get_ref() {
            Rate::Word(word) if word == "max" => Ok(None),
            Rate::Word(word) => Err(self.bad(rate.span(), "rate_hz", format!("{word:?}"), remedy)),
            Rate::Hertz(hertz) if (1e-3..=1e6).contains(hertz) => Ok(Some(*hertz)),
            Rate::Hertz(hertz) => Err(self.bad(rate.span(), "rate_hz", hertz, remedy)),
        }
    }

    pub(super) fn bad(
        &self,
        span: Range<usize>,
        key: &str,
        found: impl std::fmt::Display,
        remedy: &str,
    ) -> InputError {
        self.source.error(span, format!("{key}: {found} is out of range")).remedy(remedy)
    }

    pub(super) fn missing(&self, table: &str, key: &str, remedy: &str) -> InputError {
        self.source.error(self.source.find(table), format!("{key}: nothing given")).remedy(remedy)
    }
}

/// A name of something in the list `key`.
pub(super) fn plain_name(
    limits: &Limits<'_>,
    key: &str,
    name: &Spanned<String>,
) -> Result<String, InputError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let found = name.get_ref();
    if !(1..=NAME_MAX).contains(&found.len()) || !found.chars().all(plain) {
        let text = format!("{key}: name {found:?} is not a plain word");
        let remedy = format!("use up to {NAME_MAX} letters, digits, `-` and `_`");
        return Err(limits.source.error(name.span(), text).remedy(remedy));
    }
    Ok(found.clone())
}

const NAME_MAX: usize = 32;
const SECONDS_MAX: f64 = 86_400.0;
