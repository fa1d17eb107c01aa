"""The other files of deploy/: Dockerfile, compose, systemd."""

import re
import shutil
import subprocess
import tomllib

import compose_spec
import pytest
import yaml
from dockerfile_parse import DockerfileParser

from rendered import DEPLOY, ROOT, configuration, one


def parsed(tmp_path, text):
    (tmp_path / "Dockerfile").write_text(text)
    return DockerfileParser(str(tmp_path)).structure


def stages(structure):
    found = []
    for line in structure:
        if line["instruction"] == "FROM":
            found.append([])
        if found:
            found[-1].append((line["instruction"], line["value"]))
    return found


@pytest.fixture
def dockerfile(tmp_path):
    return parsed(tmp_path, (DEPLOY / "Dockerfile").read_text())


def copied(stage):
    return [value.split() for instruction, value in stage if instruction == "COPY"]


def test_the_dockerfile_builds_in_one_image_and_ships_in_another(dockerfile):
    known = {"ARG", "FROM", "WORKDIR", "ENV", "COPY", "RUN", "LABEL", "USER", "EXPOSE", "ENTRYPOINT", "CMD", "COMMENT"}
    assert {line["instruction"] for line in dockerfile} <= known
    build, ship = stages(dockerfile)
    bases = dict(line["value"].split("=", 1) for line in dockerfile if line["instruction"] == "ARG" and "=" in line["value"])
    toolchain = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    # Built with the libraries that it meets: one Debian for both.
    assert (build[0][1], bases["RUST"]) == ("${RUST} AS build", f"rust:{toolchain}-trixie")
    assert (ship[0][1], bases["BASE"]) == ("${BASE}", "gcr.io/distroless/cc-debian13:nonroot")
    assert [value for i, value in build if i == "RUN" and value.count("--features tls")] != []
    assert [instruction for instruction, _ in ship].count("COPY") == 1
    last = dict(ship)
    assert last["USER"] == "65532:65532"
    assert last["RUN"] == '["/usr/local/bin/bernstream", "--version"]', "without a shell, in the image that is shipped"
    assert last["ENTRYPOINT"] == '["/usr/local/bin/bernstream"]'
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+(?:\.name)?)=", last["LABEL"]))
    assert labels == {"title", "description", "licenses", "version", "revision", "created", "base.name"}
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert bases["VERSION"] == version


def test_the_image_is_what_the_manifest_runs(dockerfile):
    last = dict(stages(dockerfile)[-1])
    pod = one("StatefulSet", "bernstream", DEPLOY / "base")["spec"]["template"]["spec"]
    security = pod["securityContext"]
    assert last["USER"] == f"{security['runAsUser']}:{security['runAsGroup']}"
    assert yaml.safe_load(last["CMD"]) == pod["containers"][0]["args"]
    assert "command" not in pod["containers"][0]
    dashboard = one("Deployment", "bernstream-dashboard", DEPLOY / "overlays/dev")["spec"]["template"]["spec"]
    ports = [spec["containers"][0]["ports"][0]["containerPort"] for spec in (pod, dashboard)]
    assert last["EXPOSE"] == " ".join(map(str, ports))


