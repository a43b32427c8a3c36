//! Commands that were started with signals ignored, as `nohup` ignores SIGHUP and a script SIGINT in what it
//! starts with `&`.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use libc::{SIGHUP, SIGINT, SIGTERM};

use crate::support::{bench, myelin, own_host, signal, wait_for};

#[test]
fn ignored_signals_stay_ignored_and_sigterm_ends_each_command() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("run.mcap");
    for (words, status) in [
        ("topic echo nothing --wait", Some(0)),
        ("topic hz nothing --wait", Some(0)),
        ("topic bw nothing --wait", Some(0)),
        ("topic delay nothing --wait", Some(0)),
        ("topic pub x 1.5 --type f64 --rate 10 --wait 0", Some(0)),
        ("record -o RECORDING", Some(0)),
        ("view --listen 127.0.0.1:0", Some(0)),
        ("top --json", None),
        ("bench sub os.unix-stream", Some(130)),
        ("bench ping os.pipe --duration 1h", Some(130)),
    ] {
        let words = words.replace("RECORDING", recording.to_str().unwrap());
        let words: Vec<&str> = words.split(' ').collect();
        let mut command = match words.split_first() {
            Some((&"bench", words)) => bench(words),
            _ => myelin(&words),
        };
        command.env("MYELIN_RUNTIME_DIR", folder.path()).env("TMPDIR", folder.path());
        // SAFETY: signal(2) is safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                for number in [SIGINT, SIGHUP] {
                    libc::signal(number, libc::SIG_IGN);
                }
                Ok(())
            });
        }
        let stdio = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = stdio.spawn().unwrap();
        let status_file = format!("/proc/{}/status", child.id());
        let has = |mask: &str, number: i32| {
            let text = std::fs::read_to_string(&status_file).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(mask)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap() >> (number - 1) & 1 == 1
        };
        // Of those that end a command it is the last. `top` blocks it to wait for it.
        let mask = if words[0] == "top" { "SigBlk:" } else { "SigCgt:" };
        wait_for(&format!("{words:?} to wait for SIGTERM"), || {
            assert!(child.try_wait().unwrap().is_none(), "{words:?} has ended");
            has(mask, SIGTERM).then_some(())
        });
        for number in [SIGINT, SIGHUP] {
            assert!(has("SigIgn:", number), "{words:?} takes signal {number}");
        }
        signal(child.id(), SIGTERM);
        let ended = child.wait().unwrap();
        let said = child.stderr.take().map(std::io::read_to_string).unwrap().unwrap();
        assert_eq!(ended.code(), status, "{words:?}: {said}");
    }
}
