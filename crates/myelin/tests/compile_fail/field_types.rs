use myelin::PlainData;

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Flag(bool);

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Letters([char; 4]);

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Borrowed(&'static u64);

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Pointer(*const u8);

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Function(fn());

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Pair((u8, u8));

fn main() {}
