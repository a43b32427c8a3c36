//! Compiles the adaptor against the CyberRT that `CYBERRT_DIR` names: the build folder of its CMake
//! project, built by its user. Without one, or with one that does not serve, the driver builds all the same and says
//! what to do; the build never fails for it.

#[path = "../table.rs"]
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn main() {
    println!("cargo:rerun-if-env-changed=CYBERRT_DIR");
    let Some(folder) = std::env::var_os("CYBERRT_DIR").filter(|folder| !folder.is_empty()) else {
        return table::compile_missing(NO_FOLDER);
    };
    let folder = PathBuf::from(folder);
    for file in [LIBRARY, COMMANDS] {
        println!("cargo:rerun-if-changed={}", folder.join(file).display());
    }
    if let Err(reason) = CyberRt::find(&folder).and_then(|cyberrt| cyberrt.link()) {
        let reason = format!("CYBERRT_DIR={}: {reason}", folder.display());
        println!("cargo:warning={reason}; {WITHOUT}");
        table::compile_missing(&format!("not built in: {reason}; {HOW}"));
    }
}

/// A built CyberRT.
struct CyberRt {
    folder: PathBuf,
    /// The folder of its sources, in which CMake has generated messages.
    source: PathBuf,
    /// What its own files were compiled with: definitions that its headers depend on, folders of
    /// headers, language and optimisation. CMake gives the same to every project that links it.
    flags: Vec<String>,
    /// The libraries that it was linked with, which who links it needs too.
    libraries: Vec<String>,
    version: String,
}

impl CyberRt {
    fn find(folder: &Path) -> Result<Self, String> {
        if !folder.is_absolute() || !folder.is_dir() {
            return Err("no such folder; give an absolute path".to_owned());
        }
        let folder = folder.to_owned();
        for (file, remedy) in [
            (CACHE, "the folder given to `cmake -B`"),
            (LIBRARY, "the folder given to `cmake -B`, and built"),
            (COMMANDS, "configured with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
            (LINK, "configured with -G 'Unix Makefiles'"),
        ] {
            if !folder.join(file).is_file() {
                return Err(format!("no {file} there; it has to be {remedy}"));
            }
        }
        let read = |file: &str| {
            std::fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))
        };
        let cache = read(CACHE)?;
        let (source, flags) = compilation(&read(COMMANDS)?)?;
        if !flags.iter().any(|flag| ["-O2", "-O3"].contains(&flag.as_str())) {
            let kind = cached(&cache, "CMAKE_BUILD_TYPE").filter(|kind| !kind.is_empty());
            let kind = kind.unwrap_or("Debug, its default,");
            return Err(format!(
                "built as {kind} without optimisation; configure with -DCMAKE_BUILD_TYPE=Release"
            ));
        }
        for file in MESSAGE {
            if !source.join(file).is_file() {
                let file = source.join(file);
                return Err(format!("no {}; its CMake project generates it", file.display()));
            }
        }
        let words = shlex::split(&read(LINK)?).unwrap_or_default();
        let libraries = words.into_iter().filter(|word| is_library(word)).collect();
        let version = cached(&cache, "CMAKE_PROJECT_VERSION").unwrap_or("of an unknown version");
        Ok(CyberRt { folder, source, flags, libraries, version: version.to_owned() })
    }

    /// Compiles the adaptor and has it linked, if that works.
    fn link(&self) -> Result<(), String> {
        let mut message = self.build();
        message.file(self.source.join(MESSAGE[0])).warnings(false);
        let mut adaptor = self.build();
        adaptor.file("src/link.cpp").include(table::include()).flags(["-Wall", "-Wextra"]);
        // What is not used of the kit's tables.
        adaptor.flag("-Wno-missing-field-initializers");
        for (build, name) in [(&message, MESSAGE_LIBRARY), (&adaptor, ADAPTOR)] {
            build.try_compile(name).map_err(|error| {
                let error = error.to_string();
                // The rest is the command line; what the compiler says, cargo shows.
                let error = error.split(" \"").next().unwrap_or_default();
                format!("the adaptor does not compile; it needs CyberRT 10: {error}")
            })?;
        }
        self.try_link(&adaptor)?;
        table::compile(&[("VERSION", &self.version)]);
        println!("cargo:rustc-link-search=native={}", out_folder().display());
        for name in [ADAPTOR, MESSAGE_LIBRARY] {
            println!("cargo:rustc-link-lib=static={name}");
        }
        println!("cargo:rustc-link-lib=stdc++");
        for word in self.words() {
            println!("cargo:rustc-link-arg={word}");
        }
        Ok(())
    }

    fn build(&self) -> cc::Build {
        let mut build = cc::Build::new();
        // Also in a debug build: what is measured is the middleware, as its users compile it.
        build.cpp(true).no_default_flags(true).flags(&self.flags).cargo_metadata(false);
        build
    }

    /// Of a linker's command line: the library, where it is found, and what it needs in its turn.
    fn words(&self) -> Vec<String> {
        let folder = self.folder.display();
        let mut words = vec![format!("{folder}/{LIBRARY}"), format!("-Wl,-rpath,{folder}")];
        words.extend(self.libraries.iter().cloned());
        words
    }

    /// Links a program of nothing but the adaptor, so that a library that does not fit is found
    /// here, where it does no harm.
    fn try_link(&self, build: &cc::Build) -> Result<(), String> {
        let out = out_folder();
        let main = out.join("main.cpp");
        std::fs::write(&main, TRIAL).map_err(|error| error.to_string())?;
        let compiler = build.try_get_compiler().map_err(|error| error.to_string())?;
        let mut link = Command::new(compiler.path());
        link.arg("-I")
            .arg(table::include())
            .args(["-I", "src", "-pie", "-o"])
            .arg(out.join("trial"))
            .arg(main);
        link.arg("-Wl,--whole-archive").arg(out.join(format!("lib{ADAPTOR}.a")));
        link.arg("-Wl,--no-whole-archive").arg(out.join(format!("lib{MESSAGE_LIBRARY}.a")));
        let output = link.args(self.words()).arg("-pthread").output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| !line.ends_with(':')).unwrap_or("no reason given");
        Err(format!("{LIBRARY} does not link: {line}"))
    }
}

