//! The layout of a payload in a message: the encapsulation header of RTPS (2.5, section 10.2), then
//! CDR. Plain data has no padding and natural alignment, so its little-endian CDR is its bytes.

use std::ops::Range;

use super::{Encoding, Shape};
use crate::Error;
use crate::encapsulation::{self, CDR_LE, CDR2_LE, HEADER_BYTES, little_endian};

/// The layout of a topic's payloads in messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire {
    /// Myelin writes and reads header and CDR.
    Cdr(Shape),
    /// The payload is the message.
    Message,
}

/// The bytes before a payload.
pub(super) struct Head {
    bytes: [u8; HEAD_BYTES_MAX],
    length: usize,
}

impl Head {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

impl Wire {
    /// # Errors
    /// Elements of a sequence whose layout differs from CDR's.
    pub(super) fn of(encoding: &Encoding, shape: Shape) -> Result<Wire, Error> {
        match (encoding, shape) {
            (Encoding::Message(_), _) => Ok(Wire::Message),
            (Encoding::Private, Shape::Bytes) => {
                Ok(Wire::Cdr(Shape::Sequence { element: 1, align: 1, first_align: 1 }))
            }
            (Encoding::Typed(name), Shape::Bytes) => Err(Error::Setting {
                topic: None,
                field: "dds_type",
                value: format!("{name:?}"),
                remedy: "a header with a slice has different layouts in memory and in CDR; \
                         serialise the message yourself (dds_cdr), or use only a slice",
            }),
            // CDR aligns the fields of an element, not the element: an element whose first scalar
            // is smaller than its largest one begins at another place than in memory.
            (Encoding::Typed(name), Shape::Sequence { align: 8, first_align, .. })
                if first_align < 8 =>
            {
                Err(Error::Setting {
                    topic: None,
                    field: "dds_type",
                    value: format!("{name:?}"),
                    remedy: "elements that have a field of 8 bytes must begin with one, or the \
                             first element of a sequence lies differently in CDR and in memory; \
                             reorder the fields, or serialise the message yourself (dds_cdr)",
                })
            }
            _ => Ok(Wire::Cdr(shape)),
        }
    }

    /// The bytes before a payload of so many bytes.
    ///
    /// # Errors
    /// More elements than a sequence can count; a message too short to have a header.
    pub(super) fn head(&self, bytes: usize) -> Result<Head, Error> {
        let mut head = Head { bytes: [0; HEAD_BYTES_MAX], length: 0 };
        let shape = match self {
            Wire::Message if bytes < HEADER_BYTES => {
                let doing = "publishing to other hosts";
                let reason = "a CDR message begins with a header of four bytes".to_string();
                return Err(Error::Network { doing, reason });
            }
            Wire::Message => return Ok(head),
            Wire::Cdr(shape) => shape,
        };
        head.push(&little_endian(0));
        if let Shape::Sequence { element, align, .. } = *shape {
            let count = u32::try_from(bytes / element).map_err(|_| Error::Network {
                doing: "publishing to other hosts",
                reason: format!("a sequence has at most {} elements; send it in parts", u32::MAX),
            })?;
            head.push(&count.to_le_bytes());
            if count > 0 {
                head.push(&[0; 8][..padding(align)]);
            }
        }
        Ok(head)
    }

