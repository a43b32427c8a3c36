//! Who may connect.

use std::io::Read;

use myelin_tools::view::Options;

use crate::support::{Robot, ask, options, upgrade};

const SDK: &str = "foxglove.sdk.v1";

#[test]
fn pages_of_other_origins_and_names_are_refused() {
    let options = Options { origins: vec!["http://localhost:8080".to_owned()], ..options() };
    let (robot, ()) = Robot::with(options, Vec::new(), |_| ());
    let view = &robot.view;
    let own = format!("Origin: http://{}\r\n", view.address());
    for good in
        ["", "Origin: https://app.foxglove.dev\r\n", "Origin: http://localhost:8080\r\n", &own]
    {
        assert_eq!(ask(view, &upgrade(view, SDK, good)).0, 101, "{good}");
    }
    for bad in ["Origin: https://evil.example\r\n", "Origin: null\r\n", "Origin: \r\n"] {
        assert_eq!(ask(view, &upgrade(view, SDK, bad)).0, 403, "{bad}");
    }
    // A name that was made to lead here, also for the page alone.
    let rebound = upgrade(view, SDK, "").replace(&view.address().to_string(), "evil.example:8765");
    assert_eq!(ask(view, &rebound).0, 403);
    assert_eq!(ask(view, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").0, 403);
    let localhost = format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", view.address().port());
    assert_eq!(ask(view, &localhost).0, 200);
    assert_eq!(view.summary().refused, 5);
    assert!(view.events().iter().any(|it| it.contains("--allow-origin")));
}

#[test]
fn what_is_no_request_of_the_protocol_is_refused_with_a_reason() {
    let (robot, ()) = Robot::new(|_| ());
    let view = &robot.view;
    let good = upgrade(view, SDK, "");
    for (bad, status) in [
        (upgrade(view, "chat", ""), 400),
        (good.replace("Version: 13", "Version: 8"), 400),
        (good.replace("Sec-WebSocket-Key", "X-Key"), 400),
        (good.replace("GET", "POST"), 400),
        (good.replace("Upgrade: websocket", "Upgrade: h2c").replace("GET", "PUT"), 405),
        (
            good.replace("Upgrade: websocket", "Upgrade: h2c").replace("GET /", "GET /etc/passwd"),
            404,
        ),
        ("\u{16}\u{3}\u{1}".to_owned() + &good, 400),
    ] {
        let (given, _, mut stream) = ask(view, &bad);
        assert_eq!(given, status, "{bad}");
        let mut reason = String::new();
        stream.read_to_string(&mut reason).unwrap();
        assert!(!reason.is_empty(), "{bad}");
    }
}

#[test]
fn other_hosts_need_the_token() {
    let options = Options { listen: "0.0.0.0:0".parse().unwrap(), ..options() };
    let (robot, ()) = Robot::with(options, Vec::new(), |_| ());
    let view = &robot.view;
    let token = view.token().unwrap().to_owned();
    assert!(view.urls().websocket.contains(&token) && view.urls().page.contains(&token));
    let with = |query: &str| upgrade(view, SDK, "").replace("GET /", &format!("GET /{query}"));
    assert_eq!(ask(view, &with("")).0, 401);
    assert_eq!(ask(view, &with("?token=")).0, 401);
    assert_eq!(ask(view, &with(&format!("?token={}", &token[1..]))).0, 401);
    assert_eq!(ask(view, &with(&format!("?token={token}"))).0, 101);
    // A page of another origin is refused even so.
    let stolen = upgrade(view, SDK, "Origin: https://evil.example\r\n");
    let stolen = stolen.replace("GET /", &format!("GET /?token={token}"));
    assert_eq!(ask(view, &stolen).0, 403);
}

#[test]
fn a_port_in_use_is_an_error_with_a_remedy() {
    let (robot, ()) = Robot::new(|_| ());
    let options = Options { listen: robot.view.address(), ..options() };
    let place = myelin_tools::session::Place {
        runtime_dir: Some(robot.folder.path().to_owned()),
        ..Default::default()
    };
    let session = myelin_tools::session::Session::open("second", &place).unwrap();
    let error = myelin_tools::view::View::robot(session, &place, Vec::new(), &options);
    let error = error.err().unwrap().to_string();
    assert!(error.contains("in use") && error.contains("--port"), "{error}");
}
