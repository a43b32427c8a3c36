//! Compiles the adaptor against Fast DDS if its development package is installed. Without it the
//! driver builds all the same and says what to install.

use std::path::Path;

fn main() {
    println!("cargo:rustc-check-cfg=cfg(have_fastdds)");
    for file in ["build.rs", "src/probe.cpp", "src/link.cpp", "src/endpoints.cpp"] {
        println!("cargo:rerun-if-changed={file}");
    }
    for file in ["src/endpoints.hpp", "src/listeners.hpp", "src/octets.hpp"] {
        println!("cargo:rerun-if-changed={file}");
    }
    // Where it does not exist, cargo runs this script again at every build, until it does.
    println!("cargo:rerun-if-changed={HEADER}");
    match version() {
        Some(version) if version.starts_with(SERIES) => compile(),
        Some(version) => {
            say_missing(&format!("needs Fast DDS {SERIES}x, found {version}"));
        }
        None => say_missing("not installed: apt-get install g++ libfastrtps-dev libfastcdr-dev"),
    }
}

fn say_missing(reason: &str) {
    println!("cargo:rustc-env=FASTDDS_MISSING={reason}");
}

/// The version that Fast DDS's own header says; `None` if there is no such header or no C++
/// compiler. There is no pkg-config file to ask.
fn version() -> Option<String> {
    let text = cc::Build::new().cpp(true).file("src/probe.cpp").cargo_warnings(false).try_expand();
    let text = String::from_utf8(text.ok()?).ok()?;
    // The preprocessor puts line markers, which begin with a `#`, wherever it likes.
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let text = text.join(" ");
    let (_, numbers) = text.split_once("found_fastdds ")?;
    let numbers: Vec<&str> = numbers.split_whitespace().collect();
    Some(numbers.join("."))
}

fn compile() {
    println!("cargo:rustc-cfg=have_fastdds");
    let kit = Path::new("../../kit/include");
    println!("cargo:rerun-if-changed={}", kit.join("myelin_bench_kit.h").display());
    cc::Build::new()
        .cpp(true)
        .files(["src/link.cpp", "src/endpoints.cpp"])
        .include(kit)
        .std("c++17")
        // Also in a debug build: what is measured is the middleware.
        .opt_level(2)
        .extra_warnings(true)
        // Fast DDS's headers have unused parameters and what its own releases deprecate.
        .flag("-Wno-unused-parameter")
        .flag("-Wno-deprecated-declarations")
        .warnings_into_errors(true)
        .compile("myelin_fastdds_link");
    for name in ["fastrtps", "fastcdr"] {
        println!("cargo:rustc-link-lib={name}");
    }
}

/// The series whose API and whose leftovers this driver knows.
const SERIES: &str = "2.9.";
const HEADER: &str = "/usr/include/fastdds/dds/domain/DomainParticipantFactory.hpp";
