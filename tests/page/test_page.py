#!/usr/bin/env python3
"""The built-in page: what the server sends of it, and a real browser that uses it (drive.mjs).

usage: tests/page/test_page.py [PART_OF_A_CHECK'S_NAME]

Starts a server with data of two months in a folder of its own. Screenshots go to build/screenshots.
The last line is N passed, N failed, N skipped.
"""
import gzip
import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import peerlib  # pylint: disable=wrong-import-position

MODULES = os.path.join(peerlib.ROOT, "build/page-tests")
SHOTS = os.path.join(peerlib.ROOT, "build/screenshots")
SIZE_MAX = 250 * 1024  # all that a browser loads, compressed
BROWSER_SECONDS = 700
STEP = 15

passed = failed = 0


def note(good, name, detail=""):
    """Counts one check and prints it."""
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(f"ok {name}" if good else f"not ok {name}: {detail}", flush=True)


# ---- data


def samples(now):
    """Exposition text with times: counters and gauges of the last two hours, a gauge of two months, hostile ones."""
    lines = ["# TYPE demo_requests_total counter", "# HELP demo_requests_total Requests that the demo got.",
             "# TYPE demo_temperature_celsius gauge", "# TYPE hostile gauge",
             "# HELP hostile <script>window.pwned=2</script>"]
    hostile = '<img src=x onerror=\\"window.pwned=1\\">'
    for t in range(now - 7200, now + 1, STEP):
        age = t - (now - 7200)
        for i in range(4):
            for k, code in enumerate(["200", "404", "500"]):
                lines.append(f'demo_requests_total{{instance="i{i}",code="{code}"}} {age * (10 - 3 * k + i)} {t * 1000}')
        lines.append(f'demo_temperature_celsius{{site="oslo"}} 21.25 {t * 1000}')
        lines.append(f'demo_temperature_celsius{{site="tartu"}} -3.5 {t * 1000}')
        lines.append(f'demo_unasked 1 {t * 1000}')
        for quote in ["'", "</td><b>", "${window.pwned=3}"]:
            lines.append(f'hostile{{evil="{hostile}",quote="{quote}"}} {len(quote)} {t * 1000}')
        lines.append(f'{{"hostile<b>name</b>",evil="{hostile}"}} 1 {t * 1000}')
    for t in range(now - 60 * 86400, now - 7200, 3600):
        lines.append(f'demo_old_celsius{{site="oslo"}} {t % 86400 / 3600:.2f} {t * 1000}')
    return "\n".join(lines) + "\n"


def post(port, path, body=b""):
    """A POST that must succeed."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


# ---- what the server sends


def get(port, path, **headers):
    """Status, headers, body as they come."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def check_page(port):
    """The page itself: policy, tag, both codings."""
    status, headers, packed = get(port, "/", Accept_Encoding="gzip")
    note(status == 200 and headers["Content-Encoding"] == "gzip", "the page is served compressed", f"{status} {headers}")
    policy = dict(part.strip().split(" ", 1) for part in (headers["Content-Security-Policy"] or "").split(";"))
    wanted = {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'",
              "img-src": "'self'", "font-src": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'",
              "form-action": "'none'"}
    note(policy == wanted, "the policy is strict", policy)
    note(headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer",
         "other safety headers", headers)
    _, plain_headers, plain = get(port, "/graph?g0.expr=up")
    note(plain == gzip.decompress(packed) and plain_headers["Content-Encoding"] is None,
         "/graph is the same page, plain for those who take no gzip")
    note(not re.search(rb"<script>|<style|\sstyle=|\son\w+=|https?://", plain), "nothing inline, no other origin", plain)
    status, again, body = get(port, "/", If_None_Match=headers["ETag"])
    note(status == 304 and body == b"" and again["ETag"] == headers["ETag"], "304 by ETag", f"{status} {again}")
    status, _, _ = get(port, "/", If_None_Match='W/"other"')
    note(status == 200, "another tag gets the page", status)
    return plain.decode(), len(packed)


