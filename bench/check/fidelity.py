#!/usr/bin/env python3
"""Does a driver measure what a plain program measures?

Alternates round trips of each driver (spoken to in the kit's line protocol) with round trips of a
program written straight against the middleware's API, both configured by what the driver writes,
with ping on CPU 1 and pong on CPU 0, all under SCHED_FIFO 80. Prints a table; exits with 1 if a
median differs by more than the limit. Medians are over the alternations, of each run's percentile;
a ratio is the median of those within the alternations, so that a machine that drifts or changes its
mode from one to the next counts for both alike. A middleware that is compiled into its users is as
fast as the compiler's choice of what to inline, which for a polled 64 B differs by a tenth between
two builds of one program: of such there are several builds, which take turns.

A plain program is started as `PROGRAM pong|ping DOMAIN RUN PAYLOAD [EXTRA…]`, ping with
`MESSAGES WARMUP` behind. Both print `ready` when matched; ping then waits for a line on standard
input, measures, and prints `p50 N p99 N`, in nanoseconds. Pong ends when its standard input closes
or ping has gone.
"""

import argparse
import atexit
import contextlib
import dataclasses
import functools
import itertools
import json
import math
import os
import pathlib
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import time

LIMIT = 0.05
DOMAIN = 77
FIFO_PRIORITY = 80
PING_CPU, PONG_CPU = 1, 0
SAMPLES_HEADER_BYTES, RECORD_BYTES, LEAN = 4096, 64, 8  # bench/kit/src/samples.rs
PARTS_EVERY_POLLED = 16  # bench/lab/src/plan.rs
HEARD_WITHIN_S = 60
ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class System:
    """What differs between systems. Paths are below cargo's target folder; in the values of
    `environment`, {directory} is where the driver writes its configuration, {role} ping or pong."""

    driver: str
    plain: str  # {build} stands for each of `builds`.
    extra: tuple = ()
    environment: dict = dataclasses.field(default_factory=dict)
    daemon: bool = False
    builds: tuple = ("",)
    own_space: bool = False  # The driver gives a run namespaces of its own; so does this.
    before: tuple = ()  # Begins the command of the plain program.

    def plains(self, target):
        """The plain program in all its builds."""
        return [target / self.plain.format(build=build) for build in self.builds]


CYCLONEDDS = {"CYCLONEDDS_URI": "file://{directory}/cyclonedds.xml"}
# Fast DDS 2 reads the one, 3 the other.
FASTDDS = {"FASTRTPS_DEFAULT_PROFILES_FILE": "{directory}/fastdds.xml",
           "FASTDDS_DEFAULT_PROFILES_FILE": "{directory}/fastdds.xml"}
CYBERRT = functools.partial(System, "cyberrt", "check-cyberrt/roundtrip",
                            environment={"CYBER_PATH": "{directory}/plain-{role}"},
                            own_space=True, before=("setarch", "-R"))
