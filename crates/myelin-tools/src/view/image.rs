//! Samples that are pictures, found by the names of their fields.
//!
//! | | |
//! |---|---|
//! | `width`, `height`, bytes at the end; `step`, `encoding` if they are there | `sensor_msgs/msg/Image`, a header with a slice |
//! | `format`, bytes at the end | `sensor_msgs/msg/CompressedImage` |
//! | an array of arrays of 1, 3 or 4 bytes | `pixels: [[[u8; 3]; 640]; 480]` |

use myelin_value::{Kind, Primitive, Type, Value};

use crate::document::{leaves, type_at};

/// Where the parts of a picture are in a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ImageShape {
    Fields {
        width: String,
        height: String,
        step: Option<String>,
        encoding: Option<String>,
        data: String,
        /// What the elements say, if there is no encoding.
        pixel: Option<PixelFormat>,
    },
    Compressed {
        format: String,
        data: String,
    },
    Array {
        data: String,
        width: u32,
        height: u32,
        channels: u32,
    },
}

/// A picture in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Picture<'a> {
    pub(super) format: PixelFormat,
    /// 0 of a compressed one.
    pub(super) width: u32,
    pub(super) height: u32,
    /// Bytes from row to row.
    pub(super) step: u32,
    pub(super) data: &'a [u8],
}

/// As the page knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PixelFormat {
    Mono8 = 0,
    Rgb8 = 1,
    Bgr8 = 2,
    Rgba8 = 3,
    Bgra8 = 4,
    Mono16 = 5,
    /// JPEG, PNG or WebP.
    Compressed = 6,
}

impl ImageShape {
    /// Those of a type; `None` if its samples are no pictures.
    pub(super) fn of(ty: &Type) -> Option<ImageShape> {
        let leaves = leaves(ty);
        let kinds = leaves.iter().filter_map(|path| Some((path, type_at(ty, path).ok()?)));
        let kinds: Vec<(&String, &Type)> = kinds.collect();
        let named = |names: &[&str], is_right: fn(&Type) -> bool| {
            let fits = |path: &str, ty: &Type| {
                let name = path.rsplit('.').next().unwrap_or_default();
                is_right(ty) && names.contains(&name)
            };
            kinds.iter().find(|(path, ty)| fits(path, ty)).map(|(path, _)| (*path).clone())
        };
        let pixels = kinds.iter().rev().find_map(|(path, ty)| Some((*path, pixel_of(ty)?)));
        if let Some((data, pixel)) = pixels {
            if let (Some(width), Some(height)) =
                (named(&["width"], is_number), named(&["height"], is_number))
            {
                let step = named(&["step", "stride"], is_number);
                let encoding = named(&["encoding", "format", "pixel_format"], is_text);
                let data = data.clone();
                return Some(ImageShape::Fields { width, height, step, encoding, data, pixel });
            }
            if let Some(format) = named(&["format"], is_text) {
                return Some(ImageShape::Compressed { format, data: data.clone() });
            }
        }
        kinds.iter().find_map(|(path, ty)| {
            let (height, row) = array(ty)?;
            let (width, pixel) = array(row)?;
            let channels = match pixel.kind() {
                Kind::Primitive(Primitive::U8) => 1,
                _ => array(pixel).filter(|(_, it)| is_byte(it))?.0,
            };
            let data = (*path).clone();
            let is_picture = width >= 8 && height >= 8 && matches!(channels, 1 | 3 | 4);
            is_picture.then_some(ImageShape::Array { data, width, height, channels })
        })
    }

