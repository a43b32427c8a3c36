//! Fast DDS's configuration: profiles made here, handed to the library, and left in the run's
//! folder so that anyone can repeat the run with `FASTRTPS_DEFAULT_PROFILES_FILE=…/fastdds.xml`, from
//! Fast DDS 3 on with `FASTDDS_DEFAULT_PROFILES_FILE`.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use myelin_bench_kit::Error;
use myelin_bench_kit::protocol::Network;

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

/// What samples travel over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// UDP, on one host over the loopback interface.
    Udp,
    /// Fast DDS's shared memory transport.
    SharedMemory,
    /// The publisher's memory itself, which subscribers have mapped; the shared memory transport
    /// carries discovery and acknowledgements.
    DataSharing,
}

/// What is kept of a topic, and what becomes of a sample for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Nothing overtakes anything: one message is in flight.
    RoundTrip,
    /// The oldest sample goes.
    BestEffort {
        /// In samples.
        depth: u32,
    },
    /// Publishing waits.
    Reliable {
        /// In samples.
        depth: u32,
    },
}

impl History {
    fn depth(self) -> u64 {
        match self {
            History::RoundTrip => ROUND_TRIP_DEPTH,
            History::BestEffort { depth } | History::Reliable { depth } => depth.max(1).into(),
        }
    }

    fn reliability(self) -> &'static str {
        if matches!(self, History::BestEffort { .. }) { "BEST_EFFORT" } else { "RELIABLE" }
    }

    fn kind(self) -> &'static str {
        if matches!(self, History::Reliable { .. }) { "KEEP_ALL" } else { "KEEP_LAST" }
    }
}

/// What the profiles of a run follow from. On one host both roles of a run have the same.
#[derive(Clone, Debug)]
pub struct Profiles {
    /// Of the library that reads them.
    pub series: Series,
    /// Whether shared memory carries messages of more than 64 KiB.
    pub sends_whole: bool,
    /// What samples travel over.
    pub route: Route,
    /// What is kept.
    pub history: History,
    /// Of every sample.
    pub message_bytes: u64,
    /// Of each topic, each a process.
    pub publishers: u32,
    /// Of each topic, each a process.
    pub subscribers: u32,
    /// Between ping and pong.
    pub topics: u32,
    /// The way to the other host; `None` on one host.
    pub network: Option<Network>,
}

impl Profiles {
    /// What the histories of all writers of one end can hold, in bytes.
    pub fn history_bytes(&self) -> u64 {
        let samples = self.history.depth() + self.extra_samples();
        samples.saturating_mul(self.serialised_bytes()).saturating_mul(self.topics.into())
    }

    /// What is kept beyond the history. Fast DDS 3 takes up to six samples more for a full history that
    /// publishers wait for, and refuses to write without them.
    fn extra_samples(&self) -> u64 {
        let is_waited_for = matches!(self.history, History::Reliable { .. });
        match self.series == Series::Three && is_waited_for && self.route != Route::DataSharing {
            true => EXTRA_SAMPLES + 6,
            false => EXTRA_SAMPLES,
        }
    }

