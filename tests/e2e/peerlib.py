"""What the end-to-end tests share: the peers' binaries, processes ended by pid, a Prometheus API client."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VARVE = os.environ.get("VARVE", os.path.join(ROOT, "build/varve"))
SKIPPED = 77


def skip(reason):
    """Ends the test as skipped (tests/run shows the reason)."""
    print(f"skip: {reason}")
    sys.exit(SKIPPED)


def look_for_peers(names):
    """name -> path of each peer, or None: from VARVE_PEERS, the system, build/peers, else fetched into that. Then the reason
    why some are missing."""
    folders = [os.environ.get("VARVE_PEERS", ""), os.path.join(ROOT, "build/peers")]
    path = os.pathsep.join(os.path.join(folder, "usr/bin") for folder in folders if folder)

    def look():
        # a Prometheus of Debian 12 is version 2: only the fetched one is the reference
        system = os.environ.get("PATH", "")
        return {n: shutil.which(n, path=path if n == "prometheus" else path + os.pathsep + system) for n in names}

    found = look()
    if all(found.values()):
        return found, ""
    fetch = subprocess.run([os.path.join(ROOT, "tests/e2e/get-peers"), folders[1]], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=400)
    found = look()
    missing = " ".join(name for name in names if not found[name])
    return found, missing and f"can't get {missing}: {(fetch.stdout.strip().splitlines() or ['no reason given'])[-1]}"


def find_peers(names):
    """name -> path of each peer; without them there is nothing to test."""
    found, reason = look_for_peers(names)
    if reason:
        skip(reason)
    return found


def free_ports(count):
    """That many loopback ports nobody listens on right now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Tally:
    """Counts checks, prints failures."""

    def __init__(self):
        self.passed = self.failed = 0

    def note(self, ok, what, detail=""):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}\n    {detail}", flush=True)


class Processes:
    """Started programs; all are ended at the end, each by its pid."""

    def __init__(self, folder):
        self.folder = folder
        self.running = {}

    def start(self, name, command):
        """Starts a program; its output goes to a file named after it."""
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            self.running[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  cwd=self.folder)

    def check(self):
        """Fails when one has ended by itself."""
        for name, process in self.running.items():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.returncode}:\n{self.log(name)}")

    def log(self, name, lines=30):
        """The end of its output."""
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:])

    def stop(self, name, with_signal=signal.SIGTERM):
        """Ends one and waits for it; returns its exit status."""
        process = self.running.pop(name)
        if process.poll() is None:
            process.send_signal(with_signal)
        try:
            return process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None

    def stop_all(self):
        """Ends all, newest first."""
        for name in reversed(list(self.running)):
            self.stop(name)


def fetch(url, timeout=20):
    """The body of a GET, errors' bodies too."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        return error.read()


def wait_until(what, condition, timeout, processes=None):
    """Polls until the condition holds; a refused connection counts as no."""
    deadline = time.monotonic() + timeout
    last = None
    while time.monotonic() < deadline:
        if processes:
            processes.check()
        try:
            if condition():
                return
        except (OSError, ValueError, KeyError, IndexError) as error:
            last = error
        time.sleep(0.2)
    raise RuntimeError(f"waited {timeout} s in vain for {what} (last error: {last})")


class Api:
    """The query API of one server."""

    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"

    def ready(self):
        """Answers its readiness page?"""
        with urllib.request.urlopen(self.base + "/-/ready", timeout=5) as answer:
            return answer.status == 200

    def get(self, path, **parameters):
        """The decoded answer of an API call."""
        return json.loads(fetch(f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))

    def scalar(self, query, **parameters):
        """The value of a query whose answer is one sample; None when it is empty."""
        result = self.get("query", query=query, **parameters)["data"]["result"]
        return float(result[0]["value"][1]) if result else None