ICEORYX2 = ("iceoryx2", "check-iceoryx2/roundtrip-{build}")
ICEORYX2_BUILDS = ("1", "2", "4", "16")  # bench/drivers/iceoryx2/check/Makefile
ZENOH = {"ZENOH_CONFIG": "{directory}/zenoh-{role}.json"}
SYSTEMS = {
    "cyberrt.shm": CYBERRT(("shm",)),
    "cyberrt.shm-multicast": CYBERRT(("shm-multicast",)),
    "cyberrt.arena": CYBERRT(("arena",)),
    "cyberrt.rtps": CYBERRT(("rtps",)),
    "cyclonedds.udp": System("cyclonedds", "check-cyclonedds/roundtrip", (), CYCLONEDDS),
    "cyclonedds.iceoryx":
        System("cyclonedds", "check-cyclonedds/roundtrip", ("loan",), CYCLONEDDS, daemon=True),
    "cyclonedds11.udp": System("cyclonedds11", "check-cyclonedds11/roundtrip", (), CYCLONEDDS),
    "cyclonedds11.myelin":
        System("cyclonedds11", "check-cyclonedds11/roundtrip", ("loan",), CYCLONEDDS),
    "cyclonedds11.iceoryx":
        System("cyclonedds11", "check-cyclonedds11/roundtrip", ("loan",), CYCLONEDDS, daemon=True),
    "fastdds.udp": System("fastdds", "check-fastdds/roundtrip", (), FASTDDS),
    "fastdds.shm": System("fastdds", "check-fastdds/roundtrip", (), FASTDDS),
    "fastdds.datasharing": System("fastdds", "check-fastdds/roundtrip", ("loan",), FASTDDS),
    "ecal.shm": System("ecal", "check-ecal/roundtrip", ("shm",)),
    "ecal.shm-zero-copy": System("ecal", "check-ecal/roundtrip", ("shm-zero-copy",)),
    "horus.shm": System("horus", "release/horus/roundtrip"),
    "iceoryx2.poll": System(*ICEORYX2, ("poll",), builds=ICEORYX2_BUILDS),
    "iceoryx2.event": System(*ICEORYX2, ("event",), builds=ICEORYX2_BUILDS),
    "myelin-c.shm-poll": System("myelin-c", "check-myelin-c/roundtrip", ("poll",)),
    "myelin-c.shm-block": System("myelin-c", "check-myelin-c/roundtrip", ("block",)),
    "zenoh.tcp": System("zenoh", "check-zenoh/roundtrip", ("tcp",), ZENOH),
    "zenoh.shm": System("zenoh", "check-zenoh/roundtrip", ("shm",), ZENOH),
    "zeromq.ipc": System("zeromq", "check-zeromq/roundtrip"),
}


def main():
    arguments = parse_arguments()
    guard = None if arguments.asleep else hold_cpus_awake()
    failures, skipped = 0, []
    print("| system | payload | plain p50 | kit p50 | ratio | plain p99 | kit p99 | ratio |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.systems.split(","):
        reason = why_not(arguments, name)
        if reason:
            skipped.append(f"skipped: {name}: {reason}")
            continue
        for payload in map(int, arguments.payloads.split(",")):
            plain, kit = compare(arguments, name, payload)
            failures += report(name, payload, plain, kit)
    if guard is not None:
        os.close(guard)
    print(f"times in µs, {arguments.alternations} alternations of {arguments.messages} messages")
    for line in skipped:
        print(line)
    return 1 if failures or (skipped and arguments.require) else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    parser.add_argument("--target", type=pathlib.Path, default=target, help="cargo's target folder")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--payloads", default="64,65536")
    parser.add_argument("--alternations", type=int, default=12,
                        help="a multiple of 4 counts all builds of a plain program alike")
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--require", action="store_true", help="a skipped system is a failure")
    parser.add_argument("--unpinned", action="store_true", help="as the scheduler likes")
    parser.add_argument("--asleep", action="store_true",
                        help="let idle cores sleep; their waking moves medians by a tenth")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.systems.split(",") if name not in SYSTEMS]
    if unknown:
        parser.error(f"--systems: no {', '.join(unknown)}; there are {', '.join(SYSTEMS)}")
    if not arguments.unpinned and not may_be_real_time():
        parser.error("SCHED_FIFO needs root or `ulimit -r 80`; without either: --unpinned")
    return arguments


def may_be_real_time():
    """Whether children may have what `Process` gives them; tried in one."""
    try:
        Process(["true"], PING_CPU).child.communicate()
    except subprocess.SubprocessError:
        return False
    return True


def hold_cpus_awake():
    """The open file that keeps idle cores from sleeping; None where that is not permitted."""
    try:
        guard = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
    except OSError as error:
        print(f"idle cores may sleep: {error}")
        return None
    os.write(guard, struct.pack("i", 0))
    return guard


def why_not(arguments, name):
    """Why the system cannot be compared; None if it can."""
    system = SYSTEMS[name]
    for path in [driver_of(arguments, system), *system.plains(arguments.target)]:
        if not path.exists():
            return f"not built: {path}"
    found = describe(arguments, name)
    return found["missing"] if found else "its driver does not know it"


