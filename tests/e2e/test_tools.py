#!/usr/bin/env python3
"""promtool and vmalert, the real ones, against Varve.

promtool pushes metrics and gets them back by its queries, with the exit codes that scripts go by. vmalert evaluates
recording and alerting rules, writes their results back, replays a recording rule over the past, and after a restart
goes on with the alert that was pending, not with the one that had ended meanwhile.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import peerlib
import test_prometheus

PAGE = """# HELP shop_orders_total Orders.
# TYPE shop_orders_total counter
shop_orders_total{zone="a"} 41.5
shop_orders_total{zone="ä/ö"} 7
# TYPE shop_load gauge
shop_load -0.25
# TYPE shop_seconds histogram
shop_seconds_bucket{le="1"} 3
shop_seconds_bucket{le="+Inf"} 4
shop_seconds_sum 9.5
shop_seconds_count 4
# TYPE shop_sizes summary
shop_sizes{quantile="0.5"} 2
shop_sizes_sum 11
shop_sizes_count 5
"""

RULES = {"groups": [{"name": "shop", "interval": "1s", "rules": [
    {"record": "shop:orders:sum", "expr": "sum(shop_orders_total)", "labels": {"kind": "recorded"}},
    {"alert": "Orders", "expr": "sum by (zone) (shop_orders_total) > 40", "for": "1h", "labels": {"severity": "low"},
     "annotations": {"summary": "{{ $value }} in {{ $labels.zone }}, "
                                "{{ query \"count(shop_orders_total)\" | first | value }}"}},
    {"alert": "Load", "expr": "shop_load_now > 0", "for": "1h"},
]}]}
REPLAYED = {"groups": [{"name": "past", "interval": "10s",
                        "rules": [{"record": "shop:past", "expr": "shop_past * 2"}]}]}


class Tools:
    """One Varve, the tools, and the count of checks."""

    def __init__(self, folder):
        self.folder, self.processes = folder, peerlib.Processes(folder)
        self.ports = dict(zip(["varve", "vmalert"], peerlib.free_ports(2)))
        self.url = f"http://127.0.0.1:{self.ports['varve']}"
        self.api = peerlib.Api(self.ports["varve"])
        self.note = test_prometheus.Comparison(None, None)
        self.peers = peerlib.find_peers(["promtool", "vmalert"])

    def check(self, ok, what, detail=""):
        """One check."""
        self.note.note(ok, what, detail)

    def file(self, name, content):
        """A file with a text, or with JSON."""
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def start_varve(self):
        """Waits until it is ready."""
        self.processes.start("varve", [peerlib.VARVE, "serve", f"--storage.path={self.folder}/data",
                                       f"--web.listen-address=127.0.0.1:{self.ports['varve']}"])
        peerlib.wait_until("Varve", self.api.ready, 30, self.processes)

    # ---- promtool

    def promtool(self, *arguments):
        """(exit code, what it printed)"""
        done = subprocess.run([self.peers["promtool"], *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=60)
        return done.returncode, done.stdout

    def expect(self, code, part, *arguments):
        """Its exit code, and a part of its output."""
        got, output = self.promtool(*arguments)
        self.check(got == code and part in output, f"promtool {' '.join(arguments)}", f"exit code {got}: {output}")
        return output

    def same_as_api(self, path, parameters, *arguments):
        """promtool's JSON is the API's result."""
        got, output = self.promtool(*arguments)
        expected = self.api.get(path, **parameters)["data"]["result"]
        try:
            same = got == 0 and expected and json.loads(output) == expected
        except ValueError:
            same = False
        self.check(same, f"promtool {' '.join(arguments)}", f"exit code {got}: {output}; expected {expected}")

    def check_promtool(self):
        """Everything that it can ask of a server."""
        page = self.file("page.txt", PAGE)
        self.expect(0, "SUCCESS", "push", "metrics", f"{self.url}/api/v1/write", page, "--label=instance=here",
                    "--label=job=pushed")
        at = time.time() + 1
        for query, value in [('shop_orders_total{zone="a",instance="here",job="pushed"}', 41.5), ("shop_load", -0.25),
                             ('shop_orders_total{zone="ä/ö"}', 7), ('shop_seconds_bucket{le="1"}', 3),
                             ("shop_sizes_sum", 11), ("histogram_quantile(0.5, shop_seconds_bucket)", 2 / 3)]:
            got = self.api.scalar(query, time=f"{at:.3f}")
            self.check(got == value, f"pushed {query}", f"{value} expected, got {got}")
        self.expect(1, "", "push", "metrics", f"{self.url}/api/v1/nothing", page)
        first, last = int(at) - 5, int(at) + 20
        for query in ("shop_orders_total", "sum(shop_orders_total) by (zone) * 2", "rate(shop_load[5m]) or shop_load"):
            self.same_as_api("query", {"query": query, "time": f"{at:.3f}"},
                             "query", "instant", "--format=json", f"--time={at:.3f}", self.url, query)
            self.same_as_api("query_range", {"query": query, "start": first, "end": last, "step": 5},
                             "query", "range", "--format=json", f"--start={first}", f"--end={last}", "--step=5s",
                             self.url, query)
        series = self.expect(0, 'zone="a"', "query", "series", "--match=shop_orders_total", "--match=shop_load",
                             self.url)
        self.check(len(series.strip().splitlines()) == 3, "promtool query series: three of them", series)
        labels = self.expect(0, "ä/ö", "query", "labels", self.url, "zone")
        self.check(labels.split() == ["a", "ä/ö"], "promtool query labels", labels)
        self.expect(0, "shop_load", "query", "labels", "--match=shop_load", self.url, "__name__")
        self.expect(1, "parse error", "query", "instant", self.url, "sum(")
        for what in ("healthy", "ready"):
            self.expect(0, "SUCCESS", "check", what, f"--url={self.url}")
            self.expect(1, "refused", "check", what, f"--url=http://127.0.0.1:{self.ports['vmalert']}")

    # ---- vmalert

    def start_vmalert(self, name, rules, *flags):
        """It reads from Varve and writes to it."""
        self.processes.start(name, [
            self.peers["vmalert"], f"-rule={rules}", f"-datasource.url={self.url}", f"-remoteWrite.url={self.url}",
            f"-remoteRead.url={self.url}", "-remoteWrite.flushInterval=500ms", "-rule.evalDelay=0s",
            "-notifier.blackhole", "-loggerLevel=WARN", f"-httpListenAddr=127.0.0.1:{self.ports['vmalert']}", *flags])

    def alerts(self):
        """name -> alert, of those that are pending or firing."""
        page = peerlib.fetch(f"http://127.0.0.1:{self.ports['vmalert']}/api/v1/alerts")
        return {one["name"]: one for one in json.loads(page)["data"]["alerts"]}

    def put(self, text):
        """Text exposition."""
        with urllib.request.urlopen(f"{self.url}/api/v1/import/prometheus", data=text.encode(), timeout=20) as answer:
            self.check(answer.status == 204, "import of text", f"{answer.status}")

    def check_rules(self):
        """Evaluation, what is written back, and the restart."""
        rules = self.file("rules.yml", RULES)
        self.put("shop_load_now 1\n")
        self.start_vmalert("vmalert", rules)
        peerlib.wait_until("two alerts", lambda: set(self.alerts()) == {"Orders", "Load"}, 30, self.processes)
        before = self.alerts()["Orders"]
        self.check(before["annotations"]["summary"] == "41.5 in a, 2", "the annotation", before["annotations"])
        # vmalert's writers send side by side: that one series has arrived says nothing about the others
        for query in ("shop:orders:sum{kind='recorded'}", "ALERTS_FOR_STATE{alertname='Load'}",
                      "ALERTS{alertname='Orders',alertstate='pending',severity='low',zone='a'}"):
            peerlib.wait_until(f"what is written back: {query}", lambda query=query: self.api.scalar(query), 20,
                               self.processes)
        for query, value in [("shop:orders:sum{kind='recorded'}", 48.5),
                             ("ALERTS{alertname='Orders',alertstate='pending',severity='low',zone='a'}", 1)]:
            got = self.api.scalar(query)
            self.check(got == value, f"written back: {query}", f"{value} expected, got {got}")
        self.put("shop_load_now 0\n")
        peerlib.wait_until("the end of an alert", lambda: set(self.alerts()) == {"Orders"}, 20, self.processes)
        peerlib.wait_until("its stale marker", lambda: not self.api.scalar("ALERTS_FOR_STATE{alertname='Load'}"), 20,
                           self.processes)
        groups = json.loads(peerlib.fetch(f"http://127.0.0.1:{self.ports['vmalert']}/api/v1/rules"))["data"]["groups"]
        states = [rule["health"] for group in groups for rule in group["rules"]]
        self.check(states == ["ok"] * 3, "every evaluation succeeds", f"{groups}")
        self.processes.stop("vmalert")
        time.sleep(2.5)  # a new start would be told from the old one
        self.put("shop_load_now 1\n")
        self.start_vmalert("vmalert-again", rules)
        peerlib.wait_until("two alerts again", lambda: set(self.alerts()) == {"Orders", "Load"}, 30, self.processes)
        after = self.alerts()
        self.check(after["Orders"]["activeAt"][:19] == before["activeAt"][:19], "the pending alert goes on",
                   f"{before['activeAt']} before, {after['Orders']['activeAt']} after")
        self.check(after["Load"]["activeAt"] > before["activeAt"], "the ended alert starts anew",
                   after["Load"]["activeAt"])
        self.processes.stop("vmalert-again")

    def check_replay(self):
        """A recording rule over a range of the past."""
        end = int(time.time()) - 60
        self.put("".join(f"shop_past {at - end} {at * 1000}\n" for at in range(end - 300, end + 1, 10)))
        text = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (end - 200, end)]
        self.start_vmalert("replay", self.file("past.yml", REPLAYED), f"-replay.timeFrom={text[0]}",
                           f"-replay.timeTo={text[1]}", "-replay.disableProgressBar", "-replay.rulesDelay=0s")
        process = self.processes.running.pop("replay")
        status = process.wait(60)
        self.check(status == 0, "vmalert replays", f"exit code {status}:\n{self.processes.log('replay')}")
        peerlib.wait_until("replayed samples", lambda: self.api.scalar("shop:past", time=end - 20) == -40, 20)
        got = self.api.scalar("count_over_time(shop:past[10m])", time=end)
        self.check(got and 18 <= got <= 22, "as many as there are steps", f"{got}")

    def run(self):
        """All of it."""
        self.start_varve()
        self.check_promtool()
        self.check_rules()
        self.check_replay()


def main():
    """Runs in a folder of its own; the last line is what tests/run reads."""
    if not os.access(peerlib.VARVE, os.X_OK):
        print(f"{peerlib.VARVE} is not built")
        return 1
    folder = tempfile.mkdtemp(prefix="varve-tools-")
    test = Tools(folder)
    try:
        test.run()
    except RuntimeError as error:
        last = list(test.processes.running)[-1:]
        test.check(False, str(error), "\n".join(test.processes.log(name, 15) for name in last))
    finally:
        test.processes.stop_all()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{test.note.passed} passed, {test.note.failed} failed, 0 skipped")
    return 1 if test.note.failed else 0


if __name__ == "__main__":
    sys.exit(main())
