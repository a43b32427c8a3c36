#!/usr/bin/env python3
"""Are the figures of a report those of the samples?

Recomputes cells drawn at random from the sample files of a results folder, as docs/reference/results.md
describes them, with numpy and nothing of Myelin's, and compares them with summary.json: counts,
percentiles and their intervals exactly, means to rounding; and with details.json.zst: where the time
goes, the ten slowest messages, the timeline of a run, its rows by second, and figures of each single
run. Prints a line for each cell; exits with 1 if one differs.

Loss is recomputed where every message has a record, which is everywhere but with `record_every` and
in floods. Of cells across two machines only round trips are: what goes one way is on two hosts' clocks
in the sample files, which a report has compared first. Needs numpy and zstandard.
"""

import argparse
import json
import math
import pathlib
import random
import sys
from fractions import Fraction

import numpy
import zstandard

RECORD = numpy.dtype(
    [
        ("id", "<u8"),
        ("intended_ns", "<u8"),
        ("publish_entry_ns", "<u8"),
        ("publish_return_ns", "<u8"),
        ("wake_ns", "<u8"),
        ("take_return_ns", "<u8"),
        ("loan_ns", "<u4"),
        ("fill_ns", "<u4"),
        ("publish_cpu", "<u2"),
        ("take_cpu", "<u2"),
        ("flags", "<u2"),
        ("duplicates", "<u2"),
    ]
)
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
NEVER = 2**63 - 1
BEYOND_MIN = 10
# The latency of a lost message.
NEVER = 2**63 - 1
LEVEL_MIN = 93.75
INTERVALS = {
    "round_trip_us": ["p50", "p99", "p999"],
    "one_way_us": ["p50", "p99", "p999"],
    "write_us": ["p50"],
}
LEAN = 8
STAGES = ["lateness", "loan", "fill", "publish", "wake", "take", "wake_and_take",
          "publish_back", "wake_back", "take_back", "wake_and_take_back"]
DIVIDED = ("roundtrip", "stream", "image", "replay")
SLOWEST = 10
PARTS = 60
WINDOW_MESSAGES_MIN = 40
ROWS_PER_DECADE = 12
QUANTITIES = {"roundtrip": "round_trip_us", "publish": "write_us"}


def samples(folder, run, role):
    path = folder / run["directory"] / f"{role}.samples.zst"
    with path.open("rb") as file:
        return numpy.frombuffer(zstandard.ZstdDecompressor().stream_reader(file).read(), RECORD)


def signed(moments):
    return moments.astype(numpy.int64)


def latencies(workload, rate_hz, ping, pong):
    """Of one run in ns, and how many messages were taken."""
    entry = signed(ping["publish_entry_ns"])
    if workload == "publish":
        return signed(ping["publish_return_ns"]) - entry, None
    if workload == "roundtrip":
        answered = ping["take_return_ns"] != 0
        lean = ping["flags"] & LEAN != 0
        counted = answered & (lean if lean.any() else True)
        return (signed(ping["take_return_ns"]) - entry)[counted], int(answered.sum())
    taken = pong[pong["take_return_ns"] != 0]
    place = numpy.searchsorted(ping["id"], taken["id"])
    known = place < len(ping)
    known[known] = ping["id"][place[known]] == taken["id"][known]
    sent = ping[place[known]]
    # A stream's messages count from when they were due, a frame from its stamp.
    from_due = workload in ("stream", "replay") and rate_hz is not None
    begin = signed(sent["intended_ns" if from_due else "publish_entry_ns"])
    return signed(taken["take_return_ns"][known]) - begin, len(taken)


