//! Definitions of ROS 2 messages as schemas, as MCAP has them: the text of the `.msg` file, then
//! for each other message that it needs a line of `=`, a line `MSG: package/Type`, and its text.
//!
//! Constants are read over: they are not in the samples. Default values are those of a sample that
//! is written without these fields; one that does not fit the type is ignored. There is no
//! `wstring`: its bytes differ between the middlewares of ROS 2.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::encode::encode_json;
use crate::error::{SchemaError, SchemaErrorKind as What};
use crate::limits::DEPTH_MAX;
use crate::types::{Encoding, Field, Kind, Primitive, Type, check_name};

/// The type of the message of this name.
pub(crate) fn parse(name: &str, text: &str) -> Result<Type, SchemaError> {
    let mut schema = Definitions::split(name, text)?;
    let ty = schema.resolve(0, 1)?;
    Ok(Arc::unwrap_or_clone(ty))
}

struct Definitions<'t> {
    all: Vec<Definition<'t>>,
    by_name: HashMap<String, usize>,
}

struct Definition<'t> {
    /// `package/Type`.
    name: String,
    /// Each with its number in the schema.
    lines: Vec<(usize, &'t str)>,
    state: State,
}

#[derive(Clone)]
enum State {
    New,
    /// Its fields are being resolved. One of them that needs it is a cycle.
    Open,
    Done(Arc<Type>),
}

impl<'t> Definitions<'t> {
    fn split(name: &str, text: &'t str) -> Result<Self, SchemaError> {
        let mut schema = Definitions { all: Vec::new(), by_name: HashMap::new() };
        schema.begin(name).map_err(|what| what.at("the name of the schema"))?;
        let mut lines = (1..).zip(text.lines());
        while let Some((number, line)) = lines.next() {
            let trimmed = line.trim();
            if trimmed.len() >= SEPARATOR_MIN && trimmed.bytes().all(|byte| byte == b'=') {
                let (number, line) = lines.next().unwrap_or((number, ""));
                let name = line.trim().strip_prefix("MSG:");
                let begun = match name {
                    Some(name) => schema.begin(name.trim()),
                    None => Err(What::Expected("MSG: and the name of a message")),
                };
                begun.map_err(|what| what.at(format_args!("line {number}")))?;
                continue;
            }
            let last = schema.all.last_mut().expect("the first was begun above");
            last.lines.push((number, line));
        }
        Ok(schema)
    }

    fn begin(&mut self, name: &str) -> Result<(), What> {
        check_name(name)?;
        let name = short(name);
        if self.by_name.insert(name.clone(), self.all.len()).is_some() {
            return Err(What::Twice(name));
        }
        self.all.push(Definition { name, lines: Vec::new(), state: State::New });
        Ok(())
    }

    /// The type of a definition. `depth` bounds the recursion; the type itself is checked again,
    /// because a definition that was resolved before may be used deeper.
    fn resolve(&mut self, index: usize, depth: usize) -> Result<Arc<Type>, SchemaError> {
        let definition = &mut self.all[index];
        let name = definition.name.clone();
        match definition.state.clone() {
            State::Done(ty) => return Ok(ty),
            State::Open => return Err(What::Cycle(name.clone()).at(name)),
            State::New => definition.state = State::Open,
        }
        if depth > DEPTH_MAX {
            return Err(What::TooDeep.at(name));
        }
        let mut fields = Vec::new();
        for (number, line) in std::mem::take(&mut definition.lines) {
            let at = |what: What| what.at(format_args!("line {number}, in {name}"));
            let Some((ty, field, default)) = declaration(line).map_err(at)? else { continue };
            let (base, suffixes) = ty.split_once('[').map_or((ty, None), |(b, s)| (b, Some(s)));
            let element = match primitive(base).map_err(at)? {
                Some(ty) => Arc::new(ty),
                None => {
                    let unknown = || at(What::UnknownType(base.to_owned()));
                    let index = self.find(base, &name).ok_or_else(unknown)?;
                    self.resolve(index, depth + 1)?
                }
            };
            let ty = match suffixes {
                None => element,
                Some(suffix) => Arc::new(with_suffix(element, suffix).map_err(at)?),
            };
            let default = literal(&ty, default).filter(|value| encode_json(&ty, value).is_ok());
            fields.push(Field { name: field.to_owned(), ty, offset: 0, default });
        }
        let ty = Type::cdr_struct(&name, fields).map_err(|what| what.at(&name))?;
        let ty = Arc::new(ty);
        self.all[index].state = State::Done(ty.clone());
        Ok(ty)
    }

    /// A message by its name, in the message `within`: a name without a package is of the same.
    fn find(&self, name: &str, within: &str) -> Option<usize> {
        let package = within.rsplit_once('/').map(|(package, _)| package);
        let full = match package {
            Some(package) if !name.contains('/') => format!("{package}/{name}"),
            _ => short(name),
        };
        let found = self.by_name.get(&full);
        // As in ROS 1, whose messages some programs still write like this.
        found.or_else(|| self.by_name.get("std_msgs/Header").filter(|_| name == "Header")).copied()
    }
}

