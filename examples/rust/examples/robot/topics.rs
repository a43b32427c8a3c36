//! The topics between the parts: types and settings. Both ends take them from here, so they cannot
//! disagree; a part that needs another setting changes it where it subscribes.

use std::time::Duration;

use myelin::{Node, PlainData, Topic};

/// A camera's images have one size, so this is a struct; for varying sizes it would be a `[u8]`. It
/// has 4.7 MB: write it in a loan, read it in the sample, and never put it on the stack.
#[derive(Clone, Copy, PlainData)]
#[repr(C)]
pub struct Image {
    pub stamp_ns: u64,
    pub number: u64,
    pub pixels: [[Pixel; WIDTH]; HEIGHT],
}

/// Red, green, blue.
pub type Pixel = [u8; 3];

#[derive(Clone, Copy, Debug, PlainData)]
#[repr(C)]
pub struct Detection {
    pub image_number: u64,
    pub left: u32,
    pub top: u32,
    pub width: u32,
    /// 0 to 1.
    pub confidence: f32,
}

#[derive(Clone, Copy, Debug, PlainData)]
#[repr(C)]
pub struct Imu {
    pub stamp_ns: u64,
    /// When the driver was started. Together with the number it identifies a sample for ever, on
    /// every host and after every restart; `Sample::publisher` does so only for one subscriber.
    pub life: u64,
    /// Counts from 0 in each life.
    pub number: u64,
    /// m/s²
    pub acceleration: [f64; 3],
    /// rad/s
    pub angular_velocity: [f64; 3],
}

#[derive(Clone, Copy, Debug, PlainData)]
#[repr(C)]
pub struct Command {
    pub stamp_ns: u64,
    /// m/s
    pub speed: f64,
}

#[derive(Clone, Copy, Debug, PlainData)]
#[repr(C)]
pub struct LogStatus {
    pub written: u64,
    pub lost: u64,
}

/// The newest image is worth more than a late one, so no publisher waits. Two images may wait while
/// the detector handles one.
pub fn image(node: &Node) -> Topic<Image> {
    node.topic("image").depth(2).best_effort()
}

/// Small, and each one counts; but a controller that hangs must not hold up the detector.
pub fn detections(node: &Node) -> Topic<[Detection]> {
    node.topic("detections").depth(64).reliable(Duration::from_millis(10))
}

/// The depth is 4 s: a subscriber that pauses for less loses nothing, and one that starts up to 4 s
/// late (or is restarted) gets the samples that it missed. A subscriber that hangs for longer is
/// passed over, and learns of it: the driver waits for it once, for 2 ms, and never stops.
pub fn imu(node: &Node) -> Topic<Imu> {
    node.topic("imu").depth(2048).transient_local(2048).reliable(Duration::from_millis(2))
}

/// Only the newest command matters.
pub fn command(node: &Node) -> Topic<Command> {
    node.topic("command").depth(1).best_effort()
}

/// Every subscriber, at any time, gets the latest status at once.
pub fn log_status(node: &Node) -> Topic<LogStatus> {
    node.topic("log/status").depth(1).transient_local(1)
}

pub const WIDTH: usize = 1440;
pub const HEIGHT: usize = 1080;
