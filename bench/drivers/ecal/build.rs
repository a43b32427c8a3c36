//! Compiles the adaptor against the eCAL 6 that `ECAL_DIR` names: an installation. Without one, or with one
//! that does not serve, the driver builds all the same and says what to do; the build never fails for it.

#[path = "../table.rs"]
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=ECAL_DIR");
    let Some(folder) = std::env::var_os("ECAL_DIR").filter(|folder| !folder.is_empty()) else {
        return table::compile_missing(NO_FOLDER);
    };
    let folder = PathBuf::from(folder);
    if let Err(reason) = Ecal::find(&folder).and_then(|ecal| ecal.link()) {
        let reason = format!("ECAL_DIR={}: {reason}", folder.display());
        println!("cargo:warning={reason}; the driver of eCAL is built without it");
        table::compile_missing(&format!("not built in: {reason}; {HOW}"));
    }
}

/// An installation.
struct Ecal {
    include: PathBuf,
    libraries: PathBuf,
}

impl Ecal {
    fn find(folder: &Path) -> Result<Self, String> {
        if !folder.is_absolute() || !folder.is_dir() {
            return Err("no such folder; give an absolute path".to_owned());
        }
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

    /// Compiles the adaptor and has it linked, if that works.
    fn link(&self) -> Result<(), String> {
        let mut build = cc::Build::new();
        // Also in a debug build: what is measured is the middleware.
        build.cpp(true).file("src/link.cpp").std("c++17").opt_level(2);
        build.include(table::include()).extra_warnings(true).warnings_into_errors(true);
        // The warnings of its headers are not ours to mend.
        build.flag(format!("-isystem{}", self.include.display())).cargo_metadata(false);
        build.try_compile(ADAPTOR).map_err(|error| {
            let error = error.to_string();
            // The rest is the command line; what the compiler says, cargo shows.
            let error = error.split(" \"").next().unwrap_or_default();
            format!("the adaptor does not compile; it needs eCAL 6: {error}")
        })?;
        self.try_link(&build)?;
        table::compile(&[]);
        println!("cargo:rustc-link-search=native={}", out_folder().display());
        println!("cargo:rustc-link-search=native={}", self.libraries.display());
        println!("cargo:rustc-link-lib=static={ADAPTOR}");
        println!("cargo:rustc-link-lib=dylib=ecal_core");
        println!("cargo:rustc-link-lib=stdc++");
        // Of the old kind, which holds for what the library needs in its turn, too.
        println!("cargo:rustc-link-arg-bins=-Wl,--disable-new-dtags");
        for way in ["-rpath", "-rpath-link"] {
            println!("cargo:rustc-link-arg-bins=-Wl,{way},{}", self.libraries.display());
        }
        Ok(())
    }

    /// Links a program of nothing but the adaptor, so that a library that does not fit is found here, where
    /// it does no harm.
    fn try_link(&self, build: &cc::Build) -> Result<(), String> {
        let out = out_folder();
        let main = out.join("main.cpp");
        std::fs::write(&main, TRIAL).map_err(|error| error.to_string())?;
        let compiler = build.try_get_compiler().map_err(|error| error.to_string())?;
        let mut link = Command::new(compiler.path());
        link.arg("-I").arg(table::include()).args(["-pie", "-o"]).arg(out.join("trial")).arg(main);
        link.arg("-Wl,--whole-archive").arg(out.join(format!("lib{ADAPTOR}.a")));
        link.arg("-Wl,--no-whole-archive").arg(self.libraries.join(LIBRARY)).arg("-pthread");
        link.arg(format!("-Wl,-rpath-link,{}", self.libraries.display()));
        let output = link.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text
            .lines()
            .find(|line| !line.ends_with(':') && !line.contains("warning"))
            .unwrap_or("no reason given");
        Err(format!("{LIBRARY} does not link: {line}"))
    }
}

fn out_folder() -> PathBuf {
    std::env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR")
}

/// With what the adaptor needs of the kit and of the driver.
const TRIAL: &str = "#include \"myelin_bench_kit.h\"\n\
    void myelin_bench_error(const char *, const char *) {}\n\
    uint64_t myelin_bench_now_ns() { return 0; }\n\
    extern \"C\" int myelin_ecal_enter(const char *) { return 0; }\n\
    extern \"C\" void myelin_ecal_leave() {}\n\
    int main() { return 0; }\n";
const ADAPTOR: &str = "myelin_ecal_link";
const LIBRARY: &str = "libecal_core.so";
const HEADER: &str = "ecal/pubsub/publisher.h";
const LIBRARIES: [&str; 3] = ["lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
const NO_FOLDER: &str = "not built in: install eCAL 6 (https://ecal.io; the libecal of Debian is something \
    else), and build Myelin with ECAL_DIR=/where/it/is, /usr for its packages \
    (bench/drivers/ecal/README.md)";
const HOW: &str = "see bench/drivers/ecal/README.md";
