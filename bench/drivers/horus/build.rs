//! Builds the bridge against the HORUS that `HORUS_DIR` names: a checkout of its sources. Without a
//! usable one the driver is built without HORUS and says what to do; the build never fails for
//! that.
//!
//! HORUS is in no registry, and a manifest cannot name a folder that may not exist. So the bridge
//! is a separate package, made here, with HORUS's lock file. It is a dynamic library, because two
//! Rust libraries, each with a standard library, do not link statically. The plain program of
//! `bench/check/fidelity.py` is built with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use myelin_bench_build::installation::{self, Installation};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(has_horus)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=bridge");
    let built = HORUS.build(|folder| Horus::find(folder)?.build());
    let (version, missing) = match built {
        Ok(version) => (version, String::new()),
        Err(missing) => (String::new(), missing),
    };
    println!("cargo:rustc-env=HORUS_MISSING={missing}");
    println!("cargo:rustc-env=HORUS_VERSION={version}");
}

/// A checkout of HORUS.
struct Horus {
    folder: PathBuf,
}

impl Horus {
    fn find(folder: &Path) -> Result<Self, String> {
        let clone = "a clone of HORUS";
        installation::require(folder, &[(CORE, clone), (LOCK, clone)])?;
        println!("cargo:rerun-if-changed={}", folder.join("horus_core").display());
        Ok(Horus { folder: folder.to_owned() })
    }

    /// Builds the bridge and links it. Returns HORUS's version.
    fn build(&self) -> Result<String, String> {
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let package = out.join("bridge");
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(&package)?;
            std::fs::write(package.join("Cargo.toml"), self.manifest()?)?;
            std::fs::copy(self.folder.join(LOCK), package.join(LOCK)).map(drop)
        };
        write().map_err(|error| format!("{}: {error}", package.display()))?;
        let target = out.join("target");
        // Release even in a debug build, as its users compile it, because HORUS is what is
        // measured.
        let output = Command::new(std::env::var_os("CARGO").expect("cargo sets CARGO"))
            .args(["build", "--release", "--quiet", "--manifest-path"])
            .arg(package.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            // Set by clippy, when clippy builds.
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .output()
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().find(|line| line.starts_with("error"));
            return Err(format!("does not build: {}", line.unwrap_or("no reason given")));
        }
        // In a clone the library is beside the executable; an installed one is found by the loader.
        let profile = out.ancestors().nth(3).expect("<profile>/build/<package>/out");
        let beside = profile.join("horus");
        let install = || -> std::io::Result<()> {
            std::fs::create_dir_all(&beside)?;
            for file in [LIBRARY, PLAIN] {
                // A running program keeps its removed file.
                let _ = std::fs::remove_file(beside.join(file));
                std::fs::copy(target.join("release").join(file), beside.join(file))?;
            }
            Ok(())
        };
        install().map_err(|error| format!("{}: {error}", beside.display()))?;
        println!("cargo:rustc-cfg=has_horus");
        println!("cargo:rustc-link-search=native={}", beside.display());
        println!("cargo:rustc-link-lib=dylib=myelin_horus");
        println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/horus");
        self.version()
    }

    fn manifest(&self) -> std::io::Result<String> {
        let here = std::env::current_dir()?.join("bridge");
        // HORUS's own profile; `{:?}` quotes as TOML does.
        Ok(format!(
            "[package]\nname = \"myelin-horus\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [lib]\nname = \"myelin_horus\"\ncrate-type = [\"cdylib\"]\npath = {:?}\n\n\
             [[bin]]\nname = {PLAIN:?}\npath = {:?}\n\n\
             [dependencies]\nhorus_core = {{ path = {:?} }}\nserde = \"1\"\n\n\
             [profile.release]\nlto = \"thin\"\n\n[workspace]\n",
            here.join("lib.rs"),
            here.join("roundtrip.rs"),
            self.folder.join("horus_core"),
        ))
    }

    /// The version of its manifest, and the commit if it is a clone.
    fn version(&self) -> Result<String, String> {
        let manifest = std::fs::read_to_string(self.folder.join(CORE));
        let manifest = manifest.map_err(|error| format!("{CORE}: {error}"))?;
        let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
        let version = line.unwrap_or("of an unknown version").trim_matches('"');
        let commit = installation::commit(&self.folder);
        Ok(commit.map_or_else(|| version.to_owned(), |commit| format!("{version}, {commit}")))
    }
}

const CORE: &str = "horus_core/Cargo.toml";
const LOCK: &str = "Cargo.lock";
const LIBRARY: &str = "libmyelin_horus.so";
const PLAIN: &str = "roundtrip";
const HORUS: Installation = Installation {
    middleware: "HORUS",
    variable: "HORUS_DIR",
    absent: "not built in: to install it, git clone https://github.com/softmata/horus, and build Myelin \
    with HORUS_DIR=/absolute/path/to/horus (bench/drivers/horus/README.md)",
    remedy: "see bench/drivers/horus/README.md",
};
