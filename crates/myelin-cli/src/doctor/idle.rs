//! The sleep of an idle core, and the cost of waking it.

use myelin_bench_lab::machine::{IdleState, idle_states as states_of};

use super::cpu::{NOT_MEASURED, at_boot};
use super::finding::{Finding, State};
use super::host::{Host, Judged, Unknown};
use super::measure::{Quantiles, WakeUp};

/// How the idle CPUs of this host sleep.
struct Idle {
    driver: Option<String>,
    governor: String,
    /// The deepest state that is in use on any CPU and slow to leave, with its index.
    deep: Option<(usize, IdleState)>,
    /// The lowest index of a state that is in use and slow to leave.
    deep_from: usize,
    /// `guest_halt_poll_ns` of the haltpoll driver.
    poll_ns: Option<u64>,
    /// Whether an idle CPU goes back to a hypervisor.
    halts: bool,
}

/// The idle states, judged by the measured wake-up if there is one.
pub fn idle_states(host: &Host) -> Judged {
    let idle = Idle::read(host)?;
    let wake_up = host.measured.as_ref().and_then(|measured| measured.wake_up.as_ref());
    let finding = match wake_up {
        Some(wake_up) => idle.by_measurement(wake_up)?,
        None => idle.by_description(NOT_MEASURED)?,
    };
    let finding = match &idle.driver {
        Some(driver) => finding.value("idle_driver", driver.as_str()),
        None => finding.value("idle_driver", serde_json::Value::Null),
    };
    let finding = match &idle.deep {
        Some((_, state)) => finding.value("exit_latency_max_us", state.latency_us),
        None => finding,
    };
    let finding = match idle.poll_ns {
        Some(poll_ns) => finding.value("guest_halt_poll_ns", poll_ns),
        None => finding,
    };
    Ok(if finding.state == State::Costs { idle.with_mend(finding) } else { finding })
}

