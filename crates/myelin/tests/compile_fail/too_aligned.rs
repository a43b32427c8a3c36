#[derive(Clone, Copy, myelin::PlainData)]
#[repr(C, align(128))]
struct Line([u8; 128]);

fn main() {}
