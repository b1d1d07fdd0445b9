#!/usr/bin/env python3
"""A real Prometheus scrapes itself, a node exporter and Varve, and writes all of it to Varve by remote write.

Then both answer the same queries at the same past moments: the same series, timestamps and values (relative
difference 1e-12). Varve is killed (kill -9), started again, and must answer the same. At last vmagent writes to
it with its own zstd protocol and what it wrote is read back.
"""
import math
import os
import shutil
import signal
import sys
import tempfile
import time

import peerlib

SCRAPE_SECONDS = float(os.environ.get("E2E_SECONDS", "60"))
TOLERANCE = 1e-12

PROMETHEUS_CONFIG = """
global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: prometheus
    static_configs: [{{targets: ["127.0.0.1:{prometheus}"]}}]
  - job_name: node
    static_configs: [{{targets: ["127.0.0.1:{node}"], labels: {{zone: "ä/ö \\"quoted\\""}}}}]
  - job_name: varve
    static_configs: [{{targets: ["127.0.0.1:{varve}"]}}]
  - job_name: absent
    static_configs: [{{targets: ["127.0.0.1:1"]}}]
remote_write:
  - url: http://127.0.0.1:{varve}/api/v1/write
    queue_config: {{max_shards: 1, batch_send_deadline: 1s, min_backoff: 50ms, max_backoff: 500ms}}
"""

VMAGENT_CONFIG = """
global:
  scrape_interval: 1s
scrape_configs:
  - job_name: by-vmagent
    static_configs: [{{targets: ["127.0.0.1:{node}"]}}]
"""

# (expression, is the order of the answer part of it?)
QUERIES = [
    ("up", False),
    ("up == 0", False),
    ('{job="node"}', False),
    ('{__name__=~"node_.*_total", job="node"}', False),
    ('{job=~"prom.*|varve"}', False),
    ("scrape_samples_scraped", False),
    ("sum by (job) (scrape_samples_scraped)", False),
    ("rate(node_cpu_seconds_total[30s])", False),
    ("sum by (mode) (rate(node_cpu_seconds_total[20s]))", False),
    ("sum without (cpu) (increase(node_cpu_seconds_total[15s]))", False),
    ("irate(prometheus_http_requests_total[30s])", False),
    ("increase(node_network_receive_bytes_total[30s])", False),
    ("resets(process_cpu_seconds_total[40s])", False),
    ("changes(node_memory_MemFree_bytes[40s])", False),
    ("delta(node_memory_MemAvailable_bytes[20s])", False),
    ("idelta(go_goroutines[20s])", False),
    ("avg_over_time(node_load1[30s])", False),
    ("max_over_time(go_memstats_alloc_bytes[30s])", False),
    ("min_over_time(process_resident_memory_bytes[30s])", False),
    ("sum_over_time(up[30s])", False),
    ("count_over_time(node_load5[17s])", False),
    ("last_over_time(node_time_seconds[10s])", False),
    ("quantile_over_time(0.9, go_goroutines[30s])", False),
    ("present_over_time(up[10s])", False),
    ("absent(up{job='nobody'})", False),
    ("absent_over_time(nothing_here[10s])", False),
    ("histogram_quantile(0.9, sum by (le, handler) (rate(prometheus_http_request_duration_seconds_bucket[30s])))",
     False),
    ("sum(rate(prometheus_http_request_duration_seconds_sum[30s])) / "
     "sum(rate(prometheus_http_request_duration_seconds_count[30s]))", False),
    ("topk(3, node_filesystem_size_bytes)", False),
    ("sort_desc(sum by (__name__) ({__name__=~'go_memstats_.*_bytes', job='prometheus'}))", True),
    ("count_values('state', up)", False),
    ("quantile by (job) (0.5, scrape_duration_seconds)", False),
    ("node_filesystem_avail_bytes / node_filesystem_size_bytes * 100 > 1", False),
    ("node_memory_MemTotal_bytes - on (instance) node_memory_MemFree_bytes", False),
    ("up * on (instance, job) group_left (version) prometheus_build_info", False),
    ("up unless on (job) prometheus_build_info", False),
    ("label_replace(up, 'port', '$1', 'instance', '.*:(.*)')", False),
    ("label_join(node_uname_info, 'both', '-', 'sysname', 'machine')", False),
    ("max_over_time(rate(node_cpu_seconds_total{cpu='0'}[10s])[20s:5s])", False),
    ("node_load1 offset 10s", False),
    ("sum(node_cpu_seconds_total @ end()) - sum(node_cpu_seconds_total @ start())", False),
    ("deriv(node_time_seconds[20s])", False),
    ("clamp(node_load1, 0.1, 0.2) + ceil(node_load5) + abs(-node_load15)", False),
    ("timestamp(up) - time()", False),
    ("day_of_week(node_time_seconds) + hour(node_time_seconds)", False),
    ("scalar(count(up)) + vector(1)", False),
    ("group by (job) (up) and up", False),
    ("stddev by (job) (scrape_samples_scraped)", False),
]


