//! Limits of the kernel on socket buffers.

use super::{Advised, File, MARK, points};
use crate::machine::Machine;

/// What a peer over UDP wants of a socket's buffer: room for two messages, so that one can come
/// while the other is taken.
pub(super) fn wanted_bytes(payload_bytes: u64) -> u64 {
    let two = 2 * (payload_bytes + HEADERS_BYTES_MAX);
    two.clamp(BYTES_MIN, BYTES_MAX).next_multiple_of(1 << 20)
}

/// The limits that what goes over UDP needs; `None` if nothing does.
pub(super) fn sysctl(advised: &[Advised], host: &Machine) -> Option<File> {
    let over_udp = || advised.iter().filter(|one| one.is_udp());
    let largest = over_udp().map(|one| one.params.payload_bytes).max()?;
    let wanted = wanted_bytes(largest);
    let here = host.socket_buffer_max_bytes;
    let bytes = here.unwrap_or(0).max(wanted);
    let finding = match here {
        Some(here) if here >= wanted => format!("rmem_max was {here} when measured: enough."),
        Some(here) => format!(
            "rmem_max was {here} when measured: the figures are of buffers of that size, not of \
             these."
        ),
        None => "What rmem_max was when measured is not known.".to_owned(),
    };
    let name = "60-myelin-advice.conf".to_owned();
    let text = format!(
        "# {MARK}: socket buffers for two messages of the largest payload over UDP.\n\
         # {finding}\n\
         # The kernel gives a socket no more than this, and says nothing when it gives less.\n\
         net.core.rmem_max = {bytes}\n\
         net.core.wmem_max = {bytes}\n"
    );
    Some(File {
        about: format!("socket buffers for: {}", points(over_udp())),
        usage: format!("sudo cp {name} /etc/sysctl.d/ && sudo sysctl --system"),
        name,
        text,
    })
}

/// Of RTPS and of the bench, with room.
const HEADERS_BYTES_MAX: u64 = 512;
/// What CycloneDDS and Fast DDS's driver ask for by themselves.
const BYTES_MIN: u64 = 1 << 20;
/// As much as the driver of CycloneDDS ever asks for.
const BYTES_MAX: u64 = 64 << 20;
