#!/usr/bin/env bash
# Whether deploy/ is what it says: the manifests render and are valid, pods may do nothing that they need not, the Dockerfile copies
# what is there; and the program, run as the manifest says, lives, is probed, stops, and lets no second one near its ledger.
#
#   tests/deploy.sh            everything; the pod needs root and BERNSTREAM_TEST_KAFKA, and is skipped, loudly, without
#   tests/deploy.sh install    only what it needs
#   tests/deploy.sh write      writes the alerts of deploy/monitoring into their component
#
# BERNSTREAM_TEST_PROGRAM names the program, else target/debug/bernstream. What is needed is installed into target/.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "deploy.sh: $*" >&2; exit 1; }

# A virtual environment of its own, made again where what it should hold has changed.
wanted=tests/kubernetes/requirements.txt
env=target/deploy-env
if ! cmp -s "$wanted" "$env/installed.txt"; then
    command -v python3 >/dev/null || die "needs Python 3: apt-get install python3-venv"
    rm -rf "$env"
    python3 -m venv "$env" || die "needs Python's venv: apt-get install python3-venv"
    "$env/bin/pip" install -q --disable-pip-version-check -r "$wanted"
    cp "$wanted" "$env/installed.txt"
fi

# kubectl has a kustomize in it; without kubectl, Go can build one.
if command -v kubectl >/dev/null; then
    export BERNSTREAM_KUSTOMIZE="kubectl kustomize"
elif command -v kustomize >/dev/null; then
    export BERNSTREAM_KUSTOMIZE="kustomize build"
else
    if [ ! -x target/deploy-bin/kustomize ] && command -v go >/dev/null; then
        GOBIN=$PWD/target/deploy-bin go install sigs.k8s.io/kustomize/kustomize/v5@v5.8.3
    fi
    if [ -x target/deploy-bin/kustomize ]; then
        export BERNSTREAM_KUSTOMIZE="$PWD/target/deploy-bin/kustomize build"
    elif [ -n "${CI:-}" ]; then
        die "CI needs kubectl, kustomize or Go"
    else
        echo "deploy.sh: no kubectl, kustomize or Go: the manifests are NOT tested" >&2
        exit 0
    fi
fi

case ${1:-} in
    "") exec "$env/bin/python" -m pytest -q -rs -p no:cacheprovider tests/kubernetes ;;
    install) ;;
    write) exec "$env/bin/python" tests/kubernetes/alerts.py ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
