//! Published figures, read from their files. The tests read the TOML themselves, so that a report's
//! figures are not compared with its own reading.

use toml::{Table, Value};

pub const CYBERRT: &str = include_str!("../../../../published/cyberrt-apollo10.toml");

/// The tables of a report that have published rows.
pub fn tables(text: &str) -> Vec<Table> {
    let parsed: Table = text.parse().unwrap();
    let inner = |of: &Table, name: &str| -> Vec<Table> {
        of[name].as_array().unwrap().iter().map(|it| it.as_table().unwrap().clone()).collect()
    };
    let experiments = inner(&parsed, "experiments");
    let tables = experiments.iter().flat_map(|experiment| inner(experiment, "tables"));
    tables.filter(|table| table.contains_key("rows")).collect()
}

pub fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

/// A number, with or without a decimal point.
pub fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|it| it as f64))
}

/// The rows of a table, by column.
pub fn rows(table: &Table) -> Vec<Table> {
    let columns = texts(&table["columns"]);
    let row = |row: &Value| {
        let named = columns.iter().zip(row.as_array().unwrap());
        named.map(|(column, value)| ((*column).to_owned(), value.clone())).collect()
    };
    table["rows"].as_array().unwrap().iter().map(row).collect()
}
