"""What is searched through a filter: the same words at every command, and errors that help."""

import json
from pathlib import Path
from typing import Any

import pytest

from osler_lab.testing.scripted import HashingEncoder

TEXTS = {
    ("guideline", "old"): (2012, "Adrenaline is injected into the thigh, says the old advice."),
    ("guideline", "new"): (2021, "Adrenaline is injected into the thigh, says the new advice."),
    ("book", "dated"): (2021, "Adrenaline is a hormone of the adrenal gland."),
    ("book", "undated"): (None, "Adrenaline was first made in 1904."),
}


@pytest.fixture
def kb(osler: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of two sources and of two years."""
    for module in ("models", "knowledge"):
        monkeypatch.setattr(f"osler.build.{module}.load_encoder", lambda _: HashingEncoder())
    for (source, name), (year, text) in TEXTS.items():
        (folder / source).mkdir(exist_ok=True)
        head = f"---\ndate: {year}-05\n---\n" if year else ""
        (folder / source / f"{name}.md").write_text(f"{head}# {name}\n\n{text}\n")
    for source in ("guideline", "book"):
        assert osler("kb", "add", str(folder / source), "--source", source).exit_code == 0
    assert osler("kb", "build").exit_code == 0


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), {"old", "new", "dated", "undated"}),
        (("--since", "2020"), {"new", "dated"}),
        (("--until", "2020"), {"old"}),
        (("--kind", "guideline"), {"old", "new"}),
        (("--kind", "rct,guideline", "--since", "2020"), {"new"}),
        (("--source", "book,wiki"), None),
        (("--source", "book", "--since", "2020"), {"dated"}),
        (("--as-of", "2020-06-30"), {"old"}),
        # Of a text the month alone is known: on its last day all of it was.
        (("--as-of", "2021-05-30"), {"old"}),
        (("--as-of", "2021-05-31"), {"old", "new", "dated"}),
        (("--since", "2012-06-01", "--until", "2021-06-30"), {"new", "dated"}),
        (("--since", "2012-05-20", "--until", "2020"), {"old"}),
        (("--since", "2012-06"), {"new", "dated"}),
        (("--since", "2012-05", "--until", "2021-04"), {"old"}),
        (("--until", "2021-05"), {"old", "new", "dated"}),
        (("--as-of", "2021-05"), {"old", "new", "dated"}),
        (("--as-of", "2021-04"), {"old"}),
        (("--as-of", "2020"), {"old"}),
    ],
)
def test_a_search_finds_what_passes(
    osler: Any, kb: None, words: tuple[str, ...], found: set[str] | None
) -> None:
    ended = osler("kb", "search", "adrenaline", *words, "--json")
    if found is None:
        assert (ended.exit_code, "has no source wiki" in ended.stderr) == (3, True)
        return
    hits = json.loads(ended.stdout)["hits"]
    assert {hit["passage"]["title"] for hit in hits} == found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--as-of", "soon"), "write a date as 2024, 2024-03 or 2024-03-31"),
        (("--until", "2024-13"), "write a date as 2024, 2024-03 or 2024-03-31"),
        (("--since", "2021-05", "--until", "2021-04"), "since is after until"),
        (("--since", "2024", "--until", "2020"), "since is after until"),
        (("--since", "2024", "--as-of", "2020"), "since is after until or as_of"),
        (("--kind", "guideline,novel"), "of the kind 'novel'; choose from guideline, rct"),
        (("--since", "2900"), "no text passes the filter: since 2900"),
        (("--as-of", "2011-01-01", "-s", "book"), "no text passes the filter: as of 2011-01-01"),
    ],
)
def test_a_filter_that_lets_nothing_through_ends_with_2_and_is_named(
    osler: Any, kb: None, words: tuple[str, ...], says: str
) -> None:
    ended = osler("kb", "search", "adrenaline", *words)
    assert ended.exit_code == 2
    assert says in ended.stderr
    assert "Value error" not in ended.stderr


def test_a_question_takes_the_same_words(osler: Any) -> None:
    ended = osler("ask", "What is adrenaline?", "--since", "2020", "--as-of", "soon")
    assert (ended.exit_code, "write a date as" in ended.stderr) == (2, True)
