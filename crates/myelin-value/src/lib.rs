//! Reads and writes a sample's bytes by its schema, for programs that were not compiled with its
//! type: tools, recorders, scripts.
//!
//! ```
//! use myelin_value::{Schema, Value, encode_json};
//!
//! let schema = Schema::new("ros2msg", "robot_msgs/msg/Path", "\
//! string name
//! Point[] points
//! ================================================================================
//! MSG: robot_msgs/Point
//! float64 x
//! float64 y
//! ");
//! let ty = schema.parse()?;
//!
//! let json = serde_json::json!({ "name": "home", "points": [{ "x": 1 }, { "x": 2, "y": 0.5 }] });
//! let sample = encode_json(&ty, &json)?; // the bytes that a ROS 2 node writes
//!
//! let path = Value::new(&ty, &sample)?;
//! assert_eq!(path.get("name")?.as_string()?, "home");
//! assert_eq!(path.get("points[1].y")?.as_f64()?, 0.5);
//! assert_eq!(path.get("points[0].z").unwrap_err().to_string(), "points[0]: there is no field \"z\"");
//! for point in path.get("points")?.elements()? {
//!     assert!(point?.get("x")?.as_f64()? > 0.0);
//! }
//! assert_eq!(
//!     path.to_json(1)?,
//!     r#"{"name": "home", "points": [{"x": 1.0, "y": 0.0}, {"...": 2}]}"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | step | by |
//! |---|---|
//! | a schema, as a peer or a file has it | [`Schema`] |
//! | a type, checked once | [`Schema::parse`], [`Type`] |
//! | a sample, or a part of it | [`Value`]: [`get`](Value::get), [`as_f64`](Value::as_f64), [`as_slice`](Value::as_slice), … |
//! | text | [`Value::to_json`], [`Value::to_lines`] |
//! | a new sample | [`encode_json`], [`encode`] |
//!
//! Schemas and samples may come from a hostile peer. Whatever they are, the result is a value or
//! an error: no panic, no endless loop, and no more memory than [`limits`] allows.

#![forbid(unsafe_code)]

mod encode;
mod error;
mod layout;
pub mod limits;
mod render;
mod ros2msg;
mod text;
mod types;
mod value;

pub use encode::{Input, Item, encode, encode_json};
pub use error::{
    EncodeError, EncodeErrorKind, ReadError, ReadErrorKind, SchemaError, SchemaErrorKind,
};
pub use types::{Encoding, Field, Kind, Primitive, Type};
pub use value::{NumberSlice, Scalar, Value};

/// The description of a type, not yet understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema<'s> {
    /// The language of the description: [`LAYOUT`](Schema::LAYOUT), [`ROS2MSG`](Schema::ROS2MSG).
    pub encoding: &'s str,
    /// The name of the type. Only definitions of messages need it.
    pub name: &'s str,
    /// The description itself.
    pub text: &'s [u8],
}

impl<'s> Schema<'s> {
    /// Myelin's layouts of plain data; samples are the bytes in memory.
    pub const LAYOUT: &'static str = "myelin-layout";
    /// Definitions of ROS 2 messages, as MCAP concatenates them; samples are CDR.
    pub const ROS2MSG: &'static str = "ros2msg";

    /// A schema in this encoding.
    pub fn new(encoding: &'s str, name: &'s str, text: &'s (impl AsRef<[u8]> + ?Sized)) -> Self {
        Schema { encoding, name, text: text.as_ref() }
    }

    /// The schema of plain data with this layout.
    pub fn layout(text: &'s str) -> Self {
        Schema::new(Schema::LAYOUT, "", text)
    }

    /// The type, with all limits checked.
    ///
    /// ```
    /// # use myelin_value::{Schema, Type};
    /// // What a tool does with a topic whose schema it cannot read: it shows bytes.
    /// let schema = Schema::new("protobuf", "robot.Pose", &[0x0a, 0x04]);
    /// let ty = schema.parse().unwrap_or_else(|_| Type::any_bytes());
    /// assert_eq!(ty.to_string(), "[u8]");
    /// ```
    ///
    /// # Errors
    /// An encoding that is unknown, or a text that does not describe a type.
    pub fn parse(&self) -> Result<Type, SchemaError> {
        let encoding = self.encoding;
        if self.text.len() > limits::SCHEMA_BYTES_MAX {
            return Err(SchemaErrorKind::TooLong.at(format_args!("encoding {encoding:?}")));
        }
        let text = || {
            let not_utf8 = |_| SchemaErrorKind::NotUtf8.at(format_args!("encoding {encoding:?}"));
            std::str::from_utf8(self.text).map_err(not_utf8)
        };
        match encoding {
            Schema::LAYOUT => layout::parse(text()?),
            Schema::ROS2MSG => ros2msg::parse(self.name, text()?),
            _ => Err(SchemaErrorKind::Unsupported.at(format_args!("encoding {encoding:?}"))),
        }
    }
}
