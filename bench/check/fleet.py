#!/usr/bin/env python3
"""Discovery of a fleet: one operator and 20 robots with 50 topics each, every one a network namespace on a bridge.

    fleet.py [--robots N] [--topics N] [--rest S] [--env NAME=VALUE]... NAME=PROGRAM...

PROGRAM is one process of the fleet (fleet/): `PROGRAM robot NUMBER TOPICS` has publishers, `PROGRAM operator ROBOTS TOPICS`
subscribers, and prints `ready`, then `matched N` whenever that changes. Each has its default configuration, so discovery is by
multicast; `--env` sets variables, in which {own} is a host's address and {operator} the operator's.

It prints a line of JSON for each PROGRAM: the time from the operator's start until all pairs have matched, the bytes and packets
that all hosts send in a second at rest, and while one more robot comes; CPU; PSS of the operator and of a robot. Bytes and CPU
hold on a busy machine, times do not. Needs root, `ip` and `unshare`.
"""

import argparse
import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time

CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
LIMIT_S = 120
LIBC = ctypes.CDLL(None, use_errno=True)


def ip(*words: str, pid: int | None = None) -> None:
    enter = ["nsenter", "-t", str(pid), "-n"] if pid else []
    subprocess.run([*enter, "ip", *words], check=True)


def die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Host:
    """A network namespace with an interface on the bridge, and the one process that runs there."""

    def __init__(self, number: int):
        self.port, self.address = f"port{number}", f"10.80.{number // 250}.{number % 250 + 1}"
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"], preexec_fn=die_with_parent)
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            time.sleep(0.01)
        pid = self.holder.pid
        ip("link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        ip("link", "set", self.port, "master", "fleet", "up")
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "addrgenmode", "none"], ["link", "set", "eth0", "up"],
                      ["addr", "add", f"{self.address}/16", "dev", "eth0"], ["route", "add", "default", "dev", "eth0"]):
            ip(*words, pid=pid)
        self.process, self.lines, self.matched = None, [], {}

    def start(self, program: str, words: list[str], variables: dict[str, str]) -> None:
        command = ["nsenter", "-t", str(self.holder.pid), "-n", "unshare", "-m", "sh", "-c",
                   'mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh", *shlex.split(program), *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | variables, preexec_fn=die_with_parent)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith("matched "):
                self.matched.setdefault(int(line.split()[1]), time.monotonic())

    def wait_for(self, what: str, condition) -> None:
        end = time.monotonic() + LIMIT_S
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{what} is missing after {LIMIT_S} s, or the process has ended: {self.lines[-3:]}")
            time.sleep(0.01)

    def sent(self) -> tuple[int, int]:
        """Bytes and packets that the bridge has received from the host."""
        for line in open("/proc/net/dev"):
            name, _, counts = line.partition(":")
            if name.strip() == self.port:
                return int(counts.split()[0]), int(counts.split()[1])
        sys.exit(f"{self.port} has gone")

    def cpu_s(self) -> float:
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def pss_kb(self) -> int:
        rollup = open(f"/proc/{self.process.pid}/smaps_rollup").read()
        return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))

    def end(self) -> None:
        if self.process:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def measure(name: str, program: str, hosts: list[Host], options: argparse.Namespace) -> dict:
    operator, *robots = hosts
    topics = str(options.topics)
    for host in hosts:
        host.lines, host.matched = [], {}

    def start(host: Host, *words: str) -> None:
        values = {"own": host.address, "operator": operator.address}
        host.start(program, list(words), {key: value.format(**values) for key, value in options.env})

    def traffic() -> tuple[int, int]:
        counts = [host.sent() for host in hosts]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)

    newcomer, present = len(robots) - 1, robots[:-1]
    for number, robot in enumerate(present):
        start(robot, "robot", str(number), topics)
    for robot in present:
        robot.wait_for("ready", lambda: "ready" in robot.lines)
    begin, before = time.monotonic(), traffic()
    start(operator, "operator", str(len(robots)), topics)
    everything = len(present) * options.topics
    operator.wait_for(f"{everything} matches", lambda: everything in operator.matched)
    found_s, found_bytes = operator.matched[everything] - begin, traffic()[0] - before[0]
    found_cpu_s = operator.cpu_s()

    time.sleep(options.rest / 2)  # what follows discovery, such as acknowledgements, has been sent
    running = [operator, *present]
    at, (bytes_before, packets_before), cpu = time.monotonic(), traffic(), sum(host.cpu_s() for host in running)
    time.sleep(options.rest)
    seconds = time.monotonic() - at
    rest = [(now - then) / seconds for now, then in zip(traffic(), (bytes_before, packets_before))]
    cpu = (sum(host.cpu_s() for host in running) - cpu) / seconds

    at, before = time.monotonic(), traffic()[0]
    start(robots[newcomer], "robot", str(newcomer), topics)
    everything += options.topics
    operator.wait_for(f"{everything} matches", lambda: everything in operator.matched)
    came_s = operator.matched[everything] - at
    time.sleep(max(0, 3 - (time.monotonic() - at)))
    seconds = time.monotonic() - at
    came_bytes = traffic()[0] - before - rest[0] * seconds
    figures = {
        "system": name, "robots": len(present), "topics": options.topics,
        "found_s": round(found_s, 2), "found_kbytes": round(found_bytes / 1e3),
        "found_operator_cpu_s": round(found_cpu_s, 2),
        "rest_kbytes_per_s": round(rest[0] / 1e3, 1), "rest_packets_per_s": round(rest[1]),
        "rest_cpu_percent": round(100 * cpu, 1),
        "newcomer_s": round(came_s, 2), "newcomer_kbytes": round(came_bytes / 1e3),
        "operator_pss_mb": round(operator.pss_kb() / 1e3, 1), "robot_pss_mb": round(present[0].pss_kb() / 1e3, 1),
    }
    for host in hosts:
        host.end()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", type=int, default=20)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--rest", type=float, default=10, help="seconds at rest")
    parser.add_argument("--env", action="append", default=[], type=lambda text: tuple(text.split("=", 1)))
    parser.add_argument("programs", nargs="+", type=lambda text: tuple(text.split("=", 1)), metavar="NAME=PROGRAM")
    options = parser.parse_args()
    if LIBC.unshare(CLONE_NEWNET) != 0:
        sys.exit("no permission to make network namespaces: run as root")
    ip("link", "add", "fleet", "type", "bridge", "mcast_snooping", "0")
    ip("link", "set", "fleet", "up")
    hosts = [Host(number) for number in range(options.robots + 2)]  # the operator, and one that comes later
    for name, program in options.programs:
        print(json.dumps(measure(name, program, hosts, options)), flush=True)
    for host in hosts:
        host.holder.kill()


main()
