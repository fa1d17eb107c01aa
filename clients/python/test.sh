#!/bin/sh
# Tests the Python client, its recipes and its types, in a virtual environment that later runs reuse; `install` only makes that.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
environment=${BERNSTREAM_PYTHON_ENV:-$here/.venv}
python=${PYTHON:-python3}

[ -x "$environment/bin/python" ] || "$python" -m venv "$environment"
if ! cmp -s "$here/requirements-test.txt" "$environment/installed"; then
    "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements-test.txt"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable "$here"
    cp "$here/requirements-test.txt" "$environment/installed"
fi
[ "${1:-}" != install ] || exit 0
cd "$here"
# For small matrices threads would only wait for each other.
export OPENBLAS_NUM_THREADS=1
"$environment/bin/ruff" check --quiet .
"$environment/bin/ruff" format --quiet --check .
"$environment/bin/mypy" --no-error-summary
"$environment/bin/pytest" -rs "$@"
