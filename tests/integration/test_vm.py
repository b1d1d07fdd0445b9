#!/usr/bin/env python3
"""Black-box tests of VictoriaMetrics' calls and of what the server tells about itself.

usage: tests/integration/test_vm.py [-k PATTERN] [-v]
VARVE names another binary. With VARVE_PEERS (a folder with usr/bin/victoria-metrics) answers are compared in shape
with the real one's; without, those tests are skipped. Ends with "N passed, N failed, N skipped".
"""
import json
import os
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_http  # noqa: E402  the server's life and requests

START_MS = 1796000000000


def text_rows(metric, labels, values, start_ms=START_MS, step_ms=1000):
    """Lines of the text format: one series, a sample a step."""
    inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
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
        self.assertEqual([p["name"] for p in data["partitions"]], ["2026-10", "2026-11"])
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


if __name__ == "__main__":
    test_http.main()
