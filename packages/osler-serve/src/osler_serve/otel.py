"""Spans of a run for OpenTelemetry, by the names of its GenAI conventions.

Off unless an endpoint is named (`OTEL_EXPORTER_OTLP_ENDPOINT`). What was asked, found and answered
is not told unless `OSLER_TRACE_CONTENT=1`: ids, sizes and hashes only.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, fields
from typing import Any

from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from osler.errors import require_extra
from osler.trace import (
    Answered,
    Asked,
    BoundaryChecked,
    Calculated,
    Event,
    FormSolved,
    Popped,
    Pushed,
    Retrieved,
    Searched,
    Started,
    StateValued,
)
from osler.types import Usage
from osler_serve.active_runs import ActiveRun
from osler_serve.run_manager import Watcher

CONTENT = "OSLER_TRACE_CONTENT"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_ENDPOINTS = (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NANO = 1_000_000_000
_STEPS = (Pushed, Popped, Calculated, BoundaryChecked, FormSolved, StateValued)
_LABELS = {"kind", "by", "engine", "status", "metric", "type"}
"""Fields of a step that are one of a few words, and so no content."""


def make_watchers() -> tuple[Watcher, ...]:
    """Makes the watcher that turns events into spans, if an OTLP endpoint is configured.

    Raises `BadConfig` when one is named and the exporter is not installed.
    """
    if not any(os.environ.get(name) for name in _ENDPOINTS):
        return ()
    return (RunSpans(_make_tracer(), content=os.environ.get(CONTENT) == "1"),)


def _make_tracer() -> Tracer:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    with require_extra("otel", f"{ENDPOINT} is set, and there is no exporter"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # type: ignore[import-not-found,unused-ignore]
            OTLPSpanExporter,
        )
    name = os.environ.get("OTEL_SERVICE_NAME", "osler")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("osler")


@dataclass
class _OpenSpans:
    """The spans of a run that are not ended."""

    run: Span
    models: dict[str, str]
    """Role to model identity."""
    search: Span | None = None


class RunSpans:
    """A watcher of the desk: a span a run, and within it one a model call, search and step.

    Events bear no times; a span ends when its event comes, and a model call began as many
    seconds before as the model says it took.
    """

    def __init__(self, tracer: Tracer, *, content: bool = False) -> None:
        self._tracer, self._content = tracer, content
        self._open: dict[str, _OpenSpans] = {}

    def __call__(self, live: ActiveRun, event: Event) -> None:
        if isinstance(event, Started):
            self._begin_run(live, event)
        if (held := self._open.get(live.id)) is None:
            return
        match event:
            case Searched():
                self._begin_search(held, event)
            case Retrieved() if held.search is not None:
                held.search.set_attribute("osler.passages", [hit.passage for hit in event.hits])
                held.search.end()
                held.search = None
            case Asked():
                self._record_call(held, event)
            case Answered():
                answer, usage = event.solution.answer, event.solution.usage
                held.run.set_attributes(
                    {
                        "osler.grounding": answer.grounding.value,
                        "osler.halt": event.solution.halt.value,
                        "osler.citations": len(answer.citations),
                        **_usage_attributes(usage),
                        **self._text_attributes("output.value", answer.text),
                    }
                )
            case _ if isinstance(event, _STEPS):
                self._record_step(held, event)

    def _begin_run(self, live: ActiveRun, event: Started) -> None:
        attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": event.strategy,
            "gen_ai.conversation.id": live.id,
            "user.id": _hash_text(live.caller.id),
            "osler.kb.snapshot": event.snapshot,
            **self._text_attributes("input.value", event.question.text),
        }
        span = self._tracer.start_span(f"invoke_workflow {event.strategy}", attributes=attributes)
        self._open[live.id] = _OpenSpans(span, event.models)
        live.at_end.append(lambda: self._end_run(live))

    def _begin_search(self, held: _OpenSpans, event: Searched) -> None:
        if held.search is not None:  # the one before found nothing to tell of
            held.search.end()
        source = ",".join(event.sources) or "all"
        attributes = {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.data_source.id": source,
            "osler.retrieval.k": event.k,
            **self._text_attributes("gen_ai.retrieval.query.text", event.query),
        }
        held.search = self._start_child(held, f"retrieval {source}", attributes)

    def _record_call(self, held: _OpenSpans, event: Asked) -> None:
        model = held.models.get(event.role, event.role)
        attributes = {
            "gen_ai.operation.name": "chat" if event.kind == "complete" else "score",
            "gen_ai.provider.name": "osler",
            "gen_ai.request.model": model,
            **_usage_attributes(event.usage),
            "osler.role": event.role,
            "osler.prompt": event.prompt,
            **self._text_attributes("output.value", event.reply),
        }
        began = time.time_ns() - int(event.usage.seconds * _NANO)
        self._start_child(held, f"chat {model}", attributes, began).end()

    def _record_step(self, held: _OpenSpans, event: Any) -> None:
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.type,
        }
        for field in fields(event):
            value, name = getattr(event, field.name), f"osler.step.{field.name}"
            if isinstance(value, bool | int | float) or field.name in _LABELS:
                attributes[name] = value
            elif isinstance(value, str):
                attributes |= self._text_attributes(name, value)
        self._start_child(held, f"execute_tool {event.type}", attributes).end()

    def _end_run(self, live: ActiveRun) -> None:
        held = self._open.pop(live.id)
        if held.search is not None:
            held.search.end()
        if live.status != "finished":
            held.run.set_status(Status(StatusCode.ERROR, live.code))
        held.run.set_attribute("osler.status", live.status)
        held.run.end()

    def _start_child(
        self, held: _OpenSpans, name: str, attributes: dict[str, Any], began: int | None = None
    ) -> Span:
        parent = set_span_in_context(held.run)
        return self._tracer.start_span(name, parent, attributes=attributes, start_time=began)

    def _text_attributes(self, name: str, text: str) -> dict[str, Any]:
        """The text where content may be sent; else its length and hash."""
        if self._content:
            return {name: text}
        return {f"{name}.length": len(text), f"{name}.sha256": _hash_text(text)}


def _usage_attributes(usage: Usage) -> dict[str, int]:
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens + usage.scored_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
