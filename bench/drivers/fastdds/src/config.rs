//! Fast DDS's configuration: profiles made here, handed to the library, and left in the run's
//! folder so that anyone can repeat the run with `FASTRTPS_DEFAULT_PROFILES_FILE=…/fastdds.xml`, from
//! Fast DDS 3 on with `FASTDDS_DEFAULT_PROFILES_FILE`.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use myelin_bench_kit::Error;
use myelin_bench_kit::protocol::{Prepare, Reliability};

/// The series of Fast DDS, which name some elements differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Up to 2.14.
    Two,
    /// From 3.0 on.
    Three,
}

impl Series {
    /// The element's name in Fast DDS 2 or in Fast DDS 3.
    fn name(self, two: &'static str, three: &'static str) -> &'static str {
        match self {
            Series::Two => two,
            Series::Three => three,
        }
    }
}

/// What the profiles of a run follow from. On one host both roles of a run have the same.
pub struct Profiles<'a> {
    /// The run.
    pub prepare: &'a Prepare,
    /// Of the library that reads them.
    pub series: Series,
    /// Whether shared memory carries messages of more than 64 KiB.
    pub sends_whole: bool,
}

impl Profiles<'_> {
    /// Whether the shared memory transport carries everything; otherwise UDP does.
    fn is_shared_memory(&self) -> bool {
        self.prepare.system != "fastdds.udp"
    }

    /// Whether subscribers have mapped the publisher's memory. The shared memory transport then carries only
    /// discovery and acknowledgements.
    fn shares_data(&self) -> bool {
        self.prepare.system == "fastdds.datasharing"
    }

    /// Whether publishing waits for a full history (KEEP_ALL). Otherwise the oldest sample goes; in a round trip
    /// nothing overtakes anything, because one message is in flight.
    fn waits(&self) -> bool {
        self.is_stream() && self.prepare.reliability == Reliability::Reliable
    }

    fn is_stream(&self) -> bool {
        self.prepare.workload.is_one_way()
    }

    /// Samples that are kept of a topic.
    fn depth(&self) -> u64 {
        if self.is_stream() { self.prepare.depth.into() } else { ROUND_TRIP_DEPTH }
    }

    /// What the histories of all writers of one end can hold, in bytes.
    pub fn history_bytes(&self) -> u64 {
        let samples = self.depth() + self.extra_samples();
        samples.saturating_mul(self.serialised_bytes()).saturating_mul(self.prepare.topics.into())
    }

    /// What is kept beyond the history. Fast DDS 3 takes up to six samples more for a full history that
    /// publishers wait for, and refuses to write without them.
    fn extra_samples(&self) -> u64 {
        match self.series == Series::Three && self.waits() && !self.shares_data() {
            true => EXTRA_SAMPLES + 6,
            false => EXTRA_SAMPLES,
        }
    }

    /// The whole file.
    pub fn xml(&self) -> String {
        let (writer, reader) = (self.writer(), self.reader());
        let (transport, peers) = match self.is_shared_memory() {
            false => (self.udp(), self.peers()),
            true => (self.shared_memory(), String::new()),
        };
        let schema = self.series.name("/XMLSchemas/fastRTPS_Profiles", "");
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.eprosima.com{schema}">
  <profiles>
    <transport_descriptors>
{transport}    </transport_descriptors>
    <participant profile_name="myelin" is_default_profile="true">
      <rtps>
        <builtin>
          <discovery_config>
            <!-- A run is short: each participant announces itself at once and often. -->
            <initialAnnouncements>
              <count>20</count>
              <period><nanosec>10000000</nanosec></period>
            </initialAnnouncements>
          </discovery_config>
{peers}        </builtin>
        <!-- Only this transport, without a fallback. -->
        <userTransports><transport_id>myelin</transport_id></userTransports>
        <useBuiltinTransports>false</useBuiltinTransports>
      </rtps>
    </participant>
    <data_writer profile_name="myelin" is_default_profile="true">
{writer}    </data_writer>
    <data_reader profile_name="myelin" is_default_profile="true">
{reader}    </data_reader>
  </profiles>
</dds>
"#
        )
    }

    /// Of this host and of the other.
    fn addresses(&self) -> [IpAddr; 2] {
        match &self.prepare.network {
            None => [IpAddr::V4(Ipv4Addr::LOCALHOST); 2],
            Some(network) => [network.own, network.peer],
        }
    }

    fn peers(&self) -> String {
        let [own, peer] = self.addresses();
        let family = if own.is_ipv4() { "udpv4" } else { "udpv6" };
        format!(
            r#"          <!-- No multicast: participants are at the first ports of this domain. -->
          <metatrafficUnicastLocatorList>
            <locator><{family}><address>{own}</address></{family}></locator>
          </metatrafficUnicastLocatorList>
          <initialPeersList>
            <locator><{family}><address>{peer}</address></{family}></locator>
          </initialPeersList>
"#
        )
    }

    fn udp(&self) -> String {
        let [own, _] = self.addresses();
        let family = if own.is_ipv4() { "UDPv4" } else { "UDPv6" };
        let peers = self.prepare.publishers + self.prepare.subscribers + SPARE_PEERS;
        let wanted = self.serialised_bytes().saturating_mul(2).max(SOCKET_BYTES_MIN);
        let [send, receive] = ["wmem_max", "rmem_max"].map(|limit| wanted.min(kernel_limit(limit)));
        format!(
            r#"      <transport_descriptor>
        <transport_id>myelin</transport_id>
        <type>{family}</type>
        <!-- Two samples, at least 1 MiB, at most what the kernel allows: net.core.wmem_max and
             net.core.rmem_max. -->
        <sendBufferSize>{send}</sendBufferSize>
        <receiveBufferSize>{receive}</receiveBufferSize>
        <!-- The largest datagram of UDP: larger samples are sent in fragments. -->
        <maxMessageSize>65500</maxMessageSize>
        <!-- The number of processes whose ports are asked. -->
        <maxInitialPeersRange>{peers}</maxInitialPeersRange>
        <!-- Only this interface; on one host no message leaves the host. -->
        <interfaceWhiteList><address>{own}</address></interfaceWhiteList>
      </transport_descriptor>
"#
        )
    }

    fn shared_memory(&self) -> String {
        let topics = u64::from(self.prepare.topics);
        let samples = self.depth().saturating_mul(topics);
        // Each subscriber has a port of its own; acknowledgements come to it, too.
        let queue = samples.saturating_mul(2).clamp(PORT_QUEUE_MIN, PORT_QUEUE_MAX);
        // For discovery and acknowledgements.
        let base = SEGMENT_BYTES_MIN + SEGMENT_BYTES_OF_TOPIC * topics;
        let (mut segment, mut message) = (base, MESSAGE_BYTES_MIN);
        if !self.shares_data() {
            // A sample goes whole, and a history of them has room.
            let whole = self.serialised_bytes() + RTPS_BYTES_MAX;
            let few = SPARE_SAMPLES * whole;
            // In a round trip one message is in flight, and segments are slow to make.
            let all = (samples + SPARE_SAMPLES).saturating_mul(whole);
            let history = if self.is_stream() { all } else { few };
            segment += history.min(few.max(SEGMENT_BYTES_MAX));
            message = if self.sends_whole { message.max(whole) } else { message };
        }
        format!(
            r#"      <transport_descriptor>
        <transport_id>myelin</transport_id>
        <type>SHM</type>
        <segment_size>{segment}</segment_size>
        <port_queue_capacity>{queue}</port_queue_capacity>
        <maxMessageSize>{message}</maxMessageSize>
      </transport_descriptor>
"#
        )
    }

    fn writer(&self) -> String {
        let qos = self.qos(
            "
          <!-- The publishing thread itself sends, without a hand-over to another thread. -->
          <publishMode><kind>SYNCHRONOUS</kind></publishMode>",
        );
        let depth = self.depth();
        let topic = self.topic(depth, depth);
        let (seconds, nanoseconds) = self.heartbeat();
        let period = self.series.name("heartbeatPeriod", "heartbeat_period");
        let delay = self.series.name("nackResponseDelay", "nack_response_delay");
        format!(
            r#"{topic}{qos}      <times>
        <!-- Lost or refused samples are requested at this period, and sent at once. -->
        <{period}>
          <sec>{seconds}</sec><nanosec>{nanoseconds}</nanosec>
        </{period}>
        <{delay}><nanosec>0</nanosec></{delay}>
      </times>
      <historyMemoryPolicy>PREALLOCATED</historyMemoryPolicy>
"#
        )
    }

    fn reader(&self) -> String {
        let qos = self.qos("");
        // By data sharing a reader whose history is full spins; so it never is: publishers wait for what has not
        // been taken.
        let spare = if self.shares_data() { EXTRA_SAMPLES } else { 0 };
        let samples = match self.waits() {
            true => (self.depth() + spare) * u64::from(self.prepare.publishers),
            false => self.depth(),
        };
        // Samples that are shared need no memory of the reader's.
        let allocated = if self.shares_data() { 1 } else { samples };
        let topic = self.topic(samples, allocated);
        let delay = self.series.name("heartbeatResponseDelay", "heartbeat_response_delay");
        format!(
            r#"{topic}{qos}      <times>
        <{delay}><nanosec>0</nanosec></{delay}>
      </times>
      <historyMemoryPolicy>PREALLOCATED</historyMemoryPolicy>
"#
        )
    }

    fn topic(&self, samples: u64, allocated: u64) -> String {
        let (kind, depth) = (if self.waits() { "KEEP_ALL" } else { "KEEP_LAST" }, self.depth());
        let mut text = format!(
            r#"      <topic>
        <historyQos>
          <kind>{kind}</kind>
          <depth>{depth}</depth>
        </historyQos>
        <resourceLimitsQos>
"#
        );
        for (name, value) in [
            ("max_samples", samples),
            ("max_instances", 1),
            ("max_samples_per_instance", samples),
            ("allocated_samples", allocated),
            ("extra_samples", self.extra_samples()),
        ] {
            writeln!(text, "          <{name}>{value}</{name}>").expect("writing to a String");
        }
        text + "        </resourceLimitsQos>\n      </topic>\n"
    }

    fn qos(&self, more: &str) -> String {
        let is_reliable = self.waits() || !self.is_stream();
        let reliability = if is_reliable { "RELIABLE" } else { "BEST_EFFORT" };
        let sharing = if self.shares_data() { "ON" } else { "OFF" };
        format!(
            r#"      <qos>
        <reliability>
          <kind>{reliability}</kind>
          <max_blocking_time><sec>{WRITE_BLOCKS_S_MAX}</sec></max_blocking_time>
        </reliability>
        <durability><kind>VOLATILE</kind></durability>
        <data_sharing><kind>{sharing}</kind></data_sharing>{more}
      </qos>
"#
        )
    }

    /// Seconds and nanoseconds between two heartbeats while something is not acknowledged. What is
    /// refused because the reader is full is sent anew after each: not before all of it could be.
    fn heartbeat(&self) -> (u64, u64) {
        let message_bytes = self.prepare.message_bytes() as u64;
        let nanoseconds = match self.waits() {
            true => 1_000_000 + self.depth() * message_bytes,
            false => 20_000_000 + message_bytes,
        };
        (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
    }

    /// A sample with its encapsulation.
    fn serialised_bytes(&self) -> u64 {
        self.prepare.message_bytes() as u64 + 4
    }
}

