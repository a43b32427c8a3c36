//! Compiles the adaptor against the LibXR that `LIBXR_DIR` names: the build folder of its CMake
//! project. Without one, or with one that does not serve, the driver builds all the same and says
//! what to do; the build never fails for it.

#[path = "../table.rs"]
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn main() {
    println!("cargo:rerun-if-env-changed=LIBXR_DIR");
    let Some(folder) = std::env::var_os("LIBXR_DIR").filter(|folder| !folder.is_empty()) else {
        return table::compile_missing(NO_FOLDER);
    };
    let folder = PathBuf::from(folder);
    for file in [LIBRARY, COMMANDS] {
        println!("cargo:rerun-if-changed={}", folder.join(file).display());
    }
    if let Err(reason) = LibXr::find(&folder).and_then(|libxr| libxr.link()) {
        let reason = format!("LIBXR_DIR={}: {reason}", folder.display());
        println!("cargo:warning={reason}; {WITHOUT}");
        table::compile_missing(&format!("not built in: {reason}; {HOW}"));
    }
}

/// A built LibXR.
struct LibXr {
    folder: PathBuf,
    /// The folder of its sources.
    source: PathBuf,
    /// What its own files were compiled with: definitions that its headers depend on, folders of
    /// headers, language and optimisation. CMake gives the same to every project that links it.
    flags: Vec<String>,
}

impl LibXr {
    fn find(folder: &Path) -> Result<Self, String> {
        if !folder.is_absolute() || !folder.is_dir() {
            return Err("no such folder; give an absolute path".to_owned());
        }
        let folder = folder.to_owned();
        for (file, remedy) in [
            (LIBRARY, "the folder given to `cmake -B`, built as a static library"),
            (COMMANDS, "configured with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
        ] {
            if !folder.join(file).is_file() {
                return Err(format!("no {file} there; it has to be {remedy}"));
            }
        }
        let commands = std::fs::read(folder.join(COMMANDS)).map_err(|error| error.to_string())?;
        let (source, flags) = compilation(&commands)?;
        let libxr = LibXr { folder, source, flags };
        let header = libxr.source.join(HEADER);
        if !header.is_file() {
            return Err(format!("no header {}", header.display()));
        }
        if !libxr.flags.iter().any(|flag| ["-O2", "-O3"].contains(&flag.as_str())) {
            return Err("not optimised; configure with -DCMAKE_BUILD_TYPE=Release".to_owned());
        }
        Ok(libxr)
    }

    /// Compiles the adaptor and has it linked, if that works.
    fn link(&self) -> Result<(), String> {
        let mut build = cc::Build::new();
        // Also in a debug build: what is measured is the middleware, as its users compile it.
        build.cpp(true).no_default_flags(true).flags(&self.flags).flags(["-Wall", "-Wextra"]);
        build.file("src/link.cpp").include(table::include()).cargo_metadata(false);
        build.try_compile(ADAPTOR).map_err(|error| {
            let error = error.to_string();
            // The rest is the command line; what the compiler says, cargo shows.
            let error = error.split(" \"").next().unwrap_or_default();
            format!("the adaptor does not compile; it needs the topics of 2026-07: {error}")
        })?;
        self.try_link(&build)?;
        table::compile(&[("VERSION", &self.version())]);
        println!("cargo:rustc-link-search=native={}", out_folder().display());
        println!("cargo:rustc-link-search=native={}", self.folder.display());
        println!("cargo:rustc-link-lib=static={ADAPTOR}");
        println!("cargo:rustc-link-lib=static=xr");
        println!("cargo:rustc-link-lib=stdc++");
        Ok(())
    }

    /// Links a program of nothing but the adaptor, so that a library that does not fit is found
    /// here, where it does no harm.
    fn try_link(&self, build: &cc::Build) -> Result<(), String> {
        let out = out_folder();
        let main = out.join("main.cpp");
        std::fs::write(&main, TRIAL).map_err(|error| error.to_string())?;
        let compiler = build.try_get_compiler().map_err(|error| error.to_string())?;
        let mut link = Command::new(compiler.path());
        link.arg("-I").arg(table::include()).args(["-pie", "-o"]).arg(out.join("trial")).arg(main);
        link.arg("-Wl,--whole-archive").arg(out.join(format!("lib{ADAPTOR}.a")));
        link.arg("-Wl,--no-whole-archive").arg(self.folder.join(LIBRARY)).arg("-pthread");
        let output = link.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| !line.ends_with(':')).unwrap_or("no reason given");
        Err(format!("{LIBRARY} does not link: {line}"))
    }

