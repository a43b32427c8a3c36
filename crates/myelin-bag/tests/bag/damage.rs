//! Files whose bytes changed.

use std::collections::HashSet;

use crate::support::{file, joined, messages, options, read};
use myelin_bag::{Cause, Scanner};
use proptest::prelude::*;

#[test]
fn a_changed_byte_loses_a_chunk_at_most_and_is_noticed() {
    let mut options = options();
    options.has_checksums = true;
    let sent = joined(&messages(30));
    let bytes = file(options, &messages(30));
    let all: HashSet<_> = sent.iter().map(|(head, data)| (head.sequence, data)).collect();
    for at in 8..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 0x41;
        let (read, report) = read(&broken);
        assert!(read.iter().all(|(head, data)| all.contains(&(head.sequence, data))), "byte {at}");
        let lost = (sent.len() - read.len()) as u64;
        assert!(lost <= 20, "byte {at}: {lost} lost, {:?}", report.losses);
        assert!(lost == 0 || !report.is_lossless(), "byte {at}: {lost} lost, {report:?}");
        if report.expected.is_some() {
            assert_eq!((report.lost().known, report.lost().is_exact), (lost, true), "byte {at}");
            assert_eq!(report.lost_by_channel().values().sum::<u64>(), lost);
        }
    }
}

#[test]
fn messages_of_a_damaged_chunk_are_counted_without_a_summary_too() {
    let mut options = options();
    options.has_checksums = true;
    let bytes = file(options, &messages(60));
    let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
    let chunk = &summary.chunk_indexes[1];
    let mut broken = bytes[..summary.chunk_indexes[4].chunk_start_offset as usize].to_vec();
    broken[(chunk.chunk_start_offset + 60) as usize] ^= 1;
    let (_, report) = read(&broken);
    let indexes = summary.read_message_indexes(&bytes, chunk).expect("with indexes");
    let messages = indexes.values().map(|entries| entries.len() as u64).sum::<u64>();
    let [loss] = &report.losses[..] else { panic!("{:?}", report.losses) };
    assert_eq!((&loss.cause, loss.messages), (&Cause::Checksum, Some(messages)));
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b""[..], b"\x89MCAP", b"#ROSBAG V2.0\n", &[0; 100]] {
        let error = Scanner::new(bytes).err().expect("it is no MCAP").to_string();
        assert!(error.contains("not an MCAP file"), "{error}");
    }
}

proptest! {
    #[test]
    fn every_way_of_reading_any_file_ends(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        crate::hostile_input::read(&bytes);
    }

    #[test]
    fn whatever_the_bytes_are_reading_ends(
        changes in prop::collection::vec((8_usize.., any::<u8>()), 1..20),
        cut in any::<usize>(),
    ) {
        let mut bytes = file(options(), &messages(15));
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at.max(8)] = value;
        }
        bytes.truncate((cut % bytes.len()).max(8));
        let (messages, report) = read(&bytes);
        prop_assert_eq!(messages.len() as u64, report.read.messages);
    }
}
