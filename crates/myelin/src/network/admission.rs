//! Participants that DDS Security keeps apart. DDS has no message for a refusal, so each side announces who
//! it is and which certificates it has refused, in the user data of its participant, and says by itself whom
//! it does not talk to.
//!
//! ```text
//! enclave=/robot/camera;               as ROS 2 has it
//! myelin_authority=0123456789abcdef;   a hash of the certificate of its authority
//! myelin_until=1790000000;             when its certificate runs out, in s since 1970
//! myelin_refused=…;                    the newest refusals, in base64
//! ```
//!
//! These texts are not encrypted, and come from a participant that has proved nothing. All that follows from
//! them is a warning.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use myelin_dds::{Guid, Remote, Security};

use super::lane;
use super::user_data::{from_base64, to_base64};
use crate::LayoutHash;

/// The participants of other processes that are not admitted.
pub(super) struct Admission {
    /// `None`: this side has no enclave.
    own: Option<Enclave>,
    /// Those that are admitted: who they are, and when their certificate runs out.
    admitted: BTreeMap<Guid, (String, u64)>,
    /// Since when they are known and not admitted, and whether that has been reported.
    apart: BTreeMap<Guid, (Instant, bool)>,
    reports: u32,
}

/// An enclave, as it is announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Enclave {
    name: String,
    /// 0 if it is not announced.
    authority: u64,
    /// When its certificate runs out, in s since 1970; 0 if it is not announced.
    until_s: u64,
    /// The certificates that it has refused.
    refused: Vec<String>,
}

impl Enclave {
    pub(super) fn of(security: &Security) -> Enclave {
        let authority = LayoutHash::of_bytes(&lane::authority(security));
        let until_s = lane::valid_until_s(security);
        Enclave { name: security.enclave(), authority, until_s, refused: Vec::new() }
    }

    /// User data of a participant, behind those of its program.
    pub(super) fn announce(&self, own: &str) -> String {
        let Enclave { name, authority, until_s, .. } = self;
        let name = match own.starts_with(NAME) || own.contains(&format!(";{NAME}")) {
            true => String::new(),
            false => format!("{NAME}{name};"),
        };
        format!("{own}{name}{AUTHORITY}{authority:016x};{UNTIL}{until_s};")
    }

    fn read(user_data: &[u8]) -> Enclave {
        let mut enclave = Enclave::default();
        for part in user_data.split(|byte| *byte == b';') {
            let value = |key: &str| part.strip_prefix(key.as_bytes());
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            if let Some(name) = value(NAME) {
                enclave.name = text(name);
            } else if let Some(authority) = value(AUTHORITY) {
                enclave.authority = u64::from_str_radix(&text(authority), 16).unwrap_or(0);
            } else if let Some(until) = value(UNTIL) {
                enclave.until_s = text(until).parse().unwrap_or(0);
            } else if let Some(refused) = value(REFUSED).and_then(from_base64) {
                let lines = text(&refused);
                enclave.refused = lines.lines().take(LINES_MAX).map(str::to_owned).collect();
            }
        }
        enclave
    }

    /// How it has refused the certificate of that name.
    fn refusal_of(&self, name: &str) -> Option<&str> {
        let is_it = |text: &&String| text.rsplit_once("CN=").is_some_and(|(_, it)| it == name);
        self.refused.iter().find(is_it).map(String::as_str)
    }
}

impl Admission {
    pub(super) fn new(own: Option<Enclave>) -> Admission {
        let (admitted, apart) = (BTreeMap::new(), BTreeMap::new());
        Admission { own, admitted, apart, reports: 0 }
    }

    /// The user data to announce, if certificates have been refused since the last call. `own` are the
    /// earlier ones.
    pub(super) fn announce(&mut self, own: &str, refused: Vec<String>) -> Option<String> {
        let enclave = self.own.as_mut().filter(|enclave| enclave.refused != refused)?;
        enclave.refused = refused;
        Some(format!("{own}{REFUSED}{};", to_base64(enclave.refused.join("\n").as_bytes())))
    }

