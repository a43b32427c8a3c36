//! The columns of a table of messages, and the cells of a message.
//!
//! | part of a message | columns |
//! |---|---|
//! | number, truth value, text | one |
//! | struct | one for each field: `pose.x` |
//! | array of up to 16 | one for each element: `at[0]` |
//! | longer array and sequence of numbers | one list |
//! | bytes: `u8` in arrays and sequences | one of bytes |
//! | other sequences | one with JSON |

use std::collections::BTreeSet;

use myelin_bag::{Content, MessageType};
use myelin_value::{Kind, NumberSlice, Primitive, ReadError, Scalar, Type, Value};
use serde_json::Value as Json;

use crate::document::type_at;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its path in a message.
    pub name: String,
    /// What is in it.
    pub kind: ColumnKind,
}

/// What is in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A number or a truth value of at most 64 bits.
    Number(Primitive),
    /// Numbers.
    List(Primitive),
    /// Text; also JSON, and numbers of 128 bits.
    Text,
    /// Bytes.
    Bytes,
}

/// A value in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    F32(f32),
    F64(f64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Cell>),
}

/// The columns of the messages of a topic.
#[derive(Debug)]
pub struct Columns {
    /// The parts of messages that are exported, each with all columns below it.
    roots: Vec<String>,
    /// In order.
    pub all: Vec<Column>,
    /// Whether bytes are left out, and the names of those that are.
    skips_bytes: bool,
    pub skipped: Vec<String>,
}

impl Columns {
    /// Those of messages of this type; `first` is one of them. Without `fields` all fields count,
    /// except bytes if `skips_bytes`.
    ///
    /// # Errors
    /// A field that the messages do not have, in one sentence.
    pub fn new(
        ty: &MessageType,
        first: &[u8],
        fields: &[String],
        skips_bytes: bool,
    ) -> Result<Columns, String> {
        let skips_bytes = skips_bytes && fields.is_empty();
        let all = [String::new()];
        let roots = if fields.is_empty() { &all[..] } else { fields };
        let mut columns =
            Columns { roots: roots.to_vec(), all: Vec::new(), skips_bytes, skipped: Vec::new() };
        for root in roots {
            match ty.ty() {
                Some(of) => columns.expand(ty, type_at(of, root)?, root)?,
                None => {
                    let Content::Json(json) = ty.content(first)? else { continue };
                    let part = json_at(&json, root);
                    let part = part.ok_or_else(|| format!("the first message has no {root:?}"))?;
                    columns.expand_json(part, root)?;
                }
            }
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = columns.all.iter().find(|column| !names.insert(&column.name)) {
            return Err(format!("field {:?} is named twice", twice.name));
        }
        if columns.all.is_empty() {
            return Err("its messages have no fields that a table can have".to_owned());
        }
        Ok(columns)
    }

    fn push(&mut self, name: &str, kind: ColumnKind) -> Result<(), String> {
        if kind == ColumnKind::Bytes && self.skips_bytes {
            self.skipped.push(name.to_owned());
            return Ok(());
        }
        if self.all.len() >= COLUMNS_MAX {
            return Err(format!("it has more than {COLUMNS_MAX} columns; choose some by --field"));
        }
        let name = if name.is_empty() { "value" } else { name }.to_owned();
        self.all.push(Column { name, kind });
        Ok(())
    }

    fn expand(&mut self, message: &MessageType, ty: &Type, path: &str) -> Result<(), String> {
        match shape(ty) {
            Shape::One(kind) => self.push(path, kind),
            Shape::Fields => {
                let Kind::Struct { fields, .. } = ty.kind() else { return Ok(()) };
                let fields = fields.iter().filter(|field| !message.is_padding(&field.name));
                fields.into_iter().try_for_each(|field| {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.expand(message, &field.ty, &format!("{path}{dot}{}", field.name))
                })
            }
            Shape::Elements(element, length) => (0..length)
                .try_for_each(|index| self.expand(message, element, &format!("{path}[{index}]"))),
        }
    }

    fn expand_json(&mut self, json: &Json, path: &str) -> Result<(), String> {
        match json {
            Json::Object(fields) => fields.iter().try_for_each(|(name, value)| {
                let dot = if path.is_empty() { "" } else { "." };
                self.expand_json(value, &format!("{path}{dot}{name}"))
            }),
            Json::Bool(_) => self.push(path, ColumnKind::Number(Primitive::Bool)),
            Json::Number(_) => self.push(path, ColumnKind::Number(Primitive::F64)),
            _ => self.push(path, ColumnKind::Text),
        }
    }

    /// The cells of a message, in the order of the columns. JSON has a `Null` for what is missing.
    ///
    /// # Errors
    /// Broken data.
    pub fn cells(&self, ty: &MessageType, data: &[u8]) -> Result<Vec<Cell>, String> {
        let mut cells = Vec::with_capacity(self.all.len());
        match ty.content(data)? {
            Content::Value(value) => {
                for root in &self.roots {
                    let part = value.get(root).map_err(|error| error.to_string())?;
                    self.fill(ty, &part, &mut cells).map_err(|error| error.to_string())?;
                }
            }
            Content::Json(json) => {
                for column in &self.all {
                    // A message that is no object has no name.
                    let is_whole = self.roots == [""] && !json.is_object();
                    let part = if is_whole { Some(&json) } else { json_at(&json, &column.name) };
                    cells.push(json_cell(part, column.kind));
                }
            }
            _ => return Err("there is no reader for this".to_owned()),
        }
        Ok(cells)
    }

    fn fill(
        &self,
        message: &MessageType,
        value: &Value,
        cells: &mut Vec<Cell>,
    ) -> Result<(), ReadError> {
        match shape(value.ty()) {
            Shape::One(ColumnKind::Bytes) if self.skips_bytes => {}
            Shape::One(kind) => cells.push(cell(value, kind)?),
            Shape::Fields => {
                for field in value.fields()? {
                    let (name, field) = field?;
                    if !message.is_padding(name) {
                        self.fill(message, &field, cells)?;
                    }
                }
            }
            Shape::Elements(..) => {
                for element in value.elements()? {
                    self.fill(message, &element?, cells)?;
                }
            }
        }
        Ok(())
    }
}

/// How a part of a message becomes columns.
enum Shape<'t> {
    One(ColumnKind),
    Fields,
    /// So many of this type.
    Elements(&'t Type, usize),
}

fn shape(ty: &Type) -> Shape<'_> {
    match ty.kind() {
        Kind::Primitive(Primitive::I128 | Primitive::U128) => Shape::One(ColumnKind::Text),
        Kind::Primitive(number) => Shape::One(ColumnKind::Number(*number)),
        Kind::Opaque { .. } => Shape::One(ColumnKind::Bytes),
        Kind::Struct { .. } => Shape::Fields,
        Kind::Array { element, .. } | Kind::Sequence { element, .. }
            if matches!(element.kind(), Kind::Primitive(Primitive::U8)) =>
        {
            Shape::One(ColumnKind::Bytes)
        }
        Kind::Array { element, length } if *length <= ELEMENTS_MAX && is_small(element) => {
            Shape::Elements(element, *length)
        }
        Kind::Array { element, .. } | Kind::Sequence { element, .. } => {
            Shape::One(number_of(element).map_or(ColumnKind::Text, ColumnKind::List))
        }
        _ => Shape::One(ColumnKind::Text),
    }
}

