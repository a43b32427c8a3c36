//! Compiles the adaptor against ZeroMQ if its development package is installed. Without it the
//! driver is built without ZeroMQ and says what to install.

use myelin_bench_build::{adaptor, driver, probe, table};

fn main() {
    driver(|| {
        let library = probe::find("libzmq", "ZeroMQ", "4.3.3".., "libzmq 4.3.3 or later")?;
        table::compile(&[]);
        println!("cargo:rerun-if-changed=/usr/include/zmq.h");
        let mut build = adaptor::compiler("c11");
        build.file("src/link.c").includes(&library.include_paths).compile("myelin_zeromq_link");
        probe::link(&library);
        Ok(())
    });
}
