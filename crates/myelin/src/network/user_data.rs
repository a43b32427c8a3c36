//! What a node and its endpoints announce to other hosts: their records, in the DDS user data of an
//! endpoint. The record of an endpoint is in its own user data, that of its node in the user data of
//! the node's writer of flow control, which there is one of.
//!
//! In user data, Myelin's part is the last `key=value;`, as ROS 2 writes its own: `myelin=`, the
//! version of the agreement, `:` and base64. ROS 2 parses these as text, and gives up at a byte that
//! it does not expect.
//!
//! The data come from another host. They are bounded, checked and read once; what they claim is
//! compared with what DDS knows of the endpoint.

use myelin_dds::Endpoint;

use super::dds_endpoint::{id_of, private_type};
use super::host::{Host, name_of};
use crate::{DdsInfo, EndpointInfo, Location, Matching, PeerInfo, Reliability};

/// The user data of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndpointUserData {
    pub(super) host: Host,
    /// The largest receive buffer that its kernel grants, in bytes.
    pub(super) buffer_bytes: u64,
    /// Whether its node sends the schema of its type (`SchemaChannel`).
    pub(super) has_schema: bool,
    pub(super) info: EndpointInfo,
}

/// The user data of a node's writer of flow control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeUserData {
    pub(super) host: Host,
    pub(super) info: PeerInfo,
}

/// A discovered endpoint, by its user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Discovered {
    /// Its node is on this host, and shared memory leads to it.
    ThisHost,
    /// Its node is on another host.
    OtherHost(EndpointUserData),
    /// It belongs to a DDS program without Myelin.
    Dds(EndpointInfo),
    /// It claims to be Myelin's, and cannot be understood.
    Unreadable(&'static str),
}

impl EndpointUserData {
    pub(super) fn encode(&self) -> String {
        let EndpointUserData { host: Host(host), buffer_bytes, has_schema, info } = self;
        let numbers = [host.to_le_bytes(), buffer_bytes.to_le_bytes()].concat();
        encode(&[&numbers[..], &[u8::from(*has_schema)], &info.encode()].concat())
    }

    fn decode(bytes: &[u8]) -> Result<EndpointUserData, &'static str> {
        let (host, rest) = word(bytes)?;
        let (buffer_bytes, rest) = word(rest)?;
        let (&flag, rest) = rest.split_first().filter(|(flag, _)| **flag < 2).ok_or(CORRUPT)?;
        let info = EndpointInfo::decode(rest).map_err(|_| CORRUPT)?;
        Ok(EndpointUserData { host: Host(host), buffer_bytes, has_schema: flag == 1, info })
    }
}

impl NodeUserData {
    pub(super) fn encode(&self) -> String {
        encode(&[&self.host.0.to_le_bytes()[..], &self.info.encode()].concat())
    }

    /// The node of another host that announces itself with a writer of flow control.
    pub(super) fn read(user_data: &[u8]) -> Option<NodeUserData> {
        let (_, bytes) = split(user_data).ok()?;
        let bytes = bytes?;
        let (host, rest) = word(&bytes).ok()?;
        let mut info = PeerInfo::decode(rest).ok()?;
        info.location = Location::OtherHost(host);
        Some(NodeUserData { host: Host(host), info })
    }
}

impl Discovered {
    /// `host` is this one; `is_writer`: it publishes.
    pub(super) fn read(endpoint: &Endpoint, is_writer: bool, host: Host) -> Discovered {
        let (own, bytes) = match split(&endpoint.user_data) {
            Ok(parts) => parts,
            Err(reason) => return Discovered::Unreadable(reason),
        };
        let Some(bytes) = bytes else { return Discovered::Dds(dds_program(endpoint, is_writer)) };
        let mut data = match EndpointUserData::decode(&bytes) {
            Ok(data) if data.host == host => return Discovered::ThisHost,
            Ok(data) => data,
            Err(reason) => return Discovered::Unreadable(reason),
        };
        let EndpointInfo { topic, type_hash, is_publisher, .. } = &data.info;
        let is_private = endpoint.type_name == private_type(*type_hash);
        let has_its_topic = name_of(&endpoint.topic).as_ref() == Some(topic);
        if *is_publisher != is_writer || (is_private && !has_its_topic) {
            return Discovered::Unreadable("its record is that of another endpoint");
        }
        data.info.location = Location::OtherHost(data.host.0);
        data.info.dds = Some(dds_info(endpoint, own));
        Discovered::OtherHost(data)
    }

