//! A sample, read: fields by a schema, JSON, text, or bytes.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use myelin_value::{Kind, Primitive, ReadError, ReadErrorKind, Scalar, Type, Value};
use prost_reflect::MessageDescriptor;
use serde_json::Value as Json;

use crate::protobuf;
use crate::text::{is_unprintable, printable};

/// How the samples of a topic are read.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// By a type.
    Fields(Arc<Type>),
    /// Each sample is a JSON text.
    Json,
    /// Each sample is a message of Protocol Buffers.
    Protobuf(MessageDescriptor),
    /// Each sample is UTF-8.
    Text,
    /// Nothing is known of them.
    Bytes,
}

/// A sample, or a part of it.
#[derive(Clone, Debug)]
pub enum Document<'a> {
    /// By its type.
    Value(Value<'a>),
    /// JSON.
    Json(Cow<'a, Json>),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl Format {
    /// That of a schema in this encoding whose fields cannot be read by
    /// [`Schema::parse`](myelin_value::Schema::parse).
    pub fn of_encoding(encoding: &str) -> Format {
        match encoding.to_ascii_lowercase().as_str() {
            "json" | "jsonschema" | "application/json" => Format::Json,
            "text" | "text/plain" | "utf8" | "utf-8" => Format::Text,
            _ => Format::Bytes,
        }
    }

    /// That of a type: any bytes are shown as such.
    pub fn of_type(ty: &Arc<Type>) -> Format {
        if is_bytes(ty) { Format::Bytes } else { Format::Fields(ty.clone()) }
    }

    /// Reads a sample.
    ///
    /// # Errors
    /// Bytes that are no value of the type, or no JSON.
    pub fn read<'a>(&'a self, sample: &'a [u8]) -> Result<Document<'a>, String> {
        Ok(match self {
            Format::Fields(ty) => {
                Document::Value(Value::new(ty, sample).map_err(|error| error.to_string())?)
            }
            Format::Json => {
                let json = serde_json::from_slice(sample);
                Document::Json(Cow::Owned(json.map_err(|error| format!("no JSON: {error}"))?))
            }
            Format::Protobuf(message) => {
                Document::Json(Cow::Owned(protobuf::read(message, sample)?))
            }
            Format::Text => {
                // Some programs in C send the NUL, too.
                let sample = sample.strip_suffix(b"\0").unwrap_or(sample);
                Document::Text(String::from_utf8_lossy(sample))
            }
            Format::Bytes => Document::Bytes(sample),
        })
    }
}

impl<'a> Document<'a> {
    /// The part at a path, such as `pose.points[3].x`.
    ///
    /// # Errors
    /// A path that is not there; broken bytes.
    pub fn get(&self, path: &str) -> Result<Document<'_>, ReadError> {
        match self {
            Document::Value(value) => Ok(Document::Value(value.get(path)?)),
            Document::Json(json) => Ok(Document::Json(Cow::Borrowed(json_at(json, path)?))),
            Document::Text(_) | Document::Bytes(_) if path.is_empty() => Ok(self.clone()),
            Document::Text(_) => Err(no_fields("a text")),
            Document::Bytes(_) => Err(no_fields("bytes without a schema")),
        }
    }

    /// A number or a truth value; `None`: it is a text.
    ///
    /// # Errors
    /// It is something else; broken bytes.
    pub fn scalar(&self) -> Result<Option<Scalar>, ReadError> {
        match self {
            Document::Value(value) => match value.ty().kind() {
                Kind::String { .. } => Ok(None),
                _ => value.scalar().map(Some),
            },
            Document::Json(json) => match &**json {
                Json::Bool(value) => Ok(Some(Scalar::Bool(*value))),
                Json::String(_) => Ok(None),
                Json::Number(number) => Ok(Some(match (number.as_u64(), number.as_i64()) {
                    (Some(unsigned), _) => Scalar::Unsigned(unsigned.into()),
                    (_, Some(signed)) => Scalar::Signed(signed.into()),
                    _ => Scalar::F64(number.as_f64().unwrap_or(f64::NAN)),
                })),
                _ => Err(no_fields("no number")),
            },
            Document::Text(_) => Ok(None),
            Document::Bytes(_) => Err(no_fields("bytes without a schema")),
        }
    }

    /// A text.
    ///
    /// # Errors
    /// It is something else.
    pub fn string(&self) -> Result<String, ReadError> {
        match self {
            Document::Value(value) => value.as_string(),
            Document::Json(json) => {
                json.as_str().map(str::to_owned).ok_or_else(|| no_fields("no text"))
            }
            Document::Text(text) => Ok(text.clone().into_owned()),
            Document::Bytes(_) => Err(no_fields("bytes without a schema")),
        }
    }

    /// Appends it as JSON on one line, with at most so many elements of each array.
    ///
    /// # Errors
    /// Broken bytes.
    pub fn push_json(&self, to: &mut String, elements_max: usize) -> Result<(), ReadError> {
        match self {
            Document::Value(value) => to.push_str(&value.to_json(elements_max)?),
            Document::Json(json) => push_escaped(to, &cut(json, elements_max).to_string()),
            Document::Text(text) => to.push_str(&quoted(text)),
            Document::Bytes(bytes) => {
                to.push('[');
                for (at, byte) in bytes.iter().take(elements_max).enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    let _ = write!(to, "{comma}{byte}");
                }
                if bytes.len() > elements_max {
                    let _ = write!(to, ", {{\"...\": {}}}", bytes.len());
                }
                to.push(']');
            }
        }
        Ok(())
    }

    /// Appends it as lines for people, which are YAML except for a hex dump of bytes.
    ///
    /// # Errors
    /// Broken bytes.
    pub fn push_lines(&self, to: &mut String, limit: usize, width: usize) -> Result<(), ReadError> {
        match self {
            Document::Value(value) => to.push_str(&value.to_lines(limit)?),
            Document::Json(_) => {
                self.push_json(to, limit)?;
                to.push('\n');
            }
            Document::Text(text) => {
                for line in text.lines() {
                    to.push_str(&printable(line));
                    to.push('\n');
                }
            }
            Document::Bytes(bytes) => push_hex_dump(to, bytes, limit.saturating_mul(2), width),
        }
        Ok(())
    }
}

