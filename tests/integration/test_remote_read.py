#!/usr/bin/env python3
"""Black-box tests of remote read: build/varve is started on a free port and asked by a client of our own.

usage: tests/integration/test_remote_read.py [-k PATTERN] [-v]
VARVE names another binary. Ends with "N passed, N failed, N skipped". Real Prometheuses ask in tests/e2e.
"""
import http.client
import json
import os
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import remoteread as rr  # noqa: E402
import test_http  # noqa: E402

NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000ABC))[0]
STALE = struct.unpack("<d", rr.STALE)[0]
ALL = (rr.RE, "__name__", ".+")
T0 = 1700000000000


def hist(n, **more):
    """A native histogram that grows with n."""
    return rr.native(count=3 * n, total=1.5 * n, spans=[(0, 2), (3, 1)], buckets=[n, n, n], **more)


class RemoteRead(unittest.TestCase):
    """One server with a little of everything."""

    @classmethod
    def setUpClass(cls):
        cls.server = test_http.Server()
        cls.port = cls.server.port
        odd = [1.0, -0.0, 5e-324, float("inf"), NAN, STALE, 2.0 ** 53 - 1, 1e300]
        rr.write(cls.port, [
            ({"__name__": "odd", "job": "a"}, [(T0 + 1000 * i, v) for i, v in enumerate(odd)]),
            ({"__name__": "odd", "job": "b", "zone": "ä/ö"}, [(T0, 7.0)]),
            ({"__name__": "long"}, [(T0 + 15000 * i + i % 7, float(i * i % 1000)) for i in range(1000)]),
            ({"__name__": "native"}, [(T0 + 1000 * i, hist(i % 80)) for i in range(200)]),
            ({"__name__": "native_float"}, [(T0 + 1000 * i, hist(i + 0.5, is_float=True)) for i in range(50)]),
        ])

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def read(self, kind, *queries, **headers):
        """The decoded answer."""
        status, head, body = rr.post(self.port, rr.request(queries, (kind,)), **headers)
        self.assertEqual(status, 200, body[:300])
        if kind == rr.SAMPLES:
            self.assertEqual((head["content-type"], head["content-encoding"]), ("application/x-protobuf", "snappy"))
            return rr.sampled(body)
        self.assertEqual(head["content-type"], rr.STREAMED)
        self.assertNotIn("content-encoding", head)
        return rr.streamed(body, len(queries))

    def test_values_bit_for_bit(self):
        for kind in (rr.SAMPLES, rr.CHUNKS):
            [series] = self.read(kind, rr.query(T0, T0 + 100000, (rr.EQ, "__name__", "odd"), (rr.EQ, "zone", "")))
            [(labels, values)] = series.items()
            self.assertEqual(labels, (("__name__", "odd"), ("job", "a")))
            bits = [value.hex() for _, value in values]
            self.assertEqual(bits[1:6], ["0000000000000080", "0100000000000000", "000000000000f07f", "bc0a00000000f87f",
                                         "020000000000f07f"])
            self.assertEqual([t for t, _ in values], [T0 + 1000 * i for i in range(8)])

    def test_both_answers_agree(self):
        queries = [rr.query(T0, T0 + 10 ** 9, ALL), rr.query(T0 + 5, T0 + 6, (rr.NE, "job", "a"), ALL),
                   rr.query(T0, T0 + 7000000, (rr.NRE, "__name__", "odd|native"), ALL)]
        samples, chunks = self.read(rr.SAMPLES, *queries), self.read(rr.CHUNKS, *queries)
        self.assertEqual(rr.comparable(samples), rr.comparable(chunks))
        self.assertEqual([len(series) for series in samples], [5, 0, 2])
        self.assertEqual(sum(len(v) for v in samples[0].values()), 8 + 1 + 1000 + 200 + 50)
        floats = samples[0][(("__name__", "native_float"),)]
        self.assertEqual(floats[2][1]["positive"], ([(0, 2), (3, 1)], [struct.pack("<d", 2.5)] * 3))

    def test_hints_narrow_the_range(self):
        hints = rr.number(3, T0 + 1000) + rr.number(4, T0 + 2000)
        [series] = self.read(rr.CHUNKS, rr.query(0, T0 + 10 ** 9, (rr.EQ, "job", "a"), hints=hints))
        self.assertEqual([t for values in series.values() for t, _ in values], [T0 + 1000, T0 + 2000])

    def test_no_gzip_and_prefix(self):
        self.read(rr.SAMPLES, rr.query(T0, T0 + 10 ** 9, ALL), **{"Accept-Encoding": "gzip, snappy"})
        body = rr.request([rr.query(T0, T0, (rr.EQ, "job", "b"))])
        status, head, _ = rr.post(self.port, body, "/prometheus/api/v1/read")
        self.assertEqual((status, head["content-encoding"]), (200, "snappy"))

    def test_without_headers(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for _ in range(2):  # and the connection lives on
            connection.request("POST", "/api/v1/read", rr.request([rr.query(T0, T0, (rr.EQ, "job", "b"))]))
            answer = connection.getresponse()
            self.assertEqual((answer.status, len(rr.sampled(answer.read())[0])), (200, 1))
        connection.close()

    def test_refusals(self):
        good = rr.request([rr.query(T0, T0, (rr.EQ, "job", "b"))])
        for expected, body, headers, text in [
                (400, b"\xff\xff", {}, "snappy"),
                (400, b"", {}, "snappy"),
                (400, rr.request([b"\x0a\x7f"]), {}, "malformed"),
                (400, rr.request([rr.query(0, 1)]), {}, "without matchers"),
                (400, rr.request([rr.query(0, 1, (rr.RE, "a", "("))]), {}, "matcher of"),
                (400, rr.request([rr.query(0, 1, (9, "a", "b"))]), {}, "unknown matcher type"),
                (400, rr.request([rr.query(0, 1, (rr.EQ, "a", "b"))], (17,)), {}, "none of the response types"),
                (415, good, {"Content-Encoding": "gzip"}, "snappy")]:
            status, head, answer = rr.post(self.port, body, **headers)
            self.assertEqual((status, head["content-type"]), (expected, "application/json"), answer)
            self.assertIn(text, json.loads(answer)["error"])
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/api/v1/read")
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.getheader("Allow")), (405, "POST, OPTIONS"))
        connection.close()


