//! Images and point clouds of plain data as messages of `sensor_msgs`, which viewers show.
//!
//! A topic of a slice, or of a header and a slice, says so by the names of its fields. Each field of
//! the header has to be one of these, so that nothing of a sample is lost and it can be made again
//! from the message. A topic with other fields is written as a [`PlainCdr`](crate::PlainCdr).
//!
//! | | image | point cloud |
//! |---|---|---|
//! | elements | any number; or a struct of bytes `r, g, b`, `b, g, r`, and with `a` | a struct with `x, y, z` of `f32` or `f64`, and other numbers |
//! | `width`, `height` | needed | one without the other, or without both: a row of points |
//! | `encoding` or `pixel_format`: text | needed, unless the elements say it | – |
//! | `step` or `stride` | optional: bytes of a row | – |
//! | `is_bigendian` | optional | – |
//! | `is_dense` | – | optional |
//! | `stamp_ns`, or a struct `stamp` of `sec` and `nanosec` | optional | optional |
//! | `frame_id`: text | optional | optional |
//!
//! Text is a `FixedString<N>`, or bytes that end with zeros.

use myelin_value::{Encoding, Kind, Primitive, Schema, Type};

use crate::cdr::{CDR_HEADER, slice_of};
use crate::ending::OwnedSchema;

/// How samples of a topic become messages of `sensor_msgs`, and these samples again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SensorCdr {
    shape: Shape,
    /// The fields of the header.
    places: Vec<Place>,
    /// Where the elements begin in a sample.
    at: usize,
    element_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// With the encoding that the elements say.
    Image { encoding: Option<&'static str> },
    /// With the numbers of a point.
    Cloud { fields: Vec<PointField> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PointField {
    name: String,
    offset: u32,
    datatype: u8,
    count: u32,
}

/// A field of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    role: Role,
    form: Form,
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    StampNs,
    Seconds,
    Nanoseconds,
    FrameId,
    Width,
    Height,
    Encoding,
    Step,
    IsBigEndian,
    IsDense,
}

/// How a field of the header is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A number of so many bytes.
    Number(usize),
    /// A `FixedString` of at most so many bytes.
    Text(usize),
    /// So many bytes, those that are used and zeros.
    Bytes(usize),
}

/// The fields of a message, besides its data.
#[derive(Default)]
struct Values<'a> {
    seconds: i32,
    nanoseconds: u32,
    frame_id: &'a [u8],
    width: u32,
    height: u32,
    encoding: &'a [u8],
    step: u32,
    is_big_endian: u8,
    is_dense: u8,
}

impl SensorCdr {
    /// `None` if a topic of this type does not say that it has images or point clouds.
    pub(crate) fn new(ty: &Type) -> Option<SensorCdr> {
        if ty.encoding() != Encoding::Plain {
            return None;
        }
        let (header, element, at) = slice_of(ty)?;
        let mut places = Vec::new();
        if let Some(header) = header {
            let Kind::Struct { fields, .. } = header.kind() else { return None };
            for field in fields {
                push_places(&mut places, &field.name, &field.ty, field.offset)?;
            }
        }
        let has = |role| places.iter().filter(|place| place.role == role).count();
        let roles = [
            Role::StampNs,
            Role::Seconds,
            Role::Nanoseconds,
            Role::FrameId,
            Role::Width,
            Role::Height,
            Role::Encoding,
            Role::Step,
            Role::IsBigEndian,
            Role::IsDense,
        ];
        let has_one_of_each = roles.into_iter().all(|role| has(role) <= 1);
        if !has_one_of_each || has(Role::StampNs) + has(Role::Seconds) > 1 {
            return None;
        }
        let of_elements = pixels(element);
        let shape = if let Some(fields) = point_fields(element) {
            let of_images = [Role::Encoding, Role::Step, Role::IsBigEndian];
            if of_images.into_iter().any(|role| has(role) > 0) {
                return None;
            }
            Shape::Cloud { fields }
        } else {
            let is_number = matches!(element.kind(), Kind::Primitive(_));
            let has_encoding = match of_elements {
                Some(_) => has(Role::Encoding) == 0,
                None => is_number && has(Role::Encoding) == 1,
            };
            let has_size = has(Role::Width) == 1 && has(Role::Height) == 1;
            if !has_encoding || !has_size || has(Role::IsDense) > 0 {
                return None;
            }
            Shape::Image { encoding: of_elements }
        };
        Some(SensorCdr { shape, places, at, element_bytes: element.bytes_min() })
    }

