//! A checked type: a tree of kinds, with the sizes that reading and writing need.
//!
//! It is made by [`Schema::parse`](crate::Schema::parse). All of its limits are checked there, so
//! its depth, its number of nodes and its size are bounded for any schema.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::error::SchemaErrorKind as What;
use crate::limits::{DEPTH_MAX, NAME_BYTES_MAX, NODES_MAX, TYPE_BYTES_MAX};

/// How values are turned into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// Plain data: each field at a fixed offset, little-endian, as in the memory of a program.
    Plain,
    /// Plain CDR of encoding version 1, as ROS 2 writes it: a header of 4 bytes, then the fields
    /// in order, each number aligned to its size. Written little-endian, read in both orders.
    Cdr,
}

/// The type of a sample, or of a part of it. Parts are shared, and cheap to clone by [`Arc`].
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    kind: Kind,
    encoding: Encoding,
    /// The fewest bytes that a value takes. Of plain data without a slice: its exact size.
    bytes_min: usize,
    /// Of CDR: the size of each of its numbers, if all have the same and there is nothing else.
    /// Then a value that begins aligned takes exactly `bytes_min`, without padding.
    width: Option<usize>,
    /// Whether a field in it has a default value, so that a value without an input is not zero.
    has_defaults: bool,
    /// Its nodes as a tree, where a type that is used twice counts twice.
    nodes: usize,
    depth: usize,
}

/// What a type consists of.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// A number or a truth value.
    Primitive(Primitive),
    /// Text; the bound is in bytes. Of plain data it is a `FixedString`.
    String {
        /// The most bytes it may have.
        bound: Option<usize>,
    },
    /// A fixed number of elements.
    Array {
        /// The type of each.
        element: Arc<Type>,
        /// How many.
        length: usize,
    },
    /// Elements whose number each value chooses. Of plain data: a `BoundedVec`, or without a bound
    /// the slice at the end of a sample.
    Sequence {
        /// The type of each.
        element: Arc<Type>,
        /// The most it may have.
        bound: Option<usize>,
    },
    /// Named fields.
    Struct {
        /// Its name; for people.
        name: String,
        /// In the order of the definition.
        fields: Vec<Field>,
    },
    /// Bytes of plain data whose fields are unknown.
    Opaque {
        /// The name of the type.
        name: String,
    },
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Arc<Type>,
    /// Of plain data: where it begins, in bytes from the struct's begin. Otherwise 0.
    pub offset: usize,
    /// The value that the definition of a message gives it, which fits its type.
    pub(crate) default: Option<serde_json::Value>,
}

/// A number or a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Primitive {
    Bool,
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
    F32,
    F64,
}

impl Primitive {
    /// All of them.
    pub const ALL: [Primitive; 13] = {
        use Primitive::*;
        [Bool, I8, I16, I32, I64, I128, U8, U16, U32, U64, U128, F32, F64]
    };

    /// Its size in bytes.
    pub const fn bytes(self) -> usize {
        self.description().1
    }

    /// Its name in Rust, such as `f64`.
    pub const fn name(self) -> &'static str {
        self.description().0
    }

    const fn description(self) -> (&'static str, usize) {
        match self {
            Primitive::Bool => ("bool", 1),
            Primitive::I8 => ("i8", 1),
            Primitive::I16 => ("i16", 2),
            Primitive::I32 => ("i32", 4),
            Primitive::I64 => ("i64", 8),
            Primitive::I128 => ("i128", 16),
            Primitive::U8 => ("u8", 1),
            Primitive::U16 => ("u16", 2),
            Primitive::U32 => ("u32", 4),
            Primitive::U64 => ("u64", 8),
            Primitive::U128 => ("u128", 16),
            Primitive::F32 => ("f32", 4),
            Primitive::F64 => ("f64", 8),
        }
    }
}

impl Type {
    /// A sample of any bytes: for a topic whose schema is missing or of an unknown encoding.
    pub fn any_bytes() -> Type {
        let element = Arc::new(Type::primitive(Primitive::U8, Encoding::Plain));
        Type::sequence(element, None).expect("bytes are within every limit")
    }

