//! Values as text: JSON for programs, lines for people.

use std::fmt::Write;

use crate::error::{ReadError, ReadErrorKind as What};
use crate::limits::TEXT_BYTES_MAX;
use crate::text::push_quoted;
use crate::types::{Kind, Type};
use crate::value::{Scalar, Value};

impl Value<'_> {
    /// The value as JSON, with at most so many elements of each array; `usize::MAX` for all.
    ///
    /// - The fields keep their order. Strings are complete; bytes that are not UTF-8 become `�`.
    /// - An array that is cut ends in the element `{"...": N}`, where `N` is its full length. No
    ///   field has this name, so it is never mistaken for a value.
    /// - Whole numbers have all their digits, also beyond 2⁵³; those beyond 64 bits are strings.
    /// - JSON has no number for them, so these are strings: `"NaN"`, `"Infinity"`, `"-Infinity"`,
    ///   as in the JSON of Protocol Buffers. All other floats are read back unchanged.
    /// - An opaque value is a string of hexadecimal digits.
    ///
    /// [`encode_json`](crate::encode_json) reads it back.
    ///
    /// ```
    /// # use myelin_value::{Schema, Value};
    /// let ty = Schema::layout("Track{id: u64 @0, points: [f32; 4] @8} 24").parse()?;
    /// let track = Value::new(&ty, &[0; 24])?;
    /// assert_eq!(track.to_json(2)?, r#"{"id": 0, "points": [0.0, 0.0, {"...": 4}]}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Broken bytes, or a text of more than
    /// [`TEXT_BYTES_MAX`](crate::limits::TEXT_BYTES_MAX).
    pub fn to_json(&self, elements_max: usize) -> Result<String, ReadError> {
        let mut text = Text { elements_max, ..Text::new() };
        text.inline(self)?;
        Ok(text.out)
    }

    /// The value as lines for people, which are also YAML: a line for each field and for each
    /// array of numbers. Arrays have at most `limit` elements, and strings at most `limit`
    /// characters. It holds no characters that a terminal obeys.
    ///
    /// ```
    /// # use myelin_value::{Schema, Value};
    /// let layout = "Scan{at: Point{x: i16 @0, y: i16 @2} 4 @0, ranges: [u16; 4] @4} 12";
    /// let ty = Schema::layout(layout).parse()?;
    /// let scan = Value::new(&ty, &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])?;
    /// assert_eq!(scan.to_lines(2)?, "\
    /// at:
    ///   x: 1
    ///   y: 2
    /// ranges: [3, 4, {\"...\": 4}]
    /// ");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`to_json`](Value::to_json).
    pub fn to_lines(&self, limit: usize) -> Result<String, ReadError> {
        let mut text = Text { elements_max: limit, characters_max: limit, ..Text::new() };
        if is_inline(self.ty()) {
            text.inline(self)?;
            text.put("\n")?;
        } else {
            text.block(self, 0)?;
        }
        Ok(text.out)
    }
}

struct Text {
    out: String,
    elements_max: usize,
    /// The longest string.
    characters_max: usize,
    bytes_max: usize,
}

impl Text {
    fn new() -> Text {
        let (elements_max, characters_max) = (usize::MAX, usize::MAX);
        Text { out: String::new(), elements_max, characters_max, bytes_max: TEXT_BYTES_MAX }
    }

    fn inline(&mut self, value: &Value<'_>) -> Result<(), ReadError> {
        match value.ty().kind() {
            Kind::Primitive(_) => self.scalar(value.scalar()?),
            Kind::String { .. } => self.string(value.text()?),
            Kind::Opaque { .. } => self.hexadecimal(value.as_bytes()?),
            Kind::Struct { .. } => {
                self.put("{")?;
                let mut comma = "";
                for field in value.fields()? {
                    let (name, field) = field?;
                    self.put(comma)?;
                    self.put("\"")?;
                    self.put(name)?; // It needs no quoting.
                    self.put("\": ")?;
                    self.inline(&field).map_err(|error| error.within(name))?;
                    comma = ", ";
                }
                self.put("}")
            }
            Kind::Array { .. } | Kind::Sequence { .. } => {
                self.put("[")?;
                let mut comma = "";
                for (index, element) in value.elements()?.take(self.elements_max).enumerate() {
                    self.put(comma)?;
                    let written = element.and_then(|element| self.inline(&element));
                    written.map_err(|error| error.within_element(index))?;
                    comma = ", ";
                }
                if let Some(length) = self.cut(value)? {
                    self.put(comma)?;
                    self.put(&rest(length))?;
                }
                self.put("]")
            }
        }
    }

    /// The lines of a struct or of an array of structs, each behind so many spaces.
    fn block(&mut self, value: &Value<'_>, indent: usize) -> Result<(), ReadError> {
        if let Kind::Struct { .. } = value.ty().kind() {
            return self.block_of_fields(value, indent, indent);
        }
        for (index, element) in value.elements()?.take(self.elements_max).enumerate() {
            let element = element?;
            self.indent(indent)?;
            self.put("- ")?;
            let written = if is_inline(element.ty()) {
                self.inline(&element).and_then(|()| self.put("\n"))
            } else if let Kind::Struct { .. } = element.ty().kind() {
                self.block_of_fields(&element, 0, indent + 2)
            } else {
                self.put("\n").and_then(|()| self.block(&element, indent + 2))
            };
            written.map_err(|error| error.within_element(index))?;
        }
        if let Some(length) = self.cut(value)? {
            self.indent(indent)?;
            self.put(&format!("- {}\n", rest(length)))?;
        }
        Ok(())
    }

