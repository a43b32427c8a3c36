//! The programs of `examples/ros2`: a node in rclpy beside a program on Myelin, which answers it.

use std::path::Path;

use crate::host::{Host, on_own_host};
use crate::library::library;
use crate::node::{Node, Rmw};

#[test]
fn a_program_on_myelin_answers_a_node() {
    let Some((_, library)) = library() else { return };
    let modules = library.parent().unwrap().with_file_name("python");
    if !modules.join("myelin").exists() {
        println!("skipped: the Python module is not built: scripts/python driver");
        return;
    }
    on_own_host("beside::a_program_on_myelin_answers_a_node", || {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ros2");
        let path = format!("PYTHONPATH={}", modules.display());
        // Nothing leaves the host.
        let by = ["env", &path, "MYELIN_INTERFACE=lo", "MYELIN_PEERS=127.0.0.1"];
        let start = |rmw, by: &[&str], name| {
            Node::start_script(&Host::Same, rmw, by, &examples.join(name), &[])
        };
        for rmw in [Rmw::Myelin, Rmw::FastRtps] {
            println!("the node on {rmw:?}");
            // It has no RMW at all.
            let viewer = start(Rmw::FastRtps, &by, "viewer.py");
            let camera = start(rmw, &[], "camera_node.py");
            for images in [10, 20, 30] {
                let text = format!("{images} images, 640 x 480 rgb8");
                let seen = viewer.wait_for(&text, |line| line.starts_with(&text));
                // The brightness is the number of the frame.
                let brightness = seen.split([' ', ',']).nth_back(3).unwrap();
                assert!(brightness.parse::<u32>().unwrap() + 1 >= images, "{seen}");
            }
            camera.wait_for("the third remark", |line| line.starts_with("remark: 30"));
            camera.end();
            viewer.wait_for("its end", |line| line == "the camera has ended");
            viewer.end();
        }
    });
}
