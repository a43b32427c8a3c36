//! Values written from an input without a type: JSON, or the objects of another language.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value as Json;

use crate::error::{EncodeError, EncodeErrorKind as What, nearest};
use crate::limits::SAMPLE_BYTES_MAX;
use crate::render::{INFINITY, NAN, NEGATIVE_INFINITY};
use crate::types::{Encoding, Field, Kind, Primitive, Type};
use crate::types::{SEQUENCE_LENGTH_BYTES, STRING_LENGTH_BYTES};
use crate::value::{CDR_HEADER_BYTES, Scalar};

/// What a value is written from. It is implemented for `&serde_json::Value`; a binding implements
/// it for the objects of its language.
pub trait Input<'i>: Sized {
    /// What it is.
    fn item(self) -> Item<'i, Self>;
}

/// An input, looked at.
#[derive(Debug)]
#[non_exhaustive]
pub enum Item<'i, I> {
    /// Nothing, which is no value of any type.
    Null,
    /// A number or a truth value.
    Scalar(Scalar),
    /// Text.
    Text(Cow<'i, str>),
    /// The elements of an array of numbers, little-endian, one after the other: for large arrays,
    /// which are copied as a whole.
    Bytes(Cow<'i, [u8]>),
    /// Elements.
    List(Vec<I>),
    /// Fields.
    Map(Vec<(Cow<'i, str>, I)>),
}

/// A sample of this type, written from JSON.
///
/// A field that is missing gets the default value of the definition, or becomes zero or empty: so
/// a command or a program names only what matters, as with `ros2 topic pub` and in Protocol
/// Buffers. A name that is not a field's is an error, so a misspelt one does not become zero unseen. Everything that [`Value::to_json`](crate::Value::to_json) writes is read; besides, whole
/// numbers may be strings. Padding is zero.
///
/// ```
/// use myelin_value::{Schema, Value, encode_json};
///
/// let layout = "Imu{stamp_ns: u64 @0, acceleration: [f64; 3] @8} 32";
/// let ty = Schema::layout(layout).parse()?;
/// let json = serde_json::json!({ "acceleration": [0, 0, 9.81] });
/// let sample = encode_json(&ty, &json)?;
/// assert_eq!(Value::new(&ty, &sample)?.get("acceleration[2]")?.as_f64()?, 9.81);
///
/// let error = encode_json(&ty, &serde_json::json!({ "acceleration": [0, "up", 1] })).unwrap_err();
/// assert_eq!(error.to_string(), "acceleration[1]: a f64 is needed, not a string");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An input that is not a value of the type, with the path of the field.
pub fn encode_json(ty: &Type, json: &Json) -> Result<Vec<u8>, EncodeError> {
    encode(ty, json)
}

/// Like [`encode_json`], from any input.
///
/// # Errors
/// An input that is not a value of the type, with the path of the field.
pub fn encode<'i, I: Input<'i>>(ty: &Type, input: I) -> Result<Vec<u8>, EncodeError> {
    let is_cdr = ty.encoding() == Encoding::Cdr;
    let header = if is_cdr { CDR_HEADER_BYTES } else { 0 };
    let mut encoder = Encoder { bytes: Vec::new(), header, is_cdr };
    let end = encoder.value(ty, input, 0)?;
    if is_cdr {
        // Padded to 4 bytes, which the header tells (DDS-XTypes 1.3, 7.6.3.1.2).
        let padded = end.next_multiple_of(4);
        encoder.grow(padded)?;
        encoder.bytes[..header].copy_from_slice(&[0, 1, 0, (padded - end) as u8]);
    } else {
        encoder.grow(end)?;
    }
    Ok(encoder.bytes)
}

impl<'i> Input<'i> for &'i Json {
    fn item(self) -> Item<'i, Self> {
        match self {
            Json::Null => Item::Null,
            Json::Bool(value) => Item::Scalar(Scalar::Bool(*value)),
            Json::Number(number) => Item::Scalar(if let Some(unsigned) = number.as_u64() {
                Scalar::Unsigned(unsigned.into())
            } else if let Some(signed) = number.as_i64() {
                Scalar::Signed(signed.into())
            } else {
                Scalar::F64(number.as_f64().unwrap_or(f64::NAN))
            }),
            Json::String(text) => Item::Text(text.into()),
            Json::Array(elements) => Item::List(elements.iter().collect()),
            Json::Object(fields) => {
                Item::Map(fields.iter().map(|(name, field)| (name.into(), field)).collect())
            }
        }
    }
}

struct Encoder {
    /// The sample so far; missing bytes are zero.
    bytes: Vec<u8>,
    /// Bytes before the place 0.
    header: usize,
    is_cdr: bool,
}

/// Where a value ends.
type End = Result<usize, EncodeError>;

impl Encoder {
    /// Writes a value to its place.
    fn value<'i, I: Input<'i>>(&mut self, ty: &Type, input: I, at: usize) -> End {
        self.check(at + ty.bytes_min())?;
        let item = input.item();
        match ty.kind() {
            Kind::Primitive(primitive) => {
                let number = number(*primitive, &item)?;
                self.put_aligned(at, &number[..primitive.bytes()])
            }
            Kind::String { bound } => match item {
                Item::Text(text) => self.string(ty, &text, *bound, at),
                other => Err(wrong(ty, &other)),
            },
            Kind::Opaque { .. } => match item {
                Item::Text(digits) => self.put(at, &from_hexadecimal(ty, &digits)?),
                Item::Bytes(bytes) if bytes.len() == ty.bytes_min() => self.put(at, &bytes),
                other => Err(wrong(ty, &other)),
            },
            Kind::Array { element, length } => match item {
                Item::List(elements) if elements.len() == *length => {
                    self.elements(element, elements, at)
                }
                Item::Bytes(bytes) if bytes.len() == ty.bytes_min() => {
                    self.numbers(element, &bytes, at)
                }
                Item::List(elements) => Err(lengths(*length, "elements", elements.len())),
                Item::Bytes(bytes) => Err(lengths(ty.bytes_min(), "B", bytes.len())),
                other => Err(wrong(ty, &other)),
            },
            Kind::Sequence { element, bound } => self.sequence(ty, element, *bound, item, at),
            Kind::Struct { fields, .. } => match item {
                Item::Map(inputs) => {
                    let mut inputs: HashMap<_, _> = inputs.into_iter().collect();
                    let mut end = at;
                    for field in fields {
                        let begin = if self.is_cdr { end } else { at + field.offset };
                        let field_end = match inputs.remove(&*field.name) {
                            Some(input) => self.value(&field.ty, input, begin),
                            None => self.default(field, begin),
                        };
                        end = field_end.map_err(|error| error.within(&field.name))?;
                    }
                    if let Some(name) = inputs.into_keys().min() {
                        let nearest = nearest(&name, fields.iter().map(|field| &*field.name));
                        return Err(What::NoField { name: name.into_owned(), nearest }.into());
                    }
                    Ok(end.max(at + self.struct_bytes(ty)))
                }
                other => Err(wrong(ty, &other)),
            },
        }
    }

    fn sequence<'i, I: Input<'i>>(
        &mut self,
        ty: &Type,
        element: &Type,
        bound: Option<usize>,
        item: Item<'i, I>,
        at: usize,
    ) -> End {
        let length = match &item {
            Item::List(elements) => elements.len(),
            Item::Bytes(bytes) => {
                number_in(element)?;
                let each = element.bytes_min();
                if !bytes.len().is_multiple_of(each) {
                    let wanted = format!("elements of {each} B");
                    return Err(What::BadLength { wanted, given: bytes.len() }.into());
                }
                bytes.len() / each
            }
            other => return Err(wrong(ty, other)),
        };
        if let Some(bound) = bound.filter(|bound| length > *bound) {
            let wanted = format!("at most {bound} elements");
            return Err(What::BadLength { wanted, given: length }.into());
        }
        let first = if self.is_cdr {
            self.count(at, length)?
        } else if bound.is_some() {
            self.put(at, &(length as u64).to_le_bytes())?
        } else {
            at
        };
        let end = match item {
            Item::Bytes(bytes) => self.numbers(element, &bytes, first)?,
            Item::List(elements) => self.elements(element, elements, first)?,
            _ => first,
        };
        Ok(if self.is_cdr || bound.is_none() { end } else { at + ty.bytes_min() })
    }

    fn elements<'i, I: Input<'i>>(&mut self, ty: &Type, elements: Vec<I>, mut at: usize) -> End {
        for (index, element) in elements.into_iter().enumerate() {
            let end = self.value(ty, element, at);
            at = end.map_err(|error| error.within_element(index))?;
        }
        Ok(at)
    }

    /// Elements whose bytes are known.
    fn numbers(&mut self, element: &Type, bytes: &[u8], at: usize) -> End {
        let primitive = number_in(element)?;
        if self.is_cdr && primitive == Primitive::Bool && bytes.iter().any(|byte| *byte > 1) {
            let wanted = "0 or 1 for each truth value".to_owned();
            return Err(What::WrongKind { wanted, given: "other bytes" }.into());
        }
        if bytes.is_empty() {
            return Ok(at);
        }
        self.put(self.aligned(at, primitive.bytes()), bytes)
    }

    fn string(&mut self, ty: &Type, text: &str, bound: Option<usize>, at: usize) -> End {
        if let Some(bound) = bound.filter(|bound| text.len() > *bound) {
            let wanted = format!("at most {bound} B");
            return Err(What::BadLength { wanted, given: text.len() }.into());
        }
        if !self.is_cdr {
            self.count(at, text.len())?;
            self.put(at + STRING_LENGTH_BYTES, text.as_bytes())?;
            return Ok(at + ty.bytes_min());
        }
        if text.contains('\0') {
            return Err(What::Nul.into());
        }
        let at = self.count(at, text.len() + 1)?;
        self.put(at, text.as_bytes())?;
        self.put(at + text.len(), &[0])
    }

    /// A field without an input.
    fn default(&mut self, field: &Field, at: usize) -> End {
        match &field.default {
            Some(value) => self.value(&field.ty, value, at),
            None => self.zero(&field.ty, at),
        }
    }

    /// A value of zeros, of empty strings and sequences, and of default values.
    fn zero(&mut self, ty: &Type, at: usize) -> End {
        // Each of the steps below takes a byte at least, so there are not too many.
        self.check(at + ty.bytes_min())?;
        if !self.is_cdr {
            return Ok(at + ty.bytes_min());
        }
        if let Some(width) = ty.width().filter(|_| !ty.has_defaults()) {
            return self.grow(self.aligned(at, width) + ty.bytes_min());
        }
        match ty.kind() {
            Kind::String { .. } => self.string(ty, "", None, at),
            Kind::Sequence { .. } => self.count(at, 0),
            Kind::Array { element, length } => {
                (0..*length).try_fold(at, |at, _| self.zero(element, at))
            }
            Kind::Struct { fields, .. } => {
                let end = fields.iter().try_fold(at, |at, field| self.default(field, at))?;
                Ok(end.max(at + self.struct_bytes(ty)))
            }
            // A primitive has a width, and nothing in CDR is opaque.
            Kind::Primitive(_) | Kind::Opaque { .. } => Ok(at + ty.bytes_min()),
        }
    }

    /// The least that a struct takes besides its fields: its padding, or in CDR the byte of a
    /// message without fields.
    fn struct_bytes(&self, ty: &Type) -> usize {
        match ty.kind() {
            Kind::Struct { fields, .. } if self.is_cdr && !fields.is_empty() => 0,
            _ => ty.bytes_min(),
        }
    }

    /// A number of elements or bytes, in 4 bytes.
    fn count(&mut self, at: usize, count: usize) -> End {
        const { assert!(STRING_LENGTH_BYTES == 4 && SEQUENCE_LENGTH_BYTES == 4) }
        let count = u32::try_from(count).map_err(|_| What::TooLong)?;
        self.put_aligned(at, &count.to_le_bytes())
    }

    fn put_aligned(&mut self, at: usize, number: &[u8]) -> End {
        self.put(self.aligned(at, number.len()), number)
    }

    fn aligned(&self, at: usize, bytes: usize) -> usize {
        if self.is_cdr { at.next_multiple_of(bytes) } else { at }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> End {
        let end = self.grow(at + bytes.len())?;
        self.bytes[self.header + at..self.header + end].copy_from_slice(bytes);
        Ok(end)
    }

    /// Makes the sample as long as this at least, with zeros.
    fn grow(&mut self, end: usize) -> End {
        self.check(end)?;
        if self.bytes.len() < self.header + end {
            self.bytes.resize(self.header + end, 0);
        }
        Ok(end)
    }

    fn check(&self, end: usize) -> Result<(), EncodeError> {
        if end > SAMPLE_BYTES_MAX { Err(What::TooLong.into()) } else { Ok(()) }
    }
}

/// What elements consist of whose bytes are given.
fn number_in(element: &Type) -> Result<Primitive, EncodeError> {
    match element.kind() {
        Kind::Primitive(primitive) => Ok(*primitive),
        Kind::Array { element, .. } => number_in(element),
        _ => {
            let wanted = format!("a list of {element}");
            Err(What::WrongKind { wanted, given: "bytes" }.into())
        }
    }
}

/// The bytes of a number, little-endian.
fn number<I>(primitive: Primitive, item: &Item<'_, I>) -> Result<[u8; 16], EncodeError> {
    let wrong = || {
        let wanted = format!("a {}", primitive.name());
        EncodeError::from(What::WrongKind { wanted, given: kind_of(item) })
    };
    if let Primitive::F32 | Primitive::F64 = primitive {
        let float = match item {
            Item::Scalar(Scalar::F64(value)) => *value,
            Item::Scalar(Scalar::F32(value)) => f64::from(*value),
            Item::Scalar(Scalar::Signed(value)) => *value as f64,
            Item::Scalar(Scalar::Unsigned(value)) => *value as f64,
            Item::Text(text) => match &**text {
                NAN => f64::NAN,
                INFINITY => f64::INFINITY,
                NEGATIVE_INFINITY => f64::NEG_INFINITY,
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        let single = float as f32;
        if primitive == Primitive::F32 && float.is_finite() && !single.is_finite() {
            return Err(What::OutOfRange { value: float.to_string(), into: "f32" }.into());
        }
        let bits =
            if primitive == Primitive::F32 { single.to_bits().into() } else { float.to_bits() };
        return Ok(u128::from(bits).to_le_bytes());
    }
    if primitive == Primitive::Bool {
        return match item {
            Item::Scalar(Scalar::Bool(value)) => Ok(u128::from(*value).to_le_bytes()),
            _ => Err(wrong()),
        };
    }
    let (bits, is_negative) = match item {
        Item::Scalar(Scalar::Signed(value)) => (value.cast_unsigned(), *value < 0),
        Item::Scalar(Scalar::Unsigned(value)) => (*value, false),
        Item::Text(text) => match text.parse::<i128>() {
            Ok(value) => (value.cast_unsigned(), value < 0),
            Err(_) => (text.parse().map_err(|_| wrong())?, false),
        },
        _ => return Err(wrong()),
    };
    let is_signed = primitive.name().starts_with('i');
    let bits_max = 8 * primitive.bytes() as u32 - u32::from(is_signed);
    let magnitude = if is_negative { !bits } else { bits };
    let fits = magnitude.checked_shr(bits_max).unwrap_or(0) == 0 && (is_signed || !is_negative);
    if !fits {
        let minus = if is_negative { "-" } else { "" };
        let magnitude = if is_negative { bits.wrapping_neg() } else { bits };
        let value = format!("{minus}{magnitude}");
        return Err(What::OutOfRange { value, into: primitive.name() }.into());
    }
    Ok(bits.to_le_bytes())
}

fn from_hexadecimal(ty: &Type, digits: &str) -> Result<Vec<u8>, EncodeError> {
    if digits.len() != 2 * ty.bytes_min() {
        return Err(lengths(2 * ty.bytes_min(), "hexadecimal digits", digits.len()));
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks_exact(2).map(byte).collect();
    let wanted = || "a string of hexadecimal digits".to_owned();
    bytes.ok_or_else(|| What::WrongKind { wanted: wanted(), given: "another string" }.into())
}

fn wrong<I>(ty: &Type, item: &Item<'_, I>) -> EncodeError {
    What::WrongKind { wanted: format!("a {ty}"), given: kind_of(item) }.into()
}

fn lengths(wanted: usize, unit: &str, given: usize) -> EncodeError {
    What::BadLength { wanted: format!("{wanted} {unit}"), given }.into()
}

fn kind_of<I>(item: &Item<'_, I>) -> &'static str {
    match item {
        Item::Null => "null",
        Item::Scalar(Scalar::Bool(_)) => "a truth value",
        Item::Scalar(Scalar::F32(_) | Scalar::F64(_)) => "a fraction",
        Item::Scalar(_) => "a whole number",
        Item::Text(_) => "a string",
        Item::Bytes(_) => "bytes",
        Item::List(_) => "a list",
        Item::Map(_) => "an object",
    }
}
