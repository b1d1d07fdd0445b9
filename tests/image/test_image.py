#!/usr/bin/env python3
"""make image for real, and the images run for real: amd64 as it is, arm64 under qemu.

A docker daemon of the test's own builds the Dockerfile on a base made by debootstrap; then containers are started,
written to by a real Prometheus, queried, killed, started again; with a read-only root, as other users, with little
memory under load, with wrong volumes. See README.md for what it needs; where that can't be had it skips and says why.
"""
import hashlib
import io
import json
import os
import re
import shutil
import signal
import socket
import struct
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request

import dockerlib
from dockerlib import ROOT, BUILD, Failed, run

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import peerlib  # noqa: E402  pylint: disable=wrong-import-position

MIB = 1 << 20
SIZE_MAX, PACKED_MAX = 5 * MIB, 2.5 * MIB
MEMORY = 128 * MIB
LOAD_SECONDS = float(os.environ.get("VARVE_IMAGE_LOAD_SECONDS", "20"))
GRACE = 10
PATIENCE = 860  # tests/run kills after 900 s, and then nobody would clean up
HARDENED = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]


def expect(condition, what):
    """A check."""
    if not condition:
        raise Failed(what)


class Varve:
    """One container of the image and its port."""

    def __init__(self, world, arch, *arguments, command=()):
        self.world, self.daemon = world, world.daemon
        self.port = peerlib.free_ports(1)[0]
        self.api = peerlib.Api(self.port)
        self.id = self.daemon.create(
            world.image(arch), f"--platform=linux/{arch}", f"--env=VARVE_WEB_LISTEN_ADDRESS=127.0.0.1:{self.port}",
            "--health-interval=1s", "--health-timeout=3s", "--health-retries=1", *arguments, command=command)

    def wait_ready(self, timeout=60):
        """Until it answers; fails at once when it ended."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                if self.api.ready():
                    return self
            except OSError:
                pass
            state = self.daemon.inspect(self.id)["State"]
            if state["Status"] == "exited":
                raise Failed(f"the container ended: {state}\n{self.daemon.logs(self.id)}")
            time.sleep(0.2)
        raise Failed("not ready:\n" + self.daemon.logs(self.id))

    def post(self, path, body):
        """The status of a POST."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=body, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def stop(self, code=0, grace=GRACE):
        """docker stop; it must end by itself within the grace period, with this exit code."""
        begun = time.monotonic()
        self.daemon.docker("stop", "--time", str(grace), self.id)
        took = time.monotonic() - begun
        state = self.daemon.inspect(self.id)["State"]
        expect(state["ExitCode"] == code, f"exit code {state['ExitCode']} after docker stop\n{self.daemon.logs(self.id)}")
        return took


class World:
    """What the tests share."""

    def __init__(self, daemon):
        self.daemon = daemon
        with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as file:
            self.version = re.search(r"^## \[([0-9.]+)\]", file.read(), re.M)[1]
        self.folder = tempfile.mkdtemp(prefix="varve-image-")
        self.peers = {}
        self.processes = peerlib.Processes(self.folder)
        self.sizes = {}

    def image(self, arch):
        """The tag of one platform."""
        return f"varve:{self.version}-{arch}"

    def archive(self, arch):
        """What docker save made of it."""
        return os.path.join(BUILD, f"varve-{self.version}-{arch}.tar")

    def layout(self):
        """The OCI image of both."""
        return os.path.join(BUILD, f"varve-{self.version}.oci.tar")


# ---- building


def test_build(world):
    """make image: both platforms, one index."""
    daemon = world.daemon
    if not daemon.has_image("debian:bookworm-slim"):
        base = os.path.join(BUILD, "base.tar")
        if not os.path.exists(base):
            run([os.path.join(ROOT, "deploy/image/base"), base], 600)
        daemon.docker("import", "--change", 'CMD ["bash"]', base, "debian:bookworm-slim")
    env = dict(daemon.env, DOCKER=daemon.client, IMAGE_BUILD_FLAGS="--network=host")
    done = run(["make", "--no-print-directory", "image"], 840, env=env)
    for arch, size, packed in re.findall(r"^linux/(\w+): (\d+) bytes unpacked, (\d+) compressed$", done.stdout, re.M):
        world.sizes[arch] = (int(size), int(packed))
    expect(set(world.sizes) == {"amd64", "arm64"}, done.stdout[-2000:])


