//! The bytes of the lane: frames on a connection, and the messages in DDS that concern it.
//! Pure functions of bytes that come from another host; each length is checked before use.
//!
//! A frame is a header of [`HEADER_BYTES`], little-endian, and for a sample its payload:
//!
//! ```text
//! 0 magic(4) | 4 kind(1) | 5 flags(1) | 6 head bytes(1) | 7 zero(1) | 8 payload bytes(8)
//! 16 writer(16) | 32 reader, head of a sample, or run(8) and fence(8) | 48 number(8)
//! ```

use myelin_dds::Guid;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum Frame {
    /// First frame of the dialling side: the token that the listening node has announced, and the
    /// dialling node.
    Hello {
        token: Token,
        node: u64,
    },
    /// A reader takes the samples of a writer by this connection.
    Subscribe {
        writer: Guid,
        reader: Guid,
    },
    Unsubscribe {
        writer: Guid,
        reader: Guid,
    },
    /// The answer to `Subscribe`: the runs up to this one are over for this reader.
    Started {
        writer: Guid,
        reader: Guid,
        run: u64,
    },
    /// A run begins: until it is over, all samples of this writer come by this connection, from this
    /// number on. They follow the fence of the run, which has this number in DDS.
    Run {
        writer: Guid,
        run: u64,
        fence: u64,
        number: u64,
    },
    /// The run is over: what follows comes by DDS.
    Paused {
        writer: Guid,
        run: u64,
    },
    /// No more samples of this writer come by this connection, not even the missing ones.
    Ended {
        writer: Guid,
    },
    /// A sample; its payload follows.
    Sample {
        writer: Guid,
        number: u64,
        head: Head,
        bytes: u64,
        wants_acknowledgement: bool,
    },
    /// A sample has arrived whole.
    Acknowledged {
        writer: Guid,
        number: u64,
    },
}

/// The bytes of a message before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) struct Head {
    bytes: [u8; 16],
    length: u8,
}

impl Head {
    /// `None` for more than any message has.
    pub(in crate::network) fn new(bytes: &[u8]) -> Option<Head> {
        let mut head = Head { bytes: [0; 16], length: bytes.len() as u8 };
        head.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(head)
    }

    pub(in crate::network) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What only nodes of the domain know.
pub(in crate::network) type Token = [u8; 16];

impl Frame {
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let none = Guid::default();
        let mut header = [0; HEADER_BYTES];
        let (kind, flags, bytes, writer, reader, number) = match *self {
            Frame::Hello { token, node } => (HELLO, VERSION, 0, token, none, node),
            Frame::Subscribe { writer, reader } => (SUBSCRIBE, 0, 0, writer, reader, 0),
            Frame::Unsubscribe { writer, reader } => (UNSUBSCRIBE, 0, 0, writer, reader, 0),
            Frame::Started { writer, reader, run } => (STARTED, 0, 0, writer, reader, run),
            Frame::Run { writer, run, fence, number } => {
                (RUN, 0, 0, writer, pair(run, fence), number)
            }
            Frame::Paused { writer, run } => (PAUSED, 0, 0, writer, none, run),
            Frame::Ended { writer } => (ENDED, 0, 0, writer, none, 0),
            Frame::Sample { writer, number, head, bytes, wants_acknowledgement } => {
                header[6] = head.length;
                (SAMPLE, u8::from(wants_acknowledgement), bytes, writer, head.bytes, number)
            }
            Frame::Acknowledged { writer, number } => (ACKNOWLEDGED, 0, 0, writer, none, number),
        };
        header[..4].copy_from_slice(&MAGIC);
        (header[4], header[5]) = (kind, flags);
        header[8..16].copy_from_slice(&bytes.to_le_bytes());
        header[16..32].copy_from_slice(&writer);
        header[32..48].copy_from_slice(&reader);
        header[48..].copy_from_slice(&number.to_le_bytes());
        header
    }