    /// What is known of it, unless it is on this host or unreadable.
    pub(super) fn info(&self) -> Option<&EndpointInfo> {
        match self {
            Discovered::OtherHost(data) => Some(&data.info),
            Discovered::Dds(info) => Some(info),
            Discovered::ThisHost | Discovered::Unreadable(_) => None,
        }
    }
}

/// An endpoint of a DDS program, as far as DDS announces it.
pub(super) fn dds_program(endpoint: &Endpoint, is_writer: bool) -> EndpointInfo {
    let mut info = EndpointInfo::default();
    info.id = id_of(endpoint.guid);
    info.location = Location::Dds;
    (info.topic, info.type_name) = (endpoint.topic.clone(), endpoint.type_name.clone());
    info.is_publisher = is_writer;
    info.qos.resends = endpoint.reliable == Some(true);
    info.qos.reliability = match info.qos.resends {
        true => Reliability::Reliable,
        false => Reliability::BestEffort,
    };
    info.qos.transient_local = u32::from(endpoint.transient_local == Some(true));
    (info.qos.deadline, info.qos.lifespan) = (endpoint.deadline, endpoint.lifespan);
    info.qos.liveliness = endpoint.lease;
    info.qos.is_alive_by_topic = endpoint.by_topic == Some(true);
    (info.reliable, info.transient_local) = (info.qos.resends, info.qos.transient_local);
    info.matching = Matching::RequestedOffered;
    info.dds = Some(dds_info(endpoint, &endpoint.user_data));
    info
}

fn dds_info(endpoint: &Endpoint, user_data: &[u8]) -> DdsInfo {
    let mut dds = DdsInfo::default();
    dds.guid = endpoint.guid;
    (dds.topic, dds.type_name) = (endpoint.topic.clone(), endpoint.type_name.clone());
    dds.user_data = user_data.to_vec();
    dds
}

/// The part of the program, and the bytes of Myelin's part, if there is one.
fn split(user_data: &[u8]) -> Result<(&[u8], Option<Vec<u8>>), &'static str> {
    let at = user_data.windows(KEY.len()).rposition(|bytes| bytes == KEY.as_bytes());
    let Some(at) = at.filter(|at| *at == 0 || user_data[at - 1] == b';') else {
        return Ok((user_data, None));
    };
    let (own, part) = user_data.split_at(at);
    let Some(text) = part.strip_prefix(mark().as_bytes()) else {
        return Err(
            "its program has another version of Myelin; use the same version on both hosts",
        );
    };
    let text = text.strip_suffix(b";").filter(|text| text.len() <= TEXT_BYTES_MAX);
    let bytes = text.and_then(from_base64).ok_or(CORRUPT)?;
    Ok((own, Some(bytes)))
}

fn word(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let (word, rest) = bytes.split_first_chunk().ok_or(CORRUPT)?;
    Ok((u64::from_le_bytes(*word), rest))
}

fn encode(bytes: &[u8]) -> String {
    format!("{}{};", mark(), to_base64(bytes))
}

fn mark() -> String {
    format!("{KEY}{VERSION}:")
}

pub(super) fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        let digit = |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]);
        text.extend((0..=chunk.len()).map(digit));
    }
    text
}

/// `None` for text that `to_base64` does not make.
pub(super) fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        let mut bits = 0;
        for at in 0..4 {
            let digit = match chunk.get(at) {
                None => 0,
                Some(digit @ b'A'..=b'Z') => digit - b'A',
                Some(digit @ b'a'..=b'z') => digit - b'a' + 26,
                Some(digit @ b'0'..=b'9') => digit - b'0' + 52,
                Some(b'-') => 62,
                Some(b'_') => 63,
                Some(_) => return None,
            };
            bits = bits << 6 | u32::from(digit);
        }
        let decoded = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
        let (decoded, rest) = decoded.split_at(chunk.len() - 1);
        let is_whole = chunk.len() > 1 && rest.iter().all(|byte| *byte == 0);
        is_whole.then(|| bytes.extend(decoded))?;
    }
    Some(bytes)
}