def test_sizes(world):
    """Small enough to pull anywhere."""
    for arch, (size, packed) in world.sizes.items():
        print(f"    {arch}: {size / MIB:.2f} MiB, compressed {packed / MIB:.2f} MiB")
        expect(size <= SIZE_MAX, f"{arch}: {size} bytes")
        expect(packed <= PACKED_MAX, f"{arch}: {packed} bytes compressed")


def read_layout(path):
    """name -> bytes of the OCI layout; every blob must be what its name says."""
    with tarfile.open(path) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive.getmembers() if m.isfile()}
    for name, data in files.items():
        if name.startswith("blobs/sha256/"):
            expect(hashlib.sha256(data).hexdigest() == name.rsplit("/", 1)[1], f"{name} is something else")
    return files


def test_index(world):
    """An index over an index over two manifests, each with its config and layers; skopeo reads it too."""
    files = read_layout(world.layout())

    def blob(descriptor):
        data = files["blobs/sha256/" + descriptor["digest"].split(":")[1]]
        expect(len(data) == descriptor["size"], f"{descriptor} has {len(data)} bytes")
        return data

    expect(json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}, files["oci-layout"])
    root = json.loads(files["index.json"])["manifests"]
    expect(len(root) == 1 and root[0]["annotations"]["org.opencontainers.image.ref.name"] == world.version, root)
    platforms = set()
    for descriptor in json.loads(blob(root[0]))["manifests"]:
        manifest = json.loads(blob(descriptor))
        config = json.loads(blob(manifest["config"]))
        platform = descriptor["platform"]
        expect(platform["architecture"] == config["architecture"] and platform["os"] == "linux", (platform, config))
        platforms.add(platform["architecture"])
        expect(len(manifest["layers"]) == len(config["rootfs"]["diff_ids"]), manifest)
        for layer in manifest["layers"]:
            blob(layer)
    expect(platforms == {"amd64", "arm64"}, platforms)
    skopeo = shutil.which("skopeo")
    expect(skopeo, "skopeo is missing (deploy/install-deps --test)")
    raw = json.loads(run([skopeo, "inspect", "--raw", "oci-archive:" + world.layout()]).stdout)
    expect({m["platform"]["architecture"] for m in raw["manifests"]} == platforms, raw)
    for arch in platforms:
        seen = json.loads(run([skopeo, "--override-arch", arch, "inspect", "--config", "oci-archive:" + world.layout()]).stdout)
        expect(seen["architecture"] == arch and seen["config"]["User"] == "65532:65532", seen)
        again = os.path.join(world.folder, arch + ".tar")
        run([skopeo, "--override-arch", arch, "copy", "oci-archive:" + world.layout(), f"docker-archive:{again}:varve:oci"])
        world.daemon.docker("load", "--input", again)
        version = world.daemon.docker("run", "--rm", "--network=none", f"--platform=linux/{arch}", "varve:oci", "version")
        expect(world.version in version.stdout, version.stdout)


def root_files(path):
    """name -> (tar entry, bytes) of the one layer that docker saved."""
    found = {}
    with tarfile.open(path) as archive:
        entry = json.load(archive.extractfile("manifest.json"))[0]
        for layer in entry["Layers"]:
            with tarfile.open(fileobj=io.BytesIO(archive.extractfile(layer).read())) as inner:
                for member in inner.getmembers():
                    data = inner.extractfile(member).read() if member.isfile() else b""
                    found[member.name.lstrip("./").rstrip("/")] = (member, data)
    return found