    /// The picture in a sample.
    ///
    /// # Errors
    /// One sentence: a size that is not possible, a format that is not known.
    pub(super) fn read<'a>(&self, sample: &Value<'a>) -> Result<Picture<'a>, String> {
        let at = |path: &str| sample.get(path).map_err(|error| error.to_string());
        let number = |path: &str| {
            let number = at(path)?.as_u64().map_err(|error| error.to_string())?;
            u32::try_from(number).map_err(|_| format!("{path} is {number}"))
        };
        let bytes = |path: &str| at(path)?.as_bytes().map_err(|error| error.to_string());
        let text = |path: &str| at(path)?.as_string().map_err(|error| error.to_string());
        match self {
            ImageShape::Fields { width, height, step, encoding, data, pixel } => {
                let (width, height, data) = (number(width)?, number(height)?, bytes(data)?);
                let encoding = encoding.as_deref().map(text).transpose()?;
                let encoding = encoding.filter(|it| !it.is_empty());
                let format = match (encoding, pixel) {
                    (Some(encoding), _) => format_of(&encoding)?,
                    (None, Some(pixel)) => *pixel,
                    (None, None) => format_by_size(data.len(), width, height)?,
                };
                let row = width.saturating_mul(format.bytes());
                let step = step.as_deref().map(number).transpose()?.filter(|it| *it > 0);
                Picture { format, width, height, step: step.unwrap_or(row), data }.checked()
            }
            ImageShape::Compressed { format, data } => {
                let format = text(format)?;
                let is_known = ["jpeg", "jpg", "png", "webp"].iter().any(|it| format.contains(it));
                if !is_known {
                    return Err(format!("pictures as {format:?} are not shown"));
                }
                let format = PixelFormat::Compressed;
                Ok(Picture { format, width: 0, height: 0, step: 0, data: bytes(data)? })
            }
            ImageShape::Array { data, width, height, channels } => {
                let format = match channels {
                    1 => PixelFormat::Mono8,
                    3 => PixelFormat::Rgb8,
                    _ => PixelFormat::Rgba8,
                };
                let (width, height, step) = (*width, *height, width * channels);
                Picture { format, width, height, step, data: bytes(data)? }.checked()
            }
        }
    }
}

impl<'a> Picture<'a> {
    /// With just the bytes that it needs.
    fn checked(self) -> Result<Picture<'a>, String> {
        let Picture { format, width, height, step, data } = self;
        if width == 0 || height == 0 || width > SIDE_MAX || height > SIDE_MAX {
            return Err(format!("pictures of {width} x {height} are not shown"));
        }
        let row = width as usize * format.bytes() as usize;
        let needed = (height as usize - 1).saturating_mul(step as usize).saturating_add(row);
        match data.get(..needed) {
            Some(data) if step as usize >= row => Ok(Picture { data, ..self }),
            _ => Err(format!(
                "{width} x {height} with {step} B a row do not fit {} B of pixels",
                data.len()
            )),
        }
    }
}

impl PixelFormat {
    fn bytes(self) -> u32 {
        match self {
            PixelFormat::Mono8 | PixelFormat::Compressed => 1,
            PixelFormat::Mono16 => 2,
            PixelFormat::Rgb8 | PixelFormat::Bgr8 => 3,
            PixelFormat::Rgba8 | PixelFormat::Bgra8 => 4,
        }
    }
}

/// By the names of ROS 2. A mosaic is shown as it is.
fn format_of(encoding: &str) -> Result<PixelFormat, String> {
    Ok(match encoding.to_ascii_lowercase().as_str() {
        "mono8" | "8uc1" | "gray8" | "grey8" => PixelFormat::Mono8,
        "rgb8" | "rgb" | "8uc3" => PixelFormat::Rgb8,
        "bgr8" | "bgr" => PixelFormat::Bgr8,
        "rgba8" | "rgba" | "8uc4" => PixelFormat::Rgba8,
        "bgra8" | "bgra" => PixelFormat::Bgra8,
        "mono16" | "16uc1" => PixelFormat::Mono16,
        bayer if bayer.starts_with("bayer_") && bayer.ends_with('8') => PixelFormat::Mono8,
        _ => return Err(format!("pictures as {encoding:?} are not shown")),
    })
}

/// If nothing names it.
fn format_by_size(bytes: usize, width: u32, height: u32) -> Result<PixelFormat, String> {
    match bytes / (width as usize * height as usize).max(1) {
        1 => Ok(PixelFormat::Mono8),
        2 => Ok(PixelFormat::Mono16),
        3 => Ok(PixelFormat::Rgb8),
        4 => Ok(PixelFormat::Rgba8),
        _ => Err(format!("{width} x {height} do not fit {bytes} B of pixels")),
    }
}

fn is_number(ty: &Type) -> bool {
    matches!(ty.kind(), Kind::Primitive(it) if !matches!(it, Primitive::F32 | Primitive::F64))
}

fn is_text(ty: &Type) -> bool {
    matches!(ty.kind(), Kind::String { .. })
}

fn is_byte(ty: &Type) -> bool {
    matches!(ty.kind(), Kind::Primitive(Primitive::U8))
}

