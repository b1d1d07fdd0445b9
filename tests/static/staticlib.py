"""What the tests of the static builds share: where the binaries are, how one of another architecture runs.

Tests of the other architecture run under qemu-user: as a process it is the program itself (same pid, same
signals), so the helpers of tests/crash work with it unchanged.
"""
import os
import platform
import stat
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ARCHES = ("amd64", "arm64")
HOST = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
QEMU = {"amd64": ["qemu-x86_64-static"], "arm64": ["qemu-aarch64-static"]}
# an ARMv8.0 processor: no LSE atomics, so the other branch of every outline atomic is taken
OLD_CPU = {"amd64": ["-cpu", "qemu64"], "arm64": ["-cpu", "cortex-a57"]}


def binary(arch):
    return os.path.join(ROOT, "build", "static-" + arch, "varve")


def command(arch, *qemu_flags):
    """What to put before a program of this architecture: nothing on its own."""
    return [] if arch == HOST else [*QEMU[arch], *(qemu_flags or OLD_CPU[arch])]


def run(arch, *arguments, qemu_flags=(), timeout=60):
    return subprocess.run([*command(arch, *qemu_flags), binary(arch), *arguments], capture_output=True, text=True,
                          timeout=timeout, check=False)


def launcher(arch, folder, *qemu_flags):
    """A file that runs varve of this architecture, for helpers that take the name of a binary."""
    path = os.path.join(folder, "varve-" + arch)
    with open(path, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec %s "$@"\n' % " ".join([*command(arch, *qemu_flags), binary(arch)]))
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def output(*arguments, **options):
    """What a command prints; it must succeed."""
    return subprocess.run(arguments, capture_output=True, text=True, check=True, **options).stdout


def main():
    """Runs the module's unittest cases and ends with the line that tests/run totals."""
    result = unittest.main(module="__main__", exit=False, verbosity=1).result
    failed = len(result.failures) + len(result.errors)
    for _, reason in result.skipped:
        print("skip: " + reason)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - failed - len(result.skipped), failed, len(result.skipped)))
    sys.exit(1 if failed else 0)