    /// The place of the payload in a message; `None` if the message has another type or byte order.
    pub(super) fn payload(&self, message: &[u8]) -> Option<Range<usize>> {
        let Wire::Cdr(shape) = self else {
            return (message.len() >= HEADER_BYTES).then_some(0..message.len());
        };
        let align_max = match encapsulation::split(message)?.0 {
            CDR_LE => 8,
            CDR2_LE => 4,
            _ => return None,
        };
        let (begin, bytes) = match *shape {
            Shape::Value { bytes } => (HEADER_BYTES, bytes),
            Shape::Sequence { element, align, .. } => {
                let count = message.get(HEADER_BYTES..HEADER_BYTES + 4)?;
                let count = u32::from_le_bytes(count.try_into().ok()?) as usize;
                let padding = if count > 0 { padding(align.min(align_max)) } else { 0 };
                (HEADER_BYTES + 4 + padding, count.checked_mul(element)?)
            }
            Shape::Bytes => unreachable!("`of` makes a sequence of it"),
        };
        let end = begin.checked_add(bytes)?;
        // A message ends with its payload, up to whole words.
        (end <= message.len() && message.len() - end < 4).then_some(begin..end)
    }
}

/// The padding between the count of a sequence and its first element.
fn padding(align: usize) -> usize {
    align.saturating_sub(4)
}

/// Header, count, padding.
const HEAD_BYTES_MAX: usize = HEADER_BYTES + 4 + 4;

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: Wire = Wire::Cdr(Shape::Value { bytes: 10 });

    fn sequence(element: usize, align: usize) -> Wire {
        Wire::Cdr(Shape::Sequence { element, align, first_align: align })
    }

    fn message(wire: Wire, payload: &[u8]) -> Vec<u8> {
        [wire.head(payload.len()).unwrap().bytes(), payload].concat()
    }

    #[test]
    fn messages_are_read_as_written() {
        let cases = [(VALUE, 10), (sequence(1, 1), 7), (sequence(12, 4), 36), (sequence(8, 8), 0)];
        for (wire, bytes) in cases.into_iter().chain([(sequence(24, 8), 48), (Wire::Message, 5)]) {
            let payload: Vec<u8> = (0..bytes).collect();
            let message = message(wire, &payload);
            let found = wire.payload(&message).unwrap_or_else(|| panic!("{wire:?}"));
            assert_eq!(message[found], payload);
        }
    }

    #[test]
    fn a_sequence_is_laid_out_as_the_standard_says() {
        let doubles = message(sequence(8, 8), &1.0f64.to_le_bytes());
        let expected = [&[0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &1.0f64.to_le_bytes()].concat();
        assert_eq!(doubles, expected);
        let none = message(sequence(8, 8), &[]);
        assert_eq!(none, [0, 1, 0, 0, 0, 0, 0, 0], "no element, no padding");
        let version_2 = [&[0, 7, 0, 0, 1, 0, 0, 0][..], &1.0f64.to_le_bytes()].concat();
        assert_eq!(sequence(8, 8).payload(&version_2), Some(8..16));
    }

    #[test]
    fn impossible_settings_are_refused() {
        let whole = message(sequence(4, 4), &[1; 8]);
        for length in 0..whole.len() {
            assert_eq!(sequence(4, 4).payload(&whole[..length]), None, "{length}");
        }
        assert_eq!(sequence(4, 4).payload(&[&whole[..], &[0; 4]].concat()), None, "too long");
        for header in [[0, 0], [0, 3], [0, 9], [1, 1]] {
            let other = [&header[..], &whole[2..]].concat();
            assert_eq!(sequence(4, 4).payload(&other), None, "{header:?}");
        }
        let count = [0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(sequence(usize::MAX >> 4, 4).payload(&count), None);
        assert!(Wire::Message.head(3).is_err());
    }

    #[test]
    fn an_element_with_another_cdr_layout_is_refused_for_dds_programs() {
        let shape = Shape::Sequence { element: 16, align: 8, first_align: 4 };
        let error = Wire::of(&Encoding::Typed("T".into()), shape).unwrap_err().to_string();
        assert!(error.contains("dds_type") && error.contains("dds_cdr"), "{error}");
        assert!(Wire::of(&Encoding::Private, shape).is_ok());
    }

    #[test]
    fn a_header_with_a_slice_is_sent_only_between_myelin_nodes() {
        let wire = Wire::of(&Encoding::Private, Shape::Bytes).unwrap();
        let message = message(wire, b"header and slice");
        assert_eq!(message[wire.payload(&message).unwrap()], *b"header and slice");
        let error = Wire::of(&Encoding::Typed("T".into()), Shape::Bytes).unwrap_err().to_string();
        assert!(error.contains("dds_type") && error.contains("dds_cdr"), "{error}");
    }
}
