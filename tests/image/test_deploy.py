#!/usr/bin/env python3
"""What deploy/ ships, held to what it says: the systemd unit, the Debian packages, compose, Kubernetes, the chart.

The packages are built from the static programs (make deb) and installed for real into a root of their own; the
chart is rendered by chart.py, which is not helm (README.md says what that leaves open).
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import chart
from dockerlib import ROOT, BUILD, Failed, run

EXPOSURE_MAX = 1.5  # systemd's rating of the unit: 0 is closed, 10 open


class Skip(Exception):
    """The machine can't do it."""


def expect(condition, what):
    """A check."""
    if not condition:
        raise Failed(what)


def read(path):
    """A file of the tree."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def version():
    """As the build takes it."""
    return re.search(r"^## \[([0-9.]+)\]", read("CHANGELOG.md"), re.M)[1]


def option_names():
    """The server's options, by its own help."""
    text = run([os.path.join(ROOT, "build/varve"), "help"]).stdout
    return set(re.findall(r"^  --([a-z.-]+)", text, re.M))


# ---- systemd


def test_unit(folder):
    """systemd takes it without a word, and rates it as closed as its comment says."""
    if not shutil.which("systemd-analyze"):
        raise Skip("systemd-analyze is not installed")
    unit = os.path.join(folder, "varve.service")
    with open(unit, "w", encoding="utf-8") as file:
        file.write(read("deploy/systemd/varve.service").replace("/usr/bin/varve", "/bin/true"))
    done = run(["systemd-analyze", "verify", "--man=no", unit])
    expect(not done.stderr.strip(), done.stderr)
    rating = run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit]).stdout
    exposure = float(re.search(r"Overall exposure level for varve.service: ([0-9.]+)", rating)[1])
    expect(exposure <= EXPOSURE_MAX, f"exposure {exposure}")


def test_options_exist(_folder):
    """No file of deploy/ sets an option that the server does not have."""
    known = option_names()
    expect(len(known) > 20, known)
    variables = {"VARVE_" + re.sub(r"[.-]", "_", name).upper() for name in known} | {"VARVE_ARGS"}
    for base, _, names in os.walk(os.path.join(ROOT, "deploy")):
        for name in names:
            with open(os.path.join(base, name), encoding="utf-8") as file:
                text = file.read()
            for option in re.findall(r"--((?:web|storage|query|memory|log)\.[a-z.-]*[a-z])", text):
                expect(option in known or option.startswith("storage.tsdb."), f"{name}: --{option} is no option")
            if name in ("varve.default", "varve.service", "OPERATIONS.md"):
                for variable in re.findall(r"\bVARVE_[A-Z_]+", text):
                    expect(variable in variables, f"{name}: {variable} is no option")


# ---- Debian packages


def build_deb(arch):
    """make deb; the path of the package."""
    run(["make", "--no-print-directory", "deb", f"ARCH={arch}"], 600)
    return os.path.join(ROOT, "build/deb", f"varve_{version()}_{arch}.deb")


def check_deb(arch, folder):
    """Built twice the same; what is in it, whose, with which checksums."""
    path = build_deb(arch)
    with open(path, "rb") as file:
        first = hashlib.sha256(file.read()).hexdigest()
    with open(build_deb(arch), "rb") as file:
        expect(hashlib.sha256(file.read()).hexdigest() == first, "another build has other bytes")
    fields = run(["dpkg-deb", "--field", path]).stdout
    expect(f"Architecture: {arch}\n" in fields and f"Version: {version()}\n" in fields and "Depends" not in fields, fields)
    for line in run(["dpkg-deb", "--contents", path]).stdout.splitlines():
        expect(line.split()[1] == "root/root" and "w" not in line[5:10], line)
    out = os.path.join(folder, "deb-" + arch)
    run(["dpkg-deb", "--raw-extract", path, out])
    expect(read_in(out, "DEBIAN/conffiles") == "/etc/default/varve\n", "conffiles")
    for line in read_in(out, "DEBIAN/md5sums").splitlines():
        digest, name = line.split()
        with open(os.path.join(out, name), "rb") as file:
            expect(hashlib.md5(file.read()).hexdigest() == digest, name)
    sbom = json.loads(read_in(out, "usr/share/doc/varve/sbom.spdx.json"))
    with open(os.path.join(out, "usr/bin/varve"), "rb") as file:
        expect(sbom["packages"][0]["checksums"][0]["checksumValue"] == hashlib.sha256(file.read()).hexdigest(), "sbom")
    return out


def read_in(folder, path):
    """A file below a folder."""
    with open(os.path.join(folder, path), encoding="utf-8") as file:
        return file.read()


def test_deb_amd64(folder):
    """Its program runs, its man page is one, its unit names files that it brings."""
    out = check_deb("amd64", folder)
    expect(version() in run([os.path.join(out, "usr/bin/varve"), "version"]).stdout, "version")
    expect("/usr/bin/varve serve" in read_in(out, "lib/systemd/system/varve.service"), "unit")
    if shutil.which("man"):
        page = run(["man", "--warnings", "-l", os.path.join(out, "usr/share/man/man1/varve.1.gz")])
        expect("EXIT STATUS" in page.stdout and not page.stderr.strip(), page.stderr)