class Comparison:
    """Two servers, what was compared, and the count of it."""

    def __init__(self, reference, tested):
        self.reference, self.tested = reference, tested
        self.passed = self.failed = 0

    def note(self, ok, what, detail=""):
        """Counts one check; failures are printed."""
        if ok:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED: {what}\n    {detail}", flush=True)

    def query(self, label, path, ordered, **parameters):
        """One query to both."""
        expected, got = self.reference.get(path, **parameters), self.tested.get(path, **parameters)
        difference = first_difference(expected, got, ordered)
        self.note(difference is None, f"{label}, {path} {parameters}", difference)

    def all_queries(self, label, at):
        """Each as instant and as range query; ends in the past, so that nothing changes any more."""
        for expression, ordered in QUERIES:
            self.query(label, "query", ordered, query=expression, time=f"{at:.3f}")
            self.query(label, "query_range", False, query=expression, start=f"{at - 40:.3f}", end=f"{at:.3f}", step="3")


def same_number(a, b):
    """Equal texts, or numbers within the tolerance."""
    if a == b:
        return True
    x, y = float(a), float(b)
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or math.isinf(y):
        return False
    return abs(x - y) <= TOLERANCE * max(abs(x), abs(y))


def points(series):
    """The [time, value] pairs of an instant or range series."""
    return series["values"] if "values" in series else [series["value"]]


def first_difference(expected, got, ordered):
    """None if both answers say the same, else a text."""
    if got.get("status") != expected.get("status"):
        return f"status: {expected.get('status')} expected, got {str(got)[:300]}"
    if expected["status"] != "success":
        return f"the reference failed: {expected}"
    a, b = expected["data"], got["data"]
    if a["resultType"] != b["resultType"]:
        return f"type: {a['resultType']} expected, got {b['resultType']}"
    if a["resultType"] in ("scalar", "string"):
        return None if same_number(a["result"][1], b["result"][1]) else f"{a['result']} expected, got {b['result']}"
    return first_series_difference(a["result"], b["result"], ordered)


def first_series_difference(expected, got, ordered):
    """Compares two vectors or matrices."""
    def key(series):
        return sorted(series["metric"].items())

    if ordered:  # equal values may stand in any order, so it is the values' order that counts
        values = [[points(series)[0][1] for series in side] for side in (expected, got)]
        if len(values[0]) != len(values[1]) or not all(map(same_number, *values)):
            return f"values in the order {values[0][:5]} expected, got {values[1][:5]}"
    expected, got = sorted(expected, key=key), sorted(got, key=key)
    wanted, given = [key(series) for series in expected], [key(series) for series in got]
    if wanted != given:
        missing = [k for k in wanted if k not in given][:2]
        extra = [k for k in given if k not in wanted][:2]
        return f"{len(wanted)} series expected, got {len(given)}; missing {missing}; not expected {extra}"
    for a, b in zip(expected, got):
        times_a, times_b = [t for t, _ in points(a)], [t for t, _ in points(b)]
        if times_a != times_b:
            return f"{a['metric']}: timestamps {times_a[:5]}... expected, got {times_b[:5]}..."
        for (t, x), (_, y) in zip(points(a), points(b)):
            if not same_number(x, y):
                return f"{a['metric']} at {t}: {x} expected, got {y}"
    return None


def start_varve(processes, folder, port):
    """Starts the server and waits until it is ready; returns the seconds that took."""
    start = time.monotonic()
    processes.start("varve", [peerlib.VARVE, "serve", f"--storage.path={folder}/varve",
                              f"--web.listen-address=127.0.0.1:{port}", "--storage.retention=1y"])
    peerlib.wait_until("Varve to be ready", peerlib.Api(port).ready, 30, processes)
    return time.monotonic() - start


def start_peers(processes, folder, peers, ports):
    """Node exporter and Prometheus."""
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(PROMETHEUS_CONFIG.format(**ports))
    processes.start("node", [peers["prometheus-node-exporter"], f"--web.listen-address=127.0.0.1:{ports['node']}"])
    processes.start("prometheus", [peers["prometheus"], f"--config.file={config}", "--log.level=warn",
                                   f"--storage.tsdb.path={folder}/prometheus",
                                   f"--web.listen-address=127.0.0.1:{ports['prometheus']}"])
    peerlib.wait_until("Prometheus to be ready", peerlib.Api(ports["prometheus"]).ready, 30, processes)


def written_through(reference, tested, moment):
    """Has every scraped job a sample after this moment on both sides?"""
    query = "min(timestamp({__name__='scrape_duration_seconds'}))"
    return all((api.scalar(query, time=f"{moment + 5:.3f}") or 0) >= moment + 1 for api in (reference, tested))


