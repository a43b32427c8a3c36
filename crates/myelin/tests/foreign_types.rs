//! Types of other crates, by the traits of `bytemuck` and `zerocopy`.

mod support;

use myelin::{Error, PlainData, Pod, Zerocopy};
use support::{WATCHDOG, ends, node};

#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Vector {
    x: f32,
    y: f32,
    z: f32,
}

#[derive(
    Clone, Copy, Debug, PartialEq, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable,
)]
#[repr(C)]
struct Header {
    id: u32,
    flags: [u8; 4],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Scan {
    header: Zerocopy<Header>,
    origin: Pod<Vector>,
}

#[test]
fn foreign_types_are_carried_in_slices_and_structs() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<(Scan, [Pod<Vector>])>("scan"));
    let mut scan = publisher.loan(50).unwrap();
    let header = Zerocopy(Header { id: 7, flags: [1, 2, 3, 4] });
    let origin = Pod(Vector { x: 1.0, ..Vector::default() });
    *scan.header_mut() = Scan { header, origin };
    scan.slice_mut().fill(origin);
    scan.publish().unwrap();
    let scan = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
    assert_eq!((scan.header().header, scan.header().origin.x), (header, 1.0));
    assert!(scan.slice().len() == 50 && scan.slice().iter().all(|point| *point == origin));
}

#[test]
fn another_size_or_alignment_is_another_type() {
    let (_folder, node) = node();
    let _vectors = node.topic::<Pod<Vector>>("one").publisher().unwrap();
    let error = node.topic::<Pod<[f32; 4]>>("one").subscriber().unwrap_err();
    assert!(matches!(error, Error::TypeMismatch { .. }), "{error:?}");
    assert!(error.to_string().contains("Vector"), "{error}");
    assert_ne!(Pod::<[u8; 12]>::LAYOUT_HASH, Pod::<Vector>::LAYOUT_HASH, "another alignment");
}
