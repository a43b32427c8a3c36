//! The messages of a service's topics: a header of two words, then the payload, aligned as it
//! demands.

use std::marker::PhantomData;

use myelin_shm::dispatch::callback::Lengths;

use crate::layout_hash::LayoutHash;
use crate::network::Shape;
use crate::payload::Payload;
use crate::payload::sealed::Raw;

/// A message on the topic of requests: the client, the call's number from 1 on, the request. Or the
/// client, 0 ([`HELLO`]), and nothing.
pub(super) struct RequestOf<Req: ?Sized, Rep: ?Sized>(Types<Req, Rep>);

/// A message on the topic of a client's replies: the call's number, [`REPLIED`], the reply. Or the
/// number, [`NO_REPLY`], and nothing.
pub(super) struct ReplyOf<Req: ?Sized, Rep: ?Sized>(Types<Req, Rep>);

type Types<Req, Rep> = PhantomData<fn() -> (PhantomData<Req>, PhantomData<Rep>)>;

/// The header of two words.
pub(super) type Header = [u64; 2];

pub(super) const HEADER_BYTES: usize = 16;
pub(super) const HELLO: u64 = 0;
pub(super) const REPLIED: u64 = 0;
pub(super) const NO_REPLY: u64 = 1;

/// Where the payload begins.
pub(super) const fn offset<P: Payload + ?Sized>() -> usize {
    if P::ALIGN > HEADER_BYTES { P::ALIGN } else { HEADER_BYTES }
}

/// Whether there is a payload that fits.
pub(super) fn has_payload<P: Payload + ?Sized>(bytes: usize) -> bool {
    bytes.checked_sub(offset::<P>()).is_some_and(P::fits)
}

pub(super) fn header(bytes: &[u8]) -> Header {
    let (words, _) = bytes.as_chunks::<8>();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

pub(super) fn header_bytes([first, second]: Header) -> [u8; HEADER_BYTES] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

macro_rules! carried {
    ($carried:ident, $payload:ident, |$of_requests:ident| $hash:expr) => {
        impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Payload for $carried<Req, Rep> {}

        impl<Req: Payload + ?Sized, Rep: Payload + ?Sized> Raw for $carried<Req, Rep> {
            type View = [u8];

            const LENGTHS: Lengths = Lengths::Such(Self::fits);
            const ALIGN: usize = offset::<$payload>();
            const SHAPE: Shape = Shape::Bytes;

            fn type_name() -> String {
                format!("{} -> {}", Req::type_name(), Rep::type_name())
            }

            fn layout_hash() -> u64 {
                let $of_requests = LayoutHash::of_requests(Req::layout_hash(), Rep::layout_hash());
                $hash
            }

            fn layout() -> String {
                format!("{} -> {}", Req::layout(), Rep::layout())
            }

            fn fits(bytes: usize) -> bool {
                bytes == HEADER_BYTES || has_payload::<$payload>(bytes)
            }

            fn view(pointer: *const u8, bytes: usize) -> *const [u8] {
                std::ptr::slice_from_raw_parts(pointer, bytes)
            }

            fn view_mut(pointer: *mut u8, bytes: usize) -> *mut [u8] {
                std::ptr::slice_from_raw_parts_mut(pointer, bytes)
            }

            fn as_bytes(view: &[u8]) -> &[u8] {
                view
            }
        }
    };
}

carried!(RequestOf, Req, |of_requests| of_requests);
carried!(ReplyOf, Rep, |of_requests| LayoutHash::of_replies(of_requests));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_aligned_for_its_type() {
        assert_eq!((offset::<u8>(), offset::<u128>(), offset::<[f64]>()), (16, 16, 16));
        type Carried = RequestOf<[u32], u8>;
        let fitting = [16, 20, 160];
        assert!(fitting.into_iter().all(Carried::fits));
        assert!([0, 15, 17, 18].into_iter().all(|bytes| !Carried::fits(bytes)));
        assert!(has_payload::<[u32]>(16) && !has_payload::<u8>(16) && has_payload::<u8>(17));
    }

    #[test]
    fn the_header_words_are_read_as_written() {
        let words = [3, u64::MAX - 7];
        assert_eq!(header(&header_bytes(words)), words);
    }

    #[test]
    fn requests_replies_and_types_have_distinct_topics() {
        let hashes = [
            RequestOf::<u8, [f64]>::layout_hash(),
            ReplyOf::<u8, [f64]>::layout_hash(),
            RequestOf::<[f64], u8>::layout_hash(),
            RequestOf::<u8, f64>::layout_hash(),
        ];
        let distinct: std::collections::HashSet<_> = hashes.into_iter().collect();
        assert_eq!(distinct.len(), hashes.len());
    }
}
