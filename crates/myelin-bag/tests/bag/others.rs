//! Files of ours by the readers of others, and theirs by ours.

use std::borrow::Cow;
use std::io::Cursor;
use std::sync::Arc;

use crate::support::{as_lines, file, joined, messages, options, output, python, read};

#[test]
fn the_crate_mcap_reads_the_same() {
    for has_checksums in [false, true] {
        let mut options = options();
        options.has_checksums = has_checksums;
        options.profile = "ros2".into();
        let sent = messages(60);
        let bytes = file(options, &sent);
        let stream = mcap::MessageStream::new(&bytes).expect("a file of MCAP");
        let mut count = 0;
        for (message, (head, data)) in stream.zip(joined(&sent)) {
            let message = message.expect("a whole file");
            assert_eq!(message.data, data);
            assert_eq!(message.sequence, head.sequence);
            assert_eq!((message.log_time, message.publish_time), (head.log_ns, head.publish_ns));
            assert_eq!(message.channel.topic, format!("/part/{}", head.channel));
            assert_eq!(message.channel.metadata["unit"], "m");
            let schema = message.channel.schema.as_ref().expect("each has one");
            assert_eq!(schema.name, format!("robot/msg/Part{}", head.channel));
            count += 1;
        }
        assert_eq!(count, sent.len());

        let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
        let statistics = summary.stats.as_ref().expect("with statistics");
        assert_eq!((statistics.message_count, statistics.channel_count), (60, 4));
        assert_eq!(statistics.chunk_count as usize, summary.chunk_indexes.len());
        let mut indexed = 0;
        for chunk in &summary.chunk_indexes {
            for (channel, entries) in summary.read_message_indexes(&bytes, chunk).expect("right") {
                for entry in entries {
                    let message = summary.seek_message(&bytes, chunk, &entry).expect("right");
                    assert_eq!(message.channel.id, channel.id);
                    assert_eq!(message.log_time, entry.log_time);
                    indexed += 1;
                }
            }
        }
        assert_eq!(indexed, 60);
    }
}

#[test]
fn large_messages_have_chunks_of_their_own() {
    let bytes = file(options(), &messages(60));
    let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
    let large = summary
        .chunk_indexes
        .iter()
        .filter(|chunk| chunk.message_index_offsets.keys().copied().eq([4]));
    assert_eq!(large.count(), 6);
    assert!(summary.chunk_indexes.iter().all(|chunk| {
        chunk.message_index_offsets.len() == 1 || !chunk.message_index_offsets.contains_key(&4)
    }));
}

#[test]
fn what_the_crate_mcap_writes_is_read() {
    for compression in [None, Some(mcap::Compression::Zstd)] {
        let bytes = written_by_mcap(compression, true);
        let (read, report) = read(&bytes);
        assert!(report.is_complete && report.is_lossless(), "{report:?}");
        assert_eq!(read.len(), 100);
        assert!(read.iter().zip(0..).all(|((head, data), number)| {
            head.sequence == number && data == &[number as u8; 100]
        }));
    }
}

#[test]
fn a_chunk_that_the_crate_mcap_could_not_complete_is_read() {
    let bytes = written_by_mcap(None, false);
    let (read, report) = read(&bytes);
    assert!(!report.is_complete);
    assert_eq!(read.len(), 100, "{report:?}");
}

/// A file, complete or killed.
fn written_by_mcap(compression: Option<mcap::Compression>, is_complete: bool) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let options = mcap::WriteOptions::new().compression(compression).chunk_size(Some(3000));
    let options = if is_complete { options } else { options.chunk_size(Some(1 << 20)) };
    let mut writer = options.create(&mut bytes).expect("memory");
    let channel = mcap::Channel {
        id: 0,
        topic: "/topic".into(),
        schema: Some(Arc::new(mcap::Schema {
            id: 1,
            name: "a/msg/B".into(),
            encoding: "ros2msg".into(),
            data: Cow::Borrowed(b"uint8 a"),
        })),
        message_encoding: "cdr".into(),
        metadata: Default::default(),
    };
    let channel = Arc::new(channel);
    for sequence in 0..100 {
        let (log_time, publish_time) = (u64::from(sequence) + 5, 5);
        let data = Cow::Owned(vec![sequence as u8; 100]);
        let channel = channel.clone();
        let message = mcap::Message { channel, sequence, log_time, publish_time, data };
        writer.write(&message).expect("memory");
    }
    if is_complete {
        writer.finish().expect("memory");
        drop(writer);
    } else {
        std::mem::forget(writer);
    }
    bytes.into_inner()
}

#[test]
fn python_reads_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, has_checksums) in [("plain.mcap", false), ("checked.mcap", true)] {
        let Some(mut command) = python("read.py") else { return };
        let mut options = options();
        options.has_checksums = has_checksums;
        let sent = messages(60);
        let path = folder.path().join(name);
        std::fs::write(&path, file(options, &sent)).expect("space");
        let read = output(command.arg("messages").arg(&path));
        assert_eq!(read, as_lines(&joined(&sent)));
    }
}

#[test]
fn what_python_compresses_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for compression in ["none", "lz4", "zstd"] {
        let Some(mut command) = python("read.py") else { return };
        let path = folder.path().join(compression);
        output(command.arg("write").arg(&path).arg(compression));
        let (read, report) = read(&std::fs::read(&path).expect("it was written"));
        assert!(report.is_complete && report.is_lossless(), "{compression}: {report:?}");
        assert_eq!(read.len(), 1000);
        assert!(read.iter().all(|(head, data)| data == format!("{}", head.sequence).as_bytes()));
    }
}