    /// `None` for bytes that `encode` does not make, and for a sample that is larger than any.
    pub(super) fn decode(header: &[u8; HEADER_BYTES]) -> Option<Frame> {
        let (kind, flags) = (header[4], header[5]);
        let bytes = word(header, 8);
        let guid = |at: usize| Guid::try_from(&header[at..at + 16]).expect("16 bytes");
        let (writer, reader, number) = (guid(16), guid(32), word(header, 48));
        let frame = match kind {
            HELLO => Frame::Hello { token: writer, node: number },
            SUBSCRIBE => Frame::Subscribe { writer, reader },
            UNSUBSCRIBE => Frame::Unsubscribe { writer, reader },
            STARTED => Frame::Started { writer, reader, run: number },
            RUN => Frame::Run { writer, run: word(header, 32), fence: word(header, 40), number },
            PAUSED => Frame::Paused { writer, run: number },
            ENDED => Frame::Ended { writer },
            SAMPLE if (1..=SAMPLE_BYTES_MAX).contains(&bytes) => {
                let head = Head::new(reader.get(..usize::from(header[6]))?)?;
                Frame::Sample { writer, number, head, bytes, wants_acknowledgement: flags == 1 }
            }
            ACKNOWLEDGED => Frame::Acknowledged { writer, number },
            _ => return None,
        };
        (frame.encode() == *header).then_some(frame)
    }
}

/// A message in DDS that concerns the lane. Its encapsulation identifier is one that no DDS program
/// uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum Notice {
    /// A run begins: the samples from this number on come by the lane, until it says that the run is
    /// over.
    Fence { run: u64, number: u64 },
    /// The message of an earlier sample follows, because the lane has failed.
    Resent(u64),
    /// The message of a sample follows. In front of it, those up to this number have gone by the lane.
    After(u64),
}

impl Notice {
    /// The whole message of a fence.
    pub(in crate::network) fn fence(run: u64, number: u64) -> [u8; FENCE_BYTES] {
        let mut bytes = [0; FENCE_BYTES];
        bytes[..4].copy_from_slice(&FENCE);
        bytes[4..].copy_from_slice(&pair(run, number));
        bytes
    }

    /// What goes before the message of a sample that is sent again.
    pub(in crate::network) fn resent(number: u64) -> [u8; PREFIX_BYTES] {
        numbered(RESENT, number)
    }

    /// What goes before the message of a sample by DDS, once the lane has carried some.
    pub(in crate::network) fn after(number: u64) -> [u8; PREFIX_BYTES] {
        numbered(AFTER, number)
    }

    /// The notice at the beginning of a message of a Myelin node, if it is one.
    pub(in crate::network) fn of(message: &[u8]) -> Option<Notice> {
        let kind = message.first_chunk::<4>()?;
        match *kind {
            FENCE if message.len() == FENCE_BYTES => {
                Some(Notice::Fence { run: word(message, 4), number: word(message, 12) })
            }
            RESENT if message.len() >= PREFIX_BYTES => Some(Notice::Resent(word(message, 4))),
            AFTER if message.len() >= PREFIX_BYTES => Some(Notice::After(word(message, 4))),
            _ => None,
        }
    }
}

