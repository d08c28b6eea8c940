"""OpenAI's Responses beside chat completions: `POST /v1/responses`, with flat citations.

Nothing is kept for `previous_response_id`: a client sends the conversation each time.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from osler.questions import LIMIT
from osler.serve import chat_wire as wire
from osler.serve.api import At, Who
from osler.serve.chat import OPENAI_ERRORS, ChatAnswer, failure_body, start_chat, wait_for_answer
from osler.serve.run_views import SSE_HEADERS, SSE_MEDIA, SSE_PING
from osler.serve.schemas import Words

router = APIRouter(prefix="/v1", tags=["openai"], responses=OPENAI_ERRORS)


class InputText(wire.ChatModel):
    type: Literal["input_text", "output_text"]
    text: Annotated[Words, Field(max_length=LIMIT * 4)]


class InputMessage(BaseModel):
    """A message. Of earlier turns only the text is read, so fields unknown to us are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: (
        Annotated[Words, Field(max_length=LIMIT * 4)]
        | Annotated[list[InputText], Field(min_length=1, max_length=64)]
    )

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content)


class TextFormat(wire.ChatModel):
    format: wire.ResponseFormat | None = None


class ResponsesRequest(wire.ChatModel):
    """`POST /v1/responses`."""

    model: Annotated[
        str, Field(min_length=1, max_length=100, json_schema_extra={"enum": [*wire.model_names()]})
    ]
    input: (
        Annotated[Words, Field(min_length=1, max_length=LIMIT * 4)]
        | Annotated[list[InputMessage], Field(min_length=1, max_length=1_000)]
    )
    instructions: Annotated[str, Field(max_length=LIMIT * 4)] | None = None
    stream: bool | None = False
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=65_536)] | None = None
    top_p: Literal[1] | None = None
    text: TextFormat | None = None
    tools: Annotated[list[dict[str, Any]], Field(max_length=0)] | None = None
    background: Literal[False] | None = None
    inline_sources: bool = False
    """Osler's: append a list of the sources to the text, for clients that show nothing else."""
    store: bool | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None

    def to_chat(self) -> wire.ChatRequest:
        """The same conversation as chat completions have it."""
        messages = (
            [InputMessage(role="user", content=self.input)]
            if isinstance(self.input, str)
            else list(self.input)
        )
        if self.instructions:
            messages.insert(0, InputMessage(role="system", content=self.instructions))
        return wire.ChatRequest(
            model=self.model,
            messages=[wire.ChatMessage(role=one.role, content=one.text) for one in messages],
            temperature=self.temperature,
            max_tokens=self.max_output_tokens,
        )


class FlatCitation(wire.UrlCitation):
    type: Literal["url_citation"] = "url_citation"


class OutputText(BaseModel):
    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[FlatCitation]
    logprobs: list[Any] = []


class OutputMessage(BaseModel):
    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"]
    content: list[OutputText]


class TokenDetails(BaseModel):
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    input_tokens: int
    input_tokens_details: TokenDetails = TokenDetails()
    output_tokens: int
    output_tokens_details: TokenDetails = TokenDetails()
    total_tokens: int


class ResponseFailure(BaseModel):
    code: Literal["server_error"] = "server_error"
    message: str


class ModelResponse(BaseModel):
    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "incomplete", "failed"]
    model: str
    output: list[OutputMessage]
    error: ResponseFailure | None = None
    incomplete_details: dict[str, str] | None = None
    instructions: str | None
    metadata: dict[str, str]
    parallel_tool_calls: bool = False
    tool_choice: Literal["none"] = "none"
    tools: list[dict[str, Any]] = []
    store: Literal[False] = False
    usage: ResponseUsage | None = None
    osler: dict[str, Any] | None = None
    """All of the run: answer, evidence, grounding, and what was not read."""


@router.post(
    "/responses",
    response_model=ModelResponse,
    responses={200: {"content": {SSE_MEDIA: {"schema": {"type": "string"}}}}},
)
async def respond(asked: ResponsesRequest, request: Request, site: At, caller: Who) -> Response:
    """Answer the last question of the conversation, with citations."""
    talk = await start_chat(asked.to_chat(), request, site, caller, inline=asked.inline_sources)
    answer = ResponseAnswer(talk, asked, int(time.time()))
    if asked.stream:
        headers = {**SSE_HEADERS, "X-Osler-Run": talk.live.id}
        return StreamingResponse(answer.stream_events(), media_type=SSE_MEDIA, headers=headers)
    await wait_for_answer(talk, request)
    whole = await answer.build_whole()
    return JSONResponse(whole.model_dump(mode="json"), headers={"X-Osler-Run": talk.live.id})


