"""A pod of a rendered manifest, run by `container.py`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from rendered import ROOT, objects

PROGRAM = Path(os.environ.get("BERNSTREAM_TEST_PROGRAM", ROOT / "target/debug/bernstream"))
# Seconds. Nothing that works takes as long, on a slow machine that has other work too.
PATIENCE = 300
# The environment that the base image sets.
IMAGE = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt",
}


class Claim:
    """A volume, as the kubelet hands it to a pod with an fsGroup."""

    def __init__(self, folder, group):
        folder.mkdir()
        os.chown(folder, 0, group)
        folder.chmod(0o2775)
        self.folder = folder


class Pod:
    def __init__(self, template, kustomization, folder, claims, port, secrets=None, program=PROGRAM):
        """Ports are those of this machine: `port` takes the place of the container's own in what is asked for."""
        self.spec = template["spec"]
        (self.container,) = self.spec["containers"]
        self.port = port
        self.folder = folder
        self.kustomization = kustomization
        self.secrets = secrets or {}
        self.program = program
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "root").mkdir()
        self.sources = {v["name"]: self._volume(v) for v in self.spec.get("volumes", []) if "persistentVolumeClaim" not in v}
        self.sources |= {name: claim.folder for name, claim in claims.items()}
        self.process = None

    def _volume(self, volume):
        """Files of the kubelet: owned by root and the group of the pod."""
        folder = self.folder / volume["name"]
        folder.mkdir()
        if "emptyDir" in volume:
            os.chown(folder, 0, self.spec["securityContext"]["fsGroup"])
            folder.chmod(0o2777)
            return folder
        if "configMap" in volume:
            name, mode = volume["configMap"]["name"], volume["configMap"].get("defaultMode", 0o644)
            found = next(o for o in objects(self.kustomization) if o["kind"] == "ConfigMap" and o["metadata"]["name"] == name)
            files = found["data"]
        else:
            secret = volume["secret"]
            mode = secret["defaultMode"]
            files = {item["path"]: self.secrets[secret["secretName"]][item["key"]] for item in secret["items"]}
        for name, text in files.items():
            path = folder / name
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            path.chmod(mode)
            os.chown(path, 0, self.spec["securityContext"]["fsGroup"])
        return folder

    def start(self, arguments=None, without=()):
        security = {**self.spec["securityContext"], **self.container["securityContext"]}
        wanted = {
            "root": str(self.folder / "root"),
            "program": str(self.program),
            "entrypoint": "/usr/local/bin/bernstream",
            "arguments": arguments or self.container["args"],
            "environment": {**IMAGE, **{e["name"]: e["value"] for e in self.container.get("env", [])}},
            "user": security["runAsUser"],
            "group": security["runAsGroup"],
            "groups": [security["fsGroup"]],
            "read_only": security["readOnlyRootFilesystem"],
            "folder": "/home/nonroot",
            "mounts": [
                {"source": str(self.sources[m["name"]]), "path": m["mountPath"], "read_only": m.get("readOnly", False)}
                for m in self.container.get("volumeMounts", [])
            ],
            "pid_file": str(self.folder / "pid"),
            "without": list(without),
        }
        (self.folder / "pid").unlink(missing_ok=True)
        self.log = open(self.folder / "log", "w+")
        command = [sys.executable, str(Path(__file__).parent / "container.py"), json.dumps(wanted)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        return self

    def pid(self):
        until = time.monotonic() + PATIENCE
        while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text():
            assert time.monotonic() < until, self.said()
            time.sleep(0.01)
        return int((self.folder / "pid").read_text())

    def said(self):
        return (self.folder / "log").read_text()

    def get(self, path):
        """The status and the text, as a probe sees them."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def probe(self, name):
        return self.get(self.container[name]["httpGet"]["path"])

    def until(self, what, wanted, seconds=PATIENCE):
        """Waits until `wanted()`; an end of the process, or too long, is an error."""
        start = time.monotonic()
        while not wanted():
            assert self.process.poll() is None, f"ended with {self.process.poll()}: {self.said()}"
            assert time.monotonic() - start < seconds, f"{what}: not within {seconds} s: {self.said()}"
            time.sleep(0.05)
        return time.monotonic() - start

    def started(self):
        """Within what the startup probe allows, then ready; in seconds."""
        allowed = self.container["startupProbe"]
        seconds = allowed["periodSeconds"] * allowed["failureThreshold"]
        return self.until("started", lambda: self.probe("startupProbe")[0] == 200, seconds) + self.until(
            "ready", lambda: self.probe("readinessProbe")[0] == 200)

    def metric(self, name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.get("/metrics")[1].splitlines() if line.startswith(name))

    def ended(self, seconds=PATIENCE):
        code = self.process.wait(timeout=seconds)
        return code, self.said()

    def stop(self):
        """As the kubelet stops it: SIGTERM, and the grace period; (exit code, what it said, seconds)."""
        start = time.monotonic()
        os.kill(self.pid(), signal.SIGTERM)
        code, said = self.ended(self.spec["terminationGracePeriodSeconds"])
        return code, said, time.monotonic() - start

    def kill(self):
        if self.process and self.process.poll() is None:
            os.kill(self.pid(), signal.SIGKILL)
            self.process.wait(timeout=PATIENCE)
