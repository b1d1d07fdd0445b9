#!/usr/bin/env python3
"""Every expression of deploy/grafana/dashboards and deploy/alerts, on a Varve that a real Prometheus feeds with Varve's
own metrics and those of a real node exporter: each must succeed, and each of a dashboard must find data.

usage: tests/e2e/test_dashboards.py
"""
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peerlib  # noqa: E402

DASHBOARDS = os.path.join(peerlib.ROOT, "deploy/grafana/dashboards")
PROVISIONING = os.path.join(peerlib.ROOT, "deploy/grafana/provisioning")
RULES = os.path.join(peerlib.ROOT, "deploy/alerts/varve.yml")
SCRAPE_SECONDS = 14
WINDOW = "10s"  # what $__rate_interval becomes: scrapes are a second apart here

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: varve
    static_configs: [{{targets: ["127.0.0.1:{varve}"]}}]
  - job_name: node
    static_configs: [{{targets: ["127.0.0.1:{node}"]}}]
remote_write:
  - url: http://127.0.0.1:{varve}/api/v1/write
    queue_config: {{max_shards: 1, batch_send_deadline: 1s}}
"""

# (dashboard, words of the expression) that may be empty here, and why
MAY_BE_EMPTY = [
    ("varve-node", "deriv(", "no file system fills steadily enough in seconds"),
    ("varve-node", "> 0)", "no disk or file system of this machine may have what is divided by"),
    ("varve-node", "node_disk_", "a container may have no disk of its own"),
    ("varve-node", "node_filesystem_", "a container's file systems may all be overlays"),
    ("varve-node", "node_pressure_", "the kernel may be built without pressure information"),
    ("varve-node", "node_network_", "a container may have a loopback interface only"),
    ("varve-node", "node_timex_", "a container may not ask the kernel's clock"),
    ("varve-node", "node_netstat_Tcp", "a container may hide it"),
]


def post(port, path, body=b""):
    """A POST; its status."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status


def start(processes, folder, peers, ports):
    """Varve, node exporter, Prometheus."""
    processes.start("varve", [peerlib.VARVE, "serve", f"--storage.path={folder}/varve",
                              f"--web.listen-address=127.0.0.1:{ports['varve']}"])
    peerlib.wait_until("Varve", peerlib.Api(ports["varve"]).ready, 30, processes)
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(**ports))
    processes.start("node", [peers["prometheus-node-exporter"], f"--web.listen-address=127.0.0.1:{ports['node']}"])
    processes.start("prometheus", [peers["prometheus"], f"--config.file={config}", "--log.level=warn",
                                   f"--storage.tsdb.path={folder}/prometheus",
                                   f"--web.listen-address=127.0.0.1:{ports['prometheus']}"])


def use(processes, api, ports):
    """What makes the metrics move: samples, queries, errors, flushes and merges, while Prometheus scrapes."""
    peerlib.wait_until("samples of both jobs",
                       lambda: (api.scalar("count(up)") or 0) >= 2 and api.scalar("count(node_load1)") == 1, 60,
                       processes)
    end = time.monotonic() + SCRAPE_SECONDS
    now = int(time.time() * 1000)
    while time.monotonic() < end:
        processes.check()
        api.get("query", query="sum(rate(process_cpu_seconds_total[1m]))")
        api.get("query", query="this is no query")
        rows = "".join(f'load{{n="{i}"}} {i} {now - 60000 + i}\n' for i in range(100))
        post(ports["varve"], "/api/v1/import/prometheus", rows.encode())
        post(ports["varve"], "/internal/force_flush")
        post(ports["varve"], "/internal/force_merge")
        time.sleep(0.8)


def substitute(text, values):
    """Grafana's variables, ${x} and $x, replaced."""
    values = {"__rate_interval": WINDOW, "__interval": "1s", "__range": "1h", **values}
    return re.sub(r"\$\{?(\w+)(?::\w+)?\}?", lambda match: values.get(match[1], match[0]), text)


def check_variable(tally, api, dashboard, variable, values):
    """The label_values() of a variable finds something; its first value goes on."""
    match = re.fullmatch(r"label_values\((.+), (\w+)\)", substitute(variable["query"]["query"], values))
    tally.note(match, f"{dashboard['uid']}: the form of variable {variable['name']}", variable["query"])
    if not match:
        return
    found = api.get(f"label/{match[2]}/values", **{"match[]": match[1]})
    tally.note(found.get("data"), f"{dashboard['uid']}: variable {variable['name']} has values", found)
    values[variable["name"]] = (found.get("data") or ["?"])[0]


