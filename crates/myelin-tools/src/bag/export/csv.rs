//! Tables as comma-separated values. Lists are JSON, bytes are hexadecimal, and what is missing is
//! empty.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufWriter};

use super::columns::Cell;

/// Writes a table.
pub struct CsvTable {
    writer: csv::Writer<BufWriter<File>>,
    texts: Vec<String>,
}

impl CsvTable {
    /// Begins a table with these names.
    pub fn new<'n>(file: File, names: impl Iterator<Item = &'n str>) -> io::Result<CsvTable> {
        let mut writer = csv::Writer::from_writer(BufWriter::with_capacity(BUFFER_BYTES, file));
        writer.write_record(names)?;
        Ok(CsvTable { writer, texts: Vec::new() })
    }

    /// Adds a row.
    pub fn add(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.texts.resize_with(cells.len(), String::new);
        for (text, cell) in self.texts.iter_mut().zip(cells) {
            text.clear();
            push(text, cell);
        }
        Ok(self.writer.write_record(&self.texts)?)
    }

    /// Writes what is left.
    pub fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn push(text: &mut String, cell: &Cell) {
    // A string takes every write.
    let _ = match cell {
        Cell::Null => Ok(()),
        Cell::Bool(value) => write!(text, "{value}"),
        Cell::Signed(value) => write!(text, "{value}"),
        Cell::Unsigned(value) => write!(text, "{value}"),
        // All digits that are needed to read the same number back.
        Cell::F32(value) => write!(text, "{value}"),
        Cell::F64(value) => write!(text, "{value}"),
        Cell::Text(value) => write!(text, "{value}"),
        Cell::Bytes(value) => value.iter().try_for_each(|byte| write!(text, "{byte:02x}")),
        Cell::List(cells) => {
            text.push('[');
            for (index, cell) in cells.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                let is_number = !matches!(cell, Cell::F32(_) | Cell::F64(_)) || is_finite(cell);
                text.push_str(if is_number { "" } else { "\"" });
                push(text, cell);
                text.push_str(if is_number { "" } else { "\"" });
            }
            text.push(']');
            Ok(())
        }
    };
}

fn is_finite(cell: &Cell) -> bool {
    match cell {
        Cell::F32(value) => value.is_finite(),
        Cell::F64(value) => value.is_finite(),
        _ => true,
    }
}

const BUFFER_BYTES: usize = 64 << 10;