@dataclass(frozen=True)
class ResponseAnswer:
    """An answer in the form of a response."""

    talk: ChatAnswer
    asked: ResponsesRequest
    created: int

    @property
    def item(self) -> str:
        return f"msg_{self.talk.live.id}"

    def build(self, status: Any, output: list[OutputMessage], **more: Any) -> ModelResponse:
        return ModelResponse(
            id=f"resp_{self.talk.live.id}",
            created_at=self.created,
            status=status,
            model=self.asked.model,
            output=output,
            instructions=self.asked.instructions,
            metadata=self.asked.metadata or {},
            **more,
        )

    def message(self, status: Any, text: str | None) -> OutputMessage:
        """The message; `None` = nothing of its text is there yet."""
        content = [] if text is None else [OutputText(text=text, annotations=self.citations())]
        return OutputMessage(id=self.item, status=status, content=content)

    def citations(self) -> list[FlatCitation]:
        return [self.citation(n) for n in range(len(self.talk.answer.citations))]

    def citation(self, number: int) -> FlatCitation:
        return FlatCitation(**self.talk.make_annotation(number).url_citation.model_dump())

    async def build_whole(self) -> ModelResponse:
        cut = self.talk.finish_reason == "length"
        status = "incomplete" if cut else "completed"
        spent = self.talk.chat_usage()
        text = self.talk.first_words + self.talk.join_text()
        return self.build(
            status,
            [self.message(status, text)],
            incomplete_details={"reason": "max_output_tokens"} if cut else None,
            usage=ResponseUsage(
                input_tokens=spent.prompt_tokens,
                output_tokens=spent.completion_tokens,
                total_tokens=spent.total_tokens,
            ),
            osler=await self.talk.run_extension(),
        )

    async def stream_events(self) -> AsyncIterator[bytes]:
        """The events, numbered; the text piece by piece, each citation as it is fixed."""
        number = 0
        try:
            async for event in self._events():
                if event is None:
                    yield SSE_PING
                    continue
                kind, more = event
                body = json.dumps({"type": kind, "sequence_number": number, **more})
                yield f"event: {kind}\ndata: {body}\n\n".encode()
                number += 1
        finally:
            # A client that hung up wants no answer; a run that is over stays as it is.
            await self.talk.site.desk.cancel_run(self.talk.live)

    async def _events(self) -> AsyncIterator[tuple[str, dict[str, Any]] | None]:
        begun = {"response": self.build("in_progress", []).model_dump(mode="json")}
        yield "response.created", begun
        yield "response.in_progress", begun
        empty = self.message("in_progress", None).model_dump()
        yield "response.output_item.added", {"output_index": 0, "item": empty}
        at = {"item_id": self.item, "output_index": 0, "content_index": 0}
        part = OutputText(text="", annotations=[]).model_dump()
        yield "response.content_part.added", {**at, "part": part}
        if words := self.talk.first_words:
            yield "response.output_text.delta", {**at, "delta": words, "logprobs": []}
        pings = self.talk.site.settings.serve.ping_seconds
        async for item in self.talk.site.desk.follow_lines(self.talk.live, ping=pings):
            if item is None:
                yield None
        if self.talk.live.solution is None:
            failure = ResponseFailure(message=failure_body(self.talk.live)["message"])
            failed = self.build("failed", [], error=failure)
            yield "response.failed", {"response": failed.model_dump(mode="json")}
            return
        for event in self._text_events(at):
            yield event
        whole = await self.build_whole()
        yield "response.output_item.done", {"output_index": 0, "item": whole.output[0].model_dump()}
        yield f"response.{whole.status}", {"response": whole.model_dump(mode="json")}

    def _text_events(self, at: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        for piece, done in self.talk.split_pieces():
            yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
            for number in done:
                fixed = self.citation(number).model_dump()
                added = {**at, "annotation_index": number, "annotation": fixed}
                yield "response.output_text.annotation.added", added
        text = self.talk.first_words + self.talk.join_text()
        yield "response.output_text.done", {**at, "text": text, "logprobs": []}
        part = OutputText(text=text, annotations=self.citations()).model_dump()
        yield "response.content_part.done", {**at, "part": part}
