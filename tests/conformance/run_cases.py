#!/usr/bin/env python3
"""Runs the PromQL scripts of tests/conformance/cases against build/varve; one eval is one case.

usage: tests/conformance/run_cases.py [FILE ...]

Each file gets a server of its own. T is 1749999600; times are T, T+30, T-0.5, or unix seconds. A script is lines:

    load START INTERVAL              the series below begin at START, one value each INTERVAL seconds
      name{label="value"} 1 2 _ NaN stale 3x5
                                     _ is a gap, 3x5 five times 3, 0+2x5 0 2 4 6 8 10
    hist TIME name{label="value"} schema=0 count=6 sum=20 zero=1 pos=1:2,3
                                     a native histogram: buckets from index 1 on hold 2 and 3
    eval TIME QUERY                  an instant query; below it what it must give:
      name{label="value"} 3          a vector, in any order; or `scalar 3`, `string text`, `empty`, `error`,
      {label="value"} 1@T 2@T+30     or a matrix: values with their times
      ordered                        the order counts
    range START END STEP QUERY       a range query; each series' values in order, _ where there is none

Values agree if they differ by 1e-9 of their size at most; the rest exactly. Also checked: each function of
query/functions.c occurs in an eval. VARVE names another binary. Ends with "N passed, N failed, N skipped".
"""
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VARVE = os.environ.get("VARVE", os.path.join(ROOT, "build", "varve"))
T0 = 1749999600
STALE = 0x7FF0000000000002
TOLERANCE = 1e-9
LABEL = re.compile(r'\s*(?:"([^"]*)"|([a-zA-Z_][\w.]*))\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')


class Server:
    """One varve process on a free port, with a folder of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="varve-cases-")
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [VARVE, "serve", "--web.listen-address=127.0.0.1:0", f"--storage.path={self.folder}/data",
                 "--storage.retention=100y", "--query.experimental=true"], stdout=log, stderr=log)
        self.port = self.find_port()
        for _ in range(300):
            if self.ask("/-/ready", None)[0] == 200:
                break
            time.sleep(0.03)

    def find_port(self):
        """The port from the server's log."""
        for _ in range(300):
            with open(self.log, encoding="utf-8", errors="replace") as file:
                found = re.search(r'msg="?listening"? address=\S+:(\d+)', file.read())
            if found:
                return int(found[1])
            time.sleep(0.03)
        raise RuntimeError("the server did not start")

    def ask(self, path, data, headers=None):
        """(status, body) of a POST."""
        url = f"http://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers or {}), timeout=60) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def stop(self):
        """Ends the process, removes the folder."""
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.folder)


# ---- remote write: protobuf in snappy's literal form

def varint(n):
    """Base-128, seven bits a byte."""
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def zigzag(n):
    """Signed as varint."""
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


def field(number, payload):
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def double(number, bits):
    """A fixed64 field from a float or raw bits."""
    return varint(number << 3 | 1) + (struct.pack("<Q", bits) if isinstance(bits, int) else struct.pack("<d", bits))


def number_field(number, payload):
    """A varint field, its payload encoded already."""
    return varint(number << 3) + payload


def series_message(labels, body):
    """A TimeSeries field of a WriteRequest."""
    pairs = b"".join(field(1, field(1, n.encode()) + field(2, v.encode())) for n, v in sorted(labels.items()))
    return field(1, pairs + body)


def snappy(data):
    """Snappy's block form, literals only."""
    out = bytearray(varint(len(data)))
    for at in range(0, len(data), 60000):
        part = data[at:at + 60000]
        out += bytes([61 << 2]) + struct.pack("<H", len(part) - 1) + part
    return bytes(out)


def write(server, message):
    """Sends a WriteRequest."""
    status, body = server.ask("/api/v1/write", snappy(message), {
        "Content-Type": "application/x-protobuf", "Content-Encoding": "snappy",
        "X-Prometheus-Remote-Write-Version": "0.1.0"})
    if status // 100 != 2:
        raise RuntimeError(f"write: {status} {body!r}")


# ---- the script's notation

def parse_time(text):
    """T, T+30, T-0.5 or unix seconds."""
    return T0 + float(text[1:] or 0) if text.startswith("T") else float(text)


def parse_series(text):
    """name{a="b"} rest → (labels, rest)."""
    found = re.match(r"([a-zA-Z_:][\w:]*)?(\{)?", text)
    labels, at = {}, found.end()
    if found[1]:
        labels["__name__"] = found[1]
    while found[2] and text[at] != "}":
        pair = LABEL.match(text, at)
        labels[pair[1] or pair[2]] = json.loads(f'"{pair[3]}"')
        at = pair.end()
    return labels, text[at + bool(found[2]):].strip()


def parse_values(text):
    """Values of a load; None is a gap, an int the bits of the stale marker."""
    out = []
    for word in text.split():
        ramp = re.fullmatch(r"(-?[\d.]+)([+-][\d.]+)?x(\d+)", word)
        if ramp and ramp[2]:
            out += [float(ramp[1]) + i * float(ramp[2]) for i in range(int(ramp[3]) + 1)]
        elif ramp:
            out += [float(ramp[1])] * int(ramp[3])
        else:
            out.append({"_": None, "stale": STALE}.get(word, word))
    return [float(v) if isinstance(v, str) else v for v in out]


def load_line(line, start, interval):
    """One series of a load as a message."""
    labels, rest = parse_series(line)
    body = b""
    for i, v in enumerate(parse_values(rest)):
        if v is not None:
            ms = round((start + i * interval) * 1000)
            body += field(2, double(1, v) + number_field(2, varint(ms)))
    return series_message(labels, body)


