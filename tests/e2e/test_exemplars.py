#!/usr/bin/env python3
"""A real Prometheus scrapes a page with exemplars and sends them on, by remote write 1.0 to one Varve and by 2.0 to
another. Then all three answer /api/v1/query_exemplars the same, for several selectors and ranges; so do both Varves
after kill -9, with the exemplars in the log and after a flush.
"""
import http.server
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

import peerlib

SECONDS = 6
CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}
scrape_configs:
  - job_name: page
    static_configs: [{{targets: ["127.0.0.1:{page}"]}}]
remote_write:
  - url: http://127.0.0.1:{varve1}/api/v1/write
    send_exemplars: true
    queue_config: &queue {{max_shards: 2, batch_send_deadline: 200ms, min_backoff: 50ms, max_backoff: 500ms}}
  - url: http://127.0.0.1:{varve2}/api/v1/write
    send_exemplars: true
    protobuf_message: io.prometheus.write.v2.Request
    queue_config: *queue
"""


class Page:
    """The text of the page: `turn` counts up while it is alive, then it repeats itself."""

    def __init__(self):
        self.alive, self.turn, self.with_exemplars = True, 0, False
        self.lock, self.last = threading.Lock(), ""

    def text(self):
        """The next page."""
        with self.lock:
            if self.alive:
                self.turn += 1
                self.last = self.make(self.turn, time.time())
            return self.last

    def exemplar(self, labels, value, at=None):
        """The end of a line."""
        if not self.with_exemplars:
            return ""
        inside = ",".join(f'{name}="{text}"' for name, text in labels.items())
        return f" # {{{inside}}} {value}" + ("" if at is None else f" {at:.3f}")

    def make(self, turn, now):
        """Exemplars with and without times, without labels, too long, not ASCII, repeated, and out of order."""
        e = self.exemplar
        lines = ["# TYPE latency_seconds histogram"]
        for i, bound in enumerate(["0.1", "0.5", "2.5", "+Inf"]):
            at = now if i != 1 else (now if turn % 3 else now - 100)
            mark = e({"trace_id": f"{turn:08x}{i}"}, 0.03 * (i + 1), None if i == 2 else at)
            lines.append(f'latency_seconds_bucket{{le="{bound}"}} {turn * (i + 1)}{mark}')
        lines += [f"latency_seconds_sum {turn * 1.5}", f"latency_seconds_count {turn * 4}", "# TYPE hits counter"]
        lines.append(f'hits_total{{path="/a",zone="ä"}} {turn}' + e({"trace_id": "ü" * 100, "s": str(turn)}, 1, now))
        lines.append(f'hits_total{{path="/b",zone="ä"}} {turn}' + e({"trace_id": "x" * 128}, 1))
        lines.append(f'hits_total{{path="/c",zone="ä"}} {turn}' + e({}, turn, now))
        lines.append(f'hits_total{{path="/d",zone="ä"}} {turn}' + e({"trace_id": str(turn // 4)}, 7))
        lines.append(f'hits_total{{path="/e",zone="ä"}} {turn}' + e({"t": 'q\\"\\\\', "n": "v"}, "+Inf", now))
        return "\n".join(lines) + "\n# EOF\n"


def serve_page(page):
    """Starts the page's server; its port."""
    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers every GET with the page."""
        def do_GET(self):
            """One scrape."""
            body = page.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Nothing to say."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def start_varve(processes, folder, name, port):
    """One Varve, ready."""
    processes.start(name, [peerlib.VARVE, "serve", f"--storage.path={folder}/{name}", "--storage.min-free-disk=0",
                           f"--web.listen-address=127.0.0.1:{port}"])
    peerlib.wait_until(f"{name} to be ready", peerlib.Api(port).ready, 30, processes)


def start_all(processes, folder, peers, ports):
    """Both Varves, then Prometheus."""
    for name in ("varve1", "varve2"):
        start_varve(processes, folder, name, ports[name])
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(**ports))
    processes.start("prometheus", [peers["prometheus"], f"--config.file={config}", "--log.level=warn",
                                   f"--storage.tsdb.path={folder}/prometheus", "--enable-feature=exemplar-storage",
                                   f"--web.listen-address=127.0.0.1:{ports['prometheus']}"])
    peerlib.wait_until("Prometheus to be ready", peerlib.Api(ports["prometheus"]).ready, 30, processes)


def questions(now):
    """Arguments of query_exemplars."""
    whole = {"start": f"{now - 600:.3f}", "end": f"{now + 600:.3f}"}
    part = {"start": f"{now - 5:.3f}", "end": f"{now - 2.5:.3f}"}
    return [
        {"query": '{__name__=~".+"}'},
        {"query": '{__name__=~".+"}', **whole},
        {"query": "histogram_quantile(0.9, sum by (le) (rate(latency_seconds_bucket[1m] offset 1h)))", **whole},
        {"query": 'hits_total{path=~"/[ac]"} / on (path) hits_total or latency_seconds_bucket{le="0.5"}', **whole},
        {"query": 'max_over_time(sum(hits_total{zone="ä",path!="/a"})[5m:1m])', **part},
        {"query": "latency_seconds_bucket", **part},
        {"query": "latency_seconds_count", **whole},
        {"query": "nothing_here", **whole},
        {"query": "hits_total", "start": "0", "end": "1"},
        {"query": "hits_total", "start": f"{now * 1000:.0f}", "end": f"{now * 1000:.0f}"},
        {"query": "hits_total", "start": "2", "end": "1"},
        {"query": "hits_total{", **whole},
        {"query": "", **whole},
    ]


def same(expected, got):
    """The same data; of errors the type."""
    if expected["status"] == "error":
        return got["status"] == "error" and got["errorType"] == expected["errorType"]
    return got == expected


class Checks:
    """Counts."""

    def __init__(self):
        self.passed = self.failed = 0

    def compare(self, label, reference, tested, now):
        """All questions to both."""
        for arguments in questions(now):
            expected, got = (api.get("query_exemplars", **arguments) for api in (reference, tested))
            if same(expected, got):
                self.passed += 1
            else:
                self.failed += 1
                print(f"FAILED: {label}: {arguments}\n  expected {str(expected)[:600]}\n  got      {str(got)[:600]}")


def all_of(api):
    """{series: exemplars} of everything, for the wait."""
    return api.get("query_exemplars", query='{__name__=~".+"}')["data"]


def run(processes, folder, peers):
    """The whole test; (passed, failed)."""
    page, checks = Page(), Checks()
    ports = dict(zip(["prometheus", "varve1", "varve2"], peerlib.free_ports(3)), page=serve_page(page))
    start_all(processes, folder, peers, ports)
    reference, one, two = (peerlib.Api(ports[name]) for name in ("prometheus", "varve1", "varve2"))
    for api in (one, two):
        peerlib.wait_until("the first samples", lambda a=api: a.scalar("hits_total{path='/a'}"), 30, processes)
    page.with_exemplars = True
    time.sleep(SECONDS)
    page.alive = False
    time.sleep(1.5)
    now = time.time()
    for name, api in (("1.0", one), ("2.0", two)):
        try:
            peerlib.wait_until(f"all exemplars by {name}", lambda a=api: all_of(a) == all_of(reference), 15, processes)
        except RuntimeError as error:
            print(error)
        checks.compare(f"remote write {name}", reference, api, now)
    count = sum(len(series["exemplars"]) for series in all_of(reference))
    series = len(all_of(reference))
    print(f"{count} exemplars of {series} series at the reference")
    if series < 7 or count < 40:
        checks.failed += 1
        print("FAILED: too few for a test")
    for state in ("in the log", "flushed"):
        for name, api in (("varve1", one), ("varve2", two)):
            if state == "flushed":
                peerlib.fetch(api.base + "/internal/force_flush")
            processes.stop(name, signal.SIGKILL)
            start_varve(processes, folder, name, ports[name])
            checks.compare(f"{name} killed, {state}", reference, api, now)
    return checks.passed, checks.failed


def main():
    """Runs it in a folder of its own."""
    peers = peerlib.find_peers(["prometheus"])
    folder = tempfile.mkdtemp(prefix="varve-exemplars-")
    processes = peerlib.Processes(folder)
    try:
        passed, failed = run(processes, folder, peers)
    except RuntimeError as error:
        print(f"FAILED: {error}")
        passed, failed = 0, 1
    finally:
        processes.stop_all()
    if failed == 0:
        shutil.rmtree(folder)
    else:
        print(f"logs and data in {folder}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
