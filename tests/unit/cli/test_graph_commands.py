"""`osler kb graph …` on a small graph of ours, through the real command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

OBO = """format-version: 1.2

[Term]
id: DOID:1
name: fever
def: "Too warm." []
synonym: "pyrexia" EXACT []

[Term]
id: DOID:2
name: flu
relationship: causes DOID:1 ! fever

[Term]
id: DOID:3
name: gone
is_obsolete: true
"""


@pytest.fixture
def graph(osler: Any, folder: Path) -> Path:
    (folder / "ours.obo").write_text(OBO, encoding="utf-8")
    done = osler("kb", "graph", "add", str(folder / "ours.obo"))
    assert done.exit_code == 0, done.stderr
    assert "obsolete term" in done.stdout
    return folder


def test_what_was_added_can_be_asked_for(osler: Any, graph: Path) -> None:
    info = json.loads(osler("kb", "graph", "info", "--json").stdout)
    assert (info["concepts"], info["names"], info["relations"]) == (2, 3, 1)
    assert "pyrexia" not in osler("kb", "graph", "info").stdout
    found = json.loads(osler("kb", "graph", "find", "PYREXIA", "cause", "--json").stdout)
    assert found["found"][0]["text"] == "Definition: Too warm.\nRelation: (flu, causes, fever)."
    assert "Too warm." in osler("kb", "graph", "find", "DOID:1").stdout


def test_the_sample_graph_is_added_by_one_option_and_marked_as_a_sample(osler: Any) -> None:
    assert osler("kb", "graph", "add").exit_code == 2
    done = osler("kb", "graph", "add", "--sample", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["concepts"] > 80
    (found, *_) = json.loads(osler("kb", "graph", "find", "房颤", "--json").stdout)["found"]
    assert found["concept"]["name"] == "Atrial fibrillation"
    shown = osler("kb", "get", f"graph:{found['concept']['id']}#def", "--json")
    assert json.loads(shown.stdout)["illustrative"] is True


def test_an_unknown_term_is_exit_code_1_and_a_misspelt_one_is_found(
    osler: Any, graph: Path
) -> None:
    assert osler("kb", "graph", "find", "pyrexja").exit_code == 1
    assert "fever" in osler("kb", "graph", "find", "pyrexja", "--fuzzy").stdout


def test_paths_between_names(osler: Any, graph: Path) -> None:
    assert "flu —causes→ fever" in osler("kb", "graph", "find", "flu", "--to", "pyrexia").stdout
    assert osler("kb", "graph", "find", "flu", "--to", "unheard of").exit_code == 1
    assert osler("kb", "graph", "find", "flu", "--to", "pyrexja").exit_code == 1
    assert osler("kb", "graph", "find", "flu", "--to", "pyrexja", "--fuzzy").exit_code == 0


def test_fusing_and_taking_it_back(osler: Any, graph: Path) -> None:
    table = graph / "t.csv"
    table.write_text("S,P,O\nfever,seen_in,ward\n", encoding="utf-8")
    assert osler("kb", "graph", "add", str(table)).exit_code == 0
    assert json.loads(osler("kb", "graph", "fuse", "--json").stdout)["merges"] == 1
    assert json.loads(osler("kb", "graph", "fuse", "--undo", "--json").stdout) == {"separated": 1}
    assert osler("kb", "graph", "fuse", "--undo", "--attach", "DOID").exit_code == 2
    assert osler("kb", "graph", "fuse", "--attach", "DOID", "--source", "xref").exit_code == 2
    assert osler("kb", "graph", "fuse", "--attach", "DOID", "--no-names").exit_code == 2


def test_a_file_that_nobody_knows_is_exit_code_6(osler: Any, folder: Path) -> None:
    (folder / "x.bin").write_bytes(b"\0\1\2")
    done = osler("kb", "graph", "add", str(folder / "x.bin"))
    assert done.exit_code == 6
    assert "unknown format" in done.stdout


def test_without_a_graph_the_fix_is_named(osler: Any, folder: Path) -> None:
    done = osler("kb", "graph", "info")
    assert done.exit_code == 4
    assert "osler kb graph add" in done.stderr


def test_graph_and_passages_share_a_folder(osler: Any, graph: Path) -> None:
    (graph / "a.md").write_text("# Fever\n\nDrink water and rest.\n", encoding="utf-8")
    assert osler("kb", "add", str(graph / "a.md"), "--source", "book").exit_code == 0
    (file,) = graph.parent.rglob("graph.sqlite")
    with KnowledgeBase.open(file.parent) as kb:
        assert kb.sources == ("book",)
    assert osler("kb", "graph", "info").exit_code == 0


def test_communities_are_found_shown_and_asked_for(osler: Any, graph: Path) -> None:
    pytest.importorskip("igraph")
    found = json.loads(osler("kb", "graph", "communities", "--json").stdout)
    assert found["levels"] == {"0": 1}
    (one,) = found["found"]
    assert "flu —causes→ fever" in one["text"]
    assert "Too warm." in osler("kb", "get", one["id"]).stdout
    assert one["id"] in osler("kb", "graph", "communities", "Does flu cause pyrexia?").stdout
    assert osler("kb", "graph", "communities", "an umbrella").exit_code == 1
    refused = osler("kb", "graph", "communities", "--largest", "3")
    assert (refused.exit_code, "--anew" in refused.stderr) == (2, True)
    assert osler("kb", "graph", "communities", "--largest", "3", "--anew").exit_code == 0


def test_the_packaged_model_does_not_write_about_communities(osler: Any, graph: Path) -> None:
    pytest.importorskip("igraph")
    done = osler("kb", "graph", "communities", "--summaries", "1")
    assert done.exit_code == 3
    assert "roles.summariser" in done.stderr


def test_articles_describe_concepts_and_drugs_are_attached(osler: Any, graph: Path) -> None:
    (graph / "Flu.md").write_text("# Flu\n\nIt comes in winter.\n", encoding="utf-8")
    assert osler("kb", "add", str(graph / "Flu.md"), "--source", "wiki").exit_code == 0
    done = json.loads(osler("kb", "graph", "add", "--describe", "wiki", "--json").stdout)[
        "described"
    ]
    assert done == {"described": 1, "unknown": 0, "ambiguous": 0}
    assert "It comes in winter." in osler("kb", "graph", "find", "flu").stdout
    attached = json.loads(osler("kb", "graph", "fuse", "--attach", "DOID", "--json").stdout)
    assert attached["merges"] == 0
    assert [id for id, _ in attached["unmatched"]] == ["DOID:1", "DOID:2"]


def test_vectors_of_the_names_are_made_by_a_command(
    osler: Any, graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: HashingEncoder())
    done = osler("kb", "graph", "add", "--vectors", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"names": 3}
