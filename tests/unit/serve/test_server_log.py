"""What was asked is in no log, not even where the server has a defect."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2
import pytest
from served import FixedModel, read_stream, serve_osler, start_run

from osler.llm.core.base import Completion, Message, Sampling
from osler_serve.server_log import DefectFormatter

NAME = "Wilhelmina Zyxo"


class Defective(FixedModel):
    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        try:
            raise KeyError(messages[-1].content)
        except KeyError as error:
            raise RuntimeError(f"no rule for {messages[-1].content}") from error


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """As `osler serve` sets it up, and everything is written."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(DefectFormatter())
    logging.getLogger().addHandler(handler)
    yield written
    logging.getLogger().removeHandler(handler)


def test_a_patient_s_name_in_a_question_is_in_no_line_of_the_log(
    tmp_path: Path, log: io.StringIO
) -> None:
    question = f"Is {NAME} to be given adrenaline?"
    with (
        serve_osler(tmp_path, model=Defective()) as place,
        httpx2.Client(base_url=place.url, timeout=60) as http,
    ):
        run = start_run(http, question)
        read_stream(http, run)
        place.wait_for_runs()
        assert http.get(f"/api/v1/runs/{run}").json()["status"] == "failed"

        http.post("/api/v1/search", json={"query": question, NAME: question})
        http.post("/api/v1/search", content=question.encode())
        http.get("/api/v1/passages/" + NAME.replace(" ", "%20"))

        def crash(*_: object, **__: object) -> None:
            raise ValueError(question)

        place.site.shelf.search = crash  # type: ignore[assignment, method-assign]
        assert http.post("/api/v1/search", json={"query": question}).status_code == 500
    told = log.getvalue()
    assert NAME.split()[1] not in told
    assert f"run {run} failed" in told
    assert "RuntimeError" in told, "its class is told"
    assert "KeyError" in told, "and that of its cause"
    assert "in crash" in told, "and where it came from"