    /// The definition of its messages.
    pub(crate) fn schema(&self) -> OwnedSchema {
        let (name, text) = match self.shape {
            Shape::Image { .. } => ("sensor_msgs/msg/Image", IMAGE.to_owned() + HEADER),
            Shape::Cloud { .. } => {
                ("sensor_msgs/msg/PointCloud2", POINT_CLOUD.to_owned() + HEADER + POINT_FIELD)
            }
        };
        OwnedSchema {
            encoding: Schema::ROS2MSG.to_owned(),
            name: name.to_owned(),
            text: text.into_bytes(),
        }
    }

    /// The parts of a sample's message. What is not in the sample is put into `scratch`.
    pub(crate) fn message<'a>(&self, sample: &'a [u8], scratch: &'a mut Vec<u8>) -> [&'a [u8]; 4] {
        let header = &sample[..self.at.min(sample.len())];
        let data = sample.get(self.at..).unwrap_or_default();
        let data = &data[..data.len() - data.len() % self.element_bytes];
        let count = (data.len() / self.element_bytes) as u32;
        let mut values = self.read(header);
        scratch.clear();
        scratch.extend_from_slice(&CDR_HEADER);
        let mut cdr = Writer(scratch);
        let behind = match &self.shape {
            Shape::Image { encoding } => {
                if let Some(encoding) = encoding {
                    values.encoding = encoding.as_bytes();
                }
                if !self.has(Role::Step) {
                    values.step = (data.len() as u32).checked_div(values.height).unwrap_or(0);
                }
                cdr.header(&values);
                cdr.number(values.height);
                cdr.number(values.width);
                cdr.text(values.encoding);
                cdr.byte(values.is_big_endian);
                cdr.number(values.step);
                cdr.number(data.len() as u32);
                0
            }
            Shape::Cloud { fields } => {
                match (self.has(Role::Width), self.has(Role::Height)) {
                    (true, true) => {}
                    (true, false) => {
                        values.height = count.checked_div(values.width).unwrap_or(0);
                    }
                    (false, true) => values.width = count.checked_div(values.height).unwrap_or(0),
                    (false, false) => (values.width, values.height) = (count, 1),
                }
                if !self.has(Role::IsDense) {
                    values.is_dense = 1;
                }
                cdr.header(&values);
                cdr.number(values.height);
                cdr.number(values.width);
                cdr.number(fields.len() as u32);
                for field in fields {
                    cdr.text(field.name.as_bytes());
                    cdr.number(field.offset);
                    cdr.byte(field.datatype);
                    cdr.number(field.count);
                }
                cdr.byte(0);
                cdr.number(self.element_bytes as u32);
                cdr.number(values.width.wrapping_mul(self.element_bytes as u32));
                cdr.number(data.len() as u32);
                cdr.byte(values.is_dense);
                1
            }
        };
        let (before, behind) = scratch.split_at(scratch.len() - behind);
        [before, data, behind, &[]]
    }

    /// The parts of the sample that a message was made of; `None` if it is no such message.
    pub(crate) fn sample<'a>(
        &self,
        message: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Option<[&'a [u8]; 3]> {
        let mut cdr = Reader { body: message.strip_prefix(&CDR_HEADER)?, at: 0 };
        // In the order of the message.
        let mut values = Values {
            seconds: cdr.number()?.cast_signed(),
            nanoseconds: cdr.number()?,
            frame_id: cdr.text()?,
            height: cdr.number()?,
            width: cdr.number()?,
            ..Values::default()
        };
        let data = match &self.shape {
            Shape::Image { .. } => {
                values.encoding = cdr.text()?;
                values.is_big_endian = cdr.byte()?;
                values.step = cdr.number()?;
                cdr.bytes()?
            }
            Shape::Cloud { fields } => {
                if cdr.number()? as usize != fields.len() {
                    return None;
                }
                for _ in fields {
                    cdr.text()?;
                    cdr.number()?;
                    cdr.byte()?;
                    cdr.number()?;
                }
                cdr.byte()?;
                cdr.number()?;
                cdr.number()?;
                let data = cdr.bytes()?;
                values.is_dense = cdr.byte()?;
                data
            }
        };
        if !data.len().is_multiple_of(self.element_bytes) {
            return None;
        }
        scratch.clear();
        scratch.resize(self.at, 0);
        for place in &self.places {
            place.write(&values, scratch)?;
        }
        Some([scratch, data, &[]])
    }

    fn has(&self, role: Role) -> bool {
        self.places.iter().any(|place| place.role == role)
    }

    fn read<'a>(&self, header: &'a [u8]) -> Values<'a> {
        let mut values = Values::default();
        for place in &self.places {
            place.read(header, &mut values);
        }
        values
    }
}

