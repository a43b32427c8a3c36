//! Values as people type them: JSON or YAML.

use serde_json::Value as Json;

use crate::Error;

/// The values of a text: one or more JSON values, or the documents of a YAML stream.
///
/// # Errors
/// A text that is neither, with the place of the mistake.
pub fn values(text: &str) -> Result<Vec<Json>, Error> {
    let json: Result<Vec<Json>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let json_error = match json {
        Ok(values) if !values.is_empty() => return Ok(values),
        Ok(_) => return Err(Error::BadInput("there is no value; write JSON or YAML".to_owned())),
        Err(error) => error,
    };
    serde_saphyr::from_multiple(text).map_err(|error| {
        // Braces and quotes mean JSON.
        let looks_like_json = text.trim_start().starts_with("{\"");
        let error = if looks_like_json { json_error.to_string() } else { error.to_string() };
        let error = error.lines().next().unwrap_or_default().to_owned();
        let language = if looks_like_json { "JSON" } else { "JSON or YAML" };
        Error::BadInput(format!("the value is not {language}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_and_yaml_are_read() {
        for (text, expected) in [
            (r#"{"x": 1}"#, vec![json!({ "x": 1 })]),
            ("{x: 1, y: [a, 2.5]}", vec![json!({ "x": 1, "y": ["a", 2.5] })]),
            ("x: 1\npoint:\n  y: true\n", vec![json!({ "x": 1, "point": { "y": true } })]),
            ("1 2\n3", vec![json!(1), json!(2), json!(3)]),
            ("x: 1\n---\nx: 2\n", vec![json!({ "x": 1 }), json!({ "x": 2 })]),
            ("hello", vec![json!("hello")]),
        ] {
            assert_eq!(values(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_mistake_is_placed() {
        for (text, part) in [
            (r#"{"x": [1, }"#, "not JSON: expected value at line 1 column 11"),
            ("{x: [1", "JSON or YAML"),
            ("  ", "there is no value"),
        ] {
            let error = values(text).unwrap_err();
            assert_eq!(error.status(), 2);
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    /// A few lines that mean many gigabytes.
    #[test]
    fn a_text_that_multiplies_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = level - 1;
            let ten = vec![format!("*a{before}"); 10].join(", ");
            text += &format!("a{level}: &a{level} [{ten}]\n");
        }
        assert!(values(&text).is_err());
    }
}
