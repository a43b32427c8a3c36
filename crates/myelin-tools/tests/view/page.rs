//! The page in a real browser.
//!
//! `MYELIN_PICTURES=DIR` keeps pictures of it there.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myelin::{Node, PlainData};
use serde_json::{Value as Json, json};

use crate::support::{Client, Frame, Imu, Received, Robot, node_script};

const WIDTH: u32 = 320;
const HEIGHT: u32 = 240;

/// Publishes until it is dropped: a picture whose left half is red and whose right half is blue, and
/// numbers.
struct Publishing(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Publishing {
    fn start(node: &Node) -> Publishing {
        let camera = node.topic::<(Frame, [u8])>("camera/front").publisher().unwrap();
        let imu = node.topic::<Imu>("imu").publisher().unwrap();
        // Names of topics are anybody's.
        let evil = node.topic::<f64>("<img src=x onerror=alert(1)>").publisher().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let thread = std::thread::spawn(move || {
            for number in 0_u32.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let angle = f64::from(number) / 20.0;
                let acceleration =
                    [angle.sin(), 0.5 * angle.cos(), 9.81 + 0.05 * (7.0 * angle).sin()];
                let sample = Imu { acceleration, id: number, temperature: 36.5, ..Imu::default() };
                imu.publish_copy(&sample).unwrap();
                evil.publish_copy(&angle).unwrap();
                if number % 4 == 0 {
                    let mut image = camera.loan((WIDTH * HEIGHT * 3) as usize).unwrap();
                    *image.header_mut() = Frame { stamp_ns: 1, width: WIDTH, height: HEIGHT };
                    for (at, pixel) in image.slice_mut().chunks_exact_mut(3).enumerate() {
                        let is_left = (at as u32 % WIDTH) < WIDTH / 2;
                        pixel.copy_from_slice(if is_left {
                            &[200, 30, 30]
                        } else {
                            &[30, 60, 200]
                        });
                    }
                    image.publish().unwrap();
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Publishing(stop, Some(thread))
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap();
    }
}

#[test]
fn the_page_shows_a_robot_in_a_browser() {
    let Some(mut script) = node_script("browser.js") else { return };
    let Some(browser) = browser() else { return };
    let (robot, _publishing) = Robot::new(Publishing::start);
    let (other, ()) = Robot::new(|_| ());
    let profile = tempfile::tempdir().unwrap();
    script.arg(browser).arg(profile.path());
    script.args([robot.view.urls().page, other.view.urls().page]);
    script.args(std::env::var_os("MYELIN_PICTURES"));
    let output = script.stderr(Stdio::inherit()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines: Vec<Json> = text.lines().map(|it| serde_json::from_str(it).expect(it)).collect();
    let (shown, rest) = lines.split_at(4);
    for (page, (width, scheme)) in
        shown.iter().zip([(1440, "light"), (1440, "dark"), (400, "light"), (400, "dark")])
    {
        assert_eq!((&page["width"], &page["scheme"]), (&json!(width), &json!(scheme)), "{page}");
        assert_eq!(page["topics"], json!(["<img src=x onerror=alert(1)>", "camera/front", "imu"]));
        assert_eq!(page["isTooWide"], false, "{page}");
        assert_eq!(page["left"], json!([200, 30, 30, 255]));
        assert_eq!(page["right"], json!([30, 60, 200, 255]));
        assert_eq!(page["picture"], json!([WIDTH, HEIGHT]));
        assert!(page["values"].as_str().unwrap().contains("temperature: 36.5"), "{page}");
        assert!(page["points"].as_u64() > Some(20), "{page}");
        assert!(page["rate"].as_f64().unwrap() > 10.0, "{page}");
        assert_eq!(page["isDark"], scheme == "dark", "{page}");
        assert!(page["contrast"].as_f64().unwrap() >= 4.5, "{page}");
    }
    // By the keyboard alone: a topic is left out and taken again.
    assert_eq!(rest[0], json!({"keys": [true, false, true]}));
    // Pages of other origins get no connection, and see no page in a frame.
    assert_eq!(
        rest[1],
        json!({"otherOrigin": "refused", "opaqueOrigin": "refused", "own": "open"})
    );
    assert_eq!(robot.view.summary().refused, 2);
    assert_eq!(rest[2], json!({"problems": []}));
}

fn browser() -> Option<&'static str> {
    let exists = |browser: &&str| {
        let mut version = Command::new(browser);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(exists);
    if found.is_none() {
        eprintln!("SKIPPED: no Chromium here, so the page was not opened; apt install chromium");
    }
    found
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Odometry {
    position: [f64; 2],
    speed: f64,
    turn_rate: f64,
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Battery {
    voltage: f32,
    charge: f32,
}

/// A street with a ball that rolls along it.
fn draw(pixels: &mut [u8], width: usize, seconds: f64) {
    let height = pixels.len() / 3 / width;
    let horizon = height as f64 * 0.42;
    let ball_x = width as f64 * (0.5 + 0.3 * (seconds * 0.7).sin());
    let (ball_y, radius) = (height as f64 * 0.7, height as f64 * 0.09);
    for (at, pixel) in pixels.chunks_exact_mut(3).enumerate() {
        let (x, y) = ((at % width) as f64, (at / width) as f64);
        let deep = (y - horizon) / (height as f64 - horizon);
        let from_middle = (x - width as f64 / 2.0) / width as f64;
        let to_ball = ((x - ball_x).powi(2) + (y - ball_y).powi(2)).sqrt() / radius;
        let is_dash = (4.0 / deep.max(0.05) + seconds * 3.0).rem_euclid(2.0) < 1.0;
        let colour = if to_ball < 1.0 {
            let light = 1.0 - 0.5 * to_ball;
            [230.0 * light, 90.0 * light, 40.0 * light]
        } else if deep < 0.0 {
            let blue = 235.0 + 60.0 * deep;
            [150.0 + 60.0 * (1.0 + deep), 190.0 + 30.0 * (1.0 + deep), blue]
        } else if from_middle.abs() < 0.008 + 0.012 * deep && is_dash {
            [235.0, 225.0, 180.0]
        } else if from_middle.abs() < 0.05 + 0.4 * deep {
            [92.0 - 20.0 * deep; 3]
        } else {
            [96.0 - 20.0 * deep, 140.0 - 20.0 * deep, 80.0 - 20.0 * deep]
        };
        pixel.copy_from_slice(&colour.map(|it| it.clamp(0.0, 255.0) as u8));
    }
}

/// Draws docs/pictures/view.png again:
/// `cargo test -p myelin-tools --test view -- --ignored picture_of_the_documentation`.
#[test]
#[ignore = "takes half a minute, and changes the documentation"]
fn picture_of_the_documentation() {
    let (Some(mut script), Some(browser)) = (node_script("browser.js"), browser()) else { return };
    let prepare = |node: &Node| {
        let camera = node.topic::<(Frame, [u8])>("camera/front").depth(4).publisher().unwrap();
        let odometry = node.topic::<Odometry>("base/odometry").depth(16).publisher().unwrap();
        (camera, odometry, node.topic::<Battery>("battery").publisher().unwrap())
    };
    let (robot, (camera, odometry, battery)) = Robot::new(prepare);
    let profile = tempfile::tempdir().unwrap();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures/view.png");
    script.arg(browser).arg(profile.path()).args([&robot.view.urls().page, "picture", picture]);
    let mut browser = script.spawn().unwrap();
    let begin = Instant::now();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Without optimisation a picture takes longer than a sample.
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let seconds = begin.elapsed().as_secs_f64();
                let mut image = camera.loan(640 * 400 * 3).unwrap();
                let stamp_ns = (seconds * 1e9) as u64;
                *image.header_mut() = Frame { stamp_ns, width: 640, height: 400 };
                draw(image.slice_mut(), 640, seconds);
                image.publish().unwrap();
            }
        });
        for number in 0_u64.. {
            if let Some(status) = browser.try_wait().unwrap() {
                is_over.store(true, Ordering::Relaxed);
                assert!(status.success());
                return;
            }
            let seconds = begin.elapsed().as_secs_f64();
            let turn_rate = 0.4 * (seconds * 0.9).sin() + 0.03 * (seconds * 23.0).sin();
            let speed = 1.2 + 0.3 * (seconds * 0.35).cos() + 0.02 * (seconds * 31.0).sin();
            let position = [(seconds * 0.35).sin() * 2.0, (seconds * 0.7).sin()];
            odometry.publish_copy(&Odometry { position, speed, turn_rate }).unwrap();
            if number % 50 == 0 {
                let charge = 87.5 - seconds as f32 / 60.0;
                battery.publish_copy(&Battery { voltage: 24.1 + 0.01 * charge, charge }).unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

#[test]
fn the_pages_protocol_gives_values_numbers_and_pictures() {
    let (robot, _publishing) = Robot::new(Publishing::start);
    let mut page = Client::new(&robot.view, "myelin.view.v1");
    assert_eq!(page.json("hello")["beginMs"], Json::Null);
    let channels = page.json("channels")["channels"].clone();
    let of = |name: &str| {
        let all = channels.as_array().unwrap();
        all.iter().find(|it| it["name"] == name).unwrap().clone()
    };
    let (imu, camera) = (of("imu"), of("camera/front"));
    assert_eq!((&imu["image"], &camera["image"]), (&json!(false), &json!(true)));
    assert_eq!(imu["numbers"].as_array().unwrap().len(), 6);
    page.send(json!({
        "op": "show", "version": 5, "watched": [imu["id"]], "image": camera["id"],
        "series": [{"channel": imu["id"], "path": "acceleration[2]"},
                   {"channel": imu["id"], "path": "nothing"}],
    }));
    let mut pictures = 0;
    let (mut numbers, mut texts) = (0, 0);
    while numbers < 20 || texts == 0 || pictures == 0 {
        match page.receive() {
            Received::Json(samples) if samples["op"] == "samples" && samples["version"] == 5 => {
                let points = &samples["points"];
                for z in points[0]["v"].as_array().unwrap() {
                    assert!((z.as_f64().unwrap() - 9.81).abs() < 0.06, "{z}");
                    numbers += 1;
                }
                assert!(points[1]["v"].as_array().unwrap().iter().all(Json::is_null));
                for value in samples["values"].as_array().unwrap() {
                    assert!(value["text"].as_str().unwrap().contains("temperature: 36.5"));
                    texts += 1;
                }
            }
            Received::Binary(picture) => {
                assert_eq!(picture.len(), 24 + (WIDTH * HEIGHT * 3) as usize);
                assert_eq!(picture[4..8], WIDTH.to_le_bytes());
                assert_eq!(picture[24..27], [200, 30, 30]);
                pictures += 1;
            }
            _ => {}
        }
    }
    // The page has not answered that it has shown the picture.
    assert_eq!(pictures, 1);
    page.send(json!({"op": "shown"}));
    while !matches!(page.receive(), Received::Binary(_)) {}
    let rates = page.json("rates");
    let topics = rates["topics"].as_array().unwrap();
    assert!(topics.iter().any(|it| it["name"] == "imu" && it["publishers"] == 1), "{rates}");
}
