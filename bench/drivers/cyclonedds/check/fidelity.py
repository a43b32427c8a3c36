#!/usr/bin/env python3
"""Does the driver measure what a plain program measures?

Alternates round trips of the driver (spoken to in the kit's line protocol) with round trips of
check/roundtrip (plain DDS API), both with the configuration file that the driver writes, with
ping on CPU 1 and pong on CPU 0, all under SCHED_FIFO 80. Prints a table; exits with 1 if a median
differs by more than the limit. Medians are over the alternations, of each run's percentile.
"""

import argparse
import json
import math
import os
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
SAMPLES_HEADER_BYTES, RECORD_BYTES = 4096, 64  # bench/kit/src/samples.rs


def main():
    arguments = parse_arguments()
    guard = hold_cpus_awake() if arguments.awake else None
    failures = 0
    print("| system | payload | plain p50 | kit p50 | ratio | plain p99 | kit p99 | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for system in arguments.systems.split(","):
        for payload in map(int, arguments.payloads.split(",")):
            plain, kit = compare(arguments, system, payload)
            failures += report(system, payload, plain, kit)
    if guard is not None:
        os.close(guard)
    print(f"times in µs, {arguments.alternations} alternations of {arguments.messages} messages")
    return 1 if failures else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--plain", required=True, help="check/roundtrip, built by the Makefile")
    parser.add_argument("--driver", required=True, help="myelin-driver-cyclonedds")
    parser.add_argument("--systems", default="cyclonedds.udp,cyclonedds.iceoryx")
    parser.add_argument("--payloads", default="0,1024,65536")
    parser.add_argument("--alternations", type=int, default=9)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--unpinned", action="store_true", help="as the scheduler likes")
    parser.add_argument("--awake", action="store_true", help="hold /dev/cpu_dma_latency at 0")
    return parser.parse_args()


def hold_cpus_awake():
    guard = os.open("/dev/cpu_dma_latency", os.O_WRONLY)
    os.write(guard, struct.pack("i", 0))
    return guard


def compare(arguments, system, payload):
    """p50 and p99 of each run of either kind: two lists of pairs."""
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(arguments, system, payload, directory)
        daemon = bench.start_daemon() if "iceoryx" in system else None
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


def report(system, payload, plain, kit):
    """Prints one line of the table; 1 if the medians do not agree."""
    medians = [statistics.median(run[rank] for run in runs) / 1e3
               for rank in (0, 1) for runs in (plain, kit)]
    ratios = [medians[1] / medians[0], medians[3] / medians[2]]
    failed = abs(ratios[0] - 1) > LIMIT
    cells = [f"{medians[0]:.2f}", f"{medians[1]:.2f}", f"{ratios[0]:.3f}{' !' if failed else ''}",
             f"{medians[2]:.2f}", f"{medians[3]:.2f}", f"{ratios[1]:.3f}"]
    print(f"| {system} | {payload} | " + " | ".join(cells) + " |", flush=True)
    return int(failed)


class Bench:
    """One cell: a system and a payload."""

    def __init__(self, arguments, system, payload, directory):
        self.arguments, self.system, self.payload = arguments, system, payload
        self.directory = directory
        self.loans = system == "cyclonedds.iceoryx"
        self.runs = 0

    def name(self):
        self.runs += 1
        return f"check{os.getpid()}r{self.runs}"

    def start_daemon(self):
        daemon = Process([self.arguments.driver, "run"], None)
        daemon.say({"prepare": self.prepare("daemon", self.name(), None)})
        daemon.hear("ready")
        return daemon

    def kit(self):
        run = self.name()
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
            sys.exit(f"{self.system}: not a clean run: {done}")
        return percentiles(read_round_trips(self.samples("ping")))

    def start_driver(self, role, run):
        with open(self.samples(role), "wb") as file:
            file.truncate(SAMPLES_HEADER_BYTES + RECORD_BYTES * self.arguments.messages)
            file.write(b"myelinS1" + struct.pack("<QQ", self.arguments.messages, 0))
        process = Process([self.arguments.driver, "run"], self.cpu(role))
        process.say({"prepare": self.prepare(role, run, self.samples(role))})
        return process

    def prepare(self, role, run, samples):
        return {
            "protocol": 1, "system": self.system, "role": role, "run": run, "domain": DOMAIN,
            "payload_bytes": self.payload, "messages": self.arguments.messages, "duration_ns": 0,
            "warmup_messages": self.arguments.warmup, "rate_hz": None,
            "reply_timeout_ns": 2_000_000_000, "match_timeout_ns": 10_000_000_000,
            "record_every": 1, "samples": samples, "directory": self.directory,
            "lock_memory": False, "seed": 1, "options": {},
        }

    def plain(self):
        run = self.name()
        uri = f"file://{self.directory}/cyclonedds.xml"
        common = [str(DOMAIN), run, str(self.payload)] + ["loan"] * self.loans
        numbers = [str(self.arguments.messages), str(self.arguments.warmup)]
        pong = Process([self.arguments.plain, "pong", *common], self.cpu("pong"), uri)
        ping = Process([self.arguments.plain, "ping", *common, *numbers], self.cpu("ping"), uri)
        for process in (pong, ping):
            process.hear_line("ready")
        ping.write("go")
        words = ping.hear_line("p50").split()
        ping.end()
        pong.end()
        return int(words[1]), int(words[3])

    def samples(self, role):
        return os.path.join(self.directory, role + ".samples")

    def cpu(self, role):
        if self.arguments.unpinned:
            return None
        return PING_CPU if role == "ping" else PONG_CPU


class Process:
    """A child that talks in lines, on its CPU if it has one."""

    def __init__(self, command, cpu, uri=None):
        def take_place():
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY))

        environment = dict(os.environ, **({"CYCLONEDDS_URI": uri} if uri else {}))
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, preexec_fn=take_place, env=environment)

    def say(self, message):
        self.write(json.dumps(message))

    def write(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def hear(self, event):
        line = self.hear_line(f'{{"{event}"')
        return json.loads(line)

    def hear_line(self, start):
        line = self.child.stdout.readline()
        if not line.startswith(start):
            sys.exit(f"{self.child.args}: {start} expected, not: {line}")
        return line

    def end(self):
        self.child.stdin.close()
        if self.child.wait(timeout=10) != 0:
            sys.exit(f"{self.child.args}: ended with {self.child.returncode}")


def read_round_trips(path):
    with open(path, "rb") as file:
        data = file.read()
    written = struct.unpack_from("<Q", data, 16)[0]
    for index in range(written):
        record = struct.unpack_from("<6Q", data, SAMPLES_HEADER_BYTES + index * RECORD_BYTES)
        yield record[5] - record[2]  # take_return_ns - publish_entry_ns


def percentiles(values):
    """p50 and p99 by nearest rank."""
    ranked = sorted(values)
    return tuple(ranked[math.ceil(len(ranked) * percent / 100) - 1] for percent in (50, 99))


if __name__ == "__main__":
    sys.exit(main())
