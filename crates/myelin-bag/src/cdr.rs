//! Plain data as CDR, without a conversion.
//!
//! CDR of encoding version 1 aligns each number to its size, from behind the header of 4 bytes.
//! `repr(C)` does the same. So where each hole of a struct is a field of bytes, the memory of the
//! struct *is* its CDR, and every program that reads ROS 2's messages reads it, by the definition
//! of a message that is generated here.
//!
//! | layout | definition |
//! |---|---|
//! | number, truth value | the same |
//! | array | array; of several dimensions: one with all elements |
//! | struct | message of its own |
//! | `FixedString<N>` | message of `uint8[4] length`, `uint8[N] bytes` |
//! | `BoundedVec<T, N>` | message of `uint64 length`, `T[N] elements` |
//! | fields unknown, `{?}` | `uint8[N]` |
//! | hole of N bytes | `uint8[N] padding0` |
//! | slice at the end of a sample | sequence; its length is written in front of it |

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};

use myelin_value::{Encoding, Kind, Primitive, Schema, Type};

use crate::ending::OwnedSchema;

/// In front of each message in CDR: little-endian, without options.
pub const CDR_HEADER: [u8; 4] = [0, 1, 0, 0];

/// How the samples of a topic of plain data are written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainCdr {
    schema: OwnedSchema,
    shape: Shape,
}

/// Where the parts of a message are in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// All of the sample is one part.
    Fixed,
    /// So many bytes, and elements from a place on. In the message there is padding behind the
    /// former, and a length in front of the latter.
    Slice { header_bytes: usize, padding: usize, at: usize, element_bytes: usize },
}

/// Why samples of a type are not valid CDR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
#[non_exhaustive]
pub struct Unfit {
    /// The part of the type, as a path.
    pub path: String,
    /// What is wrong with it.
    pub reason: UnfitReason,
}

/// What CDR cannot express.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnfitReason {
    /// `i128` and `u128`.
    #[error("messages of ROS 2 have no {0}")]
    NoSuchNumber(&'static str),
    /// A number that CDR would look for elsewhere: the struct is packed.
    #[error("a number of {align} B begins at byte {offset}, where CDR has none")]
    Misaligned {
        /// Of the number, or of the largest number of a struct.
        align: usize,
        /// In the struct around it.
        offset: usize,
    },
    /// A sample without bytes.
    #[error("a message of no bytes")]
    NoBytes,
    /// It is not plain data.
    #[error("the samples are CDR already")]
    NotPlain,
}

impl PlainCdr {
    /// The definition of a message for a type of plain data.
    ///
    /// ```
    /// let schema = myelin_value::Schema::layout("Pose{id: u8 @0, at: [f64; 2] @8} 24");
    /// let cdr = myelin_bag::PlainCdr::new(&schema.parse()?)?;
    /// assert_eq!(cdr.schema().name, "myelin/msg/Pose");
    /// assert_eq!(cdr.schema().text, b"uint8 id\nuint8[7] padding0\nfloat64[2] at\n");
    ///
    /// let sample = [0; 24];
    /// let message = cdr.message(&sample, &mut Vec::new()).concat();
    /// assert_eq!(message, [[0, 1, 0, 0].as_slice(), &sample].concat());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes of its samples are not valid CDR.
    pub fn new(ty: &Type) -> Result<PlainCdr, Unfit> {
        if ty.encoding() != Encoding::Plain {
            return Err(UnfitReason::NotPlain.into());
        }
        let mut messages = Messages::default();
        let (name, fields, shape) = match slice_of(ty) {
            Some((header, element, at)) => {
                let header_bytes = header.map_or(0, Type::bytes_min);
                let element_bytes = element.bytes_min();
                let align = align(element)?;
                check_place(align, element_bytes)?;
                let mut fields = Fields::default();
                if let Some(header) = header.filter(|_| header_bytes > 0) {
                    self::align(header)?;
                    fields.push(&mut messages, "header", header)?;
                }
                // CDR aligns the first number of an element, and not the element. So the padding is
                // in front of the length, where it can have a name.
                let length_end =
                    (header_bytes + LENGTH_BYTES).next_multiple_of(align.max(LENGTH_BYTES));
                let padding = length_end - LENGTH_BYTES - header_bytes;
                fields.padding(padding);
                let name = if header.is_some() { "slice" } else { "data" };
                fields.sequence(&mut messages, name, element)?;
                let shape = Shape::Slice { header_bytes, padding, at, element_bytes };
                (format!("{}Slice", header.unwrap_or(element)), fields, shape)
            }
            None if ty.bytes_min() == 0 => return Err(UnfitReason::NoBytes.into()),
            None => {
                let mut fields = Fields::default();
                align(ty)?;
                match ty.kind() {
                    Kind::Struct { .. } | Kind::String { .. } | Kind::Sequence { .. } => {
                        fields.parts_of(&mut messages, ty)?;
                    }
                    _ => fields.push(&mut messages, "data", ty)?,
                }
                (ty.to_string(), fields, Shape::Fixed)
            }
        };
        let name = messages.unique_name(&name);
        let mut text = fields.text;
        for (name, fields) in &messages.texts {
            let _ = write!(text, "{SEPARATOR}\nMSG: {PACKAGE}/{name}\n{fields}");
        }
        let encoding = Schema::ROS2MSG.to_owned();
        let schema =
            OwnedSchema { encoding, name: format!("{PACKAGE}/msg/{name}"), text: text.into() };
        Ok(PlainCdr { schema, shape })
    }

