"""The program takes the arguments that the manifests give it."""

import re
import subprocess

import pytest

from pod import PROGRAM
from rendered import OVERLAYS, pods, with_components


def helped(*command):
    """The options of a command, by its own help."""
    done = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"^\s+(?:-\w, )?(--[\w-]+)", done.stdout, flags=re.M))


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built: its arguments are NOT tested")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_argument_is_one(overlay, tmp_path):
    seen = []
    for _, template in pods(with_components(tmp_path, f"overlays/{overlay}", ["ledger-init", "absorbers"])):
        for container in template["spec"]["containers"]:
            if container["image"].startswith("apache/kafka"):
                continue
            words = container["args"]
            command = words[:2] if words[0] == "ledger" else words[:1]
            options = {word.split("=")[0] for word in words if word.startswith("--")}
            assert options <= helped(*command), command
            seen.append(" ".join(command))
    assert sorted(seen) == ["absorb", "dashboard", "ledger init", "run"]
