//! What the bench does for `tuned` and `awake`, as systemd does it for a service; and the kernel's
//! limits on socket buffers.

use minijinja::context;
use myelin_bench_kit::protocol::Wait;

use super::{Advised, File, points, rendered};
use crate::machine::Machine;
use crate::scenario::Tuning;

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
    let finding = match here {
        Some(here) if here >= wanted => format!("rmem_max was {here} when measured: enough."),
        Some(here) => format!(
            "rmem_max was {here} when measured: the figures are of buffers of that size, not of \
             these."
        ),
        None => "What rmem_max was when measured is not known.".to_owned(),
    };
    let bytes = here.unwrap_or(0).max(wanted);
    let name = "60-myelin-advice.conf".to_owned();
    Some(File {
        about: format!("socket buffers for: {}", points(over_udp())),
        usage: format!("sudo cp {name} /etc/sysctl.d/ && sudo sysctl --system"),
        name,
        text: rendered(include_str!("templates/sysctl.conf"), context! { finding, bytes }),
    })
}

/// For a publisher's and a subscriber's service; none for what was measured as installed.
pub(super) fn drop_ins(advised: &[Advised], host: &Machine) -> Vec<File> {
    let pinned = || advised.iter().filter(|one| one.pinned.is_some());
    let Some(place) = pinned().find_map(|one| one.pinned) else { return Vec::new() };
    let spins = |one: &Advised| one.wait() == Wait::Poll;
    // As the bench itself leaves SCHED_FIFO out.
    let is_throttled = host.rt_runtime_us.is_some_and(|runtime_us| runtime_us >= 0);
    let file = |(role, cpu): (&str, usize)| {
        let name = format!("realtime-{role}.conf");
        let values = context! {
            role,
            cpu,
            priority => place.priority,
            without_fifo => is_throttled && pinned().all(spins),
            some_poll => is_throttled && pinned().any(spins),
            throttled => "the kernel stops a process that polls under SCHED_FIFO for part of each \
                          second (kernel.sched_rt_runtime_us)",
        };
        File {
            about: format!("a {role}’s CPU and priority for: {}", points(pinned())),
            usage: format!(
                "sudo install -D {name} /etc/systemd/system/NAME.service.d/realtime.conf && sudo \
                 systemctl daemon-reload && sudo systemctl restart NAME"
            ),
            name,
            text: rendered(include_str!("templates/realtime.conf"), values),
        }
    };
    let [publisher, subscriber] = place.cpus;
    [("publisher", publisher), ("subscriber", subscriber)].map(file).into()
}

/// A service that holds the kernel's latency request for as long as it runs.
pub(super) fn awake(advised: &[Advised]) -> Option<File> {
    let awake = || advised.iter().filter(|one| one.tuning == Tuning::Awake);
    awake().next()?;
    let name = "cpu-awake.service".to_owned();
    Some(File {
        about: format!("idle CPUs kept awake for: {}", points(awake())),
        usage: format!("sudo cp {name} /etc/systemd/system/ && sudo systemctl enable --now {name}"),
        name,
        text: rendered(include_str!("templates/cpu-awake.service"), context! {}),
    })
}

/// Of RTPS and of the bench, with room.
const HEADERS_BYTES_MAX: u64 = 512;
/// What CycloneDDS and Fast DDS's driver ask for by themselves.
const BYTES_MIN: u64 = 1 << 20;
/// As much as the driver of CycloneDDS ever asks for.
const BYTES_MAX: u64 = 64 << 20;
