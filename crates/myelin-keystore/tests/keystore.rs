//! Keystores, as other programs see them: OpenSSL verifies what we sign, and we what it signs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use myelin_keystore::{Added, Error, Keystore, Rights};
use tempfile::TempDir;

#[test]
fn openssl_verifies_all_that_is_signed() {
    let (folder, keystore) = keystore();
    let Some(openssl) = openssl(folder.path()) else { return };
    for name in ["/talker", "/robot/camera"] {
        assert_eq!(keystore.add(name, &Rights::default(), 1).unwrap(), Added::Identity);
    }
    let authority = "keystore/public/identity_ca.cert.pem";
    let signer = "keystore/public/permissions_ca.cert.pem";
    let verify = |enclave: &str| {
        let list = format!("{enclave}/crl.pem");
        let arguments = ["verify", "-crl_check", "-CRLfile", &list, "-CAfile", authority];
        openssl(&[&arguments[..], &[&format!("{enclave}/cert.pem")]].concat())
    };
    for enclave in ["keystore/enclaves/talker", "keystore/enclaves/robot/camera"] {
        verify(enclave).unwrap();
        for document in [format!("{enclave}/permissions"), format!("{enclave}/../governance")] {
            let signed = folder.path().join(document.clone() + ".p7s");
            if !signed.exists() {
                continue; // a governance for each enclave is a link in it
            }
            let signed = signed.to_str().unwrap();
            let smime = ["smime", "-verify", "-text", "-CAfile", signer, "-in", signed];
            let text = openssl(&smime).unwrap().replace("\r\n", "\n");
            let written = std::fs::read_to_string(signed.replace(".p7s", ".xml")).unwrap();
            assert_eq!(text, written);
        }
        assert!(folder.path().join(enclave).join("governance.p7s").is_file());
    }
    keystore.revoke("/talker").unwrap();
    let refused = verify("keystore/enclaves/talker").unwrap_err();
    assert!(refused.contains("certificate revoked"), "{refused}");
    verify("keystore/enclaves/robot/camera").unwrap();
}

/// The form in which SROS 2's tool signs.
#[test]
fn what_openssl_signs_is_verified() {
    let (folder, keystore) = keystore();
    let Some(openssl) = openssl(folder.path()) else { return };
    keystore.add("/talker", &Rights::default(), 1).unwrap();
    let file = |name: &str| format!("keystore/enclaves/talker/{name}");
    let sign = |key: &str, certificate: &str| {
        let (from, to) = (file("permissions.xml"), file("permissions.p7s"));
        let smime = ["smime", "-sign", "-text", "-in", &from, "-out", &to];
        openssl(&[&smime[..], &["-inkey", key, "-signer", certificate]].concat()).unwrap();
    };
    sign("keystore/private/permissions_ca.key.pem", "keystore/public/permissions_ca.cert.pem");
    assert_eq!(keystore.check().unwrap(), []);
    sign(&file("key.pem"), &file("cert.pem"));
    assert_eq!(problems(&keystore), ["permissions.p7s: another authority has signed it"]);
}

#[test]
fn an_enclave_keeps_its_identity_until_it_is_revoked() {
    let (folder, keystore) = keystore();
    let certificate = folder.path().join("keystore/enclaves/talker/cert.pem");
    let read = || std::fs::read_to_string(&certificate).unwrap();
    keystore.add("/talker", &Rights::default(), 1).unwrap();
    let first = read();
    let few = Rights { publish: vec!["chatter".into()], subscribe: Vec::new() };
    assert_eq!(keystore.add("/talker", &few, 1).unwrap(), Added::Rights);
    assert_eq!(read(), first);
    for _ in 0..2 {
        keystore.revoke("/talker").unwrap();
        assert!(keystore.enclaves().unwrap()[0].is_revoked);
    }
    assert_eq!(problems(&keystore).len(), 1);
    assert_eq!(keystore.add("/talker", &few, 1).unwrap(), Added::Identity);
    let [enclave] = &keystore.enclaves().unwrap()[..] else { panic!() };
    assert!(!enclave.is_revoked && !enclave.is_out_of_time && enclave.name == "/talker");
    assert_ne!(read(), first);
    assert_eq!(problems(&keystore), [""; 0]);
    // The older one stays revoked, whatever comes after it.
    keystore.add("/listener", &Rights::default(), 1).unwrap();
    keystore.revoke("/listener").unwrap();
    std::fs::write(&certificate, first).unwrap();
    let states = keystore.enclaves().unwrap();
    assert!(states.iter().all(|it| it.is_revoked), "{states:?}");
}

