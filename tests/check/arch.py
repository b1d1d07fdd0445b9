#!/usr/bin/env python3
"""Proves the rules of the house from the text of the sources (make arch). Each breach is one line.

    server -> {ingest, query} -> storage -> storage/base

Rooms include other rooms' public headers only, no headers include each other in a circle, foreign
headers stay in few units, storage reaches the machine through env only, the heap through alloc only;
files and functions stay short, file names are unique, every README names every file of its room.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# room -> the rooms it may include, itself and storage/base aside
ARROWS = {
    "storage/base": [],
    "storage": [],
    "ingest": ["storage"],
    "query": ["storage"],
    "server": ["ingest", "query", "storage"],
}
PUBLIC = {
    "storage": ["storage.h", "labels.h", "matcher.h", "regex.h", "column_hist.h", "kernels_choice.h"],
    "ingest": ["ingest.h", "json_read.h"],
    "query": ["query.h"],
}

# foreign header -> the files that may include it
FOREIGN = {
    "jemalloc/jemalloc.h": r"storage/base/alloc\.c|server/version\.c",
    "zstd.h": r"storage/base/zframe\.c|server/version\.c",
    "xxhash.h": r"storage/base/hash\.c|server/version\.c",
    "sanitizer/asan_interface.h": r"storage/base/arena\.c",
    "roaring/roaring.h": r"storage/postings\.c|server/version\.c",
    "pcre2.h": r"storage/regex(_engine)?\.c|server/version\.c",
    "http_parser.h": r"server/(http|client_reader)\.[ch]|server/version\.c",
    "zlib.h": r"ingest/inflate\.c|server/(gzip|answer|cli_input)\.c|server/version\.c",
    "uv.h": r"server/(loop|conn|lines|main)\w*\.[ch]|server/version\.c",
}
SYSTEM = """
    arpa/inet.h assert.h ctype.h dirent.h errno.h fcntl.h float.h immintrin.h inttypes.h limits.h math.h
    netdb.h netinet/in.h netinet/tcp.h poll.h pthread.h semaphore.h signal.h stdarg.h stdatomic.h
    stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h sys/file.h sys/mman.h sys/random.h
    sys/resource.h sys/socket.h sys/stat.h sys/statvfs.h sys/types.h sys/uio.h sys/un.h sys/wait.h
    time.h unistd.h arm_neon.h cpuid.h sched.h getopt.h sys/time.h sys/epoll.h sys/eventfd.h linux/limits.h
    sys/auxv.h gnu/libc-version.h
""".split()

# call -> (where it is banned, the files that may, what to use instead)
CALL = r"(?<![\w.>]){}\s*\("
BANS = [
    (["open", "openat", "creat", "pwrite", "fsync", "fdatasync", "rename", "unlink", "ftruncate", "time",
      "gettimeofday", "clock_gettime", "rand", "random", "getrandom"],
     r"storage/", r"storage/base/(env_posix|mono)\.c", "env"),
    (["malloc", "calloc", "realloc", "free", "strdup", "strndup", "asprintf"],
     r"(storage|ingest|query|server)/", r"storage/base/alloc\.c", "alloc or an arena"),
    (["exit", "abort", "printf", "fprintf", "perror", "puts"],
     r"(storage|ingest|query|server)/", r"storage/base/(alloc|assert)\.c|server/(main|config|inspect|cli)\w*\.c",
     "an err"),
    (["setlocale", "strcpy", "strcat", "sprintf", "vsprintf", "gets", "strtok", "localtime", "gmtime", "system",
      "popen", "alloca"],
     r"(storage|ingest|query|server)/", r"$^", "nothing: these are traps"),
]

FILE_LINES, FUNCTION_LINES, HEAD_FROM, HEAD_LINES = 1000, 100, 200, 5
QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
ANGLED = re.compile(r"^\s*#\s*include\s+<([^>]+)>", re.M)

breaches = []


def breach(path, text, line=0):
    """Notes one breach."""
    breaches.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")


def sources():
    """Path -> text of every C file of the rooms and tests."""
    found = {}
    for top in ["storage", "ingest", "query", "server", "tests"]:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        found[os.path.relpath(path, ROOT)] = file.read()
    return dict(sorted(found.items()))


def room_of(path):
    """The room a file lies in: its folder, "tests" for all of tests/."""
    return "tests" if path.startswith("tests/") else os.path.dirname(path)


def without_comments_and_strings(text):
    """The code alone, lines kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/") else '""'
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_arrow(path, included, files):
    """One #include "...": from the root, to an existing file, along the arrows, to a public header."""
    room, target = room_of(path), room_of(included)
    if included not in files:
        breach(path, f'"{included}" is not a file of the tree (includes are written from the root)')
    elif room == "tests" or target in (room, "storage/base") and room in ARROWS:
        return
    elif target not in ARROWS.get(room, []):
        breach(path, f"{room} must not include {target} ({included})")
    elif os.path.basename(included) not in PUBLIC[target]:
        breach(path, f"{included} is private to {target}")


