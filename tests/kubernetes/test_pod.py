"""The program, run as the manifests say, against a real broker. First the production overlay without its standby: one worker lives, is
probed, stops in time, and its ledger lets no second worker near; one pod after the other, as its volume goes from one to the next. Then
two workers with disks that go with their pods."""

import copy
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import time
from types import SimpleNamespace

import pytest
import yaml

from pod import PATIENCE, PROGRAM, Claim, Pod
from rendered import DEPLOY, ROOT, objects, one, with_components

BROKER = os.environ.get("BERNSTREAM_TEST_KAFKA")
SECRETS = {
    "bernstream-kafka": {"ca.crt": "-----BEGIN CERTIFICATE-----\n", "password": "a secret of the test\n"},
    "bernstream-ledger": {"key": os.urandom(32)},
}

pytestmark = [
    pytest.mark.skipif(not BROKER, reason="BERNSTREAM_TEST_KAFKA is not set: the pod is NOT tested"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a container: the pod is NOT tested"),
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built: the pod is NOT tested"),
]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def secure():
    """The listener that requires TLS and a password: its address, the file of its authority, that of the password."""
    done = subprocess.run([ROOT / "tests/kafka.sh", "secure"], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None


def settings(port, topics, reached, standby):
    """The configuration of production with another broker, other topics, another port, and windows of two seconds."""
    # With a standby a window may be published as late as a second worker can publish it.
    delay = "4s" if standby else "200ms"
    of_the_ledger = [(r"^standby = .*$", 'standby = "2s"')] if standby else [(r"^log = .*\nkey_file = .*\nstandby = .*\n", "")]
    text = (DEPLOY / "overlays/production/bernstream.toml").read_text()
    for old, new in [
        *reached,
        *of_the_ledger,
        (r'^clock_slack = .*$', 'clock_slack = "100ms"'),
        (r'^producer_delay = .*$', 'producer_delay = "100ms"'),
        (r'^length = .*$', 'length = "2s"'),
        (r'^grace = .*$', 'grace = "200ms"'),
        (r'^ahead = .*$', 'ahead = "1s"'),
        (r'^publish_delay = .*$', f'publish_delay = "{delay}"'),
        (r'^witness = .*$', f'witness = "{topics}-witness"\nwitness_min_insync_replicas = 1'),
        (r'"waiting-times(-synopses|-ledger)?"$', rf'"{topics}\1"'),
        # What the topic of the test has.
        (r'column = "minutes"', 'column = "dep_delay"'),
        (r'^listen = .*$', f'listen = "127.0.0.1:{port}"'),
    ]:
        text, count = re.subn(old, new, text, flags=re.M)
        assert count >= 1, old
    return text


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A topic, a claim, and kustomizations of production that differ in their port and in whether they make the ledger."""
    folder = tmp_path_factory.mktemp("pod")
    os.chmod(folder, 0o755)
    topics = f"deploy-{os.getpid()}-{int(time.time())}"
    made = subprocess.run([PROGRAM, "produce", ROOT / "tests/data/flights.parquet", "--brokers", BROKER, "--topic", topics,
                           "--create", "1"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    found = SimpleNamespace(folder=folder, topics=topics, claim=Claim(folder / "claim", 65532), pods=[])
    yield found
    for pod in found.pods:
        pod.kill()


IN_THE_CLEAR = [(r"^brokers = .*\n(tls|sasl) = .*\n(tls|sasl) = .*$", f'brokers = "{BROKER}"')]


def overlay(place, name, port, is_init=False, reached=IN_THE_CLEAR, standby=False):
    """A copy of the overlay, changed as deploy/README.md says."""
    folder = place.folder / f"overlay-{name}"
    shutil.copytree(DEPLOY / "overlays/production", folder, dirs_exist_ok=True)
    (folder / "bernstream.toml").write_text(settings(port, place.topics, reached, standby))
    text = (folder / "kustomization.yaml").read_text()
    if is_init:
        text = text.replace("# - ../../components/ledger-init", "- ../../components/ledger-init")
    if not standby:
        text, count = re.subn(r"  - \.\./\.\./components/standby\n|  - target: .*\n    path: ledger-init.yaml\n", "", text)
        assert count == 2
    (folder / "kustomization.yaml").write_text(text.replace("../..", os.path.relpath(DEPLOY, folder)))
    objects.cache_clear()
    return folder


def worker(place, name, claim=None, secrets=SECRETS, reached=IN_THE_CLEAR, standby=False):
    port = free_port()
    kustomization = overlay(place, name, port, reached=reached, standby=standby)
    template = one("StatefulSet", "bernstream", kustomization)["spec"]["template"]
    claims = {} if standby else {"ledger": claim or place.claim}
    pod = Pod(template, kustomization, place.folder / name, claims, port, secrets)
    place.pods.append(pod)
    return pod


def ledger(place, *arguments):
    """A command beside the worker, as `kubectl exec` runs it: the same image, user and volumes."""
    pod = worker(place, "exec").start(["ledger", *arguments, "/etc/bernstream/bernstream.toml"])
    return pod.ended()


def rows(place):
    code, said = ledger(place, "export")
    assert code == 0, said
    return [line for line in said.splitlines() if line.startswith("{")]


def test_1_the_job_makes_the_ledger_and_the_topics(place):
    kustomization = overlay(place, "init", 1, is_init=True)
    job = one("Job", "bernstream-ledger-init", kustomization)["spec"]
    assert one("StatefulSet", "bernstream", kustomization)["spec"]["replicas"] == 0
    assert job["backoffLimit"] == 0
    spec = job["template"]["spec"]
    (claim,) = [v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"] if "persistentVolumeClaim" in v]
    (name,) = [c["metadata"]["name"] for c in one("StatefulSet", "bernstream", kustomization)["spec"]["volumeClaimTemplates"]]
    assert claim == f"{name}-bernstream-0", "that of the worker's pod"
    def run():
        pod = Pod(job["template"], kustomization, place.folder / "init", {"ledger": place.claim}, 1, SECRETS)
        place.pods.append(pod)
        return pod.start().ended()
    code, said = run()
    assert code == 0, said
    assert "created the witness topic" in said
    code, said = run()
    assert code == 74 and "there is a ledger in /var/lib/bernstream/ledger already" in said, said


def test_2_without_a_library_of_the_image_it_would_not_start(place):
    code, said = worker(place, "bare").start(without=["libgcc_s.so.1"]).ended()
    assert code == 127 and "libgcc_s" in said, said


def test_3_the_pod_lives_as_the_manifest_says_and_stops_in_time(place):
    pod = worker(place, "first").start()
    seconds = pod.started()
    print(f"ready after {seconds:.1f} s")
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pod.pid()}/status").read().splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["65532"] * 4 and status["Gid"].split() == ["65532"] * 4
    assert status["Groups"].split() == ["65532"]
    assert status["NSpid"].split()[1:] == ["1"], "process 1, for which signals have no defaults"
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    # What it can write: the volume of the ledger, and nothing else that is kept.
    mounts = [line.split() for line in open(f"/proc/{pod.pid()}/mountinfo")]
    assert "/" in [m[4] for m in mounts]
    writable = [m[4] for m in mounts if m[5].startswith("rw")]
    assert sorted(writable) == ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero", "/proc",
                                "/var/lib/bernstream"]
    root = f"/proc/{pod.pid()}/root"
    assert open(f"{root}/run/secrets/kafka/password").read() == SECRETS["bernstream-kafka"]["password"]
    def read_by(user, groups):
        # By a name that needs no right to the folders above.
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", groups, "cat", "password"]
        return subprocess.run(command, cwd=pod.sources["kafka"], capture_output=True, check=False).returncode == 0
    assert read_by(65532, "--clear-groups") and not read_by(1234, "--clear-groups")
    pod.until("published", lambda: pod.metric("bernstream_synopses_published_total") >= 2)
    assert pod.probe("livenessProbe")[0] == 200
    code, said, seconds = pod.stop()
    print(f"stopped after {seconds:.2f} s")
    assert code == 0, said
    assert "stopped" in said
    assert not [line for line in said.splitlines() if '"ERROR"' in line]
    code, said = ledger(place, "verify")
    assert code == 0 and said.splitlines()[-1].startswith("verified:"), said


def test_4_a_second_replica_on_the_same_ledger_is_refused(place):
    first = worker(place, "one").start()
    first.started()
    code, said = ledger(place, "show")
    assert code == 0 and "released" in said, "looking is allowed beside the worker"
    published = first.metric("bernstream_synopses_published_total")
    code, said = worker(place, "two").start().ended()
    assert code == 74, said
    assert "another worker uses the ledger" in said, said
    assert first.process.poll() is None
    first.until("goes on", lambda: first.metric("bernstream_synopses_published_total") > published)
    # With a volume of its own, as a second replica of the StatefulSet would have.
    empty = Claim(place.folder / "second-claim", 65532)
    code, said = worker(place, "three", empty).start().ended()
    assert code == 74, said
    assert "there is no ledger, but the witness or the output was written before" in said, said
    first.until("goes on", lambda: first.metric("bernstream_synopses_published_total") > published + 1)
    assert first.stop()[0] == 0


def test_5_the_dashboard_shows_the_synopses_with_no_volume_and_stops_in_time(place, tmp_path):
    kustomization = with_components(tmp_path, "base", ["dashboard"])
    template = copy.deepcopy(one("Deployment", "bernstream-dashboard", kustomization)["spec"]["template"])
    (container,) = template["spec"]["containers"]
    assert "volumes" not in template["spec"] and "volumeMounts" not in container
    port = free_port()
    instead = {"--brokers": BROKER, "--topic": f"{place.topics}-synopses", "--listen": f"127.0.0.1:{port}"}
    names = [argument.split("=")[0] for argument in container["args"]]
    assert names == ["dashboard", *instead]
    container["args"] = ["dashboard", *(f"{name}={value}" for name, value in instead.items())]
    pod = Pod(template, kustomization, place.folder / "dashboard", {}, port)
    place.pods.append(pod)
    pod.start()
    print(f"ready after {pod.until('ready', lambda: pod.probe('readinessProbe')[0] == 200):.1f} s")
    assert pod.probe("livenessProbe")[0] == 200
    pod.until("knows the synopses", lambda: '"release":"density"' in pod.get("/api/v1/synopses")[1])
    code, said, seconds = pod.stop()
    print(f"stopped after {seconds:.2f} s")
    assert code == 0, said


def test_6_a_pod_that_is_killed_goes_on_where_it_was(place):
    before = rows(place)
    pod = worker(place, "killed").start()
    pod.started()
    pod.until("released", lambda: pod.metric("bernstream_windows_released_total") >= 1)
    pod.kill()
    after = rows(place)
    assert after[: len(before)] == before and len(after) > len(before), "what was paid stays"
    pod = worker(place, "again").start()
    pod.started()
    pod.until("released", lambda: pod.metric("bernstream_windows_released_total") >= 1)
    assert pod.stop()[0] == 0
    assert rows(place)[: len(after)] == after


def test_7_a_broker_that_cannot_be_reached_neither_kills_nor_holds_the_pod(place):
    pod = worker(place, "alone")
    path = pod.sources["configuration"] / "bernstream.toml"
    path.write_text(path.read_text().replace(BROKER, f"127.0.0.1:{free_port()}"))
    pod.start()
    pod.until("alive", lambda: pod.probe("livenessProbe")[0] == 200)
    pod.until("tries again", lambda: "trying again" in pod.said())
    assert pod.probe("readinessProbe")[0] == 503
    code, said, seconds = pod.stop()
    print(f"stopped after {seconds:.2f} s")
    assert code == 0, said


def test_8_a_ledger_of_a_newer_version_is_left_alone(place):
    """As after a rollback over a change of the ledger's format."""
    (file,) = place.claim.folder.rglob("ledger.sqlite")
    def set_format(number):
        connection = sqlite3.connect(file)
        (old,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {number}")
        connection.commit()
        connection.close()
        return old
    old = set_format(1_000)
    code, said = worker(place, "older").start().ended()
    assert code == 74 and "of a newer program; use that one, nothing is lost" in said, said
    assert set_format(old) == 1_000, "it has not touched it"
    code, said = ledger(place, "verify")
    assert code == 0, said


def test_9_the_secrets_of_the_manifest_open_a_broker_that_requires_them(place):
    found = secure()
    if not found:
        pytest.skip("the broker has no listener with TLS: the secrets are NOT tested")
    address, authority, password = found
    secrets = {"bernstream-kafka": {"ca.crt": open(authority).read(), "password": open(password).read()}}
    # `tls` and `sasl` are those of production, but for the broker's name and the user's.
    reached = [(r"^brokers = .*$", f'brokers = "{address}"'), (r'username = "\w+"', 'username = "bernstream"')]
    pod = worker(place, "secure", secrets=secrets, reached=reached)
    pod.start()
    # Until it has reached the broker, or says why not.
    until = time.monotonic() + PATIENCE
    while pod.process.poll() is None and pod.probe("readinessProbe")[0] != 200 and "without TLS" not in pod.said():
        assert time.monotonic() < until, pod.said()
        time.sleep(0.05)
    if "built without TLS" in pod.said():
        pytest.skip("the program was built without TLS: the secrets are NOT tested")
    pod.started()
    pod.until("released", lambda: pod.metric("bernstream_windows_released_total") >= 1)
    assert "a secret" not in pod.said() and secrets["bernstream-kafka"]["password"].strip() not in pod.said()
    assert pod.stop()[0] == 0
    wrong = {"bernstream-kafka": {**secrets["bernstream-kafka"], "password": "wrong"}}
    code, said = worker(place, "wrong", secrets=wrong, reached=reached).start().ended()
    assert code == 78 and "correct the user name or the password in /run/secrets/kafka/password" in said, (code, said)


def published(pod):
    return pod.metric("bernstream_synopses_published_total")


def roles(one, other):
    """The pod that acts and the one that follows: three windows in a row are published by one alone. A busy pod may be taken over from
    before that."""
    seen = published(one), published(other)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        new = tuple(now - before for now, before in zip((published(one), published(other)), seen, strict=True))
        if min(new) > 0:
            seen = published(one), published(other)
        elif max(new) >= 3:
            return (one, other) if new[0] else (other, one)
        time.sleep(0.05)
    raise AssertionError(f"both publish, or none does: {one.said()} {other.said()}")


def test_10_of_two_workers_one_takes_over_when_the_other_is_killed_and_an_empty_disk_follows(place):
    place = SimpleNamespace(**{**vars(place), "topics": f"{place.topics}-two"})
    made = subprocess.run([PROGRAM, "produce", ROOT / "tests/data/flights.parquet", "--brokers", BROKER, "--topic", place.topics,
                           "--create", "1"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    kustomization = overlay(place, "two-init", 1, is_init=True, standby=True)
    assert one("StatefulSet", "bernstream", kustomization)["spec"]["replicas"] == 0
    job = one("Job", "bernstream-ledger-init", kustomization)["spec"]["template"]
    assert not [v for v in job["spec"]["volumes"] if "persistentVolumeClaim" in v]
    pod = Pod(job, kustomization, place.folder / "two-init", {}, 1, SECRETS)
    place.pods.append(pod)
    code, said = pod.start().ended()
    assert code == 0, said
    first, second = worker(place, "two-0", standby=True).start(), worker(place, "two-1", standby=True).start()
    for pod in (first, second):
        pod.started()
    acting, following = roles(first, second)
    acting.kill()
    before = published(following)
    print(f"taken over after {following.until('takes over', lambda: published(following) > before):.1f} s")
    new = worker(place, "two-2", standby=True).start()
    new.started()
    acting, following = roles(following, new)
    before = published(following)
    code, said, _ = acting.stop()
    assert code == 0, said
    print(f"handed over after {following.until('takes over', lambda: published(following) > before):.1f} s")
    code, said = worker(place, "two-look", standby=True).start(["ledger", "restore", "/etc/bernstream/bernstream.toml"]).ended()
    assert code == 0, said
    assert following.stop()[0] == 0
