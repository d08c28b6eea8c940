"""Exports over HTTP."""

from __future__ import annotations

import io

import httpx2
import pytest
import rispy
from docx import Document
from served import ServedOsler, read_stream, start_run


@pytest.fixture
def answered(place: ServedOsler, http: httpx2.Client) -> str:
    run = start_run(http)
    read_stream(http, run)
    place.wait_for_runs()
    return run


def test_an_answer_is_downloaded_as_a_file_of_its_format(
    answered: str, http: httpx2.Client
) -> None:
    where = f"/api/v1/runs/{answered}/export"
    text = http.get(where)
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert f'filename="osler-{answered}.md"' in text.headers["content-disposition"]
    assert "Adrenaline is given first." in text.text
    document = Document(io.BytesIO(http.get(where, params={"to": "docx"}).content))
    assert any("Adrenaline is given first." in one.text for one in document.paragraphs)
    assert len(rispy.loads(http.get(where, params={"to": "ris"}).text)) == 1


def test_what_the_cited_studies_state_is_a_table_of_quotes(
    answered: str, http: httpx2.Client
) -> None:
    (row, *_) = http.get(f"/api/v1/runs/{answered}/studies").json()["rows"]
    (cited, *_) = http.get(f"/api/v1/runs/{answered}").json()["evidence"]
    assert (row["passage"], row["title"]) == (cited["passage"]["id"], cited["passage"]["title"])
    assert row["value"] == "", "a text that states no number"


def test_an_unknown_format_and_an_unknown_run_are_refused(
    answered: str, http: httpx2.Client
) -> None:
    assert http.get(f"/api/v1/runs/{answered}/export", params={"to": "exe"}).status_code == 422
    assert http.get("/api/v1/runs/20260102-030405-0123456789ab/export").status_code == 404