fn numbered(kind: [u8; 4], number: u64) -> [u8; PREFIX_BYTES] {
    let mut bytes = [0; PREFIX_BYTES];
    bytes[..4].copy_from_slice(&kind);
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn pair(one: u64, other: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&one.to_le_bytes());
    bytes[8..].copy_from_slice(&other.to_le_bytes());
    bytes
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

pub(super) const HEADER_BYTES: usize = 56;
const FENCE_BYTES: usize = 20;
pub(in crate::network) const PREFIX_BYTES: usize = 12;
/// No sample is larger. A receiver takes memory as the bytes arrive.
pub(super) const SAMPLE_BYTES_MAX: u64 = 4 << 30;
const MAGIC: [u8; 4] = *b"MyLn";
const VERSION: u8 = 1;
const HELLO: u8 = 1;
const SUBSCRIBE: u8 = 2;
const UNSUBSCRIBE: u8 = 3;
const STARTED: u8 = 4;
const RUN: u8 = 8;
const PAUSED: u8 = 9;
const ENDED: u8 = 5;
const SAMPLE: u8 = 6;
const ACKNOWLEDGED: u8 = 7;
const FENCE: [u8; 4] = [0x4d, 0x01, 0, 0];
const RESENT: [u8; 4] = [0x4d, 0x02, 0, 0];
const AFTER: [u8; 4] = [0x4d, 0x03, 0, 0];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let guid = any::<Guid>;
        prop_oneof![
            (guid(), any::<u64>()).prop_map(|(token, node)| Frame::Hello { token, node }),
            (guid(), guid()).prop_map(|(writer, reader)| Frame::Subscribe { writer, reader }),
            (guid(), guid()).prop_map(|(writer, reader)| Frame::Unsubscribe { writer, reader }),
            (guid(), guid(), any::<u64>()).prop_map(|(writer, reader, run)| Frame::Started {
                writer,
                reader,
                run
            }),
            (guid(), any::<u64>(), any::<u64>(), any::<u64>())
                .prop_map(|(writer, run, fence, number)| Frame::Run { writer, run, fence, number }),
            (guid(), any::<u64>()).prop_map(|(writer, run)| Frame::Paused { writer, run }),
            guid().prop_map(|writer| Frame::Ended { writer }),
            (guid(), any::<u64>(), 1..=SAMPLE_BYTES_MAX, any::<bool>(), 0..=16_usize).prop_map(
                |(writer, number, bytes, wants_acknowledgement, length)| Frame::Sample {
                    writer,
                    number,
                    head: Head::new(&vec![7; length]).unwrap(),
                    bytes,
                    wants_acknowledgement
                }
            ),
            (guid(), any::<u64>())
                .prop_map(|(writer, number)| Frame::Acknowledged { writer, number }),
        ]
    }

    proptest! {
        #[test]
        fn frames_are_read_as_written(frame in frames()) {
            prop_assert_eq!(Frame::decode(&frame.encode()), Some(frame));
        }

        #[test]
        fn other_bytes_are_no_frame(frame in frames(), at in 0..HEADER_BYTES, to: u8) {
            let mut header = frame.encode();
            header[at] = to;
            if let Some(read) = Frame::decode(&header) {
                prop_assert_eq!(read.encode(), header);
            }
        }

        #[test]
        fn a_size_beyond_the_limit_is_no_frame(bytes in SAMPLE_BYTES_MAX + 1..) {
            let (writer, number) = ([1; 16], 1);
            let head = Head::new(&[]).unwrap();
            let sample =
                Frame::Sample { writer, number, head, bytes, wants_acknowledgement: false };
            prop_assert_eq!(Frame::decode(&sample.encode()), None);
        }

        #[test]
        fn notices_are_read_as_written(run: u64, number: u64, tail: Vec<u8>) {
            let bytes = [&Notice::resent(number)[..], &tail].concat();
            prop_assert_eq!(Notice::of(&bytes), Some(Notice::Resent(number)));
            prop_assert_eq!(Notice::of(&bytes[..PREFIX_BYTES - 1]), None);
            let after = [&Notice::after(number)[..], &tail].concat();
            prop_assert_eq!(Notice::of(&after), Some(Notice::After(number)));
            let fence = Notice::fence(run, number);
            prop_assert_eq!(Notice::of(&fence), Some(Notice::Fence { run, number }));
            prop_assert_eq!(Notice::of(&fence[..FENCE_BYTES - 1]), None);
        }
    }

    #[test]
    fn plain_messages_are_no_notices() {
        for message in [&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0, 7, 0, 0], &[]] {
            assert_eq!(Notice::of(message), None);
        }
    }
}
