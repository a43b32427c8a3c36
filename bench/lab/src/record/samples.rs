//! Sample files: records as the drivers wrote them, compressed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use myelin_bench_kit::protocol::Role;
use myelin_bench_kit::samples::{RECORD_BYTES, Record, bytes_of, bytes_of_mut};

use super::write_whole;

pub(super) fn file_of(role: Role) -> &'static str {
    match role {
        Role::Ping => "ping.samples.zst",
        _ => "pong.samples.zst",
    }
}

pub(super) fn write(path: &Path, records: &[Record]) -> io::Result<()> {
    write_whole(path, &pack(bytes_of(records))?)
}

/// Compresses `bytes` with a checksum, which finds flipped bits when the file is read.
pub(super) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = zstd::Encoder::new(Vec::new(), COMPRESSION)?;
    packer.include_checksum(true)?;
    packer.write_all(bytes)?;
    packer.finish()
}

/// Decompresses while reading, so the records are in memory once.
pub(super) fn read(path: &Path) -> io::Result<Vec<Record>> {
    let mut bytes = zstd::Decoder::new(File::open(path)?)?;
    let mut records = Vec::new();
    let mut buffer = vec![Record::default(); BUFFER_RECORDS];
    loop {
        let filled = fill(&mut bytes, bytes_of_mut(&mut buffer))?;
        if !filled.is_multiple_of(RECORD_BYTES) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not whole records"));
        }
        records.extend_from_slice(&buffer[..filled / RECORD_BYTES]);
        if filled < size_of_val(buffer.as_slice()) {
            return Ok(records);
        }
    }
}

/// Reads until the buffer is full or the undamaged file ends; returns how many bytes there were.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Half of a cache of the second level.
const BUFFER_RECORDS: usize = 2048;

/// Level of zstd; 1 is fast enough not to delay the next run.
const COMPRESSION: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn damage_to_a_sample_file_is_detected() {
        let records: Vec<Record> =
            (0..5000).map(|id| Record { id, wake_ns: id * id, ..Record::default() }).collect();
        let whole = tempfile::NamedTempFile::new().unwrap();
        write(whole.path(), &records).unwrap();
        assert_eq!(read(whole.path()).unwrap(), records);
        let bytes = std::fs::read(whole.path()).unwrap();
        for kept in [0, 1, 8, bytes.len() / 2, bytes.len() - 1] {
            read(file(&bytes[..kept]).path()).expect_err(&format!("{kept} bytes kept"));
        }
        for place in (0..bytes.len()).step_by(97) {
            let mut turned = bytes.clone();
            turned[place] ^= 0x10;
            let found = read(file(&turned).path());
            assert!(found.is_err() || found.unwrap() == records, "byte {place}");
        }
        let part = read(file(&pack(&[7; RECORD_BYTES + 1]).unwrap()).path()).unwrap_err();
        assert_eq!(part.to_string(), "not whole records");
    }
}