class Long(unittest.TestCase):
    """Answers that are longer than what may be held."""

    @classmethod
    def setUpClass(cls):
        cls.server = test_http.Server("--query.max-samples=100000", "--storage.wal-sync=off")
        cls.port = cls.server.port
        noise = [struct.unpack("<d", struct.pack("<Q", (i * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 2))[0]
                 for i in range(10000)]
        for job in range(40):
            rr.write(cls.port, [({"__name__": "noise", "job": f"{job:02}"},
                                 [(T0 + 1000 * i, v) for i, v in enumerate(noise)])])
        cls.body = rr.request([rr.query(T0, T0 + 10 ** 9, ALL)], (rr.CHUNKS,))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_limit_of_samples(self):
        status, _, answer = rr.post(self.port, rr.request([rr.query(T0, T0 + 10 ** 9, ALL)]))
        self.assertEqual(status, 422)
        self.assertIn("--query.max-samples", json.loads(answer)["error"])

    def test_streams_whole(self):
        status, head, body = rr.post(self.port, self.body)
        self.assertEqual((status, head.get("transfer-encoding")), (200, "chunked"))
        found = rr.frames(body)
        self.assertEqual([labels for _, labels, _, _ in found], sorted(labels for _, labels, _, _ in found))
        self.assertEqual(len(found), 40)
        self.assertEqual({len(chunks) for _, _, chunks, _ in found}, {84})
        self.assertTrue(all(size <= 1 << 20 for *_, size in found))

    def ask(self):
        """A connection that has sent the request and reads nothing."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        head = f"POST /api/v1/read HTTP/1.1\r\nHost: x\r\nContent-Length: {len(self.body)}\r\n\r\n"
        connection.sendall(head.encode() + self.body)
        return connection

    def test_slow_and_vanishing_clients(self):
        slow = [self.ask() for _ in range(8)]
        gone = [self.ask() for _ in range(20)]
        for connection in gone:
            connection.recv(100)
            connection.close()
        time.sleep(0.5)
        status, _, body = rr.post(self.port, self.body)  # the others held nobody up
        self.assertEqual((status, len(rr.frames(body))), (200, 40))
        for connection in slow:
            data = b""
            while not data.endswith(b"\r\n0\r\n\r\n"):
                piece = connection.recv(1 << 20)
                self.assertTrue(piece, "cut off")
                data += piece
            connection.close()
            self.assertGreater(len(data), len(body))


if __name__ == "__main__":
    test_http.main()
