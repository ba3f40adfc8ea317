#!/usr/bin/env bash
# Runs every check of this package, from what its lock file names.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf build dist
npm ci --no-audit --no-fund --loglevel=error
npm run --silent typecheck
npm test --silent
npm pack --silent --dry-run
echo "all checks passed"
