"""Nothing is locked whose licence keeps Apache-2.0 from being used with it."""

import re

import pytest
from supply_chain import PAGE_LOCK, ROOT, licence_of, page_packages

FINE = re.compile(
    r"\b(MIT|MIT-0|MIT-CMU|Apache|BSD|0BSD|ISC|ISCL|PSF|PSF-2\.0|PSFL|Python Software Foundation"
    r"|MPL|MPL-2\.0|Mozilla|Zlib|CC0-1\.0|CNRI-Python|Unlicense)\b",
    re.IGNORECASE,
)
"""Permissive ones; and the Mozilla licence, which reaches no further than its own files."""
STRICT = re.compile(r"\b(GNU|[AL]?GPL|SSPL|EUPL|Commons Clause|NonCommercial)\b", re.IGNORECASE)
EXCEPTIONS = {
    "igraph": "GPL: in the extra graph alone, never in the core; who installs it, combines it",
    "rouge-chinese": "its metadata name a file, which is the Apache licence; in tests alone",
}


def locked(lock: str) -> list[str]:
    text = (ROOT / f"requirements{lock}.lock").read_text("utf-8")
    return re.findall(r"^([\w.\-]+)==", text, re.MULTILINE)


def is_fine(licence: str) -> bool:
    return bool(FINE.search(licence)) and not STRICT.search(licence)


@pytest.mark.parametrize("lock", ["", "-dev"])
def test_every_locked_package_has_a_licence_that_suits(lock: str) -> None:
    said = {name: licence for name in locked(lock) if (licence := licence_of(name))}
    assert len(said) > 0.9 * len(locked(lock))
    unfit = {name: licence for name, licence in said.items() if not is_fine(licence)}
    assert unfit.keys() <= EXCEPTIONS.keys(), unfit
    assert lock or not unfit  # the core has no exception


def test_what_the_page_holds_has_a_licence_that_suits() -> None:
    said = {
        one["name"]: one["licenses"][0]["license"]["name"]
        for one in page_packages((ROOT / PAGE_LOCK).read_text("utf-8"))
    }
    assert "react" in said
    assert [name for name, licence in said.items() if not is_fine(licence)] == []


def test_each_exception_is_still_one() -> None:
    named = {name: licence_of(name) for name in EXCEPTIONS}
    assert [name for name, licence in named.items() if licence and is_fine(licence)] == []


@pytest.mark.parametrize("licence", ["GPL-3.0-or-later", "AGPL-3.0", "proprietary", "MIT AND GPL"])
def test_an_unfit_licence_is_known_as_one(licence: str) -> None:
    assert not is_fine(licence)
