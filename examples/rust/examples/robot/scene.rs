//! The scene before the camera, in place of a lens: white squares on grey stripes. The number of
//! squares and the grey of each line follow from the image's number, so that a reader can check
//! whether an image is whole.

use crate::topics::{HEIGHT, Image, Pixel};

/// Draws the scene of `image.number`.
pub fn draw(image: &mut Image) {
    let number = image.number;
    for (y, line) in image.pixels.iter_mut().enumerate() {
        line.as_flattened_mut().fill(grey(number, y));
    }
    for line in &mut image.pixels[TOP..TOP + SIZE] {
        for square in 0..squares(number) {
            line[left(square)..][..SIZE].fill(WHITE);
        }
    }
}

/// Whether each line belongs to this image.
pub fn is_whole(image: &Image) -> bool {
    (0..HEIGHT).filter(|y| !(TOP..TOP + SIZE).contains(y)).all(|y| {
        let line = image.pixels[y].as_flattened();
        line[0] == grey(image.number, y) && line[1..] == line[..line.len() - 1]
    })
}

/// How many squares an image shows.
pub fn squares(number: u64) -> usize {
    (number % 8) as usize
}

fn left(square: usize) -> usize {
    100 + 160 * square
}

/// Never white.
fn grey(number: u64, y: usize) -> u8 {
    ((number + y as u64) % 200) as u8
}

/// The height and width of a square.
pub const SIZE: usize = 32;
pub const WHITE: Pixel = [255; 3];
const TOP: usize = 500;
