#!/usr/bin/env python3
"""A real Prometheus scrapes Varve's /federate, once as text and once as protobuf with native histograms.

Then it answers queries over what it got: values, labels and timestamps are those that were written to Varve; what
ended there is not taken over; histograms come by protobuf only.
"""
import os
import shutil
import struct
import sys
import tempfile
import time

import peerlib

sys.path.insert(0, os.path.join(peerlib.ROOT, "tests", "crash"))
import crashlib  # noqa: E402  remote write requests

STALE = struct.unpack("<d", struct.pack("<Q", 0x7ff0000000000002))[0]
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - &job
    job_name: text
    honor_labels: true
    metrics_path: /federate
    params: {{"match[]": ['{{__name__=~"fed.*"}}', '{{job="app"}}']}}
    scrape_protocols: [PrometheusText1.0.0, PrometheusText0.0.4]
    static_configs: [{{targets: ["127.0.0.1:{varve}"]}}]
    metric_relabel_configs: [{{target_label: way, replacement: text}}]
  - <<: *job
    job_name: protobuf
    scrape_protocols: [PrometheusProto]
    metric_relabel_configs: [{{target_label: way, replacement: protobuf}}]
"""


def histogram_series(name, t_ms):
    """One series with a native histogram: 1 in the zero bucket, then 2 and 3; sum 12.5."""
    field, varint = crashlib.field, crashlib.varint
    double = lambda number, v: bytes([number << 3 | 1]) + struct.pack("<d", v)
    whole = lambda number, v: varint(number << 3) + varint(v)
    span = whole(1, 0) + whole(2, 2)
    histogram = (whole(1, 6) + double(3, 12.5) + whole(4, 0) + double(5, 0.001) + whole(6, 1) + field(11, span)
                 + field(12, varint(4) + varint(2)) + whole(15, t_ms))
    return field(1, field(1, field(1, b"__name__") + field(2, name.encode())) + field(4, histogram))


def write(varve, message):
    """One remote write request."""
    status, body = varve.request("POST", "/api/v1/write", crashlib.snappy_literals(message),
                                 crashlib.REMOTE_WRITE_HEADERS)[:2]
    if status >= 300:
        raise AssertionError(f"write: {status} {body}")


class Check:
    """Counts."""

    def __init__(self):
        self.passed = self.failed = 0

    def equal(self, got, want, what):
        """One comparison."""
        if got == want:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}: {got} != {want}", flush=True)


def compare(check, prometheus, t_ms):
    """What the Prometheus knows about each way."""
    def rows(query):
        return prometheus.get("query", query=query)["data"]["result"]
    for way in ("text", "protobuf"):
        values = {row["metric"].get("i"): row["value"][1] for row in rows(f'fed_value{{way="{way}"}}')}
        check.equal(values, {"1": "1.5", "2": "+Inf", "3": "NaN"}, f"{way}: values")
        times = {row["value"][1] for row in rows(f'timestamp(fed_value{{way="{way}"}})')}
        check.equal({round(float(t) * 1000) for t in times}, {t_ms}, f"{way}: timestamps")
        labels = [{k: v for k, v in row["metric"].items() if k != "way"} for row in rows(f'{{job="app",way="{way}"}}')]
        check.equal(labels, [{"__name__": "other", "job": "app"}], f"{way}: labels are the written ones")
        check.equal(rows(f'fed_ended{{way="{way}"}}'), [], f"{way}: what ended")
        name = '"fed.dotted","k8s.ns"="ä"' if way == "text" else '__name__="fed_dotted",k8s_ns="ä"'  # as it asks for
        check.equal([row["value"][1] for row in rows(f'{{{name},way="{way}"}}')], ["7"], f"{way}: UTF-8 names")
    counts = [(row["metric"]["way"], row["value"][1]) for row in rows("histogram_count(fed_histogram)")]
    check.equal(counts, [("protobuf", "6")], "histograms come by protobuf")
    check.equal([row["value"][1] for row in rows("histogram_sum(fed_histogram)")], ["12.5"], "histogram's sum")
    check.equal([row["value"][1] for row in rows("histogram_fraction(0.001, 1, fed_histogram)")], [str(2 / 6)],
                "histogram's buckets")


def main():
    peers = peerlib.find_peers(["prometheus"])
    folder = tempfile.mkdtemp(prefix="varve-federate-")
    processes, check = peerlib.Processes(folder), Check()
    varve = crashlib.Server(os.path.join(folder, "varve"))
    try:
        port, = peerlib.free_ports(1)
        varve.start()
        t_ms = int(time.time() * 1000) - 2000
        series = [({"__name__": "fed_value", "i": str(i)}, [(t_ms, v)])
                  for i, v in ((1, 1.5), (2, float("inf")), (3, float("nan")))]
        series += [({"__name__": "other", "job": "app"}, [(t_ms, 1)]),
                   ({"__name__": "fed.dotted", "k8s.ns": "ä"}, [(t_ms, 7)]),
                   ({"__name__": "fed_ended"}, [(t_ms - 1000, 1), (t_ms, STALE)])]
        write(varve, crashlib.write_request(series) + histogram_series("fed_histogram", t_ms))
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(varve=varve.port))
        processes.start("prometheus", [peers["prometheus"], f"--config.file={config}", "--log.level=warn",
                                       f"--storage.tsdb.path={folder}/prometheus",
                                       "--enable-feature=native-histograms", f"--web.listen-address=127.0.0.1:{port}"])
        prometheus = peerlib.Api(port)
        peerlib.wait_until("Prometheus to be ready", prometheus.ready, 30, processes)
        peerlib.wait_until("both ways to be scraped", lambda: prometheus.scalar("count(up == 1)") == 2, 30, processes)
        compare(check, prometheus, t_ms)
    finally:
        processes.stop_all()
        varve.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{check.passed} passed, {check.failed} failed, 0 skipped")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
