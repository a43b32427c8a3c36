#!/usr/bin/env python3
"""Are the figures of a report those of the samples?

Recomputes cells drawn at random from the sample files of a results folder, as docs/results.md
describes them, with numpy and nothing of Myelin's, and compares them with summary.json: counts,
percentiles and their intervals exactly, means to rounding. Prints a line for each cell; exits with 1 if one differs.

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
BEYOND_MIN = 10
LEVEL_MIN = 93.75
INTERVALS = {
    "round_trip_us": ["p50", "p99", "p999"],
    "one_way_us": ["p50", "p99", "p999"],
    "write_us": ["p50"],
}
LEAN = 8
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
    from_due = workload == "stream" and rate_hz is not None
    begin = signed(sent["intended_ns" if from_due else "publish_entry_ns"])
    return signed(taken["take_return_ns"][known]) - begin, len(taken)


def distribution(runs):
    """As summary.json has it, of all runs; nearest rank, null with fewer than ten values beyond, or
    where one of several runs alone reaches it; of a median, null with fewer than ten values."""
    values = numpy.sort(numpy.concatenate(runs))
    largest = sorted(run.max() for run in runs if len(run))
    found = {
        "min": int(values[0]) / 1e3,
        "mean": float(values.astype(numpy.float64).mean()) / 1e3,
        "max": int(values[-1]) / 1e3,
    }
    for name, quantile in PERCENTILES.items():
        rank = math.ceil(quantile * len(values))
        value = values[max(rank, 1) - 1]
        if name == "p50":
            borne = len(values) >= BEYOND_MIN
        else:
            shared = len(largest) < 2 or value <= largest[-2]
            borne = shared and len(values) >= rank + BEYOND_MIN
        found[name] = int(value) / 1e3 if borne else None
    return found


def cut(runs):
    """How many runs are cut off at either end, and the level of what is left in per cent."""
    found = None, None
    for cut_off in range((runs + 1) // 2):
        missed = sum(math.comb(runs, heads) for heads in range(cut_off + 1))
        level = 100 * (1 - 2 * missed / 2**runs)
        if level < LEVEL_MIN:
            break
        found = cut_off, level
    return found


def intervals(runs, figures, kind):
    """Of the median of the runs' own percentiles, and the figure itself; by the key of summary.json."""
    found = {}
    for name in INTERVALS[kind]:
        own = []
        for run in runs:
            rank = max(math.ceil(PERCENTILES[name] * len(run)), 1)
            if rank < len(run):
                own.append(int(numpy.sort(run)[rank - 1]) / 1e3)
        cut_off, _ = cut(len(runs))
        if cut_off is not None and len(own) == len(runs) and figures[name] is not None:
            own.sort()
            low, high = own[cut_off], own[-1 - cut_off]
            found[f"{kind[:-3]}_{name}_interval_us"] = [min(low, figures[name]), max(high, figures[name])]
    return found


def is_same(name, here, there):
    if name == "mean":
        return math.isclose(here, there, rel_tol=1e-9)
    return here == there


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


def check(folder, cell, scenario, runs):
    """What differs; empty if nothing does."""
    workload = cell.get("workload", "roundtrip")
    pooled, sent, taken = [], 0, 0
    for run in used(cell, runs):
        ping, pong = samples(folder, run, "ping"), samples(folder, run, "pong")
        values, taken_here = latencies(workload, cell["params"]["rate_hz"], ping, pong)
        pooled.append(values)
        sent += len(ping)
        taken = None if taken_here is None else taken + taken_here
    found = {"runs": len(pooled), "samples": sum(map(len, pooled))}
    there = {name: cell[name] for name in found}
    keeps_all = scenario["workload"].get("record_every", 1) == 1 and workload != "flood"
    if taken is not None and keeps_all:
        takers = 1 if workload == "roundtrip" else cell["params"]["subscribers"]
        found |= {"sent": sent, "lost": sent * takers - taken}
        there |= {name: cell[name] for name in ("sent", "lost")}
    kind = QUANTITIES.get(workload, "one_way_us")
    figures = distribution(pooled)
    found |= figures
    there |= cell[kind]
    level = cut(len(pooled))[1]
    found |= {"interval_level_percent": level} | intervals(pooled, figures, kind)
    keys = [f"{kind[:-3]}_{name}_interval_us" for name in INTERVALS[kind]]
    found = dict.fromkeys(keys) | found
    there |= {name: cell.get(name) for name in keys + ["interval_level_percent"]}
    return {name: (found[name], there[name]) for name in found
            if not is_same(name, found[name], there[name])}, found


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--cells", type=int, default=10, help="how many are drawn")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    given = options.parse_args()

    summary = json.loads((given.folder / "summary.json").read_text())
    plan = json.loads((given.folder / "plan.json").read_text())
    lines = (given.folder / "runs.jsonl").read_text().splitlines()
    # Of a run that was repeated, the last counts.
    runs = {run["order"]: run for run in map(json.loads, lines)}.values()

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
        differs, found = check(given.folder, cell, plan["scenarios"][planned["scenario"]], own)
        print("differs" if differs else "same   ", *name, differs or found)
        failed += bool(differs)
    print(f"{len(drawn) - failed} same, {failed} different")
    return 1 if failed or not drawn else 0


if __name__ == "__main__":
    sys.exit(main())