def describe(arguments, name):
    """What the driver says of the system; None if it does not know it."""
    answer = subprocess.run([driver_of(arguments, SYSTEMS[name]), "describe"], check=True,
                            stdout=subprocess.PIPE)
    systems = json.loads(answer.stdout)["systems"]
    return next((one for one in systems if one["name"] == name), None)


def driver_of(arguments, system):
    return arguments.target / "release" / f"myelin-driver-{system.driver}"


def compare(arguments, name, payload):
    """p50 and p99 of each run of either kind: two lists of pairs."""
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(arguments, name, payload, directory)
        daemon = bench.start_daemon() if SYSTEMS[name].daemon else None
        try:
            bench.kit()  # Writes the configuration that the plain program needs; not counted.
            plain, kit = [], []
            for alternation in range(arguments.alternations):
                kinds = [(bench.plain, plain), (bench.kit, kit)]
                for run, results in kinds if alternation % 2 == 0 else reversed(kinds):
                    results.append(run())
        finally:
            if daemon is not None:
                daemon.say("stop")
                daemon.hear("done")
                daemon.end()
    return plain, kit


def report(name, payload, plain, kit):
    """Prints one line of the table; 1 if the medians do not agree."""
    medians = [statistics.median(run[rank] for run in runs) / 1e3
               for rank in (0, 1) for runs in (plain, kit)]
    ratios = [statistics.median(ours[rank] / theirs[rank] for theirs, ours in zip(plain, kit))
              for rank in (0, 1)]
    failed = abs(ratios[0] - 1) > LIMIT
    cells = [f"{medians[0]:.2f}", f"{medians[1]:.2f}", f"{ratios[0]:.3f}{' !' if failed else ''}",
             f"{medians[2]:.2f}", f"{medians[3]:.2f}", f"{ratios[1]:.3f}"]
    print(f"| {name} | {payload} | " + " | ".join(cells) + " |", flush=True)
    return int(failed)


class Bench:
    """One cell: a system and a payload."""

    def __init__(self, arguments, name, payload, directory):
        self.arguments, self.system, self.payload = arguments, SYSTEMS[name], payload
        self.name, self.directory = name, directory
        # As the lab does.
        self.parts_every = PARTS_EVERY_POLLED if describe(arguments, name)["wait"] == "poll" else 1
        self.plains = itertools.cycle(self.system.plains(arguments.target))
        self.runs = 0

    def next_run(self):
        self.runs += 1
        return f"check{os.getpid()}r{self.runs}"

    def start_daemon(self):
        daemon = Process([driver_of(self.arguments, self.system), "run"], None)
        daemon.say({"prepare": self.prepare("daemon", self.next_run(), None)})
        daemon.hear("ready")
        return daemon

    def kit(self):
        run = self.next_run()
        pong, ping = (self.start_driver(role, run) for role in ("pong", "ping"))
        pong.hear("ready")
        ping.hear("ready")
        start = {"start": {"at_ns": time.monotonic_ns() + 5_000_000}}
        pong.say(start)
        ping.say(start)
        done = ping.hear("done")["done"]
        for process in (pong, ping):
            process.say("stop")
        pong.hear("done")
        for process in (pong, ping):
            process.end()
        if done["received"] != self.arguments.messages or done["lost"] or done["corrupt"]:
            sys.exit(f"{self.name}: not a clean run: {done}")
        round_trips = list(read_round_trips(self.samples("ping")))
        lean = [took for flags, took in round_trips if flags & LEAN]
        return percentiles(lean or [took for _, took in round_trips])

    def start_driver(self, role, run):
        with open(self.samples(role), "wb") as file:
            file.truncate(SAMPLES_HEADER_BYTES + RECORD_BYTES * self.arguments.messages)
            file.write(b"myelinS1" + struct.pack("<QQ", self.arguments.messages, 0))
        process = Process([driver_of(self.arguments, self.system), "run"], self.cpu(role))
        process.say({"prepare": self.prepare(role, run, self.samples(role))})
        return process

    def prepare(self, role, run, samples):
        return {
            "protocol": 1, "system": self.name, "role": role, "run": run, "domain": DOMAIN,
            "payload_bytes": self.payload, "messages": self.arguments.messages, "duration_ns": 0,
            "warmup_messages": self.arguments.warmup, "rate_hz": None,
            "reply_timeout_ns": 2_000_000_000, "match_timeout_ns": 10_000_000_000,
            "record_every": 1, "parts_every": self.parts_every, "samples": samples,
            "directory": self.directory, "lock_memory": False, "seed": 1, "options": {},
        }

    def plain(self):
        with own_space() if self.system.own_space else contextlib.nullcontext([]) as space:
            command = [*space, *self.system.before, next(self.plains)]
            start = functools.partial(self.start_plain, command, self.next_run())
            numbers = [str(self.arguments.messages), str(self.arguments.warmup)]
            pong, ping = start("pong", []), start("ping", numbers)
            for process in (pong, ping):
                process.hear_line("ready")
            ping.write("go")
            words = ping.hear_line("p50").split()
            ping.end()
            pong.end()
        return int(words[1]), int(words[3])

    def start_plain(self, command, run, role, numbers):
        command = [*command, role, str(DOMAIN), run, str(self.payload), *self.system.extra, *numbers]
        environment = {key: value.format(directory=self.directory, role=role)
                       for key, value in self.system.environment.items()}
        return Process(command, self.cpu(role), environment)

    def samples(self, role):
        return os.path.join(self.directory, role + ".samples")

    def cpu(self, role):
        if self.arguments.unpinned:
            return None
        return PING_CPU if role == "ping" else PONG_CPU


