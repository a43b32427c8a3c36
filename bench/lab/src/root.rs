//! The root of `/proc`, `/sys` and `/dev`: that of this machine, or a folder that replaces it in a
//! test.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The root of the files that describe a machine.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// The machine this runs on.
    pub fn machine() -> Self {
        Root(PathBuf::from("/"))
    }

    /// A folder with `proc`, `sys` and so on.
    pub fn at(folder: &Path) -> Self {
        Root(folder.to_owned())
    }

    /// The path of a file of the machine, such as `/proc/stat`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's text without surrounding white space. The error names the file.
    pub fn text(&self, path: &str) -> io::Result<String> {
        let text = std::fs::read_to_string(self.path(path)).map_err(|error| named(path, error))?;
        Ok(text.trim().to_owned())
    }

    /// A file's text; `None` if it cannot be read or is empty.
    pub fn line(&self, path: &str) -> Option<String> {
        self.text(path).ok().filter(|text| !text.is_empty())
    }

    /// A file that holds one number. The error names the file.
    pub fn number<T: FromStr>(&self, path: &str) -> io::Result<T> {
        let text = self.text(path)?;
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, format!("not a number: {text:?}"));
        text.parse().map_err(|_| named(path, wrong()))
    }
}

fn named(path: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_below_the_root_and_errors_name_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/good"), "-1\n").unwrap();
        std::fs::write(folder.path().join("proc/bad"), "one\n").unwrap();
        let root = Root::at(folder.path());
        assert_eq!(root.number::<i64>("/proc/good").unwrap(), -1);
        let bad = root.number::<i64>("/proc/bad").unwrap_err().to_string();
        assert!(bad.starts_with("/proc/bad: ") && bad.contains("one"), "{bad}");
        let missing = root.text("/proc/missing").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(missing.to_string().starts_with("/proc/missing: "), "{missing}");
    }
}
