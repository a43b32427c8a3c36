#!/usr/bin/env python3
"""Has the file of `myelin bench export` what the report was made from?

    exported.py samples.parquet summary.json

Counts and medians of every cell, from the file's own columns. Exits with 1 if one differs.
Needs polars.
"""

import json
import math
import sys

import polars


def median(values, lost=0):
    """Nearest rank; a lost message is above all others."""
    values = values.drop_nulls().sort()
    rank = math.ceil((len(values) + lost) / 2)
    return values[rank - 1] / 1e3 if rank <= len(values) else math.inf


def key(cell):
    params = cell["params"]
    names = ("payload_bytes", "rate_hz", "subscribers", "frame", "arrivals", "module")
    return (cell["scenario"], cell["system"], cell["tuning"], *(params.get(name) for name in names))


def main():
    table = polars.read_parquet(sys.argv[1])
    cells = {key(cell): cell for cell in json.load(open(sys.argv[2]))["cells"]}
    columns = ("scenario", "system", "tuning", "payload_bytes", "rate_hz", "subscribers", "frame",
               "arrivals", "module")
    differing, seen = 0, 0
    for own, rows in table.group_by(*columns):
        cell = cells[own]
        # Of a cell without a valid run the figures are those of the others.
        rows = rows.filter(polars.col("valid") == cell["valid"])
        latency = rows["latency_ns"].drop_nulls()
        there = cell.get("round_trip_us") or cell.get("one_way_us") or cell.get("write_us")
        found = {"samples": (len(latency), cell["samples"])}
        if there and there["p50"] is not None:
            # A publish call ends also if its message is lost later.
            lost = 0 if there is cell.get("write_us") else cell.get("lost", 0)
            found["p50"] = (median(latency, lost), there["p50"])
        if cell.get("write_us"):
            found["write p50"] = (median(per_message(rows)["write_ns"]), cell["write_us"]["p50"])
        if cell.get("lateness_us"):
            late = per_message(rows)["lateness_ns"]
            found["lateness max"] = (late.max() / 1e3, cell["lateness_us"]["max"])
        differs = {name: pair for name, pair in found.items() if pair[0] != pair[1]}
        if differs:
            print("differs", *own, differs)
        differing, seen = differing + bool(differs), seen + 1
    print(f"{seen - differing} of {len(cells)} cells as in the report")
    return 0 if seen == len(cells) and not differing else 1


def per_message(rows):
    """A message that several took has several rows."""
    return rows.unique(("order", "id"))


if __name__ == "__main__":
    sys.exit(main())