def with_lost(workload, subscribers, run, values):
    """The values, and one that is above all others for each lost message; lean messages have their part."""
    ping, pong = run["ping"], run["pong"]
    if workload == "roundtrip":
        lost, received = ping["lost"], ping["received"]
    elif workload in ("stream", "image", "replay"):
        lost, received = max(ping["sent"] * subscribers - pong["received"], 0), pong["received"]
    else:
        return values
    missing = -(-lost * len(values) // max(received, 1))
    return numpy.concatenate([values, numpy.full(missing, NEVER, numpy.int64)])


def distribution(runs):
    """As summary.json has it, of all runs; nearest rank, null with fewer than ten values beyond, or
    where one of several runs alone reaches it, or where only lost messages are above; of a median, null
    with fewer than ten values."""
    values = numpy.sort(numpy.concatenate(runs))
    largest = sorted(run.max() for run in runs if len(run))
    arrived = values[values < NEVER]
    found = {
        "min": int(arrived[0]) / 1e3,
        "mean": float(arrived.astype(numpy.float64).mean()) / 1e3,
        "max": int(arrived[-1]) / 1e3,
    }
    for name, quantile in PERCENTILES.items():
        rank = math.ceil(quantile * len(values))
        value = values[max(rank, 1) - 1]
        if name == "p50":
            borne = len(values) >= BEYOND_MIN
        else:
            shared = len(largest) < 2 or value <= largest[-2]
            borne = shared and len(values) >= rank + BEYOND_MIN
        found[name] = int(value) / 1e3 if borne and value < NEVER else None
    return found


def cut(runs, runs_max):
    """How many runs are cut off at either end, and the level of what is left in per cent. With a
    limit of runs, the intervals of all numbers of runs up to it cover the median together."""
    if runs_max is None:
        found = None, None
        for cut_off in range((runs + 1) // 2):
            missed = sum(math.comb(runs, heads) for heads in range(cut_off + 1))
            level = 100 * (1 - 2 * missed / 2**runs)
            if level < LEVEL_MIN:
                break
            found = cut_off, level
        return found
    # Of 2**throws sequences of a coin, those that were within all intervals so far, by their heads.
    inside, missed, cuts = {0: 1}, Fraction(0), {}
    for throws in range(1, runs_max + 1):
        inside = {heads: inside.get(heads, 0) + inside.get(heads - 1, 0) for heads in range(throws + 1)}
        share = Fraction(throws - 4, runs_max - 4) if runs_max > 8 else 1
        allowed = share * (100 - Fraction(LEVEL_MIN)) / 100
        for cut_off in range((throws + 1) // 2 if throws > 4 else 0):
            out = [heads for heads in inside if heads <= cut_off or heads >= throws - cut_off]
            if missed + Fraction(sum(inside[heads] for heads in out), 2**throws) > allowed:
                break
            cuts[throws] = cut_off
        if throws in cuts:
            out = [heads for heads in inside if not cuts[throws] < heads < throws - cuts[throws]]
            missed += Fraction(sum(inside[heads] for heads in out), 2**throws)
            inside.update(dict.fromkeys(out, 0))
    return (cuts[runs], float(100 * (1 - missed))) if runs in cuts else (None, None)


def intervals(runs, runs_max, figures, kind):
    """Of the median of the runs' own percentiles, and the figure itself; by the key of summary.json."""
    found = {}
    for name in INTERVALS[kind]:
        own = []
        for run in runs:
            rank = max(math.ceil(PERCENTILES[name] * len(run)), 1)
            if rank < len(run):
                own.append(int(numpy.sort(run)[rank - 1]) / 1e3)
        cut_off, _ = cut(len(runs), runs_max)
        if cut_off is not None and len(own) == len(runs) and figures[name] is not None:
            own.sort()
            low, high = own[cut_off], own[-1 - cut_off]
            if high >= NEVER / 1e3:
                continue
            found[f"{kind[:-3]}_{name}_interval_us"] = [min(low, figures[name]), max(high, figures[name])]
    return found


def is_same(here, there):
    """Means, and times that are counted from another, to rounding."""
    if isinstance(here, float) and isinstance(there, float):
        return math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(here, dict) and isinstance(there, dict):
        return here.keys() == there.keys() and all(is_same(here[key], there[key]) for key in here)
    if isinstance(here, (list, tuple)) and isinstance(there, (list, tuple)):
        return len(here) == len(there) and all(map(is_same, here, there))
    return here == there


class Run:
    """The messages of one run that came to their end, in the order of their numbers."""

    def __init__(self, number, workload, params, has_loans, ping, pong):
        self.number, self.workload, self.has_rate = number, workload, params["rate_hz"] is not None
        # Of an imported trace only sending and taking are known.
        self.is_imported = params.get("imported", False)
        self.all = ping
        none = numpy.zeros(1, RECORD)
        if workload == "roundtrip":
            # Record i of either end is of one message.
            pong = numpy.concatenate([pong[: len(ping)], none.repeat(max(len(ping) - len(pong), 0))])
            came = ping["take_return_ns"] != 0
            self.ping, self.pong = ping[came], pong[came]
        elif workload == "publish":
            self.ping, self.pong = ping, none.repeat(len(ping))
        else:
            taken = pong[pong["take_return_ns"] != 0]
            taken = taken[numpy.argsort(taken["id"], kind="stable")]
            place = numpy.searchsorted(ping["id"], taken["id"])
            known = place < len(ping)
            known[known] = ping["id"][place[known]] == taken["id"][known]
            self.ping, self.pong = ping[place[known]], taken[known]
        self.from_due = workload in ("stream", "replay") and self.has_rate
        self.begin = signed(self.ping["intended_ns" if self.from_due else "publish_entry_ns"])
        ends = {"roundtrip": (self.ping, "take_return_ns"), "publish": (self.ping, "publish_return_ns")}
        end, name = ends.get(workload, (self.pong, "take_return_ns"))
        self.latency = signed(end[name]) - self.begin
        lean = self.ping["flags"] & LEAN != 0
        any_lean = workload == "roundtrip" and (ping["flags"] & LEAN != 0).any()
        self.counted = lean if any_lean else numpy.ones(len(self.ping), bool)
        self.stamped = numpy.ones(len(self.ping), bool)
        self.has_loans = True
        if workload == "roundtrip":
            self.stamped = ~lean & (self.pong["flags"] & LEAN == 0) & (self.pong["take_return_ns"] != 0)
            self.has_loans = has_loans and bool((ping["loan_ns"] | ping["fill_ns"]).any())

    def jitter_us(self):
        """The mean difference between a latency and the one before; None without two."""
        latencies = self.latency[numpy.argsort(self.begin, kind="stable")]
        return float(numpy.abs(numpy.diff(latencies)).mean()) / 1e3 if len(latencies) > 1 else None

    def parts(self):
        """Of each stamped message, by stage; whether each stage passes before the latency begins,
        None of those that are not measured."""
        ping, pong = self.ping[self.stamped], self.pong[self.stamped]
        found = dict.fromkeys(STAGES, numpy.zeros(len(ping), numpy.int64))
        at = self.begin[self.stamped]

        def until(stage, moment):
            nonlocal at
            found[stage] = moment - at
            at = moment

        def travel(published, taken, back):
            waits = taken["wake_ns"] != 0
            end = signed(taken["take_return_ns"])
            awake = numpy.where(waits, signed(taken["wake_ns"]), end)
            until("publish" + back, numpy.maximum(numpy.minimum(signed(published), awake), at))
            for stage, of, moment in [("wake", waits, awake), ("take", waits, end), ("wake_and_take", ~waits, end)]:
                until(stage + back, numpy.where(of, moment, at))

        stamp, due = signed(ping["publish_entry_ns"]), signed(ping["intended_ns"])
        loan, fill = signed(ping["loan_ns"]), signed(ping["fill_ns"])
        before = set()
        if self.workload == "roundtrip":
            before.add("lateness")
            found["lateness"] = numpy.maximum(stamp - due, 0)
            if self.has_loans:
                until("loan", numpy.maximum(stamp + loan, at))
                until("fill", numpy.maximum(stamp + loan + fill, at))
        elif self.from_due:
            until("lateness", numpy.maximum(stamp - fill - loan, at))
            until("loan", numpy.maximum(stamp - fill, at))
            until("fill", numpy.maximum(stamp, at))
        else:
            before |= {"lateness", "loan", "fill"}
            found |= {"lateness": numpy.maximum(stamp - fill - loan - due, 0), "loan": loan, "fill": fill}
        travel(ping["publish_return_ns"], pong, "")
        measured = {"publish"} | ({"lateness"} if self.has_rate else set())
        measured |= {stage for stage in ("loan", "fill") if (found[stage] > 0).any()}
        ends = [(self.pong[self.pong["take_return_ns"] != 0], "")]
        if self.workload == "roundtrip":
            travel(pong["publish_return_ns"], ping, "_back")
            measured.add("publish_back")
            ends.append((self.ping, "_back"))
        for records, back in ends:
            waits = records["wake_ns"] != 0
            if waits.any():
                measured |= {"wake" + back, "take" + back}
            if (~waits & (records["flags"] & LEAN == 0)).any():
                measured.add("wake_and_take" + back)
        return found, {stage: stage in before for stage in measured}


def stages(runs):
    """Means of the parts of all stamped messages, and of those above their own 99th percentile."""
    limit = distribution([run.latency[run.stamped] for run in runs])["p99"] if any(
        run.stamped.any() for run in runs) else None
    sums = {name: dict.fromkeys(STAGES, 0) for name in ("all", "slow")}
    counts, is_before = {"all": 0, "slow": 0}, {}
    for run in runs:
        parts, measured = run.parts()
        is_before = measured | is_before
        latency = run.latency[run.stamped]
        slow = latency > round(limit * 1e3) if limit is not None else numpy.zeros(len(latency), bool)
        for name, chosen in [("all", numpy.ones(len(latency), bool)), ("slow", slow)]:
            counts[name] += int(chosen.sum())
            for stage in STAGES:
                sums[name][stage] += int(parts[stage][chosen].sum())
    if not counts["all"]:
        return None

    def mean(name, stage):
        return sums[name][stage] / counts[name] / 1e3 if counts[name] else None

    return {
        "messages": counts["all"],
        "slow_messages": counts["slow"],
        "parts": [{"stage": stage, "is_before": is_before[stage], "mean_us": mean("all", stage),
                   "slow_us": mean("slow", stage)} for stage in STAGES if stage in is_before],
    }


def slowest(runs, divides):
    """The ten slowest of those that percentiles are of, the slowest first."""
    found = []
    for run in runs:
        order = numpy.flatnonzero(run.counted)
        order = order[numpy.argsort(-run.latency[order], kind="stable")][:SLOWEST]
        found += [(int(run.latency[place]), run, int(place)) for place in order]
    found.sort(key=lambda one: -one[0])
    return [one_of_the_slowest(run, place, divides) for _, run, place in found[:SLOWEST]]


def one_of_the_slowest(run, place, divides):
    ping, pong = run.ping[place], run.pong[place]
    cpus = [ping["publish_cpu"]]
    if pong["take_return_ns"]:
        cpus.append(pong["take_cpu"])
    if run.workload == "roundtrip":
        cpus.append(ping["take_cpu"])
    found = {
        "run": run.number,
        "id": int(ping["id"]),
        "at_s": float((run.begin[place] - run.begin.min()) * 1e-9),
        "us": int(run.latency[place]) / 1e3,
        "cpus": [] if run.is_imported else list(map(int, cpus)),
    }
    if divides is not None:
        found["parts"] = []
        if divides and run.stamped[place]:
            parts, measured = run.parts()
            at = int(run.stamped[:place].sum())
            found["parts"] = [[stage, int(parts[stage][at]) / 1e3] for stage in STAGES if stage in measured]
    return found


def timeline(run, record_every):
    """Windows with their percentiles, and the map of time and latency, of the first run that counts."""
    if not len(run.begin):
        return None
    since = run.begin - run.begin.min()
    duration = max(int(since.max()), 1)
    number = min(max(len(since) // WINDOW_MESSAGES_MIN, 1), PARTS)

    def part(parts):
        return numpy.minimum((since / duration * parts).astype(int), parts - 1)

    windows = []
    for window in range(number):
        inside = part(number) == window
        of = distribution([run.latency[inside & run.counted]]) if (inside & run.counted).any() else {}
        # Once, however many subscribers took it.
        messages = int(inside.sum()) if run.workload == "roundtrip" else len(set(run.ping["id"][inside]))
        rate = messages * record_every / (duration * 1e-9 / number)
        windows.append({"rate_per_s": rate, **{f"{name}_us": of.get(name) for name in ("p50", "p99", "max")}})
    rows = (ROWS_PER_DECADE * numpy.log10(numpy.maximum(run.latency, 1)) + 1e-9).astype(int)
    fields, counts = numpy.unique(
        numpy.stack([part(PARTS), rows])[:, run.counted], axis=1, return_counts=True)
    fields = [{"column": int(column), "row": int(row), "count": int(count)}
              for column, row, count in zip(*fields, counts)]
    return {"run": run.number, "duration_s": duration * 1e-9, "windows": windows,
            "map": {"columns": PARTS, "fields": fields}}


def seconds(run, record_every):
    """Rows of a second each, as RoundtripPing prints them; of round trips of two seconds or more."""
    if run.workload != "roundtrip" or not len(run.all):
        return []
    entry = signed(run.ping["publish_entry_ns"])
    second = (entry - int(run.all["publish_entry_ns"][0])) // 10**9
    rows = []
    for number in numpy.unique(second):
        inside = second == number
        counted = inside & run.counted
        if not counted.any():
            continue
        waited = inside & (run.ping["wake_ns"] != 0)
        read = (signed(run.ping["take_return_ns"]) - signed(run.ping["wake_ns"]))[waited]
        rows.append({
            "second": int(number) + 1,
            "count": int(inside.sum()) * record_every,
            "round_trip_us": distribution([run.latency[counted]]),
            "write_us": distribution([(signed(run.ping["publish_return_ns"]) - entry)[counted]]),
            "read_us": distribution([read]) if len(read) else None,
        })
    return rows if len(rows) > 1 else []


def check_details(cell, detail, runs, record_every):
    """What differs of what plots are drawn from; empty if nothing does."""
    workload = cell.get("workload", "roundtrip")
    if workload == "flood" or not runs:
        return {}
    # Of two hosts' clocks a report compares the stamps first; what became of parts is not known here.
    is_known = cell["topology"] != "two-hosts" or "clock" not in cell and cell.get("one_way_us")
    divides = workload in DIVIDED and not runs[0].is_imported if is_known else None
    found = {"slowest": slowest(runs, divides), "timeline": timeline(runs[0], record_every),
             "seconds": seconds(runs[0], record_every)}
    if divides is not None:
        found["stages"] = stages(runs) if divides else None
    keys = found["slowest"][0].keys() if found["slowest"] else []
    there = {
        "stages": detail.get("stages"),
        "slowest": [{key: slow[key] for key in keys} for slow in detail.get("slowest", [])],
        "timeline": detail.get("timeline"),
        "seconds": detail["seconds"],
    }
    if there["timeline"]:
        there["timeline"] = {key: there["timeline"][key] for key in found["timeline"] or {}}
    return {name: (found[name], there[name]) for name in found if not is_same(found[name], there[name])}


def figures_of_run(workload, run, values, cell):
    """Of one run, as figures.parquet and details.json.zst have them; a figure is absent where it is withheld."""
    ping, pong = run["ping"], run["pong"]
    measured_s = (ping["end_ns"] - ping["begin_ns"]) * 1e-9
    figures = {"sent": ping["sent"]}
    if "startup_ms" in run:
        figures["startup_ms"] = run["startup_ms"]
    for name, quantile in (("p50_us", 0.5), ("p99_us", 0.99)):
        rank = max(math.ceil(quantile * len(values)), 1)
        if len(values) >= (BEYOND_MIN if quantile == 0.5 else rank + BEYOND_MIN):
            value = numpy.partition(values, rank - 1)[rank - 1]
            figures[name] = None if value == NEVER else int(value) / 1e3
    due = ping["sent"] * (1 if workload == "roundtrip" else cell["params"]["subscribers"])
    taken = ping["received"] if workload == "roundtrip" else pong["received"]
    # Not every imported trace shows what was lost.
    if workload != "roundtrip" and "lost" in cell:
        figures["lost"] = max(due - taken, 0)
    if run.get("observation"):
        memory = [process["pss_bytes"] for process in run["observation"]["processes"]]
        figures |= {"pss_bytes": sum(memory)}
        own = {name: end["cpu_ns"] for name, end in (("ping", ping), ("pong", pong)) if end.get("cpu_ns") is not None}
        # Of several processes of a role the first has the account of all.
        part = min(1.0, measured_s * 1e9 / max(run["observation"]["wall_ns"], 1))
        cpu_ns = 0
        for process in run["observation"]["processes"]:
            role, _, further = process["name"].partition("-")
            cpu_ns += process["cpu_ns"] * part if role not in own else 0 if further else own[role]
        if ping["sent"]:
            figures["cpu_us_per_message"] = cpu_ns / 1e3 / ping["sent"]
    return figures


def check_runs(detail, found):
    """What differs of the figures of single runs, `found` by the order of the run."""
    there = {run["order"]: run["figures"] for run in detail["runs"]}
    return {f"figures of run {order}": (figures, there[order]) for order, figures in found.items()
            if not is_same(figures, {name: there[order].get(name) for name in figures})
            or not figures.keys() <= there[order].keys()}


def used(cell, runs):
    """Valid runs, or, of a cell without one, all that came to their end."""
    numbers = {int(reason.split(":")[0].split()[1]) for reason in cell["invalid_reasons"]
               if reason.startswith("run ")}
    ended = [run for run in runs if "failure" not in run]
    valid = [run for run in ended if run["repeat"] + 1 not in numbers]
    return valid if cell["valid"] else ended


def has_one_clock(cell):
    """On one host, or of ping's clock alone, or in namespaces of one machine, which share its clock."""
    shared = "clock" not in cell and cell.get("one_way_us") is not None
    return cell["topology"] != "two-hosts" or cell.get("workload", "roundtrip") in QUANTITIES or shared


def check(folder, cell, detail, scenario, has_loans, runs):
    """What differs; empty if nothing does."""
    workload = cell.get("workload", "roundtrip")
    pooled, sent, taken, own, samples_here, singles = [], 0, 0, [], 0, {}
    for run in used(cell, runs):
        ping, pong = samples(folder, run, "ping"), samples(folder, run, "pong")
        values, taken_here = latencies(workload, cell["params"]["rate_hz"], ping, pong)
        pooled.append(with_lost(workload, cell["params"]["subscribers"], run, values))
        samples_here += len(values)
        figures = singles[run["order"]] = figures_of_run(workload, run, pooled[-1], cell)
        own.append(Run(run["repeat"] + 1, workload, cell["params"], has_loans, ping, pong))
        if "jitter_us" in cell:
            figures["jitter_us"] = own[-1].jitter_us()
        # A trace may only have the numbers of messages that were lost.
        sent += run["ping"]["sent"] if own[-1].is_imported else len(ping)
        taken = None if taken_here is None else taken + taken_here
    found = {"runs": len(pooled), "samples": samples_here}
    there = {name: cell[name] for name in found}
    record_every = scenario["workload"].get("record_every", 1)
    keeps_all = record_every == 1 and workload != "flood"
    if taken is not None and keeps_all:
        takers = 1 if workload == "roundtrip" else cell["params"]["subscribers"]
        found["sent"], there["sent"] = sent, cell["sent"]
        if "lost" in cell:
            found["lost"], there["lost"] = sent * takers - taken, cell["lost"]
    kind = QUANTITIES.get(workload, "one_way_us")
    figures = distribution(pooled)
    found |= figures
    there |= cell[kind]
    runs_max = (scenario["plan"].get("precision") or {}).get("runs_max")
    level = cut(len(pooled), runs_max)[1]
    found |= {"interval_level_percent": level} | intervals(pooled, runs_max, figures, kind)
    keys = [f"{kind[:-3]}_{name}_interval_us" for name in INTERVALS[kind]]
    found = dict.fromkeys(keys) | found
    there |= {name: cell.get(name) for name in keys + ["interval_level_percent"]}
    differs = {name: (found[name], there[name]) for name in found
               if not is_same(found[name], there[name])}
    differs |= check_runs(detail, singles)
    differs |= check_load(folder, cell, used(cell, runs))
    return differs | check_details(cell, detail, own, record_every), found


def check_load(folder, cell, runs):
    """What differs of the load beside the messages."""
    if "load" not in cell:
        return {}
    found, pooled = dict.fromkeys(("sent", "received", "lost"), 0), []
    for run in runs:
        ping, pong = samples(folder, run, "load-ping"), samples(folder, run, "load-pong")
        values, taken = latencies("stream", cell["load"]["rate_hz"], ping, pong)
        pooled.append(with_lost("stream", 1, run["load"], values))
        for name, count in [("sent", len(ping)), ("received", taken), ("lost", len(ping) - taken)]:
            found[name] += count
    found["one_way_us"] = distribution(pooled)
    return {f"load {name}": (found[name], cell["load"][name]) for name in found
            if not is_same(found[name], cell["load"][name])}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--cells", type=int, default=10, help="how many are drawn")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = options.parse_args()

    summary = json.loads((given.folder / "summary.json").read_text())
    plan = json.loads((given.folder / "plan.json").read_text())
    packed = (given.folder / "details.json.zst").read_bytes()
    details = json.loads(zstandard.ZstdDecompressor().stream_reader(packed).read())
    loans = {system["name"]: system["loans"] for system in summary["systems"]}
    lines = (given.folder / "runs.jsonl").read_text().splitlines()
    # Of a run that was repeated, the last counts.
    runs = {run["order"]: run for run in map(json.loads, lines)}
    runs = [runs[order] for order in sorted(runs)]

    cells = [index for index, cell in enumerate(summary["cells"])
             if cell["samples"] and cell.get("workload") != "startup" and has_one_clock(cell)]
    left_out = sum(not has_one_clock(cell) for cell in summary["cells"])
    if left_out:
        print(f"{left_out} cells whose messages go one way between two hosts' clocks are left out")
    drawn = random.Random(given.seed).sample(cells, min(given.cells, len(cells)))
    print(f"seed {given.seed}: {len(drawn)} of {len(cells)} cells")
    failed = 0
    for index in drawn:
        cell, planned = summary["cells"][index], plan["cells"][index]
        name = [cell["scenario"], cell["system"], cell["tuning"], json.dumps(cell["params"])]
        own = [run for run in runs if run["cell"] == index]
        scenario = plan["scenarios"][planned["scenario"]]
        differs, found = check(given.folder, cell, details[index], scenario, loans[cell["system"]], own)
        print("differs" if differs else "same   ", *name, differs or found)
        failed += bool(differs)
    print(f"{len(drawn) - failed} same, {failed} different")
    return 1 if failed or not drawn else 0


if __name__ == "__main__":
    sys.exit(main())
