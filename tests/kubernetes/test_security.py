"""Every pod fulfils the pod security standard "restricted", and some more, field by field."""

import copy

import pytest

from rendered import DEPLOY, OVERLAYS, objects, one, pods, with_components


def violations(spec):
    """What the standard, or this project, forbids."""
    found = []
    pod = spec.get("securityContext", {})
    found += [f for f in ("hostNetwork", "hostPID", "hostIPC", "hostUsers") if spec.get(f)]
    if spec.get("automountServiceAccountToken") is not False:
        found.append("a token of Kubernetes")
    if spec.get("enableServiceLinks") is not False:
        found.append("service links")
    if pod.get("sysctls"):
        found.append("sysctls")
    for volume in spec.get("volumes", []):
        allowed = {"configMap", "secret", "emptyDir", "persistentVolumeClaim", "projected", "downwardAPI", "csi", "ephemeral"}
        if not set(volume) - {"name"} <= allowed:
            found.append(f"volume {volume['name']}")
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        own = container.get("securityContext", {})
        both = {**pod, **own}
        name = container["name"]
        if both.get("runAsNonRoot") is not True or not both.get("runAsUser") or not both.get("runAsGroup"):
            found.append(f"{name}: may be root")
        if both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
            found.append(f"{name}: no seccomp profile")
        if own.get("allowPrivilegeEscalation") is not False:
            found.append(f"{name}: may gain privileges")
        if own.get("privileged") or own.get("procMount", "Default") != "Default":
            found.append(f"{name}: privileged")
        if own.get("capabilities", {}).get("drop") != ["ALL"] or own.get("capabilities", {}).get("add"):
            found.append(f"{name}: capabilities")
        if any("hostPort" in port for port in container.get("ports", [])):
            found.append(f"{name}: a port of the host")
        resources = container.get("resources", {})
        if not {"cpu", "memory"} <= set(resources.get("requests", {})) or set(resources.get("limits", {})) != {"memory"}:
            found.append(f"{name}: resources")
        if container["image"].startswith(("bernstream", "registry.example.com")) and own.get("readOnlyRootFilesystem") is not True:
            found.append(f"{name}: can write its root")
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_pod_is_restricted(overlay, tmp_path):
    folder = with_components(tmp_path, f"overlays/{overlay}", ["ledger-init"])
    names = []
    for name, template in pods(folder):
        assert violations(template["spec"]) == [], name
        names.append(name)
    assert {"StatefulSet bernstream", "Deployment bernstream-dashboard", "Job bernstream-ledger-init"} <= set(names)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_namespace_asks_for_it(overlay):
    folder = DEPLOY / "overlays" / overlay
    (namespace,) = [o for o in objects(folder) if o["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert {o["metadata"].get("namespace") for o in objects(folder) if o is not namespace} == {namespace["metadata"]["name"]}
    assert not [o for o in objects(folder) if "Role" in o["kind"]], "nothing may ask anything of Kubernetes"


LOOSENED = [
    lambda spec, c: c["securityContext"].pop("readOnlyRootFilesystem"),
    lambda spec, c: c["securityContext"].pop("allowPrivilegeEscalation"),
    lambda spec, c: c["securityContext"].pop("capabilities"),
    lambda spec, c: c["securityContext"].update(runAsUser=0),
    lambda spec, c: c["resources"].pop("limits"),
    lambda spec, c: spec["securityContext"].pop("runAsNonRoot"),
    lambda spec, c: spec["securityContext"].pop("seccompProfile"),
    lambda spec, c: spec.pop("automountServiceAccountToken"),
    lambda spec, c: spec.update(hostNetwork=True),
    lambda spec, c: spec["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
]


@pytest.mark.parametrize("loosen", LOOSENED)
def test_what_is_loosened_is_noticed(loosen):
    spec = copy.deepcopy(one("StatefulSet", "bernstream", DEPLOY / "base")["spec"]["template"]["spec"])
    assert violations(spec) == []
    loosen(spec, spec["containers"][0])
    assert len(violations(spec)) == 1
