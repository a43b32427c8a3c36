//! Messages as tables: `myelin bag export`. A table has a row for each message, in order of log
//! time, and three columns before those of the message: `log_time_ns`, `publish_time_ns` and
//! `sequence`.

mod columns;
mod csv;
mod parquet;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use myelin_bag::{BagReader, Message, MessageHead, MessageType, MessagesError, Selection};
use myelin_value::Primitive;

use self::columns::{Cell, Column, ColumnKind, Columns};
use self::csv::CsvTable;
use self::parquet::ParquetTable;
use crate::Error;
use crate::output_file::OutputFile;
use crate::text::{counted, printable};

/// What is exported.
#[derive(Clone, Debug)]
pub struct Request {
    /// The recording.
    pub from: PathBuf,
    /// Its topics.
    pub topics: BTreeSet<String>,
    /// Whether they were named: a topic that cannot be exported is an error, then.
    pub are_named: bool,
    /// Paths of fields; all if there are none.
    pub fields: Vec<String>,
    /// Not before this time, and before this one.
    pub times: (Option<u64>, Option<u64>),
    /// By default, that of the name of the file.
    pub format: Option<Format>,
    /// A file, or a folder with a file for each topic.
    pub to: PathBuf,
    /// Whether files may be overwritten.
    pub overwrite: bool,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// By the end of a file's name.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }
}

/// What was exported.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// The files, with their topics and numbers of rows.
    pub files: Vec<(PathBuf, String, u64)>,
    /// What is missing, a line each.
    pub notes: Vec<String>,
    /// Whether messages are missing that are in the recording.
    pub is_lossy: bool,
}

/// Writes a table for each topic.
///
/// # Errors
/// One sentence. Then there are no new files.
pub fn export(reader: &BagReader, request: &Request) -> Result<Exported, Error> {
    let places = places(request)?;
    let topics: Vec<_> = request.topics.iter().zip(places).collect();
    let mut exported = Exported::default();
    let mut finished = Vec::new();
    // Each open table has a file and memory of its own.
    for part in topics.chunks(OPEN_MAX) {
        let mut tables = Tables::open(reader, request, part, &mut exported)?;
        tables.write(reader, request, &mut exported)?;
        tables.finish(&mut exported, &mut finished)?;
    }
    if finished.is_empty() {
        let text = format!("{}: no message to export", request.from.display());
        return Err(Error::NotFound(text));
    }
    for output in finished {
        output.keep()?;
    }
    Ok(exported)
}

/// The file of each topic.
fn places(request: &Request) -> Result<Vec<PathBuf>, Error> {
    let to = &request.to;
    let is_folder = to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/");
    let by_name = Format::of(to);
    if !is_folder && request.topics.len() == 1 {
        return Ok(vec![to.clone()]);
    }
    if !is_folder && by_name.is_some() {
        let (to, count) = (to.display(), request.topics.len());
        let text = format!("{to}: {count} topics have a file each; name a folder, or one --topic");
        return Err(Error::BadInput(text));
    }
    std::fs::create_dir_all(to)
        .map_err(|error| Error::Io { what: to.display().to_string(), error })?;
    let mut names = BTreeSet::new();
    let extension = request.format.unwrap_or(Format::Csv).extension();
    let place = |topic: &String| {
        let kept = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = topic.trim_start_matches('/').chars().map(kept).collect();
        let name = name.trim_start_matches('.');
        let name: String = name.chars().take(NAME_BYTES_MAX).collect();
        let name = if name.is_empty() { "topic".to_owned() } else { name };
        let mut candidate = name.clone();
        for number in 2.. {
            if names.insert(candidate.clone()) {
                break;
            }
            candidate = format!("{name}_{number}");
        }
        to.join(format!("{candidate}.{extension}"))
    };
    Ok(request.topics.iter().map(place).collect())
}

/// The tables of some topics.
struct Tables<'r> {
    tables: Vec<Table<'r>>,
    /// The table of each channel.
    of_channel: BTreeMap<u16, (usize, MessageType)>,
}

