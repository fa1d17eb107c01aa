"""Runs a program the way a container engine would, as far as one can without: namespaces of its own, a root that holds only what
the image holds and cannot be written, no capability, no new privileges, the user, group and mounts of the manifest. What it
cannot show: the seccomp profile, the limit of memory, a network of its own, the base image's own versions of the libraries.

Run as a program of its own, with a description as JSON in the first argument; exits as the contained program did.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

NEW = 0x00020000 | 0x20000000 | 0x08000000 | 0x04000000  # mounts, processes, IPC, host name
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
# The libraries of gcr.io/distroless/cc-debian13: libc6, libssl3t64, zlib1g, libzstd1, libgcc-s1, libstdc++6, libgomp1.
LIBRARIES = (
    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
    "libresolv.so.2", "libnss_dns.so.2", "libnss_files.so.2", "libssl.so.3", "libcrypto.so.3", "libz.so.1", "libzstd.so.1",
    "libgcc_s.so.1", "libstdc++.so.6", "libgomp.so.1",
)
DEVICES = ("null", "zero", "full", "random", "urandom")
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def bind(source, target, is_read_only=True):
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount("--bind", source, target)
    if is_read_only:
        mount("-o", "remount,bind,ro", target)


def libraries():
    """Where this machine has what the image has."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listed.splitlines():
        name, _, place = line.strip().partition(" => ")
        found.setdefault(name.split(" ")[0], place)
    return [found[name] for name in LIBRARIES if name in found]


def build(root, wanted):
    """The root of the image, with the mounts of the pod."""
    mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", root)
    for folder in ("lib", "lib64"):
        (root / "usr" / folder).mkdir(parents=True)
        (root / folder).symlink_to(f"usr/{folder}")
    for place in libraries():
        name = Path(place).name
        if name in wanted["without"]:
            continue
        bind(os.path.realpath(place), root / "usr" / place.removeprefix("/usr").lstrip("/"))
        if name.startswith("ld-linux"):
            # Where programs ask for it.
            (root / "usr" / ("lib64" if "x86-64" in name else "lib") / name).symlink_to(f"/usr{place.removeprefix('/usr')}")
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")
    (root / "etc/group").write_text("root:x:0:\nnonroot:x:65532:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    (root / "home/nonroot").mkdir(parents=True)
    (root / "tmp").mkdir(mode=0o1777)
    # By the engine, and by the kubelet.
    for name in ("resolv.conf", "hosts"):
        bind(f"/etc/{name}", root / "etc" / name)
    for name in DEVICES:
        bind(f"/dev/{name}", root / "dev" / name, is_read_only=False)
    bind(wanted["program"], root / wanted["entrypoint"].lstrip("/"))
    for place in wanted["mounts"]:
        bind(place["source"], root / place["path"].lstrip("/"), place["read_only"])
    (root / "proc").mkdir()
    mount("-t", "proc", "proc", root / "proc")
    if wanted["read_only"]:
        mount("-o", "remount,ro", root)


def enter(wanted):
    """Never returns: becomes the program, as process 1."""
    # Dies with the one that started it.
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    root = Path(wanted["root"])
    mount("--make-rprivate", "/")
    build(root, wanted)
    os.chroot(root)
    os.chdir(wanted["folder"])
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    os.setgroups(wanted["groups"])
    os.setresgid(wanted["group"], wanted["group"], wanted["group"])
    os.setresuid(wanted["user"], wanted["user"], wanted["user"])
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    # A change of user forgets it.
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    os.umask(0o022)
    os.execve(wanted["entrypoint"], [wanted["entrypoint"], *wanted["arguments"]], wanted["environment"])


def main():
    wanted = json.loads(sys.argv[1])
    # The next process that is made is process 1 of the new namespace.
    check(libc.unshare(NEW), "unshare")
    child = os.fork()
    if child == 0:
        try:
            enter(wanted)
        except BaseException as error:
            print(f"container.py: {error}", file=sys.stderr, flush=True)
        os._exit(125)
    Path(wanted["pid_file"]).write_text(str(child))
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status) % 256)


if __name__ == "__main__":
    main()