    /// The definition of the message. The encoding of messages is `cdr`.
    pub fn schema(&self) -> &OwnedSchema {
        &self.schema
    }

    /// The parts of a sample's message, to be written one after the other. The sample is one of
    /// the type; the length of a slice is put into `scratch`.
    pub fn message<'a>(&self, sample: &'a [u8], scratch: &'a mut Vec<u8>) -> [&'a [u8]; 4] {
        let Shape::Slice { header_bytes, padding, at, element_bytes } = self.shape else {
            return [&CDR_HEADER, sample, &[], &[]];
        };
        let header = &sample[..header_bytes.min(sample.len())];
        let elements = sample.get(at..).unwrap_or_default();
        let count = (elements.len() / element_bytes) as u32;
        scratch.clear();
        scratch.resize(padding, 0);
        scratch.extend_from_slice(&count.to_le_bytes());
        [&CDR_HEADER, header, scratch, elements]
    }

    /// The parts of the sample that a message was made of, one after the other. `None` if the
    /// message is none of this type.
    pub fn sample<'a>(&self, message: &'a [u8]) -> Option<[&'a [u8]; 3]> {
        let body = message.strip_prefix(&CDR_HEADER)?;
        let Shape::Slice { header_bytes, padding, at, element_bytes } = self.shape else {
            return Some([body, &[], &[]]);
        };
        let (header, rest) = body.split_at_checked(header_bytes)?;
        let (length, elements) = rest.split_at_checked(padding + LENGTH_BYTES)?;
        let count = u32::from_le_bytes(*length.last_chunk()?) as usize;
        let hole = HOLE.get(..at.checked_sub(header_bytes)?)?;
        let is_whole = elements.len() == count.checked_mul(element_bytes)?;
        is_whole.then_some([header, hole, elements])
    }

    /// Whether the sample is one part of the message.
    pub(crate) fn is_fixed(&self) -> bool {
        self.shape == Shape::Fixed
    }
}

impl From<UnfitReason> for Unfit {
    fn from(reason: UnfitReason) -> Self {
        Unfit { path: String::new(), reason }
    }
}

impl Unfit {
    fn within(mut self, part: impl fmt::Display) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path = format!("{part}{dot}{}", self.path);
        self
    }
}

/// Header, element and place of the slice of a sample, if it ends with one.
pub(crate) fn slice_of(ty: &Type) -> Option<(Option<&Type>, &Type, usize)> {
    match ty.kind() {
        Kind::Sequence { element, bound: None } => Some((None, element, 0)),
        Kind::Struct { fields, .. } => {
            let [header, slice] = &fields[..] else { return None };
            let Kind::Sequence { element, bound: None } = slice.ty.kind() else { return None };
            Some((Some(&header.ty), element, slice.offset))
        }
        _ => None,
    }
}

/// The size of the largest number in a type, where every number in it is aligned to its size.
fn align(ty: &Type) -> Result<usize, Unfit> {
    match ty.kind() {
        Kind::Primitive(number @ (Primitive::I128 | Primitive::U128)) => {
            Err(UnfitReason::NoSuchNumber(number.name()).into())
        }
        Kind::Primitive(number) => Ok(number.bytes()),
        Kind::Array { element, length } => {
            let align = align(element)?;
            if *length > 1 {
                check_place(align, element.bytes_min())?;
            }
            Ok(align)
        }
        Kind::Sequence { element, bound: Some(_) } => {
            let align = align(element)?;
            check_place(align, element.bytes_min())?;
            Ok(8)
        }
        Kind::Struct { fields, .. } => {
            let mut largest = 1;
            for field in fields {
                let align = align(&field.ty).and_then(|align| {
                    check_place(align, field.offset)?;
                    Ok(align)
                });
                largest = largest.max(align.map_err(|unfit| unfit.within(&field.name))?);
            }
            Ok(largest)
        }
        _ => Ok(1),
    }
}

