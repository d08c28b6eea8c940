#!/usr/bin/env bash
# Pins what the packages ask for: every requirements*.lock, by uv, which is fetched and thrown away.
set -euo pipefail
# The extras that the tests have beside the core; the heavy ones are in requirements-extra.txt.
light=()
for extra in pdf parquet references xlsx zim fast edge qdrant graph math plot export serve; do light+=(--extra $extra); done
core=(packages/osler/pyproject.toml --group pyproject.toml:build)
near=(--constraint requirements-dev.lock)

pin() { # the lock, and what it is made of
  .lock-tool/bin/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate \
    --no-emit-package osler --no-emit-package osler-lab --no-emit-package osler-serve \
    "${@:2}" -o "requirements$1.lock"
}

trap 'rm -rf .lock-tool' EXIT
"${PYTHON:-python3}" -m pip install --quiet --target .lock-tool uv
pin "" "${core[@]}"
pin -dev "${core[@]}" --group pyproject.toml:dev "${light[@]}"
pin -docs "${core[@]}" --group pyproject.toml:docs --extra serve "${near[@]}"
pin -libraries "${core[@]}" --group pyproject.toml:libraries --extra langchain --extra llama-index --extra haystack "${near[@]}"
pin -mutants --group pyproject.toml:mutants "${near[@]}"
pin -linters --group pyproject.toml:linters
pin -extra --no-deps requirements-extra.txt
pin -litellm --group pyproject.toml:litellm
pin -llama-cpp-python --group pyproject.toml:llama-cpp-python
