//! Files that are cut and merged, and what a recorder says it lost.

use std::collections::BTreeSet;

use myelin_bag::{
    Attachment, BagReader, Channel, CopyError, Item, MessageHead, Options, RecordedLosses, Schema,
    Selection, Storage, WriteError, Writer, check, cut, merge,
};

use crate::support::{Disk, add_channels, file, joined, messages, options, read};

#[test]
fn a_cut_has_what_was_selected_and_is_whole() {
    let sent = messages(200);
    let mut options = options();
    options.profile = "ros2".into();
    let bytes = file(options.clone(), &sent);
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let start = sent[50].0.log_ns;
    let mut selection = Selection::default();
    selection.channels = Some(BTreeSet::from([2, 4]));
    (selection.start_ns, selection.end_ns) = (Some(start), Some(sent[150].0.log_ns));
    let disk = Disk::new(usize::MAX);
    let copied = cut(&reader, &selection, disk.clone(), options).expect("endless space");
    assert!(copied.losses.is_empty() && copied.written.lost.is_empty());

    let part = disk.bytes();
    assert_eq!(check(&part[..]).expect("a file of MCAP").findings, []);
    let cut = BagReader::new(&part[..]).expect("a file of MCAP");
    let topics: Vec<_> = cut.info().definitions.channels.values().map(|it| &it.topic).collect();
    assert_eq!(topics, ["/part/2", "/part/4"]);
    assert_eq!(cut.info().profile, "ros2");
    let mut expected = joined(&sent[50..150]);
    expected.retain(|(head, _)| head.channel == 2 || head.channel == 4);
    let read = read(&part).0;
    assert_eq!(read.len(), expected.len());
    for ((head, data), (sent, sent_data)) in read.iter().zip(&expected) {
        assert_eq!((head.sequence, head.log_ns, head.publish_ns), {
            (sent.sequence, sent.log_ns, sent.publish_ns)
        });
        assert_eq!(data, sent_data);
    }
}

#[test]
fn a_cut_begins_with_latched_messages() {
    let profiles = "- depth: 2\n  durability: transient_local";
    let latched = [("offered_qos_profiles", profiles)];
    let sent = [(1, 10), (2, 20), (3, 30), (4, 40)];
    let bytes = small_file("/tf_static", "uint8 x", &latched, &sent);
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let mut selection = Selection::default();
    selection.start_ns = Some(35);
    let disk = Disk::new(usize::MAX);
    let copied = cut(&reader, &selection, disk.clone(), options()).expect("endless space");
    assert_eq!(copied.latched, 2);
    let read = read(&disk.bytes()).0;
    let times = read.iter().map(|(head, _)| (head.sequence, head.log_ns, head.publish_ns));
    assert_eq!(times.collect::<Vec<_>>(), [(2, 35, 35), (3, 35, 35), (4, 40, 40)]);
    // A topic that keeps nothing for those who come later.
    let bytes = small_file("/tf", "uint8 x", &[], &sent);
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let copied = cut(&reader, &selection, Disk::new(usize::MAX), options());
    assert_eq!(copied.expect("endless space").written.statistics.messages, 1);
}

#[test]
fn a_cut_needs_space() {
    let bytes = file(options(), &messages(200));
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let error = cut(&reader, &Selection::default(), Disk::new(3000), options());
    assert!(matches!(error, Err(CopyError::Write(WriteError::Full(_)))), "{error:?}");
}

#[test]
fn a_chunk_that_is_broken_is_counted() {
    let mut options = options();
    options.has_checksums = true;
    let mut bytes = file(options.clone(), &messages(100));
    let place = bytes.windows(300).position(|it| it == [19; 300]).expect("a large message");
    bytes[place] ^= 1;
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let disk = Disk::new(usize::MAX);
    let copied = cut(&reader, &Selection::default(), disk, options).expect("endless space");
    assert_eq!((copied.losses.len(), copied.written.statistics.messages), (1, 99));
}

/// A file with a channel and messages of these numbers, at these times.
fn small_file(
    topic: &str,
    text: &str,
    metadata: &[(&str, &str)],
    messages: &[(u32, u64)],
) -> Vec<u8> {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options()).expect("endless space");
    let schema = Schema::new("ros2msg", "robot/msg/A", text);
    let schema = writer.add_schema(&schema).expect("endless space");
    let metadata = metadata.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    let channel = Channel {
        schema,
        topic: topic.into(),
        encoding: "cdr".into(),
        metadata: metadata.collect(),
    };
    let channel = writer.add_channel(&channel).expect("endless space");
    for (sequence, log_ns) in messages {
        let (sequence, log_ns) = (*sequence, *log_ns);
        let head = MessageHead { channel, sequence, log_ns, publish_ns: log_ns };
        writer.write(&head, &[&[0, 1, 0, 0, sequence as u8]]).expect("endless space");
    }
    extras(&mut writer);
    writer.finish().expect("endless space");
    disk.bytes()
}

fn extras<S: Storage>(writer: &mut Writer<S>) {
    let values = [("arm".to_owned(), "left".to_owned())].into();
    writer.write_metadata("robot", &values).expect("endless space");
    let attachment =
        Attachment { log_ns: 0, create_ns: 0, name: "map", media_type: "", data: &[1; 9] };
    writer.write_attachment(&attachment).expect("endless space");
}

