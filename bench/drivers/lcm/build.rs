//! Compiles the adaptor against LCM if its development package is installed. Without it the driver
//! is built without LCM and says what to install.

use myelin_bench_build::{adaptor, driver, probe, table};

fn main() {
    driver(|| {
        let library = probe::find("lcm", "LCM", .., "LCM")?;
        // LCM itself does not report its version up to 1.3.
        table::compile(&[("VERSION", &library.version)]);
        println!("cargo:rerun-if-changed=/usr/include/lcm/lcm.h");
        let mut build = adaptor::compiler("c11");
        library.include_paths.iter().for_each(|path| adaptor::include_system(&mut build, path));
        build.files(["src/link.c", "src/loopback.c"]).define("_GNU_SOURCE", None);
        build.compile("myelin_lcm_link");
        probe::link(&library);
        Ok(())
    });
}
