#!/usr/bin/env python3
"""Two builds of one tree in different folders give the same bytes.

The tree is copied to a folder whose name has another length and built there again; the libraries of the
static builds are those of the first (their recipes fix paths, order and dates by themselves). The static
program of the host is built whole; of the other flavours one room, by the same rules.

usage: tests/static/test_reproducible.py    (needs make all, and make static for both architectures)
"""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import staticlib

ROOM = "storage/base"
GENERATED = "build/page/assets.c"  # the same for all; copied, so that no package is fetched again
OTHER = next(arch for arch in staticlib.ARCHES if arch != staticlib.HOST)


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


class Reproducible(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.copy = tempfile.mkdtemp(prefix="varve-a-folder-with-another-name-")
        for name in ("server", "storage", "query", "ingest", "deploy", "Makefile", "CHANGELOG.md", "tests"):
            source, target = os.path.join(staticlib.ROOT, name), os.path.join(cls.copy, name)
            if os.path.isdir(source):
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("corpus", "__pycache__", "node_modules"))
            else:
                shutil.copy(source, target)
        os.makedirs(os.path.join(cls.copy, "build", "page"))
        shutil.copy(os.path.join(staticlib.ROOT, GENERATED), os.path.join(cls.copy, GENERATED))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.copy)

    def make(self, *goals):
        revision = read(staticlib.ROOT, "build", "version").decode().split()[1]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        done = subprocess.run(["make", "-j%d" % (os.cpu_count() or 1), "REVISION=" + revision, "-o", GENERATED,
                               "MUSL=" + os.path.join(staticlib.ROOT, "build", "musl"), *goals], cwd=self.copy,
                              env=environment, capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])

    def same(self, path):
        self.assertTrue(read(staticlib.ROOT, path) == read(self.copy, path), path + " differs")

    def test_static_program(self):
        folder = "build/static-%s/" % staticlib.HOST
        self.make(folder + "varve")
        self.same(folder + "varve")
        self.same(folder + "varve.debug")

    def test_objects_of_the_other_flavours(self):
        sources = sorted(glob.glob(os.path.join(staticlib.ROOT, ROOM, "*.c")))
        self.assertTrue(sources)
        for flavour in ("rel", "static-" + OTHER):
            objects = ["build/%s/obj/%s/%s.o" % (flavour, ROOM, os.path.basename(s)[:-2]) for s in sources]
            self.make(*objects)
            for path in objects:
                self.same(path)


if __name__ == "__main__":
    staticlib.main()
