//! A detector: looks for white squares in each image and publishes as many detections as there are.

use myelin::{Node, Wait};

use crate::common::{Failure, LOOK_AROUND, Source, Stop, report};
use crate::topics::{Detection, Image};
use crate::{scene, topics};

pub fn run(node: &Node, stop: &Stop) -> Result<(), Failure> {
    let mut images = topics::image(node).subscriber()?;
    images.set_wait(Wait::Predictive); // a camera is periodic
    let detections = topics::detections(node).publisher()?;
    let mut camera = Source::default();
    let mut found = Vec::new();
    while !stop.is_set() {
        if let Some(image) = images.receive(LOOK_AROUND)? {
            camera.came_from(image.publisher(), "detector", "image");
            if !scene::is_whole(&image) {
                return Err(format!("image {} is torn", image.number).into());
            }
            find(&image, &mut found);
            detections.publish_copy(&found)?; // an empty list says: nothing there
        } else {
            // Without images there is nothing to publish; that is the camera's fault, not the
            // detector's.
            detections.assert_liveliness()?;
        }
        report("detector", "image", &images.events());
        report("detector", "detections", &detections.events());
    }
    Ok(())
}

/// A square is as high as the distance of the searched lines, so each square is found once.
fn find(image: &Image, found: &mut Vec<Detection>) {
    found.clear();
    for (top, line) in image.pixels.iter().enumerate().step_by(scene::SIZE) {
        let mut x = 0;
        while let Some(left) = line[x..].iter().position(|pixel| *pixel == scene::WHITE) {
            let left = x + left;
            let width = line[left..].iter().take_while(|pixel| **pixel == scene::WHITE).count();
            x = left + width;
            found.push(Detection {
                image_number: image.number,
                left: left as u32,
                top: top as u32,
                width: width as u32,
                confidence: 1.0,
            });
        }
    }
}
