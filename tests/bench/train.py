#!/usr/bin/env python3
"""Works a server through what servers do, for `make native`: the compiler learns from it which code is hot.

Remote write and text arrive, heads are flushed and merged, dashboards' queries, label calls and exports run.
The data come from a seed, so two trainings see the same.

    tests/bench/train.py BINARY [--rounds N]
"""
import argparse
import math
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
import crashlib

SERIES, STEP_MS, START = 400, 15_000, 1_700_000_000_000
LABELS = [{"__name__": name, "job": f"job{i % 4}", "instance": f"10.0.0.{i}:9100", "mode": f"m{i % 7}"}
          for name in ("load", "requests_total", "bytes_total", "up") for i in range(SERIES // 4)]
QUERIES = [
    "sum by (job) (rate(requests_total[5m]))",
    "avg_over_time(load[10m]) > 0.2",
    'topk(5, max by (instance) (load{job=~"job[12]"}))',
    "histogram_quantile(0.9, sum by (le) (rate(bytes_total[5m])))",
    "sum(increase(bytes_total[10m])) by (mode) / on (mode) count(up) by (mode)",
    'label_replace(up, "host", "$1", "instance", "(.*):.*")',
    "quantile_over_time(0.5, load[15m]) + stddev_over_time(load[15m])",
]


def value(i, t, rng, totals):
    """What series i reads at t: gauges that wander, counters, and mostly constant ones."""
    name = LABELS[i]["__name__"]
    if name == "load":
        return round(math.sin(t / 9e5 + i) + rng.random() / 8, 3)
    if name == "up":
        return 1.0
    totals[i] += rng.randrange(40) if name == "requests_total" else rng.random() * 1e5
    return totals[i]


def write(server, first, steps, rng, totals):
    """One request a few steps: remote write, every fourth as text."""
    for at in range(0, steps, 4):
        times = [first + (at + k) * STEP_MS for k in range(4)]
        rows = [(LABELS[i], [(t, value(i, t, rng, totals)) for t in times]) for i in range(SERIES)]
        if at % 16 == 12:
            text = "".join(
                "%s{job=\"%s\",instance=\"%s\",mode=\"%s\"} %r %d\n"
                % (labels["__name__"], labels["job"], labels["instance"], labels["mode"], v, t)
                for labels, samples in rows for t, v in samples)
            server.import_text(text)
        else:
            body = crashlib.snappy_literals(crashlib.write_request(rows))
            server.request("POST", "/api/v1/write", body, crashlib.REMOTE_WRITE_HEADERS)


def read(server, end):
    """What dashboards ask."""
    for query in QUERIES:
        server.get("/api/v1/query", query=query, time=end / 1000)
        server.get("/api/v1/query_range", query=query, start=(end - 3600_000) / 1000, end=end / 1000, step=30)
    server.get("/api/v1/series", **{"match[]": '{job="job1"}', "start": (end - 3600_000) / 1000, "end": end / 1000})
    server.get("/api/v1/labels")
    server.get("/api/v1/label/instance/values")
    server.get("/metrics")


def main():
    """All rounds, then a polite end: the profile is written at exit."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("binary")
    p.add_argument("--rounds", type=int, default=6)
    options = p.parse_args()
    room = tempfile.mkdtemp(prefix="varve-train-")
    server = crashlib.Server(os.path.join(room, "data"), ["--storage.retention=100y", "--log.level=warn"],
                             os.path.abspath(options.binary))
    rng, totals, at = random.Random(1), [0.0] * SERIES, START
    try:
        server.start()
        for number in range(options.rounds):
            write(server, at, 40, rng, totals)
            at += 40 * STEP_MS
            read(server, at)
            server.get("/internal/force_flush")
            if number % 3 == 2:
                server.get("/internal/force_merge")
        read(server, at)
        server.export('{job="job2"}')
        code = server.stop()
    finally:
        if server.alive():
            server.kill()
        shutil.rmtree(room)
    if code != 0:
        print(f"train: the server ended with {code}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