/// The type, the name and the default value of the field that a line declares; `None` for a comment
/// or a constant.
fn declaration(line: &str) -> Result<Option<(&str, &str, &str)>, What> {
    let line = without_comment(line).trim();
    if line.is_empty() {
        return Ok(None);
    }
    let (ty, rest) = line.split_once(char::is_whitespace).ok_or(What::Expected(DECLARATION))?;
    let rest = rest.trim_start();
    let name_end = rest.find(|it: char| it.is_whitespace() || it == '=').unwrap_or(rest.len());
    let (name, behind) = rest.split_at(name_end);
    let behind = behind.trim_start();
    if behind.starts_with('=') {
        return Ok(None);
    }
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name { Ok(Some((ty, name, behind))) } else { Err(What::BadName(name.to_owned())) }
}

/// A comment begins with `#`, but not in a string.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, sign) in line.char_indices() {
        match (sign, quote) {
            ('#', None) => return &line[..at],
            ('"' | '\'', None) => quote = Some(sign),
            (sign, Some(open)) if sign == open => quote = None,
            _ => {}
        }
    }
    line
}

/// A value as a definition writes it; `None` if there is none, or none of this type.
fn literal(ty: &Type, text: &str) -> Option<Json> {
    match ty.kind() {
        _ if text.is_empty() => None,
        Kind::Primitive(Primitive::Bool) => match text {
            "true" | "True" | "1" => Some(Json::Bool(true)),
            "false" | "False" | "0" => Some(Json::Bool(false)),
            _ => None,
        },
        Kind::Primitive(Primitive::F32 | Primitive::F64) => {
            text.parse().ok().and_then(serde_json::Number::from_f64).map(Json::Number)
        }
        // A whole number too: with all its digits.
        Kind::Primitive(_) => Some(Json::String(text.to_owned())),
        Kind::String { .. } => {
            let quote = text.chars().next().filter(|sign| ['"', '\''].contains(sign));
            let inner = quote.and_then(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
            Some(Json::String(inner.unwrap_or(text).to_owned()))
        }
        Kind::Array { element, .. } | Kind::Sequence { element, .. } => {
            let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
            let elements = inner.split(',').filter(|_| !inner.is_empty());
            elements.map(|text| literal(element, text.trim())).collect()
        }
        Kind::Struct { .. } | Kind::Opaque { .. } => None,
    }
}

/// A primitive type or a string; `None` for a name.
fn primitive(name: &str) -> Result<Option<Type>, What> {
    let primitive = match name {
        "bool" => Primitive::Bool,
        "int8" => Primitive::I8,
        "int16" => Primitive::I16,
        "int32" => Primitive::I32,
        "int64" => Primitive::I64,
        "uint8" | "byte" | "char" => Primitive::U8,
        "uint16" => Primitive::U16,
        "uint32" => Primitive::U32,
        "uint64" => Primitive::U64,
        "float32" => Primitive::F32,
        "float64" => Primitive::F64,
        "string" => return Type::string(None, Encoding::Cdr).map(Some),
        _ => {
            if let Some(bound) = name.strip_prefix("string<=") {
                return Type::string(Some(number(bound)?), Encoding::Cdr).map(Some);
            }
            let is_wide = name == "wstring" || name.starts_with("wstring<=");
            return if is_wide { Err(What::Unsupported) } else { Ok(None) };
        }
    };
    Ok(Some(Type::primitive(primitive, Encoding::Cdr)))
}

/// An array or a sequence, by what stands behind the opening bracket: `]`, `3]`, `<=3]`.
fn with_suffix(element: Arc<Type>, suffix: &str) -> Result<Type, What> {
    let inner = suffix.strip_suffix(']').ok_or(What::Expected("] at the end of a type"))?;
    if inner.is_empty() {
        Type::sequence(element, None)
    } else if let Some(bound) = inner.strip_prefix("<=") {
        Type::sequence(element, Some(number(bound)?))
    } else {
        Type::array(element, number(inner)?)
    }
}

fn number(digits: &str) -> Result<usize, What> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number).ok_or(What::Expected("a number"))
}

/// `package/Type`, also of `package/msg/Type` and of the halves of `package/srv/Type`.
fn short(name: &str) -> String {
    match name.split('/').collect::<Vec<_>>()[..] {
        [package, "msg" | "srv", ty] => format!("{package}/{ty}"),
        _ => name.to_owned(),
    }
}

const DECLARATION: &str = "a type and a name";
/// The shortest line of `=` that separates definitions. MCAP's has 80; a shorter one is no
/// declaration either.
const SEPARATOR_MIN: usize = 3;
