//! Types of other crates that cannot derive [`PlainData`], but promise the same by the traits of
//! `bytemuck` or `zerocopy`.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use crate::layout_hash::LayoutHash;
use crate::plain_data::PlainData;

macro_rules! foreign {
    ($(#[$doc:meta])* $name:ident: $($bound:path),*) => {
        $(#[$doc])*
        ///
        /// The types' fields cannot be seen, so the [layout hash](LayoutHash) is one of size and alignment
        /// alone: two types that agree in these are taken for the same. A type of your own derives
        /// [`PlainData`] beside the other trait, and is compared field by field.
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name<T>(pub T);

        // Not in the compiler's list of types that are plain data: a feature must not change that
        // list.
        // SAFETY: the bounds promise that every byte pattern is a value and that there is no
        // padding; the alignment is asserted.
        #[diagnostic::do_not_recommend]
        unsafe impl<T: $($bound +)* Copy + Send + Sync + 'static> PlainData for $name<T> {
            const LAYOUT_HASH: u64 = {
                assert!(align_of::<T>() <= 64, "aligned to more than 64 bytes");
                LayoutHash::of_foreign::<T>()
            };

            fn type_name() -> Cow<'static, str> {
                Cow::Borrowed(std::any::type_name::<T>())
            }
        }

        impl<T> Deref for $name<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }

        impl<T> DerefMut for $name<T> {
            fn deref_mut(&mut self) -> &mut T {
                &mut self.0
            }
        }
    };
}

#[cfg(feature = "bytemuck")]
foreign! {
    /// A type of another crate that is `bytemuck::AnyBitPattern` and `NoUninit`, as every
    /// `bytemuck::Pod` is: `node.topic::<[Pod<glam::Vec3>]>("points")`. With the feature `bytemuck`.
    Pod: bytemuck::AnyBitPattern, bytemuck::NoUninit
}

#[cfg(feature = "zerocopy")]
foreign! {
    /// A type of another crate that is `zerocopy::FromBytes`, `IntoBytes` and `Immutable`:
    /// `node.topic::<Zerocopy<Header>>("header")`. With the feature `zerocopy`.
    Zerocopy: zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable
}
