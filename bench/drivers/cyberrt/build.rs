//! Compiles the adaptor against the CyberRT that `CYBERRT_DIR` names: the build folder of its CMake
//! project. Without a usable one the driver is built without CyberRT and says what to do; the build
//! never fails for that.

use std::path::{Path, PathBuf};

use myelin_bench_build::compile_commands::{COMMANDS, Compilation};
use myelin_bench_build::installation::Installation;
use myelin_bench_build::{adaptor, cc, compile_commands, driver, installation, shlex, table};

fn main() {
    driver(|| CYBERRT.build(|folder| CyberRt::find(folder)?.link()));
}

/// A built CyberRT.
struct CyberRt {
    folder: PathBuf,
    /// CMake generates messages in the folder of its sources.
    compilation: Compilation,
    /// The libraries that it was linked with; a program that links it needs them, too.
    libraries: Vec<String>,
    version: String,
    has_arenas: bool,
}

impl CyberRt {
    fn find(folder: &Path) -> Result<Self, String> {
        for file in [LIBRARY, COMMANDS] {
            println!("cargo:rerun-if-changed={}", folder.join(file).display());
        }
        installation::require(
            folder,
            &[
                (CACHE, "the folder given to `cmake -B`"),
                (LIBRARY, "the folder given to `cmake -B`, and built"),
                (COMMANDS, compile_commands::REMEDY),
                (LINK, "configured with -G 'Unix Makefiles'"),
            ],
        )?;
        let read = |file: &str| {
            std::fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))
        };
        let cache = read(CACHE)?;
        let compilation = Compilation::of(NODE, folder, CYBERRT.middleware)?;
        if !compilation.is_optimised() {
            let kind = cached(&cache, "CMAKE_BUILD_TYPE").filter(|kind| !kind.is_empty());
            let kind = kind.unwrap_or("Debug, its default,");
            return Err(format!(
                "built as {kind} without optimisation; configure with -DCMAKE_BUILD_TYPE=Release"
            ));
        }
        for file in MESSAGE {
            let file = compilation.source.join(file);
            if !file.is_file() {
                return Err(format!("no {}; its CMake project generates it", file.display()));
            }
        }
        let words = shlex::split(&read(LINK)?).unwrap_or_default();
        let libraries = words.into_iter().filter(|word| is_library(word)).collect();
        let version = cached(&cache, "CMAKE_PROJECT_VERSION").unwrap_or("of an unknown version");
        let writer = std::fs::read_to_string(compilation.source.join(WRITER)).unwrap_or_default();
        let has_arenas = writer.contains("AcquireMessage");
        let (folder, version) = (folder.to_owned(), version.to_owned());
        Ok(CyberRt { folder, compilation, libraries, version, has_arenas })
    }

    /// Compiles the adaptor and links it, if that works.
    fn link(&self) -> Result<(), String> {
        let mut message = self.build();
        message.file(self.compilation.source.join(MESSAGE[0])).warnings(false);
        let mut adaptor = self.build();
        adaptor.file("src/link.cpp").includes(table::include()).flags(["-Wall", "-Wextra"]);
        // The kit's tables have members that are not used here.
        adaptor.flag("-Wno-missing-field-initializers");
        if self.has_arenas {
            adaptor.define("WITH_ARENAS", None);
        }
        for (build, name) in [(&mut message, MESSAGE_LIBRARY), (&mut adaptor, ADAPTOR)] {
            adaptor::compile(build, name)
                .map_err(|reason| format!("{reason}; it needs CyberRT 9 or 10"))?;
        }
        let message = adaptor::out_folder().join(format!("lib{MESSAGE_LIBRARY}.a"));
        let words = std::iter::once(message.display().to_string()).chain(self.words());
        adaptor::try_link(&adaptor, ADAPTOR, OF_RUST, words)
            .map_err(|reason| format!("{LIBRARY} {reason}"))?;
        let no_arenas = format!("CyberRT {} has no arenas: {FROM_10}", self.version);
        let mut texts = vec![("VERSION", self.version.as_str())];
        if !self.has_arenas {
            texts.push(("MISSING_ARENAS", &no_arenas));
        }
        table::compile(&texts);
        for name in [ADAPTOR, MESSAGE_LIBRARY] {
            adaptor::link(name);
        }
        println!("cargo:rustc-link-lib=stdc++");
        for word in self.words() {
            // Not as arguments: those come after libc, whose heap would then be used instead of
            // tcmalloc's.
            match word.strip_prefix("-l") {
                Some(library) => println!("cargo:rustc-link-lib={library}"),
                None => println!("cargo:rustc-link-arg={word}"),
            }
        }
        Ok(())
    }

    fn build(&self) -> cc::Build {
        let mut build = cc::Build::new();
        // As its users compile it, even in a debug build, because the middleware is what is
        // measured.
        build.cpp(true).no_default_flags(true).flags(&self.compilation.flags);
        build
    }

    /// Arguments of the linker: the library, its folder, and the libraries that it needs.
    fn words(&self) -> Vec<String> {
        let folder = self.folder.display();
        let mut words = vec![format!("{folder}/{LIBRARY}"), format!("-Wl,-rpath,{folder}")];
        words.extend(self.libraries.iter().cloned());
        // GNU's linker, with which CMake has linked, searches here by itself; Rust's does not.
        words.push("-L/usr/local/lib".to_owned());
        words
    }
}

/// An entry of CMake's cache.
fn cached<'a>(cache: &'a str, name: &str) -> Option<&'a str> {
    let entries = cache.lines().filter_map(|line| line.split_once('='));
    entries
        .into_iter()
        .find_map(|(key, value)| (key.split(':').next() == Some(name)).then_some(value))
}

/// Whether a word of the command line that linked it is a library.
fn is_library(word: &str) -> bool {
    word.starts_with("-l")
        || word.starts_with("-L")
        || word.contains(".so") && word.starts_with('/')
}

/// Functions of the driver in Rust.
const OF_RUST: &str =
    "extern \"C\" int myelin_cyberrt_enter(const struct myelin_bench_prepare *) { return 0; }\n";
const ADAPTOR: &str = "myelin_cyberrt_link";
const MESSAGE_LIBRARY: &str = "myelin_cyberrt_message";
const CACHE: &str = "CMakeCache.txt";
const LIBRARY: &str = "libcyber.so";
/// The file with the command line that linked the library.
const LINK: &str = "CMakeFiles/cyber.dir/link.txt";
const NODE: &str = "cyber/node/node.cc";
const WRITER: &str = "cyber/node/writer.h";
const FROM_10: &str = "set CYBERRT_DIR to the build folder of CyberRT 10 \
                       (bench/drivers/cyberrt/README.md)";
const MESSAGE: [&str; 2] =
    ["cyber/benchmark/benchmark_msg.pb.cc", "cyber/benchmark/benchmark_msg.pb.h"];
const CYBERRT: Installation = Installation {
    middleware: "CyberRT",
    variable: "CYBERRT_DIR",
    absent: "not built in: there is no package of CyberRT to install; build it with CMake \
             (bench/drivers/cyberrt/README.md) and set CYBERRT_DIR to its build folder when building Myelin",
    remedy: "see bench/drivers/cyberrt/README.md, and build Myelin again",
};
