//! Compiles the adaptor against the LibXR that `LIBXR_DIR` names: the build folder of its CMake
//! project. Without a usable one the driver is built without LibXR and says what to do; the build
//! never fails for that.

use std::path::{Path, PathBuf};

use myelin_bench_build::compile_commands::{COMMANDS, Compilation};
use myelin_bench_build::installation::Installation;
use myelin_bench_build::{adaptor, cc, compile_commands, driver, installation, table};

fn main() {
    driver(|| LIBXR.build(|folder| LibXr::find(folder)?.link()));
}

/// A built LibXR.
struct LibXr {
    folder: PathBuf,
    compilation: Compilation,
}

impl LibXr {
    fn find(folder: &Path) -> Result<Self, String> {
        for file in [LIBRARY, COMMANDS] {
            println!("cargo:rerun-if-changed={}", folder.join(file).display());
        }
        let library = "the folder given to `cmake -B`, built as a static library";
        installation::require(folder, &[(LIBRARY, library), (COMMANDS, compile_commands::REMEDY)])?;
        let compilation = Compilation::of(TOPIC, folder, LIBXR.middleware)?;
        let header = compilation.source.join(HEADER);
        if !header.is_file() {
            return Err(format!("no header {}", header.display()));
        }
        if !compilation.is_optimised() {
            return Err("not optimised; configure with -DCMAKE_BUILD_TYPE=Release".to_owned());
        }
        Ok(LibXr { folder: folder.to_owned(), compilation })
    }

    /// Compiles the adaptor and links it, if that works.
    fn link(&self) -> Result<(), String> {
        let mut build = cc::Build::new();
        // As its users compile it, even in a debug build, because the middleware is what is
        // measured.
        build.cpp(true).no_default_flags(true).flags(&self.compilation.flags);
        build.flags(["-Wall", "-Wextra"]);
        build.file("src/link.cpp").includes(table::include());
        adaptor::compile(&mut build, ADAPTOR)
            .map_err(|reason| format!("{reason}; it needs the topics of 2026-07"))?;
        adaptor::try_link(&build, ADAPTOR, "", [self.folder.join(LIBRARY)])
            .map_err(|reason| format!("{LIBRARY} {reason}"))?;
        // LibXR has no version numbers.
        let version = installation::commit(&self.compilation.source);
        table::compile(&[("VERSION", version.as_deref().unwrap_or("of an unknown commit"))]);
        adaptor::link(ADAPTOR);
        println!("cargo:rustc-link-search=native={}", self.folder.display());
        println!("cargo:rustc-link-lib=static=xr");
        println!("cargo:rustc-link-lib=stdc++");
        Ok(())
    }
}

const ADAPTOR: &str = "myelin_libxr_link";
const LIBRARY: &str = "libxr.a";
const TOPIC: &str = "src/middleware/message/topic.cpp";
const HEADER: &str = "src/middleware/message/message.hpp";
const LIBXR: Installation = Installation {
    middleware: "LibXR",
    variable: "LIBXR_DIR",
    absent: "not built in: to install it, git clone https://github.com/Jiu-xiao/libxr; cmake -S \
    libxr -B libxr/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON; cmake --build \
    libxr/build -j; then build Myelin with LIBXR_DIR=$PWD/libxr/build (bench/drivers/libxr/README.md)",
    remedy: "see bench/drivers/libxr/README.md, install LibXR so, and build Myelin again",
};