fn check_place(align: usize, offset: usize) -> Result<(), Unfit> {
    if offset.is_multiple_of(align) {
        return Ok(());
    }
    Err(UnfitReason::Misaligned { align, offset }.into())
}

/// The messages that a message needs.
#[derive(Default)]
struct Messages<'t> {
    /// Their names, and their texts.
    texts: Vec<(String, String)>,
    /// By the name of the type: types of this name that were met, and their number.
    known: HashMap<String, Vec<(&'t Type, usize)>>,
    names: BTreeSet<String>,
}

impl<'t> Messages<'t> {
    /// The name of the message for a struct, a text or a bounded sequence.
    fn message(&mut self, ty: &'t Type) -> Result<String, Unfit> {
        let type_name = ty.to_string();
        let known = self.known.get(&type_name).into_iter().flatten();
        if let Some((_, number)) = known.clone().find(|(it, _)| *it == ty) {
            return Ok(self.texts[*number].0.clone());
        }
        let mut fields = Fields::default();
        fields.parts_of(self, ty)?;
        let name = match ty.kind() {
            Kind::String { bound } => format!("FixedString{}", bound.unwrap_or(0)),
            Kind::Sequence { element, bound } => format!("Bounded{element}{}", bound.unwrap_or(0)),
            _ => type_name.clone(),
        };
        let name = self.unique_name(&name);
        self.known.entry(type_name).or_default().push((ty, self.texts.len()));
        self.texts.push((name.clone(), fields.text));
        Ok(name)
    }

    /// A name as ROS 2 has them: letters and digits, the first a large letter.
    fn unique_name(&mut self, of: &str) -> String {
        let mut name = String::new();
        let mut is_begin = true;
        for letter in of.chars() {
            if !letter.is_ascii_alphanumeric() {
                is_begin = true;
                continue;
            }
            if name.is_empty() && letter.is_ascii_digit() {
                name.push('T');
            }
            name.push(if is_begin { letter.to_ascii_uppercase() } else { letter });
            is_begin = false;
        }
        name.truncate(NAME_BYTES_MAX);
        if name.is_empty() {
            name.push_str("Message");
        }
        unique(&mut self.names, name, "")
    }
}

/// The lines of a message.
#[derive(Default)]
struct Fields {
    text: String,
    names: BTreeSet<String>,
    paddings: usize,
}

