#!/usr/bin/env python3
"""Two servers on one data directory: the second refuses with exit code 1 and a message that says who has it."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crashlib


def run(room):
    data = os.path.join(room, "data")
    first = crashlib.Server(data)
    first.start()
    second = crashlib.Server(data)
    second.log_path += "2"
    try:
        second.spawn()
        code = second.process.wait(20)
        text = second.log_tail()
        assert code == 1, "the second server ended with code %d: %s" % (code, text)
        assert "lock" in text.lower() and data in text, "its message does not say what is locked: " + text
        assert str(first.process.pid) in text, "its message does not name process %d: %s" % (first.process.pid, text)
        assert first.import_text("still_alive 1\n")[0] // 100 == 2, "the first server was disturbed"
        first.kill()
        second.start()  # a killed owner's lock does not stay behind
        assert list(second.export("still_alive")), "the sample is not there"
        assert second.stop() == 0
    finally:
        for s in (first, second):
            if s.alive():
                s.kill()


def main():
    room = tempfile.mkdtemp(prefix="varve-owner-")
    try:
        run(room)
    except (AssertionError, subprocess.TimeoutExpired) as e:
        print("FAILED: %s\ndata left in %s" % (e, room))
        return 1
    shutil.rmtree(room)
    print("ok: the second server refused, named the first, and started once that was gone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
