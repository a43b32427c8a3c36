//! Every table, queue and retry has a maximum, and it is named here.

/// Largest payload of a sample, in bytes.
pub const PAYLOAD_BYTES_MAX: u64 = (1 << 40) - 1;
/// Cells of a publisher's ring: one more than its history depth.
pub const CELLS_MAX: u64 = 65_536;
/// Samples of one publisher: a sequence has 52 bits, enough for 14 years at 10 million samples a second.
pub const SEQUENCE_MAX: u64 = (1 << SEQUENCE_BITS) - 1;
/// Bits of a sequence.
pub const SEQUENCE_BITS: u32 = 52;
/// Slot segments of one publisher.
pub const SEGMENTS_MAX: u32 = 4_096;
/// Publishers one subscriber is matched with.
pub const CONNECTIONS_MAX: u32 = 4_096;
/// Subscribers one publisher is matched with.
pub const SUBSCRIBERS_MAX: usize = 4_096;
/// Samples in slots that one subscriber may hold.
pub const HOLDS_MAX: u32 = 4_096;
/// Loans of one publisher that are out at the same time.
pub const LOANS_MAX: u32 = 4_096;
/// Characters (bytes) of a topic's or a type's name.
pub const NAME_BYTES_MAX: usize = 255;
/// How often a subscriber that is lapped again and again looks for a sample within one take.
pub const LAPS_MAX: u32 = 64;
/// Slot segments one message tells of.
pub const MESSAGE_SEGMENTS_MAX: usize = 32;
/// Messages that wait for a peer that does not read; with one more it is dropped.
pub const OUTBOX_MAX: usize = 1_024;
/// Links of one node, one for each other node of the domain.
pub const LINKS_MAX: usize = 1_024;
/// Endpoints of one node that another node keeps track of.
pub const ENDPOINTS_MAX: usize = 16_384;
/// Events an endpoint keeps for its user; with one more the oldest goes.
pub const EVENTS_MAX: usize = 1_024;
/// Peers of another version that a node remembers to tell of.
pub const REFUSED_MAX: usize = 64;
/// How often a folder that others remove at the same time is made again.
pub const FOLDER_ATTEMPTS_MAX: u32 = 64;
/// Matches that a node tells of when it is asked, and that are heard of it.
pub const MATCHES_TOLD_MAX: usize = 16_384;
/// Bytes of the description of a type's layout; a longer one is not told.
pub const LAYOUT_BYTES_MAX: usize = 16_384;
/// Bytes of all descriptions that a node tells, and that are heard of it.
pub const LAYOUTS_BYTES_MAX: usize = 1 << 20;
/// Warnings that a process remembers, so that its nodes do not say them again.
pub const WARNINGS_MAX: usize = 1_024;
/// Warnings that a node says in a second; more are in its graph and events alone.
pub const WARNINGS_A_SECOND_MAX: u32 = 32;
