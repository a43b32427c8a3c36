//! Compiles the adaptor against Fast DDS if its development package is installed. Without it the
//! driver builds all the same and says what to install.

#[path = "../table.rs"]
mod table;

fn main() {
    // Where it does not exist, cargo runs this script again at every build, until it does.
    println!("cargo:rerun-if-changed={HEADER}");
    match version() {
        Some(version) if version.starts_with(SERIES) => compile(),
        Some(version) => {
            table::compile_missing(&format!("needs Fast DDS {SERIES}x, found {version}"));
        }
        None => {
            let packages = "g++ libfastrtps-dev libfastcdr-dev";
            table::compile_missing(&format!("not installed: apt-get install {packages}"));
        }
    }
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
    table::compile(&[]);
    cc::Build::new()
        .cpp(true)
        .files(["src/link.cpp", "src/endpoints.cpp"])
        .include(table::include())
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
