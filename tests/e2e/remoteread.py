"""A client of Prometheus's remote read: requests, both kinds of answers, chunks; and writes to compare with.

Written from the protocol's description for the tests, to be read rather than to be fast.
"""
import http.client
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "crash"))
import crashlib  # noqa: E402  (varints, protobuf fields and snappy blocks of literals)

SAMPLES, CHUNKS = 0, 1
EQ, NE, RE, NRE = 0, 1, 2, 3
XOR, HISTOGRAM, FLOAT_HISTOGRAM = 1, 2, 3
STREAMED = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"
HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "Accept-Encoding": "snappy",
           "X-Prometheus-Remote-Read-Version": "0.1.0"}


# ---- requests

def number(tag, value):
    """A varint field."""
    return crashlib.varint(tag << 3) + crashlib.varint(value)


def query(start, end, *matchers, hints=b""):
    """One Query; matchers are (type, name, value)."""
    out = number(1, start) + number(2, end)
    for kind, name, value in matchers:
        out += crashlib.field(3, number(1, kind) + crashlib.field(2, name.encode()) + crashlib.field(3, value.encode()))
    return crashlib.field(1, out + (crashlib.field(4, hints) if hints else b""))


def request(queries, types=()):
    """A ReadRequest as it is sent."""
    return crashlib.snappy_literals(b"".join(queries) + b"".join(number(2, kind) for kind in types))


def post(port, body, path="/api/v1/read", **headers):
    """(status, headers, body) of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, body, {**HEADERS, **headers})
    answer = connection.getresponse()
    result = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return result


# ---- bytes

def varint(data, at):
    """(value, position behind it)."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data):
    """[(number, value)] of a message; values are integers or bytes."""
    found, at = [], 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        else:
            raise ValueError(f"wire type {kind}")
        found.append((tag >> 3, value))
    return found