    /// What it consists of.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// How its values are written.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The size of every value, in bytes; `None` if values can have different sizes. In CDR this
    /// is without the padding in front, and only known of types whose numbers have all one size.
    pub fn bytes(&self) -> Option<usize> {
        let is_fixed = match self.encoding {
            Encoding::Plain => self.slice_element().is_none(),
            Encoding::Cdr => self.width.is_some(),
        };
        is_fixed.then_some(self.bytes_min)
    }

    /// The fewest bytes that a value takes.
    pub fn bytes_min(&self) -> usize {
        self.bytes_min
    }

    pub(crate) fn primitive(of: Primitive, encoding: Encoding) -> Type {
        let width = (encoding == Encoding::Cdr).then_some(of.bytes());
        let kind = Kind::Primitive(of);
        Type { kind, bytes_min: of.bytes(), width, ..Type::leaf(encoding) }
    }

    pub(crate) fn string(bound: Option<usize>, encoding: Encoding) -> Result<Type, What> {
        let bytes_min = match (encoding, bound) {
            (Encoding::Plain, Some(bound)) => bound.saturating_add(STRING_LENGTH_BYTES),
            _ => STRING_LENGTH_BYTES,
        };
        let kind = Kind::String { bound };
        Type { kind, bytes_min, ..Type::leaf(encoding) }.checked()
    }

    pub(crate) fn array(element: Arc<Type>, length: usize) -> Result<Type, What> {
        let encoding = element.encoding;
        if element.bytes_min == 0 {
            return Err(What::NoBytes);
        }
        if encoding == Encoding::Cdr && length == 0 {
            return Err(What::NoElements);
        }
        let bytes_min = element.bytes_min.saturating_mul(length);
        let Type { width, has_defaults, nodes, depth, .. } = *element;
        let kind = Kind::Array { element, length };
        let (nodes, depth) = (nodes + 1, depth + 1);
        Type { kind, encoding, bytes_min, width, has_defaults, nodes, depth }.checked()
    }

    pub(crate) fn sequence(element: Arc<Type>, bound: Option<usize>) -> Result<Type, What> {
        let encoding = element.encoding;
        if element.bytes_min == 0 {
            return Err(What::NoBytes);
        }
        let bytes_min = match (encoding, bound) {
            (Encoding::Cdr, _) => SEQUENCE_LENGTH_BYTES,
            (Encoding::Plain, None) => 0,
            (Encoding::Plain, Some(bound)) => {
                element.bytes_min.saturating_mul(bound).saturating_add(BOUNDED_LENGTH_BYTES)
            }
        };
        let (nodes, depth) = (element.nodes + 1, element.depth + 1);
        let kind = Kind::Sequence { element, bound };
        Type { kind, bytes_min, nodes, depth, ..Type::leaf(encoding) }.checked()
    }

    /// A struct of plain data, of so many bytes.
    pub(crate) fn plain_struct(name: &str, fields: Vec<Field>, bytes: usize) -> Result<Type, What> {
        let mut end = 0;
        for field in &fields {
            if field.offset < end {
                return Err(What::Overlap(field.name.clone()));
            }
            end = field.offset.saturating_add(field.ty.bytes_min);
        }
        if end > bytes {
            return Err(What::Outside { end, bytes });
        }
        Type::structure(name, fields, Encoding::Plain, bytes, None)
    }

    pub(crate) fn cdr_struct(name: &str, fields: Vec<Field>) -> Result<Type, What> {
        let sizes = fields.iter().map(|field| field.ty.bytes_min);
        // ROS 2 writes a byte for a message without fields.
        let bytes_min = sizes.fold(0_usize, usize::saturating_add).max(1);
        let first = fields.first().and_then(|field| field.ty.width);
        let width = first.filter(|_| fields.iter().all(|field| field.ty.width == first));
        Type::structure(name, fields, Encoding::Cdr, bytes_min, width)
    }