const KEY: &str = "myelin=";
/// The version of the agreement between hosts: these data, partitions, flow control.
const VERSION: u32 = 5;
/// Longer than the longest record of an endpoint or a node.
const TEXT_BYTES_MAX: usize = 4_096;
/// RFC 4648, section 5.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const CORRUPT: &str = "its record is damaged";

#[cfg(test)]
mod tests {
    use myelin_shm::node as shm;
    use myelin_shm::record::RecordOptions;
    use myelin_shm::topic::{PublisherQos, Topic};

    use super::*;
    use crate::network::host::topic_name;

    const OURS: Host = Host(1);

    fn node(folder: &std::path::Path) -> shm::Node {
        let (folder, name) = (Some(folder.to_owned()), "lidar".to_owned());
        shm::Node::open(shm::NodeOptions { runtime_dir: folder, name, ..Default::default() })
            .unwrap()
    }

    /// A publisher of another host, as it announces itself.
    fn publisher() -> EndpointUserData {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let topic = Topic { name: "points".into(), type_name: "[Point; 3]".into(), type_hash: 7 };
        let mut options = RecordOptions { resends: true, ..RecordOptions::default() };
        options.attributes.insert("frame", b"a;b=\0").unwrap();
        let qos = PublisherQos { transient_local: 2, ..PublisherQos::default() };
        let publisher = node.publisher_with(topic, qos, options).unwrap();
        let info = node.endpoint(publisher.id()).unwrap().unwrap();
        EndpointUserData { host: Host(0x1234), buffer_bytes: 212_992, has_schema: true, info }
    }

    fn discovered(user_data: &[u8]) -> Endpoint {
        Endpoint {
            handle: 0,
            guid: [9; 16],
            topic: topic_name("points"),
            type_name: private_type(7),
            user_data: user_data.to_vec(),
            reliable: Some(true),
            transient_local: Some(true),
            by_topic: Some(false),
            deadline: None,
            lifespan: None,
            lease: None,
        }
    }

    fn read(user_data: &[u8]) -> Discovered {
        Discovered::read(&discovered(user_data), true, OURS)
    }

    fn is_unreadable(found: Discovered) -> bool {
        matches!(found, Discovered::Unreadable(_))
    }

    #[test]
    fn a_record_is_read_behind_the_data_of_its_program() {
        let sent = publisher();
        for own in ["", "typehash=RIHS01_00;"] {
            let data = [own.as_bytes(), sent.encode().as_bytes()].concat();
            let Discovered::OtherHost(found) = read(&data) else { panic!("{data:?}") };
            let mut expected = sent.clone();
            expected.info.location = Location::OtherHost(0x1234);
            expected.info.dds = Some(dds_info(&discovered(b""), own.as_bytes()));
            assert_eq!(found, expected);
        }
        let here = EndpointUserData { host: OURS, ..sent };
        assert_eq!(read(here.encode().as_bytes()), Discovered::ThisHost);
    }

    /// Nodes of 0.1 on other hosts read this text.
    #[test]
    fn the_agreement_of_0_1_stays() {
        let mut data = publisher();
        (data.info.id, data.info.created_ns) = (5 << 24 | 1, 1_700_000_000_000_000_000);
        let text = "myelin=5:NBIAAAAAAAAAQAMAAAAAAAEDAQAABQAAAAAEBnBvaW50cwpbUG9pbnQ7IDNdBwAAAAAAAAAI\
                    AAAAAgAAAAAAKjb-nJcXAQVmcmFtZQUAYTtiPQA;";
        assert_eq!(data.encode(), text);
    }

    /// ROS 2 reads user data up to a byte that is not in this form.
    #[test]
    fn the_data_have_the_form_of_ros_2() {
        let text = publisher().encode();
        let value = text.strip_prefix("myelin=").and_then(|text| text.strip_suffix(';')).unwrap();
        assert!(value.bytes().all(|byte| byte.is_ascii_graphic() && byte != b';'), "{text}");
    }

    #[test]
    fn an_endpoint_without_a_record_is_of_a_dds_program() {
        for data in [&b""[..], b"enclave=/;", b"mymyelin=1;", b"\xff\0", b"myelin"] {
            let Discovered::Dds(info) = read(data) else { panic!("{data:?}") };
            assert_eq!((info.location, info.node, info.type_hash), (Location::Dds, 0, 0));
            assert_eq!((info.reliable, info.transient_local), (true, 1));
            assert_eq!(info.dds.unwrap().user_data, data);
        }
    }

