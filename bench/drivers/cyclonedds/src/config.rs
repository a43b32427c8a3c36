//! CycloneDDS's configuration: made here, handed to the library, and left in the run's folder so
//! that anyone can repeat the run with `CYCLONEDDS_URI=file://…/cyclonedds.xml`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use myelin_bench_kit::Error;
use myelin_bench_kit::protocol::{Network, Prepare};

/// What is configured of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The DDS domain.
    pub domain: u32,
    /// Whether iceoryx carries the samples.
    pub shared_memory: bool,
    /// Participants of the run.
    pub processes: u32,
    /// Bytes of receive buffer to ask the kernel for; `None` leaves it and what goes with it at
    /// CycloneDDS's defaults.
    pub buffer_bytes: Option<u64>,
    /// The way to the other host; `None` on one host.
    pub network: Option<Network>,
}

impl Config {
    /// Of `prepare`; `tuned` asks for as much buffer as the kernel grants.
    pub fn of(prepare: &Prepare, shared_memory: bool, tuned: bool) -> Self {
        Config {
            domain: prepare.domain,
            shared_memory,
            processes: prepare.publishers.saturating_add(prepare.subscribers),
            buffer_bytes: tuned.then(|| grantable_bytes().clamp(DEFAULT_BYTES, BUFFER_BYTES_MAX)),
            network: prepare.network.clone(),
        }
    }
}

/// What is asked for and what the kernel grants: it cuts off what is above `net.core.rmem_max`
/// without a word.
pub fn buffer_note(config: &Config) -> String {
    let (asked, limit) = (config.buffer_bytes.unwrap_or(DEFAULT_BYTES), grantable_bytes());
    let granted = asked.min(limit);
    let how_to = match limit < DEFAULT_BYTES {
        true => "; that is little, sysctl -w net.core.rmem_max=4194304 allows more",
        false => "",
    };
    format!(
        "UDP receive buffer: {asked} B asked for, {granted} B granted \
         (net.core.rmem_max = {limit}){how_to}"
    )
}

fn grantable_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// As large as a datagram, also when they are sent again: the kernel counts its own overhead for
/// each against the receive buffer.
fn larger_fragments() -> &'static str {
    "
      <FragmentSize>65000B</FragmentSize>
      <MaxRexmitMessageSize>65500B</MaxRexmitMessageSize>"
}

fn larger_buffers(bytes: u64) -> String {
    format!(
        r#"
      <!-- As much as net.core.rmem_max allows … -->
      <SocketReceiveBufferSize max="{bytes}B"/>
      <!-- … and no more unacknowledged than that holds. -->
      <Watermarks>
        <WhcHigh>{bytes}B</WhcHigh>
      </Watermarks>
      <MaxQueuedRexmitBytes>{bytes}B</MaxQueuedRexmitBytes>"#
    )
}

/// Where the run's messages travel, and in how large datagrams.
fn general(config: &Config) -> String {
    const LARGEST: &str = "<MaxMessageSize>65500B</MaxMessageSize>";
    let fragments = config.buffer_bytes.map_or("", |_| larger_fragments());
    let Some(network) = &config.network else {
        return format!(
            r#"
      <!-- Loopback only: nothing of a run leaves the host, no other host disturbs it. -->
      <Interfaces>
        <NetworkInterface name="lo" multicast="false"/>
      </Interfaces>
      <AllowMulticast>false</AllowMulticast>
      <!-- Largest datagram UDP can carry: the loopback interface takes it whole. -->
      {LARGEST}{fragments}"#
        );
    };
    // The default is left where packets may be lost: a datagram is lost with any of its packets.
    let largest = config.buffer_bytes.map_or("", |_| LARGEST);
    let (family, own) = (if network.own.is_ipv4() { "udp" } else { "udp6" }, network.own);
    format!(
        r#"
      <Transport>{family}</Transport>
      <!-- This way to the other host and no other. -->
      <Interfaces>
        <NetworkInterface address="{own}" multicast="false"/>
      </Interfaces>
      <AllowMulticast>false</AllowMulticast>
      {largest}{fragments}"#
    )
}