impl Idle {
    fn read(host: &Host) -> Result<Self, Unknown> {
        let folder = "/sys/devices/system/cpu/cpuidle";
        let driver =
            host.root.line(&format!("{folder}/current_driver")).filter(|driver| driver != "none");
        let governor = host
            .root
            .line(&format!("{folder}/current_governor_ro"))
            .or_else(|| host.root.line(&format!("{folder}/current_governor")));
        let mut slow = Vec::new();
        for cpu in host.cpus()? {
            for (index, state) in states_of(&host.root, cpu).into_iter().enumerate() {
                let switch =
                    format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}/disable");
                let off = host.root.number::<u64>(&switch).is_ok_and(|off| off != 0);
                if !off && state.latency_us >= EXIT_LATENCY_MIN_US {
                    slow.push((index, state));
                }
            }
        }
        let polls = host.root.number("/sys/module/haltpoll/parameters/guest_halt_poll_ns").ok();
        let is_haltpoll = driver.as_deref() == Some("haltpoll");
        Ok(Idle {
            halts: is_haltpoll || (driver.is_none() && host.is_guest()),
            deep_from: slow.iter().map(|(index, _)| *index).min().unwrap_or(0),
            deep: slow.into_iter().max_by_key(|(_, state)| state.latency_us),
            poll_ns: polls.filter(|_| is_haltpoll),
            governor: governor.unwrap_or_default(),
            driver,
        })
    }

    fn text(&self) -> String {
        match (&self.driver, &self.deep, self.poll_ns) {
            (Some(_), _, Some(0)) => {
                "haltpoll with guest_halt_poll_ns 0: an idle virtual CPU halts at once".to_owned()
            }
            (Some(_), _, Some(ns)) => {
                let us = ns / 1_000;
                format!("haltpoll: an idle virtual CPU halts after at most {us} µs")
            }
            (Some(driver), Some((_, state)), _) => {
                let (name, us) = (&state.name, state.latency_us);
                format!("{driver}: idle cores sleep down to {name}, {us} µs to leave")
            }
            (Some(driver), None, _) => format!("{driver}: no state in use is slow to leave"),
            (None, ..) if self.halts => {
                "no cpuidle driver: an idle virtual CPU halts, and the hypervisor wakes it".into()
            }
            (None, ..) => "no cpuidle driver: the kernel's default idling".into(),
        }
    }

    /// Judges by the measurement, unless other work on the CPUs has covered the effect.
    fn by_measurement(&self, wake_up: &WakeUp) -> Judged {
        let asleep_us = wake_up.as_found.p50_us;
        let finding = match &wake_up.held_awake {
            Some(held)
                if held.p50_us > WAKE_UP_MAX_US && asleep_us - held.p50_us < WAKE_UP_MAX_US =>
            {
                self.by_description(&format!(
                    "not measured: a wake-up took {:.1} µs even with cores held awake, because of \
                     other work; run it again on a quiet machine",
                    held.p50_us
                ))?
            }
            Some(held) => self.by_difference(&wake_up.as_found, held),
            None => self.by_wake_up(wake_up)?,
        };
        let finding = finding.value("wake_up_p50_us", asleep_us);
        Ok(match &wake_up.held_awake {
            Some(held) => finding.value("wake_up_held_awake_p50_us", held.p50_us),
            None => finding,
        })
    }

    fn by_difference(&self, as_found: &Quantiles, held: &Quantiles) -> Finding {
        let (asleep_us, awake_us) = (as_found.p50_us, held.p50_us);
        let saved_us = asleep_us - awake_us;
        let state = if saved_us >= WAKE_UP_SAVING_MIN_US { State::Costs } else { State::Ok };
        let what = format!(
            "a thread on an idle core runs {asleep_us:.1} µs after futex_wake, {awake_us:.1} µs \
             while /dev/cpu_dma_latency is held at 0 (p50 of {} each)",
            as_found.samples
        );
        Finding::new(state, self.text()).measures(what, saved_us.max(0.0))
    }

    /// Judges by the wake-up alone, where cores may not be held awake for comparison.
    fn by_wake_up(&self, wake_up: &WakeUp) -> Judged {
        let (us, samples) = (wake_up.as_found.p50_us, wake_up.as_found.samples);
        let missing = wake_up.held_awake_missing.as_deref().unwrap_or("");
        let what = format!(
            "a thread on an idle core runs {us:.1} µs after futex_wake (p50 of {samples}); the \
             share of the idle state is not known: {missing}"
        );
        let slow = us >= WAKE_UP_MAX_US;
        if slow && self.deep.is_none() && !self.halts {
            return Err(Unknown(format!("{}; {what}", self.text())));
        }
        let state = if slow { State::Costs } else { State::Ok };
        Ok(Finding::new(state, self.text()).measures(what, us))
    }

    /// Judges by the kernel's description of the states; `why` there is no usable measurement.
    fn by_description(&self, why: &str) -> Judged {
        let finding = |state| Finding::new(state, self.text());
        if let Some((_, state)) = &self.deep {
            let us = state.latency_us;
            return Ok(finding(State::Costs).expects(
                format!("up to {us} µs more until a thread on an idle core runs; {why}"),
                Some(us as f64),
                "the exit latency that the idle driver states",
            ));
        }
        if self.halts {
            let state = if self.poll_ns.is_some() { State::Costs } else { State::Note };
            return Ok(finding(state).expects(
                format!("each wake-up of an idle core goes through the hypervisor; {why}"),
                None,
                "kernel: virt/guest-halt-polling",
            ));
        }
        match self.driver {
            Some(_) => Ok(finding(State::Ok)),
            None => Err(Unknown(format!("no cpuidle driver; {why}"))),
        }
    }

    fn with_mend(&self, finding: Finding) -> Finding {
        if self.driver.is_none() {
            let text = "it cannot be changed in a running system: boot with the kernel parameter \
                        idle=poll (an idle core then takes full power), or poll in the program";
            return finding.remark(text);
        }
        // The haltpoll governor observes the latency limit, but not whether a state is disabled.
        let heeds_switches = self.governor != "haltpoll" && self.deep.is_some();
        let permanent = heeds_switches.then(|| {
            let files =
                format!("/sys/devices/system/cpu/cpu*/cpuidle/state[{}-9]/disable", self.deep_from);
            at_boot("idle", &files, "1")
        });
        let for_good = match &permanent {
            Some(_) => "",
            None => "; permanently: the kernel parameter idle=poll",
        };
        finding.mend(HOLD_AWAKE, permanent).remark(format!(
            "lasts as long as the command runs; idle cores take more power meanwhile{for_good}"
        ))
    }
}

