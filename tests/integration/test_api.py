#!/usr/bin/env python3
"""Black-box tests of the Prometheus HTTP API: arguments, shapes, errors, what the operator can switch.

usage: tests/integration/test_api.py [-k PATTERN] [-v]
VARVE names another binary. Ends with "N passed, N failed, N skipped".
"""
import http.client
import json
import os
import struct
import sys
import time
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "crash")]
import crashlib  # noqa: E402  remote write requests
import test_http  # noqa: E402  the server's life and requests

T0 = 1749999600  # 2025-06-15T15:00:00Z
STALE = struct.unpack("<d", struct.pack("<Q", 0x7ff0000000000002))[0]
ORIGIN = {"Origin": "http://grafana.example"}


def args(path, *pairs, **fields):
    """A target with its query string; pairs for names that are no Python words."""
    return path + "?" + urllib.parse.urlencode([*pairs, *fields.items()], doseq=True)


class Api(unittest.TestCase):
    """Helpers; subclasses share one server each."""
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.s = test_http.Server(*cls.flags)

    @classmethod
    def tearDownClass(cls):
        code, log = cls.s.stop(), cls.s.log()
        cls.s.close()
        assert code == 0, f"exit code {code}, the log ends:\n{log[-2000:]}"

    def load(self, text):
        self.assertIn(self.s.request("POST", "/api/v1/import/prometheus", text)[0], (200, 204))

    def data(self, path, *pairs, **fields):
        status, body = self.s.json(args("/api/v1/" + path, *pairs, **fields))
        self.assertEqual((status, body["status"]), (200, "success"), body)
        return body["data"]

    def refused(self, path, *pairs, **fields):
        """The text of a 400 that says bad_data."""
        status, body = self.s.json(args("/api/v1/" + path, *pairs, **fields))
        self.assertEqual((status, body["status"], body["errorType"]), (400, "error", "bad_data"), body)
        return body["error"]

    def post(self, path, **fields):
        status, _, body = self.s.request("POST", "/api/v1/" + path, urllib.parse.urlencode(fields, doseq=True),
                                         {"Content-Type": test_http.FORM})
        return status, json.loads(body) if body else None

    def result(self, query, at=T0):
        return self.data("query", query=query, time=at)["result"]


