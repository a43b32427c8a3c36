#[derive(Clone, Copy, myelin::PlainData)]
#[repr(C)]
struct Maybe(Option<u32>);

fn main() {
    let node = myelin::Node::new("test").unwrap();
    let _ = node.topic::<String>("text");
    let _ = node.topic::<[Vec<u8>]>("texts");
}