/// The configuration file.
pub fn xml(config: &Config) -> String {
    let Config { domain, shared_memory, .. } = config;
    let general = general(config);
    let peer = match &config.network {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(network) => network.peer,
    };
    let buffers = config.buffer_bytes.map_or(String::new(), larger_buffers);
    let indices = match config.processes {
        0..=PROCESSES_DEFAULT => String::new(),
        many => format!(
            "
      <!-- Processes that start at once get into each other's way with half of an index each. -->
      <MaxAutoParticipantIndex>{}</MaxAutoParticipantIndex>",
            many.saturating_mul(2).clamp(INDICES_DEFAULT, PROCESSES_MAX) - 1
        ),
    };
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<CycloneDDS xmlns="https://cdds.io/config">
  <Domain Id="{domain}">
    <General>{general}
    </General>
    <Discovery>
      <!-- Without multicast the other side is found at the ports of the first indices of this
           domain, which is why each process has to take one. -->
      <ParticipantIndex>auto</ParticipantIndex>{indices}
      <Peers>
        <Peer Address="{peer}"/>
      </Peers>
    </Discovery>
    <Internal>
      <!-- A run is short: from process start to matched takes 10 ms with these two, and both
           leave the path of a message alone. Ask a newly found writer at once, not 10 ms later,
           what it has written (all of discovery is such writers) … -->
      <PreEmptiveAckDelay>0 ms</PreEmptiveAckDelay>
      <!-- … and do not wait at the end, up to 1 s, for acknowledgements of what has long been
           answered: 80 ms in one run of four. -->
      <WriterLingerDuration>0 s</WriterLingerDuration>{buffers}
    </Internal>
    <SharedMemory>
      <!-- Said in either case, so that the file does not depend on a default. -->
      <Enable>{shared_memory}</Enable>
      <LogLevel>warn</LogLevel>
    </SharedMemory>
  </Domain>
</CycloneDDS>
"#
    )
}

/// Writes `xml` to `path`, in the run's folder.
pub fn write(path: &Path, xml: &str) -> Result<(), Error> {
    std::fs::write(path, xml)
        .map_err(|error| Error::new(format!("writing {}: {error}", path.display())))
}

/// Its name, but for what [`Prepare::file`] adds.
pub const FILE: &str = "cyclonedds.xml";
/// What CycloneDDS asks for by itself.
const DEFAULT_BYTES: u64 = 1 << 20;
/// More than any stream of the bench has under way.
const BUFFER_BYTES_MAX: u64 = 64 << 20;
/// Participants that find each other by default (index 0 to 9) …
const INDICES_DEFAULT: u32 = 10;
/// … and as many of them as find an index even if all start at once.
const PROCESSES_DEFAULT: u32 = INDICES_DEFAULT / 2;
/// A domain has ports for so many participants.
pub const PROCESSES_MAX: u32 = 120;

#[cfg(test)]
mod tests {
    use super::*;

    fn config(domain: u32, shared_memory: bool) -> Config {
        Config { domain, shared_memory, processes: 2, buffer_bytes: None, network: None }
    }

    #[test]
    fn domain_and_shared_memory_are_said() {
        let text = xml(&config(42, true));
        assert!(text.contains("<Domain Id=\"42\">"));
        assert!(text.contains("<Enable>true</Enable>"));
        assert!(xml(&config(42, false)).contains("<Enable>false</Enable>"));
    }

    #[test]
    fn elements_are_closed_in_order() {
        let tuned = Config { processes: 40, buffer_bytes: Some(5 << 20), ..config(1, false) };
        for text in [xml(&config(1, false)), xml(&tuned)] {
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

    #[test]
    fn buffers_and_indices_are_said_where_they_differ_from_the_default() {
        let plain = xml(&config(1, false));
        for word in ["SocketReceiveBufferSize", "FragmentSize", "MaxAutoParticipantIndex"] {
            assert!(!plain.contains(word), "{word}");
        }
        let tuned = Config { processes: 11, buffer_bytes: Some(5_000_000), ..config(1, false) };
        let tuned = xml(&tuned);
        assert!(tuned.contains("<SocketReceiveBufferSize max=\"5000000B\"/>"));
        assert!(tuned.contains("<MaxAutoParticipantIndex>21<"));
    }

    #[test]
    fn across_hosts_it_is_the_one_way_to_the_one_peer() {
        let [own, peer] = ["10.9.8.1", "10.9.8.2"].map(|it| it.parse().unwrap());
        let network = Some(Network { interface: "eth0".into(), own, peer, port: 1 });
        let plain = Config { network, ..config(1, false) };
        let text = xml(&plain);
        assert!(
            text.contains("address=\"10.9.8.1\"") && text.contains("<Peer Address=\"10.9.8.2\"")
        );
        for word in ["127.0.0.1", "\"lo\"", "MaxMessageSize"] {
            assert!(!text.contains(word), "{word}");
        }
        assert!(xml(&Config { buffer_bytes: Some(1 << 20), ..plain }).contains("MaxMessageSize"));
    }

    #[test]
    fn the_note_says_what_is_asked_for_and_what_is_granted() {
        let limit = grantable_bytes();
        let note = buffer_note(&Config { buffer_bytes: Some(limit + 7), ..config(1, false) });
        assert!(note.contains(&format!("{} B asked for, {limit} B granted", limit + 7)), "{note}");
    }

    #[test]
    fn the_file_is_what_was_used() {
        let folder = tempfile::tempdir().unwrap();
        let text = xml(&config(7, true));
        let path = folder.path().join(FILE);
        write(&path, &text).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        assert!(write(&folder.path().join("none").join(FILE), "").is_err());
    }
}