class Status(Api):
    flags = ("--storage.cache-bytes=10MiB",)

    def test_flags_and_config(self):
        flags = self.data("status/flags")
        self.assertEqual(flags["storage.path"], self.s.folder)
        self.assertEqual((flags["storage.retention"], flags["query.lookback-delta"]), ("100y", "5m"))
        self.assertEqual((flags["storage.cache-bytes"], flags["query.experimental"]), ("10MiB", "false"))
        self.assertNotIn(flags["memory.limit"], ("0", ""))  # what is in effect, not what was given
        yaml = self.data("status/config")["yaml"]
        self.assertIn("storage:\n  path: " + json.dumps(self.s.folder) + "\n", yaml)
        groups = [line for line in yaml.splitlines() if not line.startswith(" ")]
        self.assertEqual(len(groups), len(set(groups)))
        self.assertEqual(len(yaml.splitlines()), len(groups) + len(flags))

    def test_runtimeinfo(self):
        info = self.data("status/runtimeinfo")
        for key in ("startTime", "CWD", "hostname", "serverTime", "reloadConfigSuccess", "lastConfigTime",
                    "corruptionCount", "goroutineCount", "GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG"):
            self.assertIn(key, info)
        self.assertEqual(info["storageRetention"], "100y")
        self.assertEqual(info["CWD"], os.getcwd())
        self.assertRegex(info["startTime"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertLessEqual(info["startTime"], info["serverTime"])
        self.assertGreater(info["goroutineCount"], 3)

    def test_what_there_is_not(self):
        self.assertEqual(self.data("status/walreplay"), {"min": 0, "max": 0, "current": 0})
        self.assertEqual(self.data("rules", type="alert"), {"groups": []})
        self.assertIn("not supported value", self.refused("rules", type="x"))
        self.assertEqual(self.data("alerts"), {"alerts": []})
        self.assertEqual(self.data("alertmanagers"), {"activeAlertmanagers": [], "droppedAlertmanagers": []})
        self.assertEqual(self.data("targets", state="active"),
                         {"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}})
        self.assertEqual(self.data("targets/metadata", metric="up"), [])
        self.refused("targets/metadata", limit="x")
        self.assertEqual(self.data("scrape_pools"), {"scrapePools": []})
        self.assertEqual(self.data("notifications"), [])
        self.assertEqual(self.s.get("/api/v1/features")[0], 404)
        self.assertEqual(self.s.get("/api/v1/status/nothing")[0], 404)
        self.assertEqual(self.s.get("/prometheus/api/v1/status/flags")[0], 200)

    def test_metrics_type(self):
        self.assertEqual(self.s.get("/metrics")[1]["Content-Type"],
                         "text/plain; version=0.0.4; charset=utf-8; escaping=underscores")

    def test_tsdb(self):
        self.load("".join(f'card_a{{job="x",n="{i}"}} 1\n' for i in range(30)) +
                  "".join(f'card_b{{job="y",n="{i}"}} 1\n' for i in range(20)))
        data = self.data("status/tsdb", ("match[]", '{__name__=~"card_."}'), focusLabel="job")
        row = lambda name, value: {"name": name, "value": value}
        self.assertEqual(data["totalSeries"], 50)
        self.assertGreaterEqual(data["headStats"]["numSeries"], 50)
        self.assertGreaterEqual(data["headStats"]["chunkCount"], 50)
        self.assertGreater(data["headStats"]["maxTime"], (time.time() - 600) * 1000)
        self.assertEqual(data["seriesCountByMetricName"], [row("card_a", 30), row("card_b", 20)])
        self.assertEqual(data["labelValueCountByLabelName"], [row("n", 30), row("__name__", 2), row("job", 2)])
        self.assertEqual(data["memoryInBytesByLabelName"],
                         [row("__name__", 300), row("n", 10 + 40 + 10 + 20), row("job", 50)])
        self.assertEqual(data["seriesCountByLabelValuePair"][:3],
                         [row("__name__=card_a", 30), row("job=x", 30), row("__name__=card_b", 20)])
        self.assertEqual(data["seriesCountByFocusLabelValue"], [row("x", 30), row("y", 20)])
        self.assertEqual(data["seriesCreatedLastHourByMetricName"], [row("card_a", 30), row("card_b", 20)])
        self.assertEqual(len(data["seriesCountByLabelValuePair"]), 10)
        both = self.data("status/tsdb", ("match[]", "card_b"), ("match[]", 'card_a{n="3"}'), limit=1)
        self.assertEqual((both["totalSeries"], both["seriesCountByMetricName"]), (21, [row("card_b", 20)]))
        self.assertEqual(self.data("status/tsdb", ("match[]", "none_such"))["totalSeries"], 0)
        for wrong in ("x", "0", "-1", "10001", "99999999999999999999"):
            self.refused("status/tsdb", limit=wrong)
        self.refused("status/tsdb", ("match[]", "card_a{"))


class Arguments(Api):
    """Data of a few series; what the calls make of their arguments."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = [f'ramp{{i="a"}} {i - 20} {(T0 - 600 + 30 * i) * 1000}' for i in range(41)]
        lines += [f'many{{i="{i}",side="{"l" if i % 2 else "r"}"}} {i} {T0 * 1000}' for i in range(10)]
        lines += [f'wiped{{i="1"}} 1 {T0 * 1000}', f'{{"dotted","k8s.ns"="a"}} 1 {T0 * 1000}',
                  "# HELP many How many.\n# TYPE many gauge"]
        cls.s.request("POST", "/api/v1/import/prometheus", "\n".join(lines) + "\n")

    def test_points_of_a_range(self):
        error = self.refused("query_range", query="ramp", start=0, end=T0, step=1)
        self.assertIn("11,000", error.replace("11000", "11,000"))
        self.assertRegex(error, r"\b1590\d\d|\b159091")  # T0 / 11000: the smallest step that would pass
        self.data("query_range", query="ramp", start=T0 - 10999, end=T0, step=1)

    def test_forms_of_times_and_steps(self):
        """However a time or a step is written, the answer has the same bytes."""
        answers = set()
        for step in ("1m", "60", "60s", "6e1", "60.000"):
            for start in (str(T0), "%.10e" % T0, "2025-06-15T15:00:00Z", "2025-06-15T15:00:00.000+00:00",
                          "2025-06-15T17:00:00+02:00"):
                form = urllib.parse.urlencode({"query": "ramp", "start": start, "end": T0 + 60, "step": step})
                status, _, body = self.s.request("POST", "/api/v1/query_range", form,
                                                 {"Content-Type": test_http.FORM})
                self.assertEqual(status, 200, body)
                answers.add(body)
        self.assertEqual(len(answers), 1)
        self.assertEqual(json.loads(answers.pop())["data"]["result"][0]["values"], [[T0, "0"], [T0 + 60, "2"]])

    def test_odd_times(self):
        for wrong in ("NaN", "1e400", "-1e400", "2025-06-15T15:00:00", "2025-06-15 15:00:00Z", "yesterday", "1e30"):
            self.refused("query", query="vector(time())", time=wrong)
        at = self.result("vector(time())", "2025-06-15T17:00:00+02:00")
        self.assertEqual(at, [{"metric": {}, "value": [T0, str(T0)]}])
        status, body = self.s.json(args("/api/v1/query", query="vector(time())", time=T0 * 1000))  # ms
        self.assertIn(status, (200, 400))
        if status == 200:
            self.assertIn(float(body["data"]["result"][0]["value"][1]), (T0, T0 * 1000.0))
        fine = self.result("vector(time())", "%d.123" % T0)
        self.assertEqual(fine, self.result("vector(time())", "2025-06-15T15:00:00.123Z"))

    def test_long_expressions(self):
        self.assertEqual(self.result("+++++++---------++++++1")[1], "-1")
        self.assertEqual(self.post("query", query="(" * 2000 + "1" + ")" * 2000, time=T0)[0] in (200, 400), True)
        began = time.time()
        for wrong in ("(" * 100000, "-" * 100000, "sum(" * 50000, "", "{" * 1000):
            status, body = self.post("query", query=wrong)
            self.assertEqual((status, body["errorType"]), (400, "bad_data"))
        self.assertLess(time.time() - began, 5)

    def test_limit_and_its_warning(self):
        status, body = self.post("query", query="many", time=T0, limit=2)
        self.assertEqual((status, len(body["data"]["result"]), len(body["warnings"])), (200, 2, 1))
        self.assertIn("truncated", body["warnings"][0])
        self.assertEqual(self.post("query", query="1", time=T0, limit=1)[1]["data"]["result"], [T0, "1"])
        for path, pairs in (("series", [("match[]", "many")]), ("labels", []), ("label/i/values", [])):
            whole = self.s.json(args("/api/v1/" + path, *pairs))[1]
            cut = self.s.json(args("/api/v1/" + path, *pairs, limit=2))[1]
            self.assertEqual(len(cut["data"]), 2, path)
            self.assertIn("truncated", cut["warnings"][0])
            exact = self.s.json(args("/api/v1/" + path, *pairs, limit=len(whole["data"])))[1]
            self.assertEqual((exact["data"], "warnings" in exact), (whole["data"], False), path)
            self.assertEqual(self.data(path, *pairs, limit=0), whole["data"])
            self.refused(path, *pairs, limit="x")
            self.refused(path, *pairs, limit=-1)

    def test_match_in_a_form(self):
        self.assertEqual(self.post("series", **{"match[]": "wiped"})[1]["data"], [{"__name__": "wiped", "i": "1"}])
        self.assertEqual(self.post("series", match="wiped")[1]["data"], [{"__name__": "wiped", "i": "1"}])
        self.assertEqual(self.post("series")[0], 400)
        two = self.post("series", **{"match[]": ["many{i=\"1\"}", "many{side=\"l\"}"]})[1]["data"]
        self.assertEqual([s["i"] for s in two], ["1", "3", "5", "7", "9"])

    def test_label_names_beyond_ascii(self):
        for name in ("U__k8s_2e_ns", "k8s.ns", "k8s%2Ens"):
            self.assertEqual(self.data(f"label/{name}/values"), ["a"])
        self.assertEqual(self.data("labels", ("match[]", '{"dotted"}')), ["__name__", "k8s.ns"])

    def test_ranges_are_true(self):
        """What lies outside start and end is not there, and a range may be empty."""
        window = {"start": T0 - 7200, "end": T0 - 3600}
        self.assertEqual(self.data("series", ("match[]", "ramp"), **window), [])
        self.assertEqual(self.data("label/i/values", ("match[]", "ramp"), **window), [])
        self.assertEqual(self.data("labels", ("match[]", "ramp"), **window), [])
        self.assertEqual(len(self.data("series", ("match[]", "ramp"), start=T0 - 600, end=T0 - 600)), 1)
        self.assertEqual(self.data("series", ("match[]", "ramp"), start=T0, end=T0 - 1), [])
        self.assertEqual(self.data("labels", start=T0, end=T0 - 1), [])
        self.refused("labels", start="x")
        self.refused("series", ("match[]", "ramp"), end="x")
        self.assertEqual(len(self.data("series", ("match[]", "ramp"), start="", end="", limit="")), 1)

    def test_matchers_that_say_nothing(self):
        for path in ("series", "labels", "label/i/values"):
            for wrong in ("{}", '{i=~".*"}', "{", "ramp[5m]", 'many{i!="1"', "1"):
                self.refused(path, ("match[]", wrong))

    def test_metadata(self):
        many = {"type": "gauge", "help": "How many.", "unit": ""}
        self.assertEqual(self.data("metadata", metric="many"), {"many": [many]})
        self.assertEqual(self.data("metadata", metric="none_such"), {})
        self.assertLessEqual(len(self.data("metadata", limit=1)), 1)
        self.assertEqual(self.data("metadata", metric="many", limit_per_metric=1), {"many": [many]})
        self.refused("metadata", limit="x")
        self.refused("metadata", limit_per_metric="x")

    def test_exemplars_need_a_query(self):
        self.refused("query_exemplars", start=T0, end=T0)
        self.refused("query_exemplars", query="sum(", start=T0, end=T0)
        self.assertEqual(self.data("query_exemplars", query="test", start=T0, end=T0), [])

    def test_half_seconds(self):
        now = int(time.time()) - 70
        self.load("".join(f"each {i} {(now + i) * 1000}\n" for i in range(61)))
        values = self.data("query_range", query="each", start=now, end=now + 60, step="0.5")["result"][0]["values"]
        self.assertEqual([int(v) for _, v in values], [i // 2 for i in range(121)])


class Federation(Api):
    TEXT = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.now = int(time.time())
        ms = lambda age: (cls.now - age) * 1000
        cls.s.request("POST", "/api/v1/import/prometheus",
                      f'fed_up{{job="a"}} 1 {ms(90)}\nfed_up{{job="a"}} 2 {ms(30)}\nfed_up{{job="b",instance="i"}} 3 {ms(60)}\n'
                      f'fed_old 1 {ms(900)}\nfed_ended 5 {ms(120)}\n{{"fed.odd","k8s.ns"="n"}} 4 {ms(60)}\n')
        ended = crashlib.write_request([({"__name__": "fed_ended"}, [(ms(60), STALE)])])
        assert cls.s.request("POST", "/api/v1/write", crashlib.snappy_literals(ended),
                             crashlib.REMOTE_WRITE_HEADERS)[0] == 204

    def federate(self, *matches, path="/federate", **headers):
        status, heads, body = self.s.get(args(path, *[("match[]", m) for m in matches]), headers=headers)
        return status, heads["Content-Type"], body.decode()

    def test_newest_samples(self):
        want = ("# TYPE fed_up untyped\n"
                f'fed_up{{instance="i",job="b"}} 3 {(self.now - 60) * 1000}\n'
                f'fed_up{{job="a",instance=""}} 2 {(self.now - 30) * 1000}\n')
        self.assertEqual(self.federate("fed_up"), (200, self.TEXT, want))
        self.assertEqual(self.federate("fed_up", '{job="a"}', '{job="b"}'), (200, self.TEXT, want))
        self.assertEqual(self.federate("fed_up", path="/prometheus/federate")[2], want)

    def test_what_ended_is_gone(self):
        self.assertEqual(self.federate("fed_ended")[2], "")
        self.assertEqual(self.federate("fed_old")[2], "")
        self.assertNotIn("NaN", self.federate('{__name__=~"fed.+"}')[2])

    def test_names(self):
        at = (self.now - 60) * 1000
        self.assertEqual(self.federate('{"fed.odd"}')[2],
                         f'# TYPE fed_odd untyped\nfed_odd{{k8s_ns="n",instance=""}} 4 {at}\n')
        kind, text = self.federate('{"fed.odd"}', Accept="text/plain;version=1.0.0;escaping=allow-utf-8")[1:]
        self.assertEqual(kind, "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8")
        self.assertEqual(text, f'# TYPE "fed.odd" untyped\n{{"fed.odd","k8s.ns"="n",instance=""}} 4 {at}\n')

    def test_arguments(self):
        self.assertEqual(self.federate(), (200, self.TEXT, ""))
        status, kind, text = self.federate("fed_up{")
        self.assertEqual((status, kind), (400, "text/plain; charset=utf-8"))
        self.assertIn("match[]", text)
        self.assertEqual(self.federate("{}")[0], 400)
        self.assertEqual(self.s.request("POST", "/federate")[0], 405)
        self.assertEqual(self.s.request("HEAD", "/federate?match[]=fed_up")[0], 200)


class Deletes(Api):
    def test_gone_from_everywhere(self):
        self.load(f'dl{{i="1"}} 1 {T0 * 1000}\nkept{{i="2"}} 1 {T0 * 1000}\n')
        self.assertEqual(self.post("admin/tsdb/delete_series", **{"match[]": "dl"})[0], 204)
        self.assertNotIn("dl", self.data("label/__name__/values"))
        self.assertNotIn("1", self.data("label/i/values"))
        self.assertEqual(self.data("series", ("match[]", "dl")), [])
        self.assertEqual(self.result("dl"), [])
        self.assertEqual(len(self.result("kept")), 1)
        status, body = self.s.json("/api/v1/series/count")
        if status == 200:
            self.assertNotIn(2, body["data"])

    def test_must_name_series(self):
        self.load(f"safe 1 {T0 * 1000}\n")
        for match in (None, "nope{", "{}", '{i=~".*"}', "safe[5m]"):
            status, body = self.post("admin/tsdb/delete_series", **({"match[]": match} if match else {}))
            self.assertEqual((status, body["errorType"]), (400, "bad_data"), match)
        self.assertEqual(self.post("admin/tsdb/delete_series", **{"match[]": "safe", "start": T0, "end": T0 - 1})[0],
                         400)
        self.assertEqual(len(self.result("safe")), 1)

    def test_range_with_both_ends(self):
        self.load("".join(f"pd {i} {(T0 - 300 + 60 * i) * 1000}\n" for i in range(11)))
        status, _ = self.post("admin/tsdb/delete_series", **{"match[]": "pd", "start": T0 - 120, "end": T0})
        self.assertEqual(status, 204)
        self.assertEqual(self.result("count_over_time(pd[20m])", T0 + 300)[0]["value"][1], "8")

    def test_many_series_and_their_bytes(self):
        self.load("".join(f'junk{{n="{i}",pad="{i * 7919}"}} {i * 0.37} {T0 * 1000}\n' for i in range(10000)))
        self.s.get("/internal/force_flush")
        before = self.bytes_of_parts()
        self.assertEqual(self.post("admin/tsdb/delete_series", **{"match[]": "junk"})[0], 204)
        self.assertNotIn("junk", self.data("label/__name__/values"))
        self.assertEqual(self.s.request("PUT", "/api/v1/admin/tsdb/clean_tombstones")[0], 204)
        self.assertLess(self.bytes_of_parts(), before / 3)  # strings of deleted series stay in the symbols
        self.assertNotIn("pad", self.data("labels"))

    def bytes_of_parts(self):
        folder = os.path.join(self.s.folder, "parts")
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


class Switches(unittest.TestCase):
    """What the operator can turn on and off."""

    def start(self, *flags):
        s = test_http.Server(*flags)
        self.addCleanup(s.close)
        return s

    def test_off_by_default(self):
        s = self.start("--no-web.enable-admin-api")
        for path in ("/api/v1/admin/tsdb/delete_series?match[]=x", "/api/v1/admin/tsdb/clean_tombstones"):
            status, _, body = s.request("POST", path)
            self.assertEqual(status, 403)
            self.assertIn("--web.enable-admin-api", json.loads(body)["error"])
        for path in ("/-/quit", "/-/reload"):
            status, _, body = s.request("POST", path)
            self.assertEqual(status, 403)
            self.assertIn("--web.enable-lifecycle", json.loads(body)["error"])
        self.assertEqual(s.get("/-/ready")[0], 200)

    def test_lifecycle(self):
        s = self.start("--web.enable-lifecycle")
        self.assertEqual(s.request("POST", "/-/reload")[0], 200)
        self.assertEqual(s.get("/-/quit")[0], 405)
        self.assertEqual(s.request("PUT", "/-/quit")[0], 200)
        self.assertEqual(s.process.wait(20), 0)

    def test_origins(self):
        asked = {**ORIGIN, "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "content-type,x-panel-id"}
        s = self.start()
        status, headers, _ = s.request("OPTIONS", "/api/v1/query", headers=asked)
        self.assertEqual((status, headers.get_all("Access-Control-Allow-Origin")), (204, [ORIGIN["Origin"]]))
        allowed = headers["Access-Control-Allow-Headers"].lower()
        self.assertIn("content-type", allowed)
        self.assertIn("x-panel-id", allowed)
        headers = s.get("/api/v1/query?query=1", headers=ORIGIN)[1]
        self.assertEqual(headers["Access-Control-Allow-Origin"], ORIGIN["Origin"])
        self.assertIn("Origin", headers.get_all("Vary"))
        s = self.start("--web.cors.origin=https?://(one|two)\\.example")
        self.assertNotIn("Access-Control-Allow-Origin", s.get("/api/v1/query?query=1", headers=ORIGIN)[1])
        headers = s.get("/api/v1/query?query=1", headers={"Origin": "https://two.example"})[1]
        self.assertEqual(headers["Access-Control-Allow-Origin"], "https://two.example")
        s = self.start("--web.cors.origin=")
        self.assertNotIn("Access-Control-Allow-Origin", s.request("OPTIONS", "/api/v1/query", headers=asked)[1])

    def test_head_keeps_the_connection(self):
        s = self.start()
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=20)
        self.addCleanup(connection.close)
        for method in ("HEAD", "GET", "HEAD", "GET"):
            connection.request(method, "/api/v1/query?query=1", headers=ORIGIN)
            answer = connection.getresponse()
            body = answer.read()
            self.assertEqual((answer.status, body == b""), (200, method == "HEAD"))


def main():
    verbosity = 2 if "-v" in sys.argv else 1
    pattern = sys.argv[sys.argv.index("-k") + 1] if "-k" in sys.argv else None
    loader = unittest.TestLoader()
    if pattern:
        loader.testNamePatterns = [f"*{pattern}*"]
    outcome = unittest.TextTestRunner(verbosity=verbosity).run(loader.loadTestsFromModule(sys.modules[__name__]))
    failed = len(outcome.failures) + len(outcome.errors)
    skipped = len(outcome.skipped)
    for _, reason in outcome.skipped:
        print(f"skip: {reason}")
    print(f"{outcome.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
