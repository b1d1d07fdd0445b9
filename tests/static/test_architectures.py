#!/usr/bin/env python3
"""The binary of the other architecture under qemu-user: its unit tests, kills, and data directories that move.

usage: tests/static/test_architectures.py   (needs make static for both architectures and their unit tests)
"""
import concurrent.futures
import glob
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "crash"))
import crashlib
import staticlib

FOREIGN = next(arch for arch in staticlib.ARCHES if arch != staticlib.HOST)
PAGES = ("-p", "65536", *staticlib.OLD_CPU["arm64"])  # a kernel with pages of 64 KiB
FLAGS = ["--storage.retention=100y", "--storage.min-free-disk=0", "--log.level=warn"]
START = 1_700_000_000_000
UNIT_TIMEOUT, KILLS = 170, 8


def unit_tests():
    """Those that the Makefile built (FOREIGN_TESTS tells which it leaves out)."""
    return sorted(glob.glob(os.path.join(staticlib.ROOT, "build", "static-" + FOREIGN, "tests", "*", "test_*")))


def run_unit(path, *qemu_flags):
    """Empty if the program passes, else what it said."""
    try:
        done = subprocess.run([*staticlib.command(FOREIGN, *qemu_flags), path], cwd=staticlib.ROOT, timeout=UNIT_TIMEOUT,
                              env={**os.environ, "CMOCKA_MESSAGE_OUTPUT": "TAP"}, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return "timed out after %d s" % UNIT_TIMEOUT
    text = done.stdout.decode("utf-8", "replace") + done.stderr.decode("utf-8", "replace")
    if done.returncode == 0 and re.search(r"^ok ", text, re.M) and not re.search(r"^not ok (?!.*# SKIP)", text, re.M):
        return ""
    return "exit status %d\n%s" % (done.returncode, text[-3000:])


def rows(number):
    """Values of every kind, whose bits must not change: NaN payloads, infinities, -0, subnormals, counters."""
    rng = random.Random(number)
    odd = [struct.unpack("<d", struct.pack("<Q", bits))[0]
           for bits in (0x7FF0000000000002, 0x7FF8000000000001, 0x8000000000000000, 1, 0x7FEFFFFFFFFFFFFF)]
    odd += [math.inf, -math.inf]
    out = []
    for i in range(60):
        total, samples = 0.0, []
        for k in range(120):
            total += rng.random() * 10 ** (i % 12)
            value = rng.choice(odd) if i % 10 == 9 else float(int(total)) if i % 3 else total
            samples.append((START + number * 3600_000 + k * 15_000 + (rng.randrange(9) if i % 4 == 0 else 0), value))
        out.append(({"__name__": "m%d" % (i % 7), "job": "moved", "i": str(i), "ü": "é\"\\"}, samples))
    return out


class UnitTests(unittest.TestCase):
    def all_pass(self, paths, *qemu_flags):
        self.assertTrue(paths)
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            said = list(pool.map(lambda path: run_unit(path, *qemu_flags), paths))
        bad = ["%s: %s" % (os.path.basename(p), text) for p, text in zip(paths, said) if text]
        self.assertEqual(bad, [], "\n".join(bad))

    def test_without_lse(self):
        self.all_pass(unit_tests())

    @unittest.skipIf(FOREIGN != "arm64", "amd64 has one page size")
    def test_with_pages_of_64_kib(self):
        chosen = ("test_arena", "test_buf", "test_map", "test_wal", "test_part", "test_zframe", "test_env_posix")
        self.all_pass([p for p in unit_tests() if os.path.basename(p) in chosen], *PAGES)


class Servers(unittest.TestCase):
    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="varve-arch-")
        self.data = os.path.join(self.room, "data")
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            if server.alive():
                server.kill()
        shutil.rmtree(self.room)

    def start(self, arch, *qemu_flags):
        server = crashlib.Server(self.data, FLAGS, staticlib.launcher(arch, self.room, *qemu_flags))
        self.servers.append(server)
        server.start(timeout=60)
        return server

    def write(self, server, number):
        body = crashlib.snappy_literals(crashlib.write_request(rows(number)))
        status, text, _ = server.request("POST", "/api/v1/write", body, crashlib.REMOTE_WRITE_HEADERS)
        self.assertEqual(status // 100, 2, text)

    def export(self, server):
        """All lines, in an order of our own: the order of series is not promised."""
        status, body = server.get("/api/v1/export", **{"match[]": '{job="moved"}', "start": 0, "end": START / 1000 + 1e6})
        self.assertEqual(status, 200, body[:300])
        return sorted(body.splitlines())

    def stop(self, server):
        self.assertEqual(server.stop(60), 0, server.log_tail())

    def faultless(self, arch):
        done = staticlib.run(arch, "verify", self.data)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 faults", done.stdout)

    def move(self, one, other):
        """Parts and log written by one, read by the other, which adds to it; and back."""
        server = self.start(one)
        self.write(server, 0)
        server.get("/internal/force_flush")
        self.write(server, 1)
        before = self.export(server)
        self.assertEqual(len(before), 60)
        server.kill()  # the log is replayed by the other
        self.faultless(other)
        server = self.start(other)
        self.assertEqual(self.export(server), before)
        self.write(server, 2)
        server.get("/internal/force_flush")
        server.get("/internal/force_merge")
        after = self.export(server)
        self.stop(server)
        self.faultless(one)
        server = self.start(one)
        self.assertEqual(self.export(server), after)
        self.stop(server)

    def test_directory_moves_to_the_foreign_architecture_and_back(self):
        self.move(staticlib.HOST, FOREIGN)

    def test_directory_moves_from_the_foreign_architecture_and_back(self):
        self.move(FOREIGN, staticlib.HOST)

    def test_same_writes_same_export(self):
        made = {}
        for arch in staticlib.ARCHES:
            self.data = os.path.join(self.room, "data-" + arch)
            server = self.start(arch)
            self.write(server, 0)
            lines = self.export(server)
            server.get("/internal/force_flush")
            self.assertEqual(self.export(server), lines)
            self.stop(server)
            made[arch] = lines
        self.assertEqual(made["amd64"], made["arm64"])

    @unittest.skipIf(FOREIGN != "arm64", "amd64 has one page size")
    def test_server_with_pages_of_64_kib(self):
        server = self.start("arm64", *PAGES)
        self.write(server, 0)
        server.get("/internal/force_flush")
        status, answer = server.query('count({job="moved",i!~".*9"})', START / 1000 + 1700)
        self.assertEqual((status, answer["data"]["result"][0]["value"][1]), (200, "54"))
        self.stop(server)

    def run_kills(self, arch, kills, parts):
        done = subprocess.run([os.path.join(HERE, "..", "crash", "test_kill9.py"), "--kills", str(kills), "--parts",
                               str(parts), "--binary", staticlib.launcher(arch, self.room)], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_kills_on_the_host(self):
        self.run_kills(staticlib.HOST, 20, 4)

    def test_kills_under_qemu(self):
        self.run_kills(FOREIGN, KILLS, 1)

    def test_http(self):
        done = subprocess.run([os.path.join(HERE, "..", "integration", "test_http.py")], capture_output=True, text=True,
                              env={**os.environ, "VARVE": staticlib.binary(staticlib.HOST)}, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:] + done.stderr[-3000:])


if __name__ == "__main__":
    staticlib.main()
