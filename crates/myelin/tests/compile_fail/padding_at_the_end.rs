#[derive(Clone, Copy, myelin::PlainData)]
#[repr(C)]
struct Tail {
    value: u64,
    flag: u8,
}

fn main() {}
