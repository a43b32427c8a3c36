#!/usr/bin/env python3
"""Discovery of a fleet: one operator and 20 robots with 50 topics each, every one a network namespace on a bridge.

    fleet.py [--robots N] [--topics N] [--rest S] [--env NAME=VALUE]... NAME=PROGRAM...
    fleet.py --churn --minutes M [--seed N] ... NAME=PROGRAM...

PROGRAM is one process of the fleet (fleet/): `PROGRAM robot NUMBER TOPICS` has publishers, `PROGRAM operator ROBOTS TOPICS`
subscribers, and prints `ready`, then `matched N` whenever that changes. Each has its default configuration, so discovery is by
multicast; `--env` sets variables, in which {own} is a host's address and {operator} the operator's.

It prints a line of JSON for each PROGRAM: the time from the operator's start until all pairs have matched, the bytes and packets
that all hosts send in a second at rest, and while one more robot comes; CPU; PSS of the operator and of a robot. Bytes and CPU
hold on a busy machine, times do not. Needs root, `ip` and `unshare`.

With `--churn`, robots come, end, are killed and lose their link, at random by the seed, while the operator and robot 0 stay. After
each third of the time all come back, and the operator must match with each again. It prints memory, descriptors and threads of the
two at the start, after each third, and at most. What is kept for reuse has been filled by then: it fails if the last third has made
descriptors or threads more, or memory by more than 2 % and 0.5 MB.
"""

import argparse
import ctypes
import json
import os
import random
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
        self.lines, self.matched = [], {}
        command = ["nsenter", "-t", str(self.holder.pid), "-n", "unshare", "-m", "sh", "-c",
                   'mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh", *shlex.split(program), *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | variables, preexec_fn=die_with_parent)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines = [*self.lines[-9:], line.strip()]
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

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def cut(self, is_cut: bool) -> None:
        ip("link", "set", self.port, "down" if is_cut else "up")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process:
            self.process.stdin.close()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def start_on(host: Host, operator: Host, program: str, options: argparse.Namespace, *words: str) -> None:
    values = {"own": host.address, "operator": operator.address}
    host.start(program, list(words), {key: value.format(**values) for key, value in options.env})


def churn(name: str, program: str, hosts: list[Host], options: argparse.Namespace) -> dict:
    operator, *robots = hosts[:-1]
    chance, everything = random.Random(options.seed), len(robots) * options.topics
    events = {"ended": 0, "killed": 0, "cut": 0, "came": 0}

    def start(robot: Host) -> None:
        start_on(robot, operator, program, options, "robot", str(robots.index(robot)), str(options.topics))

    def matches_all() -> bool:
        return operator.lines[-1:] == [f"matched {everything}"]

    def usage() -> dict:
        kinds = {"pss_kb": Host.pss_kb, "descriptors": Host.descriptors, "threads": Host.threads}
        stay = {"operator": operator, "robot": robots[0]}
        return {f"{who}_{kind}": read(host) for who, host in stay.items() for kind, read in kinds.items()}

    def turn() -> None:
        """One robot of those that do not stay changes: it is down, cut, or in order."""
        robot = chance.choice(robots[1:])
        if robot.process.poll() is not None:
            start(robot)
            events["came"] += 1
        elif robot in is_cut:
            is_cut.remove(robot)
            robot.cut(False)
        elif (event := chance.choice(["ended", "killed", "cut"])) == "cut":
            is_cut.add(robot)
            robot.cut(True)
            events["cut"] += 1
        else:
            robot.end() if event == "ended" else robot.kill()
            events[event] += 1

    def restore() -> None:
        for robot in [robot for robot in robots if robot in is_cut]:
            is_cut.remove(robot)
            robot.cut(False)
        for robot in [robot for robot in robots if robot.process.poll() is not None]:
            start(robot)
        operator.wait_for("a match with all", matches_all)
        time.sleep(options.rest)

    is_cut: set[Host] = set()
    for robot in robots:
        start(robot)
    start_on(operator, operator, program, options, "operator", str(len(robots)), str(options.topics))
    operator.wait_for("a match with all", matches_all)
    usages, most = [usage()], {}
    for _ in range(3):
        end = time.monotonic() + 20 * options.minutes
        while time.monotonic() < end:
            turn()
            time.sleep(chance.uniform(0.1, 0.5))
            now = usage()
            most = {key: max(now[key], most.get(key, 0)) for key in now}
        restore()
        usages.append(usage())
    before, after = usages[-2:]
    allowed = {key: value + (value // 50 + 512 if "pss" in key else 0) for key, value in before.items()}
    grown = [key for key in after if after[key] > allowed[key]]
    for host in hosts[:-1]:
        host.end()
    return {"system": name, "robots": len(robots), "topics": options.topics, "minutes": options.minutes, "seed": options.seed,
            "events": events, "usage": {key: [each[key] for each in usages] for key in before}, "most": most, "grown": grown}


def measure(name: str, program: str, hosts: list[Host], options: argparse.Namespace) -> dict:
    operator, *robots = hosts
    topics = str(options.topics)

    def start(host: Host, *words: str) -> None:
        start_on(host, operator, program, options, *words)

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
    found_s, found = operator.matched[everything] - begin, [now - then for now, then in zip(traffic(), before)]
    running = [operator, *present]
    found_operator_cpu_s, found_cpu_s = operator.cpu_s(), sum(host.cpu_s() for host in running)

    time.sleep(options.rest / 2)  # what follows discovery, such as acknowledgements, has been sent
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
        "found_s": round(found_s, 2), "found_kbytes": round(found[0] / 1e3), "found_packets": found[1],
        "found_cpu_s": round(found_cpu_s, 2), "found_operator_cpu_s": round(found_operator_cpu_s, 2),
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
    parser.add_argument("--churn", action="store_true", help="let robots come, go, be cut and be killed")
    parser.add_argument("--minutes", type=float, default=30, help="of --churn")
    parser.add_argument("--seed", type=int, default=1, help="of --churn")
    parser.add_argument("programs", nargs="+", type=lambda text: tuple(text.split("=", 1)), metavar="NAME=PROGRAM")
    options = parser.parse_args()
    if LIBC.unshare(CLONE_NEWNET) != 0:
        sys.exit("no permission to make network namespaces: run as root")
    ip("link", "add", "fleet", "type", "bridge", "mcast_snooping", "0")
    ip("link", "set", "fleet", "up")
    hosts = [Host(number) for number in range(options.robots + 2)]  # the operator, and one that comes later
    results = []
    for name, program in options.programs:
        results.append((churn if options.churn else measure)(name, program, hosts, options))
        print(json.dumps(results[-1]), flush=True)
    for host in hosts:
        host.holder.kill()
    if any(result.get("grown") for result in results):
        sys.exit("memory, descriptors or threads have grown")


main()
