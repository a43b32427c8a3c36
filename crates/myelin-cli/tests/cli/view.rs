//! `myelin view` as a command. What it serves is tested in `crates/myelin-tools/tests/view`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value as Json, json};

use crate::support::{complaint, finish, signal};
use crate::topic::Domain;

#[test]
fn it_prints_what_to_open_and_ends_with_ctrl_c() {
    let domain = Domain::new();
    let node = domain.node("robot");
    let _publisher = node.topic::<f64>("speed").publisher().unwrap();
    let mut command = domain.myelin(&["view", "--port", "0", "--json", "--verbose"]);
    let mut view = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(view.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let opening: Json = serde_json::from_str(&line).unwrap();
    let address = opening["address"].as_str().unwrap();
    let port = address.strip_prefix("127.0.0.1:").unwrap();
    assert_eq!(opening["page_url"], format!("http://localhost:{port}/"));
    assert_eq!(opening["websocket_url"], format!("ws://localhost:{port}/"));
    let foxglove = opening["foxglove_url"].as_str().unwrap();
    assert!(foxglove.ends_with(&format!("ds.url=ws://localhost:{port}/")), "{foxglove}");
    assert_eq!(opening["token"], Json::Null);

    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    client.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("<title>myelin view"), "{page}");
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").unwrap();
    client.read_to_string(&mut page).unwrap();

    signal(view.id(), libc::SIGINT);
    let (mut rest, mut notes) = (String::new(), String::new());
    output.read_to_string(&mut rest).unwrap();
    view.stderr.take().unwrap().read_to_string(&mut notes).unwrap();
    assert_eq!(view.wait().unwrap().code(), Some(0), "{notes}");
    let summary: Json = serde_json::from_str(&rest).unwrap();
    let expected = json!({"summary": true, "clients": 0, "refused": 1, "messages": 0, "bytes": 0,
                          "dropped": 0, "overwritten": 0});
    assert_eq!(summary, expected);
}

#[test]
fn mistakes_are_one_line_with_a_status() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.mcap");
    std::fs::write(&other, "no recording").unwrap();
    let other = other.to_str().unwrap();
    for (words, status, text) in [
        (&["view", "none.mcap"][..], 3, "there is no such file"),
        (&["view", other], 2, "not an MCAP file"),
        (&["view", "--listen", "203.0.113.7", "--port", "0"], 2, "does not have the address"),
        (&["view", "--listen", "here"], 2, "an IP address such as"),
        (&["view", "--rate", "0"], 2, "a factor from 0.01 to 1000"),
    ] {
        let output = finish(&mut domain.myelin(words));
        let complaint = complaint(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {complaint}");
        assert!(complaint.contains(text), "{words:?}: {complaint}");
    }
}