    #[test]
    fn other_versions_are_refused_with_a_remedy() {
        for data in
            [&b"myelin=1 0000000000000007 1 4096 1 Point"[..], b"myelin=3:;", b"a=b;myelin="]
        {
            let Discovered::Unreadable(reason) = read(data) else { panic!("{data:?}") };
            assert!(reason.contains("use the same version"), "{reason}");
        }
    }

    #[test]
    fn a_record_of_another_endpoint_is_refused() {
        let data = publisher().encode();
        let mut endpoint = discovered(data.as_bytes());
        assert!(is_unreadable(Discovered::read(&endpoint, false, OURS)), "another direction");
        endpoint.topic = topic_name("other");
        assert!(is_unreadable(Discovered::read(&endpoint, true, OURS)), "another topic");
        endpoint.type_name = "m::Points".to_owned();
        let found = Discovered::read(&endpoint, true, OURS);
        assert!(matches!(found, Discovered::OtherHost(_)), "its name in DDS is another one");
    }

    /// Cut, changed, too long: none is taken for another record than it encodes.
    #[test]
    fn hostile_data_are_unreadable() {
        let text = publisher().encode();
        for length in KEY.len()..text.len() {
            assert!(is_unreadable(read(&text.as_bytes()[..length])), "{length}");
        }
        let start = mark().len();
        let mut random = 1_u64;
        for _ in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut changed = text.clone().into_bytes();
            let at = start + (random >> 33) as usize % (changed.len() - start);
            changed[at] = (random >> 20) as u8;
            if let Discovered::OtherHost(data) = read(&changed) {
                assert_eq!(data.encode().as_bytes(), changed);
            }
        }
        let long = format!("{}{};", mark(), "A".repeat(TEXT_BYTES_MAX + 1));
        assert!(is_unreadable(read(long.as_bytes())));
    }

    #[test]
    fn the_longest_records_fit() {
        let mut data = publisher();
        let long = "x".repeat(255);
        (data.info.topic, data.info.type_name) = (long.clone(), long.clone());
        data.info.attributes = Default::default();
        for number in 0..32 {
            data.info.attributes.insert(&format!("{number:02}"), &[number; 30]).unwrap();
        }
        let mut node = node(tempfile::tempdir().unwrap().path()).info().unwrap();
        node.record.attributes = data.info.attributes.clone();
        let record = &mut node.record;
        for text in [
            &mut record.name,
            &mut record.namespace,
            &mut record.program,
            &mut record.host,
            &mut record.language,
            &mut record.version,
        ] {
            text.clone_from(&long);
        }
        for text in [data.encode(), NodeUserData { host: OURS, info: node }.encode()] {
            assert!(text.len() - mark().len() - 1 <= TEXT_BYTES_MAX, "{}", text.len());
        }
    }

    #[test]
    fn a_node_is_read_as_written() {
        let info = node(tempfile::tempdir().unwrap().path()).info().unwrap();
        let sent = NodeUserData { host: Host(5), info };
        let mut expected = sent.clone();
        expected.info.location = Location::OtherHost(5);
        assert_eq!(NodeUserData::read(sent.encode().as_bytes()), Some(expected));
        for data in [&b""[..], b"myelin=5:;", b"myelin=5:AAAA;", publisher().encode().as_bytes()] {
            assert_eq!(NodeUserData::read(data), None);
        }
    }

    #[test]
    fn base64_is_read_as_written_and_nothing_else() {
        for length in 0..40 {
            let bytes: Vec<u8> = (0..length).map(|it: u8| it.wrapping_mul(37)).collect();
            assert_eq!(from_base64(to_base64(&bytes).as_bytes()), Some(bytes));
        }
        assert_eq!(to_base64(b"\xfb\xff any carnal"), "-_8gYW55IGNhcm5hbA");
        for text in ["A", "AAAAA", "AB", "AA=", "AA AA", "\u{e9}AAA", "AAA/"] {
            assert_eq!(from_base64(text.as_bytes()), None, "{text}");
        }
    }
}
