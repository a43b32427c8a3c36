//! What `myelin topic` shows of ROS 2 nodes: names as ROS 2 writes them, fields, settings; and that they
//! take what it publishes.

use std::time::{Duration, Instant};

use myelin_tools::echo::{Echo, Layout, Options, Step};
use myelin_tools::filter::Filter;
use myelin_tools::publish::Target;
use myelin_tools::session::{Place, Session};
use myelin_tools::signals::Stop;
use myelin_tools::top::look::Looker;
use myelin_tools::{info, list, select, services};

use crate::host::Host;
use crate::node::{Node, Rmw, WATCHDOG};
use crate::talk::on_a_host;

#[test]
fn topics_of_nodes_are_listed_echoed_and_published() {
    on_a_host("tools::topics_of_nodes_are_listed_echoed_and_published", || {
        let talker = Node::start(&Host::Same, Rmw::Myelin, &["pub", "talker", "String", "Imu"]);
        let listener = Node::start(&Host::Same, Rmw::Myelin, &["sub", "listener", "String"]);
        listener.line();

        let place = Place::default();
        let open = || Session::open("tool", &place).unwrap();
        let session = open();
        let graph = session.graph(WATCHDOG).unwrap();
        let names = |typed: &str| {
            let selected = select::topics(&graph, &[typed.to_owned()], &session, &place).unwrap();
            (list::lines(&graph, &selected), info::topics(&graph, &selected))
        };
        for typed in ["/String", "String", "rt/String", "/Str*"] {
            let (lines, infos) = names(typed);
            let [line] = &lines[..] else { panic!("{typed}: {lines:?}") };
            assert_eq!(
                (&*line.topic, &line.types[..]),
                ("/String", &["std_msgs/msg/String".into()][..])
            );
            assert_eq!((line.publishers, line.subscribers, line.refused), (1, 1, 0));
            let text = infos[0].text();
            assert!(text.contains("/talker") && text.contains("matched /listener"), "{text}");
            assert!(text.contains("data: string") && text.contains("published"), "{text}");
        }

        let top = Looker::new(open()).look(WATCHDOG).unwrap();
        let names: Vec<_> = top.topics.iter().map(|it| &*it.name).collect();
        assert!(names.contains(&"/String") && names.contains(&"/Imu"), "{names:?}");
        assert!(names.iter().all(|it| !it.starts_with("rt/")), "{names:?}");
        let nodes: Vec<_> = top.nodes.iter().map(|it| &*it.name).collect();
        assert!(nodes.contains(&"/talker") && nodes.contains(&"/listener"), "{nodes:?}");

        let options = Options {
            fields: vec!["linear_acceleration.z".into(), "header.frame_id".into()],
            filter: Some(Filter::parse("header.frame_id != 'no such'").unwrap()),
            layout: Layout::Csv,
            limit: usize::MAX,
            width: 80,
            count: Some(2),
            every: None,
            format: None,
            subscribe: false,
            wait: false,
        };
        let mut echo = Echo::open(open(), place.clone(), &["Imu".to_owned()], options).unwrap();
        let (mut text, begin) = (String::new(), Instant::now());
        while echo.step(&mut text, Duration::from_millis(10)).unwrap() != Step::Finished {
            assert!(begin.elapsed() < WATCHDOG, "{text}");
        }
        let headline = "published_ns,sequence,linear_acceleration.z,header.frame_id";
        assert_eq!((text.lines().next(), text.lines().count()), (Some(headline), 3), "{text}");

        // With the settings that the node requests.
        let target = Target::open(open(), &place, "/String", None).unwrap();
        target.wait_for(1, WATCHDOG, &Stop::default()).unwrap();
        let sample = target.encode(&serde_json::json!({ "data": "message 123456789" })).unwrap();
        assert_eq!(target.publish(&sample).unwrap(), 0);
        listener.wait_for("what was published", |line| line == "String 123456789");
        assert!(target.encode(&serde_json::json!({ "date": "" })).is_err());
        listener.end();

        // Its halves are in the .srv file, the types in them in .msg files.
        let graph = session.graph(WATCHDOG).unwrap();
        let call = |service: &str, request| {
            services::call(&session, &place, &graph, service, &request, WATCHDOG).unwrap()
        };
        let request = serde_json::json!({ "names": ["use_sim_time"] });
        let reply = call("/talker/get_parameters", request);
        assert!(reply.contains("\"type\": 1") || reply.contains("\"type\":1"), "{reply}");
        let reply = call("/talker/list_parameters", serde_json::json!({}));
        assert!(reply.contains("\"use_sim_time\""), "{reply}");
        talker.end();
    });
}
