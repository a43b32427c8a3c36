//! CycloneDDS's configuration. A configuration of the user (`CYCLONEDDS_URI`) replaces it entirely.

use std::fmt::Write;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::participant::Binding;
use crate::security::Security;

/// The settings that a node chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The interface that leads to the other hosts: its name, or its address.
    pub interface: Option<String>,
    /// The hosts to look for; empty for multicast.
    pub peers: Vec<String>,
    /// Whether to use multicast besides the peers.
    pub multicast: bool,
    /// Others consider this process dead when they have received nothing from it for so long.
    pub lease: Duration,
    /// The largest datagram that is sent, in bytes without the headers of IP and UDP: one of
    /// [`DATAGRAMS`]. `None`: small ones on a wireless interface, or else the largest.
    pub datagram_bytes: Option<u32>,
    /// The process's user data in DDS.
    pub user_data: String,
    /// Who the process is, if it talks to those alone whom the same authority knows.
    pub security: Option<Security>,
}

impl Default for Config {
    fn default() -> Self {
        let (interface, peers, user_data) = (None, Vec::new(), String::new());
        let (multicast, datagram_bytes, security) = (false, None, None);
        Config { interface, peers, multicast, lease: LEASE, datagram_bytes, user_data, security }
    }
}

impl Config {
    /// The configuration of `domain`, with receive buffers of so many bytes. CycloneDDS may use any
    /// domain number for it: on the network it has the number `domain`.
    pub fn xml(&self, domain: u32, buffer_bytes: u64) -> String {
        self.xml_on(None, domain, buffer_bytes)
    }

    /// Like [`xml`](Config::xml), on this interface instead of `interface`.
    pub(crate) fn xml_on(
        &self,
        binding: Option<Binding>,
        domain: u32,
        buffer_bytes: u64,
    ) -> String {
        let (general, discovery) = (self.general(binding), self.discovery(domain));
        let threads = threads();
        let datagram = self.datagram_bytes.unwrap_or(match binding {
            Some(binding) if binding.is_wireless() => DATAGRAM_BYTES_WIRELESS,
            _ => *DATAGRAMS.end(),
        });
        // Encryption and signatures come on top.
        let message = if self.security.is_some() { datagram - PROTECTION_BYTES } else { datagram };
        let (fragment, heartbeat_ms) = (message - HEADERS_BYTES, HEARTBEAT.as_millis());
        format!(
            r#"<CycloneDDS xmlns="https://cdds.io/config">
  <Domain Id="any">
    <General>{general}
      <!-- The largest datagrams, also for samples that are sent again: the kernel counts its
           overhead for each datagram against the receive buffer, and each costs system calls. But
           where packets are lost, a datagram of many packets is lost with any of them. -->
      <MaxMessageSize>{message}B</MaxMessageSize>
      <FragmentSize>{fragment}B</FragmentSize>
      <MaxRexmitMessageSize>{message}B</MaxRexmitMessageSize>
    </General>
    <Discovery>{discovery}
    </Discovery>
    <!-- Blocks of 1 MiB, the default, are returned to the kernel and faulted in again, and the allocator
         keeps up to three of them for each thread that receives. -->
    <Sizing><ReceiveBufferSize>{RECEIVE_BLOCK_BYTES}B</ReceiveBufferSize></Sizing>
    <!-- A process that locks its memory keeps whole stacks in memory, 8 MB each by default. Two
         more threads receive; CycloneDDS 0.10 knows their names but takes no settings for them. -->
    <Threads>{threads}
    </Threads>
    <Internal>
      <!-- As much as the kernel grants. -->
      <SocketReceiveBufferSize max="{buffer_bytes}B"/>
      <MaxQueuedRexmitBytes>{buffer_bytes}B</MaxQueuedRexmitBytes>
      <!-- A publisher limits its samples under way and requests acknowledgements itself … -->
      <Watermarks>
        <WhcHigh>2000000000B</WhcHigh>
        <WhcHighInit>2000000000B</WhcHighInit>
        <WhcAdaptive>false</WhcAdaptive>
      </Watermarks>
      <!-- … so this is only for lost requests and lost last samples, also after a cut. -->
      <HeartbeatInterval min="1 ms" minsched="1 ms" max="1 s">{heartbeat_ms} ms</HeartbeatInterval>
      <AckDelay>1 ms</AckDelay>
      <!-- Discovery comes in bursts, of all endpoints of a process. What does not fit is sent again. -->
      <DeliveryQueueMaxSamples>4096</DeliveryQueueMaxSamples>
      <!-- Ask a newly found writer at once what it has; discovery consists of such writers. -->
      <PreEmptiveAckDelay>0 ms</PreEmptiveAckDelay>
      <!-- After a cut, all kept samples must be requested, a few at a time. -->
      <NackDelay>10 ms</NackDelay>
      <!-- A dropped publisher waits itself, and only for unacknowledged samples. -->
      <WriterLingerDuration>0 s</WriterLingerDuration>
    </Internal>
  </Domain>
</CycloneDDS>
"#
        )
    }