def test_deb_arm64(folder):
    """The same for arm64, its program run by qemu."""
    qemu = shutil.which("qemu-aarch64-static")
    expect(qemu, "qemu-aarch64-static is missing (deploy/install-deps --test)")
    out = check_deb("arm64", folder)
    expect(version() in run([qemu, os.path.join(out, "usr/bin/varve"), "version"]).stdout, "version")


def test_deb_install(folder):
    """dpkg installs, upgrades with a changed conffile kept, removes and purges it, and never touches the data."""
    base = os.path.join(BUILD, "base.tar")
    if os.geteuid() != 0:
        raise Skip("a root of its own needs root")
    if not os.path.exists(base):
        os.makedirs(BUILD, exist_ok=True)
        run([os.path.join(ROOT, "deploy/image/base"), base], 600)
    root = os.path.join(folder, "root")
    os.mkdir(root)
    run(["tar", "-C", root, "-xf", base], 300)
    shutil.copy(build_deb("amd64"), os.path.join(root, "varve.deb"))

    def inside(*command, check=True):
        return run(["chroot", root, *command], 120, check)

    inside("dpkg", "--install", "/varve.deb")
    expect(version() in inside("varve", "version").stdout, "version")
    with open(os.path.join(root, "etc/default/varve"), "a", encoding="utf-8") as file:
        file.write("VARVE_STORAGE_RETENTION=2y\n")
    os.makedirs(os.path.join(root, "var/lib/private/varve"))
    inside("dpkg", "--install", "/varve.deb")
    expect("2y" in read_in(root, "etc/default/varve"), "the conffile was overwritten")
    inside("dpkg", "--remove", "varve")
    expect(not os.path.exists(os.path.join(root, "usr/bin/varve")), "the program is still there")
    expect("2y" in read_in(root, "etc/default/varve"), "removing took the conffile")
    purged = inside("dpkg", "--purge", "varve")
    expect(not os.path.exists(os.path.join(root, "etc/default/varve")), "the conffile is still there")
    expect(os.path.exists(os.path.join(root, "var/lib/private/varve")), "the data is gone")
    expect("is kept" in purged.stderr + purged.stdout, purged)
    run(["rm", "-rf", "--one-file-system", root])


# ---- YAML


def need_yaml():
    """Debian's YAML reader, in a process of its own."""
    done = subprocess.run(["/usr/bin/python3", "-c", "import yaml"], check=False, capture_output=True)
    expect(done.returncode == 0, "python3-yaml is missing (deploy/install-deps --test)")


def test_compose(_folder):
    """Every file, volume and service that it refers to is there; Varve runs locked up."""
    need_yaml()
    compose = chart.load_yaml(read("deploy/compose/compose.yaml"))[0]
    services = compose["services"]
    expect(set(services) == {"varve", "prometheus", "grafana"}, services)
    for name, service in services.items():
        for needed in service.get("depends_on", {}):
            expect(needed in services, f"{name} depends on {needed}")
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            there = source in compose["volumes"] or os.path.exists(os.path.join(ROOT, "deploy/compose", source))
            expect(there and (not source.startswith(".") or volume.endswith(":ro")), volume)
    varve = services["varve"]
    expect(varve["read_only"] and varve["cap_drop"] == ["ALL"], varve)
    expect(os.path.exists(os.path.join(ROOT, "deploy/compose", varve["build"]["context"], "Dockerfile")), varve)
    source = chart.load_yaml(read("deploy/compose/grafana-datasource.yaml"))[0]["datasources"][0]
    expect(source["type"] == "prometheus" and source["url"] == "http://varve:8428", source)
    prometheus = chart.load_yaml(read("deploy/compose/prometheus.yml"))[0]
    expect(prometheus["remote_write"][0]["url"] == "http://varve:8428/api/v1/write", prometheus)
    tool = shutil.which("docker-compose")
    if tool:
        run([tool, "-f", os.path.join(ROOT, "deploy/compose/compose.yaml"), "config", "--quiet"])


