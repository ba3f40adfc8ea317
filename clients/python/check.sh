#!/usr/bin/env bash
# Runs every check of this package, in an environment that it makes from nothing.
set -euo pipefail
cd "$(dirname "$0")"
python3 -m venv --clear .venv
.venv/bin/pip install --quiet --editable '.[dev]'
.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/mypy --strict
.venv/bin/pytest
rm -rf dist
.venv/bin/pip wheel --quiet --no-deps --wheel-dir dist .
echo "all checks passed"
