"""What the fuzzer kept, since it reached new code, is read again by the parser it was made for."""

from __future__ import annotations

import fuzz_parsers
import pytest


@pytest.mark.parametrize("name", list(fuzz_parsers.TARGETS))
def test_what_the_fuzzer_kept_breaks_no_parser(name: str) -> None:
    kept = fuzz_parsers.kept_cases(name)
    assert kept
    for case in kept:
        fuzz_parsers.TARGETS[name](case)
