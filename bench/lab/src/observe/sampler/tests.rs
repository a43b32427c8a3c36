//! Observes processes that follow the test's orders. They run this same executable, started with a
//! test that only obeys orders.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::observe::SAMPLES_NAME;
use crate::observe::series::ProcessMoment;

/// A process to observe. Killed when dropped.
struct Puppet {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Puppet {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", PUPPET, "--ignored", "--nocapture", "--test-threads=1"])
            .env("MYELIN_PUPPET", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut this = Puppet { child, answers };
        this.await_answer();
        this
    }

    /// Sends an order; returns when it has been carried out.
    fn tell(&mut self, order: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{order}").unwrap();
        self.await_answer();
    }

    fn await_answer(&mut self) {
        let mut line = String::new();
        while !line.trim_end().ends_with("done") {
            line.clear();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "the puppet has died");
        }
    }

    fn observed(&self, name: &str) -> (String, u32) {
        (name.into(), self.child.id())
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PUPPET: &str = "observe::sampler::tests::helper_process_for_the_sampler_tests";

#[test]
#[ignore = "started by the tests that observe it"]
fn helper_process_for_the_sampler_tests() {
    if std::env::var_os("MYELIN_PUPPET").is_none() {
        return;
    }
    println!("done");
    let mut ends: Vec<Sender<()>> = Vec::new();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match words[0] {
            "threads" => ends.extend((0..number(1)).map(|at| begin(&format!("idle-{at}"), || {}))),
            "end" => ends.clear(),
            "burn" => {
                let cpu_ns = number(2) * 1_000_000;
                ends.push(begin(words[1], move || burn(cpu_ns)));
            }
            "contend" => {
                let cpu_ns = number(1) * 1_000_000;
                pin_to_one_cpu();
                let two = [0, 1].map(|_| std::thread::spawn(move || burn(cpu_ns)));
                two.into_iter().for_each(|thread| thread.join().unwrap());
            }
            "map" => touch(None, number(1) as usize),
            "samples" => touch(Some(SAMPLES_NAME), number(1) as usize),
            other => panic!("{other}"),
        }
        println!("done");
    }
}

/// Starts a thread that does `work` and then waits to be dropped; returns once the work is done.
fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> Sender<()> {
    let (end, ended) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    let live = move || {
        work();
        ready.send(()).unwrap();
        let _ = ended.recv();
    };
    std::thread::Builder::new().name(name.into()).spawn(live).unwrap();
    is_ready.recv().unwrap();
    end
}

fn burn(cpu_ns: u64) {
    let begin_ns = thread_cpu_ns();
    while thread_cpu_ns() - begin_ns < cpu_ns {
        std::hint::black_box((0..10_000u64).sum::<u64>());
    }
}

fn pin_to_one_cpu() {
    let all = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
    let mut one = CpuSet::new();
    one.set(cpu);
    rustix::thread::sched_setaffinity(None, &one).unwrap();
}

/// Maps memory for the rest of the process's life, and writes to each page of it.
fn touch(name: Option<&str>, mib: usize) {
    let bytes = mib << 20;
    let name = name.map(|name| rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC));
    let file = name.map(|file| std::fs::File::from(file.unwrap()));
    let map = match &file {
        None => vec![0u8; bytes].leak(),
        Some(file) => {
            use rustix::mm::{MapFlags, ProtFlags, mmap};
            file.set_len(bytes as u64).unwrap();
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a fresh mapping of `bytes` bytes that nobody else uses; never unmapped.
            unsafe {
                let map = mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0);
                std::slice::from_raw_parts_mut(map.unwrap().cast::<u8>(), bytes)
            }
        }
    };
    map.chunks_mut(4096).for_each(|page| page[0] = 1);
    std::hint::black_box(map);
}

fn of(series: &Series, process: u32) -> impl Iterator<Item = (u64, &ProcessMoment)> {
    series.moments.iter().flat_map(move |moment| {
        let same = moment.processes.iter().filter(move |seen| seen.process == process);
        same.map(|seen| (moment.at_ns, seen))
    })
}

fn pss(series: &Series) -> u64 {
    of(series, 0).last().unwrap().1.memory.unwrap().pss_bytes
}

/// The observations of an `observer` whose ticks `looks` triggers. It runs in its own thread, which
/// has idle priority from then on.
fn look_by_hand(observed: Vec<(String, u32)>, looks: impl FnOnce(&mut Observer) + Send) -> Series {
    let observe = || {
        let mut observer = Observer::begin(&observed, "lo:".into());
        looks(&mut observer);
        observer.end()
    };
    std::thread::scope(|scope| scope.spawn(observe).join().unwrap())
}

#[test]
fn cpu_use_of_a_thread_is_observed_at_its_time() {
    let mut puppet = Puppet::start();
    let series = look_by_hand(vec![puppet.observed("ping")], |observer| {
        observer.look(RESCAN);
        puppet.tell("burn burner 300");
        observer.look(2 * RESCAN);
        observer.look(3 * RESCAN);
    });
    let names = &series.processes[0].threads;
    let index = names.iter().position(|name| name == "burner").unwrap() as u32;
    let used = of(&series, 0).map(|(_, seen)| {
        let burner = seen.threads.iter().find(|thread| thread.thread == index);
        let cpu_ns = burner.map_or(0, |thread| thread.cpu_ns);
        assert!(seen.cpu_ns + 20_000_000 >= cpu_ns);
        cpu_ns
    });
    let [before, burning, after, last] = used.collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(before, 0);
    assert!((290_000_000..400_000_000).contains(&burning), "{burning}");
    // After that it only goes to sleep.
    assert!(after + last < 20_000_000, "{after} ns and {last} ns while it did not burn");
    assert!(series.moments.is_sorted_by_key(|moment| moment.at_ns));
    assert!(series.cpus > 0 && series.ticks_per_s > 0);
}

