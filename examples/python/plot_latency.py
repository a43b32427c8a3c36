"""Draws the percentiles of each cell of a results folder, on an axis of nines.

    myelin bench export results/MINE                    writes results/MINE/samples.parquet
    pip install polars numpy matplotlib
    python plot_latency.py results/MINE/samples.parquet latency.png

With pandas, `pandas.read_parquet(FILE)` gives the same columns; docs/reference/results.md describes them.
"""
import sys
import matplotlib.pyplot as plt
import numpy as np
import polars as pl

samples = pl.read_parquet(sys.argv[1]).filter(pl.col("valid")).drop_nulls("latency_ns")
for cell, rows in samples.group_by("system", "tuning", "point", maintain_order=True):
    one_in = np.geomspace(1, len(rows), 500)
    ns = np.quantile(rows["latency_ns"].to_numpy(), 1 - 1 / one_in)
    plt.loglog(one_in, ns / 1e3, label=" ".join(cell))
plt.xlabel("one message in so many is slower (100: p99)")
plt.ylabel("latency, µs")
plt.legend(fontsize="small", loc="upper left")
plt.savefig(sys.argv[2], dpi=150)
