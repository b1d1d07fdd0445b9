#!/usr/bin/env python3
"""Both static binaries, looked at from outside: what kind of file they are, what they depend on, how they are hardened.

usage: tests/static/test_binaries.py        (needs make static for both architectures)
"""
import json
import os
import re
import shutil
import tempfile
import time
import unittest
import zlib

import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
import crashlib
import staticlib

MIB = 1 << 20
PAGE_MAX = {"amd64": 0x1000, "arm64": 0x10000}  # the largest page a kernel of the architecture may have


class Binaries(unittest.TestCase):
    def each(self):
        return [(arch, staticlib.binary(arch)) for arch in staticlib.ARCHES]

    def segments(self, path):
        """[(type, vaddr, size in memory, flags, alignment)]"""
        text = staticlib.output("readelf", "-lW", path)
        pattern = r"^  (\w+) +0x\w+ (0x\w+) 0x\w+ 0x\w+ (0x\w+) ([RWE ]{3}) (0x\w+)$"
        return [(m[1], int(m[2], 16), int(m[3], 16), m[4], int(m[5], 16)) for m in re.finditer(pattern, text, re.M)]

    def test_file_says_static_pie(self):
        names = {"amd64": "x86-64", "arm64": "ARM aarch64"}
        for arch, path in self.each():
            text = staticlib.output("file", "-b", path)
            self.assertIn("ELF 64-bit LSB pie executable, " + names[arch], text)
            self.assertIn("static-pie linked", text)
            self.assertIn(", stripped", text)

    def test_nothing_is_loaded_or_missing(self):
        for _, path in self.each():
            self.assertNotIn("INTERP", staticlib.output("readelf", "-lW", path))
            dynamic = staticlib.output("readelf", "-dW", path)
            for word in ("NEEDED", "TEXTREL", "RPATH", "RUNPATH"):
                self.assertNotIn(word, dynamic)
            symbols = staticlib.output("readelf", "-sW", path + ".debug")
            missing = [line for line in symbols.splitlines() if " UND " in line and re.search(r"UND \w", line)
                       and " WEAK " not in line]
            self.assertEqual(missing, [])

    def test_no_code_is_chosen_by_the_loader(self):
        for _, path in self.each():
            relocations = staticlib.output("readelf", "-rW", path)
            self.assertGreater(relocations.count("_RELATIV"), 10)
            kinds = set(re.findall(r"R_\w+", relocations))
            self.assertLessEqual(kinds, {"R_X86_64_RELATIVE", "R_AARCH64_RELATIVE", "R_AARCH64_RELATIV"})
            self.assertFalse("IFUNC" in staticlib.output("readelf", "-sW", path + ".debug"))

    def test_hardened(self):
        for arch, path in self.each():
            segments = self.segments(path)
            by_type = {s[0]: s for s in segments}
            self.assertEqual(by_type["GNU_STACK"][3], "RW ")
            self.assertEqual(by_type["GNU_STACK"][2], MIB, "the stack that threads get by default")
            self.assertIn("GNU_RELRO", by_type)
            relro_end = by_type["GNU_RELRO"][1] + by_type["GNU_RELRO"][2]
            self.assertEqual(relro_end % PAGE_MAX[arch], 0)
            self.assertIn("NOW", staticlib.output("readelf", "-dW", path))
            loads = [s for s in segments if s[0] == "LOAD"]
            self.assertFalse([s for s in loads if "W" in s[3] and "E" in s[3]])
            self.assertEqual({s[4] for s in loads}, {PAGE_MAX[arch]})
            self.assertTrue("__stack_chk_fail" in staticlib.output("readelf", "-sW", path + ".debug"))

    def test_small(self):
        for _, path in self.each():
            with open(path, "rb") as file:
                data = file.read()
            self.assertLess(len(data), 5 * MIB)
            self.assertLess(len(zlib.compress(data, 9)), 2.5 * MIB)

    def test_no_path_of_the_builder(self):
        for _, path in self.each():
            with open(path, "rb") as file:
                self.assertFalse(staticlib.ROOT.encode() in file.read())

    def test_heap_is_jemalloc(self):
        """What programs call lies in the middle of jemalloc. musl keeps its own for itself (atexit's table)."""
        for _, path in self.each():
            text = staticlib.output("readelf", "-sW", path + ".debug")
            found = re.findall(r": (\w+) +\d+ FUNC +(\w+) +\w+ +\d+ (\w+)$", text, re.M)
            address = {name: int(at, 16) for at, scope, name in found if scope != "LOCAL"}
            own = [int(at, 16) for at, _, name in found if name.startswith("je_")]  # the linker made most of them local
            self.assertGreater(len(own), 100)
            for name in ("malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "mallctl"):
                if name in address:
                    self.assertTrue(min(own) < address[name] < max(own), name)
            self.assertLessEqual({"malloc", "calloc", "realloc", "free", "mallctl"}, set(address))

    def test_version(self):
        for arch, _ in self.each():
            told = json.loads(staticlib.run(arch, "version", "--json").stdout)
            self.assertEqual(told["flavour"], "static")
            self.assertEqual(told["arch"], arch)
            self.assertRegex(told["libc"], r"^musl 1\.")
            self.assertRegex(told["compiler"], r"^gcc 1\d")
            self.assertEqual(set(told["libraries"]), {"jemalloc", "zstd", "zlib", "libuv", "http-parser", "pcre2",
                                                      "roaring", "xxhash"})
            for name, version in told["libraries"].items():
                self.assertRegex(version, r"^\d+\.\d+", name)
            text = staticlib.run(arch, "version").stdout
            self.assertTrue(text.startswith("varve %s (%s)\n" % (told["version"], told["revision"])), text)

    def test_version_names_the_cpu(self):
        told = json.loads(staticlib.run("arm64", "version", "--json", qemu_flags=("-cpu", "cortex-a57")).stdout)
        self.assertEqual(told["cpu"], ["neon", "crc32"])
        told = json.loads(staticlib.run("arm64", "version", "--json", qemu_flags=("-cpu", "max")).stdout)
        self.assertIn("lse", told["cpu"])


class Running(unittest.TestCase):
    """The host's own binary as a process."""

    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="varve-static-")
        self.server = crashlib.Server(os.path.join(self.room, "data"), ["--storage.min-free-disk=0"],
                                      staticlib.binary(staticlib.HOST))
        self.server.start()

    def tearDown(self):
        if self.server.alive():
            self.server.kill()
        shutil.rmtree(self.room)

    def test_memory_and_threads(self):
        with open("/proc/%d/maps" % self.server.process.pid, encoding="utf-8") as file:
            maps = [line.split() for line in file if line.rstrip().endswith("/varve")]
        self.assertNotIn("rwxp", [m[1] for m in maps])
        first_written = next(i for i, m in enumerate(maps) if m[1] == "rw-p")
        self.assertEqual(maps[first_written - 1][1], "r--p", "RELRO is in force: %s" % maps)
        names, tasks = [], "/proc/%d/task" % self.server.process.pid
        for task in os.listdir(tasks):
            with open("%s/%s/comm" % (tasks, task), encoding="utf-8") as file:
                names.append(file.read().strip())
        self.assertIn("jemalloc_bg_thd", names)
        self.assertTrue([n for n in names if n.startswith("loop-")], names)

    def test_deep_queries(self):
        text = "(" * 150 + "1" + "+1)" * 150
        status, answer = self.server.query(text, time.time())
        self.assertEqual((status, answer["data"]["result"][1]), (200, "151"))
        deep = "-" * 20000 + "1"
        status, _ = self.server.query(deep, time.time())
        self.assertIn(status, (200, 400, 422))
        self.assertTrue(self.server.alive())


if __name__ == "__main__":
    staticlib.main()
