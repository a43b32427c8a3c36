//! Files that end anywhere, as after a kill or a power failure.

use crate::support::{Disk, add_channels, file, joined, messages, options, read};
use mcap::Summary;
use myelin_bag::{Cause, Writer};

#[test]
fn all_complete_messages_are_read_from_a_file_cut_at_any_byte() {
    let sent = joined(&messages(40));
    let bytes = file(options(), &messages(40));
    let ends = ends_of_messages(&bytes);
    assert_eq!(ends.len(), sent.len());
    let data_end = ends.last().expect("there are messages");
    for cut in 8..bytes.len() {
        let (read, report) = read(&bytes[..cut]);
        let complete = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(read, sent[..complete], "cut at byte {cut} of {}", bytes.len());
        assert!(!report.is_complete);
        assert!(!report.lost().is_exact);
        let losses = &report.losses;
        assert!(losses.len() <= 1, "{losses:?}");
        assert!(losses.iter().all(|it| it.cause == Cause::Ends), "cut at {cut}: {losses:?}");
        if cut < *data_end && !ends.contains(&cut) {
            let is_between_records = losses.is_empty();
            assert!(!is_between_records || is_end_of_a_record(&bytes, cut), "cut at {cut}");
        }
    }
    let (read, report) = read(&bytes);
    assert_eq!(read, sent);
    assert!(report.is_complete && report.is_lossless());
    assert_eq!(report.expected.as_ref(), Some(&report.read));
}

#[test]
fn what_is_missing_of_a_cut_chunk_is_known() {
    let bytes = file(options(), &messages(60));
    let index = Summary::read(&bytes).expect("a whole file").expect("with a summary");
    let last = index.chunk_indexes.last().expect("with chunks");
    let chunk_end = last.chunk_start_offset + last.chunk_length;
    let (_, report) = read(&bytes[..chunk_end as usize - 100]);
    let [loss] = &report.losses[..] else { panic!("{:?}", report.losses) };
    assert_eq!(loss.at + loss.bytes, chunk_end);
}

#[test]
fn zeros_behind_the_last_record_are_no_messages() {
    // A file system can keep the length of a file over a power failure, and not its bytes.
    let sent = joined(&messages(20));
    let bytes = file(options(), &messages(20));
    let ends = ends_of_messages(&bytes);
    let cut = ends[15];
    let mut broken = bytes.clone();
    broken[cut..].fill(0);
    let (read, report) = read(&broken);
    assert_eq!(read, sent[..16]);
    assert_eq!(
        report.losses.iter().map(|loss| loss.bytes).sum::<u64>(),
        (bytes.len() - cut) as u64
    );
}

#[test]
fn a_writer_that_is_dropped_completes_its_file() {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options()).expect("endless space");
    add_channels(&mut writer);
    let (head, first, second) = &messages(1)[0];
    writer.write(head, &[first, second]).expect("endless space");
    drop(writer);
    let (read, report) = read(&disk.bytes());
    assert_eq!(read, joined(&messages(1)));
    assert!(report.is_complete);
}

/// Where the record of each message ends, by the crate `mcap`, in the order of the file.
fn ends_of_messages(bytes: &[u8]) -> Vec<usize> {
    let summary = Summary::read(bytes).expect("a whole file").expect("with a summary");
    let mut ends = Vec::new();
    for chunk in &summary.chunk_indexes {
        let indexes = summary.read_message_indexes(bytes, chunk).expect("with indexes");
        let records_at = chunk.chunk_start_offset + 9 + 40;
        for entry in indexes.values().flatten() {
            let at = (records_at + entry.offset) as usize;
            let length = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().expect("8 bytes"));
            ends.push(at + 9 + length as usize);
        }
    }
    ends.sort_unstable();
    ends
}

/// Whether a record that is in no chunk ends here, or one of a definition within a chunk.
fn is_end_of_a_record(bytes: &[u8], cut: usize) -> bool {
    let mut at = 8;
    while at < cut {
        let length = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().expect("8 bytes"));
        at += 9 + length as usize;
    }
    at == cut
}