#[test]
fn a_dead_process_is_not_observed_any_more() {
    let (doomed, other) = (Puppet::start(), Puppet::start());
    let both = vec![doomed.observed("ping"), other.observed("pong")];
    let series = look_by_hand(both, |observer| {
        observer.look(RESCAN);
        drop(doomed);
        observer.look(2 * RESCAN);
    });
    assert_eq!([0, 1].map(|process| of(&series, process).count()), [1, 3]);
    let nobody = Sampler::start(vec![("ping".into(), i32::MAX as u32)], "lo").stop();
    assert!(nobody.moments[0].processes.is_empty());
}

#[test]
fn threads_that_start_and_end_are_observed() {
    let mut puppet = Puppet::start();
    puppet.tell("threads 2");
    let series = look_by_hand(vec![puppet.observed("ping")], |observer| {
        puppet.tell("burn late 30");
        observer.look(RESCAN);
        puppet.tell("end");
        observer.look(2 * RESCAN);
        puppet.tell("threads 30");
        puppet.tell("burn later 30");
    });
    let names = &series.processes[0].threads;
    let used = |name: &str| {
        let index = names.iter().position(|other| other == name)? as u32;
        let threads = of(&series, 0).flat_map(|(_, seen)| &seen.threads);
        Some(threads.filter(|seen| seen.thread == index).map(|seen| seen.cpu_ns).sum::<u64>())
    };
    assert!(used("late").unwrap() >= 29_000_000, "{names:?}");
    assert!(used("later").unwrap() >= 29_000_000, "{names:?}");
    // Threads at the beginning and threads at the end.
    assert!(names.iter().filter(|name| *name == "idle-1").count() >= 2, "{names:?}");
    assert_eq!(series.threads_left_out, 0);
}

#[test]
fn run_queue_waiting_is_observed() {
    let mut puppet = Puppet::start();
    puppet.tell("threads 1");
    let sampler = Sampler::start(vec![puppet.observed("ping")], "lo");
    puppet.tell("contend 400");
    let series = sampler.stop();
    let threads = of(&series, 0).flat_map(|(_, seen)| &seen.threads);
    let (wait_ns, slices) = threads.fold((0, 0), |sum, it| (sum.0 + it.wait_ns, sum.1 + it.slices));
    assert!(wait_ns > 50_000_000, "{wait_ns} ns");
    assert!(slices > 0);
}

#[test]
fn memory_counts_touched_pages_and_not_sample_files() {
    let mut puppet = Puppet::start();
    let before = Sampler::start(vec![puppet.observed("ping")], "lo").stop();
    puppet.tell("samples 64");
    let sampled = Sampler::start(vec![puppet.observed("ping")], "lo").stop();
    assert!(pss(&sampled).abs_diff(pss(&before)) < 4 << 20, "{} {}", pss(&before), pss(&sampled));
    let sampler = Sampler::start(vec![puppet.observed("ping")], "lo");
    puppet.tell("map 64");
    let after = sampler.stop();
    let rise = (pss(&after) - pss(&before)) as f64 / f64::from(1 << 20);
    assert!((60.0..68.0).contains(&rise), "{rise} MiB");
    let (_, last) = of(&after, 0).last().unwrap();
    assert!(last.rss_bytes >= 64 << 20 && last.rss_bytes < 100 << 20, "{}", last.rss_bytes);
    assert!(of(&after, 0).map(|(_, seen)| seen.faults).sum::<u64>() > 0);
}

#[test]
fn observing_a_hundred_threads_stays_within_the_budget() {
    let mut puppets: Vec<Puppet> = (0..10).map(|_| Puppet::start()).collect();
    for puppet in &mut puppets {
        puppet.tell("threads 9");
    }
    let observed: Vec<_> =
        (0..).zip(&puppets).map(|(at, puppet)| puppet.observed(&format!("pong-{at}"))).collect();
    let series = look_by_hand(observed, |observer| {
        (1..=TICKS).for_each(|tick| observer.look(tick));
        let cost_percent = 100.0 * observer.spent_ns() as f64 / (TICKS * TICK_NS) as f64;
        // One reading may cost more than expected; the next ones make up for it.
        assert!(cost_percent > 0.0 && cost_percent < 1.5 * COST_PERCENT_MAX, "{cost_percent} %");
        eprintln!("{} moments, {cost_percent:.3} % of a core", observer.series.moments.len());
    });
    assert!(series.processes.iter().all(|process| process.threads.len() >= 10));
    let last = series.moments.last().unwrap();
    assert_eq!(last.processes.len(), 10);
    assert!(last.processes.iter().all(|seen| seen.memory.is_some() && seen.switches.is_some()));
}

/// A tick at which new threads are searched for, with ample budget until then.
const RESCAN: u64 = 10 * TICKS_PER_RESCAN;
const TICKS: u64 = 20;
