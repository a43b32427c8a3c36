//! A value where it lies: a view of a sample's bytes by their type.
//!
//! The bytes may be another process's memory, which can change while it is read. So nothing is
//! taken for granted that was checked before: each access checks what it reads, and text is copied
//! before it is checked.

use std::fmt;

use crate::error::{ReadError, ReadErrorKind as What, nearest};
use crate::types::{BOUNDED_LENGTH_BYTES, SEQUENCE_LENGTH_BYTES, STRING_LENGTH_BYTES};
use crate::types::{Encoding, Kind, Primitive, Type};

/// A sample, or a part of it. It is a view: it copies nothing, and is itself cheap to copy.
///
/// A part is reached by a path, by [`fields`](Value::fields) or by [`elements`](Value::elements).
/// For plain data the effort depends on the path alone; in CDR what lies before has to be skipped.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    ty: &'a Type,
    /// All of the sample; in CDR what is behind its header.
    bytes: &'a [u8],
    /// Where the value begins, in CDR without the padding before it.
    at: usize,
    big_endian: bool,
}

/// A number or a truth value, in the largest type of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Scalar {
    Bool(bool),
    Signed(i128),
    Unsigned(u128),
    F32(f32),
    F64(f64),
}

/// Numbers that lie one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NumberSlice<'a> {
    /// The type of each. Of a truth value any byte can be there; 0 is false.
    pub element: Primitive,
    /// All of them. They need not be aligned: in CDR they are aligned to at most 8 from behind the
    /// header of 4 bytes, wherever that lies.
    pub bytes: &'a [u8],
    /// The length of each dimension; several for arrays of arrays. Their product is the number of
    /// elements.
    pub shape: Vec<usize>,
    /// Whether their highest byte comes first. Only in CDR of other programs.
    pub big_endian: bool,
}

