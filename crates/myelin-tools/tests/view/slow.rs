//! A client that stops reading slows nobody.

use crate::support::{Client, Frame, Received, Robot, WATCHDOG};

const WIDTH: u32 = 640;
const HEIGHT: u32 = 480;
const PIXELS: usize = (WIDTH * HEIGHT * 3) as usize;
const IMAGES: u64 = 60;

#[test]
fn a_client_that_stops_reading_loses_its_own_messages_and_is_told_so() {
    let (robot, (images, rare)) = Robot::new(|node| {
        let images = node.topic::<(Frame, [u8])>("camera").depth(4).publisher().unwrap();
        (images, node.topic::<f64>("rare").publisher().unwrap())
    });
    let mut slow = Client::viewer(&robot.view);
    let mut fast = Client::viewer(&robot.view);
    for client in [&mut slow, &mut fast] {
        let advertised = client.json("advertise");
        for (id, channel) in advertised["channels"].as_array().unwrap().iter().enumerate() {
            client.subscribe(10 + id as u32, channel);
        }
    }
    assert!(images.wait_for_match(1, WATCHDOG) && rare.wait_for_match(1, WATCHDOG));
    for number in 0..IMAGES {
        let mut image = images.loan(PIXELS).unwrap();
        *image.header_mut() = Frame { stamp_ns: number, width: WIDTH, height: HEIGHT };
        image.publish().unwrap();
        if number == IMAGES / 2 {
            rare.publish_copy(&1.0).unwrap();
        }
        // The fast one gets each, however far the slow one is behind.
        let got = loop {
            let (_, _, data) = fast.message();
            if data.len() > PIXELS {
                break u64::from_le_bytes(data[4..12].try_into().unwrap());
            }
        };
        assert_eq!(got, number);
    }

    let summary = robot.view.summary();
    assert!(summary.dropped > 0 && summary.overwritten == 0, "{summary:?}");
    // The slow one reads again: the newest images, the rare message, and how much it lost.
    let mut got = 0;
    let mut has_rare = false;
    let mut status = None;
    while status.is_none() {
        match slow.receive() {
            Received::Message(_, _, data) if data.len() > PIXELS => got += 1,
            Received::Message(..) => has_rare = true,
            Received::Json(json) if json["op"] == "status" => status = Some(json),
            _ => {}
        }
    }
    let status = status.unwrap();
    assert_eq!(status["level"], 1);
    let text = status["message"].as_str().unwrap();
    assert!(text.starts_with("camera: ") && text.contains("reads too slowly"), "{text}");
    assert!(has_rare, "a rare message is not pushed out by images");
    let lost: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    while got + lost < IMAGES {
        if slow.message().2.len() > PIXELS {
            got += 1;
        }
    }
    assert_eq!(got + lost, IMAGES, "all images are either there or counted");
    assert_eq!(robot.view.summary().dropped, lost);
}
