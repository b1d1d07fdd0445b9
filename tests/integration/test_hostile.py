#!/usr/bin/env python3
"""Queries meant to hurt: each gets a clear answer within a second, memory stays where it was, writes go on meanwhile.

usage: tests/integration/test_hostile.py [-k PATTERN] [-v]
VARVE names another binary. Ends with "N passed, N failed, N skipped".
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

START = 1700000000
SERIES = 3000
DEADLINE_S = 1.0 * float(os.environ.get("PATIENCE", "1"))
GROWTH_MAX_MIB = 96  # over what the server held before; a query may hold 64


def range_query(text, start=START, end=START + 600, step=60):
    return ("/api/v1/query_range", {"query": text, "start": start, "end": end, "step": step})


def instant(text):
    return ("/api/v1/query", {"query": text, "time": START + 600})


# name: (request, statuses that are right, what the error must name)
HOSTILE = {
    "parentheses, 100,000 deep": (instant("(" * 100000 + "1" + ")" * 100000), {400}, "nest"),
    "functions, 20,000 deep": (instant("abs(" * 20000 + "m" + ")" * 20000), {400}, "nest"),
    "a megabyte of signs": (instant("-" * 1000000 + "1"), {400}, ""),
    "a megabyte of sums": (instant("+".join(["1"] * 500000)), {400}, ""),
    "a megabyte of name": (instant("m" * 1000000), {200, 400}, ""),
    "everything": (instant('{__name__=~".*"}'), {400}, "at least one"),
    "everything there is, at every step": (range_query('{__name__=~".+"}', end=START + 10999, step=1), {422}, "--query.max"),
    "a product of all with all": (instant("m * on () group_left () m"), {422}, "many-to-many"),
    "a regex of nested repeats": (instant('{a=~"(x+x+)+y"}'), {200, 400}, ""),
    "a regex of nested stars": (instant('m{a=~"((.*)*)*b"}'), {200, 400}, ""),
    "a regex of huge repeats": (instant('m{a=~"((a{1000}){1000}){1000}"}'), {400}, ""),
    "a regex of 50,000 words": (instant('m{a=~"' + "|".join(f"w{i}x" for i in range(50000)) + '"}'), {200, 400}, ""),
    "a subquery of a year in ms": (instant("sum_over_time(m[1y:1ms])"), {422}, "--query.max"),
    "subqueries of subqueries": (instant("max_over_time(max_over_time(max_over_time(vector(1)[1y:1s])[1y:1s])[1y:1s])"),
                                 {422}, "--query.max"),
    "11,001 points and one more": (range_query("m", end=START + 11001, step=1), {400}, "--query.max-points"),
    "an end before the start": (range_query("m", end=START - 1), {400}, "end"),
    "a step of zero": (range_query("m", step=0), {400}, "step"),
    "a step that is no number": (range_query("m", step="NaN"), {400}, "step"),
    "a range beyond all time": (instant("m[9999999999y]"), {400}, ""),
    "an offset beyond all time": (instant("m offset 9999999999y"), {400}, ""),
    "topk of more than there is": (instant("topk(1e300, m)"), {422}, "1e+300"),
    "a label of ever longer values": (
        instant("label_replace(" * 300 + "m" + ', "l", "$1$1", "l", "(.*)")' * 300), {200, 400, 422}, ""),
    "a text that is not UTF-8": (("/api/v1/query", {"query": b'm{a="\xff"}'}), {400}, ""),
    "a NUL": (instant("m\0"), {400}, ""),
}


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = test_http.Server("--query.max-memory=64MiB", "--query.experimental=true")
        rows = "".join(f'm{{i="{i}",a="{"x" * (i % 30)}"}} {i} {(START + 600) * 1000}\n' for i in range(SERIES))
        status, _, body = cls.server.request("POST", "/api/v1/import/prometheus", rows)
        assert status == 204, body
        cls.stop = threading.Event()
        cls.writes = []
        cls.writer = threading.Thread(target=cls.keep_writing)
        cls.writer.start()

    @classmethod
    def keep_writing(cls):
        """A row every 20 ms, with how long its answer took."""
        n = 0
        while not cls.stop.is_set():
            begun = time.monotonic()
            status, _, _ = cls.server.request("POST", "/api/v1/import/prometheus", f"w {n} {START * 1000 + n}\n")
            cls.writes.append((status, time.monotonic() - begun))
            n += 1
            time.sleep(0.02)

    @classmethod
    def tearDownClass(cls):
        cls.stop.set()
        cls.writer.join()
        cls.server.close()

    def resident_mib(self):
        with open(f"/proc/{self.server.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def test_each_is_answered_at_once(self):
        before = self.resident_mib()
        for name, ((path, fields), statuses, names) in HOSTILE.items():
            with self.subTest(name):
                begun = time.monotonic()
                status, _, body = self.server.request("POST", path, urllib.parse.urlencode(fields), {
                    "Content-Type": "application/x-www-form-urlencoded"})
                seconds = time.monotonic() - begun
                self.assertIn(status, statuses, body[:300])
                self.assertLess(seconds, DEADLINE_S)
                if status != 200:
                    error = json.loads(body)["error"]
                    self.assertIn(names, error)
                    self.assertLess(len(error), 2000, "an error repeats what was asked")
        self.assertLess(self.resident_mib() - before, GROWTH_MAX_MIB)

    def test_many_at_once(self):
        """A crowd of them does not keep writes and light queries waiting."""
        before, marks = self.resident_mib(), len(self.writes)
        path, fields = range_query("quantile_over_time(0.5, m[20h:100ms])", end=START + 800, step=1)
        fields["timeout"] = "300ms"
        answers = []

        def ask():
            answers.append(self.server.request("POST", path, urllib.parse.urlencode(fields), {
                "Content-Type": "application/x-www-form-urlencoded"})[0])

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertLessEqual(set(answers), {422, 503})
        self.assertEqual(self.server.get("/api/v1/query?query=1%2B1")[0], 200)
        self.assertLess(self.resident_mib() - before, 6 * GROWTH_MAX_MIB)
        done = self.writes[marks:]
        self.assertGreater(len(done), 5)
        self.assertEqual({status for status, _ in done}, {204})
        self.assertLess(max(seconds for _, seconds in done), DEADLINE_S)


if __name__ == "__main__":
    test_http.main()
