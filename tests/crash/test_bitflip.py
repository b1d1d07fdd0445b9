#!/usr/bin/env python3
"""Flips bits in the files of a real server's data directory and looks at what it then says.

A database with parts of two months and samples that are in the log only is copied for each flip; one bit
of one file changes. `varve verify` must end with a non-zero code and name the file (of the log's last record
it can't know whether a crash cut it short: there a note that names the file will do). The server must start;
each series must then read right, or be answered with an error or a warning that names the file; what a
damaged log record or a part that can't be opened held may be missing, but then the server's log says so.

    tests/crash/test_bitflip.py [--flips 60] [--seed N] [--binary build/varve]
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crashlib

SERIES, SAMPLES, STEP = 30, 200, 15000
DAY = 86400_000
FLAGS = ["--storage.min-free-disk=0"]


def value_of(series, t):
    return series * 1000 + t // STEP % 997 + (0.25 if series % 3 else 0)


def send(server, start, first=0, last=SAMPLES):
    rows = []
    for i in range(SERIES):
        for k in range(first, last):
            t = start + k * STEP
            rows.append('flip{id="%d",job="flip"} %r %d' % (i, value_of(i, t), t))
    status, body, _ = server.import_text("\n".join(rows) + "\n")
    if status // 100 != 2:
        raise AssertionError("import: %d %s" % (status, body[:300]))


def build(data, binary):
    """Starts of the three batches: an old month, this month, the log."""
    now = int(time.time() * 1000) // STEP * STEP
    starts = [now - 40 * DAY, now - 2 * SAMPLES * STEP, now - SAMPLES * STEP]
    server = crashlib.Server(data, FLAGS, binary)
    server.start()
    send(server, starts[0])
    send(server, starts[1])
    if server.stop() != 0:
        raise AssertionError("clean stop failed\n" + server.log_tail())
    server.start()
    for k in range(0, SAMPLES, SAMPLES // 5):  # records of the log
        send(server, starts[2], k, k + SAMPLES // 5)
    server.kill()
    return starts


def files_of(data):
    found = []
    for folder, _, names in os.walk(data):
        found += [os.path.relpath(os.path.join(folder, n), data) for n in names if n not in ("LOCK", "MANIFEST.prev")]
    return sorted(f for f in found if os.path.getsize(os.path.join(data, f)) > 0)


def flip(path, rng):
    size = os.path.getsize(path)
    at = rng.choice([rng.randrange(min(64, size)), size - 1 - rng.randrange(min(64, size)), rng.randrange(size), rng.randrange(size)])
    mask = 1 << rng.randrange(8)
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ mask]))
    return at, size, mask


def verify(binary, data):
    r = subprocess.run([binary, "verify", "--storage.path=" + data], capture_output=True, text=True, timeout=60)
    return r.returncode, r.stdout + r.stderr


def read_series(server, i, starts, end):
    """None if the answer is an error or has a warning (with its text), else {t: value}."""
    status, answer = server.query('flip{id="%d"}[60d]' % i, end / 1000)
    text = str(answer.get("error", "")) + str(answer.get("warnings", ""))
    if status != 200:
        return None, text
    samples = {}
    for row in answer["data"]["result"]:
        for t, v in row["values"]:
            samples[round(t * 1000)] = float(v)
    return samples, text


def check_reads(server, starts, name):
    """How many series read right, failed openly, lost samples."""
    right = failed = lost = 0
    want = {i: {s + k * STEP: value_of(i, s + k * STEP) for s in starts for k in range(SAMPLES)} for i in range(SERIES)}
    for i in range(SERIES):
        samples, text = read_series(server, i, starts, starts[2] + SAMPLES * STEP)
        if text and os.path.basename(name) not in text:
            raise AssertionError("series %d: an error or warning that does not name %s: %s" % (i, name, text[:400]))
        for t, v in (samples or {}).items():
            if want[i].get(t) != v:
                raise AssertionError("series %d at %d reads %r, written was %r" % (i, t, v, want[i].get(t)))
        if text:
            failed += 1
        elif len(samples) == len(want[i]):
            right += 1
        else:
            lost += 1
    return right, failed, lost


def one_flip(options, pristine, room, starts, name, rng):
    data = os.path.join(room, "copy")
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(pristine, data)
    at, size, mask = flip(os.path.join(data, name), rng)
    place = "%s offset %d of %d mask %#x" % (name, at, size, mask)
    code, text = verify(options.binary, data)
    noted = name.startswith("wal/") and "unfinished record" in text
    if code == 0 and not noted or os.path.basename(name) not in text:
        raise AssertionError("%s: verify ended with %d and said: %s" % (place, code, text[-500:]))
    server = crashlib.Server(data, FLAGS, options.binary)
    if os.path.exists(server.log_path):
        os.unlink(server.log_path)
    try:
        server.start()
        right, failed, lost = check_reads(server, starts, name)
        if lost and os.path.basename(name) not in server.log_tail():
            raise AssertionError("%d series lost samples and the log does not name the file" % lost)
        if server.stop() != 0:
            raise AssertionError("the server did not end cleanly\n" + server.log_tail())
    except AssertionError as e:
        raise AssertionError("%s: %s" % (place, e)) from e
    finally:
        if server.alive():
            server.kill()
    return right, failed, lost


def run(options, room, rng):
    pristine = os.path.join(room, "pristine")
    starts = build(pristine, options.binary)
    code, text = verify(options.binary, pristine)
    if code != 0:
        raise AssertionError("verify finds faults without damage (%d): %s" % (code, text))
    files = files_of(pristine)
    totals = [0, 0, 0]
    for k in range(options.flips):
        counts = one_flip(options, pristine, room, starts, files[k % len(files)], rng)
        totals = [a + b for a, b in zip(totals, counts)]
    return files, totals


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--flips", type=int, default=60)
    p.add_argument("--seed", type=int, default=int(os.environ.get("VARVE_SEED", time.time_ns() % 10**9)))
    p.add_argument("--binary", default=crashlib.BINARY)
    options = p.parse_args()
    print("test_bitflip: seed %d" % options.seed, flush=True)
    room = tempfile.mkdtemp(prefix="varve-bitflip-")
    began = time.monotonic()
    try:
        files, (right, failed, lost) = run(options, room, random.Random(options.seed))
    except AssertionError as e:
        print("FAILED: %s\ndata left in %s\nrepeat: %s --seed %d" % (e, room, sys.argv[0], options.seed))
        return 1
    print("ok: %d flips in %d files; series: %d right, %d failed openly, %d with losses the log names; %.0f s"
          % (options.flips, len(files), right, failed, lost, time.monotonic() - began))
    shutil.rmtree(room)
    return 0


if __name__ == "__main__":
    sys.exit(main())
