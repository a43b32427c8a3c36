//! What tells one machine from another, so that figures of two are not pooled.

use std::fmt;

use procfs::Current as _;
use serde::{Deserialize, Serialize};

use crate::root::Root;

/// Of the machine that measured a run; in each line of `runs.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `model name` of the first processor.
    pub cpu_model: String,
    /// Online CPUs.
    pub cpus: u32,
    /// `uname -r`.
    pub kernel: String,
    /// 64 bits made from `/etc/machine-id`, which itself is nobody's business, as 16 hexadecimal
    /// digits; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

impl Identity {
    /// Of the machine this runs on.
    pub fn read(root: &Root) -> Self {
        let cpu_info = procfs::CpuInfo::current().ok();
        let model = cpu_info.as_ref().and_then(|info| info.get_info(0)?.get("model name").copied());
        Identity {
            cpu_model: model.unwrap_or_default().into(),
            cpus: cpu_info.as_ref().map_or(1, |info| info.num_cores() as u32),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            machine: root.line("/etc/machine-id").and_then(|id| digest(&id)),
        }
    }

    /// Whether figures of the two must not be pooled: another machine, or another kernel on it. Two
    /// of one make are told apart where both have a machine id.
    pub fn differs(&self, other: &Identity) -> bool {
        let both = self.machine.as_ref().zip(other.machine.as_ref());
        (&self.cpu_model, self.cpus, &self.kernel) != (&other.cpu_model, other.cpus, &other.kernel)
            || both.is_some_and(|(one, two)| one != two)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { cpu_model, cpus, kernel, machine } = self;
        write!(formatter, "{cpu_model}, {cpus} CPUs, Linux {kernel}")?;
        machine.as_ref().map_or(Ok(()), |machine| write!(formatter, ", machine {machine}"))
    }
}

/// FNV-1a (Fowler, Noll, Vo) of the 128 random bits with a key of ours: stable over versions of this
/// program, and too short to lead back to the id.
fn digest(id: &str) -> Option<String> {
    let id = id.trim();
    // Images of containers have an empty one, or a word that says it is to be made.
    let is_one = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = b"myelin bench"
        .iter()
        .copied()
        .chain(id.bytes())
        .fold(FNV_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    is_one.then(|| format!("{hash:016x}"))
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_id_is_told_from_others_and_not_shown() {
        let id = "0123456789abcdef0123456789abcdef";
        let digest_of = |id: &str| digest(id).unwrap();
        assert_ne!(digest_of(id), digest_of("0123456789abcdef0123456789abcdee"));
        assert_eq!(digest_of(id), digest_of(&format!("{id}\n")));
        assert!(!id.contains(&digest_of(id)));
        assert_eq!(digest("uninitialized"), None);
    }

    #[test]
    fn a_machine_without_an_id_is_told_by_what_it_is() {
        let machine = |id: Option<&str>, kernel: &str| Identity {
            cpu_model: "a".into(),
            cpus: 2,
            kernel: kernel.into(),
            machine: id.map(str::to_owned),
        };
        assert!(!machine(None, "6.1").differs(&machine(Some("1"), "6.1")));
        assert!(machine(Some("2"), "6.1").differs(&machine(Some("1"), "6.1")));
        assert!(machine(None, "6.2").differs(&machine(None, "6.1")));
    }
}
