"""What the image tests need of the machine: a docker daemon of their own, and foreign programs by binfmt.

Nothing is installed and nothing stays: the daemon is Debian's, unpacked under build/image/docker, started on a
private socket without a bridge or firewall rules, ended by its pid; registrations are undone. Its data stays under
build/image/dockerd, so that images of an earlier run serve as cache.
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "image")
BINFMT = "/proc/sys/fs/binfmt_misc"
# e_machine 183 in a 64-bit little-endian ELF file; the masks pass any ABI and both kinds of executable
AARCH64_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
AARCH64_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"


class Failed(Exception):
    """A check did not hold."""


def run(command, timeout=120, check=True, env=None):
    """Runs to the end; the completed process, outputs as text. A bad end fails with the output."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                          check=False, env=env, errors="replace", cwd=ROOT)
    if check and done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done


def why_not():
    """Why this machine can't run containers at all; None if it can, and then everything must work."""
    if os.geteuid() != 0:
        return "containers need root"
    if not shutil.which("apt-get"):
        return "docker is unpacked from Debian packages, and there is no apt-get"
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False, capture_output=True).returncode:
        return "no namespaces may be made here (a container without privileges?)"
    with open("/proc/mounts", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    if not any(fields[2] in ("cgroup", "cgroup2") for fields in mounts):
        return "no control groups are mounted"
    return None


class Daemon:
    """A docker daemon, its client, and what was started with it."""

    def __init__(self):
        self.run_folder = tempfile.mkdtemp(prefix="varve-docker-")  # short: it holds sockets
        self.data = os.path.join(BUILD, "dockerd")
        self.programs = os.path.join(BUILD, "docker", "usr")
        self.client = os.path.join(self.programs, "bin", "docker")
        self.process = None
        self.containers, self.volumes = [], []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("DOCKER")}
        self.env["PATH"] = f"{self.programs}/bin:{self.programs}/sbin:{self.env['PATH']}"
        self.env["DOCKER_HOST"] = f"unix://{self.run_folder}/sock"
        self.env["DOCKER_BUILDKIT"] = "1"

    def start(self):
        """Fetches the programs if need be, starts the daemon, waits until it answers."""
        if not os.access(self.client, os.X_OK):
            run([os.path.join(ROOT, "tests/image/get-docker"), os.path.join(BUILD, "docker")], 300)
        os.makedirs(self.data, exist_ok=True)
        if run(["stat", "-f", "-c", "%T", self.data]).stdout.strip() in ("overlayfs", "tmpfs"):
            self.data = tempfile.mkdtemp(prefix="varve-dockerd-", dir="/var/tmp")
        with open(os.path.join(BUILD, "dockerd.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.path.join(self.programs, "sbin", "dockerd"), "--iptables=false", "--ip6tables=false",
                 "--bridge=none", "-H", self.env["DOCKER_HOST"], "--data-root", self.data, "--exec-root",
                 self.run_folder + "/exec", "--pidfile", self.run_folder + "/pid"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, start_new_session=True)
        end = time.monotonic() + 60
        while self.docker("version", check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failed("dockerd does not answer:\n" + self.log())
            time.sleep(0.5)

    def log(self):
        """The end of the daemon's log."""
        with open(os.path.join(BUILD, "dockerd.log"), encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-30:])

    def docker(self, *arguments, timeout=120, check=True):
        """One call of the client."""
        return run([self.client, *arguments], timeout, check, self.env)

    def has_image(self, name):
        """True if it is there."""
        return self.docker("image", "inspect", name, check=False).returncode == 0

    def create(self, image, *arguments, command=()):
        """Starts a container in the background; its id. All are removed at the end."""
        made = self.docker("run", "--detach", "--network=host", *arguments, image, *command)
        self.containers.append(made.stdout.split()[-1])
        return self.containers[-1]

    def volume(self):
        """A new named volume."""
        self.volumes.append(self.docker("volume", "create").stdout.strip())
        return self.volumes[-1]

    def inspect(self, container):
        """All that docker knows of it."""
        return json.loads(self.docker("inspect", container).stdout)[0]

    def logs(self, container):
        """What it printed."""
        done = self.docker("logs", container)
        return done.stdout + done.stderr

    def wait_exit(self, container, timeout=60):
        """Its exit code, once it has ended."""
        return int(self.docker("wait", container, timeout=timeout).stdout)

    def stop(self):
        """Removes containers and volumes, ends the daemon by its pid, unmounts what it leaves."""
        if self.process is not None and self.process.poll() is None:
            for container in self.containers:
                self.docker("rm", "--force", "--volumes", container, check=False)
            for volume in self.volumes:
                self.docker("volume", "rm", "--force", volume, check=False)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        with open("/proc/mounts", encoding="utf-8") as file:
            left = [line.split()[1] for line in file if line.split()[1].startswith((self.run_folder, self.data))]
        for mount in sorted(left, reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
        shutil.rmtree(self.run_folder, ignore_errors=True)
        if self.data.startswith("/var/tmp"):
            shutil.rmtree(self.data, ignore_errors=True)


class Aarch64:
    """arm64 programs run by qemu, images without a loader among them (flag F), while this is registered."""

    def __init__(self):
        self.mounted = self.registered = False

    def start(self):
        """Registers, unless someone did. True if arm64 programs run now."""
        qemu = shutil.which("qemu-aarch64-static")
        if qemu is None:
            raise Failed("qemu-aarch64-static is missing (deploy/install-deps --test)")
        if not os.path.exists(BINFMT + "/register"):
            run(["mount", "-t", "binfmt_misc", "none", BINFMT])
            self.mounted = True
        if os.path.exists(BINFMT + "/qemu-aarch64"):
            return
        with open(BINFMT + "/register", "w", encoding="ascii") as file:
            file.write(f":varve-aarch64:M::{AARCH64_MAGIC}:{AARCH64_MASK}:{qemu}:F")
        self.registered = True

    def stop(self):
        """Undoes what start did."""
        if self.registered:
            with open(BINFMT + "/varve-aarch64", "w", encoding="ascii") as file:
                file.write("-1")
        if self.mounted:
            subprocess.run(["umount", BINFMT], check=False)
