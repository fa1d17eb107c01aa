"""The absorbers: the worker's configuration and key, a name for each, brokers and nobody else, and as many as the CPU asks for."""

import pytest

from rendered import DEPLOY, one, pods, with_components
from test_manifests import faults
from test_security import violations


@pytest.fixture
def folder(tmp_path):
    return with_components(tmp_path, "base", ["networkpolicy", "absorbers", "tls"])


def spec(folder, name):
    return one("StatefulSet", name, folder)["spec"]["template"]["spec"]


def test_they_have_the_configuration_and_the_key_of_the_worker(folder):
    worker, absorber = spec(folder, "bernstream"), spec(folder, "bernstream-absorber")
    for kind in ("configMap", "secret"):
        def mounted(pod):
            (container,) = pod["containers"]
            by_name = {v["name"]: v[kind] for v in pod["volumes"] if kind in v}
            return sorted((m["mountPath"], str(by_name[m["name"]]), m["readOnly"])
                          for m in container["volumeMounts"] if m["name"] in by_name)
        assert mounted(worker) == mounted(absorber)
        assert len(mounted(absorber)) == {"configMap": 1, "secret": 2}[kind]
    assert "persistentVolumeClaim" not in str(absorber), "no ledger"
    assert "volumeClaimTemplates" not in one("StatefulSet", "bernstream-absorber", folder)["spec"]


def test_each_is_a_member_by_the_name_of_its_pod(folder):
    (container,) = spec(folder, "bernstream-absorber")["containers"]
    names = {env["name"]: env.get("valueFrom") for env in container["env"]}
    assert names["BERNSTREAM_MEMBER"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert container["args"][:1] == ["absorb"]
    (port,) = container["ports"]
    assert f"--listen=0.0.0.0:{port['containerPort']}" in container["args"]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}


def test_they_reach_brokers_and_are_reached_by_nobody(folder):
    policy = one("NetworkPolicy", "bernstream-absorber", folder)["spec"]
    labels = one("StatefulSet", "bernstream-absorber", folder)["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert (policy["policyTypes"], policy.get("ingress")) == (["Ingress", "Egress"], [])
    worker = one("NetworkPolicy", "bernstream-worker", folder)["spec"]
    assert policy["egress"] == worker["egress"]
    chosen = worker["podSelector"]["matchExpressions"][0]["values"]
    assert labels["app.kubernetes.io/component"] not in chosen, "nobody scrapes an absorber"


def test_the_cpu_decides_how_many_there_are(folder):
    scaler = one("HorizontalPodAutoscaler", "bernstream-absorber", folder)["spec"]
    absorbers = one("StatefulSet", "bernstream-absorber", folder)
    assert scaler["scaleTargetRef"] == {key: value for key, value in
                                        (("apiVersion", absorbers["apiVersion"]), ("kind", absorbers["kind"]),
                                         ("name", absorbers["metadata"]["name"]))}
    assert "replicas" not in absorbers["spec"], "an apply would set them back"
    (metric,) = scaler["metrics"]
    assert metric["resource"]["name"] == "cpu"
    (container,) = absorbers["spec"]["template"]["spec"]["containers"]
    assert "cpu" in container["resources"]["requests"], "a share of nothing is nothing"
    assert faults(one("HorizontalPodAutoscaler", "bernstream-absorber", folder)) == []


def test_every_pod_is_restricted_with_them_too(folder):
    names = [name for name, template in pods(folder) if not violations(template["spec"])]
    assert sorted(names) == ["StatefulSet bernstream", "StatefulSet bernstream-absorber"]


def test_the_worker_is_ready_without_them(folder):
    (container,) = spec(folder, "bernstream")["containers"]
    (alone,) = spec(DEPLOY / "base", "bernstream")["containers"]
    assert container["readinessProbe"] == alone["readinessProbe"]
    assert "initContainers" not in spec(folder, "bernstream")
