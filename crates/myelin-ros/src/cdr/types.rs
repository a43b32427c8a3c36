//! The CDR form of Rust's own types.

use super::error::What;
use super::{Cdr, DecodeError, Decoder, EncodeError, Encoder, Text};

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl<'a> Cdr<'a> for $number {
            const BYTES_MIN: usize = size_of::<$number>();

            fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError> {
                to.align(size_of::<$number>());
                to.put(&self.to_le_bytes());
                Ok(())
            }

            fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                Ok(<$number>::from_le_bytes(from.number()?))
            }
        }
    )*};
}

numbers!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl<'a> Cdr<'a> for bool {
    const BYTES_MIN: usize = 1;

    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError> {
        u8::from(*self).encode(to)
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        match u8::decode(from)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(from.error(What::Boolean(other))),
        }
    }
}

impl<'a> Cdr<'a> for Text<'a> {
    const BYTES_MIN: usize = 4;

    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError> {
        if self.as_bytes().contains(&0) {
            return Err(EncodeError::new("has a NUL in it, which ends a string in CDR"));
        }
        to.length(self.len() + 1)?;
        to.put(self.as_bytes());
        to.put(&[0]);
        Ok(())
    }

    /// A check for UTF-8 says something about the publisher, and nothing about the later content of
    /// the memory.
    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let text = from.string()?;
        match str::from_utf8(text) {
            Ok(_) => Ok(Text::from_bytes(text)),
            Err(_) => Err(from.error(What::NotUtf8)),
        }
    }
}

impl<'a> Cdr<'a> for String {
    const BYTES_MIN: usize = 4;

    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError> {
        Text::new(self).encode(to)
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let text = Text::from_bytes(from.string()?);
        text.to_utf8().map_err(|_| from.error(What::NotUtf8))
    }
}

impl<'a> Cdr<'a> for &'a [u8] {
    const BYTES_MIN: usize = 4;

    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError> {
        to.octets(self)
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let length = from.length(1)?;
        from.take(length)
    }
}

impl<'a, T: Cdr<'a>, const N: usize> Cdr<'a> for [T; N] {
    const BYTES_MIN: usize = {
        assert!(N > 0, "IDL has no arrays of no elements");
        N * T::BYTES_MIN
    };

    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.iter().try_for_each(|element| element.encode(to))
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let mut elements = [const { None }; N];
        for element in &mut elements {
            *element = Some(T::decode(from)?);
        }
        Ok(elements.map(|element| element.expect("the loop has set all of them")))
    }
}

impl<'a, T: Cdr<'a>> Cdr<'a> for Vec<T> {
    const BYTES_MIN: usize = 4;

    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError> {
        to.length(self.len())?;
        self.iter().try_for_each(|element| element.encode(to))
    }

    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        let length = from.length(T::BYTES_MIN)?;
        (0..length).map(|_| T::decode(from)).collect()
    }
}
