"""Evaluations and examples over HTTP: the report's figures, and nothing of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from served import ServedOsler, serve_osler
from stores import HOSTILE, write_log_folder

from osler.kb.base import KnowledgeBase
from osler_lab.evaluate.report import build_report
from osler_lab.testing.scripted import HashingEncoder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    home = tmp_path_factory.mktemp("evaluated")
    write_log_folder(home / "eval" / "two")
    (home / "eval" / "empty").mkdir()
    (home / "eval" / "broken").mkdir()
    (home / "eval" / "broken" / "plan.json").write_text("{", encoding="utf-8")
    with serve_osler(home) as running:
        yield running


def test_log_folders_are_listed_and_a_damaged_one_says_so(http: httpx2.Client) -> None:
    broken, two = http.get("/api/v1/evaluations").json()["evaluations"]
    assert (two["name"], two["strategies"]) == ("two", ["direct", "rag:k=5"])
    assert two["damaged"] == ""
    assert broken["name"] == "broken"
    assert "damaged" in broken["damaged"]


def test_evaluation_figures_equal_the_report_s(http: httpx2.Client, place: ServedOsler) -> None:
    told = http.get("/api/v1/evaluations/two").json()
    report = build_report(place.site.settings.home / "eval" / "two")
    for cell, mine in zip(report.cells, told["cells"], strict=True):
        found = cell.estimates["accuracy"]
        shown = mine["figures"]["accuracy"]
        assert (mine["strategy"], mine["done"]) == (cell.strategy, cell.done)
        assert (shown["value"], shown["low"], shown["high"]) == (
            found.value,
            found.low,
            found.high,
        )
        assert shown["low"] < shown["value"] < shown["high"]
    (accuracy,) = [one for one in told["measures"] if one["name"] == "accuracy"]
    assert accuracy["means"] == {"direct": 0.4, "rag:k=5": pytest.approx(9 / 11)}
    (pair,) = told["compared"]
    assert (pair["first"], pair["second"]) == ("direct", "rag:k=5")
    assert pair["change"]["value"] == 0.5
    assert any("1 failed" in line for line in told["left_out"])
    assert ["pubmedqa: majority answer", "accuracy 100.0 [74.1, 100.0], always A"] in told["facts"]
    assert ["pubmedqa: chance", "accuracy 50.0"] in told["facts"]


def test_samples_are_told_failures_first(http: httpx2.Client) -> None:
    chosen = {"strategy": "rag:k=5", "task": "pubmedqa"}
    told = http.get("/api/v1/evaluations/two/samples", params=chosen).json()["samples"]
    assert [one["score"] for one in told[:3]] == [None, 0.0, 1.0]
    assert told[0]["why"] == "ModelUnreachable: away"
    assert HOSTILE in told[0]["question"]
    none = http.get("/api/v1/evaluations/two/samples", params={**chosen, "task": "none"})
    assert none.status_code == 404


def test_growing_log_is_read_again(home: Path) -> None:
    write_log_folder(home / "eval" / "grows")
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        before = client.get("/api/v1/evaluations/grows").json()
        log = next((home / "eval" / "grows").glob("records-*.jsonl"))
        first = log.read_text(encoding="utf-8").splitlines()[0]
        more = first.replace('"q00"', '"q99"')
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{more}\n")
        after = client.get("/api/v1/evaluations/grows").json()
    assert after["cells"][0]["done"] == before["cells"][0]["done"] + 1


@pytest.mark.parametrize("name", ["none", "empty", "..%2Fkb", "..", "%2e%2e%2fserve", ".hidden"])
def test_unknown_log_folder_is_404(http: httpx2.Client, name: str) -> None:
    assert http.get(f"/api/v1/evaluations/{name}").status_code in (404, 422)


def test_a_damaged_log_is_a_conflict_that_names_no_folder_of_this_machine(
    http: httpx2.Client, place: ServedOsler
) -> None:
    reply = http.get("/api/v1/evaluations/broken")
    assert (reply.status_code, reply.json()["code"]) == (409, "damaged_evaluation")
    assert str(place.site.settings.home) not in reply.text


def test_a_home_without_logs_has_none(home: Path) -> None:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        assert client.get("/api/v1/evaluations").json() == {"evaluations": []}


def test_examples_are_offered_where_the_sample_texts_are(http: httpx2.Client, home: Path) -> None:
    assert http.get("/api/v1/examples").json() == {"examples": []}

    def sampled(at: Path) -> None:
        (at / "one.md").write_text("# One\n\nA sample text of one sentence.\n", encoding="utf-8")
        with KnowledgeBase.create(at / "kb") as kb:
            kb.add([at / "one.md"], source="book", licence="CC0-1.0", illustrative=True)
            kb.build(HashingEncoder())

    with serve_osler(home, fill=sampled) as place, httpx2.Client(base_url=place.url) as client:
        told = client.get("/api/v1/examples").json()["examples"]
    assert {one["language"] for one in told} == {"en", "zh"}
    assert all(one["question"] for one in told)
