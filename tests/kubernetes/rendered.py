"""What Kustomize makes of deploy/."""

import os
import subprocess
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
NAME, PART = "app.kubernetes.io/name", "app.kubernetes.io/component"
COMPONENTS = sorted(path.parent.name for path in DEPLOY.glob("components/*/kustomization.yaml"))
OVERLAYS = sorted(path.parent.name for path in DEPLOY.glob("overlays/*/kustomization.yaml"))


def kustomize(folder):
    command = os.environ.get("BERNSTREAM_KUSTOMIZE", "kubectl kustomize").split()
    return subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)


@cache
def objects(folder):
    """Every object of a kustomization; an error is one of the test."""
    done = kustomize(folder)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, f"a warning: {done.stderr}"
    return tuple(yaml.safe_load_all(done.stdout))


def one(kind, name, folder):
    found = [o for o in objects(folder) if o["kind"] == kind and o["metadata"]["name"] == name]
    assert len(found) == 1, f"{len(found)} of {kind} {name} in {folder}"
    return found[0]


def configuration(folder):
    """The text of the worker's configuration, by the name that its pod mounts."""
    spec = one("StatefulSet", "bernstream", folder)["spec"]["template"]["spec"]
    name = next(v["configMap"]["name"] for v in spec["volumes"] if v["name"] == "configuration")
    return one("ConfigMap", name, folder)["data"]["bernstream.toml"]


def pods(folder):
    """Every pod that a kustomization can start: (the name of what starts it, its template)."""
    for o in objects(folder):
        if o["kind"] in ("StatefulSet", "Deployment", "Job", "DaemonSet"):
            yield f"{o['kind']} {o['metadata']['name']}", o["spec"]["template"]
        else:
            assert o["kind"] not in ("Pod", "CronJob", "ReplicaSet"), "an object that the checks do not know"


def with_components(folder, base, components):
    """A kustomization of `base` with components, written into `folder`."""
    up = os.path.relpath(DEPLOY, folder)
    text = {"resources": [f"{up}/{base}"], "components": [f"{up}/components/{name}" for name in components]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return folder