#[test]
fn merged_files_are_in_order_of_time_and_channels_unite() {
    let latched = "- durability: transient_local";
    let files = [
        small_file("/a", "uint8 x", &[("offered_qos_profiles", latched)], &[(1, 10), (2, 40)]),
        small_file(
            "/a",
            "uint8 x",
            &[("offered_qos_profiles", "- durability: volatile")],
            &[(1, 20), (2, 40)],
        ),
        small_file("/a", "uint8 x", &[("unit", "m")], &[(7, 15)]),
        small_file("/a", "uint8 y", &[], &[(8, 30)]),
        small_file("/b", "uint8 x", &[], &[(9, 5)]),
    ];
    let readers: Vec<_> =
        files.iter().map(|bytes| BagReader::new(&bytes[..]).expect("a file of MCAP")).collect();
    let disk = Disk::new(usize::MAX);
    merge(&readers, disk.clone(), options()).expect("endless space");
    let bytes = disk.bytes();
    assert_eq!(check(&bytes[..]).expect("a file of MCAP").findings, []);

    let merged = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let definitions = &merged.info().definitions;
    assert_eq!(definitions.schemas.len(), 2);
    let channels: Vec<_> = definitions.channels.values().collect();
    let topics: Vec<_> = channels.iter().map(|it| it.topic.as_str()).collect();
    assert_eq!(topics, ["/a", "/a", "/b"]);
    let profiles = &channels[0].metadata["offered_qos_profiles"];
    assert_eq!(profiles, "- durability: transient_local\n- durability: volatile");
    assert_eq!(channels[0].metadata["unit"], "m");
    let order: Vec<_> =
        read(&bytes).0.iter().map(|(head, _)| (head.log_ns, head.sequence)).collect();
    assert_eq!(order, [(5, 9), (10, 1), (15, 7), (20, 1), (30, 8), (40, 2), (40, 2)]);

    let mut extras = Vec::new();
    let each = |item: Item<'_>| {
        extras.push(matches!(item, Item::Attachment(_)));
        Ok::<(), CopyError>(())
    };
    merged.each_extra(each).expect("memory can be read");
    assert_eq!(extras, [false, true], "the same once");
}

#[test]
fn a_merged_file_keeps_the_profile_of_all() {
    for (profiles, expected) in [(["ros2", "ros2"], "ros2"), (["ros2", ""], ""), (["", ""], "")] {
        let files = profiles.map(|profile| {
            let mut options = options();
            options.profile = profile.into();
            file(options, &messages(5))
        });
        let readers = files.each_ref().map(|it| BagReader::new(&it[..]).expect("a file of MCAP"));
        let disk = Disk::new(usize::MAX);
        merge(&readers, disk.clone(), options()).expect("endless space");
        let bytes = disk.bytes();
        let merged = BagReader::new(&bytes[..]).expect("a file of MCAP");
        assert_eq!(merged.info().profile, expected);
        assert_eq!(merged.info().definitions.channels.len(), 4, "they unite");
        assert_eq!(merged.info().statistics.messages, 10);
    }
}

#[test]
fn recorded_losses_are_the_last_totals() {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options()).expect("endless space");
    add_channels(&mut writer);
    let text = "string topic\nuint64 publisher_ring\nuint64 recorder\nuint64 disk\n";
    let schema = Schema::new("ros2msg", "myelin_msgs/msg/Losses", text);
    let schema = writer.add_schema(&schema).expect("endless space");
    let channel = Channel {
        schema,
        topic: RecordedLosses::TOPIC.into(),
        encoding: "cdr".into(),
        ..Channel::default()
    };
    let channel = writer.add_channel(&channel).expect("endless space");
    for total in 1..=100_u64 {
        // The text ends at byte 7, and numbers are aligned to 8.
        let mut data = vec![0, 1, 0, 0, 3, 0, 0, 0, b'/', b'a', 0, 0];
        for number in [total, 2 * total, 0] {
            data.extend(number.to_le_bytes());
        }
        let head = MessageHead { channel, log_ns: total, ..MessageHead::default() };
        writer.write(&head, &[&data]).expect("endless space");
    }
    writer.finish().expect("endless space");
    let bytes = disk.bytes();
    let reader = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let losses = reader.recorded_losses();
    assert_eq!(losses.len(), 1);
    assert_eq!((losses["/a"].publisher_ring, losses["/a"].recorder), (100, 200));
    assert_eq!(losses["/a"].total(), 300);
}

#[test]
fn sizes_are_known_from_the_indexes() {
    let sent = messages(200);
    let bytes = file(options(), &sent);
    let by_summary = BagReader::new(&bytes[..]).expect("a file of MCAP");
    let by_scanning = BagReader::new(&bytes[..bytes.len() - 1]).expect("a file of MCAP");
    let exact = by_scanning.sizes().expect("memory can be read");
    let of_four: usize = sent.iter().filter(|(head, ..)| head.channel == 4).count() * (304 + 31);
    assert_eq!(exact.bytes[&4], of_four as u64);
    assert_eq!(by_summary.sizes().expect("memory can be read"), exact);
    assert_eq!(by_summary.compressions()[""], u64::from(by_summary.info().statistics.chunks));
    assert_eq!(by_scanning.compressions(), by_summary.compressions());

    // Of many chunks, some are looked at.
    let mut small = Options::default();
    small.chunk_bytes = 100;
    let sent: Vec<_> = messages(3000).into_iter().filter(|(head, ..)| head.channel != 4).collect();
    let bytes = file(small, &sent);
    let exact = BagReader::new(&bytes[..bytes.len() - 1]).expect("a file of MCAP");
    let exact = exact.sizes().expect("memory can be read");
    let sizes = BagReader::new(&bytes[..]).expect("a file of MCAP").sizes();
    let sizes = sizes.expect("memory can be read");
    assert!(sizes.are_estimated);
    for (channel, bytes) in &sizes.bytes {
        let off = bytes.abs_diff(exact.bytes[channel]) * 100 / exact.bytes[channel];
        assert!(off < 20, "{channel}: {bytes} B, and {} B", exact.bytes[channel]);
    }
}
