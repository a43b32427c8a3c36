//! What is in a file, whether it agrees, and files that are repaired.

use crate::support::{Disk, add_channels, file, joined, messages, options, read};
use myelin_bag::{
    Attachment, Cause, Channel, Finding, Info, MessageHead, Metadata, Problem, Scanner, Writer,
};
use myelin_bag::{check, repair};

#[test]
fn a_repaired_file_is_complete_and_has_all_that_can_be_read() {
    let sent = joined(&messages(60));
    let mut options = options();
    options.profile = "ros2".into();
    let whole = file(options.clone(), &messages(60));
    let summary = mcap::Summary::read(&whole).expect("a whole file").expect("with a summary");
    let chunk = summary.chunk_indexes[7].chunk_start_offset as usize;
    for cut in [8, 100, chunk, chunk + 20, chunk + 200, whole.len() - 1, whole.len()] {
        let cut = &whole[..cut];
        let disk = Disk::new(usize::MAX);
        let scanner = Scanner::new(cut).expect("a file of MCAP");
        let repaired = repair(scanner, disk.clone(), options.clone()).expect("endless space");
        let (before, report) = read(cut);
        assert_eq!(repaired.report, report);
        assert_eq!(repaired.is_lossless(), report.is_lossless());
        let bytes = disk.bytes();
        assert_eq!(read(&bytes).0, before);
        assert_eq!(before, sent[..before.len()]);
        assert_eq!(check(&bytes[..]).expect("a file of MCAP").findings, []);
        let stream = mcap::MessageStream::new(&bytes).expect("a file of MCAP");
        for (message, (head, data)) in stream.zip(&before) {
            let message = message.expect("a whole file");
            assert_eq!(message.channel.topic, format!("/part/{}", head.channel));
            let schema = message.channel.schema.as_ref().expect("each has one");
            assert_eq!(schema.name, format!("robot/msg/Part{}", head.channel));
            assert_eq!(&message.data[..], data);
        }
        let info = Info::read(&bytes[..]).expect("a file of MCAP");
        assert_eq!(info.profile, if cut.len() > 50 { "ros2" } else { "" });
    }
}

#[test]
fn behind_a_damaged_chunk_a_repair_goes_on() {
    let sent = joined(&messages(60));
    let bytes = file(options(), &messages(60));
    let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
    let chunk = &summary.chunk_indexes[3];
    let mut broken = bytes.clone();
    broken[chunk.chunk_start_offset as usize..][..70].fill(0xee);
    let disk = Disk::new(usize::MAX);
    let scanner = Scanner::new(&broken[..]).expect("a file of MCAP");
    let repaired = repair(scanner, disk.clone(), options()).expect("endless space");
    let indexes = summary.read_message_indexes(&bytes, chunk).expect("with indexes");
    let in_chunk = indexes.values().map(|entries| entries.len() as u64).sum::<u64>();
    let lost = repaired.report.lost();
    assert_eq!((lost.known, lost.is_exact), (in_chunk, true));
    let kept = read(&disk.bytes()).0;
    assert_eq!(kept.len() as u64, sent.len() as u64 - in_chunk);
    assert!(kept.iter().all(|message| sent.contains(message)));
}

#[test]
fn info_is_the_same_by_the_summary_and_without_it() {
    let bytes = file(options(), &messages(60));
    let by_summary = Info::read(&bytes[..]).expect("a file of MCAP");
    assert_eq!(by_summary.report, None);
    let cut = Info::read(&bytes[..bytes.len() - 1]).expect("a file of MCAP");
    assert_eq!(cut.definitions, by_summary.definitions);
    assert_eq!(cut.statistics, by_summary.statistics);
    assert!(cut.library.starts_with("myelin "), "{}", cut.library);
    assert!(!cut.report.expect("all was read").is_complete);
}

