//! What is wrong, and what mends it.

use serde::Serialize;

use crate::text::printable;

/// One cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its stable name.
    #[serde(rename = "finding")]
    pub id: &'static str,
    /// One sentence.
    pub found: String,
    /// What mends it.
    #[serde(flatten)]
    pub fix: Fix,
    /// The name of the node that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The process that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// A remedy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fix {
    /// A command for a shell.
    Command(String),
    /// What to change: a line of code, a setting.
    Change(String),
}

impl Finding {
    /// A finding whose remedy is a command.
    pub fn command(id: &'static str, found: String, command: String) -> Finding {
        Finding::new(id, found, Fix::Command(printable(&command).into_owned()))
    }

    /// A finding whose remedy is a change.
    pub fn change(id: &'static str, found: String, change: String) -> Finding {
        Finding::new(id, found, Fix::Change(printable(&change).into_owned()))
    }

    fn new(id: &'static str, found: String, fix: Fix) -> Finding {
        Finding { id, found: printable(&found).into_owned(), fix, node: None, pid: None }
    }

    /// The node and the process that have it.
    pub fn of(mut self, node: &str, pid: u32) -> Finding {
        self.node = Some(node.to_owned());
        self.pid = (pid != 0).then_some(pid);
        self
    }

    /// The sentence with its name, broken between words, and below it the remedy. A command is never
    /// broken.
    pub fn text(&self) -> String {
        let found = wrapped("", &format!("{} [{}]", self.found, self.id));
        match &self.fix {
            Fix::Command(command) => format!("{found}    {command}\n"),
            Fix::Change(change) => found + &wrapped("    ", change),
        }
    }
}

/// `text` behind `indent` in lines of at most 80 characters, as far as its words allow.
pub fn wrapped(indent: &str, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        let width = indent.len() + line.chars().count() + 1 + word.chars().count();
        if line.is_empty() {
            line.push_str(word);
        } else if width > WIDTH && word != "%" {
            lines.push(word.to_owned());
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

const WIDTH: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_cannot_write_to_the_terminal() {
        let command = format!("kill -CONT {}", "1".repeat(90));
        let finding = Finding::command("publisher_stopped", "a\u{1b}[2Jb is".into(), command);
        let text = finding.text();
        assert!(
            text.starts_with("a\\u{1b}[2Jb is [publisher_stopped]\n    kill -CONT 11"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2, "a command is never broken");
    }

    #[test]
    fn sentences_are_broken_between_words() {
        let text = wrapped("    ", &"word ".repeat(40));
        assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("    word")));
        assert_eq!(text.matches("word").count(), 40);
    }
}