def test_contents(world):
    """The program, data, certificates, licences, bill of materials; static, for the right machine; no shell."""
    for arch, machine in (("amd64", 62), ("arm64", 183)):
        config = world.daemon.inspect(world.image(arch))
        expect(config["Architecture"] == arch, config["Architecture"])
        settings = config["Config"]
        expect(settings["User"] == "65532:65532", settings)
        expect(settings["Volumes"] == {"/data": {}} and "8428/tcp" in settings["ExposedPorts"], settings)
        expect(settings["StopSignal"] == "SIGTERM" and settings["Healthcheck"]["Test"] == ["CMD", "/varve", "health"], settings)
        labels = settings["Labels"]
        expect(labels["org.opencontainers.image.version"] == world.version, labels)
        expect(re.fullmatch(r"[0-9a-f]{12}", labels["org.opencontainers.image.revision"]), labels)
        files = root_files(world.archive(arch))
        expected = {"varve", "data", "etc", "etc/ssl", "etc/ssl/certs", "etc/ssl/certs/ca-certificates.crt", "licenses",
                    "licenses/varve", "sbom.spdx.json"}
        expect(set(files) - {""} == expected, sorted(files))
        data = files["data"][0]
        expect((data.uid, data.gid, data.mode & 0o7777) == (65532, 0, 0o770), (data.uid, data.gid, oct(data.mode)))
        program = files["varve"][1]
        expect(program[:5] == b"\x7fELF\x02" and struct.unpack_from("<H", program, 18)[0] == machine, arch)
        expect(b"BEGIN CERTIFICATE" in files["etc/ssl/certs/ca-certificates.crt"][1], "no certificates")
        check_sbom(json.loads(files["sbom.spdx.json"][1]), program, world.version)
        with open(world.archive(arch).removesuffix(".tar") + ".spdx.json", "rb") as file:
            expect(file.read() == files["sbom.spdx.json"][1], "another bill of materials beside the archive")


def check_sbom(sbom, program, version):
    """Names the program by its checksum, and all its libraries with versions, licences and sources."""
    expect(sbom["spdxVersion"] == "SPDX-2.3" and sbom["dataLicense"] == "CC0-1.0", sbom)
    packages = {p["name"]: p for p in sbom["packages"]}
    own = packages["varve"]
    expect(own["versionInfo"] == version, own)
    expect(own["checksums"][0]["checksumValue"] == hashlib.sha256(program).hexdigest(), own)
    for name in ("musl-dev", "jemalloc", "libzstd", "zlib", "libuv1", "http-parser", "croaring", "pcre2", "xxhash"):
        package = packages[name]
        expect(re.fullmatch(r"[0-9.]+", package["versionInfo"]), package)
        expect(package["licenseDeclared"] and re.search(r"sha256:[0-9a-f]{64}", package["sourceInfo"]), package)
    ids = {p["SPDXID"] for p in sbom["packages"]}
    linked = {r["relatedSpdxElement"] for r in sbom["relationships"] if r["relationshipType"] == "STATIC_LINK"}
    expect(linked == ids - {"SPDXRef-varve"}, linked)


# ---- running


