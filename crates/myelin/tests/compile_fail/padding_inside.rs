#[derive(Clone, Copy, myelin::PlainData)]
#[repr(C)]
struct Gap {
    flag: u8,
    value: u64,
}

fn main() {}