impl Fields {
    /// The fields of a struct, a text or a bounded sequence, with its holes.
    fn parts_of<'t>(&mut self, messages: &mut Messages<'t>, ty: &'t Type) -> Result<(), Unfit> {
        match ty.kind() {
            Kind::String { .. } => {
                self.line("uint8[4]", "length");
                self.bytes("bytes", ty.bytes_min() - 4);
                Ok(())
            }
            Kind::Sequence { element, bound } => {
                self.line("uint64", "length");
                self.elements(messages, "elements", element, bound.unwrap_or(0))
            }
            Kind::Struct { fields, .. } => {
                // First of all, so that no padding takes the name of a field.
                let names: Vec<_> =
                    fields.iter().map(|field| self.unique_name(&field.name)).collect();
                let mut end = 0;
                for (field, name) in fields.iter().zip(names) {
                    self.padding(field.offset - end);
                    let pushed = self.push_named(messages, &name, &field.ty);
                    pushed.map_err(|unfit| unfit.within(&field.name))?;
                    end = field.offset + field.ty.bytes_min();
                }
                self.padding(ty.bytes_min() - end);
                Ok(())
            }
            _ => unreachable!("only these have parts"),
        }
    }

    fn push<'t>(
        &mut self,
        messages: &mut Messages<'t>,
        name: &str,
        ty: &'t Type,
    ) -> Result<(), Unfit> {
        let name = self.unique_name(name);
        self.push_named(messages, &name, ty)
    }

    fn push_named<'t>(
        &mut self,
        messages: &mut Messages<'t>,
        name: &str,
        ty: &'t Type,
    ) -> Result<(), Unfit> {
        match ty.kind() {
            _ if ty.bytes_min() == 0 => {}
            Kind::Array { element, length } => self.elements(messages, name, element, *length)?,
            Kind::Opaque { .. } => self.bytes(name, ty.bytes_min()),
            _ => {
                let ty = element_name(messages, ty)?;
                self.line(&ty, name);
            }
        }
        Ok(())
    }

    /// An array; one of arrays becomes one.
    fn elements<'t>(
        &mut self,
        messages: &mut Messages<'t>,
        name: &str,
        element: &'t Type,
        length: usize,
    ) -> Result<(), Unfit> {
        let (mut element, mut length) = (element, length);
        while let Kind::Array { element: inner, length: inner_length } = element.kind() {
            (element, length) = (inner, length * inner_length);
        }
        if length == 0 {
            return Ok(());
        }
        if let Kind::Opaque { .. } = element.kind() {
            self.bytes(name, length * element.bytes_min());
            return Ok(());
        }
        let ty = element_name(messages, element)?;
        self.line(&format!("{ty}[{length}]"), name);
        Ok(())
    }

    fn sequence<'t>(
        &mut self,
        messages: &mut Messages<'t>,
        name: &str,
        element: &'t Type,
    ) -> Result<(), Unfit> {
        let name = self.unique_name(name);
        let ty = match element.kind() {
            // Neither arrays of arrays nor of bytes: a message around it.
            Kind::Array { .. } | Kind::Opaque { .. } => {
                let mut fields = Fields::default();
                fields.push(messages, "data", element)?;
                let name = messages.unique_name("Element");
                messages.texts.push((name.clone(), fields.text));
                format!("{PACKAGE}/{name}")
            }
            _ => element_name(messages, element)?,
        };
        self.line(&format!("{ty}[]"), &name);
        Ok(())
    }

    fn padding(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let name = self.unique_name(&format!("padding{}", self.paddings));
        self.paddings += 1;
        self.bytes(&name, bytes);
    }

    fn bytes(&mut self, name: &str, bytes: usize) {
        if bytes > 0 {
            self.line(&format!("uint8[{bytes}]"), name);
        }
    }

    fn line(&mut self, ty: &str, name: &str) {
        let _ = writeln!(self.text, "{ty} {name}");
    }

    /// A name as ROS 2 has them: small letters, digits and single `_` between them, the first a
    /// letter.
    fn unique_name(&mut self, of: &str) -> String {
        let mut name = String::new();
        let mut was_small = false;
        for letter in of.chars() {
            let is_word = letter.is_ascii_alphanumeric();
            let is_border = !is_word || (letter.is_ascii_uppercase() && was_small);
            if is_border && !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
            if is_word {
                if name.is_empty() && letter.is_ascii_digit() {
                    name.push_str("field_");
                }
                name.push(letter.to_ascii_lowercase());
            }
            was_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        }
        name.truncate(NAME_BYTES_MAX);
        let name = name.trim_end_matches('_');
        let name = if name.is_empty() { "field" } else { name };
        unique(&mut self.names, name.to_owned(), "_")
    }
}

/// The type of a field that is neither an array nor bytes.
fn element_name<'t>(messages: &mut Messages<'t>, ty: &'t Type) -> Result<String, Unfit> {
    let Kind::Primitive(number) = ty.kind() else {
        return Ok(format!("{PACKAGE}/{}", messages.message(ty)?));
    };
    let name = match number {
        Primitive::Bool => "bool",
        Primitive::I8 => "int8",
        Primitive::I16 => "int16",
        Primitive::I32 => "int32",
        Primitive::I64 => "int64",
        Primitive::U8 => "uint8",
        Primitive::U16 => "uint16",
        Primitive::U32 => "uint32",
        Primitive::U64 => "uint64",
        Primitive::F32 => "float32",
        Primitive::F64 => "float64",
        Primitive::I128 | Primitive::U128 => {
            return Err(UnfitReason::NoSuchNumber(number.name()).into());
        }
    };
    Ok(name.to_owned())
}

/// A name that is not yet taken: with a number behind it, if need be.
fn unique(taken: &mut BTreeSet<String>, name: String, joint: &str) -> String {
    let mut candidate = name.clone();
    let mut number = 2_u32;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}{joint}{number}");
        number += 1;
    }
    candidate
}

/// Between a header and the elements behind it.
static HOLE: [u8; 16] = [0; 16];
/// Of a sequence.
const LENGTH_BYTES: usize = 4;
/// Of generated messages.
const PACKAGE: &str = "myelin";
/// Between the messages of a schema, as MCAP has it.
const SEPARATOR: &str =
    "================================================================================";
/// Of a generated name, before it is made unique.
const NAME_BYTES_MAX: usize = 200;
