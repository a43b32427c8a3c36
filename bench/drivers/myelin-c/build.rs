//! Compiles the adaptor against `libmyelin.so` if `scripts/c-library` has made it. Without it the
//! driver is built without the library and says what to do.

#[path = "../libmyelin.rs"]
mod libmyelin;
#[path = "../table.rs"]
mod table;

fn main() {
    libmyelin::compile("src/link.c");
}
