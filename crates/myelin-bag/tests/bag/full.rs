//! Disks that fill up.

use std::collections::BTreeMap;

use crate::support::{Disk, add_channels, file, joined, messages, options, read};
use myelin_bag::{Compression, Metadata, Options, WriteError, Writer, Written};

/// What happens on a disk of this size; `None` if not even the begin has space.
fn record(disk: &Disk, options: Options, count: u32) -> Option<Result<Written, WriteError>> {
    let mut writer = Writer::new(disk.clone(), options).ok()?;
    add_channels(&mut writer);
    let mut failed = 0;
    for (head, first, second) in &messages(count) {
        match writer.write(head, &[first, second]) {
            Ok(()) => assert_eq!(failed, 0, "nothing is written behind a gap"),
            Err(WriteError::Full(_)) if failed == 0 => failed = 1,
            Err(WriteError::Ended) => assert_eq!(failed, 1),
            Err(other) => panic!("{other}"),
        }
    }
    Some(writer.finish())
}

#[test]
fn a_full_disk_leaves_a_complete_file_whatever_its_size() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let mut options = options();
        options.compression = compression;
        full_disks_of_every_size(&options);
    }
}

fn full_disks_of_every_size(options: &Options) {
    let sent = joined(&messages(20));
    let whole = file(options.clone(), &messages(20)).len();
    let mut lossy = 0;
    for size in (0..=whole + 200).step_by(3) {
        let disk = Disk::new(size);
        let Some(finished) = record(&disk, options.clone(), 20) else { continue };
        let written = finished.expect("the end has its space");
        let (read, report) = read(&disk.bytes());
        assert!(report.is_complete && report.is_lossless(), "{size} B: {report:?}");
        assert_eq!(report.read, written.statistics);
        assert_eq!(read, sent[..read.len()]);
        assert_eq!(written.lost, by_channel(&sent[read.len()..]), "{size} B");
        mcap::Summary::read(&disk.bytes()).expect("a whole file").expect("with a summary");
        lossy += usize::from(!written.lost.is_empty());
        assert!(size < whole + 64 || written.lost.is_empty(), "{size} B are enough");
    }
    assert!(lossy > whole / 6, "{lossy} of {whole}");
}

#[test]
fn without_reservations_the_chunk_that_failed_makes_place_for_the_end() {
    let sent = joined(&messages(20));
    let whole = file(options(), &messages(20)).len();
    let mut complete = 0;
    for size in (0..=whole).step_by(3) {
        let mut disk = Disk::new(size);
        disk.can_reserve = false;
        let Some(finished) = record(&disk, options(), 20) else { continue };
        complete += usize::from(finished.is_ok());
        let (read, report) = read(&disk.bytes());
        assert_eq!(report.is_complete, finished.is_ok(), "{size} B");
        assert!(report.losses.is_empty(), "{size} B: {report:?}");
        assert_eq!(read, sent[..read.len()]);
        if let Ok(written) = finished {
            assert_eq!(written.lost, by_channel(&sent[read.len()..]));
        }
    }
    assert!(complete > whole / 30, "{complete} of {whole}");
}

#[test]
fn losses_have_a_place_in_the_file_of_a_full_disk() {
    let mut options = options();
    options.end_bytes = 100;
    for size in (1500..2500).step_by(7) {
        let disk = Disk::new(size);
        let mut writer = Writer::new(disk.clone(), options.clone()).expect("there is space");
        add_channels(&mut writer);
        for (head, first, second) in &messages(60) {
            let _ = writer.write(head, &[first, second]);
        }
        let lost = writer.lost().values().sum::<u64>();
        assert!(lost > 0);
        let values = Metadata::from([("lost".to_owned(), lost.to_string())]);
        writer.write_metadata("myelin:losses", &values).expect("it has its space");
        writer.finish().expect("the end has its space");
        let bytes = disk.bytes();
        let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
        let read = mcap::read::metadata(&bytes, &summary.metadata_indexes[0]).expect("it is there");
        assert_eq!((read.name.as_str(), read.metadata), ("myelin:losses", values));
    }
}

fn by_channel<T>(messages: &[(myelin_bag::MessageHead, T)]) -> BTreeMap<u16, u64> {
    let mut counts = BTreeMap::new();
    for (head, _) in messages {
        *counts.entry(head.channel).or_default() += 1;
    }
    counts
}
