//! The channel that has the losses of a recording, as [`RecordedLosses`] reads it.

use myelin_value::Schema;

use super::output::RecordedTopic;
use crate::CDR_HEADER;
use crate::format::Metadata;
use crate::recorded_losses::RecordedLosses;
use crate::topic_format::TopicFormat;

pub(crate) fn topic() -> RecordedTopic {
    let schema = Schema::new(Schema::ROS2MSG, TYPE_NAME, DEFINITION.as_bytes());
    RecordedTopic {
        name: RecordedLosses::TOPIC.to_owned(),
        type_name: TYPE_NAME.to_owned(),
        format: TopicFormat::new(&schema),
        metadata: Metadata::new(),
    }
}

/// The message with the losses of a topic so far, as CDR.
pub(crate) fn message(losses: &RecordedLosses, topic: &str) -> Vec<u8> {
    let mut body = (topic.len() as u32 + 1).to_le_bytes().to_vec();
    body.extend(topic.as_bytes());
    body.push(0);
    body.resize(body.len().next_multiple_of(8), 0);
    for count in [losses.publisher_ring, losses.recorder, losses.disk] {
        body.extend(count.to_le_bytes());
    }
    [&CDR_HEADER[..], &body].concat()
}

/// For the metadata.
pub(super) fn text(losses: &RecordedLosses) -> String {
    let RecordedLosses { publisher_ring, recorder, disk } = losses;
    serde_json::json!({ "publisher_ring": publisher_ring, "recorder": recorder, "disk": disk })
        .to_string()
}

impl std::ops::AddAssign for RecordedLosses {
    fn add_assign(&mut self, other: RecordedLosses) {
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
