//! The datagrams with which one host reads another's clock: a request and its answer. Both have the
//! same size, so that they take the same time on the wire.
//!
//! ```text
//! 0        8        16       24       32                              64
//! ┌────────┬────────┬────────┬────────┬────────────────────────────────┐
//! │ magic  │ secret │ number │ heard  │ answered            then zeros │   little-endian
//! └────────┴────────┴────────┴────────┴────────────────────────────────┘
//! ```
//! `magic` distinguishes requests, answers, and other packets that come to the port. `secret`
//! identifies the requesting process and `number` the request; an answer repeats both. A request
//! has zeros for the two stamps.

/// Bytes of a request and of an answer.
pub(crate) const REQUEST_BYTES: usize = 64;

pub(crate) type Bytes = [u8; REQUEST_BYTES];

/// Identifies a request and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub secret: u64,
    pub number: u64,
}

impl Request {
    pub(crate) fn to_bytes(self) -> Bytes {
        self.with(REQUEST, [0, 0])
    }

    /// `None` if `bytes` are not a request.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        parse(bytes, REQUEST).map(|(request, _)| request)
    }

    /// The answer, without the time when it is sent: that is stamped last.
    pub(crate) fn answer(self, heard_ns: u64) -> Bytes {
        self.with(ANSWER, [heard_ns, 0])
    }

    /// The stamps in the answer to this request; `None` if `bytes` are not its answer.
    pub(crate) fn stamps(self, bytes: &[u8]) -> Option<[u64; 2]> {
        let (request, stamps) = parse(bytes, ANSWER)?;
        (request == self).then_some(stamps)
    }

    fn with(self, magic: u64, [heard_ns, answered_ns]: [u64; 2]) -> Bytes {
        let mut bytes = [0; REQUEST_BYTES];
        let words = [magic, self.secret, self.number, heard_ns, answered_ns];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }
}

/// Sets the time when an answer is sent.
pub(crate) fn stamp(answer: &mut Bytes, answered_ns: u64) {
    answer[32..40].copy_from_slice(&answered_ns.to_le_bytes());
}

fn parse(bytes: &[u8], magic: u64) -> Option<(Request, [u64; 2])> {
    let bytes: &Bytes = bytes.try_into().ok()?;
    let word = |at: usize| u64::from_le_bytes(bytes.as_chunks().0[at]);
    let request = Request { secret: word(1), number: word(2) };
    (word(0) == magic).then_some((request, [word(3), word(4)]))
}

const REQUEST: u64 = u64::from_le_bytes(*b"myelinQ1");
const ANSWER: u64 = u64::from_le_bytes(*b"myelinA1");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_matches_only_its_own_request() {
        let request = Request { secret: 7, number: 9 };
        let asked = request.to_bytes();
        assert_eq!(Request::read(&asked), Some(request));
        assert_eq!(request.stamps(&asked), None, "a request is no answer");
        let mut answer = request.answer(100);
        stamp(&mut answer, 130);
        assert_eq!(request.stamps(&answer), Some([100, 130]));
        assert_eq!(Request::read(&answer), None, "or two would answer each other for ever");
        for other in [Request { secret: 8, ..request }, Request { number: 8, ..request }] {
            assert_eq!(other.stamps(&answer), None);
        }
        assert_eq!(request.stamps(&answer[..63]), None);
        assert_eq!(request.stamps(&[0; 65]), None);
    }
}
