//! Compressed chunks: by other readers, cut, on full disks, and faster than they can be compressed.

use std::collections::BTreeMap;

use crate::support::{
    Disk, add_channels, as_lines, file, joined, messages, options, output, python, read,
};
use myelin_bag::{Compression, MessageHead, Options, WriteError, Writer, check};

fn packed(compression: Compression) -> Options {
    let mut options = options();
    options.compression = compression;
    options.chunk_bytes = 900;
    options
}

#[test]
fn compressed_chunks_keep_the_order_and_are_read_by_others() {
    let folder = tempfile::tempdir().expect("a folder");
    for compression in [Compression::Lz4, Compression::Zstd] {
        for has_checksums in [false, true] {
            let mut options = packed(compression);
            options.has_checksums = has_checksums;
            let sent = messages(300);
            let bytes = file(options, &sent);
            let (read, report) = read(&bytes);
            assert_eq!(read, joined(&sent));
            assert!(report.is_complete && report.is_lossless());
            assert_eq!(check(&bytes[..]).expect("a file of MCAP").findings, []);
            let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with one");
            let chunks = &summary.chunk_indexes;
            let name = format!("{compression:?}").to_lowercase();
            assert!(chunks.iter().all(|chunk| chunk.compression == name), "{chunks:?}");
            let alone = chunks.iter().filter(|it| it.message_index_offsets.keys().eq([&4]));
            assert_eq!(alone.count(), 30, "large messages have chunks of their own");

            let Some(mut command) = python("read.py") else { continue };
            let path = folder.path().join(format!("{name}-{has_checksums}.mcap"));
            std::fs::write(&path, bytes).expect("space");
            assert_eq!(output(command.arg("messages").arg(&path)), as_lines(&read));
        }
    }
}

#[test]
fn a_chunk_that_does_not_become_smaller_is_written_as_it_is() {
    let mut random = 1_u64;
    let mut noise = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 56) as u8
    };
    let data: Vec<u8> = (0..100_000).map(|_| noise()).collect();
    let head = MessageHead { channel: 1, ..MessageHead::default() };
    let bytes = file(packed(Compression::Zstd), &[(head, data.clone(), Vec::new())]);
    let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
    assert_eq!(summary.chunk_indexes.last().expect("a chunk").compression, "");
    assert_eq!(read(&bytes).0, [(head, data)]);
    assert_eq!(check(&bytes[..]).expect("a file of MCAP").findings, []);
}

#[test]
fn of_a_cut_file_the_complete_chunks_are_read() {
    for compression in [Compression::Lz4, Compression::Zstd] {
        let sent = joined(&messages(20));
        let bytes = file(packed(compression), &messages(20));
        let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
        let chunks = summary.chunk_indexes.iter().map(|chunk| {
            let indexes = summary.read_message_indexes(&bytes, chunk).expect("with indexes");
            let end = chunk.chunk_start_offset + chunk.chunk_length;
            (end as usize, indexes.values().map(Vec::len).sum::<usize>())
        });
        let chunks: Vec<_> = chunks.collect();
        for cut in 8..bytes.len() {
            let complete = chunks.iter().filter(|(end, _)| *end <= cut);
            let complete = complete.map(|(_, messages)| messages).sum::<usize>();
            let (read, report) = read(&bytes[..cut]);
            assert_eq!(read, sent[..complete], "cut at byte {cut}");
            assert!(!report.is_complete);
        }
    }
}

#[test]
fn flush_waits_until_all_is_in_the_file() {
    let disk = Disk::new(usize::MAX);
    let mut writer =
        Writer::new(disk.clone(), packed(Compression::Zstd)).expect("a disk of endless space");
    add_channels(&mut writer);
    let sent = messages(50);
    for (head, first, second) in &sent {
        writer.write(head, &[first, second]).expect("a disk of endless space");
    }
    assert!(writer.bytes_in_memory() > 0);
    writer.flush().expect("a disk of endless space");
    assert_eq!(writer.bytes_in_memory(), 0);
    assert_eq!(writer.statistics().messages, 50);
    assert_eq!(read(&disk.bytes()).0, joined(&sent));
}

/// The threads may have one chunk only, so a message that would begin the next one is lost while
/// they have it, and that message alone.
#[test]
fn what_comes_faster_than_it_is_compressed_is_lost_and_counted() {
    for drops_when_behind in [true, false] {
        let disk = Disk::new(usize::MAX);
        let mut options = packed(Compression::Zstd);
        options.compression_bytes_max = 0;
        options.drops_when_behind = drops_when_behind;
        let mut writer = Writer::new(disk.clone(), options).expect("a disk of endless space");
        add_channels(&mut writer);
        let (mut kept, mut lost) = (Vec::new(), BTreeMap::<u16, u64>::new());
        for (head, first, second) in messages(50_000) {
            match writer.write(&head, &[&first, &second]) {
                Ok(()) => kept.push((head, [first, second].concat())),
                Err(WriteError::Behind) => *lost.entry(head.channel).or_default() += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(lost.is_empty(), !drops_when_behind, "{lost:?}");
        let written = writer.finish().expect("a disk of endless space");
        assert_eq!(written.lost, lost);
        let (read, report) = read(&disk.bytes());
        assert_eq!(report.read.messages, kept.len() as u64);
        assert!(read == kept, "what was taken is in the file, in order");
        assert!(!kept.is_empty());
        assert!(report.is_complete && report.is_lossless());
    }
}
