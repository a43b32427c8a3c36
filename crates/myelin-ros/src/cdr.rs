//! CDR, the encoding of DDS and ROS 2 messages: written straight into a loan, read where it lies.
//!
//! It is *plain CDR*, encoding version 1 (OMG DDS-XTypes 1.3, 7.4.1; OMG CORBA 3.4, part 2, 9.3),
//! which ROS 2 uses for all its messages and DDS for final types: a header of 4 bytes that names
//! the encoding, then the fields in order, each number aligned to its size, counted from behind the
//! header; padded to 4 bytes. Written little-endian, read in either order. Not XCDR2, and no
//! parameter lists: these are an error that says so.
//!
//! | IDL | Rust |
//! |---|---|
//! | `octet`, `uint8` … `int64`, `float`, `double` | `u8` … `i64`, `f32`, `f64` |
//! | `boolean` | `bool` |
//! | `string` | [`Text`] (borrowed), `String` |
//! | `sequence<octet>` | `&[u8]` (borrowed) |
//! | `sequence<T>` | `Vec<T>` |
//! | `T[N]` | `[T; N]` |
//! | `struct` | one made by [`cdr_struct!`](crate::cdr_struct) |
//!
//! Why not a crate: `cdr-encoding`, the maintained one, is built on serde and writes to an
//! `io::Write`, so it neither tells the size to loan beforehand nor leaves a field out to be filled
//! in place; it copies strings, and its errors do not name the field.

mod error;
mod text;
mod types;

use std::ops::Range;

use error::What;
pub use error::{DecodeError, EncodeError};
use myelin::encapsulation::{self, CDR_BE, CDR_LE, HEADER_BYTES, little_endian};
pub use text::Text;

/// A field of a message, or a message: it is written, and read from bytes that live for `'a`, which
/// it may borrow from. Any bytes must be a valid value of a borrowed part, because they may be
/// another process's, which can change them: octets, and not a `&str`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a message",
    note = "a string that is borrowed from the sample is `myelin_ros::Text<'a>`, not `&'a str`: its \
            publisher may still change it",
    note = "a struct of your own is declared in `myelin_ros::cdr_struct!`"
)]
pub trait Cdr<'a>: Sized {
    /// The fewest bytes that it takes, without padding: so an impossible count of elements is
    /// detected at once. At least 1.
    const BYTES_MIN: usize;

    /// Writes it.
    ///
    /// # Errors
    /// A value without a CDR form: see [`EncodeError`].
    fn encode(&self, to: &mut Encoder<'_>) -> Result<(), EncodeError>;

    /// Reads it.
    ///
    /// # Errors
    /// Missing or invalid bytes: see [`DecodeError`].
    fn decode(from: &mut Decoder<'a>) -> Result<Self, DecodeError>;
}

/// How many bytes `message` takes, with the header of 4.
///
/// # Errors
/// As [`encode`].
pub fn encoded_bytes<'a>(message: &impl Cdr<'a>) -> Result<usize, EncodeError> {
    encode(message, &mut [])
}

/// Writes `message` with its header to the beginning of `bytes`, and returns how many it takes; if
/// there are fewer, the message is cut off.
///
/// # Errors
/// A string with a NUL in it, or a length that does not fit into 32 bits.
pub fn encode<'a>(message: &impl Cdr<'a>, bytes: &mut [u8]) -> Result<usize, EncodeError> {
    encode_with_hole(message, bytes, None).map(|(encoded, _)| encoded)
}

/// Like [`encode`]; with `hole`, a sequence of octets that is empty in the message is left out, and
/// gets this length instead. Also returns its place.
pub(crate) fn encode_with_hole<'a>(
    message: &impl Cdr<'a>,
    bytes: &mut [u8],
    hole: Option<usize>,
) -> Result<(usize, Range<usize>), EncodeError> {
    let hole = hole.map(|bytes| Hole { bytes, place: None });
    let mut encoder = Encoder { bytes, at: 0, hole };
    message.encode(&mut encoder)?;
    Ok(encoder.finish())
}

