//! What the bench does for `tuned` and `awake`, as systemd does it for a service.

use myelin_bench_kit::protocol::Wait;

use super::{Advised, File, MARK, points};
use crate::machine::Machine;

/// Drop-ins for a publisher's and a subscriber's service, and a service that keeps idle CPUs awake;
/// none for what was measured as installed.
pub(super) fn files(advised: &[Advised], host: &Machine) -> Vec<File> {
    let mut files = drop_ins(advised, host);
    files.extend(awake(advised));
    files
}

fn drop_ins(advised: &[Advised], host: &Machine) -> Vec<File> {
    let pinned = || advised.iter().filter(|one| one.pinned.is_some());
    let Some(place) = pinned().find_map(|one| one.pinned) else { return Vec::new() };
    let spins = |one: &Advised| one.wait() == Wait::Poll;
    // As the bench itself leaves SCHED_FIFO out.
    let is_throttled = host.rt_runtime_us.is_some_and(|runtime_us| runtime_us >= 0);
    let without_fifo = is_throttled && pinned().all(spins);
    let priority = place.priority;
    let polls = "the kernel stops a process that polls under SCHED_FIFO for part of each second \
                 (kernel.sched_rt_runtime_us)";
    let class = match (without_fifo, is_throttled && pinned().any(spins)) {
        (true, _) => format!("# No CPUSchedulingPolicy=fifo: {polls}.\n"),
        (false, mixed) => {
            let caution = format!("# Not for a service that polls: {polls}.\n");
            format!(
                "{}CPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}\n",
                if mixed { caution } else { String::new() }
            )
        }
    };
    let file = |(role, cpu): (&str, usize)| {
        let name = format!("realtime-{role}.conf");
        let text = format!(
            "# {MARK}: the bench's tuning for the service that is the {role}.\n\
             [Service]\n\
             CPUAffinity={cpu}\n\
             {class}\
             # A program may raise itself and lock its memory; to do so it calls\n\
             # mlockall(MCL_CURRENT | MCL_FUTURE), which systemd cannot do for it.\n\
             LimitRTPRIO={priority}\n\
             LimitMEMLOCK=infinity\n\
             # Timers on time, instead of up to 50 µs late.\n\
             TimerSlackNSec=1\n"
        );
        File {
            about: format!("a {role}’s CPU and priority for: {}", points(pinned())),
            usage: format!(
                "sudo install -D {name} /etc/systemd/system/NAME.service.d/realtime.conf && sudo \
                 systemctl daemon-reload && sudo systemctl restart NAME"
            ),
            name,
            text,
        }
    };
    let [publisher, subscriber] = place.cpus;
    [("publisher", publisher), ("subscriber", subscriber)].map(file).into()
}

/// Holds the kernel's latency request for as long as it runs.
fn awake(advised: &[Advised]) -> Option<File> {
    let awake = || advised.iter().filter(|one| one.tuning == "awake");
    awake().next()?;
    let name = "cpu-awake.service".to_owned();
    let text = format!(
        "# {MARK}: idle CPUs do not sleep while this runs.\n\
         # Of all CPUs: it costs power and heat, and on a virtual machine the host's time. A node\n\
         # of Myelin can ask for it by itself: latency_guard(true).\n\
         [Unit]\n\
         Description=Keep idle CPUs from sleeping\n\
         \n\
         [Service]\n\
         ExecStart=/bin/sh -c 'exec 3>/dev/cpu_dma_latency && printf \"\\\\0\\\\0\\\\0\\\\0\" >&3 && \
         exec sleep infinity'\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    );
    Some(File {
        about: format!("idle CPUs kept awake for: {}", points(awake())),
        usage: format!("sudo cp {name} /etc/systemd/system/ && sudo systemctl enable --now {name}"),
        name,
        text,
    })
}
