"""Spans: one a run, children for what it did, and no content unless it is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import read_stream, serve_osler, start_run

from osler.errors import BadConfig
from osler_serve import otel

pytest.importorskip("opentelemetry.sdk")

QUESTION = "Which drug is given first, into the outer thigh, at once?"


def spans_of(home: Path, *, content: bool, **sections: Any) -> list[Any]:
    """Of one run on a server that runs."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    watch = otel.RunSpans(provider.get_tracer("osler"), content=content)
    with serve_osler(home, **sections) as place, httpx2.Client(base_url=place.url) as client:
        place.site.desk._watchers += (watch,)
        read_stream(client, start_run(client, QUESTION))
    return list(kept.get_finished_spans())


@pytest.fixture
def quiet(home: Path) -> list[Any]:
    return spans_of(home, content=False)


def test_a_run_is_one_trace_with_its_searches_and_calls(quiet: list[Any]) -> None:
    names = [span.name for span in quiet]
    assert names[-1] == "invoke_workflow rag"
    assert "chat speaks" in names
    assert any(name.startswith("retrieval ") for name in names)
    assert len({span.context.trace_id for span in quiet}) == 1
    run = quiet[-1]
    assert all(span.parent.span_id == run.context.span_id for span in quiet[:-1])
    assert run.attributes["osler.grounding"] == "grounded"
    assert run.attributes["osler.status"] == "finished"
    assert all(span.end_time >= span.start_time for span in quiet)


def test_traces_carry_no_content_unless_enabled(quiet: list[Any]) -> None:
    told = json.dumps([dict(span.attributes) for span in quiet], default=str)
    for word in ("thigh", "drug", "Adrenaline", "adrenaline"):
        assert word not in told
    assert quiet[-1].attributes["input.value.length"] == len(QUESTION)


def test_traces_with_content_carry_question_and_answer(home: Path) -> None:
    run = spans_of(home, content=True)[-1]
    assert run.attributes["input.value"] == QUESTION
    assert run.attributes["output.value"] == "Adrenaline is given first. [1]"


def test_a_run_that_fails_ends_its_span_as_an_error(home: Path) -> None:
    from served import FixedModel
    from waiting import AwaitableEvent

    limits = {"run_seconds": 0.2}
    run = spans_of(home, content=False, model=FixedModel(gate=AwaitableEvent()), serve=limits)[-1]
    assert run.attributes["osler.status"] == "failed"
    assert run.status.description == "timeout"


def test_without_an_endpoint_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(otel.ENDPOINT, raising=False)
    assert otel.make_watchers() == ()


def test_an_endpoint_without_an_exporter_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(otel.ENDPOINT, "http://127.0.0.1:4318")
    monkeypatch.setitem(
        __import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None
    )
    with pytest.raises(BadConfig) as refused:
        otel.make_watchers()
    assert refused.value.fix == 'pip install "osler[otel]"'
