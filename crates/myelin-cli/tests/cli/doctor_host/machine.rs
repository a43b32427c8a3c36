//! Folders that represent machines: `/proc`, `/sys`, `/dev` and `/boot` as the doctor reads them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A folder that represents a machine.
pub struct Machine(pub tempfile::TempDir);

impl Machine {
    /// Two cores of bare metal, set up for low latency.
    pub fn good() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let machine = Machine(folder);
        for cpu in 0..2 {
            let cpu = format!("{CPU}/cpu{cpu}");
            machine.write(&format!("{cpu}/cpufreq/scaling_governor"), "performance");
            machine.write(&format!("{cpu}/cpufreq/scaling_min_freq"), "800000");
            machine.write(&format!("{cpu}/cpufreq/cpuinfo_max_freq"), "3200000");
            for (state, (name, us)) in [("POLL", 0), ("C1", 2), ("C6", 133)].iter().enumerate() {
                let state = format!("{cpu}/cpuidle/state{state}");
                machine.write(&format!("{state}/name"), name);
                machine.write(&format!("{state}/latency"), &us.to_string());
                machine.write(&format!("{state}/disable"), if *us > 10 { "1" } else { "0" });
            }
            machine.write(&format!("{cpu}/topology/thread_siblings_list"), "0-1");
        }
        for (path, text) in [
            ("/sys/devices/system/cpu/cpuidle/current_driver", "intel_idle"),
            ("/sys/devices/system/cpu/cpuidle/current_governor_ro", "menu"),
            ("/sys/devices/system/cpu/smt/active", "0"),
            ("/sys/devices/system/cpu/smt/control", "off"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
            ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet"),
            ("/sys/kernel/realtime", "1"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
            ("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse\n"),
            ("/proc/version", "Linux version 6.8.0 (gcc) #1 SMP PREEMPT_RT Thu"),
            ("/proc/cmdline", "quiet"),
            ("/proc/sys/kernel/osrelease", "6.8.0-rt"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
            ("/proc/sys/kernel/sched_rt_period_us", "1000000"),
            ("/proc/sys/net/core/rmem_max", "2147483647"),
            ("/proc/sys/net/core/wmem_max", "2147483647"),
            ("/proc/self/status", "Name:\tmyelin\nCapEff:\t0000000000000000\n"),
            ("/dev/cpu_dma_latency", ""),
        ] {
            machine.write(path, text);
        }
        machine.limits("unlimited", "99");
        fs::create_dir_all(machine.path("/dev/shm")).unwrap();
        machine
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    /// Nobody, root included, can read or write a folder as a file.
    pub fn make_unusable(&self, path: &str) {
        self.remove(path);
        fs::create_dir(self.path(path)).unwrap();
    }

    pub fn limits(&self, memlock: &str, rtprio: &str) {
        self.write(
            "/proc/self/limits",
            &format!(
                "Limit                     Soft Limit           Hard Limit           Units\n\
                 Max locked memory         {memlock}              {memlock}              bytes\n\
                 Max realtime priority     {rtprio}                    {rtprio}"
            ),
        );
    }

    pub fn config(&self, text: &str) {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        fs::write(self.path("/proc/config.gz"), packed.finish().unwrap()).unwrap();
    }

    /// A kernel that can switch, as a distribution builds it.
    pub fn dynamic_kernel(&self, config: &str) {
        self.remove("/sys/kernel/realtime");
        self.write("/proc/version", "Linux version 6.8.0 (gcc) #1 SMP PREEMPT_DYNAMIC Thu");
        self.config(config);
    }

    /// A guest without any control of its processor.
    pub fn guest(&self) {
        self.write("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor sse\n");
        for cpu in 0..2 {
            self.remove(&format!("{CPU}/cpu{cpu}/cpufreq"));
            self.remove(&format!("{CPU}/cpu{cpu}/cpuidle"));
        }
        self.write(&format!("{CPU}/cpuidle/current_driver"), "none");
    }
}

/// The folder of the CPUs.
pub const CPU: &str = "/sys/devices/system/cpu";