#[test]
fn each_fault_is_found_with_its_file() {
    let (folder, keystore) = keystore();
    let enclave = folder.path().join("keystore/enclaves/talker");
    let hour = Duration::from_secs(3_600);
    let fresh = || {
        let _ = std::fs::remove_dir_all(&enclave);
        keystore.add("/talker", &Rights::default(), 1).unwrap();
        assert_eq!(problems(&keystore), [""; 0]);
    };
    keystore.add("/other", &Rights::default(), 1).unwrap();
    let from_other = |file: &str| {
        std::fs::copy(enclave.join("../other").join(file), enclave.join(file)).map(drop)
    };
    type Break<'a> = &'a dyn Fn() -> std::io::Result<()>;
    let faults: [(Break, &str); 6] = [
        (&|| from_other("permissions.p7s"), "permissions.p7s: it grants nothing to CN=/talker"),
        (&|| from_other("key.pem"), "key.pem: it is not the key of its certificate"),
        (&|| std::fs::remove_file(enclave.join("governance.p7s")), "governance.p7s: No such file"),
        (&|| open_to_others(&enclave.join("key.pem")), "key.pem: others can read it (mode 644)"),
        (
            &|| change(&enclave.join("permissions.p7s"), "DENY", "ALLOW"),
            "permissions.p7s: it has been changed since it was signed",
        ),
        (&|| std::fs::write(enclave.join("cert.pem"), "no"), "cert.pem: not a certificate in PEM"),
    ];
    for (break_it, problem) in faults {
        fresh();
        break_it().unwrap();
        let found = problems(&keystore);
        assert!(found.len() == 1 && found[0].starts_with(problem), "{found:?} for {problem:?}");
    }
    fresh();
    std::fs::remove_dir_all(&enclave).unwrap();
    keystore.add_until("/talker", &Rights::default(), SystemTime::now() - hour).unwrap();
    let found = problems(&keystore);
    assert!(found.len() == 1 && found[0].starts_with("cert.pem: it is valid from"), "{found:?}");
    assert!(keystore.enclaves().unwrap()[1].is_out_of_time);
}

/// The layout of `ros2 security create_keystore`.
#[test]
fn one_authority_for_identities_and_rights_is_found() {
    let (folder, keystore) = keystore();
    for (authority, file) in [("public", "cert.pem"), ("private", "key.pem")] {
        let path = |kind| folder.path().join(format!("keystore/{authority}/{kind}_ca.{file}"));
        std::fs::copy(path("identity"), path("permissions")).unwrap();
    }
    keystore.add("/talker", &Rights::default(), 1).unwrap();
    let found = problems(&keystore);
    let has = |part: &str| found.iter().any(|it| it.contains(part));
    assert!(has("permissions_ca.cert.pem: it is the authority of identities"), "{found:?}");
    // The governance was signed before.
    assert!(found.len() == 2 && has("governance.p7s: another authority"), "{found:?}");
}

#[test]
fn files_are_private_and_a_failure_leaves_nothing() {
    let (folder, keystore) = keystore();
    keystore.add("/robot/camera", &Rights::default(), 1).unwrap();
    for (file, mode) in [
        ("", 0o700),
        ("private", 0o700),
        ("private/identity_ca.key.pem", 0o600),
        ("private/permissions_ca.key.pem", 0o600),
        ("enclaves/robot", 0o700),
        ("enclaves/robot/camera", 0o700),
        ("enclaves/robot/camera/key.pem", 0o600),
    ] {
        let path = folder.path().join("keystore").join(file);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode, "{file}");
    }
    let made = folder.path().join("keystore");
    assert!(matches!(Keystore::create(&made), Err(Error::Exists(path)) if path == made));
    for name in ["camera", "/", "//camera", "/../x", "/a b", "/1", "/camera/"] {
        let added = keystore.add(name, &Rights::default(), 1);
        assert!(matches!(added, Err(Error::Name(_))), "{name}: {added:?}");
    }
    let bad = Rights { publish: vec!["a b".into()], subscribe: Vec::new() };
    assert!(matches!(keystore.add("/new", &bad, 1), Err(Error::Topic(_))));
    assert!(matches!(keystore.add("/new", &Rights::default(), 0), Err(Error::Days(0))));
    assert!(matches!(keystore.revoke("/new"), Err(Error::NoEnclave { .. })));
    assert!(matches!(Keystore::open(folder.path()), Err(Error::NotAKeystore { .. })));
    let names: Vec<_> = keystore.enclaves().unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["/robot/camera"]);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!((left, made.join("enclaves/new").exists()), (1, false));
}

fn keystore() -> (TempDir, Keystore) {
    let folder = tempfile::tempdir().unwrap();
    let keystore = Keystore::create(&folder.path().join("keystore")).unwrap();
    assert_eq!(keystore.check().unwrap(), []);
    (folder, keystore)
}

/// The findings, with names of files instead of paths.
fn problems(keystore: &Keystore) -> Vec<String> {
    let findings = keystore.check().unwrap();
    let name = |file: &Path| file.file_name().unwrap().to_str().unwrap().to_owned();
    findings.iter().map(|it| format!("{}: {}", name(&it.file), it.problem)).collect()
}

fn open_to_others(file: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644))
}

fn change(file: &Path, from: &str, to: &str) -> std::io::Result<()> {
    std::fs::write(file, std::fs::read_to_string(file)?.replace(from, to))
}

/// Runs OpenSSL in this folder; its output, or what it complains of.
fn openssl(folder: &Path) -> Option<impl Fn(&[&str]) -> Result<String, String>> {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: no openssl; apt-get install openssl");
        return None;
    }
    let folder = PathBuf::from(folder);
    Some(move |arguments: &[&str]| {
        let run = Command::new("openssl").args(arguments).current_dir(&folder).output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match run.status.success() {
            true => Ok(text(&run.stdout)),
            false => Err(text(&run.stderr)),
        }
    })
}
