//! Values of random types: JSON is written to bytes, and read again as the same JSON. Every part
//! is also read by its path.

use myelin_value::{Schema, Value, encode_json};
use proptest::prelude::*;
use proptest::test_runner::TestRng;
use serde_json::{Value as Json, json};

/// A type that both encodings have.
#[derive(Clone, Debug)]
enum Model {
    /// By its names in layouts and in messages.
    Number(&'static str, &'static str),
    Text(usize),
    Array(Box<Model>, usize),
    Bounded(Box<Model>, usize),
    Unbounded(Box<Model>),
    /// Each field, in plain data with so many bytes of padding before it.
    Struct(Vec<(Model, usize)>),
}

const NUMBERS: [(&str, &str); 11] = [
    ("Bool", "bool"),
    ("i8", "int8"),
    ("i16", "int16"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("u8", "uint8"),
    ("u16", "uint16"),
    ("u32", "uint32"),
    ("u64", "uint64"),
    ("f32", "float32"),
    ("f64", "float64"),
];

fn leaf() -> impl Strategy<Value = Model> {
    let number = proptest::sample::select(&NUMBERS[..]);
    prop_oneof![
        4 => number.prop_map(|(plain, message)| Model::Number(plain, message)),
        1 => (1_usize..20).prop_map(Model::Text),
    ]
}

/// With `is_message`, sequences without a bound too: in plain data these are at the end only.
fn model(is_message: bool) -> impl Strategy<Value = Model> {
    leaf().prop_recursive(4, 24, 5, move |inner| {
        let element = || inner.clone().prop_map(Box::new);
        let unbounded = if is_message { 1 } else { 0 };
        prop_oneof![
            2 => (element(), 1_usize..4).prop_map(|(of, length)| Model::Array(of, length)),
            1 => (element(), 1_usize..4).prop_map(|(of, bound)| Model::Bounded(of, bound)),
            unbounded => element().prop_map(Model::Unbounded),
            3 => proptest::collection::vec((inner.clone(), 0_usize..4), 1..5)
                .prop_map(Model::Struct),
        ]
    })
}

impl Model {
    /// The layout, and the size.
    fn layout(&self) -> (String, usize) {
        match self {
            Model::Number(name, _) => {
                let bits = name.trim_start_matches(char::is_alphabetic).parse().unwrap_or(8);
                (name.to_string(), bits / 8)
            }
            Model::Text(bound) => {
                let bytes = bound + 4;
                let fields = format!("length: [u8; 4] @0, bytes: [u8; {bound}] @4");
                (format!("FixedString<{bound}>{{{fields}}} {bytes}"), bytes)
            }
            Model::Array(element, length) => {
                let (element, bytes) = element.layout();
                (format!("[{element}; {length}]"), bytes * length)
            }
            Model::Bounded(element, bound) => {
                let (element, bytes) = element.layout();
                let bytes = bytes * bound + 8;
                let fields = format!("length: u64 @0, elements: [{element}; {bound}] @8");
                (format!("BoundedVec<T, {bound}>{{{fields}}} {bytes}"), bytes)
            }
            Model::Unbounded(_) => unreachable!("only in messages"),
            Model::Struct(fields) => {
                let (mut text, mut end) = (String::new(), 0);
                for (index, (field, padding)) in fields.iter().enumerate() {
                    let (layout, bytes) = field.layout();
                    let comma = if index > 0 { ", " } else { "" };
                    text += &format!("{comma}f{index}: {layout} @{}", end + padding);
                    end += padding + bytes;
                }
                (format!("Some<T>{{{text}}} {}", end + 1), end + 1)
            }
        }
    }

    /// The definition of a message with one field of this type.
    fn message(&self) -> String {
        let mut definitions = Vec::new();
        let field = self.declared(&mut definitions);
        format!("{field} value\n{}", definitions.concat())
    }

    /// The type of a field, and the definitions that it needs.
    fn declared(&self, definitions: &mut Vec<String>) -> String {
        // A message has no arrays of arrays.
        let element = |of: &Model, definitions: &mut Vec<String>| match of {
            Model::Array(..) | Model::Bounded(..) | Model::Unbounded(_) => {
                Model::Struct(vec![(of.clone(), 0)]).declared(definitions)
            }
            _ => of.declared(definitions),
        };
        match self {
            Model::Number(_, name) => name.to_string(),
            Model::Text(bound) if bound % 2 == 0 => format!("string<={bound}"),
            Model::Text(_) => "string".to_owned(),
            Model::Array(of, length) => format!("{}[{length}]", element(of, definitions)),
            Model::Bounded(of, bound) => format!("{}[<={bound}]", element(of, definitions)),
            Model::Unbounded(of) => format!("{}[]", element(of, definitions)),
            Model::Struct(fields) => {
                let fields = fields.iter().enumerate();
                let lines: String = fields
                    .map(|(index, (field, _))| {
                        format!("{} f{index}\n", field.declared(definitions))
                    })
                    .collect();
                let name = format!("M{}", definitions.len());
                definitions.push(format!("=====\nMSG: robot_msgs/{name}\n{lines}"));
                name
            }
        }
    }

    /// A random value; `is_message` as in [`declared`](Model::declared).
    fn value(&self, random: &mut TestRng, is_message: bool) -> Json {
        let elements = |of: &Model, length: usize, random: &mut TestRng| {
            let is_nested =
                matches!(of, Model::Array(..) | Model::Bounded(..) | Model::Unbounded(_));
            let element = |_| match of.value(random, is_message) {
                array if is_message && is_nested => json!({ "f0": array }),
                other => other,
            };
            (0..length).map(element).collect()
        };
        match self {
            Model::Number(name, _) => {
                let bits = random.next_u64();
                match *name {
                    "Bool" => json!(bits % 2 == 1),
                    "f32" => float(f32::from_bits(bits as u32).into()),
                    "f64" => float(f64::from_bits(bits)),
                    name if name.starts_with('i') => {
                        let unused = 64 - name[1..].parse::<u32>().unwrap();
                        json!(bits.cast_signed() >> unused)
                    }
                    name => json!(bits >> (64 - name[1..].parse::<u32>().unwrap())),
                }
            }
            Model::Text(bound) => {
                let some = "aé\u{1b}\"\\\n\u{202e}\u{9b}zzzzzzzzzzzzzzzzzzz";
                json!(some[..some.floor_char_boundary(random.next_u32() as usize % (bound + 1))])
            }
            Model::Array(of, length) => elements(of, *length, random),
            Model::Bounded(of, bound) => {
                elements(of, random.next_u32() as usize % (bound + 1), random)
            }
            Model::Unbounded(of) => elements(of, random.next_u32() as usize % 4, random),
            Model::Struct(fields) => {
                let fields = fields.iter().enumerate();
                let value = |(index, (field, _)): (usize, &(Model, usize))| {
                    (format!("f{index}"), field.value(random, is_message))
                };
                fields.map(value).collect()
            }
        }
    }
}

fn float(number: f64) -> Json {
    match number {
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        number if number.is_nan() => json!("NaN"),
        number => json!(number),
    }
}

/// Reads every part of `json` by its path.
fn each_part(value: &Value<'_>, path: &str, json: &Json) {
    let part = value.get(path).unwrap();
    match json {
        Json::Object(fields) => {
            assert_eq!(part.len().unwrap(), fields.len());
            for (name, field) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                each_part(value, &format!("{path}{dot}{name}"), field);
            }
        }
        Json::Array(elements) => {
            assert_eq!(part.len().unwrap(), elements.len());
            for (index, element) in elements.iter().enumerate() {
                each_part(value, &format!("{path}[{index}]"), element);
            }
        }
        leaf => assert_eq!(&json_of(&part), leaf, "{path}"),
    }
}

