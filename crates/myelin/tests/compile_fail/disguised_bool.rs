type Flag = bool;

#[derive(Clone, Copy, myelin::PlainData)]
#[repr(C)]
struct Disguised {
    letter: core::primitive::char,
    flags: [Flag; 4],
}

fn main() {}