/// What the elements of a sequence say if they are pixels: bytes, arrays of bytes, or structs of the
/// bytes `r`, `g`, `b` and perhaps `a`.
fn pixel_of(ty: &Type) -> Option<Option<PixelFormat>> {
    let Kind::Sequence { element, bound: None } = ty.kind() else { return None };
    if let Kind::Struct { fields, .. } = element.kind() {
        let names: Vec<&str> = fields.iter().map(|it| &*it.name).collect();
        let is_packed = fields.len() == element.bytes_min();
        let format = match names[..] {
            ["r", "g", "b"] => PixelFormat::Rgb8,
            ["b", "g", "r"] => PixelFormat::Bgr8,
            ["r", "g", "b", "a"] => PixelFormat::Rgba8,
            ["b", "g", "r", "a"] => PixelFormat::Bgra8,
            _ => return None,
        };
        return is_packed.then_some(Some(format));
    }
    let mut inner = &**element;
    while let Kind::Array { element, .. } = inner.kind() {
        inner = element;
    }
    is_byte(inner).then_some(None)
}

fn array(ty: &Type) -> Option<(u32, &Type)> {
    match ty.kind() {
        Kind::Array { element, length } => Some((u32::try_from(*length).ok()?, element)),
        _ => None,
    }
}

const SIDE_MAX: u32 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;
    use myelin_value::{Schema, encode_json};
    use serde_json::json;

    const IMAGE: &str = "uint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\n\
                         uint32 step\nuint8[] data\n";

    #[test]
    fn pictures_of_ros_2_are_read_and_checked() {
        let ty = Schema::new("ros2msg", "sensor_msgs/msg/Image", IMAGE).parse().unwrap();
        let shape = ImageShape::of(&ty).unwrap();
        let read = |json| {
            let sample = encode_json(&ty, &json).unwrap();
            let picture = shape.read(&Value::new(&ty, &sample).unwrap())?;
            Ok((picture.format, picture.width, picture.height, picture.step, picture.data.len()))
        };
        let data = vec![0; 40];
        let of = |encoding: &str, width: u32, height: u32, step: u32| {
            read(json!({"encoding": encoding, "width": width, "height": height, "step": step,
                        "data": data}))
        };
        assert_eq!(of("rgb8", 2, 3, 8), Ok((PixelFormat::Rgb8, 2, 3, 8, 22)));
        assert_eq!(of("mono8", 4, 10, 0), Ok((PixelFormat::Mono8, 4, 10, 4, 40)));
        assert_eq!(of("", 4, 10, 0), Ok((PixelFormat::Mono8, 4, 10, 4, 40)));
        assert_eq!(of("bayer_rggb8", 4, 10, 4), Ok((PixelFormat::Mono8, 4, 10, 4, 40)));
        for (encoding, width, height, step) in [
            ("rgb8", 4, 4, 12),
            ("rgb8", 0, 4, 12),
            ("rgb8", 2, 3, 5),
            ("rgb8", 2, 3, u32::MAX),
            ("mono8", u32::MAX, u32::MAX, u32::MAX),
            ("", 100, 100, 0),
            ("yuv422", 2, 2, 4),
        ] {
            let error: Result<_, String> = of(encoding, width, height, step);
            assert!(error.is_err(), "{encoding} {width} {height} {step}");
        }
    }

    #[test]
    fn plain_data_can_be_a_picture() {
        let of = |layout: &str| ImageShape::of(&Schema::layout(layout).parse().unwrap());
        let header = "(Frame{stamp_ns: u64 @0, width: u32 @8, height: u32 @12} 16, [u8] @16)";
        let ty = Schema::layout(header).parse().unwrap();
        let mut sample = vec![0; 16 + 24];
        (sample[8], sample[12]) = (4, 2);
        let picture = ImageShape::of(&ty).unwrap();
        let picture = picture.read(&Value::new(&ty, &sample).unwrap()).unwrap();
        assert_eq!((picture.format, picture.step), (PixelFormat::Rgb8, 12));
        assert_eq!(picture.data, &sample[16..]);

        let structs = "(Frame{width: u32 @0, height: u32 @4} 8, \
                       [Pixel{b: u8 @0, g: u8 @1, r: u8 @2} 3] @8)";
        let ty = Schema::layout(structs).parse().unwrap();
        let mut sample = vec![0; 8 + 12];
        (sample[0], sample[4]) = (2, 2);
        let picture = ImageShape::of(&ty).unwrap();
        let picture = picture.read(&Value::new(&ty, &sample).unwrap()).unwrap();
        assert_eq!((picture.format, picture.data.len()), (PixelFormat::Bgr8, 12));

        let array = of("Image{stamp: u64 @0, pixels: [[[u8; 3]; 32]; 16] @8} 1544").unwrap();
        let expected =
            ImageShape::Array { data: "pixels".to_owned(), width: 32, height: 16, channels: 3 };
        assert_eq!(array, expected);
        assert_eq!(of("Grid{cells: [[f32; 16]; 16] @0} 1024"), None);
        assert_eq!(of("Pose{x: f64 @0, y: f64 @8} 16"), None);
    }
}
