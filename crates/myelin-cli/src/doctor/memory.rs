//! Causes in memory: transparent huge pages, room in `/dev/shm`.

use std::io;

use super::finding::{Finding, State};
use super::host::{Host, Judged, Unknown, reason};
use super::kernel::size;
use super::preemption::in_brackets;

/// Whether the kernel makes huge pages without a request.
pub fn huge_pages(host: &Host) -> Judged {
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let setting = host.root.text(&format!("{folder}/enabled"))?;
    let enabled = in_brackets(&setting).unwrap_or(&setting).to_owned();
    let bytes = host.root.number(&format!("{folder}/hpage_pmd_size")).unwrap_or(HUGE_PAGE_BYTES);
    let finding = |state, text| {
        Finding::new(state, text).value("enabled", enabled.as_str()).value("huge_page_bytes", bytes)
    };
    if enabled != "always" {
        return Ok(finding(State::Ok, format!("`{enabled}`: only for programs that request them")));
    }
    let text = format!("`always`: the kernel uses pages of {} without a request", size(bytes));
    let finding = finding(State::Costs, text);
    let what = format!(
        "a first touch may clear {} at once, and the kernel may move memory to make \
                        room",
        size(bytes)
    );
    let finding = match &host.measured {
        Some(measured) => {
            let (huge, small) = (measured.first_touch_huge_us, measured.first_touch_us);
            let text = format!("{what}: {huge:.1} µs instead of {small:.2} µs (p50)");
            finding
                .value("first_touch_huge_us", huge)
                .value("first_touch_us", small)
                .measures(text, (huge - small).max(0.0))
        }
        None => finding.expects(what, None, "kernel: admin-guide/mm/transhuge"),
    };
    Ok(finding
        .mend(&format!("echo madvise | sudo tee {folder}/enabled"), None)
        .remark("permanently: the kernel parameter transparent_hugepage=madvise"))
}

/// The room in `/dev/shm`.
pub fn shared_memory(host: &Host) -> Judged {
    let room = match rustix::fs::statvfs(host.root.path(FOLDER)) {
        Ok(room) => room,
        Err(rustix::io::Errno::NOENT) => {
            return Ok(Finding::new(
                State::Costs,
                "there is no /dev/shm: nodes cannot find each \
                                                  other",
            )
            .mend("sudo mount -t tmpfs -o mode=1777 shm /dev/shm", None)
            .expects(
                "no node can be opened without another folder",
                None,
                "Myelin itself",
            ));
        }
        Err(error) => {
            let why = reason(&io::Error::from(error));
            return Err(Unknown(format!("{FOLDER}: {why}")));
        }
    };
    let (total, free) = (room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize);
    Ok(judge_room(total, free))
}

fn judge_room(total: u64, free: u64) -> Finding {
    let text = format!("/dev/shm: {} free of {}", size(free), size(total));
    let state = if free < FREE_BYTES_MIN { State::Costs } else { State::Ok };
    let finding = Finding::new(state, text).value("shm_bytes", total).value("shm_free_bytes", free);
    if state == State::Ok {
        return finding;
    }
    finding
        .expects(
            "shared memory of iceoryx, iceoryx2 and Fast DDS fails or falls back to UDP; Myelin \
             keeps only sockets there",
            None,
            "those projects use shm_open; the cost depends on the size of samples",
        )
        .mend(
            "sudo mount -o remount,size=2G /dev/shm",
            Some("echo 'tmpfs /dev/shm tmpfs size=2G 0 0' | sudo tee -a /etc/fstab".to_owned()),
        )
        .remark("in a container: docker run --shm-size=2g")
}

const FOLDER: &str = "/dev/shm";
/// Twice the size that Docker gives a container; a dozen samples of 10 MiB.
const FREE_BYTES_MIN: u64 = 128 << 20;
/// Used where the kernel does not give it; right for x86 and most of arm64.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docker_default_of_shared_memory_is_too_small() {
        let docker = judge_room(64 << 20, 64 << 20);
        assert_eq!(docker.state, State::Costs);
        assert!(docker.mend.unwrap().now.unwrap().contains("remount"));
        assert_eq!(judge_room(8 << 30, 1 << 20).state, State::Costs);
        let roomy = judge_room(8 << 30, 8 << 30);
        assert_eq!((roomy.state, roomy.cost), (State::Ok, None));
        assert_eq!(roomy.values["shm_free_bytes"], 8u64 << 30);
    }
}
