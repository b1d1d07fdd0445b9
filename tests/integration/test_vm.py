#!/usr/bin/env python3
"""Black-box tests of VictoriaMetrics' calls and of what the server tells about itself.

usage: tests/integration/test_vm.py [-k PATTERN] [-v]
VARVE names another binary. With VARVE_PEERS (a folder with usr/bin/victoria-metrics) answers are compared in shape
with the real one's; without, those tests are skipped. Ends with "N passed, N failed, N skipped".
"""
import http.client
import json
import os
import shutil
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

PEER = shutil.which("victoria-metrics", path=os.path.join(os.environ.get("VARVE_PEERS", "/none"), "usr/bin"))

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

    def ok(self, server, target, **kw):
        status, body = server.json(target, **kw)
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
        self.put(s, "".join(text_rows(name, {"job": "j"}, [1]) for name in ["never", "by_name", "by_re_a", "by_re_b"]) +
                 text_rows("by_label", {"job": "k"}, [1]))
        at = START_MS // 1000
        before = int(time.time())
        for _ in range(3):
            self.ok(s, args("/api/v1/query", query="by_name + by_name + not_there", time=at))
        self.ok(s, args("/api/v1/query", query='count({__name__=~"by_re_.*"})', time=at))
        self.ok(s, args("/api/v1/query", query='count({job="k"})', time=at))
        self.ok(s, args("/api/v1/query", query="never", time=at + 86400))  # nothing there: not asked for
        self.assertEqual(self.names(s), {"never": 0, "by_name": 3, "by_re_a": 1, "by_re_b": 1, "by_label": 1})
        self.assertEqual(self.names(s, le=0), {"never": 0})
        self.assertEqual(self.names(s, le=1, match_pattern="_re_"), {"by_re_a": 1, "by_re_b": 1})
        self.assertEqual(list(self.names(s, limit=3)), ["never", "by_label", "by_re_a"])
        body = self.ok(s, "/prometheus/api/v1/status/metric_names_stats")
        self.assertEqual(body["statsCollectedRecordsTotal"], 5)
        self.assertAlmostEqual(body["statsCollectedSince"], before, delta=60)
        self.assertGreaterEqual(body["records"][-1]["lastRequestTimestamp"], before)
        self.assertEqual(body["records"][0]["lastRequestTimestamp"], 0)
        for bad in ["limit=x", "le=x", "match_pattern=("]:
            self.assertEqual(s.get("/api/v1/status/metric_names_stats?" + bad)[0], 400, bad)
        self.assertEqual(s.get("/api/v1/admin/status/metric_names_stats/reset")[0], 204)
        self.assertEqual(set(self.names(s).values()), {0})


@unittest.skipUnless(PEER, "no victoria-metrics in VARVE_PEERS")
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
        names = [{r["metricName"]: r["queryRequestsCount"] > 0 for r in json.loads(b)["records"]}
                 for b in self.both("/api/v1/status/metric_names_stats")]
        self.assertEqual(names[0], names[1])


if __name__ == "__main__":
    test_http.main()