/// The type of the part at a path.
///
/// # Errors
/// One sentence: the path that the type does not have, with the nearest name.
pub fn type_at<'t>(ty: &'t Type, path: &str) -> Result<&'t Type, String> {
    let bad = || format!("{path:?} is not a path; write a path like pose.points[3].x");
    let mut ty = ty;
    let mut rest = path;
    while !rest.is_empty() {
        let before = &path[..path.len() - rest.len()];
        let of = if before.is_empty() { String::new() } else { format!("{before}: ") };
        if let Some(indexed) = rest.strip_prefix('[') {
            let (index, behind) = indexed.split_once(']').ok_or_else(bad)?;
            if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(bad());
            }
            let index: usize = index.parse().map_err(|_| bad())?;
            ty = match ty.kind() {
                Kind::Array { length, .. } if index >= *length => {
                    return Err(format!("{of}there is no element {index}, the length is {length}"));
                }
                Kind::Array { element, .. } | Kind::Sequence { element, .. } => element,
                _ => return Err(format!("{of}this is a {ty}, not an array")),
            };
            rest = behind;
            continue;
        }
        let name = if before.is_empty() { rest } else { rest.strip_prefix('.').ok_or_else(bad)? };
        let (name, behind) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
        if name.is_empty() {
            return Err(bad());
        }
        let Kind::Struct { fields, .. } = ty.kind() else {
            return Err(format!("{of}this is a {ty}, and has no field {name:?}"));
        };
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let names = fields.iter().map(|field| &*field.name);
            let nearest = crate::names::nearest(name, names.clone());
            let hint = match nearest {
                Some(nearest) => format!("; did you mean {nearest:?}?"),
                None => {
                    let more = if fields.len() > NAMES_MAX { ", .." } else { "" };
                    let names: Vec<_> = names.take(NAMES_MAX).collect();
                    format!("; there are {}{more}", names.join(", "))
                }
            };
            return Err(format!("{of}there is no field {name:?}{hint}"));
        };
        (ty, rest) = (&field.ty, behind);
    }
    Ok(ty)
}

/// The paths of a type's numbers, texts and arrays, in order: the columns of a table.
pub fn leaves(ty: &Type) -> Vec<String> {
    fn add(ty: &Type, path: &str, to: &mut Vec<String>) {
        match ty.kind() {
            Kind::Struct { fields, .. } if !fields.is_empty() => {
                for field in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    add(&field.ty, &format!("{path}{dot}{}", field.name), to);
                }
            }
            _ => to.push(path.to_owned()),
        }
    }
    let mut all = Vec::new();
    add(ty, "", &mut all);
    all
}

/// Whether a type is that of any bytes.
fn is_bytes(ty: &Type) -> bool {
    match ty.kind() {
        Kind::Sequence { element, bound: None } => {
            matches!(element.kind(), Kind::Primitive(Primitive::U8))
        }
        _ => false,
    }
}