    /// Whether to use version 6 of the Internet Protocol: if a named address does.
    pub fn is_ipv6(&self) -> bool {
        let named = self.peers.iter().chain(&self.interface);
        named.map(|name| name.parse::<IpAddr>()).any(|address| address.is_ok_and(|it| it.is_ipv6()))
    }

    /// Whether the announcements alone keep up the process's lease: by multicast, few of them reach
    /// all, and CycloneDDS's other messages for it would be acknowledged by all.
    pub(crate) fn announces_only(&self) -> bool {
        !self.is_by_peers_alone()
    }

    fn is_by_peers_alone(&self) -> bool {
        !self.peers.is_empty() && !self.multicast
    }

    fn general(&self, binding: Option<Binding>) -> String {
        let mut text = String::new();
        if self.is_ipv6() {
            text.push_str("\n      <Transport>udp6</Transport>");
        }
        // Multicast is off for an interface without it, such as the loopback.
        let multicast = if self.is_by_peers_alone() { r#" multicast="false""# } else { "" };
        let address = binding.map(|binding| binding.address.to_string());
        if let Some(interface) = address.as_ref().or(self.interface.as_ref()) {
            let kind = match interface.parse::<IpAddr>() {
                Ok(_) => "address",
                Err(_) => "name",
            };
            let interface = escape(interface);
            let _ = write!(
                text,
                r#"
      <Interfaces><NetworkInterface {kind}="{interface}"{multicast}/></Interfaces>"#
            );
        }
        if self.is_by_peers_alone() {
            text.push_str("\n      <AllowMulticast>false</AllowMulticast>");
        }
        text
    }

    fn discovery(&self, domain: u32) -> String {
        let lease_ms = self.lease.as_millis().max(1);
        // Any message of a process renews its lease; these announcements are for a process that
        // sends nothing else.
        let renewals = if self.announces_only() { RENEWALS } else { RENEWALS_BY_PEERS };
        let mut text = format!(
            "
      <ExternalDomainId>{domain}</ExternalDomainId>
      <LeaseDuration>{lease_ms} ms</LeaseDuration>
      <SPDPInterval>{} ms</SPDPInterval>",
            (lease_ms / renewals).max(1)
        );
        if self.peers.is_empty() {
            return text;
        }
        let _ = write!(
            text,
            "
      <!-- Without multicast, processes are found at the ports of the first indices of the domain,
           so each process must take an index. -->
      <ParticipantIndex>auto</ParticipantIndex>
      <MaxAutoParticipantIndex>{INDEX_MAX}</MaxAutoParticipantIndex>
      <Peers>"
        );
        for peer in &self.peers {
            let _ = write!(text, "<Peer Address=\"{}\"/>", escape(peer));
        }
        text.push_str("</Peers>");
        text
    }
}

/// The threads have the CPUs and policy of the thread that opens the domain.
fn threads() -> String {
    let thread = |name| {
        format!(
            "
      <Thread name=\"{name}\"><StackSize>{STACK_BYTES}B</StackSize></Thread>"
        )
    };
    THREADS.map(thread).concat()
}

/// The receive buffer to request for a socket, in bytes: as much as the kernel grants, within
/// bounds. If the kernel grants less than CycloneDDS's own 1 MiB, the socket gets what is granted.
pub(crate) fn buffer_bytes_max() -> u64 {
    socket_buffer_bytes().clamp(1 << 20, BUFFER_BYTES_MAX)
}

/// The largest receive buffer that the kernel grants to a socket (`net.core.rmem_max`), in bytes.
pub fn socket_buffer_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Escapes text for an attribute's value.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;").replace('$', "$$")
}

