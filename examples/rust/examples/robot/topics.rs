//! What the parts say to each other: types, and how each topic is to behave. Both ends take it from
//! here, so they cannot disagree; one that wants it otherwise for itself says so where it subscribes.

use std::time::Duration;

use myelin::{Node, PlainData, Topic};

/// A camera's image has one size, so it is a struct; were the size to vary, it would be a `[u8]`.
/// It is 4.7 MB: write it in a loan, read it in the sample, and never have it on the stack.
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
    /// When the driver was started. With the number it names a sample for good, on every host and
    /// whoever was restarted since; `Sample::publisher` does so for one subscriber alone.
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

/// The newest image is worth more than a late one, so nobody waits for anybody. Two may pile up while
/// the detector is at one.
pub fn image(node: &Node) -> Topic<Image> {
    node.topic("image").depth(2).best_effort()
}

/// Small, and each counts; but a controller that hangs must not hold up the detector.
pub fn detections(node: &Node) -> Topic<[Detection]> {
    node.topic("detections").depth(64).reliable(Duration::from_millis(10))
}

/// The depth is 4 s: who pauses for less, loses nothing, and who starts up to 4 s late (or dies and
/// is started again) gets what it missed. Who hangs for longer is passed over and told so: the
/// driver waits for it once, for 2 ms, and never stands still.
pub fn imu(node: &Node) -> Topic<Imu> {
    node.topic("imu").depth(2048).history(2048).reliable(Duration::from_millis(2))
}

/// The newest command alone is of interest.
pub fn command(node: &Node) -> Topic<Command> {
    node.topic("command").depth(1).best_effort()
}

/// Whoever asks, at any time, gets the latest at once.
pub fn log_status(node: &Node) -> Topic<LogStatus> {
    node.topic("log/status").depth(1).history(1)
}

pub const WIDTH: usize = 1440;
pub const HEIGHT: usize = 1080;
