"""The HTTP API against its own schema: requests that fit it and requests that do not.

    python benchmarks/fuzz_api.py [--cases N] [--seed N]

Schemathesis makes the requests from `/openapi.json` of a server that runs on loopback, over a
small knowledge base and a scripted model. Wanted: no 5xx, and no reply whose status, media
type, headers or body the schema does not tell of.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from served import serve_osler

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LIMITS = {
    "runs": 16,
    "waiting": 100_000,
    "caller_runs": 100_000,
    "caller_minute": 1_000_000,
    "searches_waiting": 1_000,
}


def fuzz(url: str, each: int, start: int = 0) -> Counter[tuple[str, int]]:
    """So many cases of each operation; how often each status came, by operation.

    Raises what Schemathesis raises at the first reply that is not as the schema says.
    """
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    seen: Counter[tuple[str, int]] = Counter()
    found: Any
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            _cases(operation, mode, max(1, each // 2), start, seen)
    return seen


def _cases(
    operation: Any,
    mode: schemathesis.GenerationMode,
    count: int,
    start: int,
    seen: Counter[tuple[str, int]],
) -> None:
    try:
        strategy = operation.as_strategy(generation_mode=mode)
    except schemathesis.errors.SchemathesisError:
        return

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=strategy)
    def one(case: Any) -> None:
        reply = case.call(timeout=30)
        seen[operation.label, reply.status_code] += 1
        case.validate_response(reply, checks=CHECKS)

    try:
        one()
    except BaseException as error:
        # An operation without parameters has nothing that could be wrong.
        if type(error).__name__ not in ("Unsatisfiable", "SkipTest"):
            raise


def main(cases: int, start: int) -> None:
    with tempfile.TemporaryDirectory() as home, serve_osler(Path(home), serve=LIMITS) as place:
        began, seen = time.perf_counter(), Counter[tuple[str, int]]()
        while seen.total() < cases:
            seen += fuzz(place.url, 200, start)
            start += 1
    codes: Counter[int] = Counter()
    for (label, status), count in sorted(seen.items()):
        codes[status] += count
        print(f"{label:45} {status} {count:>6}")
    took = time.perf_counter() - began
    print(f"{seen.total()} requests in {took:.0f} s: {dict(sorted(codes.items()))}")
    print("no 5xx, and nothing that the schema does not tell of")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    given_ = parser.parse_args()
    main(given_.cases, given_.seed)
