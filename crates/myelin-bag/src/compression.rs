//! Chunks that other programs, or a later step of ours, compressed.

use std::io::{self, Read};

use crate::limits::RECORD_BYTES_MAX;

/// Unpacks all of a chunk's records, which are so many bytes.
pub(crate) fn unpack(
    compression: &str,
    packed: &[u8],
    bytes: u64,
    to: &mut Vec<u8>,
) -> Result<(), String> {
    to.clear();
    if bytes > RECORD_BYTES_MAX {
        return Err(format!("{bytes} B are more than {RECORD_BYTES_MAX} B"));
    }
    let read = match compression {
        "zstd" => zstd::stream::read::Decoder::new(packed).and_then(|it| read_all(it, bytes, to)),
        "lz4" => read_all(lz4_flex::frame::FrameDecoder::new(packed), bytes, to),
        other => return Err(format!("there is no reader for compression {other:?}")),
    };
    match read {
        Err(error) => Err(error.to_string()),
        Ok(()) if to.len() as u64 == bytes => Ok(()),
        Ok(()) => Err(format!("it unpacks to other than {bytes} B")),
    }
}

/// One byte more than there should be, so that it is noticed.
fn read_all(packed: impl Read, bytes: u64, to: &mut Vec<u8>) -> io::Result<()> {
    packed.take(bytes + 1).read_to_end(to).map(|_| ())
}