fn json_of(value: &Value<'_>) -> Json {
    serde_json::from_str(&value.to_json(usize::MAX).unwrap()).unwrap()
}

fn check(schema: &Schema<'_>, json: &Json) {
    let text = || String::from_utf8_lossy(schema.text).into_owned();
    let ty = schema.parse().unwrap_or_else(|error| panic!("{error}: {}", text()));
    let sample = encode_json(&ty, json).unwrap_or_else(|error| panic!("{error}: {}", text()));
    let value = Value::new(&ty, &sample).unwrap();
    let read = json_of(&value);
    // A float of 32 bits is written with as few digits as it needs, so the second time counts.
    assert_eq!(encode_json(&ty, &read).unwrap(), sample, "{}", text());
    each_part(&value, "", &read);
    assert_eq!(shape(&read), shape(json), "{}", text());
    let lines = value.to_lines(usize::MAX).unwrap();
    assert!(!lines.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{lines}");
}

/// The value with the floats rounded, of which 32 bits do not have all digits.
fn shape(json: &Json) -> Json {
    match json {
        Json::Number(number) if number.is_f64() => {
            float(number.as_f64().map(|it| f64::from(it as f32)).unwrap())
        }
        Json::Array(elements) => elements.iter().map(shape).collect(),
        Json::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), shape(field))).collect()
        }
        other => other.clone(),
    }
}

fn random(seed: [u8; 32]) -> TestRng {
    TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &seed)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plain_data(model in model(false), seed: [u8; 32]) {
        check(&Schema::layout(&model.layout().0), &model.value(&mut random(seed), false));
    }

    #[test]
    fn a_header_with_a_slice(header in model(false), model in model(false), seed: [u8; 32]) {
        let (random, (header_layout, offset)) = (&mut random(seed), header.layout());
        let layout = format!("({header_layout}, [{}] @{offset})", model.layout().0);
        let slice = Model::Unbounded(Box::new(model)).value(random, false);
        let value = json!({ "header": header.value(random, false), "slice": slice });
        check(&Schema::layout(&layout), &value);
    }

    #[test]
    fn messages(model in model(true), seed: [u8; 32]) {
        let text = model.message();
        let schema = Schema::new(Schema::ROS2MSG, "robot_msgs/msg/Main", &text);
        check(&schema, &json!({ "value": model.value(&mut random(seed), true) }));
    }
}
