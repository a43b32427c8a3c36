//! Combines the observations of one run on two hosts.

use super::series::{Counted, Loopback, Moment, Series};
use super::{Observation, sampler::TICK_NS};

impl Observation {
    /// Combines the observation of ping's host with `pong` of pong's host; `link` is ping's
    /// interface to it. Daemons of the same name get their host's name appended.
    pub(crate) fn and_on(
        self,
        pong: Observation,
        hosts: &[String; 2],
        link: &str,
        one_machine: bool,
    ) -> Observation {
        let (mut ping, mut pong) = (self, pong);
        let repeated: Vec<String> = (ping.processes.iter().map(|process| process.name.clone()))
            .filter(|name| pong.processes.iter().any(|process| process.name == *name))
            .collect();
        for (seen, host) in [&mut ping, &mut pong].into_iter().zip(hosts) {
            let in_series = seen.series.iter_mut().flat_map(|series| &mut series.processes);
            let names = seen.processes.iter_mut().map(|process| &mut process.name);
            for name in names.chain(in_series.map(|process| &mut process.name)) {
                if repeated.contains(name) {
                    *name = format!("{name}@{host}");
                }
            }
        }
        let series = match (ping.series, pong.series) {
            (Some(ping), Some(pong)) => Some(ping.and_on(pong, one_machine)),
            (ping, pong) => ping.or(pong),
        };
        ping.processes.append(&mut pong.processes);
        Observation {
            wall_ns: ping.wall_ns,
            processes: ping.processes,
            shared_bytes: ping.shared_bytes + pong.shared_bytes,
            ping_and_pong_share_memory: false,
            loopback_bytes: ping.loopback_bytes + pong.loopback_bytes,
            loopback_packets: ping.loopback_packets + pong.loopback_packets,
            link: Some(link.to_owned()),
            steal_percent: ping.steal_percent.max(pong.steal_percent),
            // Two hosts on one machine are in one cgroup.
            throttling: ping.throttling.max(pong.throttling),
            series,
        }
    }
}

impl Series {
    /// Combines the moments of both hosts tick by tick; both samplers began within a fraction of a
    /// tick. Times stay on this series' clock.
    fn and_on(self, mut other: Series, one_machine: bool) -> Series {
        let mut this = self;
        let first = this.processes.len() as u32;
        this.processes.append(&mut other.processes);
        for seen in other.moments.iter_mut().flat_map(|moment| &mut moment.processes) {
            seen.process += first;
        }
        if one_machine {
            other.moments.iter_mut().for_each(|moment| moment.steal_ticks = None);
        } else {
            this.cpus += other.cpus;
        }
        // The last moments of both belong together even at different ticks: they were taken after
        // the run.
        let (last, other_last) = (this.moments.pop(), other.moments.pop());
        let mut theirs = other.moments.into_iter().peekable();
        let mut moments = Vec::with_capacity(this.moments.len() + 1);
        for moment in this.moments {
            while let Some(earlier) = theirs.next_if(|other| tick(other) < tick(&moment)) {
                moments.push(earlier);
            }
            let twin = theirs.next_if(|other| tick(other) == tick(&moment));
            moments.push(moment.and_on(twin));
        }
        moments.extend(theirs);
        moments.sort_by_key(|moment| moment.at_ns);
        let at_end = moments.last().map_or(0, |moment| moment.at_ns);
        if let Some(last) = last.map(|last| last.and_on(other_last)) {
            moments.push(Moment { at_ns: last.at_ns.max(at_end), ..last });
        }
        let user_alone = [this.counted, other.counted].contains(&Some(Counted::User));
        Series {
            moments,
            cost_percent: this.cost_percent + other.cost_percent,
            counted: if user_alone { Some(Counted::User) } else { this.counted.or(other.counted) },
            threads_left_out: this.threads_left_out + other.threads_left_out,
            ..this
        }
    }
}