#[test]
fn metadata_and_attachments_are_read_and_taken_over() {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options()).expect("endless space");
    add_channels(&mut writer);
    let values = Metadata::from([("name".to_owned(), "value".to_owned())]);
    writer.write_metadata("myelin:node", &values).expect("endless space");
    let (name, media_type) = ("robot.urdf", "text/xml");
    let attachment = Attachment { log_ns: 7, create_ns: 5, name, media_type, data: b"<robot/>" };
    writer.write_attachment(&attachment).expect("endless space");
    writer.finish().expect("endless space");
    let copy = Disk::new(usize::MAX);
    let bytes = disk.bytes();
    let scanner = Scanner::new(&bytes[..]).expect("a file of MCAP");
    let repaired = repair(scanner, copy.clone(), options()).expect("endless space");
    let statistics = &repaired.written.statistics;
    assert_eq!((statistics.metadata, statistics.attachments, statistics.channels), (1, 1, 4));
    assert_eq!(check(&bytes[..]).expect("a file of MCAP").findings, []);
    let place = bytes.windows(8).position(|part| part == b"<robot/>").expect("it is there");
    let mut broken = bytes.clone();
    broken[place] = b'[';
    assert_eq!(crate::support::read(&broken).1.losses[0].cause, Cause::Checksum);
    let copy = copy.bytes();
    let summary = mcap::Summary::read(&copy).expect("a whole file").expect("with a summary");
    let read = mcap::read::metadata(&copy, &summary.metadata_indexes[0]).expect("it is there");
    assert_eq!((read.name.as_str(), read.metadata), ("myelin:node", values));
    let index = &summary.attachment_indexes[0];
    let read = mcap::read::attachment(&copy, index).expect("it is there");
    assert_eq!(
        (&read.name[..], &read.media_type[..], &read.data[..]),
        (name, media_type, &b"<robot/>"[..])
    );
    assert_eq!((read.log_time, read.create_time, index.data_size), (7, 5, 8));
}

#[test]
fn our_files_are_right_and_so_are_those_of_the_crate_mcap() {
    for bytes in [file(options(), &messages(60)), file(options(), &[]), by_mcap()] {
        let checked = check(&bytes[..]).expect("a file of MCAP");
        let mut found = problems(&checked.findings);
        found.retain(|problem| !matches!(problem, Problem::Unordered(_)));
        assert!(checked.is_right() && found.is_empty(), "{found:?}");
    }
}

fn by_mcap() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let options = mcap::WriteOptions::new().chunk_size(Some(500));
    let mut writer = options.create(&mut bytes).expect("memory");
    let schema = writer.add_schema("a/msg/B", "ros2msg", b"uint8 a").expect("memory");
    for topic in ["/one", "/two"] {
        let channel =
            writer.add_channel(schema, topic, "cdr", &Default::default()).expect("memory");
        for sequence in 0..20 {
            let header = mcap::records::MessageHeader {
                channel_id: channel,
                sequence,
                log_time: u64::from(40 - sequence),
                publish_time: 0,
            };
            writer.write_to_known_channel(&header, &[7; 90]).expect("memory");
        }
    }
    writer.finish().expect("memory");
    drop(writer);
    bytes.into_inner()
}