/// Holds the latency limit of the kernel at 0 µs (four bytes) until the command ends.
const HOLD_AWAKE: &str =
    "sudo sh -c '(head -c4 /dev/zero; exec sleep infinity) >/dev/cpu_dma_latency'";
/// A state with a shorter exit costs less than the futex around it.
const EXIT_LATENCY_MIN_US: u64 = 10;
/// The minimum saving for a finding: about twice a futex call.
const WAKE_UP_SAVING_MIN_US: f64 = 5.0;
/// A longer wake-up is not explained by futex and scheduler alone: they take 2 to 5 µs on an awake,
/// idle core.
const WAKE_UP_MAX_US: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::super::finding::Basis;
    use super::*;

    fn quantiles(p50_us: f64) -> Quantiles {
        Quantiles { samples: 150, p50_us, p90_us: p50_us, max_us: p50_us }
    }

    fn haltpoll() -> Idle {
        Idle {
            driver: Some("haltpoll".into()),
            governor: "haltpoll".into(),
            deep: None,
            deep_from: 0,
            poll_ns: Some(0),
            halts: true,
        }
    }

    fn wake_up(asleep_us: f64, awake_us: Option<f64>) -> WakeUp {
        WakeUp {
            waker_cpu: 1,
            sleeper_cpu: 0,
            pause_us: 1_000,
            as_found: quantiles(asleep_us),
            held_awake: awake_us.map(quantiles),
            held_awake_missing: awake_us.is_none().then(|| "denied".to_owned()),
        }
    }

    fn judge(asleep_us: f64, awake_us: Option<f64>) -> Judged {
        haltpoll().by_measurement(&wake_up(asleep_us, awake_us))
    }

    #[test]
    fn the_saving_by_awake_cores_decides() {
        let slow = judge(52.0, Some(4.0)).unwrap();
        assert_eq!(slow.state, State::Costs);
        assert_eq!(slow.cost.unwrap().amount_us, Some(48.0));
        assert_eq!(judge(6.0, Some(4.0)).unwrap().state, State::Ok);
        assert_eq!(judge(4.0, Some(6.0)).unwrap().cost.unwrap().amount_us, Some(0.0));
    }

    #[test]
    fn without_the_right_to_hold_them_the_wake_up_itself_decides() {
        let slow = judge(52.0, None).unwrap();
        assert_eq!(slow.state, State::Costs);
        assert!(slow.cost.unwrap().what.contains("denied"));
        assert_eq!(judge(6.0, None).unwrap().state, State::Ok);
    }

    #[test]
    fn on_a_busy_machine_the_description_decides() {
        let busy = judge(38.0, Some(38.0)).unwrap();
        assert_eq!(busy.state, State::Costs);
        let cost = busy.cost.unwrap();
        assert_eq!(cost.basis, Basis::Expected);
        assert_eq!(judge(46.0, Some(38.0)).unwrap().cost.unwrap().basis, Basis::Expected);
        assert_eq!(judge(99.0, Some(38.0)).unwrap().cost.unwrap().basis, Basis::Measured);
        assert!(cost.what.contains("38.0 µs even with cores held awake"), "{}", cost.what);
    }

    #[test]
    fn a_slow_wake_up_without_a_cause_is_unknown() {
        let shallow = Idle { halts: false, poll_ns: None, ..haltpoll() };
        assert!(shallow.by_measurement(&wake_up(52.0, None)).is_err());
        assert_eq!(shallow.by_measurement(&wake_up(6.0, None)).unwrap().state, State::Ok);
        let busy = shallow.by_measurement(&wake_up(38.0, Some(38.0))).unwrap();
        assert_eq!((busy.state, busy.cost), (State::Ok, None));
    }
}
