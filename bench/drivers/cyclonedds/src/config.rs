//! CycloneDDS's configuration: made here, handed to the library, and left in the run's folder so
//! that anyone can repeat the run with `CYCLONEDDS_URI=file://…/cyclonedds.xml`.

use std::path::Path;

use myelin_bench_kit::Error;

/// The configuration of one run.
pub fn xml(domain: u32, shared_memory: bool) -> String {
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<CycloneDDS xmlns="https://cdds.io/config">
  <Domain Id="{domain}">
    <General>
      <!-- Loopback only: nothing of a run leaves the host, no other host disturbs it. -->
      <Interfaces>
        <NetworkInterface name="lo" multicast="false"/>
      </Interfaces>
      <AllowMulticast>false</AllowMulticast>
      <!-- Largest datagram UDP can carry: the loopback interface takes it whole. -->
      <MaxMessageSize>65500B</MaxMessageSize>
    </General>
    <Discovery>
      <!-- Without multicast the other side is found at the ports of the first indices of this
           domain, which is why each process has to take one. -->
      <ParticipantIndex>auto</ParticipantIndex>
      <Peers>
        <Peer Address="127.0.0.1"/>
      </Peers>
    </Discovery>
    <Internal>
      <!-- A run is short: from process start to matched takes 10 ms with these two, and both
           leave the path of a message alone. Ask a newly found writer at once, not 10 ms later,
           what it has written (all of discovery is such writers) … -->
      <PreEmptiveAckDelay>0 ms</PreEmptiveAckDelay>
      <!-- … and do not wait at the end, up to 1 s, for acknowledgements of what has long been
           answered: 80 ms in one run of four. -->
      <WriterLingerDuration>0 s</WriterLingerDuration>
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

/// Writes `xml` into the run's folder.
pub fn write(directory: &Path, xml: &str) -> Result<(), Error> {
    let path = directory.join(FILE);
    std::fs::write(&path, xml)
        .map_err(|error| Error::new(format!("writing {}: {error}", path.display())))
}

const FILE: &str = "cyclonedds.xml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_and_shared_memory_are_said() {
        let text = xml(42, true);
        assert!(text.contains("<Domain Id=\"42\">"));
        assert!(text.contains("<Enable>true</Enable>"));
        assert!(xml(42, false).contains("<Enable>false</Enable>"));
    }

    #[test]
    fn elements_are_closed_in_order() {
        let text = xml(1, false);
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

    #[test]
    fn the_file_is_what_was_used() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &xml(7, true)).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join(FILE)).unwrap(), xml(7, true));
        assert!(write(&folder.path().join("none"), "").is_err());
    }
}
