"""`osler kb extract` through the real command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.build import extraction, models
from osler.build.models import load_roles
from osler_lab.testing.scripted import KeyedModel

TEXT = "Chronic kidney disease (CKD) is common. CKD is caused by hypertension."


@pytest.fixture
def texts(osler: Any, folder: Path) -> Path:
    (folder / "a.md").write_text(f"# Hypertension\n\n{TEXT}\n", encoding="utf-8")
    done = osler("kb", "add", str(folder / "a.md"), "--source", "book")
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> KeyedModel:
    """Stands in for the configured one: it names CKD and a thing that is not in the text."""
    empty = {"domain": "", "explain": "", "standard": "", "synonyms": []}
    named = [{"name": name, "type": "Disease", **empty} for name in ("CKD", "gout")]
    one = KeyedModel(
        {
            "entity extraction": [json.dumps({"entities": named})],
            "knowledge points": ["no"],
            "could not be read": ["no"],
        }
    )

    async def cast(*_: object) -> dict[str, models.LoadedModel]:
        return {"summariser": models.LoadedModel(one)}

    monkeypatch.setattr(extraction, "load_roles", cast)
    return one


def test_the_dictionary_is_the_default_and_fills_the_graph(osler: Any, texts: Path) -> None:
    dry = json.loads(osler("kb", "extract", "--dry-run", "--json").stdout)
    assert (dry["plan"]["asked"], dry["plan"]["cost"]["calls"]) == (1, 0)
    done = osler("kb", "extract", "--json")
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["done"]["chunks"] == 1
    assert document["graph"]["relations"] == 1
    found = osler("kb", "graph", "find", "CKD").stdout
    assert "(Chronic kidney disease, is mentioned with, hypertension)" in found.replace("\n", " ")
    again = json.loads(osler("kb", "extract", "--json").stdout)
    assert (again["done"]["chunks"], again["graph"]["passages"]) == (0, 0)


def test_items_of_a_passage_are_shown(osler: Any, texts: Path) -> None:
    id = "book:a#0"
    assert osler("kb", "extract", "--show", id).exit_code == 1
    osler("kb", "extract")
    assert "relation" in osler("kb", "extract", "--show", id).stdout
    shown = json.loads(osler("kb", "extract", "--show", id, "--json").stdout)["items"]
    assert all(item["passage"] == id for item in shown)
    assert osler("kb", "extract", "--show", "book:none#0").exit_code == 2


def test_a_model_s_names_that_are_not_in_the_text_are_left_out(
    osler: Any, texts: Path, model: KeyedModel
) -> None:
    done = osler("kb", "extract", "--by", "model", "--unit", "entities")
    assert done.exit_code == 0, done.stderr
    assert "drops name not in the text" in " ".join(done.stdout.split())
    assert "about 1 calls" in done.stdout


def test_replies_that_cannot_be_read_are_exit_code_6(
    osler: Any, texts: Path, model: KeyedModel
) -> None:
    done = osler("kb", "extract", "--by", "model", "--unit", "points")
    assert done.exit_code == 6
    assert "failed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--schema", "none.toml"], "takes no schema"),
        (["--by", "model", "--unit", "verbs"], "unknown unit 'verbs'"),
        (["--by", "model", "--schema", "none.toml"], "cannot be read"),
    ],
)
def test_a_bad_wish_is_refused_before_any_model_is_loaded(
    osler: Any, texts: Path, arguments: list[str], told: str
) -> None:
    done = osler("kb", "extract", *arguments)
    assert done.exit_code == 3
    assert told in done.stderr


def test_without_a_knowledge_base_there_is_nothing_to_extract(osler: Any, folder: Path) -> None:
    assert load_roles is models.load_roles
    assert osler("kb", "extract").exit_code == 4
