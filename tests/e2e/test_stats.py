#!/usr/bin/env python3
"""The same samples go to a real Prometheus (per-step statistics on) and to Varve; then stats=all of the same queries
must count the same samples, in all and at every step, and name the same timings. peakSamples is each engine's own.
"""
import os
import shutil
import struct
import sys
import tempfile
import time
import urllib.request

import peerlib

sys.path.insert(0, os.path.join(peerlib.ROOT, "tests/crash"))
import crashlib  # pylint: disable=wrong-import-position

STEP = 15
POINTS = 60
QUERIES = [
    "a_total", "a_total offset 2m", "up_down", "gaps", "sum(a_total)", "sum by (i) (rate(a_total[1m]))",
    "rate(a_total[5m]) / rate(a_total[1m])", "a_total + on (i) group_left () gaps", "a_total @ end()",
    "sum(rate(a_total[2m] @ start())) + a_total", "avg_over_time(gaps[3m])", "count_over_time(gaps[50s] offset 30s)",
    "max_over_time(rate(a_total[1m])[5m:30s])", "sum_over_time(sum(max_over_time(min_over_time(gaps[1m])[3m:20s]))[4m:1m])",
    "absent(nothing)", "absent_over_time(gaps[1m])", "absent_over_time(gaps{i='9'}[1m])", "timestamp(a_total)",
    "topk(2, a_total)", "quantile_over_time(0.5, a_total[2m])", "label_replace(gaps, 'x', '$1', 'i', '(.)')",
    "histogram_quantile(0.9, rate(native[2m]))", "native", "rate(native[3m])", "histogram_count(native)",
    "histogram_avg(rate(native[2m]))", "sum(native)", "count_over_time(native[2m])", "vector(1)", "1", "time()",
    "predict_linear(a_total[2m], 60)", "scalar(up_down) + a_total", "a_total and on (i) gaps", "-gaps",
    "a_total > bool 5 or gaps unless on (i) up_down", "{__name__=~'.+'}", "last_over_time(gaps[10m])", "sort(a_total)",
    "quantile_over_time(scalar(up_down) / 100, a_total[2m] @ end())",
]
INSTANT_ONLY = ["a_total[5m]", "native[2m]", "gaps[3m:30s]", "rate(a_total[1m])[3m:30s]", "a_total[1m] offset 1m"]


def histogram(t, n):
    """A native histogram of remote write 1.0: three buckets of n, a zero bucket, a gap."""
    def zigzag(v):
        return crashlib.varint((v << 1) ^ (v >> 63))

    spans = [crashlib.varint(1 << 3) + zigzag(offset) + crashlib.varint(2 << 3) + crashlib.varint(length)
             for offset, length in ((0, 2), (3, 1))]
    deltas = zigzag(n) + zigzag(0) + zigzag(0)
    message = (crashlib.varint(1 << 3) + crashlib.varint(4 * n) + b"\x19" + struct.pack("<d", n * 2.5)
               + crashlib.varint(4 << 3) + zigzag(0) + b"\x29" + struct.pack("<d", 1e-3)
               + crashlib.varint(6 << 3) + crashlib.varint(n)
               + b"".join(crashlib.field(11, span) for span in spans) + crashlib.field(12, deltas)
               + crashlib.varint(15 << 3) + crashlib.varint(t))
    return crashlib.field(4, message)


def request(now):
    """All series as one body."""
    times = [(now - (POINTS - i) * STEP) * 1000 for i in range(POINTS)]
    series = [({"__name__": "a_total", "i": str(i)}, [(t + 7 * i, float(k * (i + 1))) for k, t in enumerate(times)])
              for i in range(4)]
    series.append(({"__name__": "up_down"}, [(t, float(k % 7)) for k, t in enumerate(times)]))
    stale = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
    gaps = [(t, stale if k % 11 == 5 else float(k)) for k, t in enumerate(times) if k % 5 < 3 or k > 40]
    series.append(({"__name__": "gaps", "i": "1"}, gaps))
    body = crashlib.write_request(series)
    native = crashlib.field(1, crashlib.field(1, b"__name__") + crashlib.field(2, b"native"))
    return body + crashlib.field(1, native + b"".join(histogram(t, k + 1) for k, t in enumerate(times)))


def write(port, body):
    """Sends it by remote write 1.0."""
    post = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/write", crashlib.snappy_literals(body),
                                  crashlib.REMOTE_WRITE_HEADERS)
    with urllib.request.urlopen(post, timeout=20) as answer:
        if answer.status // 100 != 2:
            raise RuntimeError(f"write: {answer.status}")


def difference(expected, got):
    """None if both statistics say the same."""
    for answer in (expected, got):
        if "data" not in answer:
            return str(answer)[:300]
    a, b = expected["data"]["stats"], got["data"]["stats"]
    if sorted(a["timings"]) != sorted(b["timings"]):
        return f"timings: {sorted(a['timings'])} expected, got {sorted(b['timings'])}"
    for key in ("totalQueryableSamples", "totalQueryableSamplesPerStep"):
        if a["samples"].get(key) != b["samples"].get(key):
            return f"{key}: {str(a['samples'].get(key))[:400]} expected, got {str(b['samples'].get(key))[:400]}"
    return None


def run(processes, folder, peers):
    """The whole test; (passed, failed)."""
    ports = dict(zip(["prometheus", "varve"], peerlib.free_ports(2)))
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write("global: {}\n")
    processes.start("varve", [peerlib.VARVE, "serve", f"--storage.path={folder}/varve", "--storage.min-free-disk=0",
                              f"--web.listen-address=127.0.0.1:{ports['varve']}"])
    processes.start("prometheus", [peers["prometheus"], f"--config.file={config}", "--log.level=warn",
                                   f"--storage.tsdb.path={folder}/prometheus", "--web.enable-remote-write-receiver",
                                   "--enable-feature=promql-per-step-stats,native-histograms",
                                   f"--web.listen-address=127.0.0.1:{ports['prometheus']}"])
    now, passed, failed = int(time.time()), 0, 0
    for name, port in ports.items():
        peerlib.wait_until(f"{name} to be ready", peerlib.Api(port).ready, 30, processes)
        write(port, request(now))
    reference, tested = peerlib.Api(ports["prometheus"]), peerlib.Api(ports["varve"])
    for flushed in (False, True):
        if flushed:
            peerlib.fetch(tested.base + "/internal/force_flush")
        for query in QUERIES + INSTANT_ONLY:
            calls = [("query", {"time": str(now - 20)})]
            if query not in INSTANT_ONLY:
                calls.append(("query_range", {"start": str(now - 700), "end": str(now - 13), "step": "47"}))
            for path, arguments in calls:
                arguments.update(query=query, stats="all")
                fault = difference(reference.get(path, **arguments), tested.get(path, **arguments))
                passed += fault is None
                failed += fault is not None
                if fault:
                    print(f"FAILED: {path} {query}{' (flushed)' if flushed else ''}\n    {fault}")
    return passed, failed


def main():
    """Runs it in a folder of its own."""
    peers = peerlib.find_peers(["prometheus"])
    folder = tempfile.mkdtemp(prefix="varve-stats-")
    processes = peerlib.Processes(folder)
    try:
        passed, failed = run(processes, folder, peers)
    except RuntimeError as error:
        print(f"FAILED: {error}")
        passed, failed = 0, 1
    finally:
        processes.stop_all()
    shutil.rmtree(folder)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
