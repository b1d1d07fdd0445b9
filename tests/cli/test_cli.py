#!/usr/bin/env python3
"""Black-box tests of varve as a client: query, labels, import, export, snapshot, backup, restore.

usage: tests/cli/test_cli.py [-k PATTERN] [-v]
VARVE names another binary. Ends with "N passed, N failed, N skipped".
"""
import csv
import gzip
import http.server
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "crash"))
import crashlib  # noqa: E402  (the folder is known only now)

VARVE = os.environ.get("VARVE", os.path.join(ROOT, "build", "varve"))
OK, FAILED, USAGE, REFUSED, PARTLY = range(5)
T0 = 1_700_000_000


def varve(*words, url=None, stdin=None, env=None, timeout=60):
    """Runs a command; its exit code, stdout and stderr as text."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VARVE_")}
    environment.update(env or {})
    if url:
        environment["VARVE_URL"] = url
    done = subprocess.run([VARVE, *words], input=stdin, capture_output=True, env=environment, timeout=timeout,
                          check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def text_rows(series, samples, start=T0, name="cli_test"):
    """Exposition text of that many series and samples each."""
    return "".join(f'{name}{{n="{i}",kind="{"ab"[i % 2]}"}} {i * 1000 + k + 0.25} {(start + 15 * k) * 1000}\n'
                   for k in range(samples) for i in range(series))


class Base(unittest.TestCase):
    """One server and one scratch folder a class."""

    flags = ["--storage.retention=100y"]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="varve-cli-")
        cls.server = crashlib.Server(os.path.join(cls.folder, "data"), cls.flags, VARVE)
        cls.server.start()
        cls.url = f"http://127.0.0.1:{cls.server.port}"

    @classmethod
    def tearDownClass(cls):
        if cls.server.alive():
            cls.server.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def run_ok(self, *words, **more):
        code, out, error = varve(*words, url=self.url, **more)
        self.assertEqual(code, OK, error)
        return out

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return path


class Reading(Base):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        status, body, _ = cls.server.import_text(
            text_rows(4, 20) + f'odd{{v="a,\\"b\\"",esc="\\u001b[31m"}} 1 {T0}000\n'.replace("\\u001b", "\x1b")
            + f"bare NaN {T0}000\n")
        assert status == 204, body

    def test_vector_table(self):
        out = self.run_ok("query", "cli_test", f"--time={T0 + 30}")
        lines = out.splitlines()
        self.assertEqual(lines[0].split(), ["__name__", "kind", "n", "value"])
        self.assertEqual([line.split() for line in lines[1:]],
                         [["cli_test", "ab"[i % 2], str(i), f"{i * 1000 + 2}.25"] for i in range(4)])
        self.assertEqual({len(line) for line in lines}, {len(lines[0])}, "columns are aligned")
        self.assertNotIn("\033", out, "no colours into a pipe")

    def test_value_text(self):
        for query, expected in [("1/3", "0.3333333333333333"), ("-1/0", "-Inf"), ("1e25", "1e+25"), ('"x"', "x"),
                                ("-0.5", "-0.5")]:
            answer = json.loads(self.run_ok("query", query, "--format=json"))
            self.assertEqual(self.run_ok("query", query).strip(), answer["data"]["result"][1])
            if query != "1e25":  # Prometheus's own form of it is the server's business
                self.assertEqual(self.run_ok("query", query).strip(), expected)

    def test_json_is_the_servers(self):
        out = self.run_ok("query", "sum(cli_test)", f"--time={T0}", "--format=json")
        status, body = self.server.get("/api/v1/query", query="sum(cli_test)", time=str(T0))
        self.assertEqual(status, 200)
        self.assertEqual(json.loads(out), json.loads(body))

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.run_ok("query", "odd", f"--time={T0}", "--format=csv"))))
        self.assertEqual(rows, [{"__name__": "odd", "esc": "\x1b[31m", "v": 'a,"b"', "timestamp": str(T0),
                                 "value": "1"}])

    def test_stored_text_cannot_drive_a_terminal(self):
        for words in [("query", "odd", f"--time={T0}"), ("labels", "esc"), ("series", "--match=odd")]:
            out = self.run_ok(*words)
            self.assertNotIn("\x1b", out)
            self.assertIn("\\x1b[31m", out)

    def test_range(self):
        out = self.run_ok("query-range", 'cli_test{n="1"}', f"--start={T0}", f"--end={T0 + 60}", "--step=30s")
        lines = out.splitlines()
        self.assertEqual(lines[0], 'cli_test{kind="b", n="1"}')
        self.assertEqual([line.split() for line in lines[2:]],
                         [["2023-11-14T22:13:20Z", "1000.25"], ["2023-11-14T22:13:50Z", "1002.25"],
                          ["2023-11-14T22:14:20Z", "1004.25"]])
        rows = list(csv.DictReader(io.StringIO(self.run_ok(
            "query-range", "cli_test", f"--start={T0}", f"--end={T0 + 60}", "--step=30", "--format=csv"))))
        self.assertEqual(len(rows), 12)
        code, _, _ = varve("query-range", "vector(1)", url=self.url)
        self.assertEqual(code, OK, "start, end and step have defaults")

    def test_labels_and_series(self):
        self.assertEqual(self.run_ok("labels").split(), ["__name__", "esc", "kind", "n", "v"])
        self.assertEqual(self.run_ok("labels", "n").split(), ["0", "1", "2", "3"])
        self.assertEqual(self.run_ok("labels", "n", '--match=cli_test{kind="a"}').split(), ["0", "2"])
        self.assertEqual(self.run_ok("labels", "n", '--match=cli_test{n="0"}', "--match", 'cli_test{n="3"}').split(),
                         ["0", "3"])
        self.assertEqual(self.run_ok("series", '--match=cli_test{kind="b"}').splitlines(),
                         ['cli_test{kind="b", n="1"}', 'cli_test{kind="b", n="3"}'])
        rows = list(csv.DictReader(io.StringIO(self.run_ok("series", "--match=cli_test", "--format=csv"))))
        self.assertEqual(sorted(row["n"] for row in rows), ["0", "1", "2", "3"])
        self.assertEqual(json.loads(self.run_ok("labels", "n", "--format=json"))["data"], ["0", "1", "2", "3"])

    def test_error_is_marked(self):
        code, out, error = varve("query", "sum(cli_test", url=self.url)
        self.assertEqual((code, out), (REFUSED, ""))
        lines = error.splitlines()
        place = re.search(r"1:(\d+): parse error", lines[0])
        self.assertTrue(place, lines)
        self.assertEqual(lines[1], "  sum(cli_test")
        self.assertEqual(lines[2], "  " + " " * (int(place[1]) - 1) + "^")

    def test_no_data(self):
        code, out, error = varve("query", "nothing_of_that_name", url=self.url)
        self.assertEqual((code, out, error), (OK, "", "no data\n"))

    def test_warnings(self):
        _, _, error = varve("query", "rate(cli_test[1m])", f"--time={T0 + 60}", url=self.url)
        self.assertIn("info: ", error)

    def test_usage(self):
        for words in [("query",), ("query", "a", "b"), ("query", "up", "--tme=1"), ("query", "up", "--time"),
                      ("query", "up", "--format=xml"), ("query", "up", "--timeout=soon"), ("series",),
                      ("query", "up", "--time=now-x"), ("export",), ("snapshot", "make"), ("restore", "x"),
                      ("import", "x", "--format=xml"), ("query", "up", "--url=https://example.org"),
                      ("query", "up", "--url=http://:1"), ("query", "up", "--url=http://h:99999"),
                      ("query", "up", "--url=ftp://h"), ("query", "up", "--bearer-token=a b"), ("nonsense",)]:
            code, out, error = varve(*words, url=self.url)
            self.assertEqual((code, out), (USAGE, ""), f"{words}: {error}")
            self.assertTrue(error.startswith("varve: "), error)
        self.assertIn("https", varve("query", "up", "--url=https://x")[2])

    def test_nobody_answers(self):
        code, _, error = varve("query", "up", "--url", f"http://127.0.0.1:{crashlib.free_port()}")
        self.assertEqual(code, FAILED)
        self.assertIn("refused", error)
        code, _, error = varve("query", "up", "--url=no-such-host.invalid")
        self.assertEqual(code, FAILED)

    def test_help(self):
        code, out, _ = varve("help")
        self.assertEqual(code, OK)
        for name in ["query", "query-range", "labels", "series", "import", "export", "snapshot", "backup", "restore"]:
            self.assertIn(f"varve {name} ", out)
            for words in [(name, "--help"), ("help", name)]:
                code, own, _ = varve(*words)
                self.assertEqual(code, OK)
                self.assertTrue(own.startswith(f"varve {name} "), own)
                self.assertIn("Exit codes", own)

    def test_health(self):
        self.assertEqual(self.run_ok("health", f"--url={self.url}"), f"{self.url}/-/ready: 200\n")
        self.assertEqual(self.run_ok("health", f"--url={self.url}/-/healthy"), f"{self.url}/-/healthy: 200\n")
        self.assertEqual(varve("health", f"--url=http://127.0.0.1:{crashlib.free_port()}")[0], FAILED)

    def test_prefix(self):
        self.assertEqual(self.run_ok("query", "1+1", f"--url={self.url}/prometheus/").strip(), "2")

    def test_colours_on_a_terminal_only(self):
        for extra, coloured in [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                                ({"TERM": "dumb"}, False)]:
            ours, theirs = pty.openpty()
            environment = {**os.environ, "VARVE_URL": self.url, "NO_COLOR": "", **extra}
            done = subprocess.run([VARVE, "query", "cli_test", f"--time={T0}"], stdout=theirs, env=environment,
                                  timeout=20, check=False)
            os.close(theirs)
            shown = os.read(ours, 65536)
            os.close(ours)
            self.assertEqual(done.returncode, OK)
            self.assertEqual(b"\033[1m" in shown, coloured)


class Importing(Base):
    def count(self, name):
        _, answer = self.server.query(f"count_over_time({name}[1y])", T0 + 1_000_000)
        return sum(int(row["value"][1]) for row in answer["data"]["result"])

    def test_text_plain_and_packed(self):
        for name, pack, how in [("plain", lambda b: b, "file"), ("gz", gzip.compress, "file"),
                                ("members", lambda b: gzip.compress(b[:1000]) + gzip.compress(b[1000:]), "file"),
                                ("piped", gzip.compress, "pipe")]:
            data = pack(text_rows(3, 200, name=f"text_{name}").encode())
            if how == "file":
                self.run_ok("import", self.write(name, data))
            else:
                self.run_ok("import", "-", stdin=data)
            self.assertEqual(self.count(f"text_{name}"), 600, name)

    def test_zstd(self):
        if not shutil.which("zstd"):
            self.skipTest("the program zstd is not here")
        packed = subprocess.run(["zstd", "-q"], input=text_rows(3, 200, name="text_zstd").encode(), timeout=20,
                                stdout=subprocess.PIPE, check=True).stdout
        self.run_ok("import", "-", stdin=packed + packed)
        self.assertEqual(self.count("text_zstd"), 600)
        code, _, error = varve("import", "-", url=self.url, stdin=packed[:-9])
        self.assertEqual(code, FAILED)
        self.assertIn("cut off", error)

    def test_cut_gzip(self):
        data = gzip.compress(text_rows(3, 200, name="cut").encode())
        code, _, error = varve("import", self.write("cut", data[:-12]), url=self.url)
        self.assertEqual(code, FAILED)
        self.assertIn("cut off", error)

    def test_export_and_import_again(self):
        self.run_ok("import", self.write("again", text_rows(5, 300, name="again")))
        lines = self.run_ok("export", "--match=again", "--max-rows-per-line=100")
        self.assertEqual(len(lines.splitlines()), 15)
        other = crashlib.Server(os.path.join(self.folder, "other"), self.flags, VARVE)
        other.start()
        try:
            code, _, error = varve("import", "-", url=f"http://127.0.0.1:{other.port}", stdin=lines.encode())
            self.assertEqual(code, OK, error)
            self.assertIn("1500 samples in 15 lines", error)
            self.assertEqual(other.export("again"), self.server.export("again"))
        finally:
            other.stop()

    def test_many_batches(self):
        rows = text_rows(20, 12000, name="many")
        self.assertGreater(len(rows), 2.5 * (4 << 20))
        code, _, error = varve("import", self.write("many", rows), url=self.url)
        self.assertEqual(code, OK, error)
        self.assertIn("240000 samples in 240000 lines", error)
        self.assertEqual(self.count("many"), 240000)

    def test_rejected_rows(self):
        rows = text_rows(2, 10, name="partly") + "this is no row\n" + f"partly 1 {T0 + 10 ** 10}000\n"
        code, _, error = varve("import", self.write("partly", rows), url=self.url)
        self.assertEqual(code, PARTLY)
        self.assertIn("2 rejected", error)
        self.assertIn("line 21", error)
        self.assertEqual(self.count("partly"), 20)

    def test_extra_label(self):
        self.run_ok("import", self.write("extra", text_rows(1, 3, name="extra")), "--extra-label=site=x y&z")
        self.assertEqual(self.run_ok("labels", "site"), "x y&z\n")

    def test_missing_file(self):
        code, _, error = varve("import", "/no/such/file", url=self.url)
        self.assertEqual(code, FAILED)
        self.assertIn("/no/such/file", error)

    def test_server_is_killed_meanwhile(self):
        server = crashlib.Server(os.path.join(self.folder, "mortal"), self.flags, VARVE)
        server.start()
        rows = text_rows(20, 12000, name="mortal").encode()
        process = subprocess.Popen([VARVE, "import", "-", f"--url=127.0.0.1:{server.port}"], stdin=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        try:
            process.stdin.write(rows[: 6 << 20])
            process.stdin.flush()
            server.kill()
            threading.Timer(1.5, server.start).start()
            _, error = process.communicate(rows[6 << 20 :], timeout=60)
            self.assertEqual(process.returncode, OK, error)
            self.assertIn(b"trying again", error)
            exported = server.export("mortal")
            self.assertEqual(sum(len(samples) for samples in exported.values()), 240000)
        finally:
            process.kill()
            process.wait()
            server.stop()

    def test_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        path = self.write("bar", text_rows(20, 5000, name="bar"))
        done = subprocess.run([VARVE, "import", path], stderr=theirs, env={**os.environ, "VARVE_URL": self.url},
                              timeout=30, check=False)
        os.close(theirs)
        shown = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertEqual(done.returncode, OK)
        self.assertRegex(shown, r"\[=*>? *\] +\d+%  .*samples/s")
        self.assertIn("100000 samples", shown.splitlines()[-1])


class Script(http.server.BaseHTTPRequestHandler):
    """A server that answers what the test wrote down."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, dict(self.headers), body))
        status, headers, text = self.server.answer(len(self.server.seen), body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_):
        pass