/// A limit of the kernel on socket buffers, in bytes; where it cannot be read, there is none.
fn kernel_limit(name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX)
}

/// Leaves `xml` in the run's folder.
pub fn write(prepare: &Prepare, xml: &str) -> Result<(), Error> {
    let path = prepare.file("fastdds.xml");
    std::fs::write(&path, xml)
        .map_err(|error| Error::new(format!("writing {}: {error}", path.display())))
}

/// Samples that writer and reader keep of a round trip. One message is in flight, up to 5 when
/// answers fail to come (then the kit gives up), so 8 never overwrites one.
const ROUND_TRIP_DEPTH: u64 = 8;
/// Beyond the history: the publisher's loan, and the sample that a subscriber reads in place while
/// it has already acknowledged it.
const EXTRA_SAMPLES: u64 = 2;
/// How long a write waits for a full history: RoundtripPing's value.
const WRITE_BLOCKS_S_MAX: u64 = 10;
/// Ports beyond those of a run's own processes that are asked.
const SPARE_PEERS: u32 = 2;
const SOCKET_BYTES_MIN: u64 = 1 << 20;
/// What RTPS adds to a sample, with room.
const RTPS_BYTES_MAX: u64 = 512;
/// Fast DDS's default.
const MESSAGE_BYTES_MIN: u64 = 65_500;
/// Of the segment, beyond a history: heartbeats and what is being resent.
const SPARE_SAMPLES: u64 = 4;
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
const SEGMENT_BYTES_OF_TOPIC: u64 = 4096;
/// A segment of more is not made for the sake of a deep history alone.
const SEGMENT_BYTES_MAX: u64 = 512 << 20;
/// Fast DDS's default.
const PORT_QUEUE_MIN: u64 = 512;
const PORT_QUEUE_MAX: u64 = 32_768;

