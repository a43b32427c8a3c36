//! The code in the guide is in the programs that it names, word for word.

use std::path::Path;

#[test]
fn the_guide_shows_what_is_in_the_programs() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to");
    let guide = std::fs::read_to_string(docs.join("guide.md")).unwrap();
    let tasks: Vec<_> =
        guide.split("\n## ").filter(|task| task.contains("](../../examples/")).collect();
    let in_four = tasks.iter().filter(|task| programs(task).len() == 4);
    assert_eq!(in_four.count(), 8, "the tasks that are shown in four languages");
    for task in tasks {
        let (programs, blocks) = (programs(task), blocks(task));
        let title = task.lines().next().unwrap();
        assert_eq!(programs.len(), blocks.len(), "{title}: a block for each program");
        for (program, (language, block)) in programs.iter().zip(blocks) {
            let source = std::fs::read_to_string(docs.join(program))
                .unwrap_or_else(|error| panic!("{title}: {program}: {error}"));
            assert!(program.ends_with(ending(language)), "{title}: {program} is not {language}");
            for piece in block.split("\n…\n") {
                assert!(has(&source, piece), "{title}: not in {program}:\n{piece}");
            }
        }
    }
}

/// The programs in a task's line of links.
fn programs(task: &str) -> Vec<&str> {
    let links = task.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(link, _)| link).filter(|link| link.starts_with("../../examples/")).collect()
}

/// Each block's language, and its lines.
fn blocks(task: &str) -> Vec<(&str, &str)> {
    let fenced = task.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

fn ending(language: &str) -> &str {
    match language {
        "rust" => ".rs",
        "python" => ".py",
        "c" => ".c",
        "cpp" => ".cpp",
        other => panic!("no program is in {other}"),
    }
}

/// Whether the lines of `piece` follow each other in `source`, with the same relative indentation.
fn has(source: &str, piece: &str) -> bool {
    let (source, piece): (Vec<_>, Vec<_>) = (source.lines().collect(), piece.lines().collect());
    source.windows(piece.len()).any(|lines| {
        let margin = &lines[0][..lines[0].len() - lines[0].trim_start().len()];
        lines.iter().zip(&piece).all(|(line, shown)| {
            line.strip_prefix(margin).or(line.is_empty().then_some("")) == Some(shown)
        })
    })
}

#[test]
fn a_word_that_differs_is_found() {
    let source = "fn main() {\n    first();\n\n    if second {\n        third();\n    }\n}\n";
    assert!(has(source, "first();\n\nif second {\n    third();\n}"));
    assert!(!has(source, "first();\n\nif second {\n    fourth();\n}"));
    assert!(!has(source, "first();\nif second {"));
    assert!(!has(source, "third();\n    }"));
}
