//! Topics that say that they have images or point clouds, by the readers of others.

use crate::support::{Disk, node, output, python};
use myelin_bag::{MessageHead, MessageType, Options, Schema, TopicFormat, Writer};
use serde_json::{Value as Json, json};

/// A topic: layout, sample, and what readers make of it.
struct Case {
    layout: &'static str,
    sample: Vec<u8>,
    schema: &'static str,
    values: Json,
}

fn cases() -> Vec<Case> {
    let u32s = |numbers: &[u32]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
    let f32s = |numbers: &[f32]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
    let stamp = json!({"sec": 3, "nanosec": 5});
    let ones = [0, 0, 128, 63].repeat(6);
    let zero = json!({"sec": 0, "nanosec": 0});
    let field = |name: &str, offset: u32, datatype: u32, count: u32| json!({"name": name, "offset": offset, "datatype": datatype, "count": count});
    let xyz = [field("x", 0, 7, 1), field("y", 4, 7, 1), field("z", 8, 7, 1)];
    vec![
        Case {
            layout: "(Frame{stamp_ns: u64 @0, width: u32 @8, height: u32 @12} 16, \
                     [Rgb{r: u8 @0, g: u8 @1, b: u8 @2} 3] @16)",
            sample: [&3_000_000_005_u64.to_le_bytes()[..], &u32s(&[2, 1]), &[1, 2, 3, 4, 5, 6]]
                .concat(),
            schema: "sensor_msgs/msg/Image",
            values: json!({
                "header": {"stamp": stamp, "frame_id": ""}, "height": 1, "width": 2,
                "encoding": "rgb8", "is_bigendian": 0, "step": 6, "data": [1, 2, 3, 4, 5, 6],
            }),
        },
        Case {
            layout: "(Depth{stamp: Time{sec: i32 @0, nanosec: u32 @4} 8 @0, width: u32 @8, \
                     height: u32 @12, stride: u32 @16, \
                     encoding: FixedString<9>{length: [u8; 4] @0, bytes: [u8; 9] @4} 13 @20, \
                     frame_id: [u8; 7] @33, is_bigendian: Bool @40} 44, [u16] @44)",
            sample: [
                &u32s(&[3, 5, 1, 2, 4, 5])[..],
                b"16UC1\0\0\0\0camera\0\0\0\0\0",
                &[1, 2, 0, 0, 3, 4, 0, 0],
            ]
            .concat(),
            schema: "sensor_msgs/msg/Image",
            values: json!({
                "header": {"stamp": stamp, "frame_id": "camera"}, "height": 2, "width": 1,
                "encoding": "16UC1", "is_bigendian": 0, "step": 4,
                "data": [1, 2, 0, 0, 3, 4, 0, 0],
            }),
        },
        Case {
            layout: "[P{x: f32 @0, y: f32 @4, z: f32 @8, intensity: u8 @12} 16]",
            sample: [f32s(&[1.0, 2.0, 3.0]), vec![9, 0, 0, 0]].concat(),
            schema: "sensor_msgs/msg/PointCloud2",
            values: json!({
                "header": {"stamp": zero, "frame_id": ""}, "height": 1, "width": 1,
                "fields": [xyz[0], xyz[1], xyz[2], field("intensity", 12, 2, 1)],
                "is_bigendian": false, "point_step": 16, "row_step": 16,
                "data": [0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 9, 0, 0, 0], "is_dense": true,
            }),
        },
        Case {
            layout: "(Scan{stamp_ns: u64 @0, width: u16 @8, is_dense: u8 @10, \
                     frame_id: FixedString<3>{length: [u8; 4] @0, bytes: [u8; 3] @4} 7 @11} 24, \
                     [P{x: f32 @0, y: f32 @4, z: f32 @8} 12] @24)",
            sample: [
                &3_000_000_005_u64.to_le_bytes()[..],
                &[1, 0, 0, 3, 0, 0, 0],
                b"map\0\0\0\0\0\0",
                &f32s(&[1.0; 6]),
            ]
            .concat(),
            schema: "sensor_msgs/msg/PointCloud2",
            values: json!({
                "header": {"stamp": stamp, "frame_id": "map"}, "height": 2, "width": 1,
                "fields": xyz, "is_bigendian": false, "point_step": 12, "row_step": 12,
                "data": ones, "is_dense": false,
            }),
        },
    ]
}

