//! What is done with every input of the test of damaged files and of the fuzz target `files`.

use std::io::{self, IoSlice};

use myelin_bag::{
    Channel, Compression, Info, Item, MessageHead, Options, Scanner, Schema, Storage, TopicFormat,
    Writer, check, repair,
};

/// Reads a file in every way. The first byte says what the rest is: a file, or changes to one.
pub fn read(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let file = match choice % 8 {
        0 => rest.to_vec(),
        choice => changed(choice, rest),
    };
    read_file(&file);
    message(rest);
}

/// A file of ours, of which some bytes are others: pairs of place and value, each in three bytes.
fn changed(choice: u8, changes: &[u8]) -> Vec<u8> {
    let mut file = written(match choice {
        1 => Compression::Lz4,
        2 => Compression::Zstd,
        _ => Compression::None,
    });
    for change in changes.as_chunks::<3>().0 {
        let [low, high, value] = *change;
        let place = usize::from(u16::from_le_bytes([low, high]));
        // Far places cut the file.
        match file.get_mut(place) {
            Some(byte) => *byte = value,
            None => file.truncate(file.len().saturating_sub(usize::from(value))),
        }
    }
    file
}

fn read_file(file: &[u8]) {
    let Ok(mut scanner) = Scanner::new(file) else { return };
    let mut messages = 0;
    while let Some(item) = scanner.next().expect("memory can be read") {
        messages += u64::from(matches!(item, Item::Message { .. }));
    }
    let report = scanner.report().clone();
    assert_eq!(report.read.messages, messages);
    let _ = (report.lost(), report.lost_by_channel());
    let checked = check(file).expect("it was read");
    assert!(checked.findings.iter().all(|finding| !finding.to_string().is_empty()));
    if checked.is_right() {
        assert!(report.is_lossless(), "{report:?}");
    }
    Info::read(file).expect("it was read");

    // A repaired file has the same messages, and is right.
    let mut copy = Memory(Vec::new());
    let scanner = Scanner::new(file).expect("it was read");
    let Ok(repaired) = repair(scanner, &mut copy, Options::default()) else { return };
    assert_eq!(repaired.written.statistics.messages, messages);
    let checked = check(&copy.0[..]).expect("a file of ours");
    assert!(checked.is_right(), "{:?}", checked.findings);
    assert_eq!(checked.report.read.messages, messages);
}

/// A message of a topic of images, from any bytes; and one of another topic.
fn message(bytes: &[u8]) {
    let mut scratch = Vec::new();
    for layout in [IMAGE, SLICE] {
        let format = TopicFormat::new(&Schema::layout(layout));
        let message = format.message(bytes, &mut scratch).concat();
        let _ = format.sample(&message, &mut scratch);
        let _ = format.sample(bytes, &mut scratch);
    }
}

fn written(compression: Compression) -> Vec<u8> {
    let mut memory = Memory(Vec::new());
    let mut options = Options::default();
    (options.chunk_bytes, options.small_bytes_max) = (200, 100);
    options.has_checksums = compression != Compression::None;
    (options.compression, options.compression_threads) = (compression, 1);
    let mut writer = Writer::new(&mut memory, options).expect("memory");
    let schema = Schema::new("ros2msg", "a/msg/B", "uint8[] a\n");
    let schema = writer.add_schema(&schema).expect("memory");
    let metadata = [("unit".to_owned(), "m".to_owned())].into();
    let (topic, encoding) = ("/a".to_owned(), "cdr".to_owned());
    let channel = Channel { schema, topic, encoding, metadata };
    let channel = writer.add_channel(&channel).expect("memory");
    for sequence in 0..7 {
        let head = MessageHead { channel, sequence, log_ns: sequence.into(), publish_ns: 0 };
        let bytes = if sequence == 3 { 150 } else { 30 };
        writer.write(&head, &[&vec![sequence as u8; bytes]]).expect("memory");
    }
    writer.write_metadata("b", &[("c".to_owned(), "d".to_owned())].into()).expect("memory");
    writer.finish().expect("memory");
    memory.0
}

/// A file in memory.
struct Memory(Vec<u8>);

impl Storage for &mut Memory {
    fn reserve(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn write_at(&mut self, parts: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
        assert_eq!(at, self.0.len() as u64, "it is written in order");
        parts.iter().for_each(|part| self.0.extend_from_slice(part));
        Ok(parts.iter().map(|part| part.len()).sum())
    }

    fn truncate(&mut self, end: u64) -> io::Result<()> {
        self.0.truncate(end as usize);
        Ok(())
    }
}

const IMAGE: &str = "(D{stamp_ns: u64 @0, width: u32 @8, height: u32 @12, \
    encoding: FixedString<5>{length: [u8; 4] @0, bytes: [u8; 5] @4} 9 @16, frame_id: [u8; 3] @25} \
    32, [u16] @32)";
const SLICE: &str = "(H{a: u8 @0} 1, [u32] @4)";
