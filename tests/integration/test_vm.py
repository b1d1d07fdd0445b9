#!/usr/bin/env python3
"""Black-box tests of VictoriaMetrics' calls and of what the server tells about itself.

usage: tests/integration/test_vm.py [-k PATTERN] [-v]
VARVE names another binary. Answers are compared in shape with those of a real VictoriaMetrics (VARVE_PEERS, else
fetched); where it can't be had, those tests are skipped. Ends with "N passed, N failed, N skipped".
"""
import csv
import gzip
import http.client
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import peerlib  # noqa: E402  processes of others
import test_http  # noqa: E402  the server's life and requests

PEERS, NO_PEERS = peerlib.look_for_peers(["promtool", "victoria-metrics"])
PROMTOOL, PEER = PEERS["promtool"], PEERS["victoria-metrics"]

START_MS = 1700000000000


def text_rows(metric, labels, values, start_ms=START_MS, step_ms=1000):
    """Lines of the text format: one series, a sample a step."""
    inner = ",".join(f"{name}={json.dumps(str(value))}" for name, value in labels.items())
    return "".join(f"{metric}{{{inner}}} {value} {start_ms + i * step_ms}\n" for i, value in enumerate(values))


def args(path, **fields):
    """A target with its query string; a list gives a field several times."""
    return path + "?" + urllib.parse.urlencode(fields, doseq=True)


class VmTest(unittest.TestCase):
    """Helpers."""

    def start(self, *flags, **kw):
        server = test_http.Server(*flags, **kw)
        self.addCleanup(server.close)
        return server

    def put(self, server, rows):
        status, _, body = server.request("POST", "/api/v1/import/prometheus", rows)
        self.assertEqual(status, 204, body)

    def ok(self, server, target, method="GET", **kw):
        status, _, body = server.request(method, target, **kw)
        body = json.loads(body)
        self.assertEqual(status, 200, body)
        return body


