//! `myelin keystore`: what a user types, and the exit statuses.

use serde_json::Value;

use crate::support::{complaint, finish, myelin};

#[test]
fn a_keystore_is_made_filled_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let keys = keys.to_str().unwrap();
    let run = |verb: &str, rest: &[&str]| {
        let output = finish(&mut myelin(&[&["keystore", verb, keys], rest].concat()));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        (output.status.code().unwrap(), text, complaint(&output))
    };
    let (status, _, said) = run("list", &[]);
    assert!(status == 3 && said.contains("myelin keystore create"), "{said}");
    assert_eq!(run("create", &[]).0, 0);
    let rights = ["--allow", "publish=image", "subscribe=cmd/*"];
    let (status, _, said) = run("add", &[&["/robot/camera"], &rights[..]].concat());
    assert!(status == 0 && said.contains("MYELIN_ENCLAVE=/robot/camera"), "{said}");
    let permissions = format!("{keys}/enclaves/robot/camera/permissions.xml");
    let permissions = std::fs::read_to_string(permissions).unwrap();
    let count = |topic: &str| permissions.matches(&format!("<topic>{topic}</topic>")).count();
    assert_eq!((count("myelin/image"), count("myelin/cmd/*"), count("*")), (1, 1, 0));
    assert_eq!(run("add", &["/operator", "--days", "10"]).0, 0);
    assert_eq!(run("check", &[]), (0, String::new(), String::new()));
    assert_eq!(run("revoke", &["/operator"]).0, 0);
    let (status, lines, _) = run("list", &["--json"]);
    let lines: Vec<Value> = lines.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let states: Vec<_> = lines.iter().map(|it| (&it["enclave"], &it["state"])).collect();
    assert_eq!(status, 0);
    let (operator, camera) = (Value::from("/operator"), Value::from("/robot/camera"));
    let (revoked, valid) = (Value::from("revoked"), Value::from("valid"));
    assert_eq!(states, [(&operator, &revoked), (&camera, &valid)]);
    let (status, text, _) = run("check", &[]);
    assert!(status == 1 && text.contains("/operator/cert.pem: it is revoked"), "{text}");
}

#[test]
fn a_mistake_has_its_remedy_and_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let keys = keys.to_str().unwrap();
    assert!(finish(&mut myelin(&["keystore", "create", keys])).status.success());
    for (words, status, remedy) in [
        ("create KEYS", 2, "choose another folder"),
        ("add KEYS camera", 2, "such as /robot/camera"),
        ("add KEYS /camera --allow write=x", 2, "publish=TOPIC or subscribe=TOPIC"),
        ("add KEYS /camera --allow publish=a<b", 2, "a name has no control characters"),
        ("add KEYS /camera --days 0", 2, "use 1 to 36500"),
        ("revoke KEYS /camera", 3, "myelin keystore list"),
        ("check KEYS/public", 3, "myelin keystore create"),
    ] {
        let words = words.replace("KEYS", keys);
        let words: Vec<&str> = ["keystore"].into_iter().chain(words.split(' ')).collect();
        let output = finish(&mut myelin(&words));
        let said = complaint(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.contains(remedy), "{words:?}: {said}");
    }
}
