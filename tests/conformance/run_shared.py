#!/usr/bin/env python3
"""Runs the conformance tools of ../shared (when it is there) against build/varve; ends with one totals line.

usage: tests/conformance/run_shared.py [promqltest|difftest|difftest-live|apitest|apitest-live ...]

difftest-live and apitest-live compare with a running Prometheus instead of the recording, where there is one (in
VARVE_PEERS or build/peers): only then /federate is asked for samples young enough to be in it.

What is known to differ on purpose stands in tests/conformance/allow/<tool>.txt, each entry below a comment with its
reason; listed entries count as skipped. Everything else that fails makes the run fail. A listed entry that passes is
told, so that it can go. VARVE names another binary, SHARED another folder of tools, JOBS the number of
servers side by side.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
TOOLS = os.path.join(SHARED, "conformance")
VARVE = os.environ.get("VARVE", os.path.join(ROOT, "build", "varve"))
ALLOW = os.path.join(ROOT, "tests", "conformance", "allow")
SERVER = (f"{VARVE} serve --storage.path={{dir}} --web.listen-address=127.0.0.1:{{port}} --storage.retention=100y "
          "--storage.wal-sync=off --query.experimental=true")
TOTALS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\b")
LISTED_MAX = {"apitest": 15}  # entries that an allow file may have
TIMEOUT = 800
SKIPPED = 77


def golden(kind):
    """The newest recording of a kind; None if there is none."""
    folder = os.path.join(TOOLS, "golden")
    found = sorted(name for name in os.listdir(folder) if name.startswith(kind + "-"))
    return os.path.join(folder, found[-1]) if found else None


def prometheus():
    """The binary of a Prometheus 3; None if there is none."""
    folders = [os.environ.get("VARVE_PEERS", ""), os.path.join(ROOT, "build", "peers")]
    return shutil.which("prometheus", path=os.pathsep.join(os.path.join(f, "usr", "bin") for f in folders if f))


def commands():
    """Tool → its command line."""
    python = sys.executable
    known = {
        "promqltest": [python, "promqltest.py", "--server-cmd", SERVER, "--start-timestamps", "rw2",
                       "--messages", "lenient", "--jobs", os.environ.get("JOBS", "1")],
        "difftest": [python, "difftest.py", "--golden", golden("promql"), "--target-cmd", SERVER],
        "apitest": [python, "apitest.py", "--golden", golden("api"), "--target-cmd", SERVER],
    }
    if prometheus():
        known["difftest-live"] = [python, "difftest.py", "--native", "--target-cmd", SERVER, "--reference-cmd",
                                  "examples/prometheus.sh {dir} {port}"]
        known["apitest-live"] = [python, "apitest.py", "--reference-cmd", "examples/prometheus.sh {dir} {port}",
                                 "--target-cmd", SERVER]
    return known


def allowed(tool):
    """The entries of a tool's allow file, without its comments."""
    path = os.path.join(ALLOW, tool.removesuffix("-live") + ".txt")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def stale(tool, report):
    """Listed entries that did not fail (promqltest names its own)."""
    if tool == "promqltest" or not os.path.exists(report):
        return []
    with open(report, encoding="utf-8") as file:
        data = json.load(file)
    known = {row["id"] for row in data.get("rows", data.get("results", [])) if row["known"]}
    return [entry for entry in allowed(tool) if entry not in known]


def run(tool, command, folder):
    """(passed, failed, skipped) of one tool; its output is shown when something failed."""
    allow, report = os.path.join(folder, tool + ".txt"), os.path.join(folder, tool + ".json")
    with open(allow, "w", encoding="utf-8") as file:
        file.writelines(entry + "\n" for entry in allowed(tool))
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PROMETHEUS": prometheus() or "prometheus"}
    done = subprocess.run(command + ["--allow-file", allow, "--json", report], cwd=TOOLS, capture_output=True, text=True,
                          timeout=TIMEOUT, check=False, env=env)
    lines = done.stdout.rstrip().splitlines()
    totals = TOTALS.match(lines[-1]) if lines else None
    passed, failed, skipped = (int(n or 0) for n in totals.groups()) if totals else (0, 1, 0)
    if done.returncode != 0 and failed == 0:
        failed = 1
    if len(allowed(tool)) > LISTED_MAX.get(tool, 1 << 30):
        print(f"{tool}: {len(allowed(tool))} entries are listed, {LISTED_MAX[tool]} may be")
        failed += 1
    if failed:
        print(done.stdout[-20000:], done.stderr[-4000:], sep="\n")
    for line in lines:
        if line.startswith("listed in the allow file but passing"):
            print(f"{tool}: {line}")
    for entry in stale(tool, report):
        print(f"{tool}: listed in the allow file but passing: {entry}")
    print(f"{tool}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed, failed, skipped


def main():
    if not os.path.isdir(TOOLS):
        print(f"skip: {TOOLS} is not there")
        return SKIPPED
    known = commands()
    wanted = sys.argv[1:] or list(known)
    with tempfile.TemporaryDirectory(prefix="varve-conformance-") as folder:
        counts = [run(tool, known[tool], folder) for tool in wanted]
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    for _ in range(skipped):
        print("skip: listed in tests/conformance/allow, or left out by the tool")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
