//! The maximum of every table, queue and retry.

/// Largest payload of a sample, in bytes.
pub const PAYLOAD_BYTES_MAX: u64 = (1 << 40) - 1;
/// Cells of a publisher's ring: one more than its history depth.
pub const CELLS_MAX: u64 = 65_536;
/// Largest sequence of a publisher: 52 bits are enough for 14 years at 10 million samples a second.
pub const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;
/// Bits of a sequence.
pub const SEQUENCE_BITS: u32 = 52;
/// Slot segments of one publisher.
pub const SEGMENTS_MAX: u32 = 4_096;
/// Publishers that one subscriber is matched with.
pub const CONNECTIONS_MAX: u32 = 4_096;
/// Subscribers that one publisher is matched with.
pub const SUBSCRIBERS_MAX: usize = 4_096;
/// Samples in slots that one subscriber may hold.
pub const HOLDS_MAX: u32 = 4_096;
/// Loans of one publisher at the same time.
pub const LOANS_MAX: u32 = 4_096;
/// Characters (bytes) of a topic's or a type's name.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of the attributes of a node or an endpoint, names included.
pub const ATTRIBUTES_BYTES_MAX: usize = 1_024;
/// Attributes of a node or an endpoint.
pub const ATTRIBUTES_MAX: usize = 32;
/// Bytes of an attribute's name.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 64;
/// How often one take looks for a sample while publishers keep overtaking the subscriber.
pub const LAPS_MAX: u32 = 64;
/// Slot segments in one message.
pub const MESSAGE_SEGMENTS_MAX: usize = 32;
/// Messages queued for a peer that does not read; with one more the peer is dropped.
pub const LINK_QUEUE_MAX: usize = 1_024;
/// Links of one node, one for each other node of the domain.
pub const LINKS_MAX: usize = 1_024;
/// Endpoints of one node that another node keeps track of.
pub const ENDPOINTS_MAX: usize = 16_384;
/// Endpoints of other nodes whose counters a node keeps mapped.
pub const COUNTERS_MAX: usize = 16_384;
/// Events that an endpoint keeps for its user; with one more the oldest is dropped.
pub const EVENTS_MAX: usize = 1_024;
/// The same until its user takes or awaits events for the first time: most programs never do.
pub const EVENTS_UNTAKEN_MAX: usize = 32;
/// Peers of another version that a node remembers for its users.
pub const REFUSED_MAX: usize = 64;
/// How often a folder is made again when other processes remove it at the same time.
pub const FOLDER_ATTEMPTS_MAX: u32 = 64;
/// Matches in a node's answer to a query, and in the answer that the other side accepts.
pub const MATCHES_REPORTED_MAX: usize = 16_384;
/// Bytes of the schema of a type; a longer one is not sent.
pub const SCHEMA_BYTES_MAX: usize = 65_536;
/// Bytes of the name of a schema's encoding.
pub const ENCODING_BYTES_MAX: usize = 32;
/// Bytes of all schemas that a node sends, and that the other side accepts.
pub const SCHEMAS_BYTES_MAX: usize = 4 << 20;
/// Bytes of a schema in one message.
pub const MESSAGE_SCHEMA_BYTES_MAX: usize = 2_048;
/// Warnings that a process remembers, so that its nodes do not repeat them.
pub const WARNINGS_MAX: usize = 1_024;
/// Warnings that a node writes in a second; further ones are only in its graph and events.
pub const WARNINGS_A_SECOND_MAX: u32 = 32;
