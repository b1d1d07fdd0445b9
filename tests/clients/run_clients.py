#!/usr/bin/env python3
"""Runs the real clients of ../shared/clients (when it is there) against build/varve; ends with one totals line.

usage: tests/clients/run_clients.py [NAME ...]       names of ../shared/clients/run --list; by default all of PROOFS

Prometheus, promtool, vmagent and vmalert come from VARVE_PEERS, build/peers or Debian (peerlib.py), npm packages go
once to build/clients (CLIENTS_CACHE names another folder). VARVE names another binary, SHARED another folder of tools.
What is known to fail on purpose stands in tests/clients/allow.txt, with its reason; it counts as skipped. An entry with
"sometimes " before it may pass too.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import peerlib  # noqa: E402

SHARED = os.environ.get("SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
TOOLS = os.path.join(SHARED, "clients")
ALLOW = os.path.join(ROOT, "tests", "clients", "allow.txt")
# The writers of other protocols (OTLP, InfluxDB, Graphite, OpenTSDB, collectd) are left out until those are taken.
PROOFS = ["readers", "rules", "prometheus-v1", "prometheus-v2", "vmagent", "promtool", "prometheus-remote-write"]
PROGRAMS = {"PROMETHEUS": "prometheus", "PROMTOOL": "promtool", "VMAGENT": "vmagent", "VMALERT": "vmalert"}
LINE = re.compile(r"^(ok  |FAIL|skip) (\w+) +(\S+) +(.*)$")
CHECK = re.compile(r"^ {7}(ok  |FAIL|skip) (.*)$")
TIMEOUT = 800


def allowed():
    """The entries of the allow file, "[sometimes ]proof: start of a check's line", without its comments."""
    with open(ALLOW, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def run_tool(port, names, folder):
    """Runs them; its output."""
    peers = peerlib.find_peers(list(PROGRAMS.values()))
    environment = {**os.environ, **{variable: peers[name] for variable, name in PROGRAMS.items()}, "TMPDIR": folder}
    environment.setdefault("CLIENTS_CACHE", os.path.join(ROOT, "build", "clients"))
    done = subprocess.run([os.path.join(TOOLS, "run"), "--verbose", f"http://127.0.0.1:{port}", *names],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT, check=False,
                          env=environment)
    return done.stdout


def count(output):
    """(passed, failed, skipped) of the tool's lines, with what is allowed to fail."""
    entries, totals, proof = allowed(), {"ok  ": 0, "FAIL": 0, "skip": 0}, ""
    known = [entry.removeprefix("sometimes ") for entry in entries]
    used = {entry for entry in known if "sometimes " + entry in entries}
    for line in output.splitlines():
        match = LINE.match(line)
        if match:
            proof = match[3]
            if match[1] == "skip" and "passed" not in match[4]:  # the whole proof
                totals["skip"] += 1
                print(f"skip: {proof}: {match[4]}")
            continue
        match = CHECK.match(line)
        if not match:
            continue
        result, text = match[1], f"{proof}: {match[2]}"
        entry = next((entry for entry in known if text.startswith(entry)), None)
        if result == "FAIL" and entry:
            used.add(entry)
            result = "skip"
        if result == "skip":
            print(f"skip: {text[:200]}")
        elif result == "FAIL":
            print(f"FAILED: {text}")
        totals[result] += 1
    for entry in known:
        if entry not in used:
            print(f"no longer needed in {os.path.relpath(ALLOW, ROOT)}: {entry}")
    return totals["ok  "], totals["FAIL"], totals["skip"]


def run(names):
    """A server, the clients, the totals."""
    folder = tempfile.mkdtemp(prefix="varve-clients-")
    processes = peerlib.Processes(folder)
    [port] = peerlib.free_ports(1)
    try:
        processes.start("varve", [peerlib.VARVE, "serve", f"--storage.path={folder}/data",
                                  f"--web.listen-address=127.0.0.1:{port}"])
        peerlib.wait_until("Varve to be ready", peerlib.Api(port).ready, 30, processes)
        output = run_tool(port, names, folder)
        passed, failed, skipped = count(output)
        if passed + failed == 0:
            print(output[-4000:])
            failed += 1
        if processes.stop("varve") != 0:
            failed += 1
            print("FAILED: Varve ends well on SIGTERM")
    finally:
        processes.stop_all()
        shutil.rmtree(folder, ignore_errors=True)
    return passed, failed, skipped


def main():
    """Totals on the last line, as tests/run wants them."""
    if not os.access(os.path.join(TOOLS, "run"), os.X_OK):
        peerlib.skip(f"{TOOLS} is not there")
    for program in ("node", "npm"):
        if not shutil.which(program):
            peerlib.skip(f"{program} is not installed")
    if not os.access(peerlib.VARVE, os.X_OK):
        print(f"{peerlib.VARVE} is not built")
        return 1
    passed, failed, skipped = run(sys.argv[1:] or PROOFS)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
