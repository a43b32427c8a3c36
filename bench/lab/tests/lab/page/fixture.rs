//! A made-up results folder: plausible, deterministic, with every case that a report must handle.

use myelin_bench_kit::protocol::{Topology, Transport, Wait, Workload};

use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary::*;

/// Sizes of the scenario `roundtrip-sizes`.
pub const PAYLOADS: [u64; 7] = [0, 64, 256, 1024, 4096, 16384, 65536];

/// Text that breaks a page unless it is escaped.
pub const HOSTILE: &str = r#"</script><img src="x" onerror="alert(1)"> & "quoted" | 'it'"#;

/// Four floor primitives, three systems, two tunings, seven sizes; and `sanity` at 1 Hz.
pub fn analysis() -> Analysis {
    let mut made = Maker { order: 0, cells: Vec::new(), details: Vec::new() };
    for payload in PAYLOADS {
        for model in MODELS {
            for tuning in [Tuning::Default, Tuning::Tuned] {
                made.cell("roundtrip-sizes", model, tuning, payload, None);
            }
        }
    }
    for model in MODELS.iter().filter(|model| !model.name.contains("loan")) {
        made.cell("sanity", model, Tuning::Default, 12, Some(1.0));
    }
    let summary = Summary {
        schema: SCHEMA,
        host: super::machine::host(),
        command: "myelin bench run roundtrip-sizes sanity --runs 5 --seed 7".to_owned(),
        systems: systems(),
        cells: made.cells,
        notes: vec![format!("awake left out: /dev/cpu_dma_latency may not be opened {HOSTILE}")],
        damage: vec![],
    };
    Analysis { summary, details: made.details }
}

/// A system with its medians at 0 B, default and tuned, and the increase per KiB.
struct Model {
    name: &'static str,
    medians: [f64; 2],
    per_kib: f64,
    wait: Wait,
    transport: Transport,
    floor: bool,
}

const MODELS: &[Model] = &[
    Model::floor("os.cacheline", [0.31, 0.30], 0.0, Wait::Poll, Transport::SharedMemory),
    Model::floor("os.futex", [60.0, 19.5], 0.0, Wait::Block, Transport::SharedMemory),
    Model::floor("os.pipe", [63.0, 22.4], 0.16, Wait::Block, Transport::Kernel),
    Model::floor("os.udp", [71.0, 31.0], 0.21, Wait::Block, Transport::Loopback),
    Model::peer("cyclonedds.udp", [148.0, 48.2], 1.25, Transport::Loopback),
    Model::peer("cyclonedds.iceoryx", [78.0, 24.3], 0.82, Transport::SharedMemory),
    Model::peer("cyclonedds.iceoryx-loan", [77.2, 24.1], 0.012, Transport::SharedMemory),
];

impl Model {
    const fn floor(
        name: &'static str,
        medians: [f64; 2],
        per_kib: f64,
        wait: Wait,
        transport: Transport,
    ) -> Self {
        Self { name, medians, per_kib, wait, transport, floor: true }
    }

    const fn peer(
        name: &'static str,
        medians: [f64; 2],
        per_kib: f64,
        transport: Transport,
    ) -> Self {
        Self { name, medians, per_kib, wait: Wait::Block, transport, floor: false }
    }
}

struct Maker {
    order: u32,
    cells: Vec<Cell>,
    details: Vec<Detail>,
}