    /// Whether a handshake may still be under way, so that time alone decides.
    pub(super) fn is_pending(&self) -> bool {
        self.apart.values().any(|(_, is_reported)| !is_reported)
    }

    /// What is to be reported at `now`, which is `now_s` since 1970: once for each participant that is not
    /// admitted, or not any more.
    pub(super) fn look(&mut self, remotes: &[Remote], now: Instant, now_s: u64) -> Vec<String> {
        let (mut apart, mut reports) = (BTreeMap::new(), self.run_out(remotes, now_s));
        let not_admitted = remotes.iter().filter(|remote| match self.own {
            Some(_) => !remote.is_admitted,
            None => remote.has_identity,
        });
        for remote in not_admitted.take(APART_MAX) {
            let known = self.apart.get(&remote.guid).copied();
            let (since, mut is_reported) = known.unwrap_or((now, false));
            if !is_reported && let Some(reason) = self.reason(remote, now - since) {
                is_reported = true;
                reports.push(reason);
            }
            apart.insert(remote.guid, (since, is_reported));
        }
        self.apart = apart;
        // A stranger may come under ever new names.
        reports.truncate(REPORTS_MAX.saturating_sub(self.reports) as usize);
        self.reports += reports.len() as u32;
        reports
    }

    /// The participants that CycloneDDS has deleted because their certificate has run out.
    fn run_out(&mut self, remotes: &[Remote], now_s: u64) -> Vec<String> {
        let admitted = remotes.iter().filter(|remote| self.own.is_some() && remote.is_admitted);
        let there = admitted.take(ADMITTED_MAX).map(|remote| {
            let theirs = Enclave::read(&remote.user_data);
            (remote.guid, (who(remote, &theirs), theirs.until_s))
        });
        let before = std::mem::replace(&mut self.admitted, there.collect());
        let gone = before.into_iter().filter(|(guid, _)| !self.admitted.contains_key(guid));
        let run_out = gone.filter(|(_, (_, until_s))| until_s.abs_diff(now_s) <= RUN_OUT_S);
        let text = |(_, (who, _))| format!("{who} is cut off: its certificate has run out");
        run_out.map(text).collect()
    }

    /// Why the two do not talk to each other; `None` as long as a handshake may take its time.
    fn reason(&self, remote: &Remote, since: Duration) -> Option<String> {
        let theirs = Enclave::read(&remote.user_data);
        let who = who(remote, &theirs);
        let nothing = "neither side sees the other's topics";
        let Some(own) = &self.own else {
            return Some(format!(
                "{who} is secured, and this program has no enclave: {nothing}. Set MYELIN_KEYSTORE and \
                 MYELIN_ENCLAVE here"
            ));
        };
        if !remote.has_identity {
            return Some(format!(
                "{who} has no enclave and is refused: {nothing}. Set MYELIN_KEYSTORE and MYELIN_ENCLAVE \
                 there (ROS 2: ROS_SECURITY_ENABLE, ROS_SECURITY_KEYSTORE, ROS_SECURITY_STRATEGY)"
            ));
        }
        if ![0, own.authority].contains(&theirs.authority) {
            return Some(format!(
                "{who} has its certificate from another authority than this enclave ({}): {nothing}. \
                 Take both enclaves from one keystore",
                own.name
            ));
        }
        if let Some(reason) = theirs.refusal_of(&own.name) {
            return Some(format!("{who} refuses this enclave: {}: {nothing}", shown(reason)));
        }
        if let Some(reason) = own.refusal_of(&theirs.name) {
            return Some(format!("{who} is refused: {}: {nothing}", shown(reason)));
        }
        (since >= HANDSHAKE_LIMIT).then(|| {
            format!(
                "{who} is not admitted after {} s: {nothing}. One of the two refuses the other, and \
                 writes there why, such as a certificate that was revoked or has run out",
                HANDSHAKE_LIMIT.as_secs()
            )
        })
    }
}

