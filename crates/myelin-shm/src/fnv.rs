//! The hash that identifies types: 64-bit FNV-1a.

/// A hash of the bytes so far.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Fnv {
    /// Of no bytes.
    pub const BEGIN: Fnv = Fnv(0xcbf2_9ce4_8422_2325);

    /// With these bytes behind it.
    #[must_use]
    pub const fn bytes(mut self, bytes: &[u8]) -> Fnv {
        let mut at = 0;
        while at < bytes.len() {
            self.0 = (self.0 ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        self
    }

    /// The hash.
    pub const fn finish(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_fnv_1a() {
        // From the test vectors of the authors, http://www.isthe.com/chongo/tech/comp/fnv/.
        assert_eq!(Fnv::BEGIN.finish(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv::BEGIN.bytes(b"a").finish(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv::BEGIN.bytes(b"foo").bytes(b"bar").finish(), 0x8594_4171_f739_67e8);
    }
}