def hist_line(rest):
    """A native histogram as a message."""
    when, rest = rest.split(None, 1)
    labels, rest = parse_series(rest)
    given = dict(word.split("=") for word in rest.split())
    offset, counts = given["pos"].split(":")
    counts = [int(c) for c in counts.split(",")]
    deltas = b"".join(zigzag(c - (counts[i - 1] if i else 0)) for i, c in enumerate(counts))
    body = (number_field(1, varint(int(given["count"]))) + double(3, float(given["sum"]))
            + number_field(4, zigzag(int(given["schema"]))) + double(5, 0.001)
            + number_field(6, varint(int(given["zero"])))
            + field(11, number_field(1, zigzag(int(offset))) + number_field(2, varint(len(counts))))
            + field(12, deltas) + number_field(15, varint(round(parse_time(when) * 1000))))
    return series_message(labels, field(4, body))


# ---- comparison

def same(a, b):
    """Two values, up to the last bits."""
    a, b = float(a), float(b)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def expected_rows(lines, times):
    """What the lines below an eval say: [(labels, [(time, value)])]."""
    rows = []
    for line in lines:
        labels, rest = parse_series(line)
        points = []
        for i, word in enumerate(rest.split()):
            value, _, when = word.partition("@")
            if value != "_":
                points.append((parse_time(when) if when else times[i], value))
        rows.append((labels, points))
    return rows


def answer_rows(data, instant):
    """The same of an answer."""
    if data["resultType"] == "vector":
        return [(r["metric"], [(instant, r["value"][1] if "value" in r else "NaN")]) for r in data["result"]]
    return [(r["metric"], [tuple(p) for p in r.get("values", [])]) for r in data["result"]]


def same_rows(want, got, ordered):
    """True if both are the same series with the same points."""
    if not ordered:
        key = lambda row: sorted(row[0].items())
        want, got = sorted(want, key=key), sorted(got, key=key)
    return len(want) == len(got) and all(
        wl == gl and len(wp) == len(gp) and all(abs(wt - gt) < 1e-6 and same(wv, gv)
                                               for (wt, wv), (gt, gv) in zip(wp, gp))
        for (wl, wp), (gl, gp) in zip(want, got))


def check(status, reply, lines, times):
    """None, or what is wrong with an answer."""
    if lines == ["error"]:
        return None if status in (400, 422) and reply["status"] == "error" else f"no error: {reply}"
    if status != 200:
        return f"status {status}: {reply.get('error')}"
    data = reply["data"]
    if lines and lines[0].startswith(("scalar ", "string ")):
        kind, value = lines[0].split(None, 1)
        good = data["resultType"] == kind and (
            same(data["result"][1], value) if kind == "scalar" else data["result"][1] == value)
        return None if good else f"got {data}"
    ordered = "ordered" in lines
    want = expected_rows([line for line in lines if line not in ("ordered", "empty")], times)
    if not lines or data["resultType"] not in ("vector", "matrix"):
        return f"got {data}"
    return None if same_rows(want, answer_rows(data, times[0]), ordered) else f"got {json.dumps(data)}"


# ---- running

def run_eval(server, head, lines):
    """None, or what is wrong."""
    kind, rest = head.split(None, 1)
    if kind == "eval":
        when, query = rest.split(None, 1)
        times = [parse_time(when)]
        path, args = "/api/v1/query", {"time": repr(times[0])}
    else:
        start, end, step, query = rest.split(None, 3)
        first, last, step = parse_time(start), parse_time(end), float(step)
        times = [first + i * step for i in range(int((last - first) / step) + 1)]
        path, args = "/api/v1/query_range", {"start": repr(first), "end": repr(last), "step": repr(step)}
    query = query.replace("\\n", "\n")
    status, body = server.ask(path, urllib.parse.urlencode({**args, "query": query}).encode())
    return check(status, json.loads(body), lines, times)


def statements(path):
    """[(line number, head, [lines below it])] of a script."""
    out = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.rstrip("\n")
            if not text.strip() or text.startswith("#"):
                continue
            if text.startswith(" "):
                out[-1][2].append(text.strip())
            else:
                out.append((number, text.strip(), []))
    return out


def run_file(path, totals, seen):
    """All of one script against one server."""
    server = Server()
    try:
        for number, head, lines in statements(path):
            words = head.split()
            if words[0] == "load":
                start, interval = parse_time(words[1]), float(words[2])
                write(server, b"".join(load_line(line, start, interval) for line in lines))
            elif words[0] == "hist":
                write(server, hist_line(head.split(None, 1)[1]))
            else:
                seen.append(head)
                wrong = run_eval(server, head, lines)
                totals[wrong is not None] += 1
                if wrong is not None:
                    print(f"{os.path.basename(path)}:{number}: {head}\n    want {lines}\n    {wrong}")
    finally:
        server.stop()


def uncovered(seen):
    """Functions of the engine's table that no eval calls."""
    with open(os.path.join(ROOT, "query", "functions.c"), encoding="utf-8") as file:
        names = re.findall(r'^    \{"(\w+)", FN_', file.read(), re.MULTILINE)
    text = "\n".join(seen)
    return [name for name in names if not re.search(rf"\b{name}\(", text)]


def main():
    folder = os.path.join(HERE, "cases")
    paths = sys.argv[1:] or sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".txt"))
    totals, seen = [0, 0], []
    for path in paths:
        run_file(path, totals, seen)
    if not sys.argv[1:]:
        missing = uncovered(seen)
        totals[bool(missing)] += 1
        if missing:
            print("functions without a case:", ", ".join(missing))
    print(f"{totals[0]} passed, {totals[1]} failed, 0 skipped")
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
