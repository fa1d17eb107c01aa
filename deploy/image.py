#!/usr/bin/env python3
"""Packs a program that is built into what somebody can just take, without a container engine:

    cargo build --release --locked --features tls
    deploy/image.py dist

writes into the folder `dist`

    bernstream-VERSION-linux-ARCH.tar.gz    the program and its licences; runs where the C library is as new as is said
    bernstream-VERSION-linux-ARCH.oci.tar   an OCI image layout: `podman load -i`, `skopeo copy oci-archive:...`, `ctr images import`

The image has what the Dockerfile's has: the program, the libraries that it links, public CA certificates, a user, no shell.
Libraries and certificates are those of this machine, so build on a Debian that gets security fixes, and again when it got some.
The same program, libraries and revision give the same bytes. Only Python's standard library is needed.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import struct
import subprocess
import sys
import tarfile
import tomllib
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = "usr/local/bin/bernstream"
USER = 65532
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
# By the numbers of ELF.
MACHINES = {62: ("amd64", "x86_64"), 183: ("arm64", "aarch64")}
TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/home/nonroot:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


class Elf:
    """What a 64-bit, little-endian program or library asks of its surroundings."""

    def __init__(self, path):
        self.bytes = Path(path).read_bytes()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"image.py: {path} is no 64-bit, little-endian program of Linux")
        self.machine = struct.unpack_from("<H", self.bytes, 18)[0]
        offset, size, count = *struct.unpack_from("<Q", self.bytes, 40), *struct.unpack_from("<HH", self.bytes, 58)
        # Type, offset, size and the section with its names.
        self.sections = []
        for at in range(offset, offset + size * count, size):
            _, kind, _, _, start, length, link = struct.unpack_from("<IIQQQQI", self.bytes, at)
            self.sections.append((kind, start, length, link))

    def name(self, link, at):
        start = self.sections[link][1] + at
        return self.bytes[start : self.bytes.index(0, start)].decode()

    def interpreter(self):
        """Who loads the libraries; nobody, if the program is static."""
        offset, size, count = *struct.unpack_from("<Q", self.bytes, 32), *struct.unpack_from("<HH", self.bytes, 54)
        for at in range(offset, offset + size * count, size):
            kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", self.bytes, at)
            if kind == 3:  # PT_INTERP
                return self.bytes[start : start + length].rstrip(b"\0").decode()
        return None

    def libraries(self):
        """The names of the libraries that it links."""
        found = []
        for kind, start, length, link in self.sections:
            if kind == 6:  # SHT_DYNAMIC
                entries = struct.iter_unpack("<qQ", self.bytes[start : start + length])
                found += [self.name(link, value) for tag, value in entries if tag == 1]  # DT_NEEDED
        return found

    def glibc(self):
        """The oldest glibc that has all that it needs, as numbers; None if it needs none."""
        versions = []
        for kind, at, _, link in self.sections:
            more = kind == 0x6FFFFFFE  # SHT_GNU_verneed
            while more:
                _, count, _, first, more = struct.unpack_from("<HHIII", self.bytes, at)
                one = at + first
                for _ in range(count):
                    _, _, _, name, following = struct.unpack_from("<IHHII", self.bytes, one)
                    versions += re.findall(r"^GLIBC_([\d.]+)$", self.name(link, name))
                    one += following
                at += more
        return max((tuple(map(int, version.split("."))) for version in versions), default=None)


def known_libraries():
    """Where this machine has its libraries, by name, those of its own kind first."""
    ldconfig = next((path for path in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if os.path.exists(path)), "ldconfig")
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        name, _, place = line.strip().partition(" => ")
        if place and struct.calcsize("P") == 8 and ("64" in name or "AArch64" in name):
            found.setdefault(name.split(" ")[0], place)
    return found


def needed(program):
    """The libraries of a program and theirs, and the loader: where they are wanted, and where they are now."""
    known, found, left = known_libraries(), {}, Elf(program).libraries()
    while left:
        name = left.pop()
        if name in found:
            continue
        if name not in known:
            raise SystemExit(f"image.py: this machine has no {name}, which the program needs")
        found[name] = known[name]
        left += Elf(known[name]).libraries()
    places = {merged(place): os.path.realpath(place) for place in found.values()}
    interpreter = Elf(program).interpreter()
    if interpreter:
        places[merged(interpreter)] = os.path.realpath(interpreter)
    return places


def merged(place):
    """A path of the image, in which /lib and /lib64 are links into /usr."""
    return re.sub(r"^(?=lib(64)?/)", "usr/", place.lstrip("/"))


def licences(places):
    """The licences of the packages of this machine's files, where it is a Debian."""
    try:
        asked = [place for source in places for place in (source, source.removeprefix("/usr"))]
        told = subprocess.run(["dpkg-query", "-S", *asked], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return {}
    packages = sorted({line.split(":")[0] for line in told.splitlines()} | {"ca-certificates"})
    texts = [f"/usr/share/doc/{package}/copyright" for package in packages]
    return {text.lstrip("/"): os.path.realpath(text) for text in texts if os.path.exists(text)}


class Layer:
    """A tar whose bytes depend on what is in it alone."""

    def __init__(self):
        self.made = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.made, mode="w", format=tarfile.PAX_FORMAT)
        self.folders = set()

    def add(self, path, kind=tarfile.REGTYPE, content=b"", mode=0o644, link="", owner=0):
        for parent in reversed(Path(path).parents[:-1]):
            self.folder(str(parent))
        one = tarfile.TarInfo(path)
        one.type, one.size, one.mode, one.linkname = kind, len(content), mode, link
        one.uid = one.gid = owner
        self.tar.addfile(one, io.BytesIO(content))
        return self

    def folder(self, path, mode=0o755, owner=0):
        if path not in self.folders:
            self.folders.add(path)
            self.add(path, tarfile.DIRTYPE, mode=mode, owner=owner)
        return self

    def close(self):
        self.tar.close()
        return self.made.getvalue()