def signed(value):
    """A varint as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def unzigzag(value):
    """A zigzag varint."""
    return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def snappy_expand(data):
    """A snappy block."""
    size, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        kind, length = tag & 3, (tag >> 2) + 1
        if kind == 0:
            if length > 60:
                extra = length - 60
                length, at = int.from_bytes(data[at:at + extra], "little") + 1, at + extra
            out += data[at:at + length]
            at += length
            continue
        if kind == 1:
            length, offset, at = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at], at + 1
        else:
            extra = 2 if kind == 2 else 4
            offset, at = int.from_bytes(data[at:at + extra], "little"), at + extra
        for _ in range(length):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def crc32c(data):
    """Castagnoli's CRC."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def make_table():
    """What each byte does to the sum."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = make_table()


# ---- answers: {labels as a sorted tuple: [(ms, value)]}, one a query; a value is 8 bytes or a histogram's fields

def labels_of(messages):
    """Labels as a tuple of pairs; they must be sorted by name."""
    pairs = []
    for message in messages:
        parts = dict(fields(message))
        pairs.append((parts[1].decode(), parts[2].decode()))
    assert pairs == sorted(pairs), pairs
    return tuple(pairs)


def spans_of(messages):
    """[(offset, length)]"""
    return [(unzigzag(dict(fields(m)).get(1, 0)), dict(fields(m)).get(2, 0)) for m in messages]


def varints(messages):
    """Packed zigzag numbers."""
    numbers = []
    for data in messages:
        at = 0
        while at < len(data):
            value, at = varint(data, at)
            numbers.append(unzigzag(value))
    return numbers


def doubles(messages):
    """Packed doubles."""
    return [d[at:at + 8] for d in messages for at in range(0, len(d), 8)]


def histogram(message):
    """A prompb.Histogram as (ms, fields)."""
    parts = fields(message)
    one = {tag: value for tag, value in parts if not isinstance(value, bytes) or tag in (2, 3, 5, 7)}
    many = {tag: [v for t, v in parts if t == tag] for tag in (8, 9, 10, 11, 12, 13, 16)}
    is_float = 2 in one
    zero = bytes(8)
    return signed(one.get(15, 0)), {
        "float": is_float, "count": one.get(2, zero) if is_float else one.get(1, 0), "sum": one.get(3, zero),
        "schema": unzigzag(one.get(4, 0)), "threshold": one.get(5, zero),
        "zero": one.get(7, zero) if is_float else one.get(6, 0),
        "negative": (spans_of(many[8]), doubles(many[10]) if is_float else varints(many[9])),
        "positive": (spans_of(many[11]), doubles(many[13]) if is_float else varints(many[12])),
        "hint": one.get(14, 0), "custom": doubles(many[16])}


def sampled(body):
    """The answer of SAMPLES, a list of dicts."""
    results = []
    for _, result in fields(snappy_expand(body)):
        series = {}
        for _, one in fields(result):
            parts = fields(one)
            values = []
            for _, sample in (p for p in parts if p[0] == 2):
                found = dict(fields(sample))
                values.append((signed(found.get(2, 0)), found.get(1, bytes(8))))
            values += [histogram(message) for tag, message in parts if tag == 4]
            series[labels_of(m for tag, m in parts if tag == 1)] = sorted(values, key=lambda pair: pair[0])
        results.append(series)
    return results


def frames(body):
    """[(query, labels, [(first, last, type, data)], length)] of a streamed answer."""
    found, at = [], 0
    while at < len(body):
        size, at = varint(body, at)
        crc, message = struct.unpack(">I", body[at:at + 4])[0], body[at + 4:at + 4 + size]
        assert len(message) == size and crc == crc32c(message)
        at += 4 + size
        parts = fields(message)
        series = [value for tag, value in parts if tag == 1]
        assert len(series) == 1
        inner = fields(series[0])
        chunks = []
        for _, chunk in (p for p in inner if p[0] == 2):
            c = dict(fields(chunk))
            chunks.append((signed(c.get(1, 0)), signed(c.get(2, 0)), c[3], c[4]))
        found.append((dict(parts).get(2, 0), labels_of(m for tag, m in inner if tag == 1), chunks, size))
    return found


def streamed(body, queries=1):
    """The answer of STREAMED_XOR_CHUNKS in the form of sampled(); series must come sorted."""
    results = [{} for _ in range(queries)]
    last = (0, ())
    for number_of_query, labels, chunks, _ in frames(body):
        assert (number_of_query, labels) >= last, (last, labels)
        last = number_of_query, labels
        values = results[number_of_query].setdefault(labels, [])
        for first, end, kind, data in chunks:
            read = xor_chunk(data) if kind == XOR else histogram_chunk(data, kind == FLOAT_HISTOGRAM)
            assert (read[0][0], read[-1][0]) == (first, end) and len(read) <= 120
            values += read
    return results


# ---- chunks

class Bits:
    """Bits, highest first, and the codes made of them."""

    def __init__(self, data):
        self.value, self.left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count):
        """An unsigned number of that many bits."""
        self.left -= count
        assert self.left >= 0
        return self.value >> self.left & (1 << count) - 1

    def ones(self, most):
        """How many ones come before a zero."""
        count = 0
        while count < most and self.take(1):
            count += 1
        return count

    def signed(self, count):
        """Its range is (-2^(n-1), 2^(n-1)]; 64 bits are plain."""
        value = self.take(count)
        limit = 1 << (count - 1)
        return value - (1 << count) if value > limit or (count == 64 and value == limit) else value

    def varbit(self, is_signed=True):
        """A number of 1 to 72 bits."""
        size = (0, 3, 6, 9, 12, 18, 25, 56, 64)[self.ones(8)]
        if size == 0:
            return 0
        return self.signed(size) if is_signed else self.take(size)

    def uvarint(self):
        """LEB128."""
        value = shift = 0
        while True:
            byte = self.take(8)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


class Xor:
    """A double that comes as its difference from the last."""

    def __init__(self, bits):
        self.bits, self.leading, self.size = bits.take(64), 0, 0

    def next(self, bits):
        """8 bytes, as in protobuf."""
        if bits.take(1):
            if bits.take(1):
                self.leading, self.size = bits.take(5), bits.take(6) or 64
            self.bits ^= bits.take(self.size) << (64 - self.leading - self.size)
        return self.get()

    def get(self):
        """The last value."""
        return self.bits.to_bytes(8, "little")


def xor_chunk(data):
    """[(ms, 8 bytes)]"""
    bits = Bits(data)
    values, delta, value = [], 0, None
    for at in range(bits.take(16)):
        if at == 0:
            t, value = unzigzag(bits.uvarint()), Xor(bits)
            values.append((t, value.get()))
            continue
        if at == 1:
            delta = bits.uvarint()
        else:
            size = (0, 14, 17, 20, 64)[bits.ones(4)]
            delta += bits.signed(size) if size else 0
        t += delta
        values.append((t, value.next(bits)))
    assert bits.left < 8
    return values


def layout_spans(bits):
    """[(offset, length)]"""
    spans = []
    for _ in range(bits.varbit(False)):
        length = bits.varbit(False)
        spans.append((bits.varbit(), length))
    return spans


def layout(bits):
    """(threshold, schema, positive spans, negative spans, custom bounds)"""
    code = bits.take(8)
    power = struct.pack("<d", 2.0 ** (code - 244) if 0 < code < 255 else 0)
    threshold = bits.take(64).to_bytes(8, "little") if code == 255 else power
    schema, positive, negative, custom = bits.varbit(), layout_spans(bits), layout_spans(bits), []
    for _ in range(bits.varbit(False) if schema == -53 else 0):
        value = bits.varbit(False)
        custom.append(struct.pack("<d", (value - 1) / 1000) if value else bits.take(64).to_bytes(8, "little"))
    return threshold, schema, positive, negative, custom


class Steady:
    """An integer that comes as the change of its change."""

    def __init__(self, first):
        self.value, self.delta = first, 0

    def next(self, bits):
        """The next one."""
        self.delta += bits.varbit()
        self.value += self.delta
        return self.value

    def get(self):
        """The last one."""
        return self.value


STALE = struct.pack("<Q", 0x7FF0000000000002)


def histogram_chunk(data, is_float):
    """[(ms, fields)] in the form of histogram(); hints are those of the chunk's first sample."""
    bits = Bits(data)
    count, header = bits.take(16), bits.take(8) >> 6
    threshold, schema, positive, negative, custom = layout(bits)
    sizes = [sum(length for _, length in spans) for spans in (positive, negative)]
    values = []
    for at in range(count):
        if at == 0:
            time = Steady(bits.varbit())
            total, zero = (Xor(bits) if is_float else Steady(bits.varbit(False)) for _ in range(2))
            sums = Xor(bits)
            buckets = [[Xor(bits) if is_float else Steady(bits.varbit()) for _ in range(size)] for size in sizes]
        else:
            for one in (time, total, zero, sums):
                one.next(bits)
            for one in buckets[0] + buckets[1] if sums.get() != STALE else []:
                one.next(bits)
        counts = [[one.get() for one in side] for side in buckets]
        values.append((time.get(), {
            "float": is_float, "count": total.get(), "sum": sums.get(), "schema": schema, "threshold": threshold,
            "zero": zero.get(), "negative": (negative, counts[1]), "positive": (positive, counts[0]),
            "hint": header if at == 0 else None, "custom": custom}))
    assert bits.left < 8
    return values


