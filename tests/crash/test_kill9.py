#!/usr/bin/env python3
"""Kills the real server at random moments and looks for what it had acknowledged.

Writers send batches (text exposition and remote write) and note, per sample, the last version that was
acknowledged and the last that was tried; a version is part of the value, so that overwriting a sample
is visible. After each kill -9 and new start, the export must hold for every sample an acknowledged
version or a later one that was tried, and nothing that was never tried. Limits are small, so that kills
hit flushes and merges; some kills come while the server starts.

    tests/crash/test_kill9.py [--kills 100] [--seed N] [--binary build/varve] [--parts N] [--keep]
"""

import argparse
import http.client
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crashlib

HOUR = 3600_000
FLAGS = [
    "--storage.head-max-bytes=60KB",
    "--storage.wal-max-bytes=80KB",
    "--storage.min-free-disk=0",
    "--log.level=warn",
]


def value_of(name, t, version):
    return version * 2**32 + zlib.crc32(b"%s %d" % (name.encode(), t))


class Model:
    """Sample -> [last acknowledged version, last tried version]; one lock, many writers on separate series."""

    def __init__(self):
        self.lock = threading.Lock()
        self.series = {}  # name -> {t: [acked, tried]}
        self.acked_batches = self.acked_samples = 0

    def try_batch(self, rows):
        with self.lock:
            for name, t, version in rows:
                cell = self.series.setdefault(name, {}).setdefault(t, [0, 0])
                cell[1] = version

    def ack_batch(self, rows):
        with self.lock:
            for name, t, version in rows:
                self.series[name][t][0] = version
            self.acked_batches += 1
            self.acked_samples += len(rows)

    def check(self, exported, start=None, end=None):
        """Faults as texts. exported: name -> {t: value}, complete for [start, end]."""
        faults = []
        for name, samples in exported.items():
            cells = self.series.get(name, {})
            for t, v in samples.items():
                cell = cells.get(t)
                versions = range(max(cell[0], 1), cell[1] + 1) if cell else ()
                if not any(value_of(name, t, version) == v for version in versions):
                    faults.append("%s at %d reads %r, allowed versions %s" % (name, t, v, cell))
        for name, cells in self.series.items():
            samples = exported.get(name, {})
            for t, cell in cells.items():
                if (start is None or start <= t <= end) and cell[0] > 0 and t not in samples:
                    faults.append("%s at %d is missing (acknowledged version %d)" % (name, t, cell[0]))
        return faults

    def settle(self, exported, start, end):
        """What was read after a start stays: tried versions that were not acknowledged are decided now."""
        for name, cells in self.series.items():
            samples = exported.get(name, {})
            for t in [t for t in cells if start <= t <= end and cells[t][0] != cells[t][1]]:
                cell = cells[t]
                if t not in samples:
                    del cells[t]
                    continue
                cell[0] = cell[1] = next(v for v in range(1, cell[1] + 1) if value_of(name, t, v) == samples[t])