impl Maker {
    fn cell(
        &mut self,
        scenario: &str,
        model: &Model,
        tuning: Tuning,
        payload: u64,
        rate: Option<f64>,
    ) {
        let tuned = usize::from(tuning == Tuning::Tuned);
        let slow = if rate.is_some() { 2.6 } else { 1.0 };
        let median = (model.medians[tuned] + model.per_kib * payload as f64 / 1024.0) * slow;
        let spread = if tuned == 1 { 0.07 } else { 0.16 };
        let (runs, per_run) = if rate.is_some() { (1, 240) } else { (5, 10_000) };
        let samples = u64::from(runs) * per_run;
        let bimodal = tuning == Tuning::Default
            && matches!((model.name, payload), ("os.futex", 0) | ("cyclonedds.iceoryx", 64));
        let invalid =
            tuning == Tuning::Default && model.name == "cyclonedds.udp" && payload == 65536;
        let law = Law { median, spread, bimodal };
        let points = self.runs(runs, &law, per_run, invalid);
        let interval = |figure: &str| {
            let mut values: Vec<_> = points.iter().filter_map(|run| run.get(figure)).collect();
            values.sort_by(f64::total_cmp);
            (values.len() > 2).then(|| [values[0], values[values.len() - 1]])
        };
        let round_trip = law.distribution(samples);
        self.cells.push(Cell {
            scenario: scenario.to_owned(),
            workload: Workload::Roundtrip,
            system: model.name.to_owned(),
            tuning,
            params: Params {
                payload_bytes: payload,
                rate_hz: rate,
                wait: model.wait,
                ..Params::default()
            },
            duration_asked_s: 60.0,
            runs,
            samples,
            round_trip_us: Some(round_trip),
            write_us: Some(Law::plain(median * 0.14, 0.2).distribution(samples)),
            read_us: (model.name != "os.cacheline")
                .then(|| Law::plain(median * 0.03, 0.2).distribution(samples)),
            wake_us: (model.wait == Wait::Block)
                .then(|| Law::plain(median * 0.3, 0.2).distribution(samples)),
            one_way_us: Some(Law::plain(median * 0.5, spread).distribution(samples)),
            throughput_per_s: rate.or(Some(1e6 / round_trip.mean)),
            cpu_us_per_message: Some(median * 0.55),
            cpu_percent: Some(if model.wait == Wait::Poll { 199.0 } else { 71.0 }),
            rss_bytes: Some(if model.floor { 4 << 20 } else { 23 << 20 }),
            pss_bytes: Some(if model.floor { 2 << 20 } else { 17 << 20 }),
            shared_bytes: Some(if model.name.contains("iceoryx") { 194 << 20 } else { 0 }),
            voluntary_switches_per_s: Some(rate.unwrap_or(1e6 / median) * 2.0),
            involuntary_switches_per_s: Some(11.0),
            page_faults: Some(if model.floor { 0.0 } else { 38.4 }),
            startup_ms: Some(if model.floor { 1.2 } else { 212.0 }),
            sent: samples,
            received: samples - if invalid { 12 } else { 0 },
            lost: Some(if invalid { 12 } else { 0 }),
            duplicates: Some(0),
            corrupt: Some(0),
            valid: !invalid,
            invalid_reasons: match invalid {
                true => vec![format!("run 2: 12 of 10000 messages never answered {HOSTILE}")],
                false => vec![],
            },
            round_trip_p50_interval_us: interval("p50_us"),
            round_trip_p99_interval_us: interval("p99_us"),
            interval_level_percent: (points.len() == 5).then_some(93.75),
            placements: law.placements(samples),
            processes: processes(model),
            // The floor is as in a folder of an older version: not observed over time.
            runqueue_wait_percent: (!model.floor).then_some(2.25),
            migrations_per_s: (!model.floor).then_some(0.5),
            pss_peak_bytes: (!model.floor).then_some(18 << 20),
            observation_cpu_percent: (!model.floor).then_some(0.25),
            notes: vec![],
            ..Cell::default()
        });
        let configuration = match model.floor {
            true => Default::default(),
            false => [(
                "cyclonedds.xml".to_owned(),
                format!("<CycloneDDS>{}</CycloneDDS>\n", model.name),
            )]
            .into(),
        };
        self.details.push(Detail {
            name: String::new(),
            histogram: Vec::new(),
            curve: law.curve(samples),
            runs: points,
            seconds: if rate.is_some() { seconds(&law, 10) } else { vec![] },
            configuration,
            pinned: (tuned == 1).then_some(Pinned { cpus: [1, 0], priority: 80 }),
            ..Detail::default()
        });
    }

    /// Runs of a cell vary by a few per cent, those of `awkward` cells by more.
    fn runs(&mut self, runs: u32, law: &Law, per_run: u64, invalid: bool) -> Vec<RunFigures> {
        (0..runs)
            .map(|run| {
                self.order += 1;
                let wander = f64::from(self.order * 7919 % 101) / 101.0 - 0.5;
                let one = Law { median: law.median * (1.0 + 0.06 * wander), ..*law };
                let distribution = one.distribution(per_run);
                let across = Law { bimodal: false, ..one }.distribution(per_run);
                let figures = [
                    ("p50_us", distribution.p50),
                    ("p99_us", distribution.p99),
                    ("cross_p50_us", across.p50),
                    ("cross_p99_us", across.p99),
                ];
                RunFigures::new(self.order - 1, !(invalid && run == 1), figures)
            })
            .collect()
    }
}

