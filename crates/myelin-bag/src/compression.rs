//! How the records of chunks are packed and unpacked.

use std::io::{self, Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use crate::limits::RECORD_BYTES_MAX;

/// How chunks are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// They are written as they are: no CPU time, and a large message is not copied. Of a file that
    /// was cut, the complete messages of the last chunk are read too.
    #[default]
    None,
    /// LZ4: little CPU time.
    Lz4,
    /// Zstandard at its fastest level: smaller files.
    Zstd,
}

impl Compression {
    /// Its name in a chunk.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Packs records, one chunk after the other.
pub(crate) enum Packer {
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Packer {
    /// `None` for no compression.
    pub(crate) fn new(compression: Compression) -> io::Result<Option<Packer>> {
        Ok(match compression {
            Compression::None => None,
            Compression::Lz4 => Some(Packer::Lz4),
            Compression::Zstd => Some(Packer::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL)?)),
        })
    }

    pub(crate) fn pack(&mut self, records: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Packer::Lz4 => {
                // Readers take memory for a whole block.
                let is_small = records.len() <= 64 << 10;
                let block_size = if is_small { BlockSize::Max64KB } else { BlockSize::Max1MB };
                let info = FrameInfo::new()
                    .block_size(block_size)
                    .block_mode(BlockMode::Independent)
                    .content_size(Some(records.len() as u64));
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(records)?;
                Ok(encoder.finish()?)
            }
            Packer::Zstd(compressor) => compressor.compress(records),
        }
    }
}

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
        "lz4" => read_all(FrameDecoder::new(packed), bytes, to),
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

/// The fastest that other programs use too.
const ZSTD_LEVEL: i32 = 1;