#[test]
fn what_does_not_agree_is_found() {
    let bytes = file(options(), &messages(60));
    let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
    let chunk = &summary.chunk_indexes[0];
    let start = chunk.chunk_start_offset as usize;
    let (channel, index) = chunk.message_index_offsets.first_key_value().expect("with messages");

    // The first time of the chunk, in its head: its index does not agree then, too.
    let found = findings(&bytes, start + 9);
    assert!(matches!(found[0], Problem::ChunkTimes { .. }), "{found:?}");
    assert_eq!(found[1], Problem::ChunkIndex(start as u64));
    // The first offset in an index of messages.
    assert_eq!(findings(&bytes, *index as usize + 9 + 6 + 8), [Problem::MessageIndex(*channel)]);
    // The time of a message.
    let message = first_message(&bytes, start);
    let found = findings(&bytes, message + 9 + 6 + 6);
    assert!(matches!(found[0], Problem::ChunkTimes { .. }), "{found:?}");
    assert!(found.contains(&Problem::MessageIndex(1)), "{found:?}");

    // In the summary.
    let statistics = in_summary(&bytes, 0x0b);
    let said = 60 ^ 0x40;
    let found = findings(&bytes, statistics + 9);
    assert_eq!(found, [Problem::Count { what: "messages", said, found: 60 }]);
    let index = in_summary(&bytes, 0x08);
    assert_eq!(findings(&bytes, index + 9 + 24), [Problem::ChunkIndex(start as u64)]);
    let found = findings(&bytes, index + 9 + 16);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1], Problem::NoChunkIndex);
    let schema = in_summary(&bytes, 0x03);
    let found = findings(&bytes, schema + 9 + 2 + 4 + 3);
    assert_eq!(found, [Problem::Redefined { what: "schema", id: 1 }]);

    let cut = check(&bytes[..bytes.len() - 1]).expect("a file of MCAP");
    assert_eq!(problems(&cut.findings), [Problem::Incomplete]);
    assert!(!cut.is_right());
}

#[test]
fn a_channel_without_a_schema_is_a_warning() {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options()).expect("endless space");
    let topic = "/bare".to_owned();
    let channel = writer.add_channel(&Channel { topic, ..Channel::default() }).expect("a channel");
    let head = MessageHead { channel, ..MessageHead::default() };
    writer.write(&head, &[b"data"]).expect("endless space");
    writer.finish().expect("endless space");
    let checked = check(&disk.bytes()[..]).expect("a file of MCAP");
    assert_eq!(problems(&checked.findings), [Problem::Schemaless(1)]);
    assert!(checked.is_right());
    let text = "warning at byte 0: channel 1 has no schema: rosbag2 and PlotJuggler refuse it";
    assert_eq!(checked.findings[0].to_string(), text);
}

/// What a check finds when this byte is another one, with the summary's checksum made right.
fn findings(bytes: &[u8], at: usize) -> Vec<Problem> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 0x40;
    let (footer, crc) = (bytes.len() - 8 - 20, bytes.len() - 8 - 4);
    let start = u64::from_le_bytes(bytes[footer..footer + 8].try_into().expect("8 bytes")) as usize;
    let sum = crc32fast::hash(&bytes[start..crc]);
    bytes[crc..crc + 4].copy_from_slice(&sum.to_le_bytes());
    let checked = check(&bytes[..]).expect("a file of MCAP");
    assert!(!checked.is_right(), "byte {at}");
    problems(&checked.findings)
}

fn problems(of: &[Finding]) -> Vec<Problem> {
    of.iter().map(|finding| finding.problem.clone()).collect()
}

/// The first message in the chunk that begins here, behind its definitions.
fn first_message(bytes: &[u8], chunk: usize) -> usize {
    let mut at = chunk + 9 + 40;
    while bytes[at] != 0x05 {
        at += 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().expect("8 bytes")) as usize;
    }
    at
}

/// The first record of this kind in the summary.
fn in_summary(bytes: &[u8], opcode: u8) -> usize {
    let footer = mcap::read::footer(bytes).expect("a whole file");
    let mut at = footer.summary_start as usize;
    while bytes[at] != opcode {
        at += 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().expect("8 bytes")) as usize;
    }
    at
}

#[test]
fn what_other_readers_mind_is_a_warning() {
    let mut options = options();
    options.profile = "mars".into();
    let mut sent = messages(20);
    sent[7].0.log_ns -= 5_000;
    let checked = check(&file(options, &sent)[..]).expect("a file of MCAP");
    assert!(checked.is_right());
    let texts: Vec<_> = checked.findings.iter().map(|it| it.problem.to_string()).collect();
    assert_eq!(
        texts,
        [
            r#"the header has profile "mars", which others do not know"#,
            "messages that are older than one before them: 1, the first here",
        ]
    );
}
