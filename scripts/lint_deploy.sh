#!/usr/bin/env bash
# The files of `osler deploy`, by the linters of each kind; systemd's own where it is installed.
set -euo pipefail
bin=.venv/linters/bin
files=packages/osler-serve/src/osler_serve/deploy
$bin/hadolint $files/Containerfile
$bin/check-jsonschema --builtin-schema vendor.compose-spec $files/compose.yaml
$bin/kubernetes-validate --strict $files/kubernetes.yaml
if command -v systemd-analyze >/dev/null; then
  systemd-analyze security --offline=true --threshold=50 $files/osler.service
fi