@contextlib.contextmanager
def own_space():
    """What begins the commands of processes that have a network, in which there is only `lo`, and
    System V objects to themselves, which go with them."""
    script = "ip link set lo up multicast on; ip route add 224.0.0.0/4 dev lo; echo up; read gone"
    with subprocess.Popen(["unshare", "--net", "--ipc", "sh", "-c", script], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        yield ["nsenter", f"--target={holder.pid}", "--net", "--ipc"]


class Process:
    """A child that talks in lines, on its CPU if it has one."""

    def __init__(self, command, cpu, environment=None):
        def take_place():
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))

        environment = dict(os.environ, **(environment or {}))
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, preexec_fn=take_place, env=environment)
        atexit.register(self.child.kill)  # Of one that has ended: nothing.

    def say(self, message):
        self.write(json.dumps(message))

    def write(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def hear(self, event):
        line = self.hear_line(f'{{"{event}"')
        return json.loads(line)

    def hear_line(self, start):
        if not select.select([self.child.stdout], [], [], HEARD_WITHIN_S)[0]:
            sys.exit(f"{self.child.args}: {start} expected; nothing within {HEARD_WITHIN_S} s")
        line = self.child.stdout.readline()
        if not line.startswith(start):
            sys.exit(f"{self.child.args}: {start} expected, not: {line}")
        return line

    def end(self):
        self.child.stdin.close()
        if self.child.wait(timeout=10) != 0:
            sys.exit(f"{self.child.args}: ended with {self.child.returncode}")


def read_round_trips(path):
    """Flags and round trip, in ns, of each message."""
    with open(path, "rb") as file:
        data = file.read()
    written = struct.unpack_from("<Q", data, 16)[0]
    for index in range(written):
        record = struct.unpack_from("<6Q12xH", data, SAMPLES_HEADER_BYTES + index * RECORD_BYTES)
        yield record[6], record[5] - record[2]  # take_return_ns - publish_entry_ns


def percentiles(values):
    """p50 and p99 by nearest rank."""
    ranked = sorted(values)
    return tuple(ranked[math.ceil(len(ranked) * percent / 100) - 1] for percent in (50, 99))


if __name__ == "__main__":
    sys.exit(main())
