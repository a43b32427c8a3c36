//! Compiles the adaptor against Fast DDS if its development package is installed. Without it the
//! driver builds all the same and says what to install.

use std::path::Path;

use myelin_bench_build::{adaptor, driver, packages, table};

fn main() {
    // Where it does not exist, cargo runs this script again at every build, until it does.
    println!("cargo:rerun-if-changed={HEADER}");
    driver(|| {
        packages::built_here()?;
        compile(&find()?)
    });
}

/// The version that is installed, if this driver knows its series; otherwise why it is of no use.
fn find() -> Result<Vec<u32>, String> {
    match version() {
        Some(version) if (OLDEST..BEYOND).contains(&version.as_slice()) => Ok(version),
        Some(version) => {
            Err(format!("needs Fast DDS 2.5 or later, below 4, found {}", dotted(&version)))
        }
        None if Path::new(HEADER).exists() => Err(format!(
            "not built in: {HEADER} is there, but no C++ compiler: apt-get install g++"
        )),
        None => Err(packages::not_installed("Fast DDS")),
    }
}

/// The version that Fast DDS's own header says; `None` if there is no such header or no C++
/// compiler. There is no pkg-config file to ask.
fn version() -> Option<Vec<u32>> {
    let text = adaptor::compiler("c++17").file("src/probe.cpp").cargo_warnings(false).try_expand();
    let text = String::from_utf8(text.ok()?).ok()?;
    // The preprocessor puts line markers, which begin with a `#`, wherever it likes.
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let text = text.join(" ");
    let (_, numbers) = text.split_once("found_fastdds ")?;
    numbers.split_whitespace().map(|number| number.parse().ok()).collect()
}

fn dotted(version: &[u32]) -> String {
    version.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

fn compile(version: &[u32]) -> Result<(), String> {
    let mut build = adaptor::compiler("c++17");
    build
        .files(["src/link.cpp", "src/endpoints.cpp"])
        // Fast DDS's headers have unused parameters and what its own releases deprecate.
        .flag("-Wno-unused-parameter")
        .flag("-Wno-deprecated-declarations");
    adaptor::compile(&mut build, ADAPTOR)
        .map_err(|reason| format!("not built in: Fast DDS {}: {reason}", dotted(version)))?;
    // In the order in which they need each other.
    table::compile(&[]);
    adaptor::link(ADAPTOR);
    let library = if version[0] < 3 { "fastrtps" } else { "fastdds" };
    for name in [library, "fastcdr", "stdc++"] {
        println!("cargo:rustc-link-lib={name}");
    }
    Ok(())
}

const ADAPTOR: &str = "myelin_fastdds_link";
/// The series whose API this driver knows: from this version on, and none from that on.
const OLDEST: &[u32] = &[2, 5];
const BEYOND: &[u32] = &[4];
const HEADER: &str = "/usr/include/fastdds/dds/domain/DomainParticipantFactory.hpp";
