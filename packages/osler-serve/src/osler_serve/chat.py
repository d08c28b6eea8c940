"""The OpenAI-compatible interface, `/v1`: strategies as models, citations four ways.

(a) `annotations` of the message, or of deltas as each is fixed; (b) `citations`, the
addresses; (c) `osler`, everything; (d) with `inline_sources`, a list at the end of the text.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from osler.answer.follow_up import Standalone
from osler.questions import parse_question
from osler.runs.threads import standalone_of
from osler.text import escape_markdown
from osler.trace import (
    Asked,
    Focused,
    FormsPlanned,
    Popped,
    Pushed,
    Retrieved,
    Searched,
    from_line,
    split_note,
)
from osler.types import Answer, Evidence, Halt, Usage
from osler_serve import chat_wire as wire
from osler_serve import choices
from osler_serve.active_runs import ActiveRun
from osler_serve.api import At, Who
from osler_serve.keys import Caller
from osler_serve.problems import BadParameter, RefusedRequest
from osler_serve.run_streams import PING_SECONDS, SSE_HEADERS, SSE_MEDIA, SSE_PING
from osler_serve.run_views import load_run, started_event
from osler_serve.state import ServerState

# Of the models; they are strategies, and as old as the project.
CREATED = 1_763_683_200
_FAILED = {
    "timeout": (504, "timeout"),
    "cancelled": (503, "cancelled"),
    "internal": (500, "internal"),
}
OPENAI_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": wire.OpenAIProblem, "description": "In OpenAI's form."}
    for status in (400, 401, 403, 404, 408, 413, 415, 421, 422, 429, 500, 503, 504)
}

router = APIRouter(prefix="/v1", tags=["openai"], responses=OPENAI_ERRORS)


@router.get("/models")
async def models(site: At, caller: Who) -> wire.ModelList:
    """The strategies that the key may run, as models."""
    usual = site.settings.strategy.kind
    cards = [
        wire.ModelCard(id=name, created=CREATED)
        for name in wire.model_names()
        if caller.scope.allows_strategy(strategy_for_model(name) or usual)
    ]
    return wire.ModelList(data=cards)


@router.get("/models/{id:path}")
async def model(
    id: Annotated[str, Path(description="Of a model, as in osler/tc-rag.")],
) -> wire.ModelCard:
    """One of them."""
    strategy_for_model(id)
    return wire.ModelCard(id=id, created=CREATED)


def strategy_for_model(model: str) -> str | None:
    """The strategy that a model's name means; `None` = the configured one.

    Raises `BadParameter` (404) for a name that is none.
    """
    if model not in wire.model_names():
        raise BadParameter(
            404, "model_not_found", f"no model {model[:100]!r}; GET /v1/models lists them", "model"
        )
    name = model.removeprefix(wire.PREFIX)
    return {wire.AUTO: None, wire.ALONE: "direct"}.get(name, name)


@router.post(
    "/chat/completions",
    response_model=wire.ChatCompletion,
    responses={200: {"content": {SSE_MEDIA: {"schema": {"type": "string"}}}}},
)
async def complete(
    asked: wire.ChatRequest,
    request: Request,
    site: At,
    caller: Who,
    x_osler_inline_sources: Annotated[str, Header(max_length=10)] = "",
) -> Response:
    """Answer the last question of the conversation, with citations."""
    inline = asked.inline_sources or x_osler_inline_sources in ("1", "true")
    talk = await start_chat(asked, request, site, caller, inline=inline)
    if asked.stream:
        headers = {**SSE_HEADERS, "X-Osler-Run": talk.live.id}
        return StreamingResponse(talk.stream_chunks(), media_type=SSE_MEDIA, headers=headers)
    await wait_for_answer(talk, request)
    completed = await talk.build_completion()
    return JSONResponse(completed.model_dump(mode="json"), headers={"X-Osler-Run": talk.live.id})


async def start_chat(
    asked: wire.ChatRequest, request: Request, site: ServerState, caller: Caller, *, inline: bool
) -> ChatAnswer:
    """Starts the run that answers a conversation."""
    settings = choices.caller_settings(
        site.settings,
        caller,
        strategy=strategy_for_model(asked.model),
        seed=asked.seed,
        temperature=asked.temperature,
        max_tokens=asked.max_completion_tokens or asked.max_tokens,
        **asked.osler.choose(),
    )
    earlier, last = asked.earlier_questions(), asked.last_question()
    scoped = caller.scope.narrow_settings(site.settings)
    alone = await standalone_of(scoped, [*earlier, last])
    question = parse_question(alone.text)
    live = await site.desk.start_run(caller, question, settings, earlier=[*earlier, last])
    return ChatAnswer(site, live, asked, str(request.base_url).rstrip("/"), inline, alone)


async def wait_for_answer(talk: ChatAnswer, request: Request) -> None:
    """Returns at the run's end; who hangs up meanwhile stops it. Raises `RefusedRequest` for a
    run without an answer, unless there are first words to somebody in danger."""
    try:
        async for item in talk.site.desk.follow_lines(talk.live, ping=0.25):
            if item is None and await request.is_disconnected():
                raise RefusedRequest(503, "cancelled", "the client has gone", retry_after=1.0)
    finally:
        await talk.site.desk.cancel_run(talk.live)
    if talk.live.solution is None and not talk.first_words:
        raise failed_run_refusal(talk.live)


def failed_run_refusal(live: ActiveRun) -> RefusedRequest:
    """The refusal that tells a client why a run has no answer."""
    status, code = _FAILED.get(live.code, (503, live.code or "failed"))
    return RefusedRequest(status, code, live.detail, retry_after=5.0 if status == 503 else None)


_LEFT_OUT = "(a note of a model that may not word medicine)"
_UNCHANGED = Standalone("")
_CAUTIONS = {"en": "Of the evidence:", "zh": "关于证据："}


@dataclass(frozen=True)
class ChatAnswer:
    """One answer on its way to an OpenAI client."""

    site: ServerState
    live: ActiveRun
    asked: wire.ChatRequest
    base: str
    inline: bool
    alone: Standalone = _UNCHANGED
    """The last question as it was searched for."""

    @property
    def answer(self) -> Answer:
        solution = self.live.solution
        return solution.answer if solution else Answer(note=failed_run_refusal(self.live).message)

    @property
    def first_words(self) -> str:
        """The first words to somebody in danger; "" for everybody else."""
        return f"**{self.live.danger.text}**\n\n" if self.live.danger else ""

    @property
    def notes_of(self) -> tuple[str, ...]:
        """Roles whose model may not word medicine: what they write is left out."""
        begun = started_event(self.live.lines)
        return begun.notes_of if begun else ()

    async def build_completion(self) -> wire.ChatCompletion:
        text = self.first_words + self.join_text()
        notes = reasoning_notes(self.live.lines, self.notes_of)
        message = wire.AssistantMessage(
            content=text,
            annotations=[self.make_annotation(n) for n in range(len(self.answer.citations))],
            reasoning_content="\n".join(notes) or None,
        )
        choice = wire.ChatChoice(message=message, finish_reason=self.finish_reason)
        return wire.ChatCompletion(
            id=f"chatcmpl-{self.live.id}",
            created=int(time.time()),
            model=self.asked.model,
            choices=[choice],
            usage=self.chat_usage(),
            citations=self.evidence_urls(),
            osler=await self.run_extension(),
        )

    def join_text(self) -> str:
        return "".join(piece for piece, _ in self.split_pieces())

    def split_pieces(self) -> list[tuple[str, list[int]]]:
        """The text in parts, each with the numbers of the citations that it completes."""
        answer, parts, at = self.answer, [], 0
        ends = [c.end for c in answer.citations]
        for cut in [*sorted(set(ends)), len(answer.text)]:
            done = [n for n, end in enumerate(ends) if end == cut]
            if cut > at or done:
                parts.append((answer.text[at:cut], done))
                at = cut
        if not answer.text:
            parts.append((_abstention_text(answer), []))
        elif answer.option is not None:
            parts.append((f"\n\n{answer.option}", []))
        if answer.cautions:
            warnings = "\n".join(
                f"- {escape_markdown(caution.text)}" for caution in answer.cautions
            )
            parts.append((f"\n\n{_CAUTIONS[answer.language]}\n{warnings}", []))
        if self.inline and answer.evidence:
            parts.append((self.source_list(), []))
        return parts

    def make_annotation(self, number: int) -> wire.ChatAnnotation:
        cited = self.answer.citations[number]
        found = self.answer.evidence[cited.number - 1]
        return wire.ChatAnnotation(
            url_citation=wire.UrlCitation(
                url=self.evidence_url(found),
                title=found.passage.title or found.passage.id,
                start_index=len(self.first_words) + cited.start,
                end_index=len(self.first_words) + cited.end,
            )
        )

    def evidence_url(self, found: Evidence) -> str:
        """The publisher's address of a passage, else this server's."""
        own = found.passage.locator.url
        if own.startswith(("http://", "https://")):
            return own
        return f"{self.base}/api/v1/passages/{quote(found.passage.id, safe='')}"

    def evidence_urls(self) -> list[str]:
        return [self.evidence_url(found) for found in self.answer.evidence]

    def source_list(self) -> str:
        lines = [
            f"{mark} {escape_markdown(one.passage.title or one.passage.id)}"
            f" ({escape_markdown(str(one.passage.locator) or one.passage.source)}):"
            f" <{self.evidence_url(one)}>"
            for mark, one in zip(self.answer.marks, self.answer.evidence, strict=True)
        ]
        return "\n\n" + "\n".join(lines)

    def chat_usage(self) -> wire.ChatUsage:
        spent = self.live.solution.usage if self.live.solution else Usage()
        read = spent.prompt_tokens + spent.scored_tokens
        return wire.ChatUsage(
            prompt_tokens=read,
            completion_tokens=spent.completion_tokens,
            total_tokens=read + spent.completion_tokens,
        )

    @property
    def finish_reason(self) -> Any:
        halt = self.live.solution.halt if self.live.solution else None
        return "length" if halt is Halt.BUDGET else "stop"

    async def run_extension(self) -> dict[str, Any]:
        run = await load_run(self.site.desk, self.live.caller, self.live.id)
        said = {"standalone": self.alone.text, "rewritten_by": self.alone.by}
        return {
            **run.report().model_dump(mode="json"),
            **said,
            **wire.describe_answer(self.answer, self.evidence_urls()),
            "unread": self.asked.unread_parts,
        }

    # OpenAI's stream ends with [DONE]; an error is a chunk, since the status was sent already.
    async def stream_chunks(self) -> AsyncIterator[bytes]:
        """The stream: what is done meanwhile as reasoning, then the answer piece by piece."""
        yield self.encode_delta({"role": "assistant", "content": self.first_words})
        try:
            async for item in self.site.desk.follow_lines(self.live, ping=PING_SECONDS):
                if item is None:
                    yield SSE_PING
                for note in reasoning_notes([item[1]] if item else [], self.notes_of):
                    yield self.encode_delta({"reasoning_content": f"{note}\n"})
            if self.live.solution is None:
                yield _encode_event({"error": failure_body(self.live)})
                return
            for piece, done in self.split_pieces():
                yield self.encode_delta({"content": piece})
                if done:
                    fixed = [self.make_annotation(n).model_dump() for n in done]
                    yield self.encode_delta({"annotations": fixed})
            yield self.encode_delta({}, finish=self.finish_reason, osler=await self.run_extension())
            options = self.asked.stream_options
            if options is not None and options.include_usage:
                yield self.encode_chunk([], usage=self.chat_usage().model_dump())
            yield b"data: [DONE]\n\n"
        finally:
            # A client that hung up wants no answer; a run that is over stays as it is.
            await self.site.desk.cancel_run(self.live)

    def encode_delta(
        self, delta: dict[str, Any], finish: str | None = None, osler: dict[str, Any] | None = None
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        more = {"osler": osler, "citations": self.evidence_urls()} if osler is not None else {}
        return self.encode_chunk([choice], **more)

    def encode_chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return _encode_event(
            {
                "id": f"chatcmpl-{self.live.id}",
                "object": "chat.completion.chunk",
                "created": int(time.time()),
                "model": self.asked.model,
                "choices": choices,
                **more,
            }
        )


def failure_body(live: ActiveRun) -> dict[str, Any]:
    refused = failed_run_refusal(live)
    return {
        "message": refused.message,
        "type": "server_error",
        "param": None,
        "code": refused.code,
    }


def reasoning_notes(lines: list[str], notes_of: Collection[str] = ()) -> list[str]:
    """Short notes on a run's events, for those that tell a reader something.

    What a model wrote that may not word medicine (`notes_of` as in `Started`) is left out.
    """
    return [said for line in lines if (said := _event_note(line, notes_of))]


def _event_note(line: str, notes_of: Collection[str]) -> str:
    if '"type":"run.' in line:
        return ""
    event, note = split_note(from_line(line), notes_of)
    match event:
        case Pushed(kind=kind) if note:
            return f"{kind}: {_LEFT_OUT}"
        case Asked(role=role) if note or role in notes_of:
            return ""
        case Searched(query=query):
            return f"searched: {query}"
        case Retrieved(hits=hits, failed=failed):
            down = f"; down: {', '.join(failed)}" if failed else ""
            return f"found {len(hits)} passages{down}"
        case Pushed(kind=kind, text=text) if kind != "User_Query":
            return f"{kind}: {text[:500]}"
        case Popped(kind=kind, by=by, reason=reason) if kind:
            return f"{by}: {kind} taken back. {reason[:200]}".rstrip()
        case FormsPlanned(nodes=nodes):
            return "\n".join(f"{node.n}. {node.step}" for node in nodes)
        case Focused(enough=enough, reason=reason):
            return f"{'enough' if enough else 'not enough'}: {reason[:200]}"
        case Asked(thinking=thinking) if thinking:
            return thinking[:2_000]
        case _:
            return ""


def _abstention_text(answer: Answer) -> str:
    from osler.answer import NOTHING_SAID

    return answer.option or answer.note or NOTHING_SAID[answer.language]


def _encode_event(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()