def compare_prometheus(processes, comparison, folder, ports):
    """The queries before and after a crash."""
    print(f"scraping for {SCRAPE_SECONDS:.0f} s", flush=True)
    end = time.monotonic() + SCRAPE_SECONDS
    while time.monotonic() < end:
        processes.check()
        time.sleep(1)
    moment = math.floor(time.time()) + 0.25
    peerlib.wait_until("remote write to catch up",
                       lambda: written_through(comparison.reference, comparison.tested, moment), 60, processes)
    moment -= 2
    comparison.all_queries("live", moment)
    series = comparison.tested.scalar("count({__name__!=''})", time=f"{moment:.3f}")
    comparison.note(series and series > 500, "there is data to speak of", f"{series} series")
    print(f"compared live: {comparison.passed} the same, {comparison.failed} not; {series:.0f} series", flush=True)

    processes.stop("varve", signal.SIGKILL)
    took = start_varve(processes, folder, ports["varve"])
    comparison.all_queries("after kill -9", moment)
    print(f"compared after kill -9 (ready in {took:.2f} s): {comparison.passed} the same, {comparison.failed} not",
          flush=True)


def check_vmagent(processes, comparison, folder, peers, ports):
    """A second writer with its own protocol; what it wrote is there and equals what the node exporter says."""
    config = os.path.join(folder, "vmagent.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(VMAGENT_CONFIG.format(**ports))
    processes.start("vmagent", [peers["vmagent"], f"-promscrape.config={config}", "-loggerLevel=WARN",
                                f"-remoteWrite.url=http://127.0.0.1:{ports['varve']}/api/v1/write",
                                "-remoteWrite.forceVMProto=true", "-remoteWrite.flushInterval=500ms",
                                f"-remoteWrite.tmpDataPath={folder}/vmagent", "-memory.allowedBytes=64MiB",
                                f"-httpListenAddr=127.0.0.1:{ports['vmagent']}"])
    tested = comparison.tested
    peerlib.wait_until("vmagent's samples", lambda: (tested.scalar("count({job='by-vmagent'})") or 0) > 200, 40,
                       processes)
    peerlib.wait_until("several scrapes", lambda: tested.scalar("min(count_over_time(up{job='by-vmagent'}[1m]))") >= 5,
                       30, processes)
    mine = tested.scalar("count(count by (__name__) ({job='by-vmagent', __name__=~'node_.*'}))")
    others = tested.scalar("count(count by (__name__) ({job='node', __name__=~'node_.*'}))")
    comparison.note(mine == others, "vmagent's metrics", f"{mine} names, Prometheus wrote {others}")
    for metric in ["node_boot_time_seconds", "node_memory_MemTotal_bytes", "node_uname_info"]:
        values = [tested.scalar(f"{metric}{{job='{job}'}}") for job in ("by-vmagent", "node")]
        comparison.note(values[0] is not None and values[0] == values[1], f"vmagent's {metric}", f"{values}")
    pages = peerlib.fetch(f"http://127.0.0.1:{ports['vmagent']}/metrics").decode()
    sent = [line for line in pages.splitlines() if line.startswith("vmagent_remotewrite_requests_total")]
    accepted = [line for line in sent if '"2XX"' in line and not line.endswith(" 0")]
    refused = [line for line in sent if '"2XX"' not in line and not line.endswith(" 0")]
    comparison.note(accepted and not refused, "vmagent's requests are all accepted", "; ".join(sent))


def run(folder):
    """All parts; returns the comparison."""
    peers = peerlib.find_peers(["prometheus", "vmagent", "prometheus-node-exporter"])
    names = ["varve", "node", "prometheus", "vmagent"]
    ports = dict(zip(names, peerlib.free_ports(len(names))))
    comparison = Comparison(peerlib.Api(ports["prometheus"]), peerlib.Api(ports["varve"]))
    processes = peerlib.Processes(folder)
    try:
        start_varve(processes, folder, ports["varve"])
        start_peers(processes, folder, peers, ports)
        compare_prometheus(processes, comparison, folder, ports)
        check_vmagent(processes, comparison, folder, peers, ports)
        status = processes.stop("varve")
        comparison.note(status == 0, "Varve ends well on SIGTERM", f"status {status}:\n{processes.log('varve')}")
    except RuntimeError as error:
        log = processes.log("varve", 15) if os.path.exists(os.path.join(folder, "varve.log")) else ""
        comparison.note(False, str(error), f"Varve's log ends with:\n{log}")
    finally:
        processes.stop_all()
    return comparison


def main():
    """Runs in a folder of its own; the last line is what tests/run reads."""
    if not os.access(peerlib.VARVE, os.X_OK):
        print(f"{peerlib.VARVE} is not built")
        return 1
    folder = tempfile.mkdtemp(prefix="varve-e2e-")
    try:
        comparison = run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{comparison.passed} passed, {comparison.failed} failed, 0 skipped")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
