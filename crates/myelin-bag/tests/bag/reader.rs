//! Messages in order of time, from whole and from broken files.

use std::collections::BTreeSet;

use myelin_bag::{
    BagReader, DiffOptions, Item, MessageHead, MessagesError, Options, Selection, Source, Time,
    Writer, check, diff, merge,
};
use proptest::prelude::*;

use crate::support::{
    Disk, Message, add_channels, file, joined, messages, options, output, python, read,
};

type Read = Vec<(MessageHead, Vec<u8>)>;

/// What the reader reads, and what it says is lost.
fn read_in_order<S: Source>(
    reader: &BagReader<S>,
    selection: &Selection,
) -> (Read, Vec<MessagesError>) {
    let (mut read, mut errors) = (Vec::new(), Vec::new());
    for message in reader.messages(selection).expect("memory can be read") {
        match message {
            Ok(message) => read.push((message.head, message.data().to_vec())),
            Err(error) => errors.push(error),
        }
    }
    (read, errors)
}

fn all<S: Source>(reader: &BagReader<S>) -> Read {
    let (read, errors) = read_in_order(reader, &Selection::default());
    assert!(errors.is_empty(), "{errors:?}");
    read
}

/// Messages whose times go forth and back, so that chunks overlap; some have the same time.
fn shuffled(count: u32) -> Vec<Message> {
    let mut messages = messages(count);
    for (number, (head, _, _)) in messages.iter_mut().enumerate() {
        let number = number as u64;
        head.log_ns = 1_000_000 + (number * 7_919) % 4_000 / 10 * 10;
        head.publish_ns = 500_000 + (number * 104_729) % 3_000;
    }
    messages
}

fn by(mut read: Read, time: Time) -> Read {
    read.sort_by_key(|(head, _)| time.of(head));
    read
}

#[test]
fn messages_come_in_order_of_time() {
    let sent = shuffled(300);
    for has_checksums in [false, true] {
        let mut options = options();
        options.has_checksums = has_checksums;
        let bytes = file(options, &sent);
        let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
        assert!(reader.report().is_none(), "it has a summary");
        assert_eq!(reader.info().statistics.messages, 300);
        assert_eq!(all(&reader), by(joined(&sent), Time::Log));
        let mut selection = Selection::default();
        selection.by = Time::Publish;
        let (read, errors) = read_in_order(&reader, &selection);
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(read, by(joined(&sent), Time::Publish));
    }
}

#[test]
fn channels_and_times_are_selected() {
    let sent = shuffled(300);
    let bytes = file(options(), &sent);
    let cut = &bytes[..bytes.len() - 40];
    for bytes in [&bytes[..], cut] {
        let reader = BagReader::new(bytes).expect("a file of MCAP");
        assert_eq!(reader.channels_of("/part/2"), BTreeSet::from([2]));
        assert_eq!(reader.channels_of("/part/9"), BTreeSet::new());
        for time in [Time::Log, Time::Publish] {
            for channels in [None, Some(BTreeSet::from([4])), Some(BTreeSet::from([1, 4, 77]))] {
                let (start, end) = (500_700, 1_002_000);
                let mut selection = Selection::default();
                selection.channels = channels.clone();
                (selection.start_ns, selection.end_ns) = (Some(start), Some(end));
                selection.by = time;
                let (read, errors) = read_in_order(&reader, &selection);
                assert!(errors.is_empty(), "{errors:?}");
                let mut expected = by(joined(&sent), time);
                expected.retain(|(head, _)| {
                    (start..end).contains(&time.of(head))
                        && channels.as_ref().is_none_or(|ids| ids.contains(&head.channel))
                });
                assert!(!expected.is_empty());
                assert_eq!(read, expected, "{time:?} {channels:?}");
            }
        }
    }
}

/// What the scanner finds, the reader finds: in order of time.
#[test]
fn a_file_that_was_cut_is_read() {
    let bytes = file(options(), &shuffled(80));
    for end in (8..bytes.len()).step_by(7) {
        let cut = &bytes[..end];
        let reader = BagReader::new(cut).expect("it begins as MCAP does");
        let (scanned, report) = read(cut);
        assert_eq!(all(&reader), by(scanned, Time::Log), "{end}");
        assert_eq!(reader.report(), Some(&report), "{end}");
    }
}