def comparable(results):
    """Both kinds of answers in one form: of stale histograms only the sum counts, of hints nothing."""
    def plain(value):
        if not isinstance(value, dict):
            return value
        if value["sum"] == STALE:
            return "stale", value["float"]
        return tuple(sorted((k, str(v)) for k, v in value.items() if k != "hint"))
    return [{labels: [(t, plain(v)) for t, v in values] for labels, values in series.items()} for series in results]


# ---- writing

def write(port, series):
    """Remote write 1.0 of [(labels, [(ms, float or Histogram message)])]; fails unless all was taken."""
    out = bytearray()
    for labels, values in series:
        one = b"".join(crashlib.field(1, crashlib.field(1, n.encode()) + crashlib.field(2, labels[n].encode()))
                       for n in sorted(labels))
        for t, value in values:
            if isinstance(value, bytes):
                one += crashlib.field(4, value + number(15, t))
            else:
                one += crashlib.field(2, b"\x09" + struct.pack("<d", value) + number(2, t))
        out += crashlib.field(1, one)
    status, _, body = post(port, crashlib.snappy_literals(bytes(out)), "/api/v1/write",
                           **{"X-Prometheus-Remote-Write-Version": "0.1.0"})
    if status not in (200, 204):
        raise RuntimeError(f"write was answered {status}: {body[:300]!r}")


def native(count, total, spans, buckets, is_float=False, zero=0, schema=3, threshold=2.0 ** -128, hint=0, custom=()):
    """A prompb.Histogram without its time; buckets are absolute counts."""
    def double(tag, value):
        return crashlib.varint(tag << 3 | 1) + struct.pack("<d", value)

    def zigzag(value):
        return crashlib.varint(value << 1 if value >= 0 else (-value << 1) - 1)

    out = double(2, count) if is_float else number(1, count)
    out += double(3, total) + crashlib.varint(4 << 3) + zigzag(schema) + double(5, threshold)
    out += double(7, zero) if is_float else number(6, zero)
    for offset, length in spans:
        out += crashlib.field(11, crashlib.varint(8) + zigzag(offset) + number(2, length))
    if is_float:
        out += crashlib.field(13, struct.pack(f"<{len(buckets)}d", *buckets))
    else:
        out += crashlib.field(12, b"".join(zigzag(b - a) for a, b in zip([0, *buckets], buckets)))
    if custom:
        out += crashlib.field(16, struct.pack(f"<{len(custom)}d", *custom))
    return out + number(14, hint)


