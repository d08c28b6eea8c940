"""`osler kb index` through the real command line, and the setting that searches what it made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.build import knowledge
from osler_lab.testing.scripted import HashingEncoder

TEXT = "Chronic kidney disease (CKD) is common. CKD is caused by hypertension."


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: HashingEncoder())
    monkeypatch.setattr(knowledge, "load_encoder", lambda _: HashingEncoder())


@pytest.fixture
def texts(osler: Any, folder: Path) -> Path:
    (folder / "a.md").write_text(f"# Hypertension\n\n{TEXT}\n", encoding="utf-8")
    (folder / "b.md").write_text("# 哮喘\n\n吸烟可导致哮喘。哮喘是一种疾病。\n", encoding="utf-8")
    done = osler("kb", "add", str(folder / "a.md"), str(folder / "b.md"), "--source", "book")
    assert done.exit_code == 0, done.stderr
    return folder


def indexes(osler: Any, *words: str) -> dict[str, Any]:
    done = osler("kb", "index", *words, "--json")
    assert done.exit_code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_an_index_is_made_followed_told_and_taken_out(osler: Any, texts: Path) -> None:
    assert "nothing was extracted yet" in osler("kb", "index").stdout
    osler("kb", "extract")
    made = indexes(osler, "summary", "outline")
    assert [one["kind"] for one in made["made"]] == ["outline", "summary"]
    costs = {cost["kind"]: cost for cost in made["indexes"]}
    assert list(costs) == ["chunk", "outline", "summary", "graph"]
    assert (costs["summary"]["items"], costs["summary"]["pending"]) == (2, 0)
    assert costs["summary"]["vectors"] == 2
    assert costs["outline"]["items"] == 2
    assert costs["outline"]["bytes"] > 0
    (texts / "c.md").write_text("# Gout\n\nGout is a disease.\n", encoding="utf-8")
    osler("kb", "add", str(texts / "c.md"), "--source", "book")
    followed = json.loads(osler("kb", "extract", "--index", "atomic_query", "--json").stdout)
    kinds = {one["kind"]: one["chunks"] for one in followed["indexes"]}
    assert kinds == {"outline": 1, "summary": 1, "atomic_query": 3}
    osler("kb", "rm", "--source", "book", "--document", "c")
    assert {c["items"] for c in indexes(osler)["indexes"] if c["kind"] == "outline"} == {2}
    assert "outline" in osler("kb", "index").stdout
    gone = indexes(osler, "outline", "--drop")
    assert gone["dropped"] == 2
    assert "outline" not in {cost["kind"] for cost in gone["indexes"]}


def test_a_wrong_name_says_what_there_is(osler: Any, texts: Path) -> None:
    for name, fix in (("sumary", "choose one of"), ("chunk", "kb build"), ("graph", "kb extract")):
        wrong = osler("kb", "index", name)
        assert wrong.exit_code == 3
        assert fix in wrong.stderr
    assert osler("kb", "extract", "--index", "sumary").exit_code == 3
    assert osler("kb", "index", "--drop").exit_code == 3


def test_the_setting_says_what_is_searched(
    osler: Any, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    osler("kb", "extract", "--index", "summary")
    osler("kb", "build")
    monkeypatch.setenv("OSLER__KB__INDEXES", "summary,graph")
    for query, document in (("hypertension", "a"), ("哮喘", "b")):
        found = json.loads(osler("kb", "search", query, "--source", "book", "--json").stdout)
        assert found["hits"][0]["passage"]["id"] == f"book:{document}#0"
    monkeypatch.setenv("OSLER__KB__INDEXES", "chunk,outline")
    refused = osler("kb", "search", "hypertension")
    assert refused.exit_code != 0
    assert "osler kb index outline" in refused.stderr
    monkeypatch.setenv("OSLER__KB__INDEXES", "chunks")
    assert osler("kb", "search", "hypertension").exit_code == 3
