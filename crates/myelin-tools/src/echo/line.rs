//! The text of a sample.

use std::fmt::Write;

use myelin::EndpointId;
use myelin_value::ReadError;

use super::Options;
use crate::Error;
use crate::document::{Document, Format, leaves, quoted, type_at};

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Lines for people; YAML.
    Lines,
    /// One JSON object a line.
    Json,
    /// Comma-separated values, with a headline.
    Csv,
}

/// The parts of a sample that are shown; none: all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns(Vec<String>);

/// What is known of a sample besides its payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meta {
    pub(super) publisher: EndpointId,
    pub(super) sequence: u64,
    /// 0 if its publisher adds no time.
    pub(super) published_ns: u64,
    pub(super) missed_before: u64,
}

/// Writes samples.
#[derive(Debug)]
pub(super) struct Writer {
    layout: Layout,
    /// Whether the topic's name stands in front.
    with_name: bool,
    limit: usize,
    width: usize,
    /// The columns of a table, once its headline is written.
    headline: Option<Columns>,
    is_headline_due: bool,
}

impl Writer {
    pub(super) fn new(options: &Options, with_name: bool) -> Writer {
        let Options { layout, limit, width, .. } = *options;
        Writer { layout, with_name, limit, width, headline: None, is_headline_due: false }
    }

    /// The parts to show of samples in a format.
    ///
    /// # Errors
    /// A field or a filter that does not fit; several types in one table.
    pub(super) fn columns(
        &mut self,
        topic: &str,
        format: &Format,
        options: &Options,
    ) -> Result<Columns, Error> {
        if let Format::Fields(ty) = format {
            for path in &options.fields {
                let found = type_at(ty, path);
                found.map_err(|error| {
                    Error::BadInput(format!("{topic}: field {path:?}: {error}"))
                })?;
            }
            if let Some(filter) = &options.filter {
                filter.check(ty).map_err(|error| Error::BadInput(format!("{topic}: {error}")))?;
            }
        } else if !matches!(format, Format::Json | Format::Protobuf(_))
            && (!options.fields.is_empty() || options.filter.is_some())
        {
            let what =
                "its samples have no fields: no schema describes them, or it is one of bytes";
            return Err(Error::BadInput(format!("{topic}: {what}")));
        }
        if self.layout != Layout::Csv {
            return Ok(Columns(options.fields.clone()));
        }
        let columns = match (&options.fields[..], format) {
            ([], Format::Fields(ty)) => Columns(leaves(ty)),
            ([], _) => Columns(vec![String::new()]),
            (fields, _) => Columns(fields.to_vec()),
        };
        match &self.headline {
            Some(before) if *before != columns => Err(Error::BadInput(format!(
                "{topic} has other fields than the topics before, and a table has one headline; \
                 choose columns with --field"
            ))),
            Some(_) => Ok(columns),
            None => {
                (self.headline, self.is_headline_due) = (Some(columns.clone()), true);
                Ok(columns)
            }
        }
    }

    /// Appends a sample.
    pub(super) fn write(
        &mut self,
        topic: &str,
        meta: &Meta,
        sample: &Document<'_>,
        columns: &Columns,
        to: &mut String,
    ) -> Result<(), ReadError> {
        let begin = to.len();
        let written = match self.layout {
            Layout::Lines => self.write_lines(topic, sample, columns, to),
            Layout::Json => self.write_json(topic, meta, sample, columns, to),
            Layout::Csv => self.write_row(topic, meta, sample, columns, to),
        };
        if written.is_err() {
            to.truncate(begin);
        }
        written
    }

    fn write_lines(
        &self,
        topic: &str,
        sample: &Document<'_>,
        columns: &Columns,
        to: &mut String,
    ) -> Result<(), ReadError> {
        let paths = &columns.0;
        if paths.is_empty() {
            if self.with_name {
                let _ = writeln!(to, "# {topic}");
            }
            sample.push_lines(to, self.limit, self.width)?;
            to.push_str("---\n");
            return Ok(());
        }
        if self.with_name {
            let _ = write!(to, "{topic}  ");
        }
        for (at, path) in paths.iter().enumerate() {
            if paths.len() > 1 {
                let space = if at > 0 { "  " } else { "" };
                let _ = write!(to, "{space}{path}: ");
            }
            self.push_part(sample, path, to)?;
        }
        to.push('\n');
        Ok(())
    }

    fn write_json(
        &self,
        topic: &str,
        meta: &Meta,
        sample: &Document<'_>,
        columns: &Columns,
        to: &mut String,
    ) -> Result<(), ReadError> {
        let Meta { publisher, sequence, published_ns, missed_before } = meta;
        let _ = write!(to, "{{\"topic\": {}, \"publisher\": \"{publisher:x}\"", quoted(topic));
        let _ = write!(to, ", \"sequence\": {sequence}, \"published_ns\": ");
        match published_ns {
            0 => to.push_str("null"),
            ns => _ = write!(to, "{ns}"),
        }
        let _ = write!(to, ", \"missed_before\": {missed_before}, ");
        if columns.0.is_empty() {
            to.push_str("\"value\": ");
            sample.push_json(to, self.limit)?;
        } else {
            to.push_str("\"fields\": {");
            for (at, path) in columns.0.iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                let _ = write!(to, "{comma}{}: ", quoted(path));
                self.push_part(sample, path, to)?;
            }
            to.push('}');
        }
        to.push_str("}\n");
        Ok(())
    }

    fn write_row(
        &mut self,
        topic: &str,
        meta: &Meta,
        sample: &Document<'_>,
        columns: &Columns,
        to: &mut String,
    ) -> Result<(), ReadError> {
        let name = if self.with_name { "topic," } else { "" };
        if std::mem::take(&mut self.is_headline_due) {
            let _ = write!(to, "{name}published_ns,sequence");
            for path in &columns.0 {
                to.push(',');
                push_cell(to, if path.is_empty() { "value" } else { path });
            }
            to.push('\n');
        }
        if self.with_name {
            push_cell(to, topic);
            to.push(',');
        }
        if meta.published_ns > 0 {
            let _ = write!(to, "{}", meta.published_ns);
        }
        let _ = write!(to, ",{}", meta.sequence);
        let mut part = String::new();
        for path in &columns.0 {
            to.push(',');
            part.clear();
            self.push_part(sample, path, &mut part)?;
            // A text of JSON, such as "NaN"; what a terminal obeys stays escaped.
            let text = part.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            match text {
                Some(text) => push_cell(to, &text.replace("\\\"", "\"").replace("\\\\", "\\")),
                None => push_cell(to, &part),
            }
        }
        to.push('\n');
        Ok(())
    }

    /// An element beyond the length, and a field that a JSON text does not have, is `null`.
    fn push_part(
        &self,
        sample: &Document<'_>,
        path: &str,
        to: &mut String,
    ) -> Result<(), ReadError> {
        match sample.get(path) {
            Ok(part) => part.push_json(to, self.limit),
            Err(error) if crate::filter::is_absent(&error, sample) => {
                to.push_str("null");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn push_cell(to: &mut String, text: &str) {
    if text.contains([',', '"', '\n', '\r']) {
        to.push('"');
        to.push_str(&text.replace('"', "\"\""));
        to.push('"');
    } else {
        to.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut row = String::new();
        for cell in ["1.5", "a,b", "say \"hi\"", ""] {
            push_cell(&mut row, cell);
            row.push(';');
        }
        assert_eq!(row, "1.5;\"a,b\";\"say \"\"hi\"\"\";;");
    }
}
