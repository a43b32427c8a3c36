//! How the samples of a topic are written, by the schema that its endpoints announce.
//!
//! | schema | messages | schema in the file |
//! |---|---|---|
//! | ROS 2 message | `cdr`: the samples | the same |
//! | plain data that says that it is an image or a point cloud | `cdr` | `sensor_msgs/msg/Image`, `PointCloud2` |
//! | other plain data that is valid CDR | `cdr`: the samples behind a header | a generated message |
//! | other plain data, other encodings | `x-myelin`: the samples | the same |
//!
//! What a topic of images or point clouds looks like:
//!
//! | | image | point cloud |
//! |---|---|---|
//! | elements of the slice | any number; or a struct of bytes `r, g, b` or `b, g, r`, also with `a` | a struct with `x, y, z` of `f32` or `f64`, and other numbers |
//! | header: `width`, `height` | needed | optional |
//! | header: `encoding` or `pixel_format`, a text | needed, unless the elements say it | – |
//! | header: `step` or `stride`, `is_bigendian` | optional | – |
//! | header: `is_dense` | – | optional |
//! | header: `stamp_ns`, or `stamp` with `sec` and `nanosec` | optional | optional |
//! | header: `frame_id`, a text | optional | optional |
//!
//! The header may have no other fields, so that a sample can be made again from its message.

use myelin_value::{Schema, Type};

use crate::cdr::PlainCdr;
use crate::ending::OwnedSchema;
use crate::format::{Channel, Metadata};
use crate::names::{LAYOUT, NOT_CDR};
use crate::sensor_cdr::SensorCdr;

/// How the samples of a topic are written.
///
/// ```
/// use myelin_bag::{Schema, TopicFormat};
///
/// let format = TopicFormat::new(&Schema::layout("Speed{x: f32 @0} 4"));
/// assert_eq!(format.schema().text, b"float32 x\n");
/// let channel = format.channel("speed", 1);
/// assert_eq!(channel.encoding, "cdr");
/// assert_eq!(channel.metadata["myelin:layout"], "Speed{x: f32 @0} 4");
/// let message = format.message(&[0, 0, 128, 63], &mut Vec::new()).concat();
/// assert_eq!(message, [0, 1, 0, 0, 0, 0, 128, 63]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFormat {
    form: Form,
    schema: OwnedSchema,
    encoding: &'static str,
    metadata: Metadata,
}

/// How the samples of a topic become messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    AsItIs,
    Plain(PlainCdr),
    Sensor(SensorCdr),
}

impl TopicFormat {
    /// For messages of samples as they are, of which only Myelin's programs know the schema.
    pub const OWN_ENCODING: &'static str = "x-myelin";

    /// The format for samples of this schema.
    pub fn new(schema: &Schema) -> TopicFormat {
        let as_it_is = OwnedSchema {
            encoding: schema.encoding.to_owned(),
            name: schema.name.to_owned(),
            text: schema.text.to_owned(),
        };
        let (own, metadata) = (TopicFormat::OWN_ENCODING, Metadata::new());
        if schema.encoding != Schema::LAYOUT {
            let encoding = if schema.encoding == Schema::ROS2MSG { "cdr" } else { own };
            return TopicFormat { form: Form::AsItIs, schema: as_it_is, encoding, metadata };
        }
        let parsed = schema.parse().map_err(|error| error.to_string());
        let name = parsed.as_ref().map(ToString::to_string).unwrap_or_default();
        match parsed.and_then(|ty| Form::of(&ty)) {
            Ok((form, message)) => {
                let layout = String::from_utf8_lossy(schema.text).into_owned();
                let metadata = [(LAYOUT.to_owned(), layout)].into();
                TopicFormat { form, schema: message, encoding: "cdr", metadata }
            }
            Err(why) => {
                let schema = OwnedSchema { name, ..as_it_is };
                let metadata = [(NOT_CDR.to_owned(), why)].into();
                TopicFormat { form: Form::AsItIs, schema, encoding: own, metadata }
            }
        }
    }

    /// What is added to the file for its channel.
    pub fn schema(&self) -> &OwnedSchema {
        &self.schema
    }

    /// Its channel, by the id of the schema in the file.
    pub fn channel(&self, topic: &str, schema: u16) -> Channel {
        let (topic, encoding) = (topic.to_owned(), self.encoding.to_owned());
        Channel { schema, topic, encoding, metadata: self.metadata.clone() }
    }

    /// The parts of a sample's message, to be written one after the other. What is not in the
    /// sample is put into `scratch`, which may be used again and again.
    pub fn message<'a>(&self, sample: &'a [u8], scratch: &'a mut Vec<u8>) -> [&'a [u8]; 4] {
        match &self.form {
            Form::AsItIs => [sample, &[], &[], &[]],
            Form::Plain(cdr) => cdr.message(sample, scratch),
            Form::Sensor(cdr) => cdr.message(sample, scratch),
        }
    }

    /// The parts of the sample that a message was made of, one after the other. `None` if the
    /// message is none of this topic.
    pub fn sample<'a>(&self, message: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<[&'a [u8]; 3]> {
        self.form.sample(message, scratch)
    }

    /// Why the samples of plain data are not written as CDR, if so.
    pub fn not_cdr(&self) -> Option<&str> {
        self.metadata.get(NOT_CDR).map(String::as_str)
    }
}

impl Form {
    /// For plain data, with the definition of the message.
    pub(crate) fn of(ty: &Type) -> Result<(Form, OwnedSchema), String> {
        if let Some(cdr) = SensorCdr::new(ty) {
            let schema = cdr.schema();
            return Ok((Form::Sensor(cdr), schema));
        }
        let cdr = PlainCdr::new(ty).map_err(|unfit| unfit.to_string())?;
        let schema = cdr.schema().clone();
        Ok((Form::Plain(cdr), schema))
    }

    pub(crate) fn sample<'a>(
        &self,
        message: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Option<[&'a [u8]; 3]> {
        match self {
            Form::AsItIs => Some([message, &[], &[]]),
            Form::Plain(cdr) => cdr.sample(message),
            Form::Sensor(cdr) => cdr.sample(message, scratch),
        }
    }
}