impl<'a> Value<'a> {
    /// A sample of this type.
    ///
    /// # Errors
    /// Of plain data: a length that the type does not have. In CDR: a missing or foreign header.
    pub fn new(ty: &'a Type, sample: &'a [u8]) -> Result<Value<'a>, ReadError> {
        match ty.encoding() {
            Encoding::Plain => check_length(ty, sample.len())?,
            Encoding::Cdr => return Value::new_cdr(ty, sample),
        }
        Ok(Value { ty, bytes: sample, at: 0, big_endian: false })
    }

    fn new_cdr(ty: &'a Type, sample: &'a [u8]) -> Result<Value<'a>, ReadError> {
        let Some((header, bytes)) = sample.split_first_chunk::<CDR_HEADER_BYTES>() else {
            let left = sample.len();
            return Err(What::TooShort { at: 0, needed: CDR_HEADER_BYTES, left }.into());
        };
        // The other two bytes are options: the padding at the end.
        let big_endian = match u16::from_be_bytes([header[0], header[1]]) {
            0 => true,
            1 => false,
            other => return Err(What::BadEncoding(other).into()),
        };
        Ok(Value { ty, bytes, at: 0, big_endian })
    }

    /// Its type.
    pub fn ty(&self) -> &'a Type {
        self.ty
    }

    /// The part at a path, such as `pose.points[3].x`; the empty path is the value itself.
    ///
    /// # Errors
    /// A path that the type does not have; an index beyond the length; broken bytes.
    pub fn get(&self, path: &str) -> Result<Value<'a>, ReadError> {
        let mut value = *self;
        let mut rest = path;
        while !rest.is_empty() {
            let bad_path = || What::BadPath(path.to_owned());
            let before = &path[..path.len() - rest.len()];
            let next = if let Some(indexed) = rest.strip_prefix('[') {
                let (index, behind) = indexed.split_once(']').ok_or_else(bad_path)?;
                rest = behind;
                let is_number = index.bytes().all(|byte| byte.is_ascii_digit());
                value.element(index.parse().ok().filter(|_| is_number).ok_or_else(bad_path)?)
            } else {
                let name = match before {
                    "" => rest,
                    _ => rest.strip_prefix('.').ok_or_else(bad_path)?,
                };
                let (name, behind) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
                rest = behind;
                if name.is_empty() {
                    return Err(bad_path().into());
                }
                value.field(name)
            };
            value = next.map_err(|error| match before {
                "" => error,
                _ => error.within(before),
            })?;
        }
        Ok(value)
    }

    /// The field of a struct.
    ///
    /// # Errors
    /// If there is none of this name, with the most similar name; broken bytes.
    pub fn field(&self, name: &str) -> Result<Value<'a>, ReadError> {
        let Kind::Struct { fields, .. } = self.ty.kind() else {
            return Err(self.wrong_kind("a struct"));
        };
        let Some(index) = fields.iter().position(|field| field.name == name) else {
            let nearest = nearest(name, fields.iter().map(|field| field.name.as_str()));
            return Err(What::NoField { name: name.to_owned(), nearest }.into());
        };
        if self.is_plain() {
            return Ok(self.part(&fields[index].ty, self.at + fields[index].offset));
        }
        let mut at = self.at;
        for before in &fields[..index] {
            at = self.end_of(&before.ty, at).map_err(|error| error.within(&before.name))?;
        }
        Ok(self.part(&fields[index].ty, at))
    }

    /// The fields of a struct, in order.
    ///
    /// # Errors
    /// If it is not a struct. Each item is an error if the bytes before it are broken.
    pub fn fields(
        &self,
    ) -> Result<impl Iterator<Item = Result<(&'a str, Value<'a>), ReadError>> + use<'a>, ReadError>
    {
        let Kind::Struct { fields, .. } = self.ty.kind() else {
            return Err(self.wrong_kind("a struct"));
        };
        let whole = *self;
        let mut parts = Parts::new(whole, whole.at);
        let mut before = "";
        Ok(fields.iter().map_while(move |field| {
            let value = if whole.is_plain() {
                Ok(whole.part(&field.ty, whole.at + field.offset))
            } else {
                parts.next(&field.ty)?.map_err(|error| error.within(before))
            };
            before = &field.name;
            Some(value.map(|value| (before, value)))
        }))
    }

    /// The element of an array or a sequence.
    ///
    /// # Errors
    /// If there is none of this index; broken bytes.
    pub fn element(&self, index: usize) -> Result<Value<'a>, ReadError> {
        let span = self.span()?;
        if index >= span.length {
            return Err(What::NoElement { index, length: span.length }.into());
        }
        if let Some(stride) = span.stride() {
            return Ok(self.part(span.element, span.first + index * stride));
        }
        let mut at = span.first;
        for before in 0..index {
            at = self.end_of(span.element, at).map_err(|error| error.within_element(before))?;
        }
        Ok(self.part(span.element, at))
    }

    /// The elements of an array or a sequence, in order.
    ///
    /// # Errors
    /// If it is neither, or if its length is not possible. Each item is an error if the bytes
    /// before it are broken.
    pub fn elements(
        &self,
    ) -> Result<impl Iterator<Item = Result<Value<'a>, ReadError>> + use<'a>, ReadError> {
        let whole = *self;
        let span = self.span()?;
        let mut parts = Parts::new(whole, span.first);
        Ok((0..span.length).map_while(move |index| match span.stride() {
            Some(stride) => Some(Ok(whole.part(span.element, span.first + index * stride))),
            None => {
                let next = parts.next(span.element)?;
                Some(next.map_err(|error| error.within_element(index - 1)))
            }
        }))
    }

    /// How many elements an array or a sequence has, how many fields a struct, how many bytes a
    /// string or an opaque value.
    ///
    /// # Errors
    /// A number has no length; a length that is not possible.
    pub fn len(&self) -> Result<usize, ReadError> {
        match self.ty.kind() {
            Kind::Primitive(_) => Err(self.wrong_kind("something with a length")),
            Kind::Struct { fields, .. } => Ok(fields.len()),
            Kind::String { .. } => Ok(self.text()?.len()),
            Kind::Opaque { .. } => Ok(self.ty.bytes_min()),
            Kind::Array { .. } | Kind::Sequence { .. } => Ok(self.span()?.length),
        }
    }

    /// Whether its [length](Value::len) is 0.
    ///
    /// # Errors
    /// As [`len`](Value::len).
    pub fn is_empty(&self) -> Result<bool, ReadError> {
        Ok(self.len()? == 0)
    }

    /// A truth value.
    ///
    /// # Errors
    /// If it is none.
    pub fn as_bool(&self) -> Result<bool, ReadError> {
        match self.scalar()? {
            Scalar::Bool(value) => Ok(value),
            _ => Err(self.wrong_kind("a truth value")),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is none, or does not fit.
    pub fn as_i64(&self) -> Result<i64, ReadError> {
        self.integer("i64", |signed| signed.try_into().ok(), |unsigned| unsigned.try_into().ok())
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// If it is none, or does not fit.
    pub fn as_u64(&self) -> Result<u64, ReadError> {
        self.integer("u64", |signed| signed.try_into().ok(), |unsigned| unsigned.try_into().ok())
    }

    /// Any number; a large whole number is rounded.
    ///
    /// # Errors
    /// If it is none.
    pub fn as_f64(&self) -> Result<f64, ReadError> {
        match self.scalar()? {
            Scalar::Bool(_) => Err(self.wrong_kind("a number")),
            Scalar::Signed(value) => Ok(value as f64),
            Scalar::Unsigned(value) => Ok(value as f64),
            Scalar::F32(value) => Ok(value.into()),
            Scalar::F64(value) => Ok(value),
        }
    }

    /// A number or a truth value, whatever its size is.
    ///
    /// # Errors
    /// If it is something else; in CDR a truth value other than 0 and 1.
    pub fn scalar(&self) -> Result<Scalar, ReadError> {
        let Kind::Primitive(primitive) = *self.ty.kind() else {
            return Err(self.wrong_kind("a number"));
        };
        let mut number = [0; 16];
        let bytes = primitive.bytes();
        number[..bytes].copy_from_slice(self.take(self.aligned(self.at, bytes), bytes)?);
        if self.big_endian {
            number[..bytes].reverse();
        }
        let unsigned = u128::from_le_bytes(number);
        let unused_bits = 128 - 8 * bytes as u32;
        // Shifts the sign to the top and back again.
        let signed = (unsigned << unused_bits).cast_signed() >> unused_bits;
        Ok(match primitive {
            Primitive::Bool if unsigned > 1 && !self.is_plain() => {
                return Err(What::BadBool(number[0]).into());
            }
            Primitive::Bool => Scalar::Bool(unsigned != 0),
            Primitive::F32 => Scalar::F32(f32::from_bits(unsigned as u32)),
            Primitive::F64 => Scalar::F64(f64::from_bits(unsigned as u64)),
            Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 | Primitive::I128 => {
                Scalar::Signed(signed)
            }
            Primitive::U8 | Primitive::U16 | Primitive::U32 | Primitive::U64 | Primitive::U128 => {
                Scalar::Unsigned(unsigned)
            }
        })
    }

    /// A copy of a string. It is not a `&str`, because the bytes can change after they were
    /// checked.
    ///
    /// # Errors
    /// If it is none; if it is not UTF-8 (take [`as_bytes`](Value::as_bytes) then).
    pub fn as_string(&self) -> Result<String, ReadError> {
        let text = self.text()?.to_vec();
        String::from_utf8(text).map_err(|_| What::BadUtf8.into())
    }

    /// The bytes of a value: of a string its text, of a sequence its elements, otherwise all that
    /// the value takes.
    ///
    /// # Errors
    /// In CDR if there is padding in the value, or if its size depends on its content.
    pub fn as_bytes(&self) -> Result<&'a [u8], ReadError> {
        if let Kind::String { .. } = self.ty.kind() {
            return self.text();
        }
        if let Kind::Array { .. } | Kind::Sequence { .. } = self.ty.kind() {
            let span = self.span()?;
            let stride = span.stride().ok_or_else(|| self.wrong_kind(ONE_PIECE))?;
            return self.take(span.first, span.length * stride);
        }
        let bytes = match self.ty.bytes() {
            Some(bytes) => bytes,
            // With a slice at the end.
            None if self.is_plain() => self.bytes.len().saturating_sub(self.at),
            None => return Err(self.wrong_kind(ONE_PIECE)),
        };
        self.take(self.aligned(self.at, self.ty.width().unwrap_or(1)), bytes)
    }

    /// The numbers of an array or a sequence, or of arrays in it, where they lie.
    ///
    /// # Errors
    /// If its elements are not numbers or truth values.
    pub fn as_slice(&self) -> Result<NumberSlice<'a>, ReadError> {
        let span = self.span()?;
        let mut shape = vec![span.length];
        let mut element = span.element;
        while let Kind::Array { element: inner, length } = element.kind() {
            shape.push(*length);
            element = inner;
        }
        let Kind::Primitive(element) = *element.kind() else {
            return Err(self.wrong_kind("numbers"));
        };
        let bytes = self.as_bytes()?;
        Ok(NumberSlice { element, bytes, shape, big_endian: self.big_endian })
    }

    fn integer<N>(
        &self,
        into: &'static str,
        from_signed: impl Fn(i128) -> Option<N>,
        from_unsigned: impl Fn(u128) -> Option<N>,
    ) -> Result<N, ReadError> {
        let (number, value) = match self.scalar()? {
            Scalar::Signed(value) => (from_signed(value), value.to_string()),
            Scalar::Unsigned(value) => (from_unsigned(value), value.to_string()),
            _ => return Err(self.wrong_kind("a whole number")),
        };
        number.ok_or_else(|| What::OutOfRange { value, into }.into())
    }

    /// The bytes of a string, without the NUL that ends it in CDR.
    pub(crate) fn text(&self) -> Result<&'a [u8], ReadError> {
        let Kind::String { bound } = *self.ty.kind() else {
            return Err(self.wrong_kind("a string"));
        };
        if self.is_plain() {
            let length = self.count(self.at)?.min(bound.unwrap_or(0));
            return self.take(self.at + STRING_LENGTH_BYTES, length);
        }
        let at = self.aligned(self.at, STRING_LENGTH_BYTES);
        let with_nul = self.take(at + STRING_LENGTH_BYTES, self.count(at)?)?;
        // Some programs write an empty string without the NUL that ends it.
        let Some((end, text)) = with_nul.split_last() else { return Ok(&[]) };
        if *end != 0 {
            return Err(What::NoNul.into());
        }
        self.check_bound(text.len(), bound)?;
        Ok(text)
    }

    /// Where the elements are.
    fn span(&self) -> Result<Span<'a>, ReadError> {
        let (element, first, length) = match self.ty.kind() {
            Kind::Array { element, length } => (element, self.at, *length),
            Kind::Sequence { element, bound } if !self.is_plain() => {
                let at = self.aligned(self.at, SEQUENCE_LENGTH_BYTES);
                let length = self.count(at)?;
                self.check_bound(length, *bound)?;
                (element, at + SEQUENCE_LENGTH_BYTES, length)
            }
            Kind::Sequence { element, bound: Some(bound) } => {
                let mut length = [0; BOUNDED_LENGTH_BYTES];
                length.copy_from_slice(self.take(self.at, BOUNDED_LENGTH_BYTES)?);
                // As a `BoundedVec` reads it.
                let length = u64::from_le_bytes(length).min(*bound as u64) as usize;
                (element, self.at + BOUNDED_LENGTH_BYTES, length)
            }
            Kind::Sequence { element, bound: None } => {
                let bytes = self.bytes.len().saturating_sub(self.at);
                (element, self.at, bytes / element.bytes_min())
            }
            _ => return Err(self.wrong_kind("an array or a sequence")),
        };
        // Numbers of CDR are aligned; without numbers there is no padding either.
        let first = match element.width() {
            Some(width) if length > 0 => self.aligned(first, width),
            _ => first,
        };
        self.check_left(first, length.saturating_mul(element.bytes_min()))?;
        Ok(Span { element, first, length })
    }

    /// A number of elements or bytes, in 4 bytes.
    fn count(&self, at: usize) -> Result<usize, ReadError> {
        let mut count = [0; 4];
        count.copy_from_slice(self.take(at, 4)?);
        let big_endian = self.big_endian;
        Ok(if big_endian { u32::from_be_bytes(count) } else { u32::from_le_bytes(count) } as usize)
    }

    fn check_bound(&self, length: usize, bound: Option<usize>) -> Result<(), ReadError> {
        match bound {
            Some(bound) if length > bound => {
                Err(What::BadLength { length, rule: format!("the bound is {bound}") }.into())
            }
            _ => Ok(()),
        }
    }

    /// In CDR: where a value of this type ends that begins here.
    fn end_of(&self, ty: &Type, at: usize) -> Result<usize, ReadError> {
        let value = Value { ty, at, ..*self };
        self.check_left(at, ty.bytes_min())?;
        if let Some(width) = ty.width() {
            let end = value.aligned(at, width) + ty.bytes_min();
            self.check_left(end, 0)?;
            return Ok(end);
        }
        match ty.kind() {
            Kind::Struct { fields, .. } => {
                let end_of_field = |at, field: &crate::types::Field| {
                    let end = self.end_of(&field.ty, at);
                    end.map_err(|error| error.within(&field.name))
                };
                // ROS 2 writes a byte for a message without fields.
                let nothing = if fields.is_empty() { 1 } else { 0 };
                fields.iter().try_fold(at + nothing, end_of_field)
            }
            Kind::String { .. } => {
                let at = value.aligned(at, STRING_LENGTH_BYTES);
                let length = value.count(at)?;
                self.take(at + STRING_LENGTH_BYTES, length)?;
                Ok(at + STRING_LENGTH_BYTES + length)
            }
            Kind::Array { .. } | Kind::Sequence { .. } => {
                let span = value.span()?;
                if let Some(stride) = span.stride() {
                    return Ok(span.first + span.length * stride);
                }
                (0..span.length).try_fold(span.first, |at, index| {
                    let end = self.end_of(span.element, at);
                    end.map_err(|error| error.within_element(index))
                })
            }
            // A primitive has a width, and nothing in CDR is opaque.
            Kind::Primitive(_) | Kind::Opaque { .. } => Ok(at + ty.bytes_min()),
        }
    }

    fn part(&self, ty: &'a Type, at: usize) -> Value<'a> {
        Value { ty, at, ..*self }
    }

    fn is_plain(&self) -> bool {
        self.ty.encoding() == Encoding::Plain
    }

    /// In CDR: the next place for a number of so many bytes.
    fn aligned(&self, at: usize, bytes: usize) -> usize {
        if self.is_plain() { at } else { at.next_multiple_of(bytes) }
    }

    fn take(&self, at: usize, bytes: usize) -> Result<&'a [u8], ReadError> {
        self.check_left(at, bytes)?;
        Ok(&self.bytes[at..at + bytes])
    }

    fn check_left(&self, at: usize, needed: usize) -> Result<(), ReadError> {
        let left = self.bytes.len().checked_sub(at);
        if left.is_none_or(|left| needed > left) {
            let at = at + if self.is_plain() { 0 } else { CDR_HEADER_BYTES };
            let left = left.unwrap_or(0);
            return Err(What::TooShort { at, needed, left }.into());
        }
        Ok(())
    }

    fn wrong_kind(&self, wanted: &'static str) -> ReadError {
        What::WrongKind { wanted, ty: self.ty.to_string() }.into()
    }
}

