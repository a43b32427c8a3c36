use myelin::PlainData;

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Of<T>(T);

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Many<const N: usize>([u8; N]);

fn main() {}