def check_assets(port, page, size):
    """The files that the page names: kept for good, right types, small."""
    names = re.findall(r'(?:src|href)="(assets/[^"]+)"', page)
    note(len(names) == 4, "the page names its script, style, icon and licences", names)
    types = {"txt": "text/plain; charset=utf-8","js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    for name in names:
        status, headers, packed = get(port, "/" + name, Accept_Encoding="gzip, br")
        size += len(packed)
        kept = "immutable" in (headers["Cache-Control"] or "")
        typed = headers["Content-Type"] == types[name.rsplit(".", 1)[1]]
        note(status == 200 and kept and typed, f"{name} is typed and kept for good", f"{status} {headers}")
        _, plain_headers, plain = get(port, "/" + name, Accept_Encoding="gzip;q=0")
        good = plain == gzip.decompress(packed) and plain_headers["Content-Encoding"] is None
        note(good, f"{name} plain is the same", f"{len(plain)} bytes")
        status, _, body = get(port, "/" + name, If_None_Match=f'"x", {headers["ETag"]}')
        note(status == 304 and body == b"", f"{name}: 304 by ETag in a list", status)
    print(f"    the page is {size / 1024:.1f} KiB compressed")
    note(size <= SIZE_MAX, "all of it is below 250 KiB", f"{size} bytes")
    status, headers, body = get(port, "/assets/app-000000000000.js")
    note(status == 404 and headers["Content-Type"] == "application/json", "an unknown file is 404 in JSON", body)


# ---- the browser


def browse(port, now, only):
    """Runs drive.mjs; each of its lines is a check."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium or not shutil.which("node") or not os.path.exists(os.path.join(MODULES, "node_modules")):
        note(False, "browser", "chromium, node or build/page-tests is missing: make test installs them")
        return
    if not only:
        shutil.rmtree(SHOTS, ignore_errors=True)
    env = {**os.environ, "PAGE_BASE": f"http://127.0.0.1:{port}", "PAGE_MODULES": MODULES, "CHROMIUM": chromium,
           "PAGE_SHOTS": SHOTS, "PAGE_NOW": str(now)}
    with subprocess.Popen(["node", os.path.join(HERE, "drive.mjs"), *only], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as driver:
        alarm = threading.Timer(BROWSER_SECONDS, driver.kill)
        alarm.start()
        for line in driver.stdout:
            verdict = re.match(r"(not ok|ok) ([^:]*)(?:: )?(.*)", line.rstrip())
            if verdict:
                note(verdict[1] == "ok", verdict[2], verdict[3])
            else:
                print("    " + line, end="", flush=True)
        status = driver.wait()
        alarm.cancel()
    note(status == 0, "the driver ends well", f"status {status}")


def run_in(folder, only):
    """All checks against one server."""
    [port] = peerlib.free_ports(1)
    processes = peerlib.Processes(folder)
    now = int(time.time()) // STEP * STEP
    try:
        processes.start("varve", [peerlib.VARVE, "serve", f"--storage.path={folder}/varve", "--query.timeout=60s",
                                  f"--web.listen-address=127.0.0.1:{port}", "--storage.retention=1y"])
        peerlib.wait_until("Varve to be ready", peerlib.Api(port).ready, 30, processes)
        text = samples(now)
        post(port, "/api/v1/import/prometheus", "".join(
            line + "\n" for line in text.splitlines() if line.startswith("demo_old")).encode())
        post(port, "/internal/force_flush")
        post(port, "/api/v1/import/prometheus", "".join(
            line + "\n" for line in text.splitlines() if not line.startswith("demo_old")).encode())
        page, size = check_page(port)
        check_assets(port, page, size)
        browse(port, now, only)
        processes.check()
        note(processes.stop("varve") == 0, "the server ends well", processes.log("varve"))
    except RuntimeError as error:
        note(False, "the server", error)
    finally:
        processes.stop_all()


def main():
    """Runs in a folder of its own."""
    folder = tempfile.mkdtemp(prefix="varve-page-")
    try:
        run_in(folder, sys.argv[1:2])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
