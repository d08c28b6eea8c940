#!/usr/bin/env bash
# The page in the machine's own Chromium; where Node or Chromium is not there it says so and ends.
set -euo pipefail
if ! command -v npm >/dev/null; then
  echo "not tried: the page needs Node 20 or newer"
elif ! command -v chromium >/dev/null; then
  echo "not tried: there is no chromium"
else
  make page
  .venv/bin/python -m pytest -rs tests/journeys/page tests/unit/serve/test_page_files.py
fi
