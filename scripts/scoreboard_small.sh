#!/usr/bin/env bash
# The small scoreboard on the sample base, in the home $1; fails where a row leaves its published
# interval.
set -euo pipefail
export OSLER__HOME=$1
osler=.venv/bin/osler
$osler download-models >/dev/null
$osler kb build --sample >/dev/null
$osler kb graph add --sample >/dev/null
$osler scoreboard --plan small --log-dir "$1/log" --out "$1" --against benchmarks/scoreboard/small.csv
