//! Compiles the adaptor against CycloneDDS if its development package is installed. Without it the
//! driver is built all the same and says what to install.

use std::path::Path;

use myelin_bench_build::{adaptor, driver, probe, table};

fn main() {
    driver(|| {
        // From 11 on, shared memory is no longer iceoryx built in but a plug-in (PSMX).
        let library = probe::find("CycloneDDS", "CycloneDDS", "0.10".."0.11", "CycloneDDS 0.10")?;
        table::compile(&[]);
        // pkg-config leaves out the system's own folder, hence the default.
        let mut headers = library.include_paths.iter().map(|folder| folder.join("dds/version.h"));
        let header = headers.find(|header| header.exists());
        let header = header.as_deref().unwrap_or(Path::new("/usr/include/dds/version.h"));
        println!("cargo:rerun-if-changed={}", header.display());
        adaptor::compiler("c11")
            .files([
                "src/config.c",
                "src/link.c",
                "src/match.c",
                "src/security.c",
                "src/table.c",
                "src/version.c",
            ])
            .includes(&library.include_paths)
            .define("_POSIX_C_SOURCE", "200809L")
            .compile("myelin_cyclonedds_link");
        probe::link(&library);
        Ok(())
    });
}