impl Place {
    fn read<'a>(&self, header: &'a [u8], to: &mut Values<'a>) {
        let bytes = header.get(self.at..).unwrap_or_default();
        let (number, text) = match self.form {
            Form::Number(size) => (number_in(bytes, size), &[][..]),
            Form::Text(size) => {
                let length = (number_in(bytes, LENGTH_BYTES) as usize).min(size);
                (0, bytes.get(LENGTH_BYTES..LENGTH_BYTES + length).unwrap_or_default())
            }
            Form::Bytes(size) => {
                let text = bytes.get(..size).unwrap_or_default();
                let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                (0, &text[..end])
            }
        };
        match self.role {
            Role::StampNs => {
                to.seconds = i32::try_from(number / NS_PER_S).unwrap_or(i32::MAX);
                to.nanoseconds = (number % NS_PER_S) as u32;
            }
            Role::Seconds => to.seconds = (number as u32).cast_signed(),
            Role::Nanoseconds => to.nanoseconds = number as u32,
            Role::FrameId => to.frame_id = text,
            Role::Width => to.width = number as u32,
            Role::Height => to.height = number as u32,
            Role::Encoding => to.encoding = text,
            Role::Step => to.step = number as u32,
            Role::IsBigEndian => to.is_big_endian = number as u8,
            Role::IsDense => to.is_dense = number as u8,
        }
    }

    /// `None` if a text is too long.
    fn write(&self, values: &Values<'_>, header: &mut [u8]) -> Option<()> {
        let to = header.get_mut(self.at..)?;
        let number = match self.role {
            Role::StampNs => {
                u64::from(values.seconds.max(0).cast_unsigned()) * NS_PER_S
                    + u64::from(values.nanoseconds)
            }
            Role::Seconds => values.seconds.cast_unsigned().into(),
            Role::Nanoseconds => values.nanoseconds.into(),
            Role::Width => values.width.into(),
            Role::Height => values.height.into(),
            Role::Step => values.step.into(),
            Role::IsBigEndian => values.is_big_endian.into(),
            Role::IsDense => values.is_dense.into(),
            Role::FrameId | Role::Encoding => 0,
        };
        let text = if self.role == Role::FrameId { values.frame_id } else { values.encoding };
        match self.form {
            Form::Number(size) => {
                to.get_mut(..size)?.copy_from_slice(number.to_le_bytes().get(..size)?);
            }
            Form::Text(size) | Form::Bytes(size) if text.len() > size => return None,
            Form::Text(_) => {
                let length = (text.len() as u32).to_le_bytes();
                to.get_mut(..LENGTH_BYTES)?.copy_from_slice(&length);
                to.get_mut(LENGTH_BYTES..)?.get_mut(..text.len())?.copy_from_slice(text);
            }
            Form::Bytes(_) => to.get_mut(..text.len())?.copy_from_slice(text),
        }
        Some(())
    }
}

/// `None` if the field is none of a message.
fn push_places(to: &mut Vec<Place>, name: &str, ty: &Type, at: usize) -> Option<()> {
    let role = match name {
        "stamp_ns" => Role::StampNs,
        "sec" => Role::Seconds,
        "nanosec" => Role::Nanoseconds,
        "frame_id" => Role::FrameId,
        "width" => Role::Width,
        "height" => Role::Height,
        "encoding" | "pixel_format" => Role::Encoding,
        "step" | "stride" => Role::Step,
        "is_bigendian" => Role::IsBigEndian,
        "is_dense" => Role::IsDense,
        "stamp" => {
            let Kind::Struct { fields, .. } = ty.kind() else { return None };
            let [first, second] = &fields[..] else { return None };
            if (&*first.name, &*second.name) != ("sec", "nanosec") {
                return None;
            }
            push_places(to, "sec", &first.ty, at + first.offset)?;
            return push_places(to, "nanosec", &second.ty, at + second.offset);
        }
        _ => return None,
    };
    let form = match (role, ty.kind()) {
        (Role::FrameId | Role::Encoding, Kind::String { bound: Some(bound) }) => Form::Text(*bound),
        (Role::FrameId | Role::Encoding, Kind::Array { element, length })
            if matches!(element.kind(), Kind::Primitive(Primitive::U8 | Primitive::I8)) =>
        {
            Form::Bytes(*length)
        }
        (_, Kind::Primitive(number)) if fits(role, *number) => Form::Number(number.bytes()),
        _ => return None,
    };
    to.push(Place { role, form, at });
    Some(())
}