class Client(unittest.TestCase):
    """What the client makes of other answers: a scripted server, as no real one gives them on demand."""

    def serve(self, answer):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Script)
        server.daemon_threads = True
        server.seen, server.answer = [], answer
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server, f"127.0.0.1:{server.server_address[1]}"

    def test_busy_server_is_tried_again(self):
        server, at = self.serve(lambda n, body: (503, {"Retry-After": "1"}, b"later") if n < 3 else (204, {}, b""))
        start = time.monotonic()
        code, _, error = varve("import", "-", f"--url={at}", stdin=b"a 1\n")
        self.assertEqual(code, OK, error)
        self.assertEqual([body for _, _, body in server.seen], [b"a 1\n"] * 3)
        self.assertGreater(time.monotonic() - start, 1.9, "Retry-After is kept")
        code, _, error = varve("import", "-", f"--url={at}", "--retries=0", stdin=b"a 1\n")
        server.answer = lambda n, body: (503, {}, b"later")
        code, _, error = varve("import", "-", f"--url={at}", "--retries=1", stdin=b"a 1\n")
        self.assertEqual(code, REFUSED, error)

    def test_large_bodies_are_cut(self):
        server, at = self.serve(lambda n, body: (413, {}, b"") if len(body) > 100 else (204, {}, b""))
        rows = b"".join(b"m%d 1\n" % i for i in range(200))
        code, _, error = varve("import", "-", f"--url={at}", stdin=rows)
        self.assertEqual(code, OK, error)
        self.assertEqual(b"".join(body for _, _, body in server.seen if len(body) <= 100), rows)
        code, _, error = varve("import", "-", f"--url={at}", stdin=b"a 1\nx%s 1\nb 1\n" % (b"y" * 200))
        self.assertEqual(code, PARTLY, error)
        self.assertIn("line 2", error)

    def test_credentials(self):
        good = b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}'
        server, at = self.serve(lambda n, body: (200, {}, good))
        self.assertEqual(varve("query", "1", f"--url=http://us%40er:p%3Aw@{at}")[:2], (OK, "2\n"))
        self.assertEqual(server.seen[-1][1]["Authorization"], "Basic dXNAZXI6cDp3")
        varve("query", "1", f"--url={at}", "--bearer-token=abc.def")
        self.assertEqual(server.seen[-1][1]["Authorization"], "Bearer abc.def")
        varve("query", "1", f"--url={at}", env={"VARVE_BEARER_TOKEN": "t0ken"})
        self.assertEqual(server.seen[-1][1]["Authorization"], "Bearer t0ken")
        code, _, error = varve("query", "1", "--url=http://user:secret@127.0.0.1:1")
        self.assertEqual(code, FAILED)
        self.assertNotIn("secret", error)

    def test_strange_answers(self):
        for text in [b"", b"nonsense", b"{}", b"[1,2]", b'{"status":"success"}', b'{"status":"success","data":[]}',
                     b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":1}}]}}']:
            _, at = self.serve(lambda n, body, text=text: (200, {}, text))
            code, out, error = varve("query", "1", f"--url={at}")
            self.assertEqual((code, out), (FAILED, ""), f"{text}: {error}")
        _, at = self.serve(lambda n, body: (502, {}, b"<html>bad gateway</html>"))
        code, _, error = varve("query", "1", f"--url={at}")
        self.assertEqual(code, REFUSED)
        self.assertIn("bad gateway", error)

    def test_silent_server(self):
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            code, _, error = varve("query", "1", f"--url=127.0.0.1:{s.getsockname()[1]}", "--timeout=300ms")
        self.assertEqual(code, FAILED)
        self.assertIn("300 ms", error)


class Writer(threading.Thread):
    """Load beside the test: batches of new samples until told to stop."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.ended, self.written, self.failure = server, threading.Event(), 0, None

    def run(self):
        try:
            while not self.ended.is_set():
                status, body, _ = self.server.import_text(text_rows(50, 4, T0 + 100000 + 60 * self.written, "load"))
                if status != 204:
                    raise AssertionError(body)
                self.written += 1
        except Exception as error:  # shown by the test that started it
            self.failure = error

    def stop(self):
        self.ended.set()
        self.join()
        if self.failure:
            raise self.failure


class BackingUp(Base):
    def setUp(self):
        self.backups = tempfile.mkdtemp(prefix="backups-", dir=self.folder)
        self.data = self.server.data

    def backup(self, *more, data=None):
        code, out, error = varve("backup", self.backups, f"--storage.path={data or self.data}", "--format=json", *more,
                                 url=self.url)
        self.assertEqual(code, OK, error)
        return json.loads(out)

    def exported(self, url):
        code, out, error = varve("export", '--match={__name__!=""}', url=url)
        self.assertEqual(code, OK, error)
        return sorted(out.splitlines())

    def served(self, data):
        """What a server on this data directory exports."""
        server = crashlib.Server(data, self.flags, VARVE)
        server.start()
        try:
            return self.exported(f"http://127.0.0.1:{server.port}")
        finally:
            server.stop()

    def restore(self, backup, name):
        target = os.path.join(self.folder, name)
        return target, *varve("restore", backup, target)

    def some_part(self, backup):
        folder = os.path.join(backup, "parts")
        return max((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getsize)

    def test_1_live_incremental_and_back(self):
        self.run_ok("import", self.write("first", text_rows(200, 500, name="first")))
        writer = Writer(self.server)
        writer.start()
        try:
            first = self.backup()
            second = self.backup("--verify")
        finally:
            writer.stop()
        self.assertGreater(writer.written, 0)
        self.assertGreater(first["copied_bytes"], 2000)
        self.assertEqual(first["copied_bytes"], first["bytes"])
        self.assertLess(second["copied_bytes"], second["bytes"], "unchanged parts are shared")
        self.assertEqual(json.loads(self.run_ok("snapshot", "list", "--format=json"))["snapshots"], [])
        before = self.exported(self.url)
        third = self.backup()
        fourth = self.backup()
        self.assertEqual(fourth["copied_bytes"], 0, "nothing was written, nothing is copied")
        shared = self.some_part(fourth["path"])
        self.assertGreater(os.stat(shared).st_nlink, 1)
        self.assertEqual(os.stat(shared).st_ino, os.stat(shared.replace(fourth["backup"], third["backup"])).st_ino)
        for backup in (first, second, third, fourth):
            code, out, error = varve("verify", backup["path"])
            self.assertEqual(code, OK, out + error)
        target, code, _, error = self.restore(self.backups, "back")  # the newest
        self.assertEqual(code, OK, error)
        self.assertEqual(self.served(target), before)
        self.assertTrue(any('"load"' in line for line in before))
        target, code, _, error = self.restore(first["path"], "older")
        self.assertEqual(code, OK, error)
        older = self.served(target)
        self.assertEqual([line for line in older if '"first"' in line], [line for line in before if '"first"' in line])

    def test_2_damage_is_found(self):
        self.run_ok("import", self.write("damage", text_rows(50, 300, name="damage")))
        backup = self.backup()["path"]
        for name in [self.some_part(backup), os.path.join(backup, "MANIFEST"), os.path.join(backup, "BACKUP")]:
            with open(name, "rb") as file:
                good = file.read()
            for bad in (good[: len(good) // 2], good[:20] + bytes([good[20] ^ 1]) + good[21:], None):
                os.unlink(name)  # the bytes may be shared with another backup
                if bad is not None:
                    with open(name, "wb") as file:
                        file.write(bad)
                target, code, _, error = self.restore(backup, "damaged")
                self.assertEqual(code, FAILED, name)
                self.assertIn(os.path.basename(name) if bad is not None or "BACKUP" not in name else "no backup", error)
                self.assertFalse(os.path.exists(target))
                self.assertFalse(os.path.exists(target + ".restoring"))
            with open(name, "wb") as file:
                file.write(good)
        _, code, _, error = self.restore(backup, "mended")
        self.assertEqual(code, OK, error)
        with open(self.some_part(backup), "r+b") as file:  # --verify does not build on damage
            file.seek(100)
            byte = file.read(1)
            file.seek(100)
            file.write(bytes([byte[0] ^ 4]))
        fresh = self.backup("--verify")
        _, code, _, error = self.restore(fresh["path"], "fresh")
        self.assertEqual(code, OK, error)

    def test_3_target_must_be_empty(self):
        self.backup()
        target = os.path.join(self.folder, "taken")
        os.makedirs(os.path.join(target, "x"))
        code, _, error = varve("restore", self.backups, target)
        self.assertEqual(code, USAGE)
        self.assertIn("not empty", error)
        os.rmdir(os.path.join(target, "x"))
        self.assertEqual(varve("restore", self.backups, target + "/")[0], OK, "an empty folder is fine")
        self.assertEqual(varve("restore", os.path.join(self.folder, "nothing"), target + "2")[0], FAILED)

    def test_4_wrong_places(self):
        code, _, error = varve("backup", self.data, f"--storage.path={self.data}", url=self.url)
        self.assertEqual(code, USAGE, error)
        code, _, error = varve("backup", self.backups, f"--storage.path={self.folder}", url=self.url)
        self.assertEqual(code, USAGE, error)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "LOCK")))
        code, _, error = varve("backup", self.backups, f"--storage.path={self.data}",
                               f"--url=127.0.0.1:{crashlib.free_port()}")
        self.assertEqual(code, FAILED)

    def test_5_killed_in_the_middle(self):
        self.run_ok("import", self.write("kill", text_rows(300, 700, name="kill")))
        complete = self.backup()["backup"]
        for i, delay in enumerate([0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12]):
            self.run_ok("import", "-", stdin=text_rows(300, 20, T0 + 50000 + 400 * i, "kill").encode())
            process = subprocess.Popen([VARVE, "backup", self.backups, f"--storage.path={self.data}", "--verify"],
                                       env={**os.environ, "VARVE_URL": self.url}, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
            for name in os.listdir(self.backups):
                if name == "LOCK" or name.startswith(".partial-"):
                    continue
                code, out, error = varve("verify", os.path.join(self.backups, name))
                self.assertEqual(code, OK, f"{name} after {delay}: {out}{error}")
        self.assertIn(complete, os.listdir(self.backups))
        self.backup("--verify")
        self.assertEqual([name for name in os.listdir(self.backups) if name.startswith(".partial-")], [])
        target, code, _, error = self.restore(self.backups, "survived")
        self.assertEqual(code, OK, error)
        self.assertEqual(self.served(target), self.exported(self.url))
        for name in self.run_ok("snapshot", "list").split():  # of the killed ones
            self.run_ok("snapshot", "delete", name)

    def test_6_without_a_server(self):
        data = os.path.join(self.folder, "alone")
        server = crashlib.Server(data, self.flags, VARVE)
        server.start()
        server.import_text(text_rows(20, 50, name="alone"))
        server.kill()  # what was written is in the log alone
        first = self.backup(data=data)
        self.assertGreater(first["copied_files"], 2)
        target, code, _, error = self.restore(first["path"], "alone-back")
        self.assertEqual(code, OK, error)
        self.assertEqual(self.served(target), self.served(data))

    def test_7_snapshots(self):
        name = self.run_ok("snapshot", "create").strip()
        self.assertTrue(os.path.exists(os.path.join(self.data, "snapshots", name, "MANIFEST")))
        code, out, error = varve("verify", os.path.join(self.data, "snapshots", name))
        self.assertEqual(code, OK, out + error)
        self.assertIn(name, self.run_ok("snapshot", "list").split())
        self.assertEqual(self.run_ok("snapshot", "delete", name), "")
        self.assertNotIn(name, self.run_ok("snapshot").split())
        self.assertEqual(varve("snapshot", "delete", name, url=self.url)[0], REFUSED)


def main():
    """Runs the tests; the last line is what tests/run reads."""
    program = unittest.main(exit=False, verbosity=1)
    result = program.result
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    for case, reason in result.skipped:
        print(f"skip {case}: {reason}")
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
