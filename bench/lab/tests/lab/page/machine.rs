//! A made-up machine.

use myelin_bench_lab::machine::{Identity, IdleState, Machine};

pub fn host() -> Machine {
    Machine {
        identity: Identity {
            cpu_model: "Imaginary 9000 @ 2.90GHz".to_owned(),
            cpus: 2,
            kernel: "6.18.44".to_owned(),
            machine: None,
        },
        architecture: "x86_64".to_owned(),
        hypervisor: Some("KVM".to_owned()),
        memory_bytes: 8 << 30,
        os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        preemption: Some("voluntary".to_owned()),
        kernel_command_line: "console=ttyS0 panic=1".to_owned(),
        clocksource: "tsc".to_owned(),
        clock_read_ns: 18.2,
        clock_step_ns: 16,
        governor: None,
        idle_driver: Some("haltpoll".to_owned()),
        idle_governor: Some("haltpoll".to_owned()),
        idle_states: vec![
            IdleState { name: "POLL".to_owned(), latency_us: 0 },
            IdleState { name: "haltpoll".to_owned(), latency_us: 1 },
        ],
        can_hold_awake: false,
        rt_runtime_us: Some(950_000),
        cpus_allowed: Some(2),
        cpu_quota: None,
        throttling: None,
        memlock_bytes: Some(8 << 20),
        socket_buffer_max_bytes: Some(212_992),
        huge_pages: Some("madvise".to_owned()),
        busy_percent: 2.0,
        loopback_packets_per_s: 14.0,
        others: Vec::new(),
        steal_percent: Some(0.7),
    }
}