#[test]
fn a_broken_chunk_is_told_and_passed_over() {
    let mut options = options();
    options.has_checksums = true;
    let sent = messages(100);
    let mut bytes = file(options, &sent);
    let place = bytes.windows(300).position(|it| it == [19; 300]).expect("a large message");
    bytes[place] ^= 1;
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let (read, errors) = read_in_order(&reader, &Selection::default());
    assert_eq!(read.len(), 99);
    let [MessagesError::Lost(loss)] = &errors[..] else { panic!("{errors:?}") };
    assert!(loss.at < place as u64 && loss.to_string().contains("checksum"), "{loss}");
}

#[test]
fn files_of_others_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compression, has_chunks) in
        [("none", true), ("lz4", true), ("zstd", true), ("none", false)]
    {
        let Some(mut command) = python("read.py") else { return };
        let path = folder.path().join(format!("{compression}-{has_chunks}"));
        command.arg(if has_chunks { "write" } else { "write-unchunked" });
        output(command.arg(&path).arg(compression));
        let reader = BagReader::open(&path).expect("a file of MCAP");
        assert_eq!(reader.report().is_some(), !has_chunks);
        let read = all(&reader);
        assert_eq!(read.len(), 1000);
        assert!(read.iter().zip(0..).all(|((head, data), number)| {
            head.log_ns == number && data == number.to_string().as_bytes()
        }));
        // Without its end all of it is read, packed chunks too.
        let bytes = std::fs::read(&path).expect("it was written");
        let reader = BagReader::new(&bytes[..bytes.len() - 9]).expect("a file of MCAP");
        assert_eq!(all(&reader), read);
    }
}

#[test]
fn attachments_and_metadata_are_read() {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options()).expect("endless space");
    add_channels(&mut writer);
    let attachment = myelin_bag::Attachment {
        log_ns: 1,
        create_ns: 2,
        name: "map.png",
        media_type: "image/png",
        data: &[7; 50],
    };
    writer.write_attachment(&attachment).expect("endless space");
    writer.write_metadata("robot", &[("arm".into(), "left".into())].into()).expect("space");
    writer.finish().expect("endless space");
    let bytes = disk.bytes();
    for bytes in [&bytes[..], &bytes[..bytes.len() - 9]] {
        let reader = BagReader::new(bytes).expect("a file of MCAP");
        let mut seen = Vec::new();
        let each = |item: Item<'_>| {
            seen.push(match item {
                Item::Attachment(it) => format!("{} {}", it.name, it.data.len()),
                Item::Metadata { name, values } => format!("{name} {values:?}"),
                _ => "message".to_owned(),
            });
            Ok::<(), std::io::Error>(())
        };
        reader.each_extra(each).expect("memory can be read");
        assert_eq!(seen, ["map.png 50", r#"robot {"arm": "left"}"#]);
    }
}

/// A message that is kept does not keep its chunk.
#[test]
fn a_message_alone_has_the_same_data() {
    let mut options = Options::default();
    options.chunk_bytes = 100_000;
    let sent = messages(50);
    let bytes = file(options, &sent);
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let messages = reader.messages(&Selection::default()).expect("memory can be read");
    for (message, (head, data)) in messages.zip(joined(&sent)) {
        let message = message.expect("a whole file").alone();
        assert_eq!((message.head, message.data()), (head, &data[..]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever is broken, the reader ends, and what it reads was written or is in the file.
    #[test]
    fn no_damage_makes_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<Option<prop::sample::Index>>(),
    ) {
        let mut bytes = file(options(), &shuffled(60));
        for (index, byte) in changes {
            let at = 8 + index.index(bytes.len() - 8);
            bytes[at] = byte;
        }
        bytes.truncate(end.map_or(bytes.len(), |end| 8 + end.index(bytes.len() - 8)));
        let reader = BagReader::new(&bytes[..]).expect("it begins as MCAP does");
        for time in [Time::Log, Time::Publish] {
            let mut selection = Selection::default();
            selection.by = time;
            let (read, _) = read_in_order(&reader, &selection);
            prop_assert!(read.len() <= bytes.len() / 31);
        }
        let whole = file(options(), &shuffled(60));
        let other = BagReader::new(&whole[..]).expect("a file of MCAP");
        let _ = diff(&reader, &other, &DiffOptions::default()).expect("memory can be read");
        let files = [reader, other];
        let _ = merge(&files, Disk::new(1 << 20), options());
        for file in &files {
            file.sizes().expect("memory can be read");
        }
        let _ = check(&bytes[..]).expect("it begins as MCAP does");
    }
}