    fn structure(
        name: &str,
        fields: Vec<Field>,
        encoding: Encoding,
        bytes_min: usize,
        width: Option<usize>,
    ) -> Result<Type, What> {
        check_name(name)?;
        let mut names = HashSet::new();
        for field in &fields {
            check_name(&field.name)?;
            if field.name.is_empty() || field.name.contains(FORBIDDEN) {
                return Err(What::BadName(field.name.clone()));
            }
            if !names.insert(field.name.as_str()) {
                return Err(What::Twice(field.name.clone()));
            }
        }
        let nodes = fields.iter().fold(1, |sum, field| field.ty.nodes.saturating_add(sum));
        let depth = fields.iter().map(|field| field.ty.depth).max().unwrap_or(0) + 1;
        let has_default = |field: &Field| field.default.is_some() || field.ty.has_defaults;
        let has_defaults = fields.iter().any(has_default);
        let kind = Kind::Struct { name: name.to_owned(), fields };
        Type { kind, encoding, bytes_min, width, has_defaults, nodes, depth }.checked()
    }

    pub(crate) fn opaque(name: &str, bytes: usize) -> Result<Type, What> {
        check_name(name)?;
        let kind = Kind::Opaque { name: name.to_owned() };
        Type { kind, bytes_min: bytes, ..Type::leaf(Encoding::Plain) }.checked()
    }

    /// The rest of a type without parts.
    fn leaf(encoding: Encoding) -> Type {
        let kind = Kind::String { bound: None };
        let (bytes_min, has_defaults) = (0, false);
        Type { kind, encoding, bytes_min, width: None, has_defaults, nodes: 1, depth: 1 }
    }

    fn checked(self) -> Result<Type, What> {
        if self.depth > DEPTH_MAX {
            return Err(What::TooDeep);
        }
        if self.nodes > NODES_MAX {
            return Err(What::TooManyNodes);
        }
        if self.bytes_min > TYPE_BYTES_MAX {
            return Err(What::TooLarge);
        }
        Ok(self)
    }

    /// Of CDR: the size of all its numbers, if that is one.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    pub(crate) fn has_defaults(&self) -> bool {
        self.has_defaults
    }

    /// Of plain data: the elements of the slice at the end, and where they begin.
    pub(crate) fn slice_element(&self) -> Option<(&Type, usize)> {
        match (&self.kind, self.encoding) {
            (Kind::Sequence { element, bound: None }, Encoding::Plain) => Some((element, 0)),
            (Kind::Struct { fields, .. }, Encoding::Plain) => {
                let last = fields.last()?;
                let (element, at) = last.ty.slice_element()?;
                Some((element, last.offset + at))
            }
            _ => None,
        }
    }
}

/// Its name, such as `Pose`, `[f64; 3]` or `string`.
impl fmt::Display for Type {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Primitive(primitive) => to.write_str(primitive.name()),
            Kind::String { .. } => to.write_str("string"),
            Kind::Array { element, length } => write!(to, "[{element}; {length}]"),
            Kind::Sequence { element, .. } => write!(to, "[{element}]"),
            Kind::Struct { name, .. } | Kind::Opaque { name } => to.write_str(name),
        }
    }
}

/// Names are printed and compared, also those of a hostile peer.
pub(crate) fn check_name(name: &str) -> Result<(), What> {
    if name.len() > NAME_BYTES_MAX || name.chars().any(crate::text::is_unprintable) {
        let shown = name.chars().take(32).map(|it| if it.is_control() { '?' } else { it });
        return Err(What::BadName(shown.collect()));
    }
    Ok(())
}

/// What has a meaning in a path, a layout or JSON, so that a field's name needs no quoting there.
const FORBIDDEN: [char; 9] = ['.', '[', ']', '{', '}', ':', '@', '"', '\\'];
/// In front of the text of a string.
pub(crate) const STRING_LENGTH_BYTES: usize = 4;
/// In front of the elements of a sequence in CDR.
pub(crate) const SEQUENCE_LENGTH_BYTES: usize = 4;
/// In front of the elements of a `BoundedVec`.
pub(crate) const BOUNDED_LENGTH_BYTES: usize = 8;
