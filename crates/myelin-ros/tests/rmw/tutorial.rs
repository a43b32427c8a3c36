//! The nodes of `docs/tutorials/ros2-robot.md`, exactly as printed there.

use crate::host::{Host, on_own_host};
use crate::library::library;
use crate::node::{Node, Rmw};

#[test]
fn the_viewer_receives_the_cameras_images() {
    if library().is_none() {
        return;
    }
    on_own_host("tutorial::the_viewer_receives_the_cameras_images", || {
        let folder = tempfile::tempdir().unwrap();
        for name in ["camera.py", "viewer.py"] {
            std::fs::write(folder.path().join(name), program(name)).unwrap();
        }
        let start = |rmw, name: &str| {
            Node::start_script(&Host::Same, rmw, &[], &folder.path().join(name), &[])
        };
        for (viewers, cameras) in
            [(Rmw::Myelin, Rmw::Myelin), (Rmw::FastRtps, Rmw::Myelin), (Rmw::Myelin, Rmw::FastRtps)]
        {
            println!("viewer on {viewers:?}, camera on {cameras:?}");
            let viewer = start(viewers, "viewer.py");
            let camera = start(cameras, "camera.py");
            let named = |rmw| if rmw == Rmw::Myelin { "rmw_myelin" } else { "rmw_fastrtps_cpp" };
            viewer.logged(&format!("[viewer]: waits for images on {}", named(viewers)));
            camera.logged(&format!("[camera]: publishes images on {}", named(cameras)));
            viewer.logged("[viewer]: 30 images, 640 x 480");
            camera.kill();
            let _again = start(cameras, "camera.py");
            viewer.logged("[viewer]: 60 images, 640 x 480");
        }
    });
}

/// The block whose first line names it.
fn program(name: &str) -> &'static str {
    let blocks = include_str!("../../../../docs/tutorials/ros2-robot.md").split("\n```python\n");
    let mut blocks = blocks.skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0));
    blocks.find(|block| block.lines().next().unwrap().ends_with(name)).unwrap()
}
