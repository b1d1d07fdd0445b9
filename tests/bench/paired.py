#!/usr/bin/env python3
"""Query latencies of several servers, measured in turn: every server meets every noisy moment of the machine.

usage: tests/bench/paired.py --bench FOLDER --peers FOLDER [--servers varve,victoria-metrics,prometheus] [--rounds N]
                             [--each N] [--colds N] [--query-sets A,B] [--hosts N] [--recent D] [--long D] [--out FILE]

FOLDER of --bench is ../shared/bench, or a copy of it, where `make` was run; its `compare` says how servers are started
(VARVE_COMMAND, by default build/varve), its `loadgen` writes and asks. `compare` measures one server after the other, so that
a neighbour's busy minute on the host falls on one of them; here all hold the same data at once, and each round gives each
of them the same set within seconds while the others are stopped (SIGSTOP). A round's figure is the median of its N
requests, a query's figure the median over the rounds. A cold figure is that of a query's first run after SIGTERM, a dropped
page cache and a start, the median of as many starts; kept answers, which VictoriaMetrics saves over a restart, are left out
of it as of the figures called uncached.
"""
import argparse
import atexit
import contextlib
import importlib.machinery
import importlib.util
import json
import math
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN_OPTIONS = {"churn": 0, "churn_every": "10m", "batch": 5000, "connections": 4, "repeat": 1, "long_hosts": 2}


def load_compare(folder):
    """The shared comparison as a module."""
    path = os.path.join(os.path.abspath(folder), "compare")
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("compare", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
    loader.exec_module(module)
    return module


def parse_arguments():
    """As the usage says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--servers", default="varve,victoria-metrics,prometheus")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--colds", type=int, default=3)
    parser.add_argument("--query-sets", default="dashboard,fleet,long,select,histogram")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--recent", default="1h")
    parser.add_argument("--long", default="24h")
    parser.add_argument("--port", type=int, default=22530)
    parser.add_argument("--out")
    return parser.parse_args()


class Paired:
    """The servers, the data and the figures: (pass, set, query) -> server -> [ms]."""

    def __init__(self, options):
        self.options = options
        self.compare = load_compare(options.bench)
        self.scratch = tempfile.mkdtemp(prefix="paired-")
        atexit.register(shutil.rmtree, self.scratch, ignore_errors=True)
        atexit.register(self.compare.end_servers)
        for name, value in RUN_OPTIONS.items():
            setattr(options, name, value)
        options.recent, options.long = self.compare.seconds(options.recent), self.compare.seconds(options.long)
        self.sets = options.query_sets.split(",")
        self.run = self.compare.Run(options, self.scratch)
        self.servers = [self.compare.Server(name, options, self.scratch, options.port + i)
                        for i, name in enumerate(options.servers.split(","))]
        self.figures = {}

    def prepare(self):
        """All servers hold the data; all are stopped."""
        self.run.generate()
        for server in self.servers:
            self.run.ingest_once(server)
            server.flush()
            server.settle()
            server.process.send_signal(signal.SIGSTOP)

    @contextlib.contextmanager
    def awake(self, server):
        """Only this one runs."""
        server.process.send_signal(signal.SIGCONT)
        time.sleep(0.1)  # timers that were due
        yield
        server.process.send_signal(signal.SIGSTOP)

    def ask(self, server, label, name, each, extra=()):
        """One set, each query some times; its medians are noted."""
        rows = self.compare.loadgen(*self.run.query_args(server, name), "--each", each, *extra, may_fail=True)["queries"]
        for row in rows:
            figures = self.figures.setdefault((label, name, row["name"]), {})
            figures.setdefault(server.name, []).append(row["p50_ms"])

    @staticmethod
    def no_kept_answers(server):
        """Further arguments of loadgen."""
        parameter = server.spec["uncached"]
        return ("--param", parameter) if parameter else ()

    def warm_round(self, number):
        """Every set on every server, the one that begins changes."""
        turn = number % len(self.servers)
        for name in self.sets:
            for server in self.servers[turn:] + self.servers[:turn]:
                with self.awake(server):
                    self.ask(server, "warm", name, self.options.each)
                    self.ask(server, "uncached", name, self.options.each, self.no_kept_answers(server))

    def cold_round(self):
        """Every set on every server, each just started with nothing in memory."""
        for server in self.servers:
            server.process.send_signal(signal.SIGCONT)
            server.stop()
            self.compare.drop_caches()
            server.start()
            time.sleep(1)
            for name in self.sets:
                self.ask(server, "cold", name, 1, self.no_kept_answers(server))
            server.process.send_signal(signal.SIGSTOP)

    def median(self, key, server):
        """ms"""
        return statistics.median(self.figures[key][server.name])

    def ratio(self, key, peer):
        """Ours by theirs."""
        return self.median(key, self.servers[0]) / self.median(key, peer)

    def print_pass(self, label):
        """A table of all queries, geometric means below."""
        ours, peers = self.servers[0], self.servers[1:]
        names = [server.name for server in self.servers]
        print(f"\n{label}, ms: medians of the rounds\n\n| query | {' | '.join(names)} | "
              f"{' | '.join(f'{ours.name} / {peer.name}' for peer in peers)} |\n|---|{'---:|' * (len(names) + len(peers))}")
        keys = [key for key in self.figures if key[0] == label]
        for key in keys:
            cells = [f"{self.median(key, server):.3f}" for server in self.servers]
            cells += [f"{self.ratio(key, peer):.2f}" for peer in peers]
            print(f"| {key[1]} {key[2]} | {' | '.join(cells)} |")
        for name in [*self.sets, "all"]:
            chosen = [key for key in keys if name in ("all", key[1])]
            means = [math.exp(statistics.mean(math.log(self.ratio(key, peer)) for key in chosen)) for peer in peers]
            print(f"| **{name}, geometric mean** |{' |' * len(names)} {' | '.join(f'**{m:.2f}**' for m in means)} |")
        for peer in peers:
            slower = [f"{key[2]} {self.ratio(key, peer):.2f}" for key in keys if self.ratio(key, peer) > 1]
            print(f"\nslower than {peer.name}: {', '.join(slower) or 'none'}")

    def measure(self):
        """Everything, then the tables."""
        self.prepare()
        for number in range(self.options.rounds):
            self.compare.note(f"round {number + 1}")
            self.warm_round(number)
        for number in range(self.options.colds):
            self.compare.note(f"cold start {number + 1}")
            self.cold_round()
        for server in self.servers:
            server.process.send_signal(signal.SIGCONT)
        for label in ("warm", "uncached", *(["cold"] if self.options.colds else [])):
            self.print_pass(label)
        if self.options.out:
            with open(self.options.out, "w", encoding="utf-8") as file:
                json.dump({" ".join(key): figures for key, figures in self.figures.items()}, file, indent=1)


if __name__ == "__main__":
    os.environ.setdefault("VARVE_COMMAND", os.path.join(ROOT, "build/varve") + " serve --web.listen-address={listen} "
                          "--storage.path={data} --storage.retention=10y")
    Paired(parse_arguments()).measure()
