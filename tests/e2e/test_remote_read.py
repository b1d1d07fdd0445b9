#!/usr/bin/env python3
"""Real Prometheuses and remote read.

A Prometheus (the twin) and a Varve are written the same by remote write: asked over /api/v1/read by a client of our own
they give the same samples, and the same chunks byte for byte. A second Prometheus without data reads from two Varves
with different data; its answers are those of the twin, which holds the data of both.
"""
import json
import math
import os
import shutil
import struct
import sys
import tempfile
import time
import urllib.parse

import peerlib
import remoteread as rr
import test_prometheus

STALE = struct.unpack("<d", rr.STALE)[0]
ALL = (rr.RE, "__name__", ".+")
BLOCK_MS = 2 * 3600 * 1000  # Prometheus cuts chunks where its blocks begin: the data stays clear of that
READER = """
remote_read:
  - {{url: "http://127.0.0.1:{a}/api/v1/read", read_recent: true}}
  - {{url: "http://127.0.0.1:{b}/api/v1/read", read_recent: true}}
"""
QUERIES = [
    "requests_total", "sum(requests_total)", "sum by (zone) (rate(requests_total[5m]))", 'requests_total{zone="a"}',
    'requests_total{zone!~"b|c"}', "increase(requests_total[3m])", "split", "rate(split[10m])", "changes(split[20m])",
    "count_over_time(requests_total[7m])", "max_over_time(temperature[3m]) - temperature offset 2m",
    "sum(requests_total) / on () group_left count(temperature)", "ended", "last_over_time(ended[10m])",
    "histogram_quantile(0.9, sum by (zone) (rate(native[5m])))", "histogram_count(native)", "histogram_sum(native)",
    "histogram_count(increase(native[5m]))", "histogram_fraction(0, 2, native_float)",
    "count({zone=~'.+'}) by (__name__)",
    "histogram_count(resetting)", "histogram_count(increase(resetting[10m]))", "histogram_count(rate(custom[15m]))",
    "histogram_quantile(0.5, increase(custom[15m]))", "absent(nobody)", "requests_total @ end()",
]


def hist(n, **more):
    """Grows with n, as its buckets do."""
    return rr.native(count=4 * n + 1, total=1.5 * n, spans=[(-2, 2), (3, 1)], buckets=[n, 2 * n, n], zero=1, **more)


def series_of(zone, now):
    """What one zone writes: every kind of chunk, each in one piece (at most 60 samples)."""
    times = [now - 900000 + 15000 * i for i in range(60)]

    def one(name, values, **labels):
        return {"__name__": name, "zone": zone, **labels}, list(zip(times, values))

    factor = 1 if zone == "a" else 3
    return [
        one("requests_total", [factor * float(i) for i in range(60)], code="200"),
        one("requests_total", [factor * i * 0.1 for i in range(60)], code="500", path="ä/ö"),
        one("temperature", [20 + math.sin(i * factor) for i in range(60)]),
        one("constant", [math.pi] * 60),
        one("odd", [0.0, -0.0, float("inf"), 5e-324, float("nan"), 1e300, float("-inf"), 2.0 ** 53]),
        one("ended", [*[1.0] * 20, STALE]),
        one("native", [hist(factor * i) for i in range(60)]),
        one("native_float", [hist(i + 0.25, is_float=True) for i in range(40)]),
        one("gauge", [hist((i * 7) % 11, hint=3) for i in range(30)]),
        one("custom", [rr.native(3 * i, 2.0 * i, [(0, 3)], [i, i, i], schema=-53, threshold=0, custom=(0.1, 2.5, 1e6))
                       for i in range(30)]),
        one("hist_ended", [*[hist(i) for i in range(5)], rr.native(0, STALE, [], [], schema=0, threshold=0)]),
    ]


def resetting(zone, now):
    """Counter resets and growing layouts: chunks that readers may cut elsewhere."""
    values = [hist(i % 17) for i in range(50)]
    values[30:] = [rr.native(9 + 3 * i, 1.0 * i, [(0, 3)], [3 + i] * 3, schema=3) for i in range(20)]
    return [({"__name__": "resetting", "zone": zone}, [(now - 900000 + 15000 * i, v) for i, v in enumerate(values)])]


def split(now, half):
    """One series whose first half is in one place and whose second half in another."""
    return [({"__name__": "split"}, [(now - 900000 + 15000 * i, float(i)) for i in range(30 * half, 30 * half + 30)])]