impl Moment {
    fn and_on(mut self, other: Option<Moment>) -> Moment {
        let Some(mut other) = other else {
            return self;
        };
        self.processes.append(&mut other.processes);
        let sum = |one: Loopback, two: Loopback| Loopback {
            bytes: one.bytes + two.bytes,
            packets: one.packets + two.packets,
        };
        Moment {
            loopback: both(self.loopback, other.loopback, sum),
            steal_ticks: both(self.steal_ticks, other.steal_ticks, |one, two| one + two),
            ..self
        }
    }
}

/// The value that exists, or the combination of both.
fn both<T>(one: Option<T>, two: Option<T>, sum: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(sum(one, two)),
        (one, two) => one.or(two),
    }
}

fn tick(moment: &Moment) -> u64 {
    (moment.at_ns + TICK_NS / 2) / TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::ProcessObservation;
    use crate::observe::series::{ObservedProcess, ProcessMoment};

    fn seen(names: &[&str], ticks: &[u64], bytes: u64) -> Observation {
        let process = |process: u32| ProcessMoment { process, cpu_ns: 5, ..Default::default() };
        let moment = |at: &u64| Moment {
            at_ns: at * TICK_NS + bytes,
            processes: (0..names.len() as u32).map(process).collect(),
            loopback: Some(Loopback { bytes, packets: 1 }),
            steal_ticks: Some(2),
        };
        let named = |name: &&str| ObservedProcess { name: name.to_string(), ..Default::default() };
        let series = Series {
            processes: names.iter().map(named).collect(),
            cpus: 4,
            moments: ticks.iter().map(moment).collect(),
            cost_percent: 0.1,
            ..Series::default()
        };
        let of = |name: &&str| ProcessObservation { name: name.to_string(), ..Default::default() };
        Observation {
            wall_ns: 1000 + bytes,
            processes: names.iter().map(of).collect(),
            loopback_bytes: bytes,
            loopback_packets: 10,
            series: Some(series),
            ..Observation::default()
        }
    }

    #[test]
    fn processes_keep_their_names_and_daemons_get_their_hosts() {
        let ping = seen(&["ping", "zenohd"], &[1, 2], 7);
        let both = ping.and_on(
            seen(&["pong", "zenohd"], &[1, 2], 9),
            &["a".into(), "b".into()],
            "eth0",
            false,
        );
        let names: Vec<&str> = both.processes.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["ping", "zenohd@a", "pong", "zenohd@b"]);
        let series = both.series.unwrap();
        let in_series: Vec<&str> = series.processes.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(in_series, names);
        assert!(series.is_sound());
        assert_eq!((both.loopback_bytes, both.loopback_packets, both.wall_ns), (16, 20, 1007));
        assert_eq!(both.link.as_deref(), Some("eth0"));
    }

    #[test]
    fn observations_of_one_tick_are_merged_without_loss() {
        let ping = seen(&["ping"], &[1, 2, 4, 5], 7);
        let both = ping.and_on(
            seen(&["pong"], &[1, 3, 4, 6, 7], 9),
            &["a".into(), "b".into()],
            "eth0",
            true,
        );
        let series = both.series.unwrap();
        let of = |moment: &Moment| -> Vec<u32> {
            moment.processes.iter().map(|seen| seen.process).collect()
        };
        let moments: Vec<(u64, Vec<u32>)> =
            series.moments.iter().map(|moment| (tick(moment), of(moment))).collect();
        let expected = [
            (1, vec![0, 1]),
            (2, vec![0]),
            (3, vec![1]),
            (4, vec![0, 1]),
            (6, vec![1]),
            (6, vec![0, 1]),
        ];
        assert_eq!(moments, expected, "the last of both at the end");
        assert!(series.is_sound());
        assert_eq!(series.cpus, 4, "one machine");
        let steal: u64 = series.moments.iter().filter_map(|moment| moment.steal_ticks).sum();
        assert_eq!(steal, 8, "counted once");
        let bytes: u64 = series.moments.iter().map(|moment| moment.loopback.unwrap().bytes).sum();
        assert_eq!(bytes, 4 * 7 + 5 * 9);
    }
}