fn json_at<'j>(json: &'j Json, path: &str) -> Result<&'j Json, ReadError> {
    let bad_path = || ReadError::from(ReadErrorKind::BadPath(path.to_owned()));
    let (mut json, mut rest) = (json, path);
    while !rest.is_empty() {
        if let Some(indexed) = rest.strip_prefix('[') {
            let (index, behind) = indexed.split_once(']').ok_or_else(bad_path)?;
            let index: usize = index.parse().map_err(|_| bad_path())?;
            let Json::Array(elements) = json else { return Err(no_fields("no array")) };
            let length = elements.len();
            json = elements.get(index).ok_or(ReadErrorKind::NoElement { index, length })?;
            rest = behind;
            continue;
        }
        let name = rest.strip_prefix('.').unwrap_or(rest);
        let (name, behind) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
        if name.is_empty() {
            return Err(bad_path());
        }
        let Json::Object(fields) = json else { return Err(no_fields("no object")) };
        let no_field = || {
            let nearest = crate::names::nearest(name, fields.keys().map(|it| &**it));
            ReadErrorKind::NoField { name: name.to_owned(), nearest: nearest.map(str::to_owned) }
        };
        json = fields.get(name).ok_or_else(no_field)?;
        rest = behind;
    }
    Ok(json)
}

fn no_fields(ty: &str) -> ReadError {
    ReadErrorKind::WrongKind { wanted: "a value with fields", ty: ty.to_owned() }.into()
}

/// With at most so many elements of each array; a cut one ends in its length, as in
/// [`Value::to_json`].
fn cut(json: &Json, elements_max: usize) -> Json {
    match json {
        Json::Array(elements) => {
            let kept = elements.iter().take(elements_max).map(|it| cut(it, elements_max));
            let length = elements.len();
            let rest = (length > elements_max).then(|| serde_json::json!({ "...": length }));
            Json::Array(kept.chain(rest).collect())
        }
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, it)| (name.clone(), cut(it, elements_max)));
            Json::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// A JSON string without characters that a terminal obeys.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_escaped(&mut out, &Json::from(text).to_string());
    out
}

/// Appends a JSON text; what a terminal obeys in its strings becomes escapes.
fn push_escaped(to: &mut String, json: &str) {
    for character in json.chars() {
        match character {
            it if is_unprintable(it) => {
                for unit in it.encode_utf16(&mut [0; 2]) {
                    let _ = write!(to, "\\u{unit:04x}");
                }
            }
            it => to.push(it),
        }
    }
}

fn push_hex_dump(to: &mut String, bytes: &[u8], bytes_max: usize, width: usize) {
    let of_line = if width >= 76 { 16 } else { 8 };
    for (number, line) in bytes[..bytes.len().min(bytes_max)].chunks(of_line).enumerate() {
        let _ = write!(to, "{:04x} ", number * of_line);
        for at in 0..of_line {
            match line.get(at) {
                Some(byte) => _ = write!(to, " {byte:02x}"),
                None => to.push_str("   "),
            }
        }
        to.push_str("  ");
        to.extend(line.iter().map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        }));
        to.push('\n');
    }
    if bytes.len() > bytes_max {
        let _ = writeln!(to, ".. {} B in all", bytes.len());
    } else if bytes.is_empty() {
        to.push_str("(empty)\n");
    }
}

/// Names of fields in an error.
const NAMES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hex_dump_fits_its_width() {
        for (width, longest) in [(80, 71), (40, 39)] {
            let mut text = String::new();
            push_hex_dump(&mut text, &[b'a'; 40], 100, width);
            assert_eq!(text.lines().map(str::len).max(), Some(longest), "{text}");
        }
        let mut text = String::new();
        push_hex_dump(&mut text, &[0x1b; 40], 16, 80);
        assert!(text.ends_with("  ................\n.. 40 B in all\n"), "{text}");
    }

    #[test]
    fn json_is_cut_like_values_are() {
        let format = Format::Json;
        let sample = format.read(br#"{"a": [1, 2, 3], "b": "\u001b"}"#).unwrap();
        let mut text = String::new();
        sample.push_json(&mut text, 2).unwrap();
        assert_eq!(text, r#"{"a":[1,2,{"...":3}],"b":"\u001b"}"#);
        assert_eq!(sample.get("a[2]").unwrap().scalar(), Ok(Some(Scalar::Unsigned(3))));
        assert!(sample.get("c").unwrap_err().to_string().contains("no field \"c\""));
        assert!(Format::Json.read(b"{").unwrap_err().contains("no JSON"));
    }

    #[test]
    fn text_has_no_characters_that_a_terminal_obeys() {
        let mut text = String::new();
        Format::Text.read(b"a\x1b[2J\0").unwrap().push_lines(&mut text, 9, 80).unwrap();
        assert_eq!(text, "a\\u{1b}[2J\n");
        assert_eq!(quoted("a\u{9b}\"\n"), "\"a\\u009b\\\"\\n\"");
        assert_eq!(serde_json::from_str::<String>(&quoted("\u{e0041}")).unwrap(), "\u{e0041}");
    }
}
