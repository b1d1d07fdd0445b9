#!/usr/bin/env python3
"""SIGTERM ends the server within a container's grace period (10 s) whatever it is doing, with exit code 0 and
everything that was answered on disk: during long queries (running and waiting), a forced merge, a steady stream of
writes and a client that doesn't read. A wrong data directory ends the start with exit code 1, wrong arguments with 2.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import crashlib

GRACE_SECONDS = 10
SERIES, SAMPLES, STEP_MS = 100, 1000, 1000
SLOW_QUERY = "quantile_over_time(0.9, vector((time() * 7919) % 100003)[40h:1s])"  # some seconds


def fill(server, parts):
    """Some parts of SERIES x SAMPLES samples up to now; returns the newest time."""
    now = int(time.time() * 1000)
    for part in range(parts):
        for at in range(0, SAMPLES, 250):
            rows = []
            for s in range(SERIES):
                times = [now - (SAMPLES - at - i) * STEP_MS + part for i in range(250)]
                values = [(s * 7919 + t) % 100003 / 7 for t in times]
                rows.append('{"metric":{"__name__":"m","s":"%d"},"values":%s,"timestamps":%s}' % (s, values, times))
            status, body, _ = server.request("POST", "/api/v1/import", "\n".join(rows).encode())
            assert status in (200, 204), (status, body)
        assert server.get("/internal/force_flush")[0] == 200
    return now


def in_background(function, *arguments):
    def quiet():
        try:
            function(*arguments)
        except OSError:
            pass  # the server is about to end

    thread = threading.Thread(target=quiet, daemon=True)
    thread.start()
    return thread


def stop_within_grace(server):
    began = time.monotonic()
    try:
        code = server.stop(GRACE_SECONDS + 20)
    except subprocess.TimeoutExpired:
        server.kill()
        raise AssertionError("still running %d s after SIGTERM" % (GRACE_SECONDS + 20)) from None
    took = time.monotonic() - began
    assert code == 0, "exit code %d\n%s" % (code, server.log_tail())
    assert took < GRACE_SECONDS, "took %.1f s to stop\n%s" % (took, server.log_tail())
    return took


def test_idle(server):
    assert stop_within_grace(server) < 3


def test_long_queries(server):
    """More than run at once: the rest waits in the queue."""
    end = fill(server, 1) / 1000
    path = "/api/v1/query_range?query=%s&start=%.0f&end=%.0f&step=1" % (
        urllib.parse.quote(SLOW_QUERY), end - 900, end)
    for _ in range(40):
        in_background(server.request, "GET", path)
    time.sleep(1.5)
    status, body = server.get("/metrics")
    assert status == 200, body
    took = stop_within_grace(server)
    assert took > 2, "the queries were over after %.1f s: they are not long enough to test anything" % took


def test_merge(server):
    fill(server, 4)
    thread = in_background(server.get, "/internal/force_merge")
    time.sleep(0.01)
    stop_within_grace(server)
    thread.join(5)


def test_writes_and_a_stuck_reader(server):
    """Every write that was answered before the end is there after the next start."""
    fill(server, 1)
    answered, first = [0], int(time.time()) - 100_000

    def write():
        while True:
            n = answered[0] + 1
            body = "w %d %d\n" % (n, (first + n) * 1000)
            status, _, _ = server.request("POST", "/api/v1/import/prometheus", body.encode())
            if status not in (200, 204):
                return
            answered[0] = n

    stuck = socket.create_connection(("127.0.0.1", server.port))
    stuck.sendall(b"GET /api/v1/export?match[]=m HTTP/1.1\r\nHost: x\r\n\r\n")
    thread = in_background(write)
    time.sleep(1)
    stop_within_grace(server)
    thread.join(5)
    stuck.close()
    server.start()
    status, answer = server.query("count_over_time(w[10d])", at=first + answered[0])
    assert status == 200, answer
    assert int(answer["data"]["result"][0]["value"][1]) >= answered[0] > 10, (answered, answer)
    stop_within_grace(server)


def ends_with(server, code, *texts):
    server.spawn()
    assert server.process.wait(10) == code, (server.process.returncode, server.log_tail())
    for text in texts:
        assert text in server.log_tail(), (text, server.log_tail())


def test_exit_codes(server):
    stop_within_grace(server)
    with open(server.data + ".file", "w", encoding="ascii"):
        pass
    wrong = crashlib.Server(server.data + ".file", server.flags)
    ends_with(wrong, 1, "Not a directory")
    wrong = crashlib.Server(server.data, ["--no.such=1"])
    ends_with(wrong, 2, "unknown flag --no.such")
    wrong = crashlib.Server(server.data, ["--query.timeout=soon"])
    ends_with(wrong, 2, "--query.timeout")
    health = subprocess.run([crashlib.BINARY, "health", "--url=http://localhost:%d" % server.port], check=False,
                            capture_output=True, text=True)
    assert health.returncode == 1 and "refused" in health.stderr, health
    server.start()
    health = subprocess.run([crashlib.BINARY, "health", "--url=http://localhost:%d" % server.port], check=False,
                            capture_output=True, text=True)
    assert health.returncode == 0 and "200" in health.stdout, health
    health = subprocess.run([crashlib.BINARY, "health", "--url=http://no-such-host.invalid:1"], check=False,
                            capture_output=True, text=True)
    assert health.returncode == 1 and "no-such-host.invalid" in health.stderr, health
    stop_within_grace(server)


def test_denied_directory(server):
    """Another user's directory: the message says whose it is, who we are and what to do."""
    stop_within_grace(server)
    binary = os.path.join(os.path.dirname(server.data), "varve")
    shutil.copy(crashlib.BINARY, binary)
    os.chmod(os.path.dirname(server.data), 0o755)

    def run_as(uid, gid, data):
        return subprocess.run([binary, "--storage.path=" + data, "--web.listen-address=127.0.0.1:%d" % server.port],
                              user=uid, group=gid, extra_groups=[], check=False, capture_output=True, text=True,
                              timeout=20)

    done = run_as(65532, 65532, server.data)
    assert done.returncode == 1, done
    assert "belongs to uid 0, gid 0" in done.stderr and "runs as uid 65532, gid 65532" in done.stderr, done.stderr
    assert "chown -R 65532:65532 " + server.data in done.stderr, done.stderr


def main():
    passed = failed = skipped = 0
    tests = [test_idle, test_long_queries, test_merge, test_writes_and_a_stuck_reader, test_exit_codes]
    if os.geteuid() == 0:
        tests.append(test_denied_directory)
    else:
        print("skip: only root can become another user (test_denied_directory)")
        skipped += 1
    for test in tests:
        folder = tempfile.mkdtemp(prefix="varve-stop-")
        server = crashlib.Server(os.path.join(folder, "data"), ["--query.max-samples=1000000000"])
        began = time.monotonic()
        try:
            server.start()
            test(server)
            passed += 1
            print("pass: %s (%.1f s)" % (test.__name__, time.monotonic() - began))
        except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
            failed += 1
            print("FAIL: %s: %s" % (test.__name__, e))
        finally:
            if server.alive():
                server.kill()
            shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
