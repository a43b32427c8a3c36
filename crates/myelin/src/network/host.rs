//! Which endpoints are on this host: the partitions that keep endpoints of this host apart, and the
//! names of topics among DDS programs.
//!
//! Two endpoints are on one host if they can meet by shared memory: if their nodes have the same
//! folder of sockets. Containers with their own `/dev/shm` are separate hosts.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use myelin_dds::TOPIC_PREFIX;
pub(super) use myelin_dds::private_topic as topic_name;

use crate::{Error, LayoutHash};

/// The kind of a publisher for other hosts. Partitions name it, so that a subscriber can request
/// each kind with other settings: DDS does not match a reliable reader with a best-effort writer,
/// but Myelin does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    BestEffort,
    Reliable,
    /// With history for late subscribers.
    History,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::BestEffort, Kind::Reliable, Kind::History];

    fn letter(self) -> char {
        match self {
            Kind::BestEffort => 'b',
            Kind::Reliable => 'r',
            Kind::History => 'h',
        }
    }
}

/// Names the host: the machine's boot and the folder of sockets, hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host(pub(super) u64);

impl Host {
    /// The host of nodes whose sockets are in `folder`: a user's or group's folder, and in it the
    /// domain's. These two can be removed and made again while nodes live, so their names count and
    /// not their inodes.
    pub(super) fn of(folder: &Path) -> Result<Host, Error> {
        let failed = |path: &Path, error| {
            let reason = format!("{}: {error}; it names the host in the network", path.display());
            Error::Host { doing: "asking which host this is", reason }
        };
        let boot_id = Path::new("/proc/sys/kernel/random/boot_id");
        let boot = std::fs::read(boot_id).map_err(|error| failed(boot_id, error))?;
        let base = folder.ancestors().nth(2).unwrap_or(folder);
        let names = folder.strip_prefix(base).unwrap_or(folder).as_os_str().as_encoded_bytes();
        let base = std::fs::metadata(base).map_err(|error| failed(base, error))?;
        let place = [base.dev().to_le_bytes(), base.ino().to_le_bytes()].concat();
        Ok(Host(LayoutHash::of_bytes(&[boot.trim_ascii(), &place, names].concat())))
    }

    /// The partitions of a writer of this host: for each bit of the host one partition that names
    /// the bit's value. A reader is matched if it requests any of them.
    pub(super) fn offered(self, kind: Kind) -> Vec<String> {
        (0..BITS).map(|bit| partition(bit, self.bit(bit), kind)).collect()
    }

    /// The partitions that a reader of this host requests: for each bit the one of the opposite
    /// value. So it meets the writers of hosts that differ in any bit, and none of its own.
    pub(super) fn wanted(self, kinds: &[Kind]) -> Vec<String> {
        let of = |kind: Kind| (0..BITS).map(move |bit| partition(bit, !self.bit(bit), kind));
        kinds.iter().flat_map(|kind| of(*kind)).collect()
    }

    fn bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }
}

fn partition(bit: u32, value: bool, kind: Kind) -> String {
    format!("myelin{bit}{}{}", if value { '+' } else { '-' }, kind.letter())
}

/// The topic that has this name among DDS programs; `None` if it is not one of ours.
pub(super) fn name_of(dds_topic: &str) -> Option<String> {
    let mut parts = dds_topic.strip_prefix(TOPIC_PREFIX)?.split('_');
    let mut name = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        name.push(u8::from_str_radix(digits, 16).ok()?);
        name.extend(rest.as_bytes());
    }
    String::from_utf8(name).ok()
}

/// Bits of a host in its partitions. Two hosts in 2³² agree in all and never meet.
const BITS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn meet(writer: Host, reader: Host, kinds: &[Kind]) -> bool {
        let wanted = reader.wanted(kinds);
        writer.offered(Kind::Reliable).iter().any(|partition| wanted.contains(partition))
    }

    #[test]
    fn a_new_socket_folder_is_on_the_same_host() {
        let base = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let folder = base.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let host = Host::of(&folder).unwrap();
            std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
            host
        };
        let host = of("myelin-0/0");
        std::fs::write(base.path().join("takes the inode"), "").unwrap();
        assert_eq!(of("myelin-0/0"), host);
        assert_ne!(of("myelin-0/1"), host);
        assert_ne!(of("myelin-1/0"), host);
    }

    #[test]
    fn only_different_hosts_match_over_the_network() {
        let host = Host(0x1234_5678_9abc_def0);
        assert!(!meet(host, host, &Kind::ALL));
        for bit in 0..BITS {
            let other = Host(host.0 ^ 1 << bit);
            assert!(meet(host, other, &Kind::ALL) && meet(other, host, &[Kind::Reliable]));
            assert!(!meet(host, other, &[Kind::BestEffort, Kind::History]), "another kind");
        }
    }

    #[test]
    fn a_host_is_its_folder() {
        let bases = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, other] = bases.each_ref().map(|base| base.path().join("myelin-0/0"));
        assert_eq!(Host::of(&one).unwrap(), Host::of(&one).unwrap());
        assert_ne!(Host::of(&one).unwrap(), Host::of(&other).unwrap());
        let error = Host::of(&bases[0].path().join("none/myelin-0/0")).unwrap_err().to_string();
        assert!(error.contains("none: No such file"), "{error}");
    }

    /// Nodes of 0.1 on other hosts request these names.
    #[test]
    fn the_partitions_of_0_1_stay() {
        let host = Host(0x8000_0001);
        let [offered, wanted] = [host.offered(Kind::History), host.wanted(&[Kind::BestEffort])];
        assert_eq!((offered.len(), wanted.len()), (32, 32));
        assert_eq!(
            [&offered[0], &offered[1], &offered[31]],
            ["myelin0+h", "myelin1-h", "myelin31+h"]
        );
        assert_eq!([&wanted[0], &wanted[1], &wanted[31]], ["myelin0-b", "myelin1+b", "myelin31-b"]);
        assert_eq!(host.offered(Kind::Reliable)[0], "myelin0+r");
    }

    #[test]
    fn topics_have_distinct_network_names() {
        assert_eq!(topic_name("joints/left"), "myelin/joints/left");
        assert_eq!(topic_name("a_b-ü"), "myelin/a_5fb_2d_c3_bc");
        assert_ne!(topic_name("a_2d"), topic_name("a-"));
        for name in ["joints/left", "a_b-ü", "_", "a_2d", "\u{1F916}x"] {
            assert_eq!(name_of(&topic_name(name)).as_deref(), Some(name));
        }
        for other in ["rt/chatter", "myelin/a_", "myelin/a_f", "myelin/a_zz", "myelin/a_ff"] {
            assert_eq!(name_of(other), None, "{other}");
        }
    }
}
