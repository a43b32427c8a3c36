//! What travels when one host asks another what its clock reads: a datagram and its answer, of one
//! size, so that both take the same time on the wire.
//!
//! ```text
//! 0        8        16       24       32                              64
//! ┌────────┬────────┬────────┬────────┬────────────────────────────────┐
//! │ magic  │ secret │ number │ heard  │ answered            then zeros │   little-endian
//! └────────┴────────┴────────┴────────┴────────────────────────────────┘
//! ```
//! `magic` tells questions from answers, and both from whatever else comes to the port. `secret` is
//! the asking process's, `number` the question's; an answer repeats both. A question has zeros for
//! the two stamps.

/// Bytes of a question and of an answer.
pub(crate) const QUESTION_BYTES: usize = 64;

pub(crate) type Bytes = [u8; QUESTION_BYTES];

/// Which question of which process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub secret: u64,
    pub number: u64,
}

impl Question {
    pub(crate) fn to_bytes(self) -> Bytes {
        self.with(QUESTION, [0, 0])
    }

    /// `None` if `bytes` are no question.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        parse(bytes, QUESTION).map(|(question, _)| question)
    }

    /// The answer, but for when it is sent: that is stamped last.
    pub(crate) fn answer(self, heard_ns: u64) -> Bytes {
        self.with(ANSWER, [heard_ns, 0])
    }

    /// The stamps in the answer to this question; `None` if `bytes` are not that.
    pub(crate) fn stamps(self, bytes: &[u8]) -> Option<[u64; 2]> {
        let (question, stamps) = parse(bytes, ANSWER)?;
        (question == self).then_some(stamps)
    }

    fn with(self, magic: u64, [heard_ns, answered_ns]: [u64; 2]) -> Bytes {
        let mut bytes = [0; QUESTION_BYTES];
        let words = [magic, self.secret, self.number, heard_ns, answered_ns];
        for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }
}

/// Enters when an answer is sent.
pub(crate) fn stamp(answer: &mut Bytes, answered_ns: u64) {
    answer[32..40].copy_from_slice(&answered_ns.to_le_bytes());
}

fn parse(bytes: &[u8], magic: u64) -> Option<(Question, [u64; 2])> {
    let bytes: &Bytes = bytes.try_into().ok()?;
    let word = |at: usize| u64::from_le_bytes(bytes.as_chunks().0[at]);
    let question = Question { secret: word(1), number: word(2) };
    (word(0) == magic).then_some((question, [word(3), word(4)]))
}

const QUESTION: u64 = u64::from_le_bytes(*b"myelinQ1");
const ANSWER: u64 = u64::from_le_bytes(*b"myelinA1");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_to_its_question_alone() {
        let question = Question { secret: 7, number: 9 };
        let asked = question.to_bytes();
        assert_eq!(Question::read(&asked), Some(question));
        assert_eq!(question.stamps(&asked), None, "a question is no answer");
        let mut answer = question.answer(100);
        stamp(&mut answer, 130);
        assert_eq!(question.stamps(&answer), Some([100, 130]));
        assert_eq!(Question::read(&answer), None, "or two would answer each other for ever");
        for other in [Question { secret: 8, ..question }, Question { number: 8, ..question }] {
            assert_eq!(other.stamps(&answer), None);
        }
        assert_eq!(question.stamps(&answer[..63]), None);
        assert_eq!(question.stamps(&[0; 65]), None);
    }
}