    /// LibXR numbers no versions: the commit of its sources, if they are a clone.
    fn version(&self) -> String {
        let git = |arguments: &[&str]| {
            let output = Command::new("git").arg("-C").arg(&self.source).args(arguments).output();
            let output = output.ok().filter(|output| output.status.success())?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        // The clone around the sources may be somebody else's.
        let top = git(&["rev-parse", "--show-toplevel"]).map(PathBuf::from);
        let own = top.and_then(|top| top.canonicalize().ok()) == self.source.canonicalize().ok();
        let version = own.then(|| git(&["log", "-1", "--format=%h of %cs"])).flatten();
        version.unwrap_or_else(|| "of an unknown commit".to_owned())
    }
}

/// The folder of LibXR's sources, and the flags they were compiled with.
fn compilation(commands: &[u8]) -> Result<(PathBuf, Vec<String>), String> {
    let commands: Value = serde_json::from_slice(commands)
        .map_err(|error| format!("{COMMANDS} is not understood: {error}"))?;
    let mut entries = commands.as_array().into_iter().flatten();
    let found = entries.find_map(|entry| {
        let source = entry["file"].as_str()?.strip_suffix(TOPIC)?;
        Some((PathBuf::from(source), shlex::split(entry["command"].as_str()?)?))
    });
    let Some((source, words)) = found else {
        return Err(format!("{COMMANDS} compiles no {TOPIC}: not LibXR's build folder"));
    };
    Ok((source, flags(&words)))
}

/// What of a compiler's command line concerns those that include its headers too.
fn flags(words: &[String]) -> Vec<String> {
    let mut flags = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "-isystem" {
            flags.extend(words.next().map(|folder| format!("-isystem{folder}")));
        } else if let Some(folder) = word.strip_prefix("-I") {
            // The warnings of its headers are not ours to mend.
            flags.push(format!("-isystem{folder}"));
        } else if ["-D", "-O", "-std=", "-m", "-f"].iter().any(|kept| word.starts_with(kept)) {
            flags.push(word.clone());
        }
    }
    flags
}

fn out_folder() -> PathBuf {
    std::env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR")
}

/// With what the adaptor needs of the kit.
const TRIAL: &str = "#include \"myelin_bench_kit.h\"\n\
    void myelin_bench_error(const char *, const char *) {}\n\
    uint64_t myelin_bench_now_ns() { return 0; }\n\
    int main() { return 0; }\n";
const ADAPTOR: &str = "myelin_libxr_link";
const LIBRARY: &str = "libxr.a";
const COMMANDS: &str = "compile_commands.json";
const TOPIC: &str = "src/middleware/message/topic.cpp";
const HEADER: &str = "src/middleware/message/message.hpp";
const WITHOUT: &str = "the driver of LibXR is built without it";
const NO_FOLDER: &str = "not built in: to install it, git clone https://github.com/Jiu-xiao/libxr; cmake -S \
    libxr -B libxr/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON; cmake --build \
    libxr/build -j; then build Myelin with LIBXR_DIR=$PWD/libxr/build (bench/drivers/libxr/README.md)";
const HOW: &str = "see bench/drivers/libxr/README.md, install LibXR so, and build Myelin again";