/// Whether a message has room for all values of such a number.
fn fits(role: Role, number: Primitive) -> bool {
    use Primitive::{Bool, I32, I64, U8, U16, U32, U64};
    match role {
        Role::StampNs => matches!(number, U64 | I64),
        Role::Seconds => matches!(number, I32 | U32),
        Role::Nanoseconds => number == U32,
        Role::Width | Role::Height | Role::Step => matches!(number, U8 | U16 | U32),
        Role::IsBigEndian | Role::IsDense => matches!(number, Bool | U8),
        Role::FrameId | Role::Encoding => false,
    }
}

/// The encoding of pixels that are structs.
fn pixels(element: &Type) -> Option<&'static str> {
    let Kind::Struct { fields, .. } = element.kind() else { return None };
    let is_byte = |ty: &Type| matches!(ty.kind(), Kind::Primitive(Primitive::U8));
    if element.bytes_min() != fields.len() || !fields.iter().all(|field| is_byte(&field.ty)) {
        return None;
    }
    let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    match &names[..] {
        ["r", "g", "b"] => Some("rgb8"),
        ["b", "g", "r"] => Some("bgr8"),
        ["r", "g", "b", "a"] => Some("rgba8"),
        ["b", "g", "r", "a"] => Some("bgra8"),
        _ => None,
    }
}

/// The numbers of elements that are points.
fn point_fields(element: &Type) -> Option<Vec<PointField>> {
    let Kind::Struct { fields, .. } = element.kind() else { return None };
    let field = |field: &myelin_value::Field| {
        let (number, count) = match field.ty.kind() {
            Kind::Primitive(number) => (*number, 1),
            Kind::Array { element, length } => match element.kind() {
                Kind::Primitive(number) => (*number, *length),
                _ => return None,
            },
            _ => return None,
        };
        let datatype = match number {
            Primitive::I8 => 1,
            Primitive::U8 | Primitive::Bool => 2,
            Primitive::I16 => 3,
            Primitive::U16 => 4,
            Primitive::I32 => 5,
            Primitive::U32 => 6,
            Primitive::F32 => 7,
            Primitive::F64 => 8,
            _ => return None,
        };
        let (offset, count) = (u32::try_from(field.offset).ok()?, u32::try_from(count).ok()?);
        Some(PointField { name: field.name.clone(), offset, datatype, count })
    };
    let fields: Vec<PointField> = fields.iter().map(field).collect::<Option<_>>()?;
    let place = |name| fields.iter().find(|field| field.name == name && field.count == 1);
    let (x, y, z) = (place("x")?, place("y")?, place("z")?);
    let is_float = matches!(x.datatype, 7 | 8) && y.datatype == x.datatype;
    (is_float && z.datatype == x.datatype).then_some(fields)
}

fn number_in(bytes: &[u8], size: usize) -> u64 {
    let mut number = [0; 8];
    if let (Some(to), Some(from)) = (number.get_mut(..size), bytes.get(..size)) {
        to.copy_from_slice(from);
    }
    u64::from_le_bytes(number)
}

/// Appends fields to a message that begins with its header.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn header(&mut self, values: &Values<'_>) {
        self.number(values.seconds.cast_unsigned());
        self.number(values.nanoseconds);
        self.text(values.frame_id);
    }

    fn number(&mut self, number: u32) {
        // The header of the encoding has as many bytes as a number.
        self.0.resize(self.0.len().next_multiple_of(LENGTH_BYTES), 0);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Text ends with a zero, which counts.
    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u32 + 1);
        self.0.extend_from_slice(text);
        self.0.push(0);
    }
}

/// Reads the fields of a message behind its header.
struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let taken = self.body.get(self.at..)?.get(..bytes)?;
        self.at += bytes;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.at = self.at.next_multiple_of(LENGTH_BYTES);
        self.take(LENGTH_BYTES).map(|bytes| number_in(bytes, LENGTH_BYTES) as u32)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        self.bytes()?.strip_suffix(&[0])
    }
}

const LENGTH_BYTES: usize = 4;
const NS_PER_S: u64 = 1_000_000_000;

const IMAGE: &str = "\
std_msgs/Header header
uint32 height
uint32 width
string encoding
uint8 is_bigendian
uint32 step
uint8[] data
";
const POINT_CLOUD: &str = "\
std_msgs/Header header
uint32 height
uint32 width
PointField[] fields
bool is_bigendian
uint32 point_step
uint32 row_step
uint8[] data
bool is_dense
";
const HEADER: &str = "\
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
";
const POINT_FIELD: &str = "\
================================================================================
MSG: sensor_msgs/PointField
uint8 INT8=1
uint8 UINT8=2
uint8 INT16=3
uint8 UINT16=4
uint8 INT32=5
uint8 UINT32=6
uint8 FLOAT32=7
uint8 FLOAT64=8
string name
uint32 offset
uint8 datatype
uint32 count
";