/// Reads a message with its header. Bytes behind it are padding and ignored.
///
/// # Errors
/// Missing or invalid bytes, with the field: [`DecodeError`]. It never panics, and never takes more
/// memory than a small multiple of the size of `bytes`.
pub fn decode<'a, T: Cdr<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    T::decode(&mut Decoder::new(bytes)?)
}

/// Writes a message. It keeps counting after the end of the bytes, so an encoder without bytes
/// computes the size.
pub struct Encoder<'b> {
    bytes: &'b mut [u8],
    /// The position of the next byte, behind the header.
    at: usize,
    hole: Option<Hole>,
}

/// The only sequence of octets that is left out, to be filled later.
struct Hole {
    bytes: usize,
    /// Its place in the message with its header, once it is known.
    place: Option<Range<usize>>,
}

impl Encoder<'_> {
    /// Writes a field; an error then names it.
    ///
    /// # Errors
    /// The field's error.
    pub fn field<'a>(&mut self, name: &'static str, of: &impl Cdr<'a>) -> Result<(), EncodeError> {
        of.encode(self).map_err(|error| EncodeError { field: within(name, error.field), ..error })
    }

    /// How many bytes there are so far, with the header.
    fn encoded(&self) -> usize {
        HEADER_BYTES + self.at
    }

    /// Pads to 4 bytes, notes that in the header (DDS-XTypes 1.3, 7.6.3.1.2), and returns the size
    /// and the place of the hole.
    fn finish(mut self) -> (usize, Range<usize>) {
        let padding = self.encoded().next_multiple_of(4) - self.encoded();
        self.put(&[0; 4][..padding]);
        self.write(0, &little_endian(padding));
        (self.encoded(), self.hole.and_then(|hole| hole.place).unwrap_or_default())
    }

    /// Adds zeros until a number of `bytes` bytes is aligned.
    fn align(&mut self, bytes: usize) {
        let padding = self.at.next_multiple_of(bytes) - self.at;
        self.put(&[0; MAX_ALIGN][..padding]);
    }

    fn put(&mut self, source: &[u8]) {
        self.write(self.encoded(), source);
        self.at += source.len();
    }

    fn write(&mut self, at: usize, source: &[u8]) {
        if let Some(target) = self.bytes.get_mut(at..at + source.len()) {
            target.copy_from_slice(source);
        }
    }

    fn length(&mut self, length: usize) -> Result<(), EncodeError> {
        let too_long = |_| EncodeError::new("has more elements than CDR can count (2³² − 1)");
        u32::try_from(length).map_err(too_long)?.encode(self)
    }

    fn octets(&mut self, octets: &[u8]) -> Result<(), EncodeError> {
        let Some(Hole { bytes, place: None }) = self.hole else {
            self.length(octets.len())?;
            self.put(octets);
            return Ok(());
        };
        if !octets.is_empty() {
            return Err(EncodeError::new("must be filled in the loan; leave it empty here"));
        }
        self.length(bytes)?;
        let place = self.encoded()..self.encoded() + bytes;
        self.hole = Some(Hole { bytes, place: Some(place) });
        self.at += bytes;
        Ok(())
    }
}

