"""The API keeps to its own schema: a few requests of each kind; `make fuzz` makes thousands."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest
from served import serve_osler

pytest.importorskip("schemathesis")


@pytest.mark.filterwarnings("ignore::Warning:schemathesis", "ignore::pytest.PytestWarning")
def test_api_fuzzing_finds_no_server_error_and_no_reply_outside_the_schema(home: Path) -> None:
    from fuzz_api import LIMITS, fuzz

    with serve_osler(home, serve=LIMITS) as place:
        seen = fuzz(place.url, 2)
        paths = httpx2.get(f"{place.url}/openapi.json").json()["paths"]
    operations = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
    assert {label for label, _ in seen} == operations
    assert {status for _, status in seen} <= {200, 201, 202, 204, 400, 403, 404, 409, 412, 422}


def test_every_form_that_the_schema_names_is_in_it(home: Path) -> None:
    with serve_osler(home) as place:
        reply = httpx2.get(f"{place.url}/openapi.json")
    named = set(re.findall(r'"#/components/schemas/([^"]+)"', reply.text))
    assert named <= reply.json()["components"]["schemas"].keys()