/// A distribution given by its quantiles.
#[derive(Clone, Copy)]
struct Law {
    median: f64,
    spread: f64,
    bimodal: bool,
}

impl Law {
    fn plain(median: f64, spread: f64) -> Self {
        Self { median, spread, bimodal: false }
    }

    fn at(&self, quantile: f64) -> f64 {
        let log_odds = (quantile / (1.0 - quantile)).ln();
        let tail = 1.0 + 0.25 * (quantile / (1.0 - quantile) / 2000.0).sqrt().min(12.0);
        let mode = if self.bimodal && quantile < 0.62 { 0.032 } else { 1.0 };
        self.median * mode * (self.spread * log_odds).exp() * tail
    }

    fn distribution(&self, samples: u64) -> Distribution {
        let n = samples as f64;
        let percentile = |q: f64| (n * (1.0 - q) >= 10.0).then(|| self.at(q));
        Distribution {
            min: self.at(1.0 / n),
            mean: self.at(0.55),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p99: percentile(0.99),
            p999: percentile(0.999),
            max: self.at(1.0 - 1.0 / n),
        }
    }

    fn curve(&self, samples: u64) -> Vec<CurvePoint> {
        let last = (samples as f64 / 10.0).log10();
        let steps = 200;
        (0..=steps)
            .map(|step| {
                let nines = last * f64::from(step) / f64::from(steps);
                let quantile = (1.0 - 10f64.powf(-nines)).max(1e-4);
                let us = self.at(quantile);
                CurvePoint { quantile, us, low_us: us * 0.95, high_us: us * (1.05 + 0.05 * nines) }
            })
            .collect()
    }

    fn placements(&self, samples: u64) -> Vec<Placement> {
        let placement = |same_cpu, share, median| Placement {
            same_cpu,
            share,
            round_trip_us: Some(Law::plain(median, self.spread).distribution(samples)),
            one_way_us: None,
        };
        match self.bimodal {
            true => vec![
                placement(true, 0.62, self.median * 0.032),
                placement(false, 0.38, self.median),
            ],
            false => vec![placement(false, 1.0, self.median)],
        }
    }
}

fn seconds(law: &Law, number: u32) -> Vec<Second> {
    (1..=number)
        .map(|second| Second {
            second,
            count: 24,
            round_trip_us: law.distribution(24),
            write_us: Law::plain(law.median * 0.14, 0.2).distribution(24),
            read_us: Some(Law::plain(law.median * 0.03, 0.2).distribution(24)),
        })
        .collect()
}

fn processes(model: &Model) -> Vec<ProcessUse> {
    let process = |role: &str, rss: u64, threads: &[(&str, f64)]| ProcessUse {
        role: role.to_owned(),
        cpu_percent: threads.iter().map(|thread| thread.1).sum(),
        user_percent: Some(threads.iter().map(|thread| thread.1).sum::<f64>() * 0.3),
        rss_bytes: rss,
        voluntary_switches_per_s: 1.5,
        involuntary_switches_per_s: 11.0,
        thread_count: threads.len() as u32,
        threads: threads
            .iter()
            .map(|(name, cpu_percent)| ThreadUse {
                name: (*name).to_owned(),
                cpu_percent: *cpu_percent,
            })
            .collect(),
    };
    let threads: &[_] = if model.floor {
        &[("main", 35.0)]
    } else {
        &[("recvUC", 25.0), ("main", 10.0), ("gc", 0.1)]
    };
    vec![process("ping", 10 << 20, threads), process("pong", 9 << 20, threads)]
}

fn systems() -> Vec<SystemInfo> {
    let info = |model: &Model| SystemInfo {
        name: model.name.to_owned(),
        about: format!("{} as it is installed", model.name),
        version: if model.floor { String::new() } else { "0.10.2".to_owned() },
        wait: model.wait,
        transport: model.transport,
        topology: Topology::TwoProcesses,
        loans: model.name.contains("loan"),
        floor: model.floor,
        missing: None,
    };
    let missing = SystemInfo {
        name: "iceoryx2.poll".to_owned(),
        about: "iceoryx2, busy polling".to_owned(),
        version: String::new(),
        wait: Wait::Poll,
        transport: Transport::SharedMemory,
        topology: Topology::TwoProcesses,
        loans: true,
        floor: false,
        missing: Some("not installed; cargo install iceoryx2-driver".to_owned()),
    };
    MODELS.iter().map(info).chain([missing]).collect()
}
