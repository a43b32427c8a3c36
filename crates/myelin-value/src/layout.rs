//! Myelin's layouts as schemas: `Name{field: T @0, other: T @8} 16`.
//!
//! | grammar | |
//! |---|---|
//! | topic | type, `[`type`]`, `(`type`, [`type`] @`number`)` |
//! | type | scalar, `()`, `[`type`; `number`]`, name`{`fields`} `number, name`{?} `number |
//! | field | name`: `type` @`number |
//!
//! The name of a struct is everything up to its `{`. A struct with the name and the fields of
//! Myelin's `FixedString` is text, and one like `BoundedVec` is a sequence.

use std::sync::Arc;

use crate::error::{SchemaError, SchemaErrorKind as What};
use crate::limits::DEPTH_MAX;
use crate::types::{BOUNDED_LENGTH_BYTES, STRING_LENGTH_BYTES};
use crate::types::{Encoding, Field, Kind, Primitive, Type};

/// The type of a topic with this layout.
pub(crate) fn parse(text: &str) -> Result<Type, SchemaError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.topic().map_err(|what| what.at(format_args!("byte {} of the layout", parser.at)))
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn topic(&mut self) -> Result<Type, What> {
        let rest = self.rest();
        let ty = match rest.chars().next() {
            _ if self.is_name() || rest.starts_with("()") => self.ty()?,
            Some('(') => self.header_and_slice()?,
            Some('[') => self.brackets(true)?,
            _ => self.ty()?,
        };
        if self.eat("->") {
            return Err(What::Unsupported); // The types of a service.
        }
        if self.rest().is_empty() { Ok(ty) } else { Err(What::Expected("the end")) }
    }

    fn header_and_slice(&mut self) -> Result<Type, What> {
        self.need("(", "(")?;
        let header = Arc::new(self.ty()?);
        self.need(",", "a comma")?;
        self.need("[", "[")?;
        let element = Arc::new(self.ty()?);
        self.need("]", "]")?;
        self.need("@", "@ and the offset of the slice")?;
        let offset = self.number()?;
        self.need(")", ")")?;
        let name = format!("({header}, [{element}])");
        let slice = Arc::new(Type::sequence(element, None)?);
        let fields = vec![
            Field { name: HEADER.to_owned(), ty: header, offset: 0, default: None },
            Field { name: SLICE.to_owned(), ty: slice, offset, default: None },
        ];
        Type::plain_struct(&name, fields, offset)
    }

    fn ty(&mut self) -> Result<Type, What> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(What::TooDeep);
        }
        let ty = if self.is_name() {
            self.named()
        } else if self.eat("()") {
            Type::plain_struct("()", Vec::new(), 0)
        } else if self.rest().starts_with('[') {
            self.brackets(false)
        } else {
            self.named()
        };
        self.depth -= 1;
        ty
    }

    /// An array, or where that may be: a slice.
    fn brackets(&mut self, may_be_slice: bool) -> Result<Type, What> {
        self.need("[", "[")?;
        let element = Arc::new(self.ty()?);
        if may_be_slice && self.eat("]") {
            return Type::sequence(element, None);
        }
        self.need(";", "a semicolon and a length")?;
        let length = self.number()?;
        self.need("]", "]")?;
        Type::array(element, length)
    }

    /// Whether a bracket begins the name of a type of another crate, such as `[u16; 2]{?} 4`.
    fn is_name(&self) -> bool {
        let mut open = 0_usize;
        for (at, sign) in self.rest().bytes().enumerate() {
            match sign {
                b'[' | b'(' => open += 1,
                b']' | b')' if open > 1 => open -= 1,
                b']' | b')' => return open == 1 && self.rest()[at + 1..].starts_with('{'),
                _ if open == 0 => return false,
                _ => {}
            }
        }
        false
    }

    fn named(&mut self) -> Result<Type, What> {
        let rest = self.rest();
        let word_end = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
        let (word, behind) = rest.split_at(word_end.unwrap_or(rest.len()));
        let is_scalar = !behind.starts_with(['{', '<', ':']);
        if let Some(primitive) = scalar(word).filter(|_| is_scalar) {
            self.at += word.len();
            return Ok(Type::primitive(primitive, Encoding::Plain));
        }
        let Some(name_end) = rest.find('{').filter(|end| !rest[..*end].contains(['}', '@'])) else {
            return Err(What::UnknownType(word.chars().take(NAME_SHOWN).collect()));
        };
        let name = &rest[..name_end];
        self.at += name_end + 1;
        if self.eat("?") {
            self.need("}", "}")?;
            return Type::opaque(name, self.number()?);
        }
        let fields = self.fields()?;
        let bytes = self.number()?;
        match fixed_string(name, &fields, bytes).or_else(|| bounded_vec(name, &fields, bytes)) {
            Some(known) => known,
            None => Type::plain_struct(name, fields, bytes),
        }
    }

    fn fields(&mut self) -> Result<Vec<Field>, What> {
        let mut fields = Vec::new();
        while !self.eat("}") {
            if !fields.is_empty() {
                self.need(",", "a comma or }")?;
            }
            self.skip_spaces();
            let name_end = self.rest().find(':').ok_or(What::Expected("a field's name and :"))?;
            let name = self.rest()[..name_end].to_owned();
            self.at += name_end + 1;
            self.skip_spaces();
            let ty = Arc::new(self.ty()?);
            self.need("@", "@ and the offset of the field")?;
            fields.push(Field { name, ty, offset: self.number()?, default: None });
        }
        Ok(fields)
    }

    fn number(&mut self) -> Result<usize, What> {
        self.skip_spaces();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest()[..digits].parse().map_err(|_| What::Expected("a number"))?;
        self.at += digits;
        Ok(number)
    }

    fn need(&mut self, token: &str, name: &'static str) -> Result<(), What> {
        if !self.eat(token) {
            return Err(What::Expected(name));
        }
        self.skip_spaces();
        Ok(())
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let is_there = self.rest().starts_with(token);
        self.at += if is_there { token.len() } else { 0 };
        is_there
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().bytes().take_while(|byte| *byte == b' ').count();
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }
}

