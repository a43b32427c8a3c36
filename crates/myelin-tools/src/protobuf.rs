//! Messages of Protocol Buffers, read by the descriptor that their topic announces: a schema with the
//! encoding `protobuf` whose content is a `FileDescriptorSet`, as in MCAP and Foxglove.

use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::Value as Json;

/// The encoding of such schemas.
pub const ENCODING: &str = "protobuf";

/// The message of a topic: that of the type's name; if there is none, the only one of the set's last
/// file, which `protoc` writes behind the files that it imports.
///
/// # Errors
/// One sentence: no descriptor, or which message it lacks.
pub fn message(type_name: &str, content: &[u8]) -> Result<MessageDescriptor, String> {
    let pool = DescriptorPool::decode(content)
        .map_err(|error| format!("its schema is no FileDescriptorSet: {error}"))?;
    if let Some(message) = pool.get_message_by_name(type_name) {
        return Ok(message);
    }
    let last = pool.files().last();
    let mut messages = last.iter().flat_map(|file| file.messages());
    match (messages.next(), messages.next()) {
        (Some(only), None) => Ok(only.clone()),
        _ => Err(format!("its FileDescriptorSet has no message {type_name:?}")),
    }
}

/// A sample as JSON, with the names of the descriptor, and with fields that have their default.
///
/// # Errors
/// Bytes that are no such message.
pub fn read(message: &MessageDescriptor, sample: &[u8]) -> Result<Json, String> {
    let broken = |error: &dyn std::fmt::Display| format!("no {}: {error}", message.full_name());
    let decoded =
        DynamicMessage::decode(message.clone(), sample).map_err(|error| broken(&error))?;
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .skip_default_fields(false)
        .stringify_64_bit_integers(false);
    let json = decoded.serialize_with_options(serde_json::value::Serializer, &options);
    json.map_err(|error| broken(&error))
}

/// The sample of a value.
///
/// # Errors
/// A value that does not fit.
pub fn encode(message: &MessageDescriptor, value: &Json) -> Result<Vec<u8>, String> {
    let encoded = DynamicMessage::deserialize(message.clone(), value);
    encoded.map(|it| it.encode_to_vec()).map_err(|error| error.to_string())
}

/// Its fields, each `path: type`.
pub fn fields(message: &MessageDescriptor) -> Vec<String> {
    let line = |field: prost_reflect::FieldDescriptor| {
        let kind = match field.kind() {
            prost_reflect::Kind::Message(of) => of.full_name().to_owned(),
            prost_reflect::Kind::Enum(of) => of.full_name().to_owned(),
            other => format!("{other:?}").to_lowercase(),
        };
        let name = field.name();
        if field.is_list() { format!("{name}: [{kind}]") } else { format!("{name}: {kind}") }
    };
    message.fields().map(line).collect()
}

#[cfg(test)]
mod tests {
    use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
    use prost_reflect::prost_types::{
        DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    };

    use super::*;

    fn set() -> Vec<u8> {
        let field = |name: &str, number, ty: Type, label: Label| FieldDescriptorProto {
            name: Some(name.into()),
            number: Some(number),
            label: Some(label.into()),
            r#type: Some(ty.into()),
            ..Default::default()
        };
        let fields = vec![
            field("frame_id", 1, Type::String, Label::Optional),
            field("stamp_ns", 2, Type::Uint64, Label::Optional),
            field("ranges", 3, Type::Float, Label::Repeated),
        ];
        let scan =
            DescriptorProto { name: Some("Scan".into()), field: fields, ..Default::default() };
        let file = FileDescriptorProto {
            name: Some("robot/scan.proto".into()),
            package: Some("robot".into()),
            message_type: vec![scan],
            syntax: Some("proto3".into()),
            ..Default::default()
        };
        FileDescriptorSet { file: vec![file] }.encode_to_vec()
    }

    #[test]
    fn fields_have_the_names_of_the_descriptor() {
        let scan = message("robot.Scan", &set()).unwrap();
        assert_eq!(fields(&scan), ["frame_id: string", "stamp_ns: uint64", "ranges: [float]"]);
        let sample = b"\x0a\x05laser\x1a\x08\0\0\x80\x3f\0\0\0\x40";
        let expected =
            serde_json::json!({ "frame_id": "laser", "stamp_ns": 0, "ranges": [1.0, 2.0] });
        assert_eq!(read(&scan, sample).unwrap(), expected);
        assert_eq!(encode(&scan, &expected).unwrap(), sample);
        assert!(encode(&scan, &serde_json::json!({ "frame": 1 })).unwrap_err().contains("frame"));
        let error = read(&scan, b"\x0a\x05las").unwrap_err();
        assert!(error.starts_with("no robot.Scan: "), "{error}");
        // The only message that there is.
        assert_eq!(message("[u8]", &set()).unwrap().full_name(), "robot.Scan");
        assert!(message("robot.Scan", b"\xff").unwrap_err().contains("FileDescriptorSet"));
        let nothing = FileDescriptorSet::default().encode_to_vec();
        assert!(message("robot.Scan", &nothing).unwrap_err().contains("no message \"robot.Scan\""));
    }
}
