//! Compiles an adaptor. One that may not fit the installed middleware is tried first, and the driver says why it
//! does not fit.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::table;

/// The compiler of an adaptor, in C or C++ of this standard. It optimises even in a debug build, because the
/// middleware is what is measured.
pub fn compiler(standard: &str) -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(standard.starts_with("c++")).std(standard).includes(table::include()).opt_level(2);
    build.extra_warnings(true).warnings_into_errors(true);
    build
}

/// Adds a folder of the middleware's headers, as system headers, because we cannot fix warnings in them.
pub fn include_system(build: &mut cc::Build, folder: &Path) {
    build.flag(format!("-isystem{}", folder.display()));
}

/// Compiles the adaptor to the library `name`, without linking it.
pub fn compile(build: &mut cc::Build, name: &str) -> Result<(), String> {
    build.cargo_metadata(false).try_compile(name).map_err(|error| {
        let error = error.to_string();
        // The rest is the command line; cargo shows the compiler's output.
        let error = error.split(" \"").next().unwrap_or_default();
        format!("the adaptor does not compile: {error}")
    })
}

/// Links a program of only the adaptor, so that a library that does not fit is found here, where it
/// does no harm. `rest` is C++ code for what the adaptor needs from the driver, in addition to the
/// kit; `words` are arguments of the linker.
pub fn try_link(
    build: &cc::Build,
    name: &str,
    rest: &str,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(), String> {
    let out = out_folder();
    let main = out.join("main.cpp");
    std::fs::write(&main, format!("{KIT}{rest}")).map_err(|error| error.to_string())?;
    let compiler = build.try_get_compiler().map_err(|error| error.to_string())?;
    let mut link = std::process::Command::new(compiler.path());
    link.arg("-I").arg(table::include()[0]).args(["-pie", "-o"]).arg(out.join("trial")).arg(main);
    link.arg("-Wl,--whole-archive").arg(out.join(format!("lib{name}.a")));
    let output = link.arg("-Wl,--no-whole-archive").args(words).arg("-pthread").output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text.lines().filter(|line| !line.ends_with(':') && !line.contains("warning"));
    Err(format!("does not link: {}", lines.next().unwrap_or("no reason given")))
}

/// Links the compiled library `name`.
pub fn link(name: &str) {
    println!("cargo:rustc-link-search=native={}", out_folder().display());
    println!("cargo:rustc-link-lib=static={name}");
}

/// The folder of `lib<name>.a`.
pub fn out_folder() -> PathBuf {
    std::env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR")
}

const KIT: &str = "#include \"myelin_bench_kit.h\"\n\
    void myelin_bench_error(const char *, const char *) {}\n\
    uint64_t myelin_bench_now_ns() { return 0; }\n\
    int main() { return 0; }\n";
