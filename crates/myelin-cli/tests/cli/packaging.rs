//! Output of the command for packages: completions for the shell, pages for the manual.

use std::fs;

use crate::support::{complaint, finish, myelin};

/// It calls the command, which knows the verbs and what runs.
#[test]
fn every_shell_has_a_script_for_completion() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = finish(&mut myelin(&["completions", shell]));
        assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        for word in ["myelin", "MYELIN_COMPLETE"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
}

#[test]
fn the_manual_has_a_page_for_each_visible_verb() {
    let folder = tempfile::tempdir().unwrap();
    let output = finish(&mut myelin(&["man", folder.path().to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let has = |verb: &str| folder.path().join(format!("myelin{verb}.1")).exists();
    // All of them are in `compatibility.txt`.
    for verb in ["", "-bench-run", "-completions", "-doctor", "-topic-echo", "-topic-pub"] {
        assert!(has(verb), "no page {verb}");
    }
    assert!(!has("-man"));
    let page = fs::read_to_string(folder.path().join("myelin-bench-run.1")).unwrap();
    assert!(page.contains("\\-\\-resume") && page.contains(".TH"), "{page}");
}

#[test]
fn an_unwritable_manual_folder_is_an_error() {
    let output = finish(&mut myelin(&["man", "/no/such/folder"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(complaint(&output).contains("/no/such/folder"), "{}", complaint(&output));
}
