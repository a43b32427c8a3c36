//! The JSON Schema of scenario files: from the types, with the limits of `keys`. What depends on
//! several values, `check` alone knows.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::keys::{KEYS, KINDS, Rule, SECONDS_MAX};
use super::{Scenario, network};

/// The schema of a scenario file, draft 2020-12.
pub fn schema() -> Value {
    let inline = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = inline.into_generator().into_root_schema_for::<Scenario>().to_value();
    simplify(&mut schema);
    plain(&mut schema);
    for (path, own) in of_files() {
        *place(&mut schema, path) = own;
    }
    for key in KEYS {
        limit(place(&mut schema, key.path), key.rule);
    }
    let kinds = KINDS.into_iter().map(|kind| {
        let mut then = json!({});
        for key in KEYS {
            let owns = KEYS.iter().any(|other| other.path == key.path && other.is_of(Some(kind)));
            // Below a list the key above it is refused already.
            if !owns && key.path.matches('.').count() == 1 {
                *place(&mut then, key.path) = json!(false);
            }
        }
        let is_kind = json!({ "properties": { "workload": {
            "properties": { "kind": { "const": kind.name() } }, "required": ["kind"],
        } }, "required": ["workload"] });
        json!({ "if": is_kind, "then": then })
    });
    schema["allOf"] = kinds.collect();
    schema["title"] = json!("Scenario of myelin bench");
    schema
}

/// Keys that a file has in another form than the types.
fn of_files() -> [(&'static str, Value); 3] {
    let names = network::names();
    let names: Vec<&str> = names.split(", ").collect();
    [
        (
            "plan.runs_max",
            json!({ "type": "integer", "description":
                "Limit of the runs of a cell, including failed and invalid ones; with interval_percent." }),
        ),
        (
            "plan.interval_percent",
            json!({ "type": "number", "description":
                "Cells are repeated until the interval of their median is this narrow, in per cent." }),
        ),
        (
            "network.link",
            json!({ "enum": names, "description": "A named link instead of rate_mbit." }),
        ),
    ]
}

/// Messages per second, or the word for back to back.
pub(super) fn rates(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "anyOf": [{ "type": "number" }, { "const": "max" }] } })
}

/// One topology, several, or the word for all of one host.
pub(super) fn topologies(_: &mut SchemaGenerator) -> Schema {
    let each = json!({ "enum": ["two-processes", "one-process", "two-hosts"] });
    json_schema!({ "anyOf": [{ "const": "any" }, each, { "type": "array", "items": each }] })
}

/// The schema of a key; for a list of tables, that of a table.
fn place<'a>(schema: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').fold(schema, |above, part| {
        let is_list = above.get("items").is_some();
        let table = if is_list { &mut above["items"] } else { above };
        &mut table["properties"][part]
    })
}

/// Adds the limits of a value, or of each value of a list. Several limits of a key belong to
/// different kinds of workload; the widest holds here.
fn limit(schema: &mut Value, rule: Rule) {
    let is_list = schema.get("items").is_some();
    let each = if is_list { &mut schema["items"] } else { schema };
    let wider = |limits: &Value, name: &str, value: f64, best: fn(f64, f64) -> f64| {
        let known = limits.get(name).filter(|_| limits.get("maximum").is_some());
        number(known.and_then(Value::as_f64).map_or(value, |known| best(known, value)))
    };
    match rule {
        Rule::Any => {}
        Rule::Number(low, high) => {
            let least = wider(each, "minimum", low, f64::min);
            each["maximum"] = wider(each, "maximum", high, f64::max);
            each["minimum"] = least;
            // A default that says that there is none, such as 0, is not to be written.
            let default = each.get("default").and_then(Value::as_f64);
            if default.is_some_and(|it| !(low..=high).contains(&it)) {
                each.as_object_mut().expect("a schema").remove("default");
            }
        }
        Rule::Seconds => {
            each["exclusiveMinimum"] = json!(0);
            each["maximum"] = number(SECONDS_MAX);
        }
        Rule::Rate => {
            let is_choice = each.get("anyOf").is_some();
            let each = if is_choice { &mut each["anyOf"][0] } else { each };
            each["minimum"] = json!(0.001);
            each["maximum"] = json!(1_000_000);
        }
        Rule::Frame => each["pattern"] = json!("^[1-9][0-9]*x[1-9][0-9]*$"),
        Rule::Word(longest) => {
            each["pattern"] = json!("^[A-Za-z0-9_-]+$");
            each["maxLength"] = json!(longest);
        }
    }
}

/// Whole numbers without a point.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { json!(value as i64) } else { json!(value) }
}

/// Turns the documentation of Rust into descriptions: without links to items, in one line.
pub(crate) fn plain(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(plain),
        Value::Object(keys) => {
            if let Some(Value::String(text)) = keys.get_mut("description") {
                *text = text.replace('\n', " ").replace("[`", "`").replace("`]", "`");
            }
            keys.values_mut().for_each(plain);
        }
        _ => {}
    }
}

/// Tables refuse unknown keys, as the program does. TOML has no null, and number formats of Rust mean
/// nothing to others.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(simplify),
        Value::Object(keys) => {
            let is_number = keys.get("type").is_some_and(|it| it == "number" || it == "integer");
            keys.retain(|key, value| !(value.is_null() || key == "format" && is_number));
            if let Some(Value::Array(types)) = keys.get_mut("type") {
                types.retain(|it| it != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    keys.insert("type".into(), one);
                }
                keys.remove("format");
            }
            if keys.contains_key("properties") {
                keys.insert("additionalProperties".into(), json!(false));
            }
            keys.values_mut().for_each(simplify);
        }
        _ => {}
    }
}
