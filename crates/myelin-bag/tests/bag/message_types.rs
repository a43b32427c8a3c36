//! Values in messages, by what the channel says of them.

use myelin_bag::{
    Channel, Content, MessageType, MessageTypeError, OwnedSchema, Schema, TopicFormat,
};

/// The type of a topic of plain data, and the message of a sample.
fn plain(layout: &str, sample: &[u8]) -> (MessageType, Vec<u8>) {
    let format = TopicFormat::new(&Schema::layout(layout));
    let ty = MessageType::new(&format.channel("topic", 1), Some(format.schema()));
    let message = format.message(sample, &mut Vec::new()).concat();
    (ty.expect("a layout"), message)
}

#[test]
fn plain_data_have_the_names_of_their_program() {
    let layout = "Pose{id: u8 @0, frameName: FixedString<4>{length: [u8; 4] @0, bytes: [u8; 4] @4} 8 @1, x: f64 @16} 24";
    let mut sample = [0; 24];
    sample[1] = 2;
    sample[5..7].copy_from_slice(b"ab");
    sample[16..].copy_from_slice(&1.5_f64.to_le_bytes());
    let (ty, message) = plain(layout, &sample);
    assert_eq!(message.len(), 28);
    let value = ty.value(&message).expect("a value");
    assert_eq!(value.to_json(9).expect("short"), r#"{"id": 0, "frameName": "ab", "x": 1.5}"#);
    assert_eq!(ty.sample(&message, &mut Vec::new()).expect("a sample").concat(), sample);
    assert!(!ty.is_padding("padding0"), "a layout has none");
    assert!(ty.value(&message[..20]).is_err() && ty.value(&[]).is_err());
}

#[test]
fn a_slice_is_read_and_becomes_the_same_sample() {
    for (layout, header, at, element) in [
        ("[f64]", 0, 0, 8),
        ("[u8]", 0, 0, 1),
        ("(Head{n: u32 @0} 4, [f64] @8)", 4, 8, 8),
        ("(Head{n: u8 @0} 1, [u16] @2)", 1, 2, 2),
        ("(Head{n: u64 @0, m: u8 @8} 16, [P{x: f32 @0, y: u8 @4} 8] @16)", 16, 16, 8),
    ] {
        for count in [0, 1, 5] {
            let mut sample = vec![0; at + count * element];
            for (number, byte) in sample.iter_mut().enumerate() {
                *byte = if number < header || number >= at { number as u8 % 100 } else { 0 };
            }
            let (ty, message) = plain(layout, &sample);
            let name = if header > 0 { "slice" } else { "data" };
            let value = ty.value(&message).expect("a value");
            assert_eq!(value.get(name).expect("its name").len(), Ok(count), "{layout}");
            assert_eq!(
                ty.sample(&message, &mut Vec::new()).expect("a sample").concat(),
                sample,
                "{layout}"
            );
            if count > 0 {
                assert_eq!(
                    ty.sample(&message[..message.len() - 1], &mut Vec::new()),
                    None,
                    "{layout}"
                );
            }
        }
    }
    let (ty, _) = plain("(Head{n: u8 @0} 1, [u16] @2)", &[1, 0]);
    assert!(ty.is_padding("padding0") && !ty.is_padding("paddings") && !ty.is_padding("header"));
}

#[test]
fn other_encodings_are_read_or_refused() {
    let schema = |encoding: &str, text: &str| OwnedSchema {
        encoding: encoding.into(),
        name: "a/msg/B".into(),
        text: text.into(),
    };
    let channel = |encoding: &str| Channel { encoding: encoding.into(), ..Channel::default() };

    let ros = MessageType::new(&channel("cdr"), Some(&schema("ros2msg", "string name\n")));
    let ros = ros.expect("a message of ROS 2");
    let message = [0, 1, 0, 0, 3, 0, 0, 0, b'h', b'i', 0];
    let name = ros.value(&message).expect("a value").get("name").expect("its name").as_string();
    assert_eq!(name, Ok("hi".to_owned()));
    assert_eq!(ros.sample(&message, &mut Vec::new()).expect("as it is").concat(), message);

    let own = MessageType::new(&channel("x-myelin"), Some(&schema("myelin-layout", "u128")));
    assert!(own.expect("a layout").value(&[0; 16]).is_ok());

    let json = MessageType::new(&channel("json"), None).expect("it needs no schema");
    let Ok(Content::Json(value)) = json.content(br#"{"a": [1]}"#) else { panic!("no JSON") };
    assert_eq!(value["a"][0], 1);
    assert!(json.content(b"{").is_err() && json.value(b"{}").is_err());

    let error = MessageType::new(&channel("protobuf"), Some(&schema("protobuf", "")));
    let error = error.expect_err("no reader");
    assert!(matches!(&error, MessageTypeError::Unsupported { .. }));
    assert!(error.to_string().contains("protobuf"), "{error}");
    let error = MessageType::new(&channel("cdr"), Some(&schema("ros2msg", "floot x")));
    assert!(matches!(error, Err(MessageTypeError::Schema(_))));
    // A layout that is no layout is not needed: the message is defined.
    let metadata = [("myelin:layout".to_owned(), "P{".to_owned())].into();
    let channel = Channel { metadata, ..channel("cdr") };
    assert!(MessageType::new(&channel, Some(&schema("ros2msg", "uint8 x"))).is_ok());
}