/// Reads a message.
pub struct Decoder<'a> {
    /// The bytes behind the header.
    body: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Decoder<'a> {
    /// A decoder for a message with its header.
    fn new(message: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((encoding, body)) = encapsulation::split(message) else {
            let what = What::Short { wanted: HEADER_BYTES, left: message.len() };
            return Err(DecodeError { field: "(header)".to_owned(), at: 0, what });
        };
        let big_endian = match encoding {
            CDR_BE => true,
            CDR_LE => false,
            other => {
                let what = What::Encoding(other);
                return Err(DecodeError { field: "(header)".to_owned(), at: 0, what });
            }
        };
        Ok(Decoder { body, at: 0, big_endian })
    }

    /// Reads a field; an error then names it.
    ///
    /// # Errors
    /// The field's error.
    pub fn field<T: Cdr<'a>>(&mut self, name: &'static str) -> Result<T, DecodeError> {
        T::decode(self).map_err(|error| DecodeError { field: within(name, error.field), ..error })
    }

    fn error(&self, what: What) -> DecodeError {
        DecodeError { field: String::new(), at: HEADER_BYTES + self.at, what }
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.body.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.get(..bytes) else {
            return Err(self.error(What::Short { wanted: bytes, left: rest.len() }));
        };
        self.at += bytes;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        self.at = self.at.next_multiple_of(N);
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        if self.big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// The bytes of a string, without the NUL that ends it.
    fn string(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.length(1)?;
        let bytes = self.take(length)?;
        // Some programs write an empty string without the NUL that ends it.
        let Some((end, text)) = bytes.split_last() else { return Ok(&[]) };
        if *end != 0 {
            return Err(self.error(What::NoNul));
        }
        Ok(text)
    }

    /// How many elements follow, with a minimum size of each.
    fn length(&mut self, bytes_min: usize) -> Result<usize, DecodeError> {
        let length = u32::decode(self)? as usize;
        let left = self.body.len() - self.at;
        let wanted = length.saturating_mul(bytes_min);
        if wanted > left {
            return Err(self.error(What::Short { wanted, left }));
        }
        Ok(length)
    }
}

/// A struct whose fields have the same order in CDR as here: declares it and implements
/// [`Cdr`](crate::cdr::Cdr) for it.
///
/// ```
/// use myelin_ros::{Text, cdr};
///
/// myelin_ros::cdr_struct! {
///     #[derive(Debug, PartialEq)]
///     struct Track<'a> {
///         name: Text<'a>,
///         points: Vec<[f64; 2]>,
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let track = Track { name: "left".into(), points: vec![[0.0, 1.0], [0.5, 2.0]] };
/// let mut bytes = vec![0; cdr::encoded_bytes(&track)?];
/// cdr::encode(&track, &mut bytes)?;
/// assert_eq!(cdr::decode::<Track>(&bytes)?, track);
///
/// let error = cdr::decode::<Track>(&bytes[..50]).unwrap_err().to_string();
/// assert_eq!(error, "points at byte 20: 32 B are needed and 30 B are left");
/// # Ok(()) }
/// ```
#[macro_export]
macro_rules! cdr_struct {
    (
        $(#[$about:meta])*
        $public:vis struct $name:ident<$life:lifetime> {
            $($(#[$about_field:meta])* $public_field:vis $field:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$about])*
        $public struct $name<$life> {
            $($(#[$about_field])* $public_field $field: $type),+
        }

        impl<$life> $crate::cdr::Cdr<$life> for $name<$life> {
            $crate::cdr_struct!(@implement $life $($field: $type),+);
        }
    };
    (
        $(#[$about:meta])*
        $public:vis struct $name:ident {
            $($(#[$about_field:meta])* $public_field:vis $field:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$about])*
        $public struct $name {
            $($(#[$about_field])* $public_field $field: $type),+
        }

        impl<'a> $crate::cdr::Cdr<'a> for $name {
            $crate::cdr_struct!(@implement 'a $($field: $type),+);
        }
    };
    (@implement $life:lifetime $($field:ident: $type:ty),+) => {
        const BYTES_MIN: usize = 0 $(+ <$type as $crate::cdr::Cdr<$life>>::BYTES_MIN)+;

        fn encode(
            &self,
            to: &mut $crate::cdr::Encoder<'_>,
        ) -> ::core::result::Result<(), $crate::cdr::EncodeError> {
            $(to.field(stringify!($field), &self.$field)?;)+
            ::core::result::Result::Ok(())
        }

        fn decode(
            from: &mut $crate::cdr::Decoder<$life>,
        ) -> ::core::result::Result<Self, $crate::cdr::DecodeError> {
            ::core::result::Result::Ok(Self { $($field: from.field(stringify!($field))?),+ })
        }
    };
}

fn within(name: &str, field: String) -> String {
    if field.is_empty() { name.to_owned() } else { format!("{name}.{field}") }
}

/// The alignment of the largest number.
const MAX_ALIGN: usize = 8;
