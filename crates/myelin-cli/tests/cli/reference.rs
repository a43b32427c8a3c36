//! docs/reference/cli.md has a section for each command, with all of its options.

use crate::support::{complaint, finish, myelin};

#[test]
fn the_reference_has_every_option() {
    let page = include_str!("../../../../docs/reference/cli.md");
    let sections: Vec<&str> = page.split("\n## ").collect();
    let in_common = sections.iter().find(|it| it.starts_with("What all commands")).unwrap();
    for group in GROUPS {
        let commands = commands_of(group);
        assert!(!commands.is_empty(), "{group}");
        for words in commands {
            let name = format!("`myelin {}`", words.join(" "));
            let section = sections.iter().find(|it| it.starts_with(&name));
            let section = section.unwrap_or_else(|| panic!("no section {name}"));
            for option in options_of(&words) {
                let is_there = |text: &str| text.contains(&format!("`{option}"));
                assert!(is_there(section) || is_there(in_common), "{name} lacks {option}");
            }
        }
    }
}

fn help(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(|it| &**it).chain(["--help"]).collect();
    let output = finish(&mut myelin(&words));
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", complaint(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The verbs of a group; itself if it has none.
fn commands_of(group: &str) -> Vec<Vec<String>> {
    let text = help(&[group.to_owned()]);
    let Some((_, verbs)) = text.split_once("\nCommands:\n") else {
        return vec![vec![group.to_owned()]];
    };
    let verbs = verbs.lines().take_while(|line| !line.is_empty());
    let verbs = verbs.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let verbs = verbs.filter(|verb| *verb != "help");
    verbs.map(|verb| vec![group.to_owned(), verb.to_owned()]).collect()
}

fn options_of(words: &[String]) -> Vec<String> {
    let is_part = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let text = help(words);
    let lines = text.lines().filter(|line| line.trim_start().starts_with('-'));
    let options = lines.flat_map(|line| line.split(is_part)).filter(|it| it.starts_with("--"));
    options.map(str::to_owned).collect()
}

/// The commands that look at running robots.
const GROUPS: [&str; 8] = ["topic", "node", "service", "top", "why", "record", "play", "view"];
