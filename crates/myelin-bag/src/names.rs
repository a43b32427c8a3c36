//! The names of metadata: what one part of this crate writes, another one reads by the same name.

/// Of channels, as rosbag2 names them: the settings of a topic's publishers, and the hash of its type.
pub(crate) const QOS_PROFILES: &str = "offered_qos_profiles";
pub(crate) const TYPE_HASH: &str = "topic_type_hash";

/// Of channels: the layout of plain data, or why it is not written as CDR.
pub(crate) const LAYOUT: &str = "myelin:layout";
pub(crate) const NOT_CDR: &str = "myelin:not-cdr";

/// Of files: what the recorder writes.
pub(crate) const RECORDING: &str = "myelin:recording";
pub(crate) const NODES: &str = "myelin:nodes";
pub(crate) const ENDPOINTS: &str = "myelin:endpoints";
pub(crate) const LOSSES: &str = "myelin:losses";
pub(crate) const REPEATED: &str = "myelin:repeated";
/// Of files: why a ring was written out.
pub(crate) const TRIGGERS: &str = "myelin:triggers";
