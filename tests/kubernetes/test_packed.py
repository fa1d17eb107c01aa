"""What deploy/image.py packs: a program that runs elsewhere, and an image whose root is all that it needs."""

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib

import pytest
import yaml
from dockerfile_parse import DockerfileParser

from pod import PROGRAM
from rendered import DEPLOY, ROOT

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built: the image is NOT tested")
NAME = f"bernstream-{tomllib.loads((ROOT / 'Cargo.toml').read_text())['workspace']['package']['version']}-linux-{os.uname().machine}"


def pack(program, folder):
    command = [DEPLOY / "image.py", "--program", program, "--revision", "test", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The folder of the packed files, and what was said."""
    folder = tmp_path_factory.mktemp("packed")
    program = folder / "bernstream"
    # What lets a debugger find its way is three quarters of it.
    if not shutil.which("strip") or subprocess.run(["strip", "-o", program, PROGRAM], check=False).returncode != 0:
        shutil.copy(PROGRAM, program)
    said = pack(program, folder / "dist")
    return folder, said


@pytest.fixture(scope="module")
def layout(packed):
    """The blobs of the layout by their digest, each of which is what its name says, and the index."""
    with tarfile.open(packed[0] / f"dist/{NAME}.oci.tar") as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar if one.isfile()}
    assert json.loads(files.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(files.pop("index.json"))
    blobs = {name.removeprefix("blobs/sha256/"): content for name, content in files.items()}
    assert all(hashlib.sha256(content).hexdigest() == digest for digest, content in blobs.items())
    return blobs, index


def read(blobs, descriptor):
    content = blobs[descriptor["digest"].removeprefix("sha256:")]
    assert len(content) == descriptor["size"]
    return content


def manifest(layout):
    blobs, index = layout
    (only,) = index["manifests"]
    return json.loads(read(blobs, only))


def config(layout):
    return json.loads(read(layout[0], manifest(layout)["config"]))


def layers(layout):
    return [gzip.decompress(read(layout[0], layer)) for layer in manifest(layout)["layers"]]


def test_the_layout_is_whole(layout):
    found = manifest(layout)
    assert found["schemaVersion"] == 2 and found["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert {layer["mediaType"] for layer in found["layers"]} == {"application/vnd.oci.image.layer.v1.tar+gzip"}
    digests = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers(layout)]
    assert config(layout)["rootfs"] == {"type": "layers", "diff_ids": digests}
    assert len(layout[0]) == 2 + len(digests), "nothing else is in it"


def test_the_image_is_run_as_the_one_of_the_dockerfile(layout, tmp_path):
    (tmp_path / "Dockerfile").write_text((DEPLOY / "Dockerfile").read_text())
    last = {line["instruction"]: line["value"] for line in DockerfileParser(str(tmp_path)).structure}
    found = config(layout)["config"]
    assert found["User"] == last["USER"]
    assert found["Entrypoint"] == yaml.safe_load(last["ENTRYPOINT"])
    assert found["Cmd"] == yaml.safe_load(last["CMD"])
    assert set(found["ExposedPorts"]) == {f"{port}/tcp" for port in last["EXPOSE"].split()}
    labels = set(re.findall(r"(org\.opencontainers\.image\.\w+)=", last["LABEL"]))
    assert set(found["Labels"]) == labels
    assert found["Labels"]["org.opencontainers.image.revision"] == "test"


def test_the_same_program_makes_the_same_bytes(packed):
    folder, said = packed
    assert pack(folder / "bernstream", folder / "again") == said
    for path in (folder / "dist").iterdir():
        assert path.read_bytes() == (folder / "again" / path.name).read_bytes(), path.name


def test_the_program_says_how_new_a_c_library_it_needs(packed, tmp_path):
    folder, said = packed
    with tarfile.open(folder / f"dist/{NAME}.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    assert {path.name for path in (tmp_path / NAME).iterdir()} == {"bernstream", "LICENSE-APACHE", "LICENSE-MIT"}
    done = subprocess.run([tmp_path / NAME / "bernstream", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("bernstream ")
    if "static" not in said:
        needed = re.search(r"needs glibc ([\d.]+) or newer", said).group(1)
        here = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
        numbers = [tuple(map(int, version.split("."))) for version in (needed, here)]
        assert (2, 28) <= numbers[0] <= numbers[1], said
    for path in (folder / "dist").iterdir():
        assert f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" in said


RECORDS = "time,origin,dep_delay\n" + "".join(f"2013-01-01T{hour:02}:30:00Z,EWR,{hour}\n" for hour in range(6, 24))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root: the image is NOT run")
def test_the_root_of_the_image_is_all_that_a_worker_needs(layout, tmp_path):
    root = tmp_path / "root"
    for layer in layers(layout):
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            tar.extractall(root, filter="fully_trusted")
    text = (ROOT / "config/files.toml").read_text()
    text = re.sub(r"^key = .*\n", 'key = { column = "origin", type = "text", values = ["EWR"] }\n', text, flags=re.M)
    text = text.replace('"flights" }', '"/tmp/flights.csv" }').replace("2014-01-01T05", "2013-01-02T05")
    # Where it may write.
    for name in ("out", "ledger"):
        text = text.replace(f'path = "{name}/files"', f'path = "/tmp/{name}"')
    (root / "etc/bernstream").mkdir()
    (root / "etc/bernstream/bernstream.toml").write_text(text)
    (root / "tmp/flights.csv").write_text(RECORDS)
    found = config(layout)["config"]
    environment = dict(one.split("=", 1) for one in found["Env"])

    def run(*arguments):
        user = f"--userspec={found['User']}"
        command = [shutil.which("chroot"), user, "--groups=", root, *found["Entrypoint"], *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert run("--version").stdout.startswith("bernstream ")
    done = run(*found["Cmd"])
    assert done.returncode == 0, done.stderr
    (synopsis,) = (root / "tmp/out").rglob("*.arrows")
    assert synopsis.stat().st_uid == 65532
    asked = run("evaluate", f"/{synopsis.relative_to(root)}", "--at", "10")
    assert asked.returncode == 0 and re.search(r"\d", asked.stdout), asked.stderr
    # What it cannot do without is there because it was packed: without one library it does not run.
    library = next((root / "usr/lib").rglob("libgcc_s.so.1"))
    library.unlink()
    assert "libgcc_s.so.1" in run("--version").stderr