struct Table<'r> {
    topic: &'r str,
    place: &'r Path,
    format: Format,
    /// It is begun with its first message.
    open: Option<Open>,
    rows: u64,
    /// Messages that cannot be read, and why not the first.
    broken: u64,
    why: String,
}

struct Open {
    columns: Columns,
    writer: Writer,
    output: OutputFile,
}

enum Writer {
    Csv(CsvTable),
    Parquet(ParquetTable),
}

impl<'r> Tables<'r> {
    fn open(
        reader: &BagReader,
        request: &Request,
        topics: &'r [(&String, PathBuf)],
        exported: &mut Exported,
    ) -> Result<Tables<'r>, Error> {
        let definitions = &reader.info().definitions;
        let mut tables = Tables { tables: Vec::new(), of_channel: BTreeMap::new() };
        for (topic, place) in topics {
            let number = tables.tables.len();
            for id in reader.channels_of(topic) {
                let channel = &definitions.channels[&id];
                match MessageType::new(channel, definitions.schemas.get(&channel.schema)) {
                    Ok(ty) => {
                        tables.of_channel.insert(id, (number, ty));
                    }
                    Err(why) => {
                        let text = format!("{}: {why}", printable(topic));
                        if request.are_named {
                            return Err(Error::Failed(text));
                        }
                        exported.notes.push(format!("{text}: left out"));
                    }
                }
            }
            let format = request.format.or(Format::of(place)).unwrap_or(Format::Csv);
            let (topic, why) = (topic.as_str(), String::new());
            tables.tables.push(Table { topic, place, format, open: None, rows: 0, broken: 0, why });
        }
        Ok(tables)
    }

    fn write(
        &mut self,
        reader: &BagReader,
        request: &Request,
        exported: &mut Exported,
    ) -> Result<(), Error> {
        let mut selection = Selection::default();
        selection.channels = Some(self.of_channel.keys().copied().collect());
        (selection.start_ns, selection.end_ns) = request.times;
        let unreadable = |error| Error::Io { what: request.from.display().to_string(), error };
        let memory = MEMORY_BYTES / self.tables.len().max(1);
        for message in reader.messages(&selection).map_err(unreadable)? {
            let message = match message {
                Ok(message) => message,
                Err(MessagesError::Lost(loss)) => {
                    exported.is_lossy = true;
                    exported.notes.push(format!("{}: {loss}", request.from.display()));
                    continue;
                }
                Err(error) => {
                    let text = format!("{}: {error}", request.from.display());
                    return Err(Error::Failed(text));
                }
            };
            if let Some((number, ty)) = self.of_channel.get(&message.head.channel) {
                self.tables[*number].add(ty, &message, request, memory, exported)?;
            }
        }
        Ok(())
    }

    fn finish(self, exported: &mut Exported, finished: &mut Vec<OutputFile>) -> Result<(), Error> {
        for table in self.tables {
            let topic = printable(table.topic);
            if table.broken > 0 {
                exported.is_lossy = true;
                let (broken, why) =
                    (counted(table.broken, "broken message"), printable(&table.why));
                exported.notes.push(format!("{topic}: {broken}: {why}"));
            }
            let Some(Open { columns, writer, output }) = table.open else {
                exported.notes.push(format!("{topic}: no messages: left out"));
                continue;
            };
            if !columns.skipped.is_empty() {
                let skipped = printable(&columns.skipped.join(", ")).into_owned();
                let text = format!("{topic}: bytes are left out ({skipped}); name them by --field");
                exported.notes.push(text);
            }
            let written = match writer {
                Writer::Csv(table) => table.finish(),
                Writer::Parquet(table) => table.finish(),
            };
            written.map_err(|error| cannot_write(table.place, error))?;
            let topic = table.topic.to_owned();
            exported.files.push((table.place.to_owned(), topic, table.rows));
            finished.push(output);
        }
        Ok(())
    }
}

