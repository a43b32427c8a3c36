//! Which endpoints are on this host: the partitions that keep endpoints of this host apart, and the
//! names of topics among DDS programs.
//!
//! Two endpoints are on one host if they can meet by shared memory: if their nodes have the same
//! folder of sockets. Containers with their own `/dev/shm` are separate hosts.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use myelin_dds::TOPIC_PREFIX;
pub(super) use myelin_dds::private_topic as topic_name;

use crate::{AnnouncedQos, Error, LayoutHash};

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

    /// The kind of a publisher with these settings.
    pub(super) fn of(qos: &AnnouncedQos) -> Kind {
        match (qos.transient_local, qos.is_reliable()) {
            (0, false) => Kind::BestEffort,
            (0, true) => Kind::Reliable,
            _ => Kind::History,
        }
    }

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

    /// The partition of a writer of this host: the kinds that it is not, and all symbols except those
    /// of its host.
    pub(super) fn offered(self, kind: Kind) -> Vec<String> {
        let others = Kind::ALL.into_iter().filter(|other| *other != kind).map(Kind::letter);
        let own = self.symbols();
        let symbols =
            SYMBOLS.iter().filter(|symbol| !own.contains(symbol)).map(|it| char::from(*it));
        vec![others.chain(symbols).collect()]
    }

    /// The partitions that a reader of this host requests: a pattern for each symbol of its host. A
    /// writer of this host has none of them, and a writer of another host has at least one.
    pub(super) fn wanted(self, kinds: &[Kind]) -> Vec<String> {
        let is_excluded = |kind: &Kind| !kinds.contains(kind);
        let excluded = Kind::ALL.into_iter().filter(is_excluded);
        let excluded: String = excluded.flat_map(|kind| ['*', kind.letter()]).collect();
        self.symbols().map(|symbol| format!("{excluded}*{}*", char::from(symbol))).into()
    }

    /// The symbols of a host: by its lowest 32 bits, one of the sets of this size, so that none
    /// contains another.
    fn symbols(self) -> [u8; SET_SIZE] {
        let mut rest = self.0 & u64::from(u32::MAX);
        let mut after = SYMBOLS.len();
        std::array::from_fn(|at| {
            // The combinatorial number system: the largest element whose smaller sets all come before.
            let size = SET_SIZE - at;
            let largest = (0..after).rev().find(|element| sets(*element, size) <= rest);
            after = largest.expect("there are no smaller sets of the elements 0 to size - 2");
            rest -= sets(after, size);
            SYMBOLS[after]
        })
    }
}

/// How many sets of so many elements there are among `count`.
fn sets(count: usize, size: usize) -> u64 {
    // Each step divides exactly.
    (0..size).fold(1, |sets, at| sets * count.saturating_sub(at) as u64 / (at as u64 + 1))
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

/// Sets of so many of the symbols stand for hosts. There are 2³² of them, so two hosts in 2³² have the
/// same set and never meet.
const SET_SIZE: usize = 7;
/// Printable, without the letters of the kinds and what a pattern may give a meaning to.
const SYMBOLS: &[u8; 84] =
    b"!#$%'()+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`acdefgijklmnopqstuvwxyz{|}~";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn meet(writer: Host, reader: Host, kinds: &[Kind]) -> bool {
        let wanted = reader.wanted(kinds);
        let offered = writer.offered(Kind::Reliable);
        offered.iter().any(|name| wanted.iter().any(|pattern| matches(pattern, name)))
    }

    /// As DDS: `*` stands for any characters.
    fn matches(pattern: &str, name: &str) -> bool {
        match pattern.split_at_checked(1) {
            None => name.is_empty(),
            Some(("*", rest)) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
            Some((first, rest)) => name.strip_prefix(first).is_some_and(|it| matches(rest, it)),
        }
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
        for bit in 0..32 {
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

    #[test]
    fn hosts_have_distinct_sets_of_symbols() {
        assert!(sets(SYMBOLS.len(), SET_SIZE) >= 1 << 32);
        let hosts = (0..10_000).chain((0..10_000).map(|at| u64::from(u32::MAX) - at));
        let all: BTreeSet<_> = hosts.map(|host| Host(host).symbols()).collect();
        assert_eq!(all.len(), 20_000);
        for set in all {
            assert_eq!(BTreeSet::from(set).len(), SET_SIZE, "{set:?}");
        }
        let symbols: BTreeSet<_> = SYMBOLS.iter().collect();
        assert_eq!(symbols.len(), SYMBOLS.len());
        let taken = Kind::ALL.map(|kind| kind.letter() as u8);
        assert!(taken.iter().chain(b"*?").all(|reserved| !symbols.contains(reserved)));
    }

    #[test]
    fn a_reader_meets_the_kinds_that_it_requests() {
        let [host, other] = [Host(1), Host(2)];
        for kinds in [&Kind::ALL[..], &Kind::ALL[..1], &Kind::ALL[1..], &Kind::ALL[..2]] {
            for kind in Kind::ALL {
                let [offered] = &other.offered(kind)[..] else { panic!("one") };
                let is_met = host.wanted(kinds).iter().any(|pattern| matches(pattern, offered));
                assert_eq!(is_met, kinds.contains(&kind), "{kinds:?} {kind:?}");
            }
        }
    }

    /// Nodes of 0.1 on other hosts request these names.
    #[test]
    fn the_partitions_of_0_1_stay() {
        let host = Host(0x8000_0001);
        let [offered, wanted] = [host.offered(Kind::History), host.wanted(&[Kind::BestEffort])];
        assert_eq!(
            offered,
            ["br!#$%'()+,-./0123456789:;<=>@ABCDEFGIJLNOPQRSTUVWXYZ^_`acegijklmnopqtuwxyz{|}~"]
        );
        assert_eq!(
            wanted,
            ["*r*h*v*", "*r*h*s*", "*r*h*f*", "*r*h*d*", "*r*h*M*", "*r*h*K*", "*r*h*H*"]
        );
        assert_eq!(host.wanted(&Kind::ALL)[0], "*v*");
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
