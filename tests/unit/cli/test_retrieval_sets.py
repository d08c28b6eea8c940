"""Retrieval sets of BEIR and ir_datasets, and the search measured on one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import retrieval_set
from retrieval_set import (
    PUBLISHED,
    measure_search,
    open_retrieval_base,
    read_retrieval_set,
)

from osler.errors import MalformedSource

TEXTS = {
    "MED-1": ("Iron", "Oral iron treats iron deficiency anaemia in adults."),
    "MED-2": ("Iron", "Intravenous iron is given where oral iron is not borne."),
    "MED-3": ("Scurvy", "Ascorbic acid cures scurvy within weeks."),
    "MED-4": ("Fever", "Paracetamol lowers fever for some hours."),
}
QUERIES = {"PLAIN-1": "oral iron for anaemia", "PLAIN-2": "what cures scurvy?", "PLAIN-3": "rest"}
GRADES = (("PLAIN-1", "MED-1", 2), ("PLAIN-1", "MED-2", 1), ("PLAIN-2", "MED-3", 1))
UNJUDGED = ("PLAIN-3", "MED-4", 0)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def write_beir(folder: Path) -> Path:
    passages = [{"_id": i, "title": t, "text": x, "metadata": {}} for i, (t, x) in TEXTS.items()]
    _write_lines(folder / "corpus.jsonl", passages)
    asked = [{"_id": id, "text": text, "metadata": {}} for id, text in QUERIES.items()]
    _write_lines(folder / "queries.jsonl", asked)
    (folder / "qrels").mkdir()
    judged = "".join(f"{q}\t{d}\t{grade}\n" for q, d, grade in (*GRADES, UNJUDGED))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


def write_export(folder: Path) -> Path:
    """As `ir_datasets export` writes it."""
    passages = [{"doc_id": i, "text": x, "title": t} for i, (t, x) in TEXTS.items()]
    _write_lines(folder / "docs.jsonl", passages)
    (folder / "queries.tsv").write_text("".join(f"{id}\t{t}\n" for id, t in QUERIES.items()))
    judged = (f"{q} 0 {d} {grade}\n" for q, d, grade in (*GRADES, UNJUDGED))
    (folder / "qrels").write_text("".join(judged))
    return folder


@pytest.mark.parametrize("write", [write_beir, write_export])
def test_both_forms_give_the_same_judged_queries(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    given = read_retrieval_set(write(tmp_path))

    assert given.queries == {id: QUERIES[id] for id in ("PLAIN-1", "PLAIN-2")}
    assert given.grades == {"PLAIN-1": {"MED-1": 2, "MED-2": 1}, "PLAIN-2": {"MED-3": 1}}


@pytest.mark.parametrize("write", [write_beir, write_export])
def test_search_over_a_set_has_the_figures_of_trec_eval(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    (tmp_path / "mini").mkdir()
    given = read_retrieval_set(write(tmp_path / "mini"))
    with open_retrieval_base(tmp_path / "kb", given, None) as kb:
        (found,) = measure_search(given, kb, None)

    assert (found.queries, found.ndcg_10.value, found.recall_100.value) == (2, 1.0, 1.0)


def test_a_document_of_a_title_alone_is_found(tmp_path: Path) -> None:
    folder = write_beir(tmp_path)
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "MED-5", "title": "Zinc in the common cold", "text": ""}\n')
    with (folder / "queries.jsonl").open("a") as file:
        file.write('{"_id": "PLAIN-5", "text": "zinc for a cold"}\n')
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("PLAIN-5\tMED-5\t1\n")
    given = read_retrieval_set(folder)
    with open_retrieval_base(tmp_path / "kb", given, None) as kb:
        (found,) = measure_search(given, kb, None)

    assert (found.queries, found.ndcg_10.value) == (3, 1.0)


def test_a_document_that_is_not_found_costs_gain_and_recall(tmp_path: Path) -> None:
    folder = write_beir(tmp_path)
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("PLAIN-2\tMED-4\t1\n")
    given = read_retrieval_set(folder)
    with open_retrieval_base(tmp_path / "kb", given, None) as kb:
        (found,) = measure_search(given, kb, None)

    second = 1 / (1 + 1 / 1.584962500721156)  # one of two, at rank 1
    assert found.ndcg_10.value == pytest.approx((1 + second) / 2)
    assert found.recall_100.value == pytest.approx(0.75)


def test_queries_of_a_set_that_is_added_whole_are_no_passages(tmp_path: Path, osler: Any) -> None:
    write_beir(tmp_path / "mini")
    told = json.loads(
        osler("kb", "add", str(tmp_path / "mini"), "--source", "research", "--json").stdout
    )

    assert told["passages"] == len(TEXTS)


@pytest.mark.parametrize("absent", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named(absent: str, tmp_path: Path) -> None:
    (write_beir(tmp_path) / absent).unlink()

    with pytest.raises(MalformedSource, match=absent):
        read_retrieval_set(tmp_path)


def test_a_judged_query_without_text_is_an_error(tmp_path: Path) -> None:
    with (write_beir(tmp_path) / "qrels" / "test.tsv").open("a") as file:
        file.write("PLAIN-9\tMED-4\t1\n")

    with pytest.raises(MalformedSource, match="PLAIN-9"):
        read_retrieval_set(tmp_path)


def test_a_line_that_is_no_judgement_is_named(tmp_path: Path) -> None:
    with (write_beir(tmp_path) / "qrels" / "test.tsv").open("a") as file:
        file.write("PLAIN-1\tMED-4\tyes\n")

    with pytest.raises(MalformedSource, match=r"test\.tsv:6"):
        read_retrieval_set(tmp_path)


def test_one_command_measures_a_set_beside_what_is_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_beir(tmp_path / "nfcorpus")
    monkeypatch.setenv("OSLER__HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.argv", ["measure", str(tmp_path / "nfcorpus"), "--words"])
    retrieval_set.main()
    told = json.loads(capsys.readouterr().out)

    own, *published = told["searches"]
    assert (own["method"], own["queries"]) == ("Osler, words", 2)
    assert own["nDCG@10"].startswith("1.000")
    assert [row["method"] for row in published] == [
        f"{one.method} (published)" for one in PUBLISHED["nfcorpus"]
    ]
