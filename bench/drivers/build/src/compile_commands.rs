//! How a middleware was compiled, read from the `compile_commands.json` in its CMake build folder.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The settings with which the middleware's own files were compiled.
pub struct Compilation {
    /// Folder of its sources.
    pub source: PathBuf,
    /// Definitions that its headers depend on, header folders, language and optimisation. CMake
    /// passes the same to every project that links it.
    pub flags: Vec<String>,
}

impl Compilation {
    /// The compilation of `file`, a path within the sources, which identifies the middleware.
    pub fn of(file: &str, folder: &Path, middleware: &str) -> Result<Self, String> {
        let commands = std::fs::read(folder.join(COMMANDS));
        let commands = commands.map_err(|error| format!("{COMMANDS}: {error}"))?;
        let commands: Value = serde_json::from_slice(&commands)
            .map_err(|error| format!("{COMMANDS} cannot be read: {error}"))?;
        let mut entries = commands.as_array().into_iter().flatten();
        let found = entries.find_map(|entry| {
            let source = PathBuf::from(entry["file"].as_str()?.strip_suffix(file)?);
            let words = shlex::split(entry["command"].as_str()?)?;
            Some(Compilation { source, flags: flags(&words) })
        });
        found.ok_or(format!(
            "{COMMANDS} does not compile {file}: this is not the build folder of {middleware}"
        ))
    }

    /// Whether it was compiled with optimisation.
    pub fn is_optimised(&self) -> bool {
        self.flags.iter().any(|flag| ["-O2", "-O3"].contains(&flag.as_str()))
    }
}

/// The parts of a compiler's command line that also concern users of the headers.
fn flags(words: &[String]) -> Vec<String> {
    let mut flags = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "-isystem" {
            flags.extend(words.next().map(|folder| format!("-isystem{folder}")));
        } else if let Some(folder) = word.strip_prefix("-I") {
            // As system headers, because we cannot fix warnings in them.
            flags.push(format!("-isystem{folder}"));
        } else if ["-D", "-O", "-std=", "-m", "-f"].iter().any(|kept| word.starts_with(kept)) {
            flags.push(word.clone());
        }
    }
    flags
}

/// In the build folder.
pub const COMMANDS: &str = "compile_commands.json";
/// The setting that makes CMake write it.
pub const REMEDY: &str = "configured with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON";
