//! The header of a serialised message in DDS (RTPS 2.5, section 10.2): two bytes that name the
//! encoding, and two of options, whose last two bits are the padding behind the message (DDS-XTYPES
//! 1.3, 7.6.3.1.2). `myelin-ros` uses it, too.

/// How many bytes it has.
pub const HEADER_BYTES: usize = 4;
/// Plain CDR of version 1, big-endian.
pub const CDR_BE: u16 = 0;
/// Plain CDR of version 1, little-endian.
pub const CDR_LE: u16 = 1;
/// Plain CDR of version 2, little-endian: numbers are aligned to at most 4.
pub const CDR2_LE: u16 = 7;

/// That of a little-endian message in plain CDR, with at most 3 bytes of padding.
pub const fn little_endian(padding: usize) -> [u8; HEADER_BYTES] {
    [0, CDR_LE as u8, 0, padding as u8]
}

/// The encoding of a message and the bytes behind its header; `None` if it is too short.
pub fn split(message: &[u8]) -> Option<(u16, &[u8])> {
    let (header, body) = message.split_first_chunk::<HEADER_BYTES>()?;
    Some((u16::from_be_bytes([header[0], header[1]]), body))
}
