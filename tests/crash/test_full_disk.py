#!/usr/bin/env python3
"""A disk that runs full, twice: down to the reserve (--storage.min-free-disk), and to the last byte.

On a small tmpfs (needs root; skipped otherwise). Meanwhile writes must be refused with 503 and Retry-After,
reads and readiness go on, and nothing that was acknowledged may be missing; once there is room again, writes
must be taken within some seconds, without a restart, and after one everything is still there.
"""

import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crashlib

MB = 1 << 20
SKIPPED = 77


class Writer:
    """Sends batches of fresh, hardly compressible samples; remembers those acknowledged."""

    def __init__(self, server):
        self.server, self.acked = server, {}
        self.t = int(time.time() * 1000) - 3600_000
        self.seed = 12345

    def send(self):
        rows = {}
        for _ in range(2000):
            self.seed = (self.seed * 6364136223846793005 + 1442695040888963407) % 2**64
            rows[self.t] = float(self.seed >> 11) / 7
            self.t += 1
        text = "".join("full %r %d\n" % (v, t) for t, v in rows.items())
        status, body, headers = self.server.import_text(text)
        if status // 100 == 2:
            self.acked.update(rows)
        return status, body, headers

    def until(self, wanted, seconds):
        """Sends until an answer of this class of status comes; that answer."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            answer = self.send()
            if answer[0] // 100 == wanted:
                return answer
            if answer[0] // 100 not in (2, 5):
                raise AssertionError("a write was answered with %d: %s" % (answer[0], answer[1][:300]))
            if answer[0] // 100 == 5:
                time.sleep(0.1)
        raise AssertionError("no %dxx within %d s" % (wanted, seconds))


def check_all(server, writer):
    exported = server.export("full")
    samples = next(iter(exported.values()), {})
    missing = [t for t, v in writer.acked.items() if samples.get(t) != v]
    assert not missing, "%d of %d acknowledged samples are missing or wrong" % (len(missing), len(writer.acked))


def check_refusal(server, writer, what):
    status, body, headers = writer.until(5, 60)
    assert status == 503, "%s: writes are answered with %d: %s" % (what, status, body[:300])
    assert headers.get("Retry-After"), "%s: the 503 has no Retry-After" % what
    assert server.get("/-/ready")[0] == 200, "%s: not ready for reads" % what
    check_all(server, writer)


def ballast(path, leave):
    s = os.statvfs(os.path.dirname(path))
    n = s.f_bavail * s.f_frsize - leave
    with open(path, "wb") as f:
        f.write(b"\0" * max(n, 0))


def phase(mount, name, flags, leave):
    """Starts with `leave` bytes of room, writes until refused, then gives the room back."""
    data, weight = os.path.join(mount, name), os.path.join(mount, "ballast")
    server = crashlib.Server(data, ["--storage.head-max-bytes=1MB", "--storage.wal-max-bytes=1MB", "--log.level=warn"] + flags)
    server.log_path = os.path.join(os.path.dirname(mount), name + ".log")
    server.start()
    writer = Writer(server)
    try:
        writer.until(2, 10)
        ballast(weight, leave)
        check_refusal(server, writer, name)
        os.unlink(weight)
        writer.until(2, 30)
        check_all(server, writer)
        server.kill()
        server.start()
        check_all(server, writer)
        writer.until(2, 10)
        assert server.stop() == 0, "no clean end"
        return len(writer.acked)
    finally:
        if server.alive():
            server.kill()
        if os.path.exists(weight):
            os.unlink(weight)


def main():
    room = tempfile.mkdtemp(prefix="varve-full-")
    mount = os.path.join(room, "disk")
    os.mkdir(mount)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", mount], capture_output=True).returncode != 0:
        print("skipped: can't mount a tmpfs here")
        return SKIPPED
    failed = None
    try:
        reserve = phase(mount, "reserve", ["--storage.min-free-disk=8MB"], 12 * MB)
        last_byte = phase(mount, "last-byte", ["--storage.min-free-disk=0"], 3 * MB)
    except AssertionError as e:
        failed = e
    finally:
        subprocess.run(["umount", mount], check=False)
    if failed:
        print("FAILED: %s\nlogs left in %s" % (failed, room))
        return 1
    subprocess.run(["rm", "-rf", room], check=False)
    print("ok: reserve kept and recovered (%d samples), last byte survived and recovered (%d samples)" % (reserve, last_byte))
    return 0


if __name__ == "__main__":
    sys.exit(main())
