//! The bench's settings for `tuned` and `awake` as systemd units for a service, and the kernel's
//! limits on socket buffers.

use minijinja::context;
use myelin_bench_kit::protocol::Wait;

use super::{Advised, File, points, rendered};
use crate::machine::Machine;
use crate::scenario::Tuning;

/// The socket buffer that a system over UDP needs: room for two messages, so that one can arrive
/// while the other is taken.
fn wanted_bytes(payload_bytes: u64) -> u64 {
    let two = 2 * (payload_bytes + HEADERS_BYTES_MAX);
    two.clamp(BYTES_MIN, BYTES_MAX).next_multiple_of(1 << 20)
}

/// The limits that advised systems over UDP need; `None` if there are none.
pub(super) fn sysctl(advised: &[Advised], host: &Machine) -> Option<File> {
    let over_udp = || advised.iter().filter(|one| one.is_udp());
    let largest = over_udp().map(|one| one.params.payload_bytes).max()?;
    let wanted = wanted_bytes(largest);
    let here = host.socket_buffer_max_bytes;
    let finding = match here {
        Some(here) if here >= wanted => format!("rmem_max was {here} when measured: enough."),
        Some(here) => format!(
            "rmem_max was {here} when measured: the figures are for buffers of that size, not for \
             these."
        ),
        None => "The value of rmem_max during the measurement is not known.".to_owned(),
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

/// Drop-ins for the service of a publisher and of a subscriber; none for configurations without
/// tuning.
pub(super) fn drop_ins(advised: &[Advised], host: &Machine) -> Vec<File> {
    let pinned = || advised.iter().filter(|one| one.pinned.is_some());
    let Some(place) = pinned().find_map(|one| one.pinned) else { return Vec::new() };
    let spins = |one: &Advised| one.wait() == Wait::Poll;
    // The bench itself does not set SCHED_FIFO then, either.
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

/// A service that keeps the kernel's latency request open while it runs.
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

/// Headers of RTPS and of the bench, with some room.
const HEADERS_BYTES_MAX: u64 = 512;
/// The size that the drivers of CycloneDDS and Fast DDS request at least.
const BYTES_MIN: u64 = 1 << 20;
/// The size that the driver of CycloneDDS requests at most.
const BYTES_MAX: u64 = 64 << 20;