/// A participant, as it calls itself.
fn who(remote: &Remote, theirs: &Enclave) -> String {
    let part = |before: &str, text: &str, after: &str| match text.is_empty() {
        true => String::new(),
        false => format!("{before}{}{after}", shown(text)),
    };
    let process = match remote.process.is_empty() {
        true => "a program".to_owned(),
        false => shown(&remote.process),
    };
    let pid = part(" (process ", &remote.pid, ")");
    let host = part(" on host ", &remote.host, "");
    let address = part(" at ", &address(&remote.addresses), "");
    let enclave = if remote.has_identity {
        part(" with the enclave ", &theirs.name, "")
    } else {
        String::new()
    };
    format!("{process}{pid}{host}{address}{enclave}")
}

/// The first address that is one host's, of a list such as `udp/239.255.0.1:7400@2,udp/10.0.0.1:7411@2`.
fn address(locators: &str) -> String {
    let mut addresses = locators.split(',').filter_map(|locator| {
        let (_, rest) = locator.split_once('/')?;
        let (address, _) = rest.rsplit_once(':')?;
        let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
        (!address.is_multicast()).then(|| address.to_string())
    });
    addresses.next().unwrap_or_default()
}

/// Another host's text, which could write to a terminal.
fn shown(text: &str) -> String {
    let text = text.chars().take(TEXT_MAX);
    text.map(|each| if each.is_control() { '\u{fffd}' } else { each }).collect()
}

const NAME: &str = "enclave=";
const AUTHORITY: &str = "myelin_authority=";
const UNTIL: &str = "myelin_until=";
const REFUSED: &str = "myelin_refused=";
/// A handshake takes some 100 ms, and a lost packet of it a second.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
const APART_MAX: usize = 256;
const ADMITTED_MAX: usize = 1_024;
/// How exactly CycloneDDS ends with a certificate.
const RUN_OUT_S: u64 = 5;
/// In the life of a session.
const REPORTS_MAX: u32 = 64;
const LINES_MAX: usize = 4;
const TEXT_MAX: usize = 192;

#[cfg(test)]
mod tests {
    use super::*;

    fn enclave(name: &str, authority: u64) -> Enclave {
        Enclave { name: name.to_owned(), authority, until_s: 100, refused: Vec::new() }
    }

    fn user_data(theirs: &Enclave) -> Vec<u8> {
        let own = theirs.announce("a=b;");
        let mut admission = Admission::new(Some(Enclave::default()));
        admission.announce(&own, theirs.refused.clone()).unwrap_or(own).into_bytes()
    }

    fn remote(number: u8, theirs: Option<&Enclave>) -> Remote {
        Remote {
            guid: [number; 16],
            host: "robot1".to_owned(),
            process: "talker\u{1b}[2J".to_owned(),
            pid: "12".to_owned(),
            addresses: "udp/239.255.0.1:7400@2,udp/10.0.0.1:7411@2".to_owned(),
            user_data: theirs.map(user_data).unwrap_or_default(),
            has_identity: theirs.is_some(),
            is_admitted: false,
        }
    }