def surroundings(program):
    """The layer below the program."""
    layer = Layer()
    places = needed(program)
    for folder in ("usr/lib", "usr/lib64"):
        layer.folder(folder)
    for link in ("lib", "lib64"):
        layer.add(link, tarfile.SYMTYPE, mode=0o777, link=f"usr/{link}")
    layer.folder("tmp", 0o1777).folder("home").folder("home/nonroot", 0o700, USER)
    for path, text in TEXTS.items():
        layer.add(path, content=text.encode())
    for path, source in sorted((places | licences(places.values()) | {CERTIFICATES: f"/{CERTIFICATES}"}).items()):
        layer.add(path, content=Path(source).read_bytes(), mode=0o755 if path in places else 0o644)
    return layer.close()


def ours(layer, program, place):
    """The program and its licences."""
    layer.add(place, content=Path(program).read_bytes(), mode=0o755)
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        folder = "usr/share/doc/bernstream" if place == PLACE else os.path.dirname(place)
        layer.add(f"{folder}/{name}", content=(ROOT / name).read_bytes())
    return layer.close()


def zipped(content):
    return gzip.compress(content, 6, mtime=0)


class Layout:
    """An OCI image layout (image-spec 1.1) as one tar."""

    def __init__(self):
        self.layer = Layer().add("oci-layout", content=b'{"imageLayoutVersion":"1.0.0"}')
        self.layer.folder("blobs").folder("blobs/sha256")

    def blob(self, kind, content):
        digest = hashlib.sha256(content).hexdigest()
        self.layer.add(f"blobs/sha256/{digest}", content=content)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    def document(self, kind, content):
        return self.blob(kind, json.dumps(content, sort_keys=True).encode())


def image(program, version, revision, architecture):
    layers = [surroundings(program), ours(Layer(), program, PLACE)]
    layout = Layout()
    descriptors = [layout.blob("layer.v1.tar+gzip", zipped(layer)) for layer in layers]
    created = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    label = "org.opencontainers.image."
    labels = {
        "title": "bernstream",
        "description": "Private functions from a stream",
        "licenses": "MIT OR Apache-2.0",
        "version": version,
        "revision": revision,
        "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    config = layout.document("config.v1+json", {
        "architecture": architecture,
        "os": "linux",
        "created": labels["created"],
        "config": {
            "User": f"{USER}:{USER}",
            "Env": ["PATH=/usr/local/bin", f"SSL_CERT_FILE=/{CERTIFICATES}"],
            "Entrypoint": [f"/{PLACE}"],
            "Cmd": ["run", "/etc/bernstream/bernstream.toml"],
            "ExposedPorts": {"9464/tcp": {}, "9465/tcp": {}},
            "WorkingDir": "/",
            "Labels": {label + name: value for name, value in labels.items()},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
    })
    manifest = layout.document("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": descriptors,
    })
    manifest["annotations"] = {f"{label}ref.name": f"bernstream:{version}"}
    manifest["platform"] = {"architecture": architecture, "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}
    return layout.layer.add("index.json", content=json.dumps(index, sort_keys=True).encode()).close()


def revision_here():
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write")
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/bernstream")
    parser.add_argument("--revision", help="the commit; else what is checked out")
    wanted = parser.parse_args()
    if not wanted.program.exists():
        raise SystemExit(f"image.py: there is no {wanted.program}: cargo build --release --locked --features tls")
    elf = Elf(wanted.program)
    if elf.machine not in MACHINES or MACHINES[elf.machine][1] != platform.machine():
        raise SystemExit("image.py: the program is for another kind of machine, and its libraries are not here")
    architecture, machine = MACHINES[elf.machine]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    name = f"bernstream-{version}-linux-{machine}"
    wanted.folder.mkdir(parents=True, exist_ok=True)
    (wanted.folder / f"{name}.tar.gz").write_bytes(zipped(ours(Layer(), wanted.program, f"{name}/bernstream")))
    packed = image(wanted.program, version, wanted.revision or revision_here(), architecture)
    (wanted.folder / f"{name}.oci.tar").write_bytes(packed)
    if elf.interpreter() is None:
        print(f"{name}: static, needs no library")
    else:
        oldest = ".".join(map(str, elf.glibc() or ()))
        print(f"{name}: needs glibc {oldest} or newer, and {', '.join(sorted(elf.libraries()))}")
    for path in sorted(wanted.folder.glob(f"{name}.*")):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}")


if __name__ == "__main__":
    sys.exit(main())
