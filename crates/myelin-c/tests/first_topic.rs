//! The programs in C and C++ of docs/tutorials/first-topic.md: each receives both greetings.

mod support;

use support::{Place, crate_folder, end, said};

#[test]
fn each_program_receives_both_greetings() {
    let tutorial = crate_folder().join("../../docs/tutorials/first-topic.md");
    let tutorial = std::fs::read_to_string(tutorial).unwrap();
    let place = Place::new();
    let sources = tempfile::tempdir().unwrap();
    let programs = ["c", "cpp"].map(|language| {
        let (_, rest) = tutorial.split_once(&format!("\n```{language}\n")).expect("a program");
        let (program, _) = rest.split_once("\n```").unwrap();
        let source = sources.path().join(format!("hello_{language}.{language}"));
        std::fs::write(&source, program).unwrap();
        place.compile(source.to_str().unwrap(), &[])
    });
    let running = programs.map(|program| place.start(program, &[]));
    for program in running {
        let heard = said(end(program));
        let mut heard: Vec<_> = heard.lines().collect();
        heard.sort_unstable();
        assert_eq!(heard, ["hello from C", "hello from C++"]);
    }
}
