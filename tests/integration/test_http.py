#!/usr/bin/env python3
"""Black-box tests of the HTTP server: build/varve is started on a free port with a folder of its own.

usage: tests/integration/test_http.py [-k PATTERN] [-v]
VARVE names another binary. Ends with "N passed, N failed, N skipped".
"""
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VARVE = os.environ.get("VARVE", os.path.join(ROOT, "build", "varve"))
FORM = "application/x-www-form-urlencoded"


class Server:
    """One varve process on a free port."""

    def __init__(self, *flags, path=None, env=None, wait=True):
        self.folder = path or tempfile.mkdtemp(prefix="varve-http-")
        self.owns_folder = path is None
        self.log_path = tempfile.mktemp(prefix="varve-http-log-")
        command = [VARVE, "serve", "--web.listen-address=127.0.0.1:0", f"--storage.path={self.folder}",
                   "--storage.retention=100y", "--web.enable-admin-api", *flags]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log, env={**os.environ, **(env or {})})
        self.port = self.find_port()
        if wait:
            self.wait_ready()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def find_port(self):
        for _ in range(200):
            match = re.search(r'msg="?listening"? address=\S+:(\d+)', self.log())
            if match:
                return int(match[1])
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError("the server did not start:\n" + self.log())

    def wait_ready(self):
        for _ in range(400):
            if self.get("/-/ready")[0] == 200:
                return
            time.sleep(0.02)
        raise AssertionError("never ready")

    def request(self, method, target, body=None, headers=None, timeout=20):
        """(status, headers, body) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, target, **kw):
        return self.request("GET", target, **kw)

    def json(self, target, **kw):
        status, _, body = self.get(target, **kw)
        return status, json.loads(body)

    def connect(self, timeout=20):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def raw(self, data, shut=False):
        """Everything the server says to these bytes until it closes."""
        with self.connect() as s:
            s.sendall(data)
            if shut:
                s.shutdown(socket.SHUT_WR)
            return read_all(s)

    def stop(self, sig=signal.SIGTERM, timeout=30):
        if self.process.poll() is None:
            self.process.send_signal(sig)
        code = self.process.wait(timeout)
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.unlink(self.log_path)
        if self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def read_all(s):
    data = b""
    while True:
        try:
            piece = s.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


def read_answer(file):
    """(status, headers, body) of the next answer with Content-Length on a buffered socket file."""
    line = file.readline()
    if not line:
        return None
    status = int(line.split()[1])
    headers = {}
    while True:
        line = file.readline().rstrip(b"\r\n")
        if not line:
            break
        name, value = line.split(b":", 1)
        headers[name.decode().lower()] = value.strip().decode()
    return status, headers, file.read(int(headers.get("content-length", 0)))


class SharedServer(unittest.TestCase):
    """Tests that share one server."""

    @classmethod
    def setUpClass(cls):
        cls.s = Server("--web.header-timeout=1s", "--web.body-timeout=1s", "--web.idle-timeout=2s",
                       "--web.max-body-size=4MiB")

    @classmethod
    def tearDownClass(cls):
        code, log = cls.s.stop(), cls.s.log()
        cls.s.close()
        assert code == 0, f"exit code {code}, the log ends:\n{log[-2000:]}"

    # ---- paths, methods, errors

    def test_status_pages(self):
        for path in ["/-/ready", "/-/healthy", "/health"]:
            self.assertEqual(self.s.get(path)[0], 200, path)
        status, headers, body = self.s.get("/metrics")
        self.assertEqual(status, 200)
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        text = body.decode()
        for name in ["process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds",
                     "process_start_time_seconds", "varve_build_info{", "varve_http_requests_total{",
                     "varve_http_request_duration_seconds_bucket{", "varve_storage_head_series", "varve_ready 1"]:
            self.assertIn(name, text)
        for line in text.splitlines():
            if not line.startswith("#"):
                self.assertRegex(line, r'^[a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? \S+$')
        named = {line.split()[2] for line in text.splitlines() if line.startswith("# HELP")}
        typed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
        self.assertEqual(named, typed)

    def test_buildinfo(self):
        status, body = self.s.json("/api/v1/status/buildinfo")
        self.assertEqual((status, body["status"]), (200, "success"))
        self.assertNotIn("features", body["data"])
        self.assertGreaterEqual(tuple(map(int, body["data"]["version"].split("."))), (2, 24, 0))
        self.assertEqual(self.s.request("POST", "/api/v1/status/buildinfo")[0], 200)

    def test_unknown_path(self):
        for path in ["/nope", "/api/v1/search/metric_names", "/rules/test/test", "/api/v1/label/a/b/values"]:
            status, body = self.s.json(path)
            self.assertEqual((status, body["status"], body["errorType"]), (404, "error", "not_found"), path)

    def test_wrong_method(self):
        status, headers, body = self.s.request("GET", "/api/v1/write")
        self.assertEqual((status, headers["Allow"]), (405, "POST, OPTIONS"))
        self.assertEqual(json.loads(body)["errorType"], "bad_data")
        self.assertEqual(self.s.request("DELETE", "/api/v1/query")[0], 405)
        self.assertEqual(self.s.request("PATCH", "/api/v1/query", body=b"x" * 1000)[0], 405)

    def test_empty_lists(self):
        self.assertEqual(self.s.json("/api/v1/rules")[1]["data"], {"groups": []})
        self.assertEqual(self.s.json("/api/v1/alerts")[1]["data"], {"alerts": []})
        self.assertEqual(self.s.json("/api/v1/query_exemplars?query=test&start=1796031274107&end=1796031274107")[1],
                         {"status": "success", "data": []})

    def test_slashes_and_prefix(self):
        for path in ["//api//v1/query?query=1", "/prometheus/api/v1/query?query=1", "/prometheus//api/v1/query/?query=1"]:
            self.assertEqual(self.s.get(path)[0], 200, path)

    def test_options_and_cors(self):
        status, headers, _ = self.s.request("OPTIONS", "/api/v1/query", headers={"Origin": "http://grafana.example"})
        self.assertEqual(status, 204)
        self.assertEqual(headers["Access-Control-Allow-Origin"], "http://grafana.example")
        self.assertIn("POST", headers["Access-Control-Allow-Methods"])
        self.assertNotIn("Access-Control-Allow-Origin", self.s.get("/-/ready")[1])

    def test_head(self):
        status, headers, body = self.s.request("HEAD", "/-/ready")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["Content-Length"]), 0)

    # ---- arguments

    def test_query_arguments(self):
        ask = self.s.json
        self.assertEqual(ask("/api/v1/query?query=1&time=4&timeout=&limit=")[1]["data"]["resultType"], "scalar")
        self.assertEqual(ask("/api/v1/query")[0], 400)
        self.assertEqual(ask("/api/v1/query?query=")[0], 400)
        self.assertEqual(ask("/api/v1/query?query=1&time=yesterday")[0], 400)
        self.assertEqual(ask("/api/v1/query?query=1&limit=-1")[0], 400)
        self.assertEqual(ask("/api/v1/query?query=%zz")[0], 400)
        self.assertEqual(ask("/api/v1/query?query=sum(")[0], 400)

    def test_range_arguments(self):
        def status(arguments):
            return self.s.json("/api/v1/query_range?query=1&" + arguments)[0]
        self.assertEqual(status("start=0&end=10&step=5"), 200)
        self.assertEqual(status("start=0&end=10&step=5s"), 200)
        self.assertEqual(status("start=0&end=11000&step=1"), 200)
        self.assertEqual(status("start=0&end=11001&step=1"), 400)
        self.assertEqual(status("start=10&end=0&step=5"), 400)
        self.assertEqual(status("start=0&end=10&step=0"), 400)
        self.assertEqual(status("start=0&end=10&step=-1"), 400)
        self.assertEqual(status("start=0&end=10"), 400)
        self.assertEqual(status("end=10&step=1"), 400)

    def test_post_form(self):
        body = "query=2&time=5"
        answer = self.s.request("POST", "/api/v1/query?query=1&time=4", body, {"Content-Type": FORM})
        self.assertEqual(json.loads(answer[2])["data"]["result"], [5, "2"])
        answer = self.s.request("POST", "/api/v1/query?query=1&time=4", "", {"Content-Type": "application/json"})
        self.assertEqual(json.loads(answer[2])["data"]["result"], [4, "1"])
        answer = self.s.request("POST", "/api/v1/query?time=4", "query=3", {"Content-Type": FORM + "; charset=utf-8"})
        self.assertEqual(json.loads(answer[2])["data"]["result"], [4, "3"])

    def test_series_needs_match(self):
        self.assertEqual(self.s.json("/api/v1/series")[0], 400)
        self.assertEqual(self.s.json("/api/v1/series?match=up")[0], 200)
        self.assertEqual(self.s.json("/api/v1/series?match[]=up{")[0], 400)

    # ---- writing and reading back

    def test_write_and_read_back(self):
        lines = 'http_ok{job="a",status_code="x"} 1.5 1700000000000\nhttp_ok{job="b"} 2 1700000000000\n'
        self.assertIn(self.s.request("POST", "/api/v1/import/prometheus", lines)[0], (200, 204))
        status, body = self.s.json("/api/v1/query?query=http_ok&time=1700000001")
        self.assertEqual(status, 200)
        self.assertEqual(sorted(r["value"][1] for r in body["data"]["result"]), ["1.5", "2"])
        self.assertEqual(self.s.json("/api/v1/label/job/values?match[]=http_ok")[1]["data"], ["a", "b"])
        self.assertEqual(self.s.json("/api/v1/label/U__status__code/values?match[]=http_ok")[1]["data"], ["x"])
        self.assertIn("job", self.s.json("/api/v1/labels?match[]=http_ok")[1]["data"])
        both = self.s.request("POST", '/api/v1/series?match[]=http_ok{job="a"}', 'match[]=http_ok{job="b"}',
                              {"Content-Type": FORM})
        self.assertEqual(len(json.loads(both[2])["data"]), 2)

    def test_export_and_import(self):
        count = 3000
        lines = "".join(f'exported{{n="{i}"}} {i} 1700000000000\n' for i in range(count))
        self.s.request("POST", "/api/v1/import/prometheus", lines)
        status, headers, body = self.s.get("/api/v1/export?match[]=exported")
        self.assertEqual((status, headers["Transfer-Encoding"]), (200, "chunked"))
        rows = [json.loads(line) for line in body.splitlines()]
        self.assertEqual(len(rows), count)
        self.assertEqual(sorted(r["values"][0] for r in rows), list(range(count)))
        status, headers, zipped = self.s.get("/api/v1/export?match[]=exported", headers={"Accept-Encoding": "gzip"})
        self.assertEqual((status, headers["Content-Encoding"]), (200, "gzip"))
        self.assertEqual(gzip.decompress(zipped), body)
        self.assertIn(self.s.request("POST", "/api/v1/import", body)[0], (200, 204))
        self.assertEqual(self.s.json("/api/v1/export")[0], 400)
        old = self.s.raw(b"GET /api/v1/export?match[]=exported HTTP/1.0\r\n\r\n")
        head, rest = old.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head)
        self.assertEqual(rest.count(b"\n"), count)

    def test_bad_write(self):
        status, _, body = self.s.request("POST", "/api/v1/write", b"not snappy at all",
                                         {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"})
        self.assertEqual((status, json.loads(body)["status"]), (400, "error"))

    def test_compression(self):
        lines = "".join(f'zipped{{n="{i}"}} {i} 1700000000000\n' for i in range(200))
        self.s.request("POST", "/api/v1/import/prometheus", lines)
        target = "/api/v1/query?query=zipped&time=1700000001"
        plain = self.s.get(target)
        zipped = self.s.get(target, headers={"Accept-Encoding": "gzip, deflate, br"})
        self.assertNotIn("Content-Encoding", plain[1])
        self.assertEqual(zipped[1]["Content-Encoding"], "gzip")
        self.assertEqual(json.loads(gzip.decompress(zipped[2])), json.loads(plain[2]))
        self.assertNotIn("Content-Encoding", self.s.get(target, headers={"Accept-Encoding": "br"})[1])

    # ---- the protocol

    def test_keep_alive(self):
        with self.s.connect() as s, s.makefile("rb") as file:
            for i in range(50):
                s.sendall(b"GET /api/v1/query?query=%d&time=1 HTTP/1.1\r\nHost: x\r\n\r\n" % i)
                status, _, body = read_answer(file)
                self.assertEqual((status, json.loads(body)["data"]["result"]), (200, [1, str(i)]))

    def test_pipelining_keeps_order(self):
        """Queries (workers) and status pages (inline) mixed: answers come in the order asked."""
        asked = b""
        for i in range(300):
            asked += b"GET /api/v1/query?query=%d&time=1 HTTP/1.1\r\nHost: x\r\n\r\n" % i
            asked += b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"
        with self.s.connect() as s, s.makefile("rb") as file:
            sender = threading.Thread(target=s.sendall, args=(asked,))
            sender.start()
            for i in range(300):
                self.assertEqual(json.loads(read_answer(file)[2])["data"]["result"], [1, str(i)])
                self.assertIn(b"healthy", read_answer(file)[2])
            sender.join()

    def test_pipelining_then_half_close(self):
        answers = self.s.raw(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n" * 5, shut=True)
        self.assertEqual(answers.count(b"HTTP/1.1 200"), 5)

    def test_byte_by_byte(self):
        with self.s.connect() as s, s.makefile("rb") as file:
            body = b"query=7&time=1"
            for byte in (b"POST /api/v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                         % (FORM.encode(), len(body), body)):
                s.sendall(bytes([byte]))
            self.assertEqual(json.loads(read_answer(file)[2])["data"]["result"], [1, "7"])

    def test_chunked_body(self):
        with self.s.connect() as s, s.makefile("rb") as file:
            s.sendall(b"POST /api/v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
                      b"8\r\nquery=1%%\r\n4\r\n2B41\r\n7\r\n&time=9\r\n0\r\n\r\n" % FORM.encode())
            self.assertEqual(json.loads(read_answer(file)[2])["data"]["result"], [9, "42"])

    def test_large_body(self):
        """Longer than any buffer, through content length and chunks: every line arrives."""
        count = 20000
        lines = "".join(f'large_body{{n="{i}"}} 1 1700000000000\n' for i in range(count)).encode()
        self.assertIn(self.s.request("POST", "/api/v1/import/prometheus", lines)[0], (200, 204))
        _, body = self.s.json("/api/v1/query?query=count(large_body)&time=1700000001")
        self.assertEqual(body["data"]["result"][0]["value"][1], str(count))
        pieces = (lines[i:i + 7777].replace(b"large_body", b"large_chunk") for i in range(0, len(lines), 7777))
        chunked = b"".join(pieces).replace(b"large_chunk", b"large_body")
        self.assertEqual(len(chunked), len(lines))
        status = self.s.request("POST", "/api/v1/import/prometheus", iter([lines[:100000], lines[100000:]]))[0]
        self.assertIn(status, (200, 204))

    def test_expect_continue(self):
        with self.s.connect() as s, s.makefile("rb") as file:
            s.sendall(b"POST /api/v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 14\r\n"
                      b"Expect: 100-continue\r\n\r\n" % FORM.encode())
            self.assertEqual(file.readline(), b"HTTP/1.1 100 Continue\r\n")
            self.assertEqual(file.readline(), b"\r\n")
            s.sendall(b"query=3&time=1")
            self.assertEqual(json.loads(read_answer(file)[2])["data"]["result"], [1, "3"])

    def test_expect_refused(self):
        for target, length, status in [(b"/nope", 5, 404), (b"/api/v1/write", 1 << 40, 413)]:
            answer = self.s.raw(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
                                % (target, length))
            self.assertIn(b"HTTP/1.1 %d" % status, answer)
            self.assertNotIn(b"100 Continue", answer)
        self.assertIn(b" 417 ", self.s.raw(b"POST /api/v1/query HTTP/1.1\r\nExpect: more\r\nContent-Length: 1\r\n\r\n"))

    def test_too_large_body(self):
        """Refused by its length before it is read, and by its real size; the client sees the answer."""
        status, headers, body = self.s.request("POST", "/api/v1/import/prometheus", b"x" * (5 << 20))
        self.assertEqual((status, headers["Connection"]), (413, "close"))
        self.assertEqual(json.loads(body)["status"], "error")
        pieces = iter([b"x" * 65536] * 100)
        with self.s.connect() as s:
            try:
                s.sendall(b"POST /api/v1/import/prometheus HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                for piece in pieces:
                    s.sendall(b"10000\r\n" + piece + b"\r\n")
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.assertIn(b" 413 ", read_all(s))

    def test_too_large_head(self):
        answer = self.s.raw(b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\n\r\n")
        self.assertIn(b" 431 ", answer)
        answer = self.s.raw(b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * 40000 + b"\r\n\r\n")
        self.assertIn(b" 431 ", answer)

    def test_garbage(self):
        for data in [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"]:
            self.assertRegex(self.s.raw(data), rb"^HTTP/1\.1 (400|501|505) ")

    def test_http_1_0(self):
        answer = self.s.raw(b"GET /-/healthy HTTP/1.0\r\n\r\n")
        self.assertIn(b"Connection: close", answer)
        with self.s.connect() as s, s.makefile("rb") as file:
            for _ in range(2):
                s.sendall(b"GET /-/healthy HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                self.assertEqual(read_answer(file)[1]["connection"], "keep-alive")

    def test_connection_close(self):
        answer = self.s.raw(b"GET /-/healthy HTTP/1.1\r\nConnection: close\r\n\r\nGET /-/healthy HTTP/1.1\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1 200"), 1)

    def test_upgrade_is_ignored(self):
        with self.s.connect() as s, s.makefile("rb") as file:
            s.sendall(b"GET /-/healthy HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n")
            self.assertEqual(read_answer(file)[0], 200)

    # ---- slow clients

    def test_slow_clients_are_cut_off(self):
        """All kinds at once; the server's timeouts were set to a second or two."""
        begun = time.monotonic()
        head = self.s.connect()
        head.sendall(b"GET /-/healthy HTTP/1.1\r\nHo")
        body = self.s.connect()
        body.sendall(b"POST /api/v1/write HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc")
        idle = self.s.connect()
        lively = self.s.connect()
        for _ in range(5):
            time.sleep(0.5)
            lively.sendall(b"GET /-/healthy HTTP/1.1\r\n\r\n")
            self.assertIn(b"200", lively.recv(4096))
        self.assertIn(b" 408 ", read_all(head))
        self.assertIn(b" 408 ", read_all(body))
        self.assertEqual(read_all(idle), b"")
        self.assertLess(time.monotonic() - begun, 15)
        for s in (head, body, idle, lively):
            s.close()

    def test_slow_reader_gets_everything(self):
        lines = "".join(f'slowly{{n="{i}",pad="{"x" * 200}"}} {i} 1700000000000\n' for i in range(4000))
        self.s.request("POST", "/api/v1/import/prometheus", lines)
        for target in [b"/api/v1/export?match[]=slowly", b"/api/v1/query?query=slowly&time=1700000001"]:
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.settimeout(20)
                s.connect(("127.0.0.1", self.s.port))
                s.sendall(b"GET %s HTTP/1.1\r\nConnection: close\r\n\r\n" % target)
                time.sleep(0.3)
                data = read_all(s)
                self.assertEqual(data.count(b'"slowly"'), 4000)

    def test_stalled_exports(self):
        """Clients that ask for much and read nothing hold up neither queries, nor writes, nor operations."""
        lines = "".join(f'stalled{{n="{i}",pad="{"x" * 300}"}} {i} 1700000000000\n' for i in range(20000))
        for half in (lines[:len(lines) // 2].rsplit("\n", 1)[0] + "\n", lines):
            self.assertIn(self.s.request("POST", "/api/v1/import/prometheus", half[-3 << 20:].split("\n", 1)[1])[0],
                          (200, 204))
        stalled = []
        for _ in range(8):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.s.port))
            s.sendall(b"GET /api/v1/export?match[]=stalled HTTP/1.1\r\n\r\n")
            stalled.append(s)
        time.sleep(0.3)
        self.assertEqual(self.s.get("/api/v1/query?query=1", timeout=5)[0], 200)
        self.assertEqual(self.s.get("/internal/force_flush", timeout=10)[0], 200)
        for s in stalled:
            s.close()
        self.assertEqual(self.s.get("/api/v1/export?match[]=nothing", timeout=10)[0], 200)

    def test_client_that_leaves(self):
        """Connections dropped at any moment do no harm."""
        for data in [b"", b"GET", b"POST /api/v1/write HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
                     b"GET /api/v1/query?query=1 HTTP/1.1\r\n\r\n", b"GET /api/v1/export?match[]=x HTTP/1.1\r\n\r\n"]:
            for _ in range(20):
                s = self.s.connect()
                s.sendall(data)
                s.close()
        self.assertEqual(self.s.get("/-/healthy")[0], 200)

    # ---- operations

    def test_flush_merge_snapshot(self):
        self.s.request("POST", "/api/v1/import/prometheus", "kept 1 1700000000000\n")
        self.assertEqual(self.s.get("/internal/force_flush")[0], 200)
        self.assertEqual(self.s.get("/internal/force_merge")[0], 200)
        self.assertEqual(self.s.get("/internal/force_merge?partition_prefix=20")[0], 400)
        made = self.s.json("/snapshot/create")[1]
        self.assertEqual(made["status"], "ok")
        self.assertIn(made["snapshot"], self.s.json("/snapshot/list")[1]["snapshots"])
        self.assertEqual(self.s.get("/snapshot/delete?snapshot=" + made["snapshot"])[0], 200)
        self.assertEqual(self.s.get("/snapshot/delete?snapshot=none-such")[0], 404)
        self.assertEqual(self.s.get("/snapshot/delete")[0], 400)
        status, _, body = self.s.request("POST", "/api/v1/admin/tsdb/snapshot")
        self.assertEqual((status, json.loads(body)["status"]), (200, "success"))

    def test_delete_series(self):
        self.s.request("POST", "/api/v1/import/prometheus", "gone 1 1700000000000\nstays 1 1700000000000\n")
        self.assertEqual(self.s.request("POST", "/api/v1/admin/tsdb/delete_series?match[]=gone")[0], 204)
        self.assertEqual(self.s.request("POST", "/api/v1/admin/tsdb/delete_series")[0], 400)
        self.assertEqual(self.s.json("/api/v1/query?query=gone&time=1700000001")[1]["data"]["result"], [])
        self.assertEqual(len(self.s.json("/api/v1/query?query=stays&time=1700000001")[1]["data"]["result"]), 1)
        self.assertEqual(self.s.request("PUT", "/api/v1/admin/tsdb/clean_tombstones")[0], 204)