    /// The whole file.
    pub fn xml(&self) -> String {
        let (writer, reader) = (self.writer(), self.reader());
        let (transport, peers) = match self.route {
            Route::Udp => (self.udp(), self.peers()),
            Route::SharedMemory | Route::DataSharing => (self.shared_memory(), String::new()),
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
        match &self.network {
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
        let peers = self.publishers + self.subscribers + SPARE_PEERS;
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
        let samples = self.history.depth().saturating_mul(self.topics.into());
        // Each subscriber has a port of its own; acknowledgements come to it, too.
        let queue = samples.saturating_mul(2).clamp(PORT_QUEUE_MIN, PORT_QUEUE_MAX);
        // For discovery and acknowledgements.
        let base = SEGMENT_BYTES_MIN + SEGMENT_BYTES_OF_TOPIC * u64::from(self.topics);
        let (segment, message) = match self.route {
            // A sample goes whole, and a history of them has room.
            Route::SharedMemory => {
                let message = self.serialised_bytes() + RTPS_BYTES_MAX;
                let few = SPARE_SAMPLES * message;
                let history = match self.history {
                    // One message is in flight, and segments are slow to make.
                    History::RoundTrip => few,
                    _ => (samples + SPARE_SAMPLES).saturating_mul(message),
                };
                let whole = if self.sends_whole { message } else { 0 };
                (base + history.min(few.max(SEGMENT_BYTES_MAX)), whole.max(MESSAGE_BYTES_MIN))
            }
            _ => (base, MESSAGE_BYTES_MIN),
        };
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
        let depth = self.history.depth();
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
        let is_shared = self.route == Route::DataSharing;
        let samples = match self.history {
            History::Reliable { depth } => {
                // By data sharing a reader whose history is full spins; so it never is: publishers
                // wait for what has not been taken.
                let spare = if is_shared { EXTRA_SAMPLES } else { 0 };
                (u64::from(depth.max(1)) + spare) * u64::from(self.publishers)
            }
            _ => self.history.depth(),
        };
        // Samples that are shared need no memory of the reader's.
        let allocated = if is_shared { 1 } else { samples };
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
        let (kind, depth) = (self.history.kind(), self.history.depth());
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
        let reliability = self.history.reliability();
        let sharing = if self.route == Route::DataSharing { "ON" } else { "OFF" };
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
        let nanoseconds = match self.history {
            History::Reliable { depth } => 1_000_000 + u64::from(depth) * self.message_bytes,
            _ => 20_000_000 + self.message_bytes,
        };
        (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
    }

    /// A sample with its encapsulation.
    fn serialised_bytes(&self) -> u64 {
        self.message_bytes + 4
    }
}

/// A limit of the kernel on socket buffers, in bytes; where it cannot be read, there is none.
fn kernel_limit(name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX)
}

/// Writes `xml` to `path`, in the run's folder.
pub fn write(path: &Path, xml: &str) -> Result<(), Error> {
    std::fs::write(path, xml)
        .map_err(|error| Error::new(format!("writing {}: {error}", path.display())))
}

/// Its name, but for what [`Prepare::file`](myelin_bench_kit::protocol::Prepare::file) adds.
pub const FILE: &str = "fastdds.xml";
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

    fn profiles(route: Route, history: History, message_bytes: u64) -> Profiles {
        Profiles {
            series: Series::Two,
            sends_whole: true,
            route,
            history,
            message_bytes,
            publishers: 1,
            subscribers: 1,
            topics: 1,
            network: None,
        }
    }

    #[test]
    fn each_route_has_its_own_transport_and_no_other() {
        let xml = |route| profiles(route, History::RoundTrip, 72).xml();
        let udp = xml(Route::Udp);
        assert!(udp.contains("<type>UDPv4</type>") && !udp.contains("<type>SHM</type>"));
        assert!(udp.contains("127.0.0.1") && udp.contains("<kind>OFF</kind>"));
        let shared = xml(Route::SharedMemory);
        assert!(shared.contains("<type>SHM</type>") && !shared.contains("UDPv4"));
        assert!(shared.contains("<kind>OFF</kind>"));
        let sharing = xml(Route::DataSharing);
        assert!(sharing.contains("<type>SHM</type>") && sharing.contains("<kind>ON</kind>"));
    }

    #[test]
    fn across_hosts_the_config_has_one_interface_and_one_peer() {
        let [own, peer] = ["10.9.8.1", "10.9.8.2"].map(|it| it.parse().unwrap());
        let network = Some(Network { interface: "eth0".into(), own, peer, port: 1 });
        let xml = Profiles { network, ..profiles(Route::Udp, History::RoundTrip, 72) }.xml();
        let (before, peers) = xml.split_once("<initialPeersList>").unwrap();
        assert!(before.contains("10.9.8.1") && !before.contains("10.9.8.2"));
        assert!(peers.contains("10.9.8.2") && !xml.contains("127.0.0.1"));
    }

    #[test]
    fn history_settings_follow_the_reliability() {
        let xml = |history| profiles(Route::SharedMemory, history, 72).xml();
        let reliable = xml(History::Reliable { depth: 3 });
        assert!(reliable.contains("<kind>KEEP_ALL</kind>") && reliable.contains("RELIABLE"));
        assert!(reliable.contains("<max_samples>3</max_samples>"));
        let best_effort = xml(History::BestEffort { depth: 5 });
        assert!(best_effort.contains("<kind>BEST_EFFORT</kind>"));
        assert!(best_effort.contains("<depth>5</depth>") && !best_effort.contains("KEEP_ALL"));
    }

    #[test]
    fn the_shm_segment_holds_a_history_of_whole_samples() {
        let history = History::BestEffort { depth: 16 };
        for message_bytes in [8, 70_000, 10 << 20, 64 << 20] {
            let xml = profiles(Route::SharedMemory, history, message_bytes).xml();
            let [segment, message] =
                ["segment_size", "maxMessageSize"].map(|tag| number(&xml, tag));
            assert!(message >= message_bytes + 4 + 256, "{message_bytes}: {message}");
            let samples = if message_bytes < 20 << 20 { 16 } else { 4 };
            assert!(segment >= samples * message, "{message_bytes}: {segment}");
        }
    }

    #[test]
    fn large_udp_samples_are_sent_in_fragments() {
        let profiles = profiles(Route::SharedMemory, History::RoundTrip, 1 << 20);
        let xml = Profiles { sends_whole: false, ..profiles }.xml();
        assert_eq!(number(&xml, "maxMessageSize"), MESSAGE_BYTES_MIN);
        assert!(number(&xml, "segment_size") >= 4 << 20);
    }

    #[test]
    fn fast_dds_3_has_extra_samples_for_a_full_history() {
        let extra = |series, route, history| {
            number(&Profiles { series, ..profiles(route, history, 72) }.xml(), "extra_samples")
        };
        let (reliable, best_effort) =
            (History::Reliable { depth: 4 }, History::BestEffort { depth: 4 });
        assert_eq!(extra(Series::Three, Route::Udp, reliable), 8);
        assert_eq!(extra(Series::Three, Route::SharedMemory, reliable), 8);
        assert_eq!(extra(Series::Three, Route::DataSharing, reliable), 2);
        assert_eq!(extra(Series::Three, Route::Udp, best_effort), 2);
        assert_eq!(extra(Series::Two, Route::Udp, reliable), 2);
    }

    #[test]
    fn elements_are_closed_in_order() {
        for series in [Series::Two, Series::Three] {
            for route in [Route::Udp, Route::SharedMemory, Route::DataSharing] {
                let history = History::Reliable { depth: 2 };
                let text = Profiles { series, ..profiles(route, history, 72) }.xml();
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
        let xml = |series| {
            let profiles = profiles(Route::Udp, History::RoundTrip, 72);
            Profiles { series, ..profiles }.xml()
        };
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
        let xml = profiles(Route::Udp, History::RoundTrip, 72).xml();
        let path = folder.path().join(FILE);
        write(&path, &xml).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), xml);
        assert!(write(&folder.path().join("none").join(FILE), "").is_err());
    }

    fn number(xml: &str, tag: &str) -> u64 {
        let (_, rest) = xml.split_once(&format!("<{tag}>")).unwrap();
        rest.split_once('<').unwrap().0.parse().unwrap()
    }
}
