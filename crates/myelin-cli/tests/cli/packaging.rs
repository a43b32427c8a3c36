//! Output of the command for packages: completions for the shell, pages for the manual.

use std::fs;

use crate::support::{complaint, finish, myelin};

#[test]
fn completions_of_every_shell_have_the_verbs() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = finish(&mut myelin(&["completions", shell]));
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        for word in ["myelin", "bench", "doctor", "compare", "resume"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
}

#[test]
fn the_manual_has_a_page_for_each_visible_verb() {
    let folder = tempfile::tempdir().unwrap();
    let output = finish(&mut myelin(&["man", folder.path().to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let names = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let verbs = ["", "-bench", "-bench-compare", "-bench-export", "-bench-list", "-bench-report"];
    let more = ["-bench-run", "-completions", "-doctor"];
    let mut expected: Vec<_> =
        verbs.iter().chain(&more).map(|verb| format!("myelin{verb}.1")).collect();
    expected.sort();
    assert_eq!(names, expected);
    let page = fs::read_to_string(folder.path().join("myelin-bench-run.1")).unwrap();
    assert!(page.contains("\\-\\-resume") && page.contains(".TH"), "{page}");
}

#[test]
fn an_unwritable_manual_folder_is_an_error() {
    let output = finish(&mut myelin(&["man", "/no/such/folder"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("/no/such/folder"), "{}", complaint(&output));
}