impl Table<'_> {
    fn add(
        &mut self,
        ty: &MessageType,
        message: &Message,
        request: &Request,
        memory: usize,
        exported: &mut Exported,
    ) -> Result<(), Error> {
        if self.open.is_none() {
            let skips_bytes = self.format == Format::Csv;
            let columns = Columns::new(ty, message.data(), &request.fields, skips_bytes);
            match columns {
                Ok(columns) => self.open = Some(self.begin(columns, request.overwrite, memory)?),
                // A broken first message of JSON: the next may be whole.
                Err(why) if ty.ty().is_none() && ty.content(message.data()).is_err() => {
                    self.broken += 1;
                    self.why = why;
                    return Ok(());
                }
                Err(why) => {
                    let text = format!("{}: {why}", printable(self.topic));
                    if request.are_named || !request.fields.is_empty() {
                        return Err(Error::BadInput(text));
                    }
                    if self.why.is_empty() {
                        exported.notes.push(text.clone());
                        self.why = text;
                    }
                    return Ok(());
                }
            }
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let MessageHead { sequence, log_ns, publish_ns, .. } = message.head;
        let mut cells = vec![
            Cell::Unsigned(log_ns),
            Cell::Unsigned(publish_ns),
            Cell::Unsigned(sequence.into()),
        ];
        match open.columns.cells(ty, message.data()) {
            Ok(of_message) if of_message.len() == open.columns.all.len() => {
                cells.extend(of_message);
            }
            other => {
                // Another channel of the topic may have another type.
                let why = other.err().unwrap_or_else(|| "it has other fields".to_owned());
                self.why = if self.broken == 0 { why } else { std::mem::take(&mut self.why) };
                self.broken += 1;
                cells.extend(open.columns.all.iter().map(|_| Cell::Null));
            }
        }
        self.rows += 1;
        let written = match &mut open.writer {
            Writer::Csv(table) => table.add(&cells),
            Writer::Parquet(table) => table.add(cells),
        };
        written.map_err(|error| cannot_write(self.place, error))
    }

    fn begin(&self, columns: Columns, overwrite: bool, memory: usize) -> Result<Open, Error> {
        let (output, file) = OutputFile::create(self.place, overwrite)?;
        let all = with_heads(&columns.all);
        let writer = match self.format {
            Format::Csv => csv_table(file, &all),
            Format::Parquet => ParquetTable::new(file, &all, memory).map(Writer::Parquet),
        };
        let writer = writer.map_err(|error| cannot_write(self.place, error))?;
        Ok(Open { columns, writer, output })
    }
}

fn csv_table(file: File, columns: &[Column]) -> io::Result<Writer> {
    let names = columns.iter().map(|column| column.name.as_str());
    CsvTable::new(file, names).map(Writer::Csv)
}

/// The columns of each table, and those of the messages. A field with the same name is renamed.
fn with_heads(columns: &[Column]) -> Vec<Column> {
    let heads = [
        ("log_time_ns", Primitive::U64),
        ("publish_time_ns", Primitive::U64),
        ("sequence", Primitive::U32),
    ];
    let of_message = columns.iter().map(|column| {
        let is_taken = heads.iter().any(|(name, _)| *name == column.name);
        let name = if is_taken { format!("message.{}", column.name) } else { column.name.clone() };
        Column { name, kind: column.kind }
    });
    let heads = heads.iter().map(|(name, number)| Column {
        name: (*name).to_owned(),
        kind: ColumnKind::Number(*number),
    });
    heads.chain(of_message).collect()
}

fn cannot_write(path: &Path, error: io::Error) -> Error {
    Error::Io { what: path.display().to_string(), error }
}

/// Tables that are written at once.
const OPEN_MAX: usize = 256;
/// What all of them may keep in memory.
const MEMORY_BYTES: usize = 256 << 20;
/// Of a file's name that a topic gives.
const NAME_BYTES_MAX: usize = 200;