    /// `first`: spaces before the first field, which may stand behind a dash.
    fn block_of_fields(
        &mut self,
        value: &Value<'_>,
        first: usize,
        indent: usize,
    ) -> Result<(), ReadError> {
        let mut spaces = first;
        for field in value.fields()? {
            let (name, field) = field?;
            self.indent(spaces)?;
            self.put(name)?;
            self.put(":")?;
            let written = if is_inline(field.ty()) || field.is_empty() == Ok(true) {
                self.put(" ").and_then(|()| self.inline(&field)).and_then(|()| self.put("\n"))
            } else {
                let is_struct = matches!(field.ty().kind(), Kind::Struct { .. });
                let deeper = if is_struct { indent + 2 } else { indent };
                self.put("\n").and_then(|()| self.block(&field, deeper))
            };
            written.map_err(|error| error.within(name))?;
            spaces = indent;
        }
        Ok(())
    }

    /// The length of an array that is longer than the limit.
    fn cut(&self, value: &Value<'_>) -> Result<Option<usize>, ReadError> {
        Ok(Some(value.len()?).filter(|length| *length > self.elements_max))
    }

    fn scalar(&mut self, scalar: Scalar) -> Result<(), ReadError> {
        let out = &mut self.out;
        // Rust writes all digits that are needed to read the same float back, and always a dot or
        // an exponent. A string takes every write.
        let _ = match scalar {
            Scalar::Bool(value) => write!(out, "{value}"),
            Scalar::Signed(value) if i64::try_from(value).is_err() => write!(out, "\"{value}\""),
            Scalar::Signed(value) => write!(out, "{value}"),
            Scalar::Unsigned(value) if u64::try_from(value).is_err() => write!(out, "\"{value}\""),
            Scalar::Unsigned(value) => write!(out, "{value}"),
            Scalar::F32(value) if value.is_finite() => write!(out, "{value:?}"),
            Scalar::F64(value) if value.is_finite() => write!(out, "{value:?}"),
            Scalar::F32(value) => write!(out, "\"{}\"", not_finite(value.into())),
            Scalar::F64(value) => write!(out, "\"{}\"", not_finite(value)),
        };
        self.put("")
    }

    fn string(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        self.check(bytes.len())?;
        // Copies first, because the bytes may change.
        let bytes = bytes.to_vec();
        let text = String::from_utf8_lossy(&bytes);
        match text.char_indices().nth(self.characters_max) {
            Some((end, _)) => push_quoted(&mut self.out, &format!("{}...", &text[..end])),
            None => push_quoted(&mut self.out, &text),
        }
        self.put("")
    }

    fn hexadecimal(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        self.check(bytes.len())?;
        self.put("\"")?;
        for byte in bytes {
            let _ = write!(self.out, "{byte:02x}");
        }
        self.put("\"")
    }

    fn indent(&mut self, spaces: usize) -> Result<(), ReadError> {
        // A level of types takes two spaces.
        self.put(&" ".repeat(spaces))
    }

    fn put(&mut self, text: &str) -> Result<(), ReadError> {
        self.out.push_str(text);
        self.check(0)
    }

    /// Before so many bytes are added.
    fn check(&self, bytes: usize) -> Result<(), ReadError> {
        let is_short = self.out.len().saturating_add(bytes) <= self.bytes_max;
        if is_short { Ok(()) } else { Err(What::TooLong.into()) }
    }
}

/// Whether a value stands behind its name: a number, a string, or arrays of them.
fn is_inline(ty: &Type) -> bool {
    match ty.kind() {
        Kind::Struct { fields, .. } => fields.is_empty(),
        Kind::Array { element, .. } | Kind::Sequence { element, .. } => is_inline(element),
        Kind::Primitive(_) | Kind::String { .. } | Kind::Opaque { .. } => true,
    }
}

fn rest(length: usize) -> String {
    format!("{{\"...\": {length}}}")
}

pub(crate) fn not_finite(value: f64) -> &'static str {
    match value {
        f64::INFINITY => INFINITY,
        f64::NEG_INFINITY => NEGATIVE_INFINITY,
        _ => NAN,
    }
}

pub(crate) const NAN: &str = "NaN";
pub(crate) const INFINITY: &str = "Infinity";
pub(crate) const NEGATIVE_INFINITY: &str = "-Infinity";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schema;

    /// A schema can make names of 255 B for each byte of a sample.
    #[test]
    fn a_text_that_multiplies_is_refused() {
        let names: String =
            (10..99).map(|at| format!(", {}{at}: () @1", "n".repeat(250))).collect();
        let ty = Schema::layout(&format!("[A{{a: u8 @0{names}}} 1]")).parse().unwrap();
        let value = Value::new(&ty, &[0; 100]).unwrap();
        let bytes = |elements_max| {
            let mut text = Text { elements_max, bytes_max: 1 << 20, ..Text::new() };
            text.inline(&value).map(|()| text.out.len()).map_err(|error| error.kind)
        };
        let ten = bytes(10).unwrap();
        assert!(ten > 10 * 89 * 252, "{ten}");
        assert_eq!(bytes(100), Err(What::TooLong));
    }
}