class StatusTest(VmTest):
    """What is stored where, what runs."""

    def test_storage(self):
        s = self.start()
        empty = self.ok(s, "/api/v1/status/storage")["data"]
        self.assertEqual(empty["partitions"], [])
        self.assertEqual((empty["head"]["samples"], empty["head"]["minTime"]), (0, None))
        self.put(s, text_rows("m", {"a": "b"}, range(10)))
        head = self.ok(s, "/prometheus/api/v1/status/storage")["data"]["head"]
        self.assertEqual((head["series"], head["samples"]), (1, 10))
        self.assertEqual((head["minTime"], head["maxTime"]), (START_MS, START_MS + 9000))
        s.get("/internal/force_flush")
        self.put(s, text_rows("m", {"a": "c"}, range(3), start_ms=START_MS - 40 * 86400000))
        s.get("/internal/force_flush")
        data = self.ok(s, "/api/v1/status/storage")["data"]
        self.assertEqual((data["path"], data["head"]["samples"]), (s.folder, 0))
        self.assertEqual([p["name"] for p in data["partitions"]], ["2023-10", "2023-11"])
        part = data["partitions"][1]["parts"][0]
        self.assertEqual((part["samples"], part["series"], part["level"], part["damaged"]), (10, 1, 0, False))
        self.assertEqual((part["minTime"], part["maxTime"]), (START_MS, START_MS + 9000))
        size = os.path.getsize(os.path.join(s.folder, "parts", part["name"]))
        self.assertEqual(part["bytes"], size)
        self.assertGreater(data["disk"]["freeBytes"], 0)
        self.assertGreaterEqual(data["disk"]["usedBytes"], size)
        self.assertEqual(set(data["merges"]), {"running", "waiting", "total"})
        self.assertGreaterEqual(data["wal"]["segments"], 1)

    SLOW = "quantile_over_time(0.5, m[20h:1s])"  # about half a minute over 1,000 series and 60 steps

    def run_slow(self, server, results):
        target = args("/api/v1/query_range", query=self.SLOW, start=START_MS // 1000, end=START_MS // 1000 + 60, step=1)
        results.append(server.request("GET", target, timeout=60))

    def test_active_queries_and_cancel(self):
        s = self.start("--query.concurrency=2")
        self.put(s, "".join(text_rows("m", {"i": i}, [i]) for i in range(1000)))
        self.assertEqual(self.ok(s, "/api/v1/status/active_queries"), {"status": "ok", "data": []})
        results = []
        threads = [threading.Thread(target=self.run_slow, args=(s, results)) for _ in range(2)]
        for t in threads:
            t.start()
        listed = []
        for _ in range(200):
            listed = self.ok(s, "/api/v1/status/active_queries")["data"]
            if len(listed) == 2:
                break
            time.sleep(0.02)
        self.assertEqual(len(listed), 2)
        for q in listed:
            self.assertEqual(set(q), {"duration", "id", "remote_addr", "query", "start", "end", "step"})
            self.assertRegex(q["duration"], r"^\d+\.\d{3}s$")
            self.assertRegex(q["id"], r"^[0-9A-F]{16}$")
            self.assertRegex(q["remote_addr"], r"^127\.0\.0\.1:\d+$")
            self.assertEqual((q["query"], q["start"], q["end"], q["step"]), (self.SLOW, START_MS, START_MS + 60000, 1000))
        self.assertNotEqual(listed[0]["id"], listed[1]["id"])
        begun = time.time()
        for q in listed:  # both workers are busy: the calls must not need one
            status, _, body = s.request("POST", args("/api/v1/status/active_queries/cancel", id=q["id"]))
            self.assertEqual((status, json.loads(body)), (200, {"status": "success"}))
        for t in threads:
            t.join()
        self.assertLess(time.time() - begun, 3)
        for status, _, body in results:
            self.assertEqual((status, json.loads(body)["errorType"]), (422, "canceled"), body)
        self.assertEqual(self.ok(s, "/api/v1/status/active_queries")["data"], [])
        for bad, want in [(listed[0]["id"], 404), ("", 400), ("xyz", 400), ("0" * 17, 400)]:
            status, _, body = s.request("POST", args("/api/v1/status/active_queries/cancel", id=bad))
            self.assertEqual(status, want, body)
        self.assertEqual(s.get("/api/v1/status/active_queries/cancel?id=1")[0], 405)

    def test_top_queries(self):
        s = self.start()
        self.put(s, text_rows("m", {"a": "b"}, range(10)))
        at = START_MS // 1000
        for _ in range(30):  # most of these run on the loop
            self.ok(s, args("/api/v1/query", query="m", time=at))
        for _ in range(5):
            self.ok(s, args("/api/v1/query_range", query="sum(m)", start=at - 600, end=at, step=15))
            self.ok(s, args("/api/v1/query_range", query="sum(m)", start=at - 60, end=at, step=15))
        self.assertEqual(s.get(args("/api/v1/query", query="sum("))[0], 400)  # wrong queries are none
        body = self.ok(s, args("/api/v1/status/top_queries", topN=2, maxLifetime="30m"))
        self.assertEqual((body["topN"], body["maxLifetime"]), ("2", "30m0s"))
        self.assertEqual([len(body[k]) for k in ("topByCount", "topByAvgDuration", "topBySumDuration")], [2, 2, 2])
        self.assertEqual(body["topByCount"][0], {"query": "m", "timeRangeSeconds": 0, "count": 30})
        body = self.ok(s, "/api/v1/status/top_queries")
        self.assertEqual((body["topN"], body["maxLifetime"]), ("20", "10m0s"))
        self.assertEqual([(q["query"], q["timeRangeSeconds"], q["count"]) for q in body["topByCount"]],
                         [("m", 0, 30), ("sum(m)", 60, 5), ("sum(m)", 600, 5)])
        for q in body["topByAvgDuration"]:
            self.assertEqual(set(q), {"query", "timeRangeSeconds", "avgDurationSeconds", "count"})
        sums = [q["sumDurationSeconds"] for q in body["topBySumDuration"]]
        self.assertEqual(sums, sorted(sums, reverse=True))
        self.assertGreater(sums[-1], 0)
        for bad in ["topN=x", "topN=-1", "maxLifetime=0", "maxLifetime=abc"]:
            self.assertEqual(s.get("/api/v1/status/top_queries?" + bad)[0], 400, bad)

    def names(self, server, **fields):
        body = self.ok(server, args("/api/v1/status/metric_names_stats", **fields))
        return {r["metricName"]: r["requestsCount"] for r in body["records"]}

    def test_metric_names_stats(self):
        s = self.start()
        self.put(s, "".join(text_rows(name, {"job": "j"}, [1]) for name in ["never", "absent", "by_name", "by_re_a", "by_re_b"]) +
                 text_rows("by_label", {"job": "k"}, [1]))
        at = START_MS // 1000
        before = int(time.time())
        for _ in range(3):
            self.ok(s, args("/api/v1/query", query="by_name + by_name + not_there", time=at))
        self.ok(s, args("/api/v1/query", query='count({__name__=~"by_re_.*"})', time=at))
        self.ok(s, args("/api/v1/query", query='count({job="k"})', time=at))
        self.ok(s, args("/api/v1/query", query="absent", time=at + 86400))  # asked for, though there is nothing now
        self.assertEqual(self.names(s), {"never": 0, "by_name": 3, "by_re_a": 1, "by_re_b": 1, "by_label": 1,
                                         "absent": 1})
        self.assertEqual(self.names(s, le=0), {"never": 0})
        self.assertEqual(self.names(s, le=1, match_pattern="_re_"), {"by_re_a": 1, "by_re_b": 1})
        self.assertEqual(list(self.names(s, limit=3)), ["never", "absent", "by_label"])
        body = self.ok(s, "/prometheus/api/v1/status/metric_names_stats")
        self.assertEqual(body["statsCollectedRecordsTotal"], 6)
        self.assertAlmostEqual(body["statsCollectedSince"], before, delta=60)
        self.assertGreaterEqual(body["records"][-1]["lastRequestTimestamp"], before)
        self.assertEqual(body["records"][0]["lastRequestTimestamp"], 0)
        for bad in ["limit=x", "le=x", "match_pattern=("]:
            self.assertEqual(s.get("/api/v1/status/metric_names_stats?" + bad)[0], 400, bad)
        self.assertEqual(s.get("/api/v1/admin/status/metric_names_stats/reset")[0], 204)
        self.assertEqual(set(self.names(s).values()), {0})


class OperationsTest(VmTest):
    """Snapshots and their age, forced work, the slow-query log, what the server measures about itself."""

    def test_snapshots(self):
        s = self.start("--storage.snapshots-max-age=1h")
        self.put(s, text_rows("m", {}, [1]))
        names = [self.ok(s, "/snapshot/create")["snapshot"] for _ in range(2)]
        names.append(self.ok(s, "/api/v1/admin/tsdb/snapshot", method="POST")["data"]["name"])
        for name in names:
            self.assertRegex(name, r"^\d{14}-[0-9A-F]{16}$")
        self.assertEqual(self.ok(s, "/snapshot/list")["status"], "ok")
        self.assertEqual(sorted(self.ok(s, "/snapshot/list")["snapshots"]), sorted(names))
        self.assertEqual(self.ok(s, "/snapshot/delete?snapshot=" + names[0]), {"status": "ok"})
        self.assertEqual(s.get("/snapshot/delete?snapshot=" + names[0])[0], 404)
        self.assertEqual(sorted(self.ok(s, "/snapshot/list")["snapshots"]), sorted(names[1:]))
        old, kept = "20200101000000-0123456789ABCDEF", "mine"
        folder = os.path.join(s.folder, "snapshots")
        for name in (old, kept):
            shutil.copytree(os.path.join(folder, names[1]), os.path.join(folder, name))
        self.assertEqual(s.stop(), 0)
        again = self.start("--storage.snapshots-max-age=1h", path=s.folder)
        for _ in range(100):  # at the first turn of the background
            left = set(self.ok(again, "/snapshot/list")["snapshots"])
            if old not in left:
                break
            time.sleep(0.05)
        self.assertEqual(left, {*names[1:], kept})
        self.assertIn("varve_storage_snapshots 3", again.get("/metrics")[2].decode())
        self.assertEqual(self.ok(again, "/snapshot/delete_all"), {"status": "ok"})
        self.assertEqual(self.ok(again, "/snapshot/list"), {"status": "ok", "snapshots": []})
        self.assertEqual(again.get("/prometheus/snapshot/list")[0], 404)  # as there

    def test_forced_work(self):
        s = self.start()
        for i in range(2):  # more would be merged unasked
            self.put(s, text_rows("m", {}, [i], start_ms=START_MS + i))
            self.assertEqual(s.get("/internal/force_flush")[0], 200)
        parts = lambda: [p for m in self.ok(s, "/api/v1/status/storage")["data"]["partitions"] for p in m["parts"]]
        self.assertEqual(len(parts()), 2)
        self.assertEqual(s.get("/internal/force_merge?partition_prefix=2023_10")[0], 200)
        self.assertEqual(len(parts()), 2)
        self.assertEqual(s.get("/internal/force_merge?partition_prefix=2023_11")[0], 200)
        self.assertEqual([(p["level"] > 0, p["samples"]) for p in parts()], [(True, 2)])
        self.assertEqual(s.get("/internal/force_merge?partition_prefix=x")[0], 400)
        self.assertGreater(self.metric(s, "varve_storage_write_amplification_ratio"), 0)

    def test_kept_answers(self):
        s = self.start()
        at = START_MS // 1000
        self.put(s, text_rows("kept", {}, range(60)))

        def ask(**extra):
            """The values of a minute by ten seconds, and how many of the seven steps were known."""
            before = self.metric(s, "varve_query_steps_known_total")
            got = self.ok(s, args("/api/v1/query_range", query="sum_over_time(kept[10s])", start=at, end=at + 60, step=10,
                                  **extra))["data"]["result"][0]["values"]
            return [v for _, v in got], self.metric(s, "varve_query_steps_known_total") - before

        values, known = ask()
        self.assertEqual((len(values), known), (7, 0))
        self.assertEqual(ask(), (values, 7))
        self.assertEqual(ask(nocache=1), (values, 0))
        self.assertEqual(ask(round_digits=-1)[1], 0)
        self.put(s, text_rows("other", {}, [1], start_ms=START_MS + 35000))
        self.assertEqual(ask(), (values, 4))  # up to thirty seconds, whatever series it was
        self.put(s, text_rows("kept", {}, [1000], start_ms=START_MS + 41500))
        late = values[:5] + [str(int(values[5]) + 1000)] + values[6:]
        self.assertEqual(ask(), (late, 5))
        self.assertGreater(self.metric(s, 'varve_memory_bytes{purpose="results"}'), 0)
        self.assertEqual(s.get("/internal/resetRollupResultCache")[0], 200)
        self.assertEqual(self.metric(s, 'varve_memory_bytes{purpose="results"}'), 0)
        self.assertEqual(ask(), (late, 0))
        names = self.ok(s, "/api/v1/status/metric_names_stats")["records"]
        self.assertEqual([n["queryRequestsCount"] for n in names if n["metricName"] == "kept"], [7])

    def metric(self, server, name):
        for line in server.get("/metrics")[2].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(name)

    def test_slow_queries_are_logged(self):
        s = self.start("--query.log-slower-than=1ms")
        self.put(s, "".join(text_rows("m", {"i": i}, [i]) for i in range(100)))
        query = 'quantile_over_time(0.5, m{i!="x\\n" ,i!=""}[1h:1s])'
        target = args("/api/v1/query", query=query, time=START_MS // 1000)
        self.ok(s, target, headers={"Authorization": "Bearer hunter2"})
        lines = [line for line in s.log().splitlines() if "slow query" in line]
        self.assertEqual(len(lines), 1, s.log())
        self.assertRegex(lines[0], r"seconds=\d+\.\d{3} samples=[1-9]\d* start=1700000000\.000 end=1700000000\.000 step=0\.000 "
                                   r"remote=127\.0\.0\.1:\d+ query=\"quantile_over_time\(0\.5, m\{i!='x\\n' ,i!=''\}")
        self.assertNotIn("hunter2", s.log())
        self.assertEqual(self.metric(s, "varve_slow_queries_total"), 1)
        self.ok(s, args("/api/v1/query", query=query + " + 0" * 1000, time=START_MS // 1000))
        last = [line for line in s.log().splitlines() if "slow query" in line][-1]
        self.assertTrue(last.endswith('..."'), last)
        self.assertLess(len(last), 1400)
        off = self.start("--query.log-slower-than=0", path=None)
        self.put(off, text_rows("m", {"i": 1}, [1]))
        self.ok(off, target)
        self.assertNotIn("slow query", off.log())

    def test_metrics(self):
        s = self.start()
        self.put(s, text_rows("m", {}, range(10)))
        self.ok(s, args("/api/v1/query", query="m", time=START_MS // 1000))
        s.get("/nope")
        s.get("/internal/force_flush")
        page = s.get("/metrics")[2].decode()
        kinds = dict(line.split()[2:4] for line in page.splitlines() if line.startswith("# TYPE"))
        helped = {line.split()[2] for line in page.splitlines() if line.startswith("# HELP") and len(line.split()) > 3}
        self.assertEqual(set(kinds), helped)
        for name, kind in kinds.items():
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
        for line in page.splitlines():
            name = re.match(r"[a-z_]+", line)
            if name and not line.startswith("#"):
                base = re.sub(r"_(bucket|sum|count)$", "", name[0])
                self.assertTrue(name[0] in kinds or kinds.get(base) == "histogram", line)
        for name in ["varve_ingest_seconds", "varve_ingest_samples_total", "varve_ingest_bytes_total",
                     "varve_ingest_samples_rejected_total", "varve_wal_sync_seconds", "varve_storage_head_series",
                     "varve_storage_partitions", "varve_merges_total", "varve_flushed_bytes_total", "varve_cache_hits_total",
                     "varve_http_request_duration_seconds", "varve_query_waiting", "varve_query_running",
                     "varve_slow_queries_total", "varve_memory_bytes", "varve_allocator_resident_bytes"]:
            self.assertIn(name, kinds)
        purposes = set(re.findall(r'varve_memory_bytes\{purpose="(\w+)"\}', page))
        self.assertEqual(purposes, {"head", "cache", "registry", "part_indexes", "exemplars", "queries", "results",
                                    "request_bodies"})
        if not PROMTOOL:
            self.skipTest(NO_PEERS)
        told = subprocess.run([PROMTOOL, "check", "metrics"], input=page, capture_output=True, text=True, check=False)
        self.assertEqual((told.returncode, told.stdout + told.stderr), (0, ""))


class ExtraTest(VmTest):
    """extra_label and extra_filters[]: whatever the query's text says, nothing outside is seen."""

    QUERIES = ["m", "{__name__=~'.+'}", "m{t='b'}", "m or m{t='b'} or {t='b'}", "sum by (t) (m)", "count by (t) ({t!='x',i=~'.+'})",
               "m * on () group_left () m{t='b'}", "max_over_time(m[1h])", "max_over_time(sum by (t) (m)[1h:10s])",
               "m @ end()", "m offset -1s", "info(m)", "info(m, {t='b'})", "topk(10, m)", "count_values('v', m)",
               "label_replace(m, 't2', '$1', 't', '(.*)')", "m unless m{t='a'}", "-m", "abs(m{t=~'b|c'})", "m[1h]",
               "last_over_time({t=~'.+'}[1h])", "absent_over_time(m{t='a'}[1h])", "m and on (i) m{t='b'}"]

    @classmethod
    def setUpClass(cls):
        cls.s = test_http.Server("--query.experimental")
        rows = "".join(text_rows("m", {"t": t, "i": i}, [n * 10 + i], start_ms=START_MS + i) +
                       text_rows("target_info", {"t": t, "job": "j", "instance": "x", "d": f"d_{t}"}, [1])
                       for n, t in enumerate("abc") for i in range(3))
        half = rows.splitlines(keepends=True)
        for rows in ("".join(half[::2]), "".join(half[1::2])):  # half in a part, half in the head
            cls.s.get("/internal/force_flush")
            status, _, body = cls.s.request("POST", "/api/v1/import/prometheus", rows)
            assert status == 204, body

    @classmethod
    def tearDownClass(cls):
        cls.s.close()

    AT = START_MS // 1000 + 10

    def tenants(self, data):
        """Values of t in an answer."""
        return set(re.findall(r'"t2?": ?"(\w*)"', json.dumps(data)))

    def query(self, query, **extra):
        body = self.ok(self.s, args("/api/v1/query", query=query, time=self.AT, **extra))
        ranged = self.s.json(args("/api/v1/query_range", query=query, start=self.AT, end=self.AT + 5, step=5, **extra))
        if ranged[0] == 200:
            self.assertEqual(self.tenants(ranged[1]["data"]), self.tenants(body["data"]), query)
        return body["data"]["result"]

    def test_queries_are_confined(self):
        for query in self.QUERIES:
            for _ in range(2):  # the second time on the loop
                seen = self.tenants(self.query(query, extra_label="t=a"))
                self.assertLessEqual(seen, {"a", ""}, query)
                seen = self.tenants(self.query(query, **{"extra_filters[]": ['{t="a"}', '{t="c"}']}))
                self.assertLessEqual(seen, {"a", "c", ""}, query)
        self.assertEqual(self.tenants(self.query("m", extra_label="t=a")), {"a"})
        self.assertEqual(self.query("m{t='b'}", extra_label="t=a"), [])
        self.assertEqual(self.query("absent(m{t='b'})", extra_label="t=a"),
                         [{"metric": {"t": "b"}, "value": [self.AT, "1"]}])

    def test_filters_are_a_union_and_labels_an_intersection(self):
        count = lambda **extra: [r["value"][1] for r in self.query("count(m)", **extra)]
        self.assertEqual(count(), ["9"])
        self.assertEqual(count(extra_filters='{t="a"}'), ["3"])
        self.assertEqual(count(**{"extra_filters[]": ['{t="a"}', '{t=~"a|b"}', '{i="2"}']}), ["7"])  # each series once
        self.assertEqual(count(**{"extra_filters[]": ['{t="a"}', '{t="b"}'], "extra_label": "i=1"}), ["2"])
        self.assertEqual(count(extra_label=["t=a", "i=1"]), ["1"])
        self.assertEqual(count(extra_label=["t=a", "t=b"]), [])
        self.assertEqual(count(extra_filters='{t!="a"}'), ["6"])  # alone it would be refused as match[]
        self.assertEqual(count(extra_label="nope="), ["9"])  # an absent label is an empty one

    def test_metadata_calls(self):
        for extra, want in [({"extra_label": "t=a"}, {"a"}), ({"extra_filters[]": ['{t="a"}', '{t="c"}']}, {"a", "c"})]:
            values = self.ok(self.s, args("/api/v1/label/t/values", **extra))["data"]
            self.assertEqual(set(values), want)
            self.assertEqual(len(values), len(want))
            series = self.ok(self.s, args("/prometheus/api/v1/series", **{"match[]": ["m", "{i='1'}"]}, **extra))["data"]
            self.assertEqual({r["t"] for r in series}, want)
            self.assertEqual(len(series), 3 * len(want))
            lines = self.s.get(args("/api/v1/export", **{"match[]": ["m", "{i='1'}"]}, **extra))[2].splitlines()
            self.assertEqual({json.loads(line)["metric"]["t"] for line in lines}, want)
            self.assertEqual(len(lines), 3 * len(want))  # each series once
        self.assertEqual(self.ok(self.s, args("/api/v1/labels", extra_label="i=1"))["data"], ["__name__", "i", "t"])
        self.assertEqual(self.ok(self.s, args("/api/v1/label/d/values", extra_label="t=b"))["data"], ["d_b"])

    def test_a_form_does_not_widen_the_query_string(self):
        target = args("/api/v1/query", **{"extra_filters[]": '{t="a"}'})
        form = urllib.parse.urlencode({"query": "count(m)", "time": self.AT, "extra_filters[]": '{t="b"}'})
        _, _, body = self.s.request("POST", target, form, {"Content-Type": test_http.FORM})
        self.assertEqual(json.loads(body)["data"]["result"][0]["value"][1], "3")
        _, _, body = self.s.request("POST", "/api/v1/query", form, {"Content-Type": test_http.FORM})
        self.assertEqual(json.loads(body)["data"]["result"][0]["value"][1], "3")

    def test_what_is_wrong(self):
        for extra, says in [({"extra_label": "a"}, "name=value"), ({"extra_label": "=a"}, "name=value"),
                            ({"extra_filters[]": "{"}, "extra_filters"), ({"extra_filters": "{}"}, "extra_filters"),
                            ({"extra_filters": '{a=~"("}'}, "extra_filters")]:
            for path in ["/api/v1/query", "/api/v1/series", "/api/v1/labels", "/api/v1/export"]:
                status, body = self.s.json(args(path, query="m", **{"match[]": "m"}, **extra))
                self.assertEqual((status, body["errorType"]), (400, "bad_data"), (path, extra))
                self.assertIn(says, body["error"])
        status, _, body = self.s.request("POST", "/api/v1/read?extra_label=a=b", b"")
        self.assertEqual(status, 400)
        self.assertIn(b"extra_label", body)

    def test_round_digits(self):
        value = lambda query, digits: self.ok(self.s, args("/api/v1/query", query=query, round_digits=digits,
                                                           nocache=1))["data"]["result"]
        self.assertEqual(value("vector(10) / 3", 2)[0]["value"][1], "3.33")
        self.assertEqual(value("scalar(vector(-25.55))", 1)[1], "-25.6")
        self.assertEqual(value("vector(1234)", -2)[0]["value"][1], "1200")
        self.assertEqual(value("vector(1e300)", 99)[0]["value"][1], self.ok(
            self.s, "/api/v1/query?query=vector(1e300)")["data"]["result"][0]["value"][1])
        self.assertEqual(value("vector(NaN)", 2)[0]["value"][1], "NaN")
        ranged = self.ok(self.s, args("/api/v1/query_range", query="time()/7", start=0, end=7, step=7, round_digits=3))
        self.assertEqual([v for _, v in ranged["data"]["result"][0]["values"]], ["0", "1"])
        self.assertEqual(self.s.get(args("/api/v1/query", query="1", round_digits="x"))[0], 400)


class ExportTest(VmTest):
    """Raw samples out."""

    @classmethod
    def setUpClass(cls):
        cls.s = test_http.Server()
        rows = text_rows("e", {"q": 'x,"y"', "l": "a\nb"}, [1.5, -2, "NaN", "+Inf"]) + text_rows("e", {"q": "z"}, [1e300])
        status, _, body = cls.s.request("POST", "/api/v1/import/prometheus", rows)
        assert status == 204, body

    @classmethod
    def tearDownClass(cls):
        cls.s.close()

    def export(self, path, content_type, **fields):
        status, headers, body = self.s.get(args(path, **fields))
        self.assertEqual(status, 200, body)
        self.assertEqual(headers["Content-Type"].split(";")[0], content_type)
        zipped = self.s.get(args(path, **fields), headers={"Accept-Encoding": "gzip"})
        self.assertEqual(zipped[1]["Content-Encoding"], "gzip")
        self.assertEqual(gzip.decompress(zipped[2]), body)
        return body.decode()

    def test_csv(self):
        body = self.export("/api/v1/export/csv", "text/csv", **{
            "match[]": ["e", '{q="z"}'], "format": "__name__,q,l,nope,__value__,__timestamp__:rfc3339"})
        rows = list(csv.reader(io.StringIO(body, newline="")))
        self.assertEqual(rows[0], ["__name__", "q", "l", "nope", "__value__", "__timestamp__:rfc3339"])
        self.assertEqual(sorted(rows[1:]), sorted(
            [["e", 'x,"y"', "a\nb", "", v, f"2023-11-14T22:13:2{i}Z"] for i, v in enumerate(["1.5", "-2", "NaN", "+Inf"])] +
            [["e", "z", "", "", "1" + "0" * 300, "2023-11-14T22:13:20Z"]]))
        for bad in ["", "a,,b", "__timestamp__:nope"]:
            status, body = self.s.json(args("/api/v1/export/csv", format=bad, **{"match[]": "e"}))
            self.assertEqual((status, body["errorType"]), (400, "bad_data"), bad)
            self.assertTrue(body["error"])

    def test_text_goes_in_again(self):
        body = self.export("/prometheus/api/v1/export", "text/plain", format="prometheus", **{"match[]": "e"})
        self.assertEqual(len(body.splitlines()), 5)
        other = self.start()
        self.put(other, body)
        self.assertEqual(other.get(args("/api/v1/export", **{"match[]": "e"}))[2],
                         self.s.get(args("/api/v1/export", **{"match[]": "e"}))[2])

    def test_promapi_and_lines(self):
        body = json.loads(self.export("/api/v1/export", "application/json", format="promapi", max_rows_per_line=1,
                                      reduce_mem_usage=1, **{"match[]": "e"}))
        series = {r["metric"]["q"]: r for r in body["data"]["result"]}
        self.assertEqual((body["status"], body["data"]["resultType"], len(series)), ("success", "matrix", 2))
        self.assertEqual(series['x,"y"']["values"], [[START_MS / 1000, "1.5"], [START_MS / 1000 + 1, "-2"],
                                                     [START_MS / 1000 + 2, "NaN"], [START_MS / 1000 + 3, "+Inf"]])
        lines = self.export("/api/v1/export", "application/stream+json", max_rows_per_line=3, **{
            "match[]": '{q!="z",__name__="e"}'}).splitlines()
        self.assertEqual([len(json.loads(line)["values"]) for line in lines], [3, 1])
        none = self.export("/api/v1/export", "application/json", format="promapi", **{"match[]": "nothing"})
        self.assertEqual(json.loads(none)["data"]["result"], [])
        self.assertEqual(self.s.get(args("/api/v1/export", format="xml", **{"match[]": "e"}))[0], 400)
        self.assertEqual(self.s.get("/api/v1/export/csv?format=a")[0], 400)

    def test_series_count(self):
        self.assertEqual(self.ok(self.s, "/api/v1/series/count"), {"status": "success", "data": [2]})
        self.assertEqual(self.ok(self.s, "/prometheus/api/v1/series/count?extra_label=q=z")["data"], [1])


@unittest.skipUnless(PEER, NO_PEERS)
class PeerTest(VmTest):
    """The shape of answers is the real one's: same keys, same types, where ours promises that shape."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="varve-vm-")
        cls.port = peerlib.free_ports(1)[0]
        cls.processes = peerlib.Processes(cls.folder)
        cls.processes.start("vm", [PEER, f"-storageDataPath={cls.folder}/data", f"-httpListenAddr=127.0.0.1:{cls.port}",
                                   "-loggerLevel=WARN", "-search.disableCache", "-retentionPeriod=100y",
                                   "-search.latencyOffset=0s"])
        cls.s = test_http.Server()
        cls.wait_peer()
        rows = "".join(text_rows("shape", {"a": a, "q": 'x,"y'}, [1.5, 2, -3]) for a in "bc") + \
            text_rows("other", {}, [7])
        for send in (cls.ours, cls.theirs):
            status, _, body = send("POST", "/api/v1/import/prometheus", rows)
            assert status == 204, body
        cls.theirs("GET", "/internal/force_flush")

    @classmethod
    def tearDownClass(cls):
        cls.processes.stop_all()
        cls.s.close()
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def ours(cls, method, target, body=None):
        return cls.s.request(method, target, body)

    @classmethod
    def theirs(cls, method, target, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", cls.port, timeout=20)
        try:
            connection.request(method, target, body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    @classmethod
    def wait_peer(cls):
        for _ in range(200):
            cls.processes.check()
            try:
                if cls.theirs("GET", "/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError("victoria-metrics did not start:\n" + cls.processes.log("vm"))

    def both(self, target, method="GET"):
        ours, theirs = self.ours(method, target), self.theirs(method, target)
        self.assertEqual(ours[0], theirs[0], (target, ours[2], theirs[2]))
        return ours[2], theirs[2]

    def assert_covers(self, ours, theirs, path=""):
        """Every key of theirs is in ours, with a value of the same type; lists by their first element."""
        self.assertEqual(type(ours), type(theirs), path)
        if isinstance(theirs, dict):
            for key in theirs:
                if key.startswith("search.queryStats") or key in ("topByAvgMemoryUsage", "trackerMemoryMaxSizeBytes",
                                                                  "trackerCurrentMemoryUsageBytes"):
                    continue  # what Varve does not count
                self.assertIn(key, ours, path)
                self.assert_covers(ours[key], theirs[key], f"{path}.{key}")
        elif isinstance(theirs, list) and theirs:
            self.assertTrue(ours, path)
            self.assert_covers(ours[0], theirs[0], path + "[0]")

    def test_status_calls(self):
        at = START_MS // 1000
        for send in (self.ours, self.theirs):
            for query in ["shape", "sum(rate(shape[5m]))"]:
                send("GET", args("/api/v1/query_range", query=query, start=at - 3600, end=at, step=1))
        for target in ["/api/v1/status/active_queries", "/api/v1/status/top_queries?topN=3&maxLifetime=30m",
                       "/prometheus/api/v1/status/metric_names_stats?limit=1", "/api/v1/status/metric_names_stats?le=-1"]:
            ours, theirs = self.both(target)
            self.assert_covers(json.loads(ours), json.loads(theirs), target)
        ours, theirs = self.both("/api/v1/series/count")
        self.assertEqual(json.loads(ours), json.loads(theirs))
        names = [{r["metricName"]: r["queryRequestsCount"] > 0 for r in json.loads(b)["records"]}
                 for b in self.both("/api/v1/status/metric_names_stats")]
        self.assertEqual(names[0], names[1])

    def test_exports_are_the_same(self):
        columns = "__name__,a,__value__,__timestamp__:unix_s,__timestamp__:unix_ms,__timestamp__:unix_ns," \
                  "__timestamp__:rfc3339,__timestamp__:custom:Mon Jan _2 15:04:05.000 MST 2006,none"
        for target in [args("/api/v1/export/csv", **{"match[]": "shape", "format": columns}),
                       args("/api/v1/export", **{"match[]": ["shape", "other"], "format": "prometheus"})]:
            ours, theirs = self.both(target)
            self.assertEqual(sorted(ours.splitlines()), sorted(theirs.splitlines()), target)
        for query in [{"max_rows_per_line": 2}, {"start": START_MS // 1000 + 1}, {"format": "promapi"}]:
            ours, theirs = self.both(args("/api/v1/export", **{"match[]": "shape"}, **query))
            read = lambda text: sorted((json.loads(line) for line in text.splitlines()), key=str)
            if "format" in query:
                read = lambda text: sorted(json.loads(text)["data"]["result"], key=str)
            self.assertEqual(read(ours), read(theirs), query)

    def test_extra_filters_mean_the_same(self):
        at = START_MS // 1000 + 2
        for extra in [{"extra_label": "a=b"}, {"extra_filters[]": '{a="b"}'}, {"extra_filters": ['{a="b"}', '{a="c"}']},
                      {"extra_filters[]": '{a!="b"}'}, {"extra_label": ["a=b", "a=c"]}, {"round_digits": 0}]:
            for query in ["shape", "sum(shape)", "count(shape or other)", "absent(nope)", "sum_over_time(shape[1m:1s])"]:
                ours, theirs = self.both(args("/api/v1/query", query=query, time=at, nocache=1, **extra))
                read = lambda text: sorted(map(json.dumps, json.loads(text)["data"]["result"]))
                self.assertEqual(read(ours), read(theirs), (query, extra))


if __name__ == "__main__":
    test_http.main()