def forgiving(results):
    """Without what Prometheus 3.5 loses when it answers with samples: the sign of -0, and custom bounds."""
    def plain(value):
        if isinstance(value, dict):
            return {**value, "custom": []}
        return bytes(8) if value == struct.pack("<d", -0.0) else value
    return [{labels: [(t, plain(v)) for t, v in values] for labels, values in series.items()} for series in results]


class RemoteRead:
    """All processes, and the count of checks."""

    def __init__(self, folder):
        self.folder, self.processes = folder, peerlib.Processes(folder)
        names = ["a", "b", "both", "twin", "reader"]
        self.ports = dict(zip(names, peerlib.free_ports(len(names))))
        self.note = test_prometheus.Comparison(None, None)
        self.now = int(time.time()) * 1000
        since = self.now % BLOCK_MS
        if since < 16 * 60 * 1000:
            self.now -= since + 1000

    def check(self, ok, what, detail=""):
        """One check."""
        self.note.note(ok, what, detail)

    def start_varves(self):
        """Three of them."""
        for name in ("a", "b", "both"):
            self.processes.start(name, [peerlib.VARVE, "serve", f"--storage.path={self.folder}/{name}-data",
                                        f"--web.listen-address=127.0.0.1:{self.ports[name]}"])
        for name in ("a", "b", "both"):
            peerlib.wait_until(name, peerlib.Api(self.ports[name]).ready, 30, self.processes)

    def start_prometheus(self, name, program, config, *flags):
        """One without scrapes."""
        path = os.path.join(self.folder, name + ".yml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        self.processes.start(name, [program, f"--config.file={path}", f"--storage.tsdb.path={self.folder}/{name}-data",
                                    "--log.level=warn", f"--web.listen-address=127.0.0.1:{self.ports[name]}", *flags])
        peerlib.wait_until(name, peerlib.Api(self.ports[name]).ready, 30, self.processes)

    def write(self):
        """Zone a to one Varve, zone b to the other; all to the third and to the twin."""
        for zone, half in (("a", 0), ("b", 1)):
            series = series_of(zone, self.now) + resetting(zone, self.now) + split(self.now, half)
            rr.write(self.ports[zone], series)
            rr.write(self.ports["both"], series)
            rr.write(self.ports["twin"], series)

    def ask(self, name, kind, *queries):
        """A request's answer, with its headers."""
        status, head, body = rr.post(self.ports[name], rr.request(queries, (kind,)))
        if status != 200:
            raise RuntimeError(f"{name} answers {status}: {body[:300]}")
        return head, body

    def compare_answers(self):
        """The twin's and Varve's, decoded."""
        queries = [rr.query(self.now - 10 ** 7, self.now + 10 ** 6, ALL),
                   rr.query(self.now - 300000, self.now - 200001, (rr.NE, "zone", ""), ALL),
                   rr.query(self.now - 10 ** 7, self.now, (rr.EQ, "__name__", "requests_total"),
                            (rr.RE, "code", "5.."))]
        answers = {}
        for kind in (rr.SAMPLES, rr.CHUNKS):
            heads, found = [], []
            for name in ("twin", "both"):
                head, body = self.ask(name, kind, *queries)
                heads.append({key: head.get(key) for key in ("content-type", "content-encoding")})
                read = forgiving(rr.sampled(body)) if kind == rr.SAMPLES else rr.streamed(body, len(queries))
                found.append(rr.comparable(read))
            self.check(heads[0] == heads[1], f"headers of type {kind}", f"{heads}")
            for at, (expected, got) in enumerate(zip(*found)):
                self.check(sorted(expected) == sorted(got), f"series of query {at}, type {kind}",
                           f"{sorted(expected)} expected, got {sorted(got)}")
                for labels in expected:
                    self.check(expected[labels] == got.get(labels), f"samples of {labels}, type {kind}",
                               f"{expected[labels][:3]}... expected, got {got.get(labels, [])[:3]}...")
            answers[kind] = found[1]
        both = [rr.comparable(forgiving(rr.streamed(self.ask("both", rr.CHUNKS, *queries)[1], len(queries)))),
                answers[rr.SAMPLES]]
        self.check(both[0] == both[1], "Varve's two answers say the same")

    def compare_chunks(self):
        """Byte for byte, where both hold a series as one chunk."""
        query = rr.query(self.now - 10 ** 7, self.now + 10 ** 6, (rr.NE, "__name__", "resetting"), ALL)
        found = [{labels: chunks for _, labels, chunks, _ in rr.frames(self.ask(name, rr.CHUNKS, query)[1])}
                 for name in ("twin", "both")]
        self.check(list(found[0]) == list(found[1]), "frames in the same order", f"{[list(f) for f in found]}")
        for labels, chunks in found[0].items():
            got = found[1].get(labels, [])
            self.check(chunks == got, f"chunks of {labels}",
                       f"{[(*c[:3], c[3].hex()) for c in chunks]} expected, got {[(*c[:3], c[3].hex()) for c in got]}")

    def compare_queries(self):
        """The reader over two Varves, and the twin that has it all."""
        reader, twin = peerlib.Api(self.ports["reader"]), peerlib.Api(self.ports["twin"])
        at = self.now / 1000 - 20
        for query in QUERIES:
            calls = [("query", {"time": f"{at:.3f}"}),
                     ("query_range", {"start": f"{at - 600:.3f}", "end": f"{at:.3f}", "step": "30"})]
            for path, times in calls:
                expected, got = (api.get(path, query=query, **times) for api in (twin, reader))
                difference = test_prometheus.first_difference(expected, got, False)
                self.check(difference is None and not got.get("warnings"), f"{path} {query}",
                           f"{difference} {got.get('warnings')}")
        empty = [q for q in QUERIES if not reader.get("query", query=q, time=f"{at:.3f}")["data"]["result"]]
        self.check(empty == ["ended"], "the queries have answers", f"empty: {empty}")
        span = {"match[]": '{zone=~".+"}', "start": f"{at - 900:.3f}", "end": f"{at:.3f}"}
        lists = [api.get("series", **span) for api in (twin, reader)]
        expected, got = (sorted(sorted(labels.items()) for labels in one["data"]) for one in lists)
        self.check(expected == got, "series through the reader", f"{len(expected)} expected, got {len(got)}")

    def check_counts(self):
        """The reader asked for chunks, and each Varve counts what it answered."""
        page = peerlib.fetch(f"http://127.0.0.1:{self.ports['reader']}/metrics").decode()
        lines = [line for line in page.splitlines() if line.startswith("prometheus_remote_read_client_queries_total")]
        streamed = len(lines) == 2 and all('response_type="chunked"' in line for line in lines)
        self.check(streamed, "answers were streamed", "\n".join(lines))
        for name in ("a", "b"):
            page = peerlib.fetch(f"http://127.0.0.1:{self.ports[name]}/metrics").decode()
            counts = [line.split()[1] for line in page.splitlines() if line.startswith("varve_remote_reads_total")]
            self.check(counts and float(counts[0]) >= len(QUERIES), f"varve_remote_reads_total of {name}", counts)

    def check_one_down(self):
        """Prometheus answers from what is left, with a warning."""
        self.processes.stop("b")
        query = urllib.parse.urlencode({"query": "count by (zone) (requests_total)", "time": self.now / 1000 - 20})
        answer = json.loads(peerlib.fetch(f"http://127.0.0.1:{self.ports['reader']}/api/v1/query?{query}"))
        zones = [one["metric"]["zone"] for one in answer.get("data", {}).get("result", [])]
        self.check(zones == ["a"] and answer.get("warnings"), "one Varve down", f"{answer}")

    def run(self, program):
        """All of it."""
        self.start_varves()
        self.start_prometheus("twin", program, "", "--web.enable-remote-write-receiver",
                              "--enable-feature=native-histograms")
        self.start_prometheus("reader", program, READER.format(**self.ports), "--enable-feature=native-histograms")
        self.write()
        self.compare_answers()
        self.compare_chunks()
        self.compare_queries()
        self.check_counts()
        self.check_one_down()


def main():
    """Runs in a folder of its own; the last line is what tests/run reads."""
    if not os.access(peerlib.VARVE, os.X_OK):
        print(f"{peerlib.VARVE} is not built")
        return 1
    program = peerlib.find_peers(["prometheus"])["prometheus"]
    folder = tempfile.mkdtemp(prefix="varve-read-")
    test = RemoteRead(folder)
    try:
        test.run(program)
    except RuntimeError as error:
        test.check(False, str(error), test.processes.log("a", 15) if "a" in test.processes.running else "")
    finally:
        test.processes.stop_all()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{test.note.passed} passed, {test.note.failed} failed, 0 skipped")
    return 1 if test.note.failed else 0


if __name__ == "__main__":
    sys.exit(main())
