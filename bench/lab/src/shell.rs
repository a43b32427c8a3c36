//! Command lines that a user can paste into a shell.

use std::borrow::Cow;
use std::path::Path;

/// A word as a shell takes it: in quotes if it needs them.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain =
        |character: char| character.is_alphanumeric() || "/._-+=:,@%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    // In quotes only the quote itself has a meaning.
    format!("'{}'", word.replace('\'', r"'\''")).into()
}

/// The command that continues a results folder, by the name under which this program was called.
pub fn resume(folder: &Path) -> String {
    let program = std::env::args_os().next().unwrap_or_else(|| "myelin".into());
    let (program, folder) = (program.to_string_lossy(), folder.to_string_lossy());
    format!("{} bench run --resume {}", quoted(&program), quoted(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_read_unchanged_by_a_shell() {
        for word in ["results/a+b", "", "my robot/mÿelin", "it's", "$HOME", "a;b", "*", "a\nb", "~"]
        {
            let mut shell = std::process::Command::new("sh");
            let output =
                shell.arg("-c").arg(format!("printf %s {}", quoted(word))).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }

    #[test]
    fn a_plain_word_stays_as_it_is() {
        assert_eq!(quoted("results/20260101-120000-quick"), "results/20260101-120000-quick");
        assert_eq!(quoted("mÿelin"), "mÿelin");
    }
}