fn scalar(name: &str) -> Option<Primitive> {
    match name {
        "Bool" => Some(Primitive::Bool),
        "bool" => None,
        "isize" => Some(Primitive::I64),
        "usize" => Some(Primitive::U64),
        _ => Primitive::ALL.into_iter().find(|primitive| primitive.name() == name),
    }
}

/// The text, if it has the fields of Myelin's `FixedString`: a number of 4 bytes, and the bytes.
fn fixed_string(name: &str, fields: &[Field], bytes: usize) -> Option<Result<Type, What>> {
    let [length, text] = fields else { return None };
    let (lengths, bound) = (byte_array(&length.ty)?, byte_array(&text.ty)?);
    let is_one = name == format!("FixedString<{bound}>")
        && (length.name.as_str(), length.offset) == ("length", 0)
        && (text.name.as_str(), text.offset) == ("bytes", STRING_LENGTH_BYTES)
        && (lengths, bytes) == (STRING_LENGTH_BYTES, bound + STRING_LENGTH_BYTES);
    is_one.then(|| Type::string(Some(bound), Encoding::Plain))
}

/// The sequence, if it has the fields of Myelin's `BoundedVec`: a `u64`, and the elements.
fn bounded_vec(name: &str, fields: &[Field], bytes: usize) -> Option<Result<Type, What>> {
    let [length, elements] = fields else { return None };
    let Kind::Array { element, length: bound } = elements.ty.kind() else { return None };
    let is_one = name.starts_with("BoundedVec<")
        && name.ends_with(&format!(", {bound}>"))
        && matches!(length.ty.kind(), Kind::Primitive(Primitive::U64))
        && (length.name.as_str(), length.offset) == ("length", 0)
        && (elements.name.as_str(), elements.offset) == ("elements", BOUNDED_LENGTH_BYTES)
        && bytes == elements.ty.bytes_min().saturating_add(BOUNDED_LENGTH_BYTES);
    is_one.then(|| Type::sequence(element.clone(), Some(*bound)))
}

/// The length of an array of bytes.
fn byte_array(ty: &Type) -> Option<usize> {
    let Kind::Array { element, length } = ty.kind() else { return None };
    matches!(element.kind(), Kind::Primitive(Primitive::U8)).then_some(*length)
}

/// The fields of a topic `(H, [T])`, by the names of `HeaderSlice`'s methods.
const HEADER: &str = "header";
const SLICE: &str = "slice";
/// Characters of an unknown type's name in the error.
const NAME_SHOWN: usize = 40;