/// An entry of CMake's cache.
fn cached<'a>(cache: &'a str, name: &str) -> Option<&'a str> {
    let entries = cache.lines().filter_map(|line| line.split_once('='));
    entries
        .into_iter()
        .find_map(|(key, value)| (key.split(':').next() == Some(name)).then_some(value))
}

/// The folder of CyberRT's sources, and the flags they were compiled with.
fn compilation(commands: &str) -> Result<(PathBuf, Vec<String>), String> {
    let commands: Value = serde_json::from_str(commands)
        .map_err(|error| format!("{COMMANDS} is not understood: {error}"))?;
    let mut entries = commands.as_array().into_iter().flatten();
    let found = entries.find_map(|entry| {
        let source = entry["file"].as_str()?.strip_suffix(NODE)?;
        Some((PathBuf::from(source), shlex::split(entry["command"].as_str()?)?))
    });
    let Some((source, words)) = found else {
        return Err(format!("{COMMANDS} compiles no {NODE}: not CyberRT's build folder"));
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

/// Of the command line that has linked it.
fn is_library(word: &str) -> bool {
    word.starts_with("-l")
        || word.starts_with("-L")
        || word.contains(".so") && word.starts_with('/')
}

fn out_folder() -> PathBuf {
    std::env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR")
}

/// With what the adaptor needs of the kit and of Rust.
const TRIAL: &str = "#include \"link.h\"\n\
    void myelin_bench_error(const char *, const char *) {}\n\
    uint64_t myelin_bench_now_ns() { return 0; }\n\
    int myelin_cyberrt_enter(const struct myelin_bench_prepare *) { return 0; }\n\
    int main() { return 0; }\n";
const ADAPTOR: &str = "myelin_cyberrt_link";
const MESSAGE_LIBRARY: &str = "myelin_cyberrt_message";
const CACHE: &str = "CMakeCache.txt";
const LIBRARY: &str = "libcyber.so";
const COMMANDS: &str = "compile_commands.json";
/// The command line that has linked the library.
const LINK: &str = "CMakeFiles/cyber.dir/link.txt";
const NODE: &str = "cyber/node/node.cc";
const MESSAGE: [&str; 2] =
    ["cyber/benchmark/benchmark_msg.pb.cc", "cyber/benchmark/benchmark_msg.pb.h"];
const WITHOUT: &str = "the driver of CyberRT is built without it";
const NO_FOLDER: &str = "not built in: there is no package of CyberRT to install; build it with \
    CMake (bench/drivers/cyberrt/README.md) and set CYBERRT_DIR to its build folder when building \
    Myelin";
const HOW: &str = "see bench/drivers/cyberrt/README.md, and build Myelin again";
