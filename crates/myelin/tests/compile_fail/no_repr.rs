#[derive(Clone, Copy, myelin::PlainData)]
struct Free {
    value: u64,
}

#[derive(Clone, Copy, myelin::PlainData)]
#[repr(align(8))]
struct Aligned {
    value: u64,
}

fn main() {}