def check_includes(files):
    """Arrows, foreign headers; returns file -> the files it includes."""
    graph = {}
    for path, text in files.items():
        graph[path] = QUOTED.findall(text)
        for included in graph[path]:
            check_arrow(path, included, files)
        if room_of(path) == "tests":
            continue
        for included in ANGLED.findall(text):
            if included in FOREIGN:
                if not re.fullmatch(FOREIGN[included], path):
                    breach(path, f"<{included}> belongs into {FOREIGN[included]}")
            elif included not in SYSTEM:
                breach(path, f"<{included}> is a foreign header that no unit is named for")
    return graph


def check_circles(graph):
    """No file includes itself in the end."""
    state = {}

    def visit(path, trail):
        state[path] = "open"
        for target in graph.get(path, []):
            if state.get(target) == "open":
                circle = trail[trail.index(target):] if target in trail else [target]
                breach(target, "include circle: " + " -> ".join(circle + [target]))
            elif target not in state:
                visit(target, trail + [target])
        state[path] = "done"

    for path in graph:
        if path not in state:
            visit(path, [path])


def check_bans(files):
    """Calls that belong to one unit."""
    for path, text in files.items():
        if path.startswith("tests/"):
            continue
        code = without_comments_and_strings(text).splitlines()
        for names, where, allowed, instead in BANS:
            if not re.match(where, path) or re.fullmatch(allowed, path):
                continue
            pattern = re.compile(CALL.format("(" + "|".join(names) + ")"))
            for number, line in enumerate(code, 1):
                match = pattern.search(line)
                if match:
                    breach(path, f"{match[1]}(: use {instead}", number)


def check_sizes(files):
    """Ratchets: file and function length, the opening comment, no notes to self."""
    for path, text in files.items():
        lines = text.splitlines()
        if len(lines) > FILE_LINES:
            breach(path, f"{len(lines)} lines, more than {FILE_LINES}")
        product = room_of(path) != "tests"  # tests are tables and cases: a short line says what of
        if product and path.endswith(".c") and len(lines) > HEAD_FROM:
            head = re.match(r"/\*.*?\*/", text, re.S)
            if not head or head[0].count("\n") + 1 < HEAD_LINES:
                breach(path, f"does not open with a comment of {HEAD_LINES} lines or more")
        start = None
        for number, line in enumerate(lines, 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if product and number - start > FUNCTION_LINES:
                    breach(path, f"function of {number - start} lines, more than {FUNCTION_LINES}", start)
                start = None
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
                breach(path, "a note to self", number)


def check_names(files):
    """File names are unique in the tree; each room's README names each of its files."""
    seen = {}
    for path in files:
        name = os.path.basename(path)
        if name in seen:
            breach(path, f"the name is taken by {seen[name]}")
        seen[name] = path
    for room in ARROWS:
        names = [os.path.basename(path) for path in files if room_of(path) == room]
        readme = os.path.join(ROOT, room, "README.md")
        if not os.path.exists(readme):
            breach(f"{room}/README.md", "missing")
            continue
        with open(readme, encoding="utf-8") as file:
            words = set(re.findall(r"[\w.]+", file.read()))
        for stem in sorted({name.rsplit(".", 1)[0] for name in names}):
            if not words & {stem, stem + ".c", stem + ".h"}:
                breach(f"{room}/README.md", f"does not name {stem}")


def main():
    """All checks over the whole tree."""
    files = sources()
    check_circles(check_includes(files))
    check_bans(files)
    check_sizes(files)
    check_names(files)
    for line in breaches:
        print(line)
    print(f"arch: {len(files)} files, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
