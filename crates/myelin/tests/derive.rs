//! The proofs of the derive, and its messages when it cannot prove them.

use myelin::{LayoutHash, PlainData};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Inner {
    a: u32,
    b: [u16; 2],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C, align(16))]
struct Outer {
    inner: [Inner; 2],
    r#type: u128,
}

#[derive(Clone, Copy, PlainData)]
#[repr(transparent)]
struct Metres(f64);

#[derive(Clone, Copy, PlainData)]
#[repr(C, packed)]
struct Packed {
    tag: u8,
    value: u64,
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Empty;

#[test]
fn layouts_have_the_documented_hash() {
    let inner = LayoutHash::of_struct()
        .field::<u32>("a", 0)
        .field::<[u16; 2]>("b", 4)
        .end_struct::<Inner>();
    assert_eq!(Inner::LAYOUT_HASH, inner);
    let outer = LayoutHash::of_struct()
        .field::<[Inner; 2]>("inner", 0)
        .field::<u128>("type", 16)
        .end_struct::<Outer>();
    assert_eq!(Outer::LAYOUT_HASH, outer);
    let metres = LayoutHash::of_struct().field::<f64>("0", 0).end_struct::<Metres>();
    assert_eq!(Metres::LAYOUT_HASH, metres);
    assert_eq!(Packed::LAYOUT_HASH, {
        let tag = LayoutHash::of_struct().field::<u8>("tag", 0);
        tag.field::<u64>("value", 1).end_struct::<Packed>()
    });
    assert_eq!(Empty::LAYOUT_HASH, LayoutHash::of_struct().end_struct::<Empty>());
}

#[test]
fn a_change_of_the_hash_is_a_change_of_the_wire() {
    // Peers in other languages compute the same numbers (these: Python, from the description in
    // `LayoutHash`), so they must not change unintentionally.
    assert_eq!(u8::LAYOUT_HASH, 0x08c4_8207_b567_53d8);
    assert_eq!(LayoutHash::of_slice::<u8>(), 0xf27e_a39e_fdc2_c19d);
    assert_eq!(Inner::LAYOUT_HASH, 0x7b4a_9d42_3669_e5b3);
}

#[test]
fn types_are_called_by_their_names() {
    assert_eq!(Inner::type_name(), "Inner");
    assert_eq!(<[[Inner; 2]; 3]>::type_name(), "[[Inner; 2]; 3]");
    assert_eq!(f32::type_name(), "f32");
}

#[test]
fn types_that_are_not_plain_data_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