def test_all_that_is_compiled_in_is_copied(dockerfile):
    sources = [source for words in copied(stages(dockerfile)[0]) for source in words[:-1]]
    for source in sources:
        assert (ROOT / source).exists(), source
    # Files from outside of their own folder that the library or the program includes, but for those of tests.
    included = 0
    for path in [*ROOT.glob("src/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs")]:
        code = path.read_text().split("#[cfg(test)]")[0]
        if path.name == "tests.rs":
            continue
        for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', re.sub(r"^\s*//.*$", "", code, flags=re.M)):
            wanted = (path.parent / name).resolve().relative_to(ROOT)
            assert any(wanted.is_relative_to(source) for source in sources), f"{path.name} includes {wanted}"
            included += 1
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert ignored[1] == "*", "nothing is sent but what is listed"
    # A folder has its manifests in it.
    folders = {source for source in sources if not source.startswith("crates/")}
    assert {line[1:] for line in ignored if line.startswith("!")} == folders
    crates = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("crates/*/Cargo.toml"))]
    assert [source for source in sources if source.startswith("crates/")] == crates
    tracked = subprocess.run(["git", "ls-files", *sources], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert len(tracked.splitlines()) > 50


def test_dependencies_are_built_before_the_source_is_copied(dockerfile):
    build = stages(dockerfile)[0]
    order = [i for i, (instruction, value) in enumerate(build) if "cargo build" in value or value == "crates crates"]
    assert len(order) == 3 and build[order[1]] == ("COPY", "crates crates")
    # Every bench that the manifest names needs a file, or cargo refuses it.
    script = re.search(r"\$\((sed .*? Cargo\.toml)\)", build[order[0]][1]).group(1)
    named = subprocess.run(script, shell=True, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert named == [f"benches/{one['name']}.rs" for one in manifest["bench"]]
    assert "example" not in manifest and "test" not in manifest, "these need files too"


def compose(text):
    # The library knows no YAML merges; they are resolved before.
    file = compose_spec.PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(text)))
    file.validate()
    return yaml.safe_load(text)


def test_the_compose_file_is_sound():
    file = compose((DEPLOY / "compose.yaml").read_text())
    services = file["services"]
    for name in ("worker", "dashboard"):
        service = services[name]
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        assert service["user"] == "65532:65532" and service["read_only"] and service["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert set(service["depends_on"]) <= set(services)
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in file["volumes"]
    assert not any("ledger" in volume for volume in services["dashboard"].get("volumes", []))
    kafka = one("Deployment", "kafka", DEPLOY / "overlays/dev")["spec"]["template"]["spec"]["containers"][0]
    assert services["kafka"]["image"] == kafka["image"]
    version = re.search(r"kafka_2.13</artifactId>\s*<version>([\d.]+)", (ROOT / "tests/kafka-pom.xml").read_text()).group(1)
    assert kafka["image"] == f"apache/kafka:{version}", "the broker that the tests know"
    arguments = one("Deployment", "bernstream-dashboard", DEPLOY / "overlays/dev")["spec"]["template"]["spec"]
    assert services["dashboard"]["command"] == arguments["containers"][0]["args"]


@pytest.mark.parametrize("word", ["read_only", "cap_drop", "depends_on", "service_completed_successfully"])
def test_a_misspelt_word_of_the_compose_file_is_noticed(word):
    text = (DEPLOY / "compose.yaml").read_text()
    assert word in text
    with pytest.raises(ValueError):
        compose(text.replace(word, word + "s"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze: the unit is NOT verified")
def test_the_unit_is_sound_and_hardened(tmp_path):
    text = (DEPLOY / "bernstream.service").read_text()
    def verify(text):
        # The program need not be installed where this is tested.
        unit = tmp_path / "bernstream.service"
        unit.write_text(text.replace("/usr/local/bin/bernstream", "/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
        return [line for line in (done.stdout + done.stderr).splitlines() if "bernstream.service" in line]
    assert verify(text) == []
    assert verify(text.replace("ProtectHome", "ProtectHomes")) != []
    secure = ["systemd-analyze", "security", "--offline=yes", "--threshold=15", DEPLOY / "bernstream.service"]
    done = subprocess.run(secure, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:]
    codes = set(re.search(r"RestartPreventExitStatus=(.*)", text).group(1).split())
    assert codes == {"2", "74", "78"}
    pod = one("StatefulSet", "bernstream", DEPLOY / "base")["spec"]["template"]["spec"]
    assert f"TimeoutStopSec={pod['terminationGracePeriodSeconds']}s" in text
    assert tomllib.loads(configuration(DEPLOY / "base"))["ledger"]["path"].startswith("/var/lib/bernstream")
    assert "StateDirectory=bernstream" in text


def test_every_configuration_of_the_folder_is_used():
    used = {configuration(DEPLOY / place) for place in ("base", "overlays/dev", "overlays/production")}
    assert used == {path.read_text() for path in DEPLOY.rglob("*.toml")}
