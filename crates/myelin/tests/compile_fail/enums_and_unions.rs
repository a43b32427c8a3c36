use myelin::PlainData;

#[derive(Clone, Copy, PlainData)]
#[repr(u8)]
enum Mode {
    Off,
    On,
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
union Either {
    a: u32,
    b: f32,
}

fn main() {}
