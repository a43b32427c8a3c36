//! A camera for ROS 2: `sensor_msgs/Image` on `/camera/image`, filled in shared memory and read
//! there on the same host. ROS 2 nodes receive it, or send it, over the network.
//!
//! `cargo run --release -p myelin-examples --example ros_image -- subscribe`, and in another
//! terminal the same with `publish`. Each of them also meets ROS 2: `ros2 topic hz /camera/image`,
//! `rqt_image_view /camera/image`, any publisher of that topic.

use std::time::Duration;

use myelin::Node;
use myelin_ros::sensor_msgs::Image;
use myelin_ros::std_msgs::{Header, Time};
use myelin_ros::{Error, RosNode};

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(),
        Some("subscribe") => subscribe(),
        _ => {
            eprintln!("usage: ros_image publish|subscribe");
            std::process::exit(2);
        }
    }
}

fn publish() -> Result<(), Error> {
    let node = Node::builder("camera").network(true).open()?;
    let publisher = node.ros_topic::<Image>("camera/image")?.publisher()?;
    if !publisher.wait_for_match(1, Duration::from_secs(30)) {
        println!("nobody is there; start `ros_image subscribe` within 30 s");
        return Ok(());
    }
    for frame in 0..FRAMES {
        let mut pixels = publisher.loan(&Image {
            header: Header { stamp: Time::now(), frame_id: "camera".into() },
            height: 480,
            width: 640,
            encoding: "rgb8".into(),
            step: 640 * 3,
            ..Image::default()
        })?;
        pixels.fill(frame as u8); // the exposure
        pixels.publish()?;
        std::thread::sleep(Duration::from_millis(33));
    }
    println!("published {FRAMES} images");
    Ok(())
}

fn subscribe() -> Result<(), Error> {
    let node = Node::builder("viewer").network(true).open()?;
    let mut subscriber = node.ros_topic::<Image>("camera/image")?.subscriber()?;
    for _ in 0..FRAMES {
        let Some(sample) = subscriber.receive(Duration::from_secs(30))? else {
            println!("no image for 30 s; start `ros_image publish`");
            break;
        };
        let image = sample.decode()?; // its strings and pixels are borrowed from the sample
        let Time { sec, nanosec } = image.header.stamp;
        let sum: u64 = image.data.iter().map(|byte| u64::from(*byte)).sum();
        let brightness = sum / image.data.len().max(1) as u64;
        let Image { width, height, encoding, .. } = image;
        println!("{sec}.{nanosec:09}: {width}x{height} {encoding}, brightness {brightness}");
    }
    Ok(())
}

const FRAMES: u32 = 30;