#[test]
fn images_and_point_clouds_are_read_by_everybody() {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), Options::default()).expect("endless space");
    let mut scratch = vec![0xff; 3];
    for (number, case) in (0..).zip(cases()) {
        let format = TopicFormat::new(&Schema::layout(case.layout));
        assert_eq!(format.schema().name, case.schema, "{:?}", format.not_cdr());
        let schema = writer.add_schema(&format.schema().as_schema()).expect("a schema");
        let channel = format.channel(&format!("/topic{number}"), schema);
        assert_eq!((&*channel.encoding, &*channel.metadata["myelin:layout"]), ("cdr", case.layout));
        let channel = writer.add_channel(&channel).expect("a channel");
        let head = MessageHead { channel, sequence: 0, log_ns: number, publish_ns: number };
        let parts = format.message(&case.sample, &mut scratch);
        let is_in_sample = case.sample.as_ptr_range().contains(&parts[1].as_ptr());
        assert!(is_in_sample, "the elements are not copied");
        writer.write(&head, &parts).expect("endless space");
        let message = parts.concat();
        let sample = format.sample(&message, &mut scratch).expect("it is one of the topic");
        assert_eq!(sample.concat(), case.sample, "{}", case.layout);
        let channel = format.channel("/topic", schema);
        let ty = MessageType::new(&channel, Some(format.schema())).expect("a message");
        let value = ty.value(&message).and_then(|it| it.get("width")?.as_u64()).expect("a message");
        assert_eq!(json!(value), case.values["width"]);
        let sample = ty.sample(&message, &mut scratch).expect("it is one of the topic");
        assert_eq!(sample.concat(), case.sample, "{}", case.layout);
        for cut in 0..message.len() {
            let read = format.sample(&message[..cut], &mut scratch);
            assert!(read.is_none(), "cut at {cut} of {}", message.len());
        }
    }
    writer.finish().expect("endless space");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.mcap");
    std::fs::write(&path, disk.bytes()).expect("space");
    for mut reader in [python("read.py"), node("read.mjs")].into_iter().flatten() {
        let read = output(reader.arg("values").arg(&path));
        assert_eq!(read.lines().count(), cases().len());
        for (line, case) in read.lines().zip(cases()) {
            let mut read: Json = serde_json::from_str(line).expect("JSON");
            // `@foxglove/rosmsg2-serialization` names the fields of times as in ROS 1.
            let time = &mut read["header"]["stamp"];
            if let Some(nsec) = time.as_object_mut().and_then(|time| time.remove("nsec")) {
                time["nanosec"] = nsec;
            }
            assert_eq!(read, case.values, "{}", case.layout);
        }
    }
}

#[test]
fn other_topics_are_not_taken_for_images() {
    for layout in [
        // What a pixel is, is not said.
        "(Frame{stamp_ns: u64 @0, width: u32 @8, height: u32 @12} 16, [u8] @16)",
        // A field that an image has no place for.
        "(F{exposure: f32 @0, width: u32 @4, height: u32 @8} 12, [C{r: u8 @0, g: u8 @1, b: u8 @2} 3] @12)",
        // No size, two sizes, no text.
        "[C{r: u8 @0, g: u8 @1, b: u8 @2} 3]",
        "(F{width: u32 @0, height: u32 @4, step: u32 @8, stride: u32 @12} 16, [C{r: u8 @0, g: u8 @1, b: u8 @2} 3] @16)",
        "(F{width: u32 @0, height: u32 @4, encoding: u32 @8} 12, [u8] @12)",
        // Points in a plane, of whole numbers, with more than numbers.
        "[P{x: f32 @0, y: f32 @4} 8]",
        "[P{x: i32 @0, y: i32 @4, z: i32 @8} 12]",
        "[P{x: f32 @0, y: f32 @4, z: f32 @8, t: T{n: u8 @0} 1 @12} 16]",
        "P{x: f32 @0, y: f32 @4, z: f32 @8} 12",
    ] {
        let format = TopicFormat::new(&Schema::layout(layout));
        assert!(format.schema().name.starts_with("myelin/msg/"), "{layout}");
    }
}
