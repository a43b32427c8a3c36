//! Where two values differ. Whole numbers and texts have to be the same; floats may differ by a
//! tolerance, which is relative to numbers above 1.

use std::collections::BTreeSet;

use myelin_value::{Kind, NumberSlice, Primitive, ReadError, Scalar, Value};
use serde_json::Value as Json;

use crate::message_type::Content;

/// A part that differs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// Its path, with `[]` for any element of an array.
    pub path: String,
    /// Of numbers: how far they are apart.
    pub by: Option<f64>,
    /// Both, as short texts.
    pub texts: [String; 2],
}

/// Compares values, and collects where they differ: each path once, with the largest distance.
pub(crate) struct Comparison<'c> {
    tolerance: f64,
    is_padding: &'c dyn Fn(&str) -> bool,
    path: String,
    found: Vec<Difference>,
}

impl<'c> Comparison<'c> {
    pub(crate) fn new(tolerance: f64, is_padding: &'c dyn Fn(&str) -> bool) -> Comparison<'c> {
        Comparison { tolerance, is_padding, path: String::new(), found: Vec::new() }
    }

    /// The differences of two messages.
    ///
    /// # Errors
    /// Broken data.
    pub(crate) fn run(mut self, one: &Content, other: &Content) -> Result<Vec<Difference>, String> {
        match (one, other) {
            (Content::Value(one), Content::Value(other)) => {
                self.values(one, other).map_err(|error| error.to_string())?;
            }
            (Content::Json(one), Content::Json(other)) => self.json(one, other),
            _ => self.differ(None, || ["another encoding".into(), "another encoding".into()]),
        }
        Ok(self.found)
    }

    fn values(&mut self, one: &Value, other: &Value) -> Result<(), ReadError> {
        match (one.ty().kind(), other.ty().kind()) {
            (Kind::Primitive(_), Kind::Primitive(_)) => {
                self.scalars(one.scalar()?, other.scalar()?);
            }
            (Kind::String { .. }, Kind::String { .. })
            | (Kind::Opaque { .. }, Kind::Opaque { .. }) => {
                if one.as_bytes()? != other.as_bytes()? {
                    let texts = [shown(one), shown(other)];
                    self.differ(None, || texts);
                }
            }
            (
                Kind::Array { .. } | Kind::Sequence { .. },
                Kind::Array { .. } | Kind::Sequence { .. },
            ) => self.arrays(one, other)?,
            (Kind::Struct { .. }, Kind::Struct { .. }) => self.structs(one, other)?,
            _ => self.differ(None, || [one.ty().to_string(), other.ty().to_string()]),
        }
        Ok(())
    }

    fn structs(&mut self, one: &Value, other: &Value) -> Result<(), ReadError> {
        let mut others = other.fields()?.peekable();
        let mut names = BTreeSet::new();
        for field in one.fields()? {
            let (name, value) = field?;
            names.insert(name);
            if (self.is_padding)(name) {
                let _ = others.next_if(|it| matches!(it, Ok((same, _)) if *same == name));
                continue;
            }
            // Fields nearly always are in the same order.
            let next = others.next_if(|it| matches!(it, Ok((same, _)) if *same == name));
            let same = match next.transpose()? {
                Some((_, same)) => Some(same),
                None => other.field(name).ok(),
            };
            self.within(name, |this| match same {
                Some(same) => this.values(&value, &same),
                None => {
                    this.differ(None, || [shown(&value), MISSING.to_owned()]);
                    Ok(())
                }
            })?;
        }
        for field in other.fields()? {
            let (name, value) = field?;
            if !names.contains(name) && !(self.is_padding)(name) {
                self.within(name, |this| {
                    this.differ(None, || [MISSING.to_owned(), shown(&value)]);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn arrays(&mut self, one: &Value, other: &Value) -> Result<(), ReadError> {
        let (length, of_other) = (one.len()?, other.len()?);
        if length != of_other {
            let text = |length| format!("{length} elements");
            self.differ(None, || [text(length), text(of_other)]);
            return Ok(());
        }
        if let (Ok(one), Ok(other)) = (one.as_slice(), other.as_slice())
            && one.element == other.element
            && one.shape == other.shape
        {
            return self.within_elements(|this| {
                this.slices(&one, &other);
                Ok(())
            });
        }
        for (one, other) in one.elements()?.zip(other.elements()?) {
            let (one, other) = (one?, other?);
            self.within_elements(|this| this.values(&one, &other))?;
        }
        Ok(())
    }

    fn slices(&mut self, one: &NumberSlice, other: &NumberSlice) {
        if one.bytes == other.bytes && one.big_endian == other.big_endian {
            return;
        }
        let bytes = one.element.bytes();
        for (left, right) in one.bytes.chunks_exact(bytes).zip(other.bytes.chunks_exact(bytes)) {
            if left != right || one.big_endian != other.big_endian {
                let scalar = |of: &NumberSlice, bytes| number(of.element, bytes, of.big_endian);
                self.scalars(scalar(one, left), scalar(other, right));
            }
        }
    }

    fn scalars(&mut self, one: Scalar, other: Scalar) {
        let by = match (one, other) {
            (Scalar::F32(_) | Scalar::F64(_), _) | (_, Scalar::F32(_) | Scalar::F64(_)) => {
                let (left, right) = (float(one), float(other));
                if self.is_near(left, right) {
                    return;
                }
                (left - right).abs()
            }
            _ if whole(one) == whole(other) => return,
            _ => (float(one) - float(other)).abs(),
        };
        self.differ(Some(by), || [scalar_text(one), scalar_text(other)]);
    }

    fn is_near(&self, left: f64, right: f64) -> bool {
        let scale = left.abs().max(right.abs()).max(1.0);
        left == right
            || (left.is_nan() && right.is_nan())
            || (left - right).abs() <= self.tolerance * scale && scale.is_finite()
    }

    fn json(&mut self, one: &Json, other: &Json) {
        match (one, other) {
            (Json::Object(fields), Json::Object(others)) => {
                let names: BTreeSet<_> = fields.keys().chain(others.keys()).collect();
                for name in names {
                    let both = (fields.get(name), others.get(name));
                    let _ = self.within(name, |this| {
                        match both {
                            (Some(one), Some(other)) => this.json(one, other),
                            (one, other) => this.differ(None, || {
                                [one, other].map(|it| it.map_or(MISSING.into(), json_text))
                            }),
                        }
                        Ok(())
                    });
                }
            }
            (Json::Array(elements), Json::Array(others)) if elements.len() == others.len() => {
                for (one, other) in elements.iter().zip(others) {
                    let _ = self.within_elements(|this| {
                        this.json(one, other);
                        Ok(())
                    });
                }
            }
            (Json::Number(left), Json::Number(right)) if left != right => {
                let of = |it: &serde_json::Number| it.as_f64().unwrap_or(f64::NAN);
                let (left, right) = (of(left), of(right));
                let are_whole = !one.is_f64() && !other.is_f64();
                if are_whole || !self.is_near(left, right) {
                    let by = Some((left - right).abs());
                    self.differ(by, || [json_text(one), json_text(other)]);
                }
            }
            _ if one == other => {}
            _ => self.differ(None, || [json_text(one), json_text(other)]),
        }
    }

    fn within(
        &mut self,
        name: &str,
        run: impl FnOnce(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let result = run(self);
        self.path.truncate(length);
        result
    }

    fn within_elements(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let length = self.path.len();
        self.path.push_str("[]");
        let result = run(self);
        self.path.truncate(length);
        result
    }

    fn differ(&mut self, by: Option<f64>, texts: impl FnOnce() -> [String; 2]) {
        // The last is likely the same: elements of an array.
        if let Some(known) = self.found.iter_mut().rev().find(|known| known.path == self.path) {
            known.by = larger(known.by, by);
        } else if self.found.len() < PATHS_MAX {
            self.found.push(Difference { path: self.path.clone(), by, texts: texts() });
        }
    }
}

/// The larger of two distances; one that is not a number is the largest.
pub(crate) fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) if one.is_nan() || one > other => Some(one),
        (Some(_), Some(other)) => Some(other),
        (one, other) => one.or(other),
    }
}

fn number(of: Primitive, bytes: &[u8], big_endian: bool) -> Scalar {
    let mut number = [0; 16];
    number[..bytes.len()].copy_from_slice(bytes);
    if big_endian {
        number[..bytes.len()].reverse();
    }
    let unsigned = u128::from_le_bytes(number);
    let unused_bits = 128 - 8 * bytes.len() as u32;
    match of {
        Primitive::Bool => Scalar::Bool(unsigned != 0),
        Primitive::F32 => Scalar::F32(f32::from_bits(unsigned as u32)),
        Primitive::F64 => Scalar::F64(f64::from_bits(unsigned as u64)),
        Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 | Primitive::I128 => {
            Scalar::Signed((unsigned << unused_bits).cast_signed() >> unused_bits)
        }
        _ => Scalar::Unsigned(unsigned),
    }
}

/// The sign, and the digits.
fn whole(of: Scalar) -> (bool, u128) {
    match of {
        Scalar::Bool(value) => (false, value.into()),
        Scalar::Signed(value) => (value < 0, value.unsigned_abs()),
        Scalar::Unsigned(value) => (false, value),
        Scalar::F32(_) | Scalar::F64(_) => unreachable!("these are compared as floats"),
    }
}

fn float(of: Scalar) -> f64 {
    match of {
        Scalar::Bool(value) => f64::from(u8::from(value)),
        Scalar::Signed(value) => value as f64,
        Scalar::Unsigned(value) => value as f64,
        Scalar::F32(value) => value.into(),
        Scalar::F64(value) => value,
    }
}

fn scalar_text(of: Scalar) -> String {
    match of {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Signed(value) => value.to_string(),
        Scalar::Unsigned(value) => value.to_string(),
        Scalar::F32(value) => value.to_string(),
        Scalar::F64(value) => value.to_string(),
    }
}

fn shown(value: &Value) -> String {
    short(value.to_json(SHOWN_ELEMENTS).unwrap_or_else(|error| error.to_string()))
}

fn json_text(of: &Json) -> String {
    short(of.to_string())
}

fn short(text: String) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

const MISSING: &str = "nothing";
/// Of a message.
const PATHS_MAX: usize = 64;
const SHOWN_ELEMENTS: usize = 8;
const SHOWN_CHARACTERS: usize = 60;