class Writer(threading.Thread):
    """Sends batches until told to stop or the server is gone."""

    def __init__(self, number, server, model, start, rng):
        super().__init__(daemon=True)
        self.number, self.server, self.model, self.t, self.rng = number, server, model, start, rng
        self.quit, self.error, self.written = threading.Event(), None, []

    def batch(self):
        rows = []
        for i in range(self.rng.choice([1, 20, 100])):
            name = "k%d_%d" % (self.number, i % 40)
            rows.append((name, self.t + i // 40 * 1000, 1))
        self.t += 4000
        for name, t, version in self.rng.sample(self.written, min(len(self.written), 3)):
            tried = self.model.series[name].get(t, [0, 0])[1]
            rows = [row for row in rows if row[:2] != (name, t)] + [(name, t, tried + 1)]
        return list({row[:2]: row for row in rows}.values())

    def body(self, rows):
        if self.rng.random() < 0.5:
            text = "".join('%s{job="crash",w="%d"} %d %d\n' % (n, self.number, value_of(n, t, v), t) for n, t, v in rows)
            return "/api/v1/import/prometheus", text.encode(), {}
        labels = lambda n: {"__name__": n, "job": "crash", "w": str(self.number)}
        request = crashlib.write_request([(labels(n), [(t, value_of(n, t, v))]) for n, t, v in rows])
        return "/api/v1/write", crashlib.snappy_literals(request), crashlib.REMOTE_WRITE_HEADERS

    def run(self):
        connection = self.server.connect()
        while not self.quit.is_set():
            rows = self.batch()
            path, body, headers = self.body(rows)
            self.model.try_batch(rows)
            try:
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException):
                break
            if response.status == 503:
                time.sleep(0.01)
                continue
            if response.status // 100 != 2:
                self.error = "%s answered %d: %s" % (path, response.status, text[:300])
                break
            self.model.ack_batch(rows)
            self.written += rows[:5]
        connection.close()


def pester(server, quit_event, rng):
    """Asks for flushes and merges in between, so that kills hit them."""
    while not quit_event.wait(rng.random() * 0.2):
        try:
            server.get(rng.choice(["/internal/force_flush", "/internal/force_merge"]))
        except OSError:
            return


def by_name(exported):
    return {dict(key)["__name__"]: samples for key, samples in exported.items()}


def verify(server, model, start=None, end=None):
    exported = by_name(server.export('{job="crash"}', start, end))
    faults = model.check(exported, start, end)
    if faults:
        raise AssertionError("%d faults, the first: %s" % (len(faults), "; ".join(faults[:5])))
    if start is not None:
        model.settle(exported, start, end)
    return sum(len(s) for s in exported.values())


def write_until_killed(server, model, start, rng):
    writers = [Writer(i, server, model, start, random.Random(rng.random())) for i in range(3)]
    pest = threading.Event()
    pester_thread = threading.Thread(target=pester, args=(server, pest, random.Random(rng.random())), daemon=True)
    for w in writers:
        w.start()
    pester_thread.start()
    time.sleep(0.05 + rng.random() * 0.7)
    died = not server.alive()
    server.kill()
    pest.set()
    for w in writers:
        w.quit.set()
        w.join()
    pester_thread.join()
    if died:
        raise AssertionError("the server ended on its own\n" + server.log_tail())
    errors = [w.error for w in writers if w.error]
    if errors:
        raise AssertionError(errors[0])


def parts_made(data):
    """Numbers of parts count up: how many flushes and merges wrote one that was not cut short."""
    names = os.listdir(os.path.join(data, "parts"))
    return max([int(n[:-5].rsplit("-", 1)[1]) for n in names if n.endswith(".part")], default=0)


def kill_while_starting(server, rng):
    server.spawn()
    time.sleep(rng.random() * 0.05)
    server.kill()
    return 1


def run(options, data, rng):
    server, model = crashlib.Server(data, FLAGS, options.binary), Model()
    base = int(time.time() * 1000) - 70 * 24 * HOUR
    kills = cycle = 0
    while kills < options.kills:
        start, end = base + cycle * 15 * HOUR, base + (cycle + 1) * 15 * HOUR - 1
        server.start()
        write_until_killed(server, model, start, rng)
        kills += 1
        while rng.random() < 0.2:
            kills += kill_while_starting(server, rng)
        server.start()
        verify(server, model, start, end)
        if cycle % 20 == 19:
            verify(server, model)
        server.kill()
        kills += 1
        cycle += 1
    server.start()
    samples = verify(server, model)
    if server.stop() != 0:
        raise AssertionError("the server's exit code after SIGTERM is not 0\n" + server.log_tail())
    server.start()
    verify(server, model)
    server.stop()
    made = parts_made(data)
    if made < (kills / 2 if options.parts is None else options.parts):
        raise AssertionError("only %d parts were written in %d kills: flushes and merges were not hit" % (made, kills))
    return kills, model, samples, made


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--kills", type=int, default=int(os.environ.get("VARVE_KILLS", "100")))
    p.add_argument("--seed", type=int, default=int(os.environ.get("VARVE_SEED", time.time_ns() % 10**9)))
    p.add_argument("--binary", default=crashlib.BINARY)
    p.add_argument("--parts", type=int, help="how many parts must have been written; half of the kills if not given")
    p.add_argument("--keep", action="store_true", help="leave the data directory")
    options = p.parse_args()
    print("test_kill9: seed %d" % options.seed, flush=True)
    room = tempfile.mkdtemp(prefix="varve-kill9-")
    began = time.monotonic()
    try:
        kills, model, samples, made = run(options, os.path.join(room, "data"), random.Random(options.seed))
    except AssertionError as e:
        print("FAILED: %s\ndata left in %s\nrepeat: %s --seed %d" % (e, room, sys.argv[0], options.seed))
        return 1
    print(
        "ok: %d kills, %d batches and %d samples acknowledged, %d parts written, %d samples at the end, %.0f s"
        % (kills, model.acked_batches, model.acked_samples, made, samples, time.monotonic() - began)
    )
    if not options.keep:
        shutil.rmtree(room)
    return 0


if __name__ == "__main__":
    sys.exit(main())