def prometheus_config(world, varve, own_port):
    """The one that deploy/compose ships, with this test's addresses and hurry."""
    with open(os.path.join(ROOT, "deploy/compose/prometheus.yml"), encoding="utf-8") as file:
        text = file.read()
    for old, new in (("varve:8428", f"127.0.0.1:{varve.port}"), ("localhost:9090", f"127.0.0.1:{own_port}"),
                     ("scrape_interval: 15s", "scrape_interval: 1s")):
        expect(old in text, f"deploy/compose/prometheus.yml has no {old}")
        text = text.replace(old, new)
    path = os.path.join(world.folder, f"prometheus-{own_port}.yml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def prometheus_writes(world, varve, name, seconds):
    """A real Prometheus scrapes itself and the container and writes to it for a while."""
    port = peerlib.free_ports(1)[0]
    world.processes.start(name, [world.peers["prometheus"], "--config.file=" + prometheus_config(world, varve, port),
                                 f"--storage.tsdb.path={world.folder}/{name}", f"--web.listen-address=127.0.0.1:{port}"])
    peerlib.wait_until("written samples", lambda: (varve.api.scalar("count_over_time(up{job='varve'}[1h])") or 0) >= 3,
                       60, world.processes)
    time.sleep(seconds)
    world.processes.stop(name)


def survive_a_kill(world, arch):
    """Start, real remote write, query, kill -9, start again: the same data. Then a polite stop."""
    volume = world.daemon.volume()
    varve = Varve(world, arch, *HARDENED, f"--volume={volume}:/data").wait_ready(120)
    prometheus_writes(world, varve, "prometheus-" + arch, 3)
    at = time.time()
    query = "sum by (job) (count_over_time({__name__=~'up|scrape_.*|varve_.*'}[1h]))"
    before = varve.api.get("query", query=query, time=f"{at:.3f}")["data"]["result"]
    expect({r["metric"].get("job") for r in before} == {"prometheus", "varve"}, before)
    world.daemon.docker("kill", "--signal=KILL", varve.id)
    expect(world.daemon.wait_exit(varve.id) == 137, "kill -9 did not end it")
    world.daemon.docker("start", varve.id)
    varve.wait_ready(120)
    after = varve.api.get("query", query=query, time=f"{at:.3f}")["data"]["result"]
    expect(before == after, f"before kill -9 {before}, after {after}")
    return varve


def test_amd64(world):
    """Data survives kill -9; PID 1; the health check turns healthy, and unhealthy when it hangs."""
    varve = survive_a_kill(world, "amd64")
    log = world.daemon.logs(varve.id)
    expect(" pid=1" in log, log)
    for number, status in ((None, "healthy"), ("STOP", "unhealthy"), ("CONT", "healthy")):
        if number:
            world.daemon.docker("kill", "--signal=" + number, varve.id)
        peerlib.wait_until(status, lambda s=status: world.daemon.inspect(varve.id)["State"]["Health"]["Status"] == s, 30)
    took = varve.stop()
    print(f"    stopped in {took:.1f} s")
    verify = world.daemon.docker("run", "--rm", "--network=none", "--volumes-from", varve.id, world.image("amd64"),
                                 "verify")
    expect("0 faults" in verify.stdout, verify.stdout)


def test_arm64(world):
    """The same under qemu; what it wrote opens on amd64 and says the same."""
    varve = survive_a_kill(world, "arm64")
    varve.stop(grace=60)  # how long things take under qemu says nothing
    verify = world.daemon.docker("run", "--rm", "--network=none", "--volumes-from", varve.id, world.image("amd64"),
                                 "verify")
    expect("0 faults" in verify.stdout, verify.stdout)


def write_until(varve, stop, errors, number):
    """Many series, many values that don't repeat; 503 and 413 are answers that a sender can live with."""
    n = 0
    while not stop.is_set():
        now = int(time.time() * 1000)
        lines = [f'load{{n="{i}",w="{number}",pad="{(i * 7919) % 997:04d}"}} {(i * 31 + n) % 10007 / 7} {now}'
                 for i in range(20000)]
        status = varve.post("/api/v1/import/prometheus", "\n".join(lines).encode() + b"\n")
        if status not in (200, 204, 503):
            errors.append(f"write: {status}")
        n += 1


def query_until(varve, stop, errors):
    """Queries over all that was written."""
    while not stop.is_set():
        now = time.time()
        for query in ("sum by (w) (rate(load[1m]))", "quantile(0.9, load)", "topk(5, max_over_time(load[1m]))"):
            answer = varve.api.get("query_range", query=query, start=f"{now - 60:.0f}", end=f"{now:.0f}", step="1")
            if answer["status"] != "success" and answer["errorType"] not in ("execution", "unavailable", "timeout"):
                errors.append(str(answer)[:300])


def test_little_memory(world):
    """128 MiB under writes and queries at once: the budgets follow the limit, nothing is killed."""
    varve = Varve(world, "amd64", *HARDENED, f"--memory={MEMORY}", f"--memory-swap={MEMORY}").wait_ready()
    log = world.daemon.logs(varve.id)
    expect(f"memory_limit={MEMORY // 10 * 6}" in log, log)
    stop, errors = threading.Event(), []
    threads = [threading.Thread(target=write_until, args=(varve, stop, errors, i)) for i in range(2)]
    threads += [threading.Thread(target=query_until, args=(varve, stop, errors)) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(LOAD_SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    state = world.daemon.inspect(varve.id)["State"]
    expect(state["Running"] and not state["OOMKilled"] and not errors, f"{state} {errors[:3]}\n{world.daemon.logs(varve.id)[-3000:]}")
    samples = varve.api.scalar("sum(count_over_time(load[10m]))")
    resident = float(re.search(rb"^process_resident_memory_bytes (\S+)", peerlib.fetch(f"http://127.0.0.1:{varve.port}/metrics"), re.M)[1])
    print(f"    {samples or 0:.0f} samples of 40000 series, resident {resident / MIB:.0f} MiB of 128")
    expect(samples and samples > 100000, f"only {samples} samples: that is no load")
    varve.stop()


def test_stop_under_load(world):
    """docker stop during writes and long queries: gone within the grace period, exit code 0."""
    varve = Varve(world, "amd64", *HARDENED).wait_ready()
    stop, errors = threading.Event(), []

    def quietly(function, *arguments):
        try:
            function(*arguments)
        except (OSError, ValueError, KeyError):
            pass  # it is stopped under us

    for target in ((write_until, varve, stop, errors, 0), (query_until, varve, stop, errors)):
        threading.Thread(target=quietly, args=target, daemon=True).start()
    time.sleep(3)
    for _ in range(6):
        threading.Thread(target=quietly, daemon=True, args=(
            varve.api.get, "query?query=quantile_over_time(0.9,quantile_over_time(0.9,load[10m:1s])[2h:1s])")).start()
    time.sleep(1)
    took = varve.stop()
    stop.set()
    print(f"    stopped in {took:.1f} s")
    expect(took < GRACE, f"{took:.1f} s")


def test_cpu_quota(world):
    """A quota of 1.5 CPUs means as many loops as cores that it amounts to, rounded up."""
    if not os.path.exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") and not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        raise Failed("no CPU controller")
    for cpus, loops in (("0.5", 1), ("1.5", 2)):
        if loops > (os.cpu_count() or 1):
            continue
        varve = Varve(world, "amd64", f"--cpus={cpus}").wait_ready()
        expect(f" loops={loops} " in world.daemon.logs(varve.id), world.daemon.logs(varve.id))
        varve.stop()
    varve = Varve(world, "amd64", "--cpuset-cpus=0").wait_ready()
    expect(" loops=1 " in world.daemon.logs(varve.id), world.daemon.logs(varve.id))
    varve.stop()


def test_random_user(world):
    """As OpenShift runs it: a user without a name, in group 0, nothing writable but the volume."""
    for user in ("1000770000:0", "65532:65532"):
        varve = Varve(world, "amd64", *HARDENED, f"--user={user}", f"--volume={world.daemon.volume()}:/data").wait_ready()
        expect(varve.post("/api/v1/import/prometheus", b"m 1\n") in (200, 204), "write refused")
        varve.stop()


def ended(world, *arguments, command=()):
    """Exit code and log of a container that ends by itself."""
    container = world.daemon.create(world.image("amd64"), *arguments, command=command)
    return world.daemon.wait_exit(container), world.daemon.logs(container)


def test_wrong_volumes(world):
    """A directory of others, and a read-only one: exit code 1 and a message that says what to do."""
    folder = os.path.join(world.folder, "theirs")
    os.mkdir(folder, 0o755)
    code, log = ended(world, *HARDENED, f"--volume={folder}:/data")
    expect(code == 1, f"exit code {code}\n{log}")
    for text in ("/data belongs to uid 0, gid 0 (mode 0755)", "runs as uid 65532, gid 65532", "chown -R 65532:65532 /data"):
        expect(text in log, f"no '{text}' in\n{log}")
    code, log = ended(world, f"--volume={folder}:/data:ro")
    expect(code == 1 and "read-only" in log, f"exit code {code}\n{log}")


def test_exit_codes(world):
    """2 for wrong arguments, 1 for a port in use and a health check without a server."""
    code, log = ended(world, command=["serve", "--no.such=1"])
    expect(code == 2 and "--no.such" in log, f"{code} {log}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, log = ended(world, command=["serve", "--web.listen-address=127.0.0.1:%d" % taken.getsockname()[1]])
        expect(code == 1, f"{code} {log}")
    code, log = ended(world, command=["health", "--url=http://127.0.0.1:1"])
    expect(code == 1 and "refused" in log, f"{code} {log}")
    code, log = ended(world, command=["version"])
    expect(code == 0 and world.version in log, f"{code} {log}")


def answer_names(sock, names):
    """A name server: A records of some names, nothing else."""
    while True:
        try:
            query, client = sock.recvfrom(512)
        except OSError:
            return
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        question, kind = query[12:at + 5], struct.unpack_from(">H", query, at + 1)[0]
        address = names.get(".".join(labels).lower()) if kind == 1 else None
        known = ".".join(labels).lower() in names
        answer = struct.pack(">HHHHH", 0xC00C, 1, 1, 0, 60)[:10] + struct.pack(">H", 4) + socket.inet_aton(address) if address else b""
        head = query[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, 1 if address else 0, 0, 0)
        sock.sendto(head + question + answer, client)


def test_names(world):
    """musl resolves: localhost without a file of hosts, names from /etc/hosts, names from a name server."""
    varve = Varve(world, "amd64").wait_ready()

    def health(name, *arguments):
        return ended(world, *arguments, command=["health", f"--url=http://{name}:{varve.port}"])

    empty = os.path.join(world.folder, "empty")
    with open(empty, "w", encoding="ascii"):
        pass
    code, log = health("localhost", f"--volume={empty}:/etc/hosts:ro", "--dns=127.77.0.2")
    expect(code == 0, f"localhost: {code} {log}")
    code, log = health("varve.test", "--add-host=varve.test:127.0.0.1")
    expect(code == 0, f"/etc/hosts: {code} {log}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.77.0.1", 53))
        threading.Thread(target=answer_names, args=(server, {"metrics.varve.internal": "127.0.0.1"}), daemon=True).start()
        resolv = os.path.join(world.folder, "resolv.conf")
        with open(resolv, "w", encoding="ascii") as file:
            file.write("nameserver 127.77.0.1\nsearch varve.internal\noptions ndots:5\n")
        mount = f"--volume={resolv}:/etc/resolv.conf:ro"
        code, log = health("metrics", mount)
        expect(code == 0, f"name server, search list: {code} {log}")
        code, log = health("metrics.varve.internal", mount)
        expect(code == 0, f"name server: {code} {log}")
        code, log = health("nobody.varve.internal", mount)
        expect(code == 1 and "nobody.varve.internal" in log, f"unknown name: {code} {log}")
    varve.stop()


def test_debian_variant(world):
    """The glibc flavour on Debian (amd64)."""
    world.daemon.docker("build", "--network=host", "--target=debian", "--build-arg", "PAGE=context", "-t", "varve:debian", ".", timeout=840)
    port = peerlib.free_ports(1)[0]
    container = world.daemon.create("varve:debian", *HARDENED, f"--env=VARVE_WEB_LISTEN_ADDRESS=127.0.0.1:{port}")
    peerlib.wait_until("the variant", peerlib.Api(port).ready, 30)
    world.daemon.docker("exec", container, "varve", "health")
    world.daemon.docker("stop", container)
    expect(world.daemon.inspect(container)["State"]["ExitCode"] == 0, world.daemon.logs(container))


TESTS = [test_build, test_sizes, test_index, test_contents, test_amd64, test_little_memory, test_stop_under_load,
         test_cpu_quota, test_random_user, test_wrong_volumes, test_exit_codes, test_names, test_arm64,
         test_debian_variant]


def run_tests(world):
    """All of them; what the build did not make, none can run."""
    passed = failed = 0
    for test in TESTS:
        begun = time.monotonic()
        try:
            test(world)
            passed += 1
            print(f"pass: {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
        except (Failed, OSError, RuntimeError, ValueError, KeyError) as error:
            failed += 1
            print(f"FAIL: {test.__name__} ({time.monotonic() - begun:.1f} s): {type(error).__name__}: {error}", flush=True)
            if test is test_build:
                break
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def interrupted(number, _frame):
    """The runner's end of patience: cleaning up comes first."""
    raise SystemExit(128 + number)


def main():
    """Machine, daemon, tests, and everything undone."""
    reason = dockerlib.why_not()
    if reason:
        peerlib.skip(f"no containers here: {reason}")
    peers = peerlib.find_peers(["prometheus"])
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, interrupted)
    signal.alarm(PATIENCE)
    daemon, foreign = dockerlib.Daemon(), dockerlib.Aarch64()
    world = World(daemon)
    world.peers = peers
    try:
        daemon.start()
        foreign.start()
        return run_tests(world)
    except Failed as error:
        print(f"FAIL: the daemon or qemu: {error}\n0 passed, 1 failed, 0 skipped")
        return 1
    finally:
        signal.alarm(0)
        world.processes.stop_all()
        daemon.stop()
        foreign.stop()
        shutil.rmtree(world.folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
