//! How the messages of a channel are read as values.
//!
//! | messages | schema | read by |
//! |---|---|---|
//! | `cdr`, with `myelin:layout` in the channel's metadata | a generated message | the layout; if the type ends with a slice, the generated message |
//! | `cdr` | `ros2msg` | the definition of the message |
//! | `x-myelin` | `myelin-layout` | the layout |
//! | `json` | any | JSON |

use myelin_value::{ReadError, ReadErrorKind, Schema, SchemaError, Type, Value};

use crate::cdr::CDR_HEADER;
use crate::ending::OwnedSchema;
use crate::format::Channel;
use crate::topic_format::{Form, TopicFormat};

/// How the messages of a channel are read as values.
///
/// ```
/// use myelin_bag::{MessageType, OwnedSchema, Schema, TopicFormat};
///
/// let format = TopicFormat::new(&Schema::layout("Speed{x: f32 @0} 4"));
/// let (schema, channel) = (format.schema(), format.channel("speed", 1));
/// let ty = MessageType::new(&channel, Some(schema))?;
/// let message = [0, 1, 0, 0, 0, 0, 128, 63];
/// assert_eq!(ty.value(&message)?.get("x")?.as_f64()?, 1.0);
/// let sample = ty.sample(&message, &mut Vec::new()).map(|parts| parts.concat());
/// assert_eq!(sample, Some(vec![0, 0, 128, 63]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MessageType {
    encoding: Encoding,
    /// Of plain data that are written as CDR.
    plain: Option<Form>,
}

#[derive(Clone, Debug, PartialEq)]
enum Encoding {
    /// Values of a type, behind so many bytes that are skipped.
    Typed {
        ty: Box<Type>,
        skipped: usize,
    },
    Json,
}

/// What is in a message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// A value of a type.
    Value(Value<'a>),
    /// JSON.
    Json(serde_json::Value),
}

/// Messages that cannot be read as values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageTypeError {
    /// Another encoding.
    #[error("there is no reader for messages in {encoding:?} with a schema in {schema:?}")]
    Unsupported {
        /// Of the messages.
        encoding: String,
        /// Of the schema; empty if there is none.
        schema: String,
    },
    /// A schema that is not understood.
    #[error("the schema cannot be read: {0}")]
    Schema(#[from] SchemaError),
}

impl MessageType {
    /// How messages of this channel are read.
    ///
    /// # Errors
    /// If there is no reader for them, or the schema is broken.
    pub fn new(
        channel: &Channel,
        schema: Option<&OwnedSchema>,
    ) -> Result<MessageType, MessageTypeError> {
        let encoding = channel.encoding.as_str();
        let of_schema = schema.map_or("", |schema| &schema.encoding);
        let typed = |ty, skipped| Encoding::Typed { ty: Box::new(ty), skipped };
        match (encoding, of_schema, schema) {
            ("cdr", Schema::ROS2MSG, Some(schema)) => {
                let plain = channel.layout().and_then(plain);
                let encoding = match &plain {
                    // A layout has the names of the program, and no padding.
                    Some((ty, Form::Plain(cdr))) if cdr.is_fixed() => {
                        typed(ty.clone(), CDR_HEADER.len())
                    }
                    _ => typed(schema.as_schema().parse()?, 0),
                };
                Ok(MessageType { encoding, plain: plain.map(|(_, form)| form) })
            }
            (TopicFormat::OWN_ENCODING, Schema::LAYOUT, Some(schema)) => {
                let ty = schema.as_schema().parse()?;
                Ok(MessageType { encoding: typed(ty, 0), plain: None })
            }
            ("json", _, _) | (TopicFormat::OWN_ENCODING, "json" | "jsonschema", _) => {
                Ok(MessageType { encoding: Encoding::Json, plain: None })
            }
            _ => Err(MessageTypeError::Unsupported {
                encoding: encoding.to_owned(),
                schema: of_schema.to_owned(),
            }),
        }
    }

    /// The type of the values; `None` of JSON.
    pub fn ty(&self) -> Option<&Type> {
        match &self.encoding {
            Encoding::Typed { ty, .. } => Some(ty),
            Encoding::Json => None,
        }
    }

    /// The value in a message.
    ///
    /// # Errors
    /// Broken data; JSON, which has no type: see [`content`](MessageType::content).
    pub fn value<'a>(&'a self, data: &'a [u8]) -> Result<Value<'a>, ReadError> {
        match &self.encoding {
            Encoding::Typed { ty, skipped } => {
                Value::new(ty, data.get(*skipped..).unwrap_or_default())
            }
            Encoding::Json => {
                let ty = "JSON text".to_owned();
                Err(ReadErrorKind::WrongKind { wanted: "a value of a type", ty }.into())
            }
        }
    }

    /// What is in a message, also if it is JSON.
    ///
    /// # Errors
    /// One sentence: what is broken.
    pub fn content<'a>(&'a self, data: &'a [u8]) -> Result<Content<'a>, String> {
        match &self.encoding {
            Encoding::Typed { .. } => {
                self.value(data).map(Content::Value).map_err(|error| error.to_string())
            }
            Encoding::Json => serde_json::from_slice(data)
                .map(Content::Json)
                .map_err(|error| format!("no JSON: {error}")),
        }
    }

    /// The sample that a message was made of, in parts one after the other: what a program
    /// publishes again. `None` if the message has not the form that the type gives it. What is not
    /// in the message is put into `scratch`, which may be used again and again.
    pub fn sample<'a>(&self, data: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<[&'a [u8]; 3]> {
        match &self.plain {
            Some(plain) => plain.sample(data, scratch),
            None => Some([data, &[], &[]]),
        }
    }

    /// Whether a field with this name stands for a hole of plain data, whose bytes mean nothing.
    pub fn is_padding(&self, field: &str) -> bool {
        let is_generated = matches!(&self.plain, Some(Form::Plain(cdr)) if !cdr.is_fixed());
        let number = field.strip_prefix("padding");
        is_generated && number.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    }
}

/// The type of a layout, and how its samples are CDR; `None` if that does not fit.
fn plain(layout: &str) -> Option<(Type, Form)> {
    let ty = Schema::layout(layout).parse().ok()?;
    let (form, _) = Form::of(&ty).ok()?;
    Some((ty, form))
}