    #[test]
    fn each_side_says_once_who_is_kept_apart_and_why() {
        let now = Instant::now();
        let refusal = "Certificate not valid: error: certificate revoked; subject: /CN=/camera";
        let refuses = |name| Enclave { refused: vec![refusal.to_owned()], ..enclave(name, 1) };
        for (own, theirs, words) in [
            (None, Some(enclave("/camera", 1)), "is secured, and this program has no enclave"),
            (Some(enclave("/arm", 1)), None, "has no enclave and is refused"),
            (
                Some(enclave("/arm", 1)),
                Some(enclave("/camera", 2)),
                "has its certificate from another authority",
            ),
            (Some(refuses("/arm")), Some(enclave("/camera", 1)), "is refused: Certificate not"),
            (Some(enclave("/camera", 1)), Some(refuses("/arm")), "refuses this enclave: Certi"),
        ] {
            let mut admission = Admission::new(own);
            let remote = remote(1, theirs.as_ref());
            let reports = admission.look(std::slice::from_ref(&remote), now, 0);
            let [report] = &reports[..] else { panic!("{reports:?} for {words}") };
            let who = "talker\u{fffd}[2J (process 12) on host robot1 at 10.0.0.1 ";
            let enclave =
                theirs.map_or(String::new(), |it| format!("with the enclave {} ", it.name));
            assert!(report.starts_with(&format!("{who}{enclave}{words}")), "{report}");
            assert!(admission.look(&[remote], now, 0).is_empty() && !admission.is_pending());
        }
        assert!(Admission::new(None).look(&[remote(1, None)], now, 0).is_empty());
    }

    #[test]
    fn a_handshake_has_its_time_and_a_participant_that_is_cut_off_another_one() {
        let (begin, later) = (Instant::now(), Instant::now() + HANDSHAKE_LIMIT);
        let mut admission = Admission::new(Some(enclave("/arm", 1)));
        let apart = remote(1, Some(&enclave("/camera", 1)));
        let admitted = Remote { is_admitted: true, ..apart.clone() };
        assert!(admission.look(std::slice::from_ref(&apart), begin, 0).is_empty());
        assert!(admission.is_pending());
        assert!(admission.look(&[admitted], later, 0).is_empty() && !admission.is_pending());
        assert!(admission.look(std::slice::from_ref(&apart), later, 0).is_empty());
        let reports = admission.look(&[apart], later + HANDSHAKE_LIMIT, 0);
        assert!(reports[0].contains("not admitted after 5 s"), "{reports:?}");
    }

    #[test]
    fn a_participant_that_goes_with_its_certificate_is_reported() {
        let there = Remote { is_admitted: true, ..remote(1, Some(&enclave("/camera", 1))) };
        for (gone_s, is_reported) in [(90, false), (101, true), (120, false)] {
            let mut admission = Admission::new(Some(enclave("/arm", 1)));
            let now = Instant::now();
            assert!(admission.look(std::slice::from_ref(&there), now, 1).is_empty());
            let reports = admission.look(&[], now, gone_s);
            let is_it =
                |text: &String| text.contains("/camera is cut off: its certificate has run out");
            assert_eq!(reports.iter().any(is_it), is_reported, "{gone_s}: {reports:?}");
        }
    }

    #[test]
    fn strangers_without_end_are_reported_in_bounds() {
        let mut admission = Admission::new(Some(enclave("/arm", 1)));
        let mut look = |number| admission.look(&[remote(number, None)], Instant::now(), 0).len();
        assert_eq!((0..=255).map(&mut look).sum::<usize>(), REPORTS_MAX as usize);
        assert_eq!(admission.apart.len(), 1);
    }

    #[test]
    fn an_enclave_is_announced_and_then_each_refusal() {
        let own = enclave("/arm", 0xab);
        let all = "enclave=/arm;myelin_authority=00000000000000ab;myelin_until=100;";
        // ROS 2's name is the same.
        assert!(own.announce("") == all && own.announce("enclave=/arm;") == all);
        let mut admission = Admission::new(Some(own.clone()));
        assert_eq!(admission.announce(all, Vec::new()), None);
        let refused = vec!["a".to_owned(), "b".to_owned()];
        let with = admission.announce(all, refused.clone()).unwrap();
        assert_eq!(with, format!("{all}myelin_refused=YQpi;"));
        assert_eq!(admission.announce(all, refused.clone()), None);
        assert_eq!(Enclave::read(with.as_bytes()), Enclave { refused, ..own });
        assert_eq!(Enclave::read(b"\xff;enclave;myelin_refused=*;"), Enclave::default());
    }
}
