//! The C API, by programs of C.

mod support;

use support::Place;

#[test]
fn each_part_does_what_the_header_says() {
    let place = Place::new();
    let program = place.compile("tests/programs/parts.c", &[]);
    assert_eq!(place.run(program, &[]), "all parts\n");
}
