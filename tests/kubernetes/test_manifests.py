"""The manifests render, are valid, and say of themselves what is so."""

import re
import tomllib

import kubernetes_validate
import pytest
import yaml

import alerts
from rendered import COMPONENTS, DEPLOY, NAME, OVERLAYS, PART, ROOT, configuration, kustomize, objects, one, pods, with_components

# The newest that the schemas know, and the oldest that has all that is used here.
VERSIONS = ("1.37", "1.30")
OF_THE_OPERATOR = {"PodMonitor", "PrometheusRule"}
FOLDERS = [DEPLOY / "base", *(DEPLOY / "overlays" / name for name in OVERLAYS)]


@pytest.fixture(params=[*FOLDERS, *COMPONENTS], ids=lambda p: p if isinstance(p, str) else p.name)
def folder(request, tmp_path):
    """The base, every overlay, and the base with each component."""
    if isinstance(request.param, str):
        return with_components(tmp_path, "base", [request.param])
    return request.param


def faults(o):
    found = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(o, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(f"{version}: {error.message}")
    return found


def test_there_is_what_should_be_there():
    assert COMPONENTS == ["absorbers", "alerts", "dashboard", "ledger-init", "networkpolicy", "podmonitor", "standby", "tls"]
    assert OVERLAYS == ["dev", "production"]


def test_every_object_is_valid(folder):
    seen = 0
    for o in objects(folder):
        if o["kind"] in OF_THE_OPERATOR:
            continue
        assert not faults(o), f"{o['kind']} {o['metadata']['name']}: {faults(o)}"
        seen += 1
    assert seen >= 5


@pytest.mark.parametrize("old, new", [("replicas:", "replicaz:"), ("readOnlyRootFilesystem", "readOnlyRootFileSystem"),
                                      ("replicas: 1", "replicas: one"), ("accessModes", "accessMode")])
def test_a_misspelt_field_is_noticed(old, new):
    text = yaml.safe_dump(one("StatefulSet", "bernstream", DEPLOY / "base"))
    assert old in text
    assert faults(yaml.safe_load(text)) == []
    assert len(faults(yaml.safe_load(text.replace(old, new)))) == len(VERSIONS)


def test_a_broken_kustomization_is_noticed(tmp_path):
    assert kustomize(with_components(tmp_path, "base", ["no-such-component"])).returncode != 0


def test_every_object_is_labelled_and_nothing_selects_what_is_not_there(folder):
    everything = objects(folder)
    templates = [template["metadata"]["labels"] for _, template in pods(folder)]
    def selected(labels):
        return [t for t in templates if labels.items() <= t.items()]
    for o in everything:
        kind, spec = o["kind"], o.get("spec", {})
        if kind not in ("Namespace", "ConfigMap"):
            assert NAME in o["metadata"].get("labels", {}), f"{kind} {o['metadata']['name']}"
        if kind == "Service":
            (labels,) = selected(spec["selector"])
            ports = [p for name, t in pods(folder) if t["metadata"]["labels"] == labels
                     for c in t["spec"]["containers"] for p in c.get("ports", [])]
            for port in spec["ports"]:
                assert port["targetPort"] in [p["name"] for p in ports]
        if kind in ("StatefulSet", "Deployment"):
            assert len(selected(spec["selector"]["matchLabels"])) == 1
            assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
        if kind in ("PodDisruptionBudget", "PodMonitor"):
            assert len(selected(spec["selector"]["matchLabels"])) == 1


def test_the_worker_is_one_whose_ledger_stays_or_two_that_can_lose_theirs(folder):
    worker = one("StatefulSet", "bernstream", folder)["spec"]
    spec = worker["template"]["spec"]
    if "volumeClaimTemplates" in worker:
        assert worker["replicas"] == (0 if any(o["kind"] == "Job" for o in objects(folder)) else 1)
        assert worker["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
        (claim,) = worker["volumeClaimTemplates"]
        assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
        disk = claim["metadata"]["name"]
    else:
        assert worker["replicas"] == 2 and "persistentVolumeClaimRetentionPolicy" not in worker
        (apart,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert apart["topologyKey"] == "kubernetes.io/hostname"
        assert apart["labelSelector"]["matchLabels"].items() <= worker["template"]["metadata"]["labels"].items()
        (disk,) = [v["name"] for v in spec["volumes"] if "emptyDir" in v]
    (container,) = worker["template"]["spec"]["containers"]
    mounts = {m["mountPath"]: m for m in container["volumeMounts"]}
    settings = tomllib.loads(configuration(folder))
    assert mounts["/var/lib/bernstream"]["name"] == disk
    assert settings["ledger"]["path"].startswith("/var/lib/bernstream/")
    assert container["args"] == ["run", "/etc/bernstream/bernstream.toml"]
    assert mounts["/etc/bernstream"]["readOnly"]
    (port,) = container["ports"]
    assert settings["serve"]["listen"] == f"0.0.0.0:{port['containerPort']}"
    assert settings["serve"]["detail"] == "safe"
    for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port["name"]}
    assert one("PodDisruptionBudget", "bernstream", folder)["spec"]["maxUnavailable"] == 1


def test_a_changed_configuration_is_a_new_pod(tmp_path):
    def name(extra):
        (tmp_path / "bernstream.toml").write_text((DEPLOY / "base/bernstream.toml").read_text() + extra)
        path = with_components(tmp_path, "base", []) / "kustomization.yaml"
        generator = "configMapGenerator: [{ name: bernstream, behavior: replace, files: [bernstream.toml] }]\n"
        path.write_text(path.read_text() + generator)
        objects.cache_clear()
        spec = one("StatefulSet", "bernstream", tmp_path)["spec"]["template"]["spec"]
        return next(v["configMap"]["name"] for v in spec["volumes"] if "configMap" in v)
    assert re.fullmatch(r"bernstream-[a-z0-9]{10}", name(""))
    assert name("") == name("") != name("# changed\n")


def test_the_dashboard_sees_synopses_only():
    for overlay in OVERLAYS:
        folder = DEPLOY / "overlays" / overlay
        settings = tomllib.loads(configuration(folder))
        spec = one("Deployment", "bernstream-dashboard", folder)["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        command, *options = container["args"]
        options = dict(option.split("=", 1) for option in options)
        assert command == "dashboard"
        assert options["--topic"] == settings["output"]["kafka"]["topic"]
        assert options["--brokers"] == settings["input"]["kafka"]["brokers"]
        assert options["--listen"] == f"0.0.0.0:{container['ports'][0]['containerPort']}"
        sasl = settings["input"]["kafka"].get("sasl")
        assert options.get("--sasl") == (sasl and sasl["mechanism"])
        assert sasl is None or options["--username"] != sasl["username"], "a user of its own, with fewer rights"
        secrets = {v["secret"]["secretName"] for v in spec.get("volumes", [])}
        assert secrets <= {"bernstream-dashboard-kafka"}, "no ledger, no configuration, no secret of the worker"


def test_secrets_are_files_for_the_group_of_the_pod():
    folder = DEPLOY / "overlays/production"
    seen = 0
    for name, template in pods(folder):
        spec = template["spec"]
        assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"]
        files = set()
        for volume in [v for v in spec["volumes"] if "secret" in v]:
            assert volume["secret"]["defaultMode"] == 0o440, name
            (mount,) = [m for m in spec["containers"][0]["volumeMounts"] if m["name"] == volume["name"]]
            assert mount["readOnly"]
            files |= {f"{mount['mountPath']}/{item['path']}" for item in volume["secret"]["items"]}
        read = configuration(folder) if any(v["name"] == "configuration" for v in spec["volumes"]) else ""
        named = set(re.findall(r'/run/secrets/[\w./-]+', read + " ".join(spec["containers"][0]["args"])))
        assert named == files, name
        for container in spec["containers"]:
            assert "envFrom" not in container
            assert all("valueFrom" not in env for env in container.get("env", []))
        seen += 1
    assert seen == 2
    assert not [o for o in objects(folder) if o["kind"] == "Secret"], "secrets do not lie in a repository"


def test_production_denies_by_default_and_lets_in_what_is_needed():
    folder = DEPLOY / "overlays/production"
    policies = {o["metadata"]["name"]: o["spec"] for o in objects(folder) if o["kind"] == "NetworkPolicy"}
    deny = policies["bernstream-default-deny"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    settings = tomllib.loads(configuration(folder))
    broker = int(settings["input"]["kafka"]["brokers"].rsplit(":", 1)[1])
    for name in ("bernstream-worker", "bernstream-dashboard"):
        ports = {port["port"] for rule in policies[name]["egress"] for port in rule["ports"]}
        assert {53, broker} <= ports <= {53, 9092, 9093}
        assert [port["port"] for rule in policies[name]["ingress"] for port in rule["ports"]] == ["http"]
    (rule,) = policies["bernstream-worker"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]


def test_production_runs_an_image_by_its_digest():
    for name, template in pods(DEPLOY / "overlays/production"):
        for container in template["spec"]["containers"]:
            assert re.fullmatch(r"[\w./-]+@sha256:[0-9a-f]{64}", container["image"]), name


def test_the_pod_monitor_is_one():
    (monitor,) = [o for o in objects(DEPLOY / "overlays/production") if o["kind"] == "PodMonitor"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert set(monitor["spec"]) == {"selector", "podMetricsEndpoints"}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint == {"port": "http", "path": "/metrics", "interval": "30s"}


def test_the_alerts_are_those_of_the_rule_file():
    assert alerts.COMPONENT.read_text() == alerts.made(), "run tests/deploy.sh write"
    (rule,) = [o for o in objects(DEPLOY / "overlays/production") if o["kind"] == "PrometheusRule"]
    assert rule["apiVersion"] == "monitoring.coreos.com/v1"
    assert rule["spec"] == yaml.safe_load(alerts.RULES.read_text())
    known = {"alert", "expr", "for", "labels", "annotations", "record", "keep_firing_for"}
    rules = [r for group in rule["spec"]["groups"] for r in group["rules"]]
    assert rules and all(set(r) <= known and ("alert" in r) != ("record" in r) and "expr" in r for r in rules)


def test_dev_makes_the_topics_that_the_worker_needs():
    folder = DEPLOY / "overlays/dev"
    settings = tomllib.loads(configuration(folder))
    script = next(o["data"]["topics.sh"] for o in objects(folder) if "topics.sh" in o.get("data", {}))
    lines = {words[words.index("--topic") + 1]: set(words)
             for words in (re.split(r"[\s;]+", line) for line in re.sub(r"\\\n", "", script).splitlines())
             if "--topic" in words}
    given, published = settings["input"]["kafka"], settings["output"]["kafka"]
    clock = given.get("clock", given["topic"] + "-clock")
    wanted = given["topic"], published["topic"], published["witness"], clock
    assert tuple(lines) == wanted
    assert "message.timestamp.type=LogAppendTime" in lines[wanted[0]] & lines[clock]
    # The settings without which the worker refuses a witness.
    source = (ROOT / "crates/kafka/src/ordered.rs").read_text()
    needed = re.findall(r'\("([a-z.]+)", "([^"]+)"\)', source.split("const SETTINGS")[1].split("];")[0])
    needed += re.findall(r'FLUSH: .*\("([a-z.]+)", "([^"]+)"\);', source)
    assert len(needed) == 6
    least = settings["output"]["kafka"]["witness_min_insync_replicas"]
    assert {f"{name}={value}" for name, value in [*needed, ("min.insync.replicas", least)]} <= lines[wanted[2]]