#[cfg(test)]
mod tests {
    use super::*;
    use Reliability::{BestEffort, Reliable};
    use myelin_bench_kit::protocol::{Network, Workload};
    use serde_json::json;

    fn prepare(system: &str, message_bytes: u64) -> Prepare {
        serde_json::from_value(json!({
            "protocol": 1, "system": system, "role": "ping", "run": "r", "domain": 1,
            "payload_bytes": message_bytes - 8, "messages": 1, "duration_ns": 0, "warmup_messages": 0,
            "rate_hz": null, "reply_timeout_ns": 1, "match_timeout_ns": 1, "record_every": 1,
            "samples": null, "directory": "/", "lock_memory": false, "seed": 0,
        }))
        .unwrap()
    }

    fn stream(system: &str, message_bytes: u64, reliability: Reliability, depth: u32) -> Prepare {
        let workload = Workload::Stream;
        Prepare { workload, reliability, depth, ..prepare(system, message_bytes) }
    }

    fn profiles(prepare: &Prepare) -> Profiles<'_> {
        Profiles { prepare, series: Series::Two, sends_whole: true }
    }

    #[test]
    fn each_route_has_its_own_transport_and_no_other() {
        let xml = |system| profiles(&prepare(system, 72)).xml();
        let udp = xml(UDP);
        assert!(udp.contains("<type>UDPv4</type>") && !udp.contains("<type>SHM</type>"));
        assert!(udp.contains("127.0.0.1") && udp.contains("<kind>OFF</kind>"));
        let shared = xml(SHM);
        assert!(shared.contains("<type>SHM</type>") && !shared.contains("UDPv4"));
        assert!(shared.contains("<kind>OFF</kind>"));
        let sharing = xml(SHARING);
        assert!(sharing.contains("<type>SHM</type>") && sharing.contains("<kind>ON</kind>"));
    }

    #[test]
    fn across_hosts_the_config_has_one_interface_and_one_peer() {
        let [own, peer] = ["10.9.8.1", "10.9.8.2"].map(|it| it.parse().unwrap());
        let network = Some(Network { interface: "eth0".into(), own, peer, port: 1 });
        let xml = profiles(&Prepare { network, ..prepare(UDP, 72) }).xml();
        let (before, peers) = xml.split_once("<initialPeersList>").unwrap();
        assert!(before.contains("10.9.8.1") && !before.contains("10.9.8.2"));
        assert!(peers.contains("10.9.8.2") && !xml.contains("127.0.0.1"));
    }

    #[test]
    fn history_settings_follow_the_reliability() {
        let xml = |reliability, depth| profiles(&stream(SHM, 72, reliability, depth)).xml();
        let reliable = xml(Reliable, 3);
        assert!(reliable.contains("<kind>KEEP_ALL</kind>") && reliable.contains("RELIABLE"));
        assert!(reliable.contains("<max_samples>3</max_samples>"));
        let best_effort = xml(BestEffort, 5);
        assert!(best_effort.contains("<kind>BEST_EFFORT</kind>"));
        assert!(best_effort.contains("<depth>5</depth>") && !best_effort.contains("KEEP_ALL"));
    }

    #[test]
    fn the_shm_segment_holds_a_history_of_whole_samples() {
        for message_bytes in [8, 70_000, 10 << 20, 64 << 20] {
            let xml = profiles(&stream(SHM, message_bytes, BestEffort, 16)).xml();
            let [segment, message] =
                ["segment_size", "maxMessageSize"].map(|tag| number(&xml, tag));
            assert!(message >= message_bytes + 4 + 256, "{message_bytes}: {message}");
            let samples = if message_bytes < 20 << 20 { 16 } else { 4 };
            assert!(segment >= samples * message, "{message_bytes}: {segment}");
        }
    }

    #[test]
    fn large_udp_samples_are_sent_in_fragments() {
        let xml = Profiles { sends_whole: false, ..profiles(&prepare(SHM, 1 << 20)) }.xml();
        assert_eq!(number(&xml, "maxMessageSize"), MESSAGE_BYTES_MIN);
        assert!(number(&xml, "segment_size") >= 4 << 20);
    }

    #[test]
    fn fast_dds_3_has_extra_samples_for_a_full_history() {
        let extra = |series, system, reliability| {
            let prepare = stream(system, 72, reliability, 4);
            number(&Profiles { series, ..profiles(&prepare) }.xml(), "extra_samples")
        };
        assert_eq!(extra(Series::Three, UDP, Reliable), 8);
        assert_eq!(extra(Series::Three, SHM, Reliable), 8);
        assert_eq!(extra(Series::Three, SHARING, Reliable), 2);
        assert_eq!(extra(Series::Three, UDP, BestEffort), 2);
        assert_eq!(extra(Series::Two, UDP, Reliable), 2);
    }

    #[test]
    fn elements_are_closed_in_order() {
        for series in [Series::Two, Series::Three] {
            for system in [UDP, SHM, SHARING] {
                let prepare = stream(system, 72, Reliable, 2);
                let text = Profiles { series, ..profiles(&prepare) }.xml();
                let mut open = Vec::new();
                for tag in text.split('<').skip(1).map(|rest| rest.split_once('>').unwrap().0) {
                    match tag.strip_prefix('/') {
                        Some(name) => assert_eq!(open.pop(), Some(name)),
                        None if tag.starts_with(['?', '!']) || tag.ends_with('/') => {}
                        None => open.push(tag.split(' ').next().unwrap()),
                    }
                }
                assert!(open.is_empty());
            }
        }
    }

    /// Both series refuse a file with the other's names.
    #[test]
    fn element_names_follow_the_series() {
        let xml = |series| Profiles { series, ..profiles(&prepare(UDP, 72)) }.xml();
        let (two, three) = (xml(Series::Two), xml(Series::Three));
        for name in ["heartbeatPeriod", "nackResponseDelay", "heartbeatResponseDelay"] {
            assert!(two.contains(&format!("<{name}>")) && !three.contains(name), "{name}");
        }
        for name in ["heartbeat_period", "nack_response_delay", "heartbeat_response_delay"] {
            assert!(three.contains(&format!("<{name}>")) && !two.contains(name), "{name}");
        }
    }

    #[test]
    fn the_written_file_is_the_profile_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let mut prepare = Prepare { directory: folder.path().into(), ..prepare(UDP, 72) };
        let xml = profiles(&prepare).xml();
        write(&prepare, &xml).unwrap();
        assert_eq!(std::fs::read_to_string(prepare.file("fastdds.xml")).unwrap(), xml);
        prepare.directory.push("none");
        assert!(write(&prepare, "").is_err());
    }

    fn number(xml: &str, tag: &str) -> u64 {
        let (_, rest) = xml.split_once(&format!("<{tag}>")).unwrap();
        rest.split_once('<').unwrap().0.parse().unwrap()
    }

    const UDP: &str = "fastdds.udp";
    const SHM: &str = "fastdds.shm";
    const SHARING: &str = "fastdds.datasharing";
}