def check_objects(objects, where):
    """Kubernetes objects that belong together: names, selectors, ports, probes, locked-up containers."""
    kinds = {}
    for each in objects:
        expect(each.get("apiVersion") and each.get("kind") and each["metadata"]["name"], f"{where}: {each}")
        kinds[each["kind"]] = each
    for kind in ("ServiceAccount", "Service", "StatefulSet", "PodDisruptionBudget", "NetworkPolicy"):
        expect(kind in kinds, f"{where}: no {kind}")
    stateful = kinds["StatefulSet"]["spec"]
    pod = stateful["template"]
    labels = pod["metadata"]["labels"].items()

    def selects(selector):
        return selector and selector.items() <= labels

    expect(selects(stateful["selector"]["matchLabels"]), f"{where}: the StatefulSet does not select its pods")
    expect(selects(kinds["Service"]["spec"]["selector"]), f"{where}: Service")
    expect(selects(kinds["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]), f"{where}: PodDisruptionBudget")
    expect(selects(kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]), f"{where}: NetworkPolicy")
    expect(stateful["serviceName"] == kinds["Service"]["metadata"]["name"] and stateful["replicas"] == 1, stateful)
    expect(kinds["NetworkPolicy"]["spec"]["egress"] == [], "it may call out")
    spec = pod["spec"]
    expect(spec["serviceAccountName"] == kinds["ServiceAccount"]["metadata"]["name"], spec)
    expect(spec["securityContext"]["runAsNonRoot"] is True, spec)
    container = spec["containers"][0]
    security = container["securityContext"]
    expect(security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"], security)
    expect(security["capabilities"]["drop"] == ["ALL"], security)
    ports = {p["name"] for p in container["ports"]}
    expect(kinds["Service"]["spec"]["ports"][0]["targetPort"] in ports, "the Service's port")
    paths = {"startupProbe": "/-/ready", "livenessProbe": "/-/healthy", "readinessProbe": "/-/ready"}
    for probe, path in paths.items():
        get = container[probe]["httpGet"]
        expect(get["path"] == path and get["port"] in ports, get)
    claims = {c["metadata"]["name"] for c in stateful["volumeClaimTemplates"]}
    expect({(m["name"], m["mountPath"]) for m in container["volumeMounts"]} == {(next(iter(claims)), "/data")}, container)
    return kinds


def test_kubernetes(_folder):
    """The plain manifests."""
    need_yaml()
    objects = chart.load_yaml(read("deploy/kubernetes/varve.yaml"))
    expect(len(objects) == 5, len(objects))
    check_objects(objects, "deploy/kubernetes/varve.yaml")


def test_chart(_folder):
    """As it is, and with every value changed that has a branch of its own."""
    need_yaml()
    charted = chart.Chart(os.path.join(ROOT, "deploy/helm/varve"))
    expect(charted.meta["appVersion"] == charted.meta["version"] == version(), f"Chart.yaml is not at {version()}")

    def objects(changes=None):
        texts = charted.render("metrics", changes)
        return [each for name, text in texts.items() if name.endswith(".yaml") for each in chart.load_yaml(text)]

    kinds = check_objects(objects(), "the chart")
    container = kinds["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
    expect(container["args"] == ["serve", "--storage.retention=1y"], container["args"])
    expect(container["image"] == "varve:" + version(), container["image"])

    changed = check_objects(objects({
        "options": {"storage.retention": "2y", "query.experimental": True}, "extraArgs": ["--log.format=json"],
        "extraEnv": [{"name": "VARVE_LOG_LEVEL", "value": "debug"}], "image/tag": "x", "podSecurityContext": {},
        "persistence/storageClass": "fast", "podLabels": {"team": "a"}, "podAnnotations": {}, "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}], "serviceMonitor/enabled": True,
        "serviceMonitor/labels": {"release": "p"}, "service/annotations": {"a": "b"},
        "imagePullSecrets": [{"name": "s"}]}), "the changed chart")
    pod = changed["StatefulSet"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    expect(container["args"] == ["serve", "--query.experimental=true", "--storage.retention=2y", "--log.format=json"],
           container["args"])
    expect(container["image"] == "varve:x" and container["env"][0]["value"] == "debug", container)
    expect(pod["metadata"]["labels"]["team"] == "a" and "annotations" not in pod["metadata"], pod["metadata"])
    expect(pod["spec"]["nodeSelector"] == {"disk": "ssd"} and pod["spec"]["tolerations"], pod["spec"])
    expect(set(pod["spec"]["securityContext"]) == {"runAsNonRoot", "seccompProfile"}, pod["spec"]["securityContext"])
    claim = changed["StatefulSet"]["spec"]["volumeClaimTemplates"][0]["spec"]
    expect(claim["storageClassName"] == "fast", claim)
    expect(changed["ServiceMonitor"]["metadata"]["labels"]["release"] == "p", changed["ServiceMonitor"])
    none = objects({"podDisruptionBudget/enabled": False, "networkPolicy/enabled": False})
    expect(not {"PodDisruptionBudget", "NetworkPolicy"} & {o["kind"] for o in none}, none)
    notes = charted.render("varve")["NOTES.txt"]
    expect("http://varve.monitoring.svc:8428/api/v1/write" in notes, notes)


TESTS = [test_unit, test_options_exist, test_compose, test_kubernetes, test_chart, test_deb_amd64, test_deb_arm64,
         test_deb_install]


def main():
    """One after the other in a folder of their own."""
    passed = failed = skipped = 0
    folder = tempfile.mkdtemp(prefix="varve-deploy-")
    try:
        for test in TESTS:
            begun = time.monotonic()
            try:
                test(folder)
                passed += 1
                print(f"pass: {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
            except Skip as reason:
                skipped += 1
                print(f"skip: {test.__name__}: {reason}", flush=True)
            except (Failed, OSError, ValueError, KeyError, TypeError) as error:
                failed += 1
                print(f"FAIL: {test.__name__}: {type(error).__name__}: {error}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
