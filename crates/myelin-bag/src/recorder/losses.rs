//! Messages that are not in a recording, by cause; and the channel that has them.

use crate::CDR_HEADER;
use crate::format::Metadata;
use crate::topic_format::TopicFormat;
use myelin_value::Schema;

use super::output::RecordedTopic;

/// Messages of a topic that were published and are not in the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Newer ones had overwritten them in their publisher's ring before the recorder took them.
    pub publisher_ring: u64,
    /// The recorder had no room for them, because the disk was slower than the topics.
    pub recorder: u64,
    /// They could not be written: the disk was full, or failed.
    pub disk: u64,
}

impl Losses {
    /// The topic of losses in each recording. Each message has the totals of a topic so far.
    pub const TOPIC: &'static str = "/myelin/losses";

    /// All of them.
    pub fn total(&self) -> u64 {
        self.publisher_ring + self.recorder + self.disk
    }

    pub(super) fn topic() -> RecordedTopic {
        let schema = Schema::new(Schema::ROS2MSG, TYPE_NAME, DEFINITION.as_bytes());
        RecordedTopic {
            name: Losses::TOPIC.to_owned(),
            type_name: TYPE_NAME.to_owned(),
            format: TopicFormat::new(&schema),
            metadata: Metadata::new(),
        }
    }

    /// The message, as CDR.
    pub(super) fn message(&self, topic: &str) -> Vec<u8> {
        let mut cdr = CDR_HEADER.to_vec();
        cdr.extend((topic.len() as u32 + 1).to_le_bytes());
        cdr.extend(topic.as_bytes());
        cdr.push(0);
        cdr.resize(CDR_HEADER.len() + (cdr.len() - CDR_HEADER.len()).next_multiple_of(8), 0);
        for count in [self.publisher_ring, self.recorder, self.disk] {
            cdr.extend(count.to_le_bytes());
        }
        cdr
    }

    /// For people and programs that read the metadata.
    pub(super) fn text(&self) -> String {
        let Losses { publisher_ring, recorder, disk } = self;
        serde_json::json!({ "publisher_ring": publisher_ring, "recorder": recorder, "disk": disk })
            .to_string()
    }
}

impl std::ops::AddAssign for Losses {
    fn add_assign(&mut self, other: Losses) {
        self.publisher_ring += other.publisher_ring;
        self.recorder += other.recorder;
        self.disk += other.disk;
    }
}

const TYPE_NAME: &str = "myelin_msgs/msg/Losses";
const DEFINITION: &str = "\
# Messages of a topic that are not in the recording, so far.
string topic
# Overwritten in their publisher's ring.
uint64 publisher_ring
# The recorder had no room for them.
uint64 recorder
# They could not be written.
uint64 disk
";