/// Its type, and where it begins; the bytes may be many.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Value({} at byte {} of {})", self.ty, self.at, self.bytes.len())
    }
}

/// The elements of an array or a sequence.
struct Span<'a> {
    element: &'a Type,
    first: usize,
    length: usize,
}

impl Span<'_> {
    /// From one element to the next, in bytes, if it is the same for all.
    fn stride(&self) -> Option<usize> {
        self.element.bytes()
    }
}

/// Parts in CDR, one after the other. Each is skipped only when the next is asked for.
struct Parts<'a> {
    whole: Value<'a>,
    previous: Previous<'a>,
}

enum Previous<'a> {
    /// There is none: the first part begins here.
    None(usize),
    Part(Value<'a>),
    /// Its end was not found, so there is no next.
    Broken,
}

impl<'a> Parts<'a> {
    fn new(whole: Value<'a>, at: usize) -> Self {
        Parts { whole, previous: Previous::None(at) }
    }

    /// The next part, of this type; an error of the previous part; `None` after an error.
    fn next(&mut self, ty: &'a Type) -> Option<Result<Value<'a>, ReadError>> {
        let at = match self.previous {
            Previous::None(first) => Ok(first),
            Previous::Part(previous) => self.whole.end_of(previous.ty, previous.at),
            Previous::Broken => return None,
        };
        let next = at.map(|at| self.whole.part(ty, at));
        self.previous = next.as_ref().map_or(Previous::Broken, |next| Previous::Part(*next));
        Some(next)
    }
}

/// Checks that a sample of plain data can have so many bytes.
fn check_length(ty: &Type, length: usize) -> Result<(), ReadError> {
    let bytes = ty.bytes_min();
    let rule = match ty.slice_element() {
        None if length == bytes => return Ok(()),
        None => format!("a {ty} has {bytes} B"),
        Some((element, first)) => {
            let element = element.bytes_min();
            if length.checked_sub(first).is_some_and(|all| all.is_multiple_of(element)) {
                return Ok(());
            }
            format!("a {ty} has {first} B and then elements of {element} B")
        }
    };
    Err(What::BadLength { length, rule }.into())
}

/// Encoding and options.
pub(crate) const CDR_HEADER_BYTES: usize = 4;
/// What has bytes of its own.
const ONE_PIECE: &str = "a value whose bytes lie in one piece";
