"""Spans of a run for OpenTelemetry: the names of the GenAI conventions and of OpenInference.

Both are still changing; every name stands here and nowhere else. Off unless an endpoint is
named (`OTEL_EXPORTER_OTLP_ENDPOINT`). What was asked, found and answered is not told unless
`OSLER_TRACE_CONTENT=1`: ids, sizes and hashes only.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import Span, Tracer

from osler.errors import require_extra
from osler.serve.run_manager import ActiveRun, Watcher
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

CONTENT = "OSLER_TRACE_CONTENT"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_ENDPOINTS = (ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NANO = 1_000_000_000

Value = str | int | float | bool


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
    search: tuple[Span, str] | None = None


class RunSpans:
    """A watcher of the desk: a span a run, and within it one a model call, search and step.

    Events bear no times; a span ends when its event comes, and a model call began as many
    seconds before as the model says it took.
    """

    def __init__(
        self, tracer: Tracer, *, content: bool = False, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._tracer = tracer
        self._content = content
        self._clock = clock
        self._open: dict[str, _OpenSpans] = {}

    def __call__(self, live: ActiveRun, event: Event) -> None:
        if isinstance(event, Started):
            self._begin_run(live, event)
            live.at_end.append(lambda: self._end_run(live))
        if (held := self._open.get(live.id)) is None:
            return
        match event:
            case Searched():
                self._begin_search(held, event)
            case Retrieved():
                self._end_search(held, event)
            case Asked():
                self._record_call(held, event)
            case Pushed() | Popped() | Calculated() | BoundaryChecked() | FormSolved():
                self._record_step(held, event)
            case StateValued():
                held.run.set_attributes(
                    {"osler.state.value": event.value, "osler.state.sigma": event.sigma}
                )
            case Answered():
                self._record_answer(held, event)
            case _:
                return

    def _begin_run(self, live: ActiveRun, event: Started) -> None:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": event.strategy,
            "gen_ai.conversation.id": live.id,
            "openinference.span.kind": "CHAIN",
            "session.id": live.id,
            "user.id": _hash_text(live.caller.id),
            "osler.kb.snapshot": event.snapshot,
            **self._text_attributes("input.value", event.question.text),
        }
        span = self._tracer.start_span(
            f"invoke_workflow {event.strategy}", attributes=attributes, start_time=self._clock()
        )
        self._open[live.id] = _OpenSpans(span, event.models)

    def _begin_search(self, held: _OpenSpans, event: Searched) -> None:
        source = ",".join(event.sources) or "all"
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.data_source.id": source,
            "openinference.span.kind": "RETRIEVER",
            "osler.retrieval.k": event.k,
            **self._text_attributes("gen_ai.retrieval.query.text", event.query),
        }
        held.search = self._start_child(held, f"retrieval {source}", attributes), event.query

    def _end_search(self, held: _OpenSpans, event: Retrieved) -> None:
        if held.search is None or held.search[1] != event.query:
            return
        span, held.search = held.search[0], None
        for number, hit in enumerate(event.hits):
            place = f"retrieval.documents.{number}.document"
            span.set_attributes({f"{place}.id": hit.passage, f"{place}.score": hit.score})
        documents = [{"id": hit.passage, "score": hit.score} for hit in event.hits]
        span.set_attribute("gen_ai.retrieval.documents", json.dumps(documents))
        span.set_attribute("osler.retrieval.failed", len(event.failed))
        span.end(self._clock())

    def _record_call(self, held: _OpenSpans, event: Asked) -> None:
        usage, now = event.usage, self._clock()
        model = held.models.get(event.role, event.role)
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "chat" if event.kind == "complete" else "score",
            "gen_ai.provider.name": "osler",
            "gen_ai.request.model": model,
            "llm.model_name": model,
            "gen_ai.usage.input_tokens": usage.prompt_tokens + usage.scored_tokens,
            "gen_ai.usage.output_tokens": usage.completion_tokens,
            "openinference.span.kind": "LLM",
            "llm.token_count.prompt": usage.prompt_tokens + usage.scored_tokens,
            "llm.token_count.completion": usage.completion_tokens,
            "osler.role": event.role,
            "osler.prompt": event.prompt,
            **self._text_attributes("output.value", event.reply),
        }
        began = now - int(usage.seconds * _NANO)
        self._start_child(held, f"chat {model}", attributes, began).end(now)

    def _record_step(
        self, held: _OpenSpans, event: Pushed | Popped | Calculated | BoundaryChecked | FormSolved
    ) -> None:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.type,
            "openinference.span.kind": "TOOL",
        }
        match event:
            case Pushed(kind=kind, depth=depth, text=text):
                attributes |= {"osler.stack.kind": kind, "osler.stack.depth": depth}
                attributes |= self._text_attributes("input.value", text)
            case Popped(kind=kind, depth=depth, by=by):
                attributes |= {"osler.stack.kind": kind, "osler.stack.depth": depth}
                attributes |= {"osler.stack.by": by}
            case Calculated(n=n, engine=engine, value=value):
                attributes |= {"graph.node.id": str(n), "osler.math.engine": engine}
                attributes |= self._text_attributes("output.value", value)
            case BoundaryChecked(n=n, known=known):
                attributes |= {"graph.node.id": str(n), "osler.boundary.known": known}
            case FormSolved(n=n, status=status, answer=answer):
                attributes |= {"graph.node.id": str(n), "osler.node.status": status}
                attributes |= self._text_attributes("output.value", answer)
        self._start_child(held, f"execute_tool {event.type}", attributes).end(self._clock())

    def _record_answer(self, held: _OpenSpans, event: Answered) -> None:
        answer, usage = event.solution.answer, event.solution.usage
        held.run.set_attributes(
            {
                "osler.grounding": answer.grounding.value,
                "osler.halt": event.solution.halt.value,
                "osler.citations": len(answer.citations),
                "gen_ai.usage.input_tokens": usage.prompt_tokens + usage.scored_tokens,
                "gen_ai.usage.output_tokens": usage.completion_tokens,
                **self._text_attributes("output.value", answer.text),
            }
        )

    def _end_run(self, live: ActiveRun) -> None:
        held = self._open.pop(live.id)
        now = self._clock()
        if held.search is not None:
            held.search[0].end(now)
        if live.status != "finished":
            from opentelemetry.trace import Status, StatusCode

            held.run.set_status(Status(StatusCode.ERROR, live.code))
        held.run.set_attribute("osler.status", live.status)
        held.run.end(now)

    def _start_child(
        self, held: _OpenSpans, name: str, attributes: Mapping[str, Value], began: int | None = None
    ) -> Span:
        from opentelemetry.trace import set_span_in_context

        return self._tracer.start_span(
            name,
            context=set_span_in_context(held.run),
            attributes=dict(attributes),
            start_time=began or self._clock(),
        )

    def _text_attributes(self, name: str, text: str) -> dict[str, Any]:
        """The text where content may be sent; else its length and hash."""
        if self._content:
            return {name: text}
        return {f"{name}.length": len(text), f"{name}.sha256": _hash_text(text)}


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
