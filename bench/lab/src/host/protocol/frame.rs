//! How the lab and an agent talk: frames of a JSON header and a body of bytes.
//!
//! ```text
//! offset 0   length of the header, u32, little-endian   at most HEADER_BYTES_MAX
//!        4   length of the body, u32, little-endian     at most BODY_BYTES_MAX
//!        8   header: JSON, UTF-8
//!        …   body: sample records, files; empty most often
//! ```

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes one frame and has it leave at once.
pub(in super::super) fn write(
    output: &mut impl Write,
    header: &impl Serialize,
    body: &[u8],
) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    if header.len() > HEADER_BYTES_MAX || body.len() > BODY_BYTES_MAX {
        return Err(refused(header.len(), body.len()));
    }
    output.write_all(&(header.len() as u32).to_le_bytes())?;
    output.write_all(&(body.len() as u32).to_le_bytes())?;
    output.write_all(&header)?;
    output.write_all(body)?;
    output.flush()
}

/// Reads one frame; `None` where the stream ends between two. A frame that is cut off, too long or
/// not understood is an error, and nothing after it can be read.
pub(in super::super) fn read<T: DeserializeOwned>(
    input: &mut impl Read,
) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; 8];
    if input.read(&mut lengths[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut lengths[1..])?;
    let [header, body] = [0, 4].map(|at| {
        let bytes = lengths[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    });
    if header > HEADER_BYTES_MAX || body > BODY_BYTES_MAX {
        return Err(refused(header, body));
    }
    let (header, body) = (take(input, header)?, take(input, body)?);
    Ok(Some((serde_json::from_slice(&header)?, body)))
}

/// Exactly `length` bytes; memory for them is taken as they come, not as they are announced.
fn take(input: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if input.take(length as u64).read_to_end(&mut bytes)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

fn refused(header: usize, body: usize) -> io::Error {
    let text = format!(
        "a frame of {header} + {body} bytes, where {HEADER_BYTES_MAX} + {BODY_BYTES_MAX} are the most"
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Longer than any request or answer: options of drivers are the longest part.
const HEADER_BYTES_MAX: usize = 16 << 20;
/// Longer than the records of any run: 4 million, of each publisher at pong's side.
const BODY_BYTES_MAX: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(header: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &header, body).unwrap();
        bytes
    }

    #[test]
    fn frames_come_as_they_went() {
        let bytes = [frame("one", b""), frame("two", &[7; 5000])].concat();
        let mut input = bytes.as_slice();
        assert_eq!(read::<String>(&mut input).unwrap(), Some(("one".into(), Vec::new())));
        assert_eq!(read::<String>(&mut input).unwrap(), Some(("two".into(), vec![7; 5000])));
        assert_eq!(read::<String>(&mut input).unwrap(), None);
    }

    #[test]
    fn a_frame_that_is_cut_off_anywhere_is_an_error() {
        let whole = frame("one", b"body");
        for kept in 1..whole.len() {
            let error = read::<String>(&mut &whole[..kept]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{kept} bytes");
        }
    }

    #[test]
    fn what_is_too_long_or_not_understood_is_refused() {
        for lengths in [[u32::MAX, 0], [2, u32::MAX]] {
            let bytes: Vec<u8> = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
            let error = read::<String>(&mut bytes.as_slice()).unwrap_err().to_string();
            assert!(error.contains("are the most"), "{error}");
        }
        let text = "x".repeat(HEADER_BYTES_MAX);
        assert!(write(&mut Vec::new(), &text, b"").is_err());
        // What a login script prints before the agent speaks.
        assert!(read::<String>(&mut b"Welcome to Ubuntu, for robots".as_slice()).is_err());
        assert!(read::<u32>(&mut frame("one", b"").as_slice()).is_err());
    }
}
