"""The part of OpenAI's chat completions that Osler supports.

A field that would change what is answered and cannot be honoured is refused; one that
changes nothing (who the user is, metadata) is taken and not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from osler.answer.extractive import sureness_word
from osler.questions import LIMIT
from osler.settings import STRATEGIES
from osler.types import Answer, Authorship
from osler_serve.problems import BadParameter
from osler_serve.replies import Words
from osler_serve.schemas import Filters

PREFIX = "osler/"
# Turns of the user before the last in which danger still counts.
TURNS = 5
# The configured strategy; the model alone.
AUTO, ALONE = "auto", "no-retrieval"


def model_names() -> list[str]:
    return [f"{PREFIX}{name}" for name in dict.fromkeys((AUTO, *STRATEGIES, ALONE))]


class ChatModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TextPart(ChatModel):
    type: Literal["text"]
    text: Annotated[Words, Field(max_length=LIMIT * 4)]


Parts = Annotated[list[TextPart], Field(min_length=1, max_length=64)]


def _as_parts(given: object) -> object:
    """One form alone: of two, what is wrong with the other would be told."""
    return [{"type": "text", "text": given}] if isinstance(given, str) else given


Content = Annotated[
    Parts,
    BeforeValidator(
        _as_parts, json_schema_input_type=Annotated[str, Field(max_length=LIMIT * 4)] | Parts
    ),
]


class ChatMessage(BaseModel):
    """A message. Of earlier turns only the role is read, so fields unknown to us are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content or ())


class StreamOptions(ChatModel):
    include_usage: bool = False
    include_obfuscation: bool = False


class ResponseFormat(ChatModel):
    type: Literal["text"]


class ChatRequest(ChatModel):
    """`POST /v1/chat/completions`."""

    model: Annotated[
        str, Field(min_length=1, max_length=100, json_schema_extra={"enum": [*model_names()]})
    ]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1_000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=65_536)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=65_536)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    n: Literal[1] | None = None
    top_p: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[dict[str, Any]], Field(max_length=128)] | None = None
    """Taken, since many clients always send them, and never called: `unread` says so."""
    tool_choice: Literal["auto", "none"] | None = None
    parallel_tool_calls: bool | None = None
    presence_penalty: Literal[0] | None = None
    frequency_penalty: Literal[0] | None = None
    osler: Filters = Filters()
    """Osler's: which texts are searched, as `sources`, `since`, `until`, `kinds` and `as_of`."""
    inline_sources: bool = False
    """Osler's: append a list of the sources to the text, for clients that show nothing else."""
    user: str | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None

    def earlier_questions(self) -> list[str]:
        """The user's turns before the last, the `TURNS` newest: danger may stand in any."""
        said = [message.text for message in self.messages[:-1] if message.role == "user"]
        return [text[-LIMIT:] for text in said[-TURNS:]]

    def last_question(self) -> str:
        """The last message. Raises `BadParameter` where it is not the user's."""
        if self.messages[-1].role != "user":
            raise BadParameter(400, "invalid", "the last message must be the user's", "messages")
        return self.messages[-1].text

    @property
    def unread_parts(self) -> list[str]:
        """The parts of the conversation that the answer does not rest on, in words."""
        said = []
        if any(m.role in ("system", "developer") for m in self.messages):
            said.append("system messages were not read")
        if any(m.role in ("user", "assistant") for m in self.messages[:-1]):
            said.append(
                "earlier turns were read for the subject of the last question only:"
                " `standalone` is what was answered"
            )
        if self.tools:
            said.append("tools were not called")
        return said


def describe_answer(answer: Answer, addresses: Sequence[str]) -> dict[str, Any]:
    """What a client shows beside the text: how sure it is, of which texts, and notes."""
    sure = answer.sureness
    word = sure and {"word": sureness_word(sure), "probability": sure.probability}
    sources = [
        {
            "number": number,
            "mark": answer.marks[number - 1],
            "title": one.passage.title or one.passage.id,
            "url": address,
            "year": one.passage.locator.year,
            "authors": one.passage.locator.authors,
            "journal": one.passage.locator.journal,
            "notice": one.passage.locator.notice,
            "illustrative": one.passage.illustrative,
        }
        for number, (one, address) in enumerate(zip(answer.evidence, addresses, strict=True), 1)
    ]
    notes = [*filter(None, (answer.note, *(one.text for one in answer.cautions)))]
    is_quoted = answer.authorship is Authorship.EXTRACTIVE
    return {"sureness": word, "quoted": is_quoted, "sources": sources, "notes": notes}


class UrlCitation(BaseModel):
    url: str
    title: str
    start_index: int
    end_index: int


class ChatAnnotation(BaseModel):
    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class AssistantMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    annotations: list[ChatAnnotation]
    reasoning_content: str | None = None


class ChatChoice(BaseModel):
    index: int = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: Literal["stop", "length"]


class ChatUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    citations: list[str]
    osler: dict[str, Any]
    """All of the run: answer, evidence, grounding, and what was not read."""


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["osler"] = "osler"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelCard]


class OpenAIError(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIProblem(BaseModel):
    error: OpenAIError