/// Whether elements of this type have a column each: not arrays of arrays of many.
fn is_small(element: &Type) -> bool {
    match element.kind() {
        Kind::Array { length, element } => *length <= 4 && is_small(element),
        _ => true,
    }
}

/// The numbers in an array, or in arrays in it.
fn number_of(element: &Type) -> Option<Primitive> {
    match element.kind() {
        Kind::Primitive(Primitive::I128 | Primitive::U128) => None,
        Kind::Primitive(number) => Some(*number),
        Kind::Array { element, .. } => number_of(element),
        _ => None,
    }
}

fn cell(value: &Value, kind: ColumnKind) -> Result<Cell, ReadError> {
    Ok(match (kind, value.ty().kind()) {
        (ColumnKind::Number(_), _) => number(value.scalar()?),
        (ColumnKind::List(_), _) => Cell::List(list(&value.as_slice()?)),
        (ColumnKind::Bytes, _) => Cell::Bytes(value.as_bytes()?.to_vec()),
        (ColumnKind::Text, Kind::String { .. }) => {
            Cell::Text(String::from_utf8_lossy(value.as_bytes()?).into_owned())
        }
        (ColumnKind::Text, Kind::Primitive(_)) => match value.scalar()? {
            Scalar::Signed(number) => Cell::Text(number.to_string()),
            Scalar::Unsigned(number) => Cell::Text(number.to_string()),
            other => number(other),
        },
        (ColumnKind::Text, _) => Cell::Text(value.to_json(usize::MAX)?),
    })
}

fn number(of: Scalar) -> Cell {
    match of {
        Scalar::Bool(value) => Cell::Bool(value),
        // Those of 128 bits are text.
        Scalar::Signed(value) => Cell::Signed(value as i64),
        Scalar::Unsigned(value) => Cell::Unsigned(value as u64),
        Scalar::F32(value) => Cell::F32(value),
        Scalar::F64(value) => Cell::F64(value),
    }
}

fn list(of: &NumberSlice) -> Vec<Cell> {
    let one = |bytes: &[u8]| {
        let mut number = [0; 8];
        number[..bytes.len()].copy_from_slice(bytes);
        if of.big_endian {
            number[..bytes.len()].reverse();
        }
        let unsigned = u64::from_le_bytes(number);
        let unused_bits = 64 - 8 * bytes.len() as u32;
        match of.element {
            Primitive::Bool => Cell::Bool(unsigned != 0),
            Primitive::F32 => Cell::F32(f32::from_bits(unsigned as u32)),
            Primitive::F64 => Cell::F64(f64::from_bits(unsigned)),
            Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 => {
                Cell::Signed((unsigned << unused_bits).cast_signed() >> unused_bits)
            }
            _ => Cell::Unsigned(unsigned),
        }
    };
    of.bytes.chunks_exact(of.element.bytes()).map(one).collect()
}

fn json_at<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    let mut json = json;
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        json = match step.strip_suffix(']') {
            Some(index) => json.get(index.parse::<usize>().ok()?)?,
            None => json.get(step)?,
        };
    }
    Some(json)
}

fn json_cell(json: Option<&Json>, kind: ColumnKind) -> Cell {
    match (kind, json) {
        (_, None | Some(Json::Null)) => Cell::Null,
        (ColumnKind::Number(Primitive::Bool), Some(json)) => {
            json.as_bool().map_or(Cell::Null, Cell::Bool)
        }
        (ColumnKind::Number(_), Some(json)) => json.as_f64().map_or(Cell::Null, Cell::F64),
        (_, Some(Json::String(text))) => Cell::Text(text.clone()),
        (_, Some(json)) => Cell::Text(json.to_string()),
    }
}

/// Elements of an array that have a column each.
const ELEMENTS_MAX: usize = 16;
/// Of a table.
const COLUMNS_MAX: usize = 2_000;
