"""What the black-box crash tests share: a server process, HTTP, and the bytes of remote write.

Only the standard library. A Server owns one process on a free loopback port; its output goes to a log
file beside the data directory, and is shown when a test fails.
"""

import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("VARVE_BINARY", os.path.join(ROOT, "build", "varve"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, data, flags=(), binary=BINARY):
        self.data, self.flags, self.binary = data, list(flags), binary
        self.port, self.process = free_port(), None
        self.log_path = data.rstrip("/") + ".log"

    def spawn(self):
        log = open(self.log_path, "ab")
        command = [self.binary, "serve", "--storage.path=" + self.data, "--web.listen-address=127.0.0.1:%d" % self.port]
        self.process = subprocess.Popen(command + self.flags, stdout=log, stderr=log)
        log.close()

    def start(self, timeout=30):
        self.spawn()
        self.wait_ready(timeout)

    def wait_ready(self, timeout=30):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError("server ended with code %s at start\n%s" % (self.process.returncode, self.log_tail()))
            try:
                if self.get("/-/ready")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.01)
        raise AssertionError("server not ready after %s s\n%s" % (timeout, self.log_tail()))

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout=30):
        """Ends the server politely; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def log_tail(self, n=30):
        try:
            with open(self.log_path, "rb") as f:
                return b"\n".join(f.read().splitlines()[-n:]).decode("utf-8", "replace")
        except OSError:
            return ""

    # ---- HTTP

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=60):
        c = self.connect(timeout)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.read(), r.headers
        except http.client.HTTPException as e:
            raise OSError(str(e)) from e
        finally:
            c.close()

    def get(self, path, **query):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return self.request("GET", path)[:2]

    def import_text(self, text):
        return self.request("POST", "/api/v1/import/prometheus", text.encode())

    def export(self, match, start=None, end=None):
        """{canonical labels: {ms: value}} of all that match; start and end in ms."""
        query = {"match[]": match}
        if start is not None:
            query["start"] = "%.3f" % (start / 1000)
        if end is not None:
            query["end"] = "%.3f" % (end / 1000)
        status, body = self.get("/api/v1/export", **query)
        if status != 200:
            raise AssertionError("export: %d %s" % (status, body[:500]))
        return parse_export(body)

    def query(self, text, at=None):
        """Status and parsed answer of an instant query; at in seconds."""
        arguments = {"query": text}
        if at is not None:
            arguments["time"] = "%.3f" % at
        status, body = self.get("/api/v1/query", **arguments)
        return status, json.loads(body)


def parse_export(body):
    series = {}
    for line in body.splitlines():
        if not line.strip():
            continue
        row = json.loads(line)
        key = tuple(sorted(row["metric"].items()))
        samples = series.setdefault(key, {})
        for t, v in zip(row["timestamps"], row["values"]):
            if t in samples:
                raise AssertionError("%s at %d twice in the export" % (key, t))
            samples[t] = v
    return series


# ---- remote write 1.0: protobuf in snappy's block format, literals only


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def write_request(series):
    """[(labels dict, [(ms, value)])] -> a prometheus.WriteRequest."""
    out = bytearray()
    for labels, samples in series:
        one = bytearray()
        for name in sorted(labels):
            one += field(1, field(1, name.encode()) + field(2, labels[name].encode()))
        for t, v in samples:
            one += field(2, b"\x09" + struct.pack("<d", v) + b"\x10" + varint(t))
        out += field(1, bytes(one))
    return bytes(out)


def snappy_literals(raw):
    out = bytearray(varint(len(raw)))
    for at in range(0, len(raw), 65536):
        piece = raw[at : at + 65536]
        out += bytes([61 << 2]) + struct.pack("<H", len(piece) - 1) + piece
    return bytes(out)


REMOTE_WRITE_HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
