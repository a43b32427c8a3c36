//! What to change so that a publisher adds timestamps.

/// For a sentence, by the language of the publisher's library.
pub fn to_add(language: &str) -> String {
    let line = match language {
        "Python" => "topic.publisher(timestamps=True)",
        "C" => "options.timestamps = true",
        "C++" => "{.timestamps = true}",
        "Rust" => "publisher_builder().timestamps(true)",
        _ => return format!("start it with {VARIABLE}"),
    };
    format!("start it with {VARIABLE}, or write {line}")
}

/// What turns them on for all publishers of a program.
pub const VARIABLE: &str = "MYELIN_TIMESTAMPS=1";