class OwnServer(unittest.TestCase):
    """Tests of start, stop and limits, each with a server of its own."""

    def start(self, *flags, **kw):
        server = Server(*flags, **kw)
        self.addCleanup(server.close)
        return server

    def run_varve(self, *arguments, env=None):
        done = subprocess.run([VARVE, *arguments], capture_output=True, text=True, timeout=30, check=False,
                              env={**os.environ, **(env or {})})
        return done.returncode, done.stdout, done.stderr

    def test_graceful_stop(self):
        s = self.start()
        self.assertIn(s.request("POST", "/api/v1/import/prometheus", "kept 1 1700000000000\n")[0], (200, 204))
        with s.connect() as idle, s.connect() as busy:
            busy.sendall(b"POST /api/v1/import/prometheus HTTP/1.1\r\nContent-Length: 21\r\n\r\nlate 2 ")
            time.sleep(0.1)
            s.process.send_signal(signal.SIGTERM)
            self.assertEqual(read_all(idle), b"")
            busy.sendall(b"1700000000000\n")
            self.assertRegex(read_all(busy), rb"^HTTP/1\.1 20[04] ")
        self.assertEqual(s.process.wait(20), 0)
        again = self.start(path=s.folder)
        for name in ["kept", "late"]:
            result = again.json(f"/api/v1/query?query={name}&time=1700000001")[1]["data"]["result"]
            self.assertEqual(len(result), 1, name)
        self.assertEqual(again.stop(signal.SIGINT), 0)

    def test_acknowledged_after_kill(self):
        s = self.start()
        s.request("POST", "/api/v1/import/prometheus", "safe 1 1700000000000\n")
        s.process.kill()
        s.process.wait()
        again = self.start(path=s.folder)
        self.assertEqual(len(again.json("/api/v1/query?query=safe&time=1700000001")[1]["data"]["result"]), 1)

    def test_connection_limit(self):
        s = self.start("--web.max-connections=5")
        held = []
        for _ in range(60):  # the connection that asked whether the server is up may still count at first
            c = s.connect()
            c.sendall(b"GET /-/healthy HTTP/1.1\r\n\r\n")
            if b" 200 " in c.recv(4096):
                held.append(c)
            else:
                c.close()
                time.sleep(0.05)
            if len(held) == 5:
                break
        self.assertEqual(len(held), 5)
        with s.connect() as extra:
            self.assertIn(b" 503 ", read_all(extra))
        for c in held:
            c.close()
        for _ in range(50):
            try:
                if s.get("/-/healthy")[0] == 200:
                    break
            except (ConnectionError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        else:
            self.fail("the connections were not given back")

    def test_very_long_body(self):
        """Decoded beside the loop, which answers others meanwhile."""
        s = self.start()
        count = 120000
        lines = "".join(f'very_long{{n="{i}"}} {i} 1700000000000\n' for i in range(count)).encode()
        self.assertGreater(len(lines), 4 << 20)
        self.assertIn(s.request("POST", "/api/v1/import/prometheus", lines)[0], (200, 204))
        _, body = s.json("/api/v1/query?query=sum(very_long)&time=1700000001")
        self.assertEqual(body["data"]["result"][0]["value"][1], str(count * (count - 1) // 2))
        status = s.request("POST", "/api/v1/import/prometheus", b"\n".join([lines, b"not { a line"]))[0]
        self.assertIn(status, (200, 400))

    def test_compression_off(self):
        s = self.start("--web.compression=off")
        self.assertNotIn("Content-Encoding", s.get("/metrics", headers={"Accept-Encoding": "gzip"})[1])

    def test_environment(self):
        s = self.start(env={"VARVE_WEB_COMPRESSION": "off", "VARVE_LOG_LEVEL": "debug"})
        self.assertNotIn("Content-Encoding", s.get("/metrics", headers={"Accept-Encoding": "gzip"})[1])

    def test_many_connections_are_cheap(self):
        s = self.start()
        s.get("/-/healthy")
        before = self.resident(s)
        held = [s.connect() for _ in range(400)]
        for c in held:
            c.sendall(b"GET /-/healthy HTTP/1.1\r\n\r\n")
        for c in held:
            self.assertIn(b"200", c.recv(4096))
        grown = self.resident(s) - before
        self.assertLess(grown, 400 * 8192)
        for c in held:
            c.close()

    @staticmethod
    def resident(s):
        with open(f"/proc/{s.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    # ---- starting badly

    def test_port_taken(self):
        s = self.start()
        folder = tempfile.mkdtemp(prefix="varve-http-")
        self.addCleanup(shutil.rmtree, folder, True)
        code, _, text = self.run_varve("serve", f"--web.listen-address=127.0.0.1:{s.port}", f"--storage.path={folder}")
        self.assertEqual(code, 1)
        self.assertIn(f"127.0.0.1:{s.port}", text)
        self.assertIn("in use", text)

    def test_directory_locked(self):
        s = self.start()
        code, _, text = self.run_varve("serve", "--web.listen-address=127.0.0.1:0", f"--storage.path={s.folder}")
        self.assertEqual(code, 1)
        self.assertIn(s.folder, text)

    def test_directory_not_writable(self):
        code, _, text = self.run_varve("serve", "--web.listen-address=127.0.0.1:0", "--storage.path=/proc/varve")
        self.assertEqual(code, 1)
        self.assertIn("/proc/varve", text)

    def test_wrong_flags(self):
        for arguments, part in [(["--storage.pth=x"], "--storage.pth"), (["serve", "--storage.retention=1x"], "1x"),
                                (["frob"], "frob"), (["serve", "extra"], "extra"), (["inspect"], "inspect")]:
            code, _, text = self.run_varve(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(part, text)
        code, _, text = self.run_varve("serve", env={"VARVE_LOG_FORMAT": "xml"})
        self.assertEqual(code, 2)
        self.assertIn("VARVE_LOG_FORMAT", text)
        code, _, text = self.run_varve("serve", env={"VARVE_CPU": "mmx"})
        self.assertEqual(code, 2)
        self.assertIn("portable", text)

    # ---- commands

    def test_help_and_version(self):
        code, out, _ = self.run_varve("--help")
        self.assertEqual(code, 0)
        self.assertIn("--storage.wal-sync", out)
        code, out, _ = self.run_varve("version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^varve ")

    def test_health(self):
        s = self.start()
        address = f"127.0.0.1:{s.port}"
        self.assertEqual(self.run_varve("health", f"--url=http://{address}/-/ready")[0], 0)
        self.assertEqual(self.run_varve("health", f"--web.listen-address={address}")[0], 0)
        self.assertEqual(self.run_varve("health", "--url", f"http://{address}/nope")[0], 1)
        self.assertEqual(self.run_varve("health", "--url=ftp://x")[0], 2)
        s.stop()
        self.assertEqual(self.run_varve("health", f"--url=http://{address}/-/ready")[0], 1)

    def test_verify_and_inspect(self):
        s = self.start()
        s.request("POST", "/api/v1/import/prometheus", "kept 1 1700000000000\n")
        s.get("/internal/force_flush")
        self.assertEqual(s.stop(), 0)
        code, out, _ = self.run_varve("verify", s.folder)
        self.assertEqual(code, 0, out)
        self.assertIn("0 faults", out)
        parts = [os.path.join(folder, name) for folder, _, names in os.walk(s.folder) for name in names
                 if name.endswith(".part")]
        self.assertTrue(parts)
        code, out, _ = self.run_varve("inspect", parts[0])
        self.assertEqual(code, 0)
        self.assertTrue(out)
        with open(parts[0], "r+b") as file:
            file.seek(os.path.getsize(parts[0]) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 0x40]))
        code, out, _ = self.run_varve("verify", f"--storage.path={s.folder}")
        self.assertEqual(code, 1)
        self.assertIn(os.path.basename(parts[0]), out)
        self.assertEqual(self.run_varve("inspect", s.folder + "/none")[0], 1)


def main():
    if not os.access(VARVE, os.X_OK):
        print(f"skip: {VARVE} is not built")
        sys.exit(77)
    program = unittest.main(exit=False, argv=[sys.argv[0], *sys.argv[1:]])
    result = program.result
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    for _, reason in result.skipped:
        print(f"skip: {reason}")
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