/// The time after which a silent process counts as dead.
pub const LEASE: Duration = Duration::from_secs(1);
/// How long after a sample the first heartbeat asks whether it has come.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(2);
/// The same while endpoints are coming.
pub(crate) const HEARTBEAT_DISCOVERING: Duration = Duration::from_millis(20);
/// How many bytes a datagram may have, without the headers of IP and UDP: fragments of DDS have more
/// than 1,024 bytes, and UDP ends at 65,507.
pub const DATAGRAMS: RangeInclusive<u32> = 1_350..=65_500;
/// With all headers it fits into a packet of 1,500 bytes, also in most tunnels.
const DATAGRAM_BYTES_WIRELESS: u32 = 1_400;
/// What encryption and signatures add to a message.
const PROTECTION_BYTES: u32 = 200;
/// The part of a message that is not the fragment.
const HEADERS_BYTES: u32 = 120;
/// How many announcements there are in the time of a lease.
const RENEWALS: u128 = 5;
/// Each of these is sent to all ports up to [`INDEX_MAX`] of each peer. There are reliable messages
/// besides, in each lease one to each process that is there.
const RENEWALS_BY_PEERS: u128 = 2;
/// More than is under way on any link of a robot.
const BUFFER_BYTES_MAX: u64 = 64 << 20;
/// A few of the largest datagrams.
const RECEIVE_BLOCK_BYTES: u32 = 256 << 10;
/// The threads that can be configured.
const THREADS: [&str; 5] = ["recv", "dq.builtins", "dq.user", "tev", "gc"];
/// They use some tens of kilobytes of it.
const STACK_BYTES: u32 = 512 << 10;
/// The number of processes of a host that are found without multicast, minus one. Each announcement
/// goes to so many ports of each peer.
const INDEX_MAX: u32 = 31;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(text: &str) -> bool {
        let mut open = Vec::new();
        let without_comments = text.split("<!--").enumerate().map(|(at, part)| match at {
            0 => part,
            _ => part.split_once("-->").unwrap().1,
        });
        let text: String = without_comments.collect();
        for tag in text.split('<').skip(1).map(|rest| rest.split_once('>').unwrap().0) {
            match tag.strip_prefix('/') {
                Some(name) if open.pop() != Some(name) => return false,
                None if !tag.ends_with('/') => open.push(tag.split(' ').next().unwrap()),
                _ => {}
            }
        }
        open.is_empty()
    }

    #[test]
    fn the_config_has_the_choices_and_is_well_formed() {
        let text = Config::default().xml(0, 4_711);
        assert!(text.contains(r#"SocketReceiveBufferSize max="4711B""#));
        assert!(text.contains("<ReceiveBufferSize>262144B</ReceiveBufferSize>"));
        let plain = Config::default().xml(7, 1 << 20);
        assert!(plain.contains("<ExternalDomainId>7<") && is_closed(&plain));
        assert!(plain.contains("<LeaseDuration>1000 ms<"));
        assert!(
            plain.contains("<SPDPInterval>200 ms<") && plain.contains(">2 ms</HeartbeatInterval>")
        );
        assert_eq!(plain.matches("<StackSize>524288B</StackSize>").count(), THREADS.len());
        for word in ["<Interfaces>", "AllowMulticast", "ParticipantIndex", "Peer"] {
            assert!(!plain.contains(word), "{word}");
        }
        let config = Config {
            interface: Some("10.0.0.1".into()),
            peers: vec!["10.0.0.2".into(), "a<\"&b".into()],
            lease: Duration::from_millis(2_500),
            ..Config::default()
        };
        let text = config.xml(0, 1 << 20);
        assert!(text.contains(r#"NetworkInterface address="10.0.0.1" multicast="false""#));
        assert!(text.contains(r#"<Peer Address="10.0.0.2"/><Peer Address="a&lt;&quot;&amp;b"/>"#));
        assert!(is_closed(&text), "{text}");
        assert!(
            text.contains("<LeaseDuration>2500 ms<") && text.contains(">1250 ms</SPDPInterval>")
        );
        let binding = Binding { index: 0, address: [10, 0, 0, 9].into() };
        let chosen = config.xml_on(Some(binding), 0, 1 << 20);
        assert!(chosen.contains(r#"address="10.0.0.9""#) && !chosen.contains("10.0.0.1\""));
        let named = Config { interface: Some("eth0".into()), ..Config::default() }.xml(0, 1 << 20);
        assert!(named.contains(r#"NetworkInterface name="eth0"/>"#) && !named.contains("udp6"));
        let both = Config { multicast: true, ..config }.xml(0, 1 << 20);
        assert!(both.contains("<Peers>") && both.contains("ParticipantIndex"));
        assert!(!both.contains("AllowMulticast") && !both.contains("multicast="));
        assert!(both.contains("<SPDPInterval>500 ms<") && both.contains("<LeaseDuration>2500 ms<"));
        let peers = vec!["robot".into(), "fd00::2".into()];
        let six = Config { peers, ..Config::default() };
        assert!(six.xml(0, 1 << 20).contains("<Transport>udp6</Transport>"));
    }

    #[test]
    fn datagrams_have_room_for_headers() {
        let sizes = |config: Config| {
            let text = config.xml(0, 1 << 20);
            ["MaxMessageSize", "MaxRexmitMessageSize", "FragmentSize"].map(|name| {
                let (_, rest) = text.split_once(&format!("<{name}>")).unwrap();
                rest.split_once("B<").unwrap().0.parse::<u32>().unwrap()
            })
        };
        assert_eq!(sizes(Config::default()), [65_500, 65_500, 65_380]);
        let small = Config { datagram_bytes: Some(*DATAGRAMS.start()), ..Config::default() };
        assert_eq!(sizes(small), [1_350, 1_350, 1_230]);
        const { assert!(*DATAGRAMS.start() - PROTECTION_BYTES - HEADERS_BYTES > 1_024) };
    }
}
