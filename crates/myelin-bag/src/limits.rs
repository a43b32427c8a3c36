//! The maximum of everything that a file can make large in memory.

/// Bytes of a message, or of a compressed chunk before and after.
pub const RECORD_BYTES_MAX: u64 = 1 << 31;
/// Bytes of a schema, a channel or metadata, and of the summary of a file.
pub const DEFINITION_BYTES_MAX: u64 = 1 << 30;
/// Losses that a report lists. More are only counted.
pub const LOSSES_MAX: usize = 1_000;
/// Bytes of chunks that [`Messages`](crate::Messages) keeps, besides the one that it reads.
pub const CHUNKS_BYTES_MAX: usize = 256 << 20;
/// Messages of chunks whose times overlap.
pub const OVERLAPPING_MAX: usize = 1 << 26;
/// Bytes of messages that wait for their counterparts while two files are compared.
pub const WAITING_BYTES_MAX: usize = 256 << 20;
