//! Compiles the adaptor against the eCAL 6 installation that `ECAL_DIR` names. Without a usable one
//! the driver is built without eCAL and says what to do; the build never fails for that.

use std::path::{Path, PathBuf};

use myelin_bench_build::installation::Installation;
use myelin_bench_build::{adaptor, driver, table};

fn main() {
    driver(|| ECAL.build(|folder| Ecal::find(folder)?.link()));
}

/// An installation.
struct Ecal {
    include: PathBuf,
    libraries: PathBuf,
}

impl Ecal {
    fn find(folder: &Path) -> Result<Self, String> {
        let include = folder.join("include");
        if !include.join(HEADER).is_file() {
            return Err(format!(
                "no include/{HEADER} there; it has to be what eCAL 6 is installed to"
            ));
        }
        let libraries = LIBRARIES.iter().map(|below| folder.join(below));
        let libraries = libraries.into_iter().find(|it| it.join(LIBRARY).exists());
        let libraries = libraries.ok_or_else(|| format!("no lib/{LIBRARY} there"))?;
        println!("cargo:rerun-if-changed={}", libraries.join(LIBRARY).display());
        Ok(Ecal { include, libraries })
    }

    /// Compiles the adaptor and links it, if that works.
    fn link(&self) -> Result<(), String> {
        let mut build = adaptor::compiler("c++17");
        adaptor::include_system(build.file("src/link.cpp"), &self.include);
        adaptor::compile(&mut build, ADAPTOR)
            .map_err(|reason| format!("{reason}; it needs eCAL 6"))?;
        let library = self.libraries.join(LIBRARY).display().to_string();
        let words = [library, format!("-Wl,-rpath-link,{}", self.libraries.display())];
        adaptor::try_link(&build, ADAPTOR, OF_DRIVER, words)
            .map_err(|reason| format!("{LIBRARY} {reason}"))?;
        table::compile(&[]);
        adaptor::link(ADAPTOR);
        println!("cargo:rustc-link-search=native={}", self.libraries.display());
        println!("cargo:rustc-link-lib=dylib=ecal_core");
        println!("cargo:rustc-link-lib=stdc++");
        // The old kind of tag, which also applies to the libraries that the library needs.
        println!("cargo:rustc-link-arg-bins=-Wl,--disable-new-dtags");
        for way in ["-rpath", "-rpath-link"] {
            println!("cargo:rustc-link-arg-bins=-Wl,{way},{}", self.libraries.display());
        }
        Ok(())
    }
}

/// The parts of the driver that the adaptor needs.
const OF_DRIVER: &str = "extern \"C\" int myelin_ecal_enter(const char *) { return 0; }\n\
    extern \"C\" void myelin_ecal_leave() {}\n";
const ADAPTOR: &str = "myelin_ecal_link";
const LIBRARY: &str = "libecal_core.so";
const HEADER: &str = "ecal/pubsub/publisher.h";
const LIBRARIES: [&str; 3] = ["lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
const ECAL: Installation = Installation {
    middleware: "eCAL",
    variable: "ECAL_DIR",
    absent: "not built in: install eCAL 6 (https://ecal.io; the libecal of Debian is something \
    else), and build Myelin with ECAL_DIR=/where/it/is, /usr for its packages \
    (bench/drivers/ecal/README.md)",
    remedy: "see bench/drivers/ecal/README.md",
};