def check_panel(tally, api, dashboard, panel, values):
    """All expressions of a panel."""
    name = f"{dashboard['uid']}: {panel['title']}"
    tally.note(panel.get("description") and panel["fieldConfig"]["defaults"].get("unit", panel["type"] == "heatmap"),
               f"{name} has a description and a unit")
    for target in panel["targets"]:
        expression = substitute(target["expr"], values)
        tally.note("$" not in expression, f"{name}: all variables are known", expression)
        answer = api.get("query", query=expression)
        may_be_empty = any(uid == dashboard["uid"] and words in expression for uid, words, _ in MAY_BE_EMPTY)
        data = answer.get("data", {}).get("result")
        if may_be_empty and not data:
            print(f"empty here: {name}")
        tally.note(answer["status"] == "success" and (data or may_be_empty), f"{name}: {expression}", str(answer)[:400])
        now = time.time()
        ranged = api.get("query_range", query=expression, start=now - 5, end=now, step=1)
        tally.note(ranged["status"] == "success", f"{name} as a range: {expression}", str(ranged)[:400])


def check_layout(tally, dashboard):
    """Panels have their own ids, none lies over another, none sticks out."""
    taken, ids = set(), set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        tally.note(not cells & taken and at["x"] + at["w"] <= 24 and panel["id"] not in ids,
                   f"{dashboard['uid']}: place of {panel['title']}", at)
        taken |= cells
        ids.add(panel["id"])


def check_dashboard(tally, api, path):
    """Variables, panels, layout of one dashboard."""
    with open(path, encoding="utf-8") as file:
        dashboard = json.load(file)
    values = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            check_variable(tally, api, dashboard, variable, values)
    check_layout(tally, dashboard)
    for panel in dashboard["panels"]:
        if panel["type"] != "row":
            check_panel(tally, api, dashboard, panel, values)


def rule_expressions():
    """(alert, expression) of the rules; the file's own narrow form is read, as there is no YAML in the library."""
    with open(RULES, encoding="utf-8") as file:
        blocks = file.read().split("- alert: ")[1:]
    for block in blocks:
        folded = re.search(r"expr: >\n((?: {10,}.*\n)+)", block)
        plain = re.search(r"expr: (?!>)(.*)\n", block)
        yield block.split("\n")[0], " ".join((folded or plain)[1].split())


def check_rules(tally, api):
    """Each rule runs, and each metric it names is there."""
    for alert, expression in rule_expressions():
        answer = api.get("query", query=expression)
        tally.note(answer["status"] == "success", f"{alert} runs", str(answer)[:400])
        for metric in set(re.findall(r"\b([a-z_]+)\{", expression)):
            tally.note(api.scalar(f'count({metric}{{job="varve"}})'), f"{alert}: there is a metric {metric}")


def check_provisioning(tally):
    """The data source sends queries by POST; the provider's folder is the one that the README names."""
    with open(os.path.join(PROVISIONING, "datasources/varve.yaml"), encoding="utf-8") as file:
        source = file.read()
    tally.note("type: prometheus" in source and "httpMethod: POST" in source, "the data source", source)
    with open(os.path.join(PROVISIONING, "dashboards/varve.yaml"), encoding="utf-8") as file:
        tally.note("path: /var/lib/grafana/dashboards/varve" in file.read(), "the dashboards' folder")


def run(folder):
    """All checks."""
    tally = peerlib.Tally()
    check_provisioning(tally)
    peers = peerlib.find_peers(["prometheus", "prometheus-node-exporter"])
    names = ["varve", "node", "prometheus"]
    ports = dict(zip(names, peerlib.free_ports(len(names))))
    processes = peerlib.Processes(folder)
    api = peerlib.Api(ports["varve"])
    try:
        start(processes, folder, peers, ports)
        use(processes, api, ports)
        for path in sorted(glob.glob(os.path.join(DASHBOARDS, "*.json"))):
            check_dashboard(tally, api, path)
        check_rules(tally, api)
    except RuntimeError as error:
        tally.note(False, str(error))
    finally:
        processes.stop_all()
    return tally


def main():
    """Runs in a folder of its own; the last line is what tests/run reads."""
    folder = tempfile.mkdtemp(prefix="varve-dashboards-")
    try:
        tally = run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
