//! How the samples of a topic are written, by the schema that its endpoints announce.
//!
//! | schema | messages | schema in the file |
//! |---|---|---|
//! | ROS 2 message | `cdr`: the samples | the same |
//! | plain data that is valid CDR | `cdr`: the samples behind a header | a generated message |
//! | other plain data, other encodings | `x-myelin`: the samples | the same |

use myelin_value::Schema;

use crate::cdr::PlainCdr;
use crate::ending::OwnedSchema;
use crate::format::{Channel, Metadata};

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
/// let message = format.message(&[0, 0, 128, 63], &mut [0; 12]).concat();
/// assert_eq!(message, [0, 1, 0, 0, 0, 0, 128, 63]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFormat {
    /// `None` of samples that are written as they are.
    cdr: Option<PlainCdr>,
    schema: OwnedSchema,
    encoding: &'static str,
    metadata: Metadata,
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
            return TopicFormat { cdr: None, schema: as_it_is, encoding, metadata };
        }
        let parsed = schema.parse().map_err(|error| error.to_string());
        let name = parsed.as_ref().map(ToString::to_string).unwrap_or_default();
        let cdr = parsed.and_then(|ty| PlainCdr::new(&ty).map_err(|unfit| unfit.to_string()));
        match cdr {
            Ok(cdr) => {
                let layout = String::from_utf8_lossy(schema.text).into_owned();
                let metadata = [(LAYOUT.to_owned(), layout)].into();
                let schema = cdr.schema().clone();
                TopicFormat { cdr: Some(cdr), schema, encoding: "cdr", metadata }
            }
            Err(why) => {
                let schema = OwnedSchema { name, ..as_it_is };
                let metadata = [(NOT_CDR.to_owned(), why)].into();
                TopicFormat { cdr: None, schema, encoding: own, metadata }
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

    /// The parts of a sample's message; see [`PlainCdr::message`].
    pub fn message<'a>(&self, sample: &'a [u8], length: &'a mut [u8; 12]) -> [&'a [u8]; 4] {
        match &self.cdr {
            Some(cdr) => cdr.message(sample, length),
            None => [sample, &[], &[], &[]],
        }
    }

    /// Why the samples of plain data are not written as CDR, if so.
    pub fn not_cdr(&self) -> Option<&str> {
        self.metadata.get(NOT_CDR).map(String::as_str)
    }
}

/// Names of a channel's metadata.
pub(crate) const LAYOUT: &str = "myelin:layout";
const NOT_CDR: &str = "myelin:not-cdr";
