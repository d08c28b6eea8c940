#!/usr/bin/env bash
# Every test under branch coverage: what was missed, by file, and the figures in all.
set -euo pipefail
python=.venv/bin/python
rm -rf .venv/coverage && mkdir -p .venv/coverage
tests=0
$python -m coverage run -m pytest || tests=$?
$python -m coverage combine --quiet
$python -m coverage report
$python -m coverage json --quiet -o - | $python -c 'import json, sys
t = json.load(sys.stdin)["totals"]
print("branches: {covered_branches:,} of {num_branches:,} ({percent_branches_covered:.1f} %)".format(**t))
print("statements: {covered_lines:,} of {num_statements:,} ({percent_statements_covered:.1f} %)".format(**t))'
exit $tests
