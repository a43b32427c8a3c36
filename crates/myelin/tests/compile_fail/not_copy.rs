#[derive(myelin::PlainData)]
#[repr(C)]
struct Moved(u32);

fn main() {}
