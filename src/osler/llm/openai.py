"""Any server that speaks the OpenAI interface: vLLM, llama.cpp's, and those that only say so.

`connect` finds out what a server can do by trying it, since servers ignore fields
that they do not know, and gives a `ScoringOpenAIModel` only where scoring a given
text was seen to work. Two ways of scoring are known:

* vLLM echoes a prompt of token ids with their log-probabilities, in one request;
* llama.cpp's server has no such thing, so each token is forced by a logit bias, in a
  request of its own, as `llm/local.py` does it.

| what happens                          | what it becomes                              |
|---------------------------------------|----------------------------------------------|
| refused, no such host, too slow       | `ModelUnreachable`, at once                  |
| hung up, 429, 500, 502, 503, 504      | again, up to `retries`, `ModelUnreachable`   |
| 401, 403                              | `KeyRefused`                                 |
| any other status but 200              | `ModelError` with the server's own words     |
| 200 with what is no JSON              | `ModelError`                                 |

The key is in the request's header and nowhere else: not in errors, not in reprs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import httpx2

from osler.errors import BadConfig, CapabilityMissing, ModelError, ModelUnreachable
from osler.llm import dialects
from osler.llm.base import Completion, Message, Sampling, Scored, TokenScore
from osler.llm.dialects import BadReply, Dialect, Server
from osler.llm.grammar import Grammar, lit
from osler.types import Usage

_WORD = "osler"

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]

_BUSY = frozenset({429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
"""Seconds; a server that asks for more patience is taken at its word and left."""
_FIRST_WAIT, _LAST_WAIT = 1.0, 30.0


class KeyRefused(ModelError):
    """The server wants another key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is served. Raises `BadConfig` for an address or a key that cannot be one."""

    base_url: str
    """Ends in `/v1` as a rule."""
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 120.0
    """Seconds for one request, from its sending to the last byte of the reply."""
    max_concurrency: int = 8
    retries: int = 3

    def __post_init__(self) -> None:
        try:
            url = httpx2.URL(self.base_url)
        except httpx2.InvalidURL as error:
            raise BadConfig("the server's address is no URL", fix=_ADDRESS) from error
        if url.scheme not in {"http", "https"} or not url.host or url.userinfo or url.query:
            raise BadConfig("the server's address is no plain http(s) URL", fix=_ADDRESS)
        key = self.api_key or ""
        if not key.isascii() or not key.isprintable() or " " in key:
            raise BadConfig("the key has characters that no header can carry", fix=_KEY)

    @property
    def host(self) -> str:
        return httpx2.URL(self.base_url).netloc.decode("ascii")


_ADDRESS = 'set model.url = "http://HOST:PORT/v1"'
_MODEL = "set model.name to a model that the server has"
_KEY = "set the environment variable OPENAI_API_KEY, or model.key_file"


@dataclass(frozen=True, slots=True)
class _Busy:
    why: str
    asked: float | None = None
    """Seconds that the server asks to wait."""


class OpenAIModel:
    """`LanguageModel` on a server."""

    def __init__(self, door: _Door, server: Server) -> None:
        self._door = door
        self.server = server

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.server.dialect.value!r})"

    @property
    def name(self) -> str:
        """The model and the host that serves it."""
        return self._door.name

    @property
    def constrains(self) -> bool:
        """Whether a grammar may be asked for; else `complete` refuses one."""
        return self.server.constrains

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if sampling.grammar and not self.constrains:
            raise CapabilityMissing(
                f"{self.name} cannot be held to a grammar",
                fix="use vLLM, llama.cpp's server or a local model",
            )
        body = dialects.chat(self.server.dialect, self._door.model, messages, sampling)
        began = time.perf_counter()
        async with self._door.open() as line:
            reply = await line.ask("/chat/completions", body)
            seconds = time.perf_counter() - began
            read = dialects.read_chat(reply, self.server, messages, sampling, seconds)
        return await self._told(messages, read.completion) if read.unreported else read.completion

    async def _told(self, messages: Sequence[Message], completion: Completion) -> Completion:
        """The completion with the log-probabilities that its reply did not tell, if it may be."""
        return completion


class ScoringOpenAIModel(OpenAIModel):
    """`LanguageModel` and `Likelihood` on a server."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        """As `Likelihood.score`. On llama.cpp's server it takes a request for each token."""
        if not text:
            raise ModelError("there is no text to score")
        began = time.perf_counter()
        async with self._door.open() as line:
            match self.server.dialect:
                case Dialect.VLLM:
                    tokens = await self._echoed(line, context, text)
                case Dialect.LLAMA_CPP:
                    tokens = await dialects.forced(line.ask, context, text)
                case Dialect.GENERIC:
                    raise CapabilityMissing(f"{self.name} cannot score a given text")
        seconds = round(time.perf_counter() - began, 3)
        return Scored(tokens, Usage(calls=1, scored_tokens=len(tokens), seconds=seconds))

    async def _told(self, messages: Sequence[Message], completion: Completion) -> Completion:
        scored = await self.score(messages, completion.text)
        usage = completion.usage + scored.usage + Usage(calls=-1)  # one completion to the caller
        return replace(completion, tokens=scored.tokens, usage=usage)

    async def _echoed(
        self, line: _Line, context: Sequence[Message] | str, text: str
    ) -> tuple[TokenScore, ...]:
        before = await self._ids(line, context, first=True)
        ids = await self._ids(line, text, first=False)
        if not before or not ids:
            raise BadReply("there are no tokens to score, or none before them")
        body = {
            "model": self._door.model,
            "prompt": before + ids,
            "max_tokens": 0,
            "temperature": 0.0,
            "echo": True,
            "logprobs": 0,
        }
        told = dialects.read_echo(await line.ask("/completions", body), len(before) + len(ids))
        told = told[-len(ids) :]
        spans = dialects.spans_of([piece for piece, _ in told], text)
        return dialects.scores(text, spans, [logprob for _, logprob in told])

    async def _ids(self, line: _Line, text: Sequence[Message] | str, *, first: bool) -> list[int]:
        if isinstance(text, str):
            asked: dict[str, Any] = {"prompt": text, "add_special_tokens": first}
        else:
            asked = {"messages": dialects.listed(text), **dialects.turn(text)}
        reply = await line.ask("/tokenize", {"model": self._door.model, **asked}, root=True)
        ids = reply.get("tokens") if isinstance(reply, Mapping) else None
        if not isinstance(ids, list):
            raise BadReply("/tokenize gave no tokens")
        return ids


async def connect(
    endpoint: Endpoint, *, rng: Random | None = None, sleep: Sleep = asyncio.sleep
) -> OpenAIModel | ScoringOpenAIModel:
    """The model behind the endpoint, with what it was seen to be able to do.

    A server that cannot score gives a model without `score`. Costs some requests of a
    few tokens, or on a server of the generic kind none. Raises `ModelUnreachable`, and
    `ModelError` for a refused key or a model that is not there.
    """
    door = _Door(endpoint, rng=rng or Random(), sleep=sleep)
    async with door.open() as line:
        dialect = await _dialect(line, endpoint.model)
    if dialect is Dialect.GENERIC:
        return OpenAIModel(door, Server())
    tried = OpenAIModel(door, Server(dialect, constrains=True))
    server = Server(dialect, await _constrains(tried), await _echoes(tried))
    scoring = ScoringOpenAIModel(door, server)
    return scoring if await _scores_well(scoring) else OpenAIModel(door, server)


async def _dialect(line: _Line, model: str) -> Dialect:
    models = await _unless_refused(line.ask("/models"))
    props = await _unless_refused(line.ask("/props", root=True))
    if isinstance(props, Mapping) and "default_generation_settings" in props:
        return Dialect.LLAMA_CPP
    version = await _unless_refused(line.ask("/version", root=True))
    if not isinstance(version, Mapping) or not isinstance(version.get("version"), str):
        return Dialect.GENERIC
    listed = models.get("data") if isinstance(models, Mapping) else None
    known = [one.get("id") for one in listed or () if isinstance(one, Mapping)]
    if known and model not in known:
        raise ModelError(
            f"the server has no model {model}, but {', '.join(map(str, known[:10]))}",
            fix=_MODEL,
        )
    return Dialect.VLLM


async def _constrains(model: OpenAIModel) -> bool:
    """A word that nobody would say, asked for by grammar alone."""
    held = Sampling(temperature=0.0, max_tokens=8, top=0, grammar=Grammar("word", lit(_WORD)))
    reply = await _unless_refused(model.complete([Message("user", "Name one vitamin.")], held))
    return reply is not None and reply.text == _WORD


async def _echoes(model: OpenAIModel) -> bool:
    """One token cannot repeat four words, so a server that gives them back echoes them."""
    said = "One vitamin is the"
    messages = [Message("user", "Name one vitamin."), Message("assistant", said)]
    one = Sampling(temperature=0.0, max_tokens=1, top=0)
    reply = await _unless_refused(model.complete(messages, one))
    return reply is not None and reply.text.startswith(said)


async def _scores_well(model: ScoringOpenAIModel) -> bool:
    """Whether a given text is scored, and not with zeroes throughout."""
    scored = await _unless_refused(model.score("The heart", " pumps red blood"))
    return scored is not None and any(token.logprob < 0 for token in scored.tokens)


async def _unless_refused(asked: Awaitable[T]) -> T | None:
    """None for what the server refuses or garbles: it cannot do this, which is no failure."""
    try:
        return await asked
    except (ModelUnreachable, KeyRefused):
        raise
    except (ModelError, BadReply):
        return None


class _Door:
    """One server and one model of it. Holds no connection, so it needs no closing."""

    def __init__(self, endpoint: Endpoint, *, rng: Random, sleep: Sleep) -> None:
        self.endpoint = endpoint
        self._rng = rng
        self._sleep = sleep
        self._tls = httpx2.create_ssl_context()
        # A semaphore belongs to one event loop, and a model may be used in several.
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._gates = WeakKeyDictionary()

    @property
    def model(self) -> str:
        return self.endpoint.model

    @property
    def name(self) -> str:
        return f"{self.endpoint.model}@{self.endpoint.host}"

    @asynccontextmanager
    async def open(self) -> AsyncIterator[_Line]:
        """A line for one operation. What is found wrong with a reply names the model."""
        key = self.endpoint.api_key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(headers=headers, verify=self._tls, timeout=None) as client:
            try:
                yield _Line(self, client)
            except BadReply as error:
                raise ModelError(f"{self.name}: {error}") from error

    def gate(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        return self._gates.setdefault(loop, asyncio.Semaphore(self.endpoint.max_concurrency))

    async def pause(self, busy: _Busy, attempt: int) -> None:
        """Waits as long as the server asks, else longer each time and never twice the same."""
        grown = min(_LAST_WAIT, _FIRST_WAIT * 2**attempt)
        await self._sleep(grown * self._rng.uniform(0.5, 1) if busy.asked is None else busy.asked)

    def without_key(self, told: str) -> str:
        """Some servers quote the key in their complaint; from here on it is not in a reply."""
        key = self.endpoint.api_key
        return told.replace(key, "[key]") if key else told


class _Line:
    """Requests over connections that end with it."""

    def __init__(self, door: _Door, client: httpx2.AsyncClient) -> None:
        self._door = door
        self._client = client

    async def ask(
        self, path: str, body: dict[str, Any] | None = None, *, root: bool = False
    ) -> Any:
        """The JSON in the reply; POST with a body, else GET. `root`: not under `/v1`.

        Raises as the table above says.
        """
        base = self._door.endpoint.base_url.rstrip("/")
        url = (base.removesuffix("/v1") if root else base) + path
        retries = self._door.endpoint.retries
        for attempt in range(retries + 1):
            answer = await self._once(url, body)
            if not isinstance(answer, _Busy):
                return self._read(path, answer)
            if attempt == retries or (answer.asked or 0) > _LONGEST_WAIT:
                raise self._unreachable(f"{answer.why}, {attempt + 1} of {retries + 1} tries")
            await self._door.pause(answer, attempt)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(self, url: str, body: dict[str, Any] | None) -> httpx2.Response | _Busy:
        method, limit = ("GET" if body is None else "POST"), self._door.endpoint.timeout_s
        try:
            async with self._door.gate(), asyncio.timeout(limit):
                response = await self._client.request(method, url, json=body)
        except TimeoutError as error:
            raise self._unreachable(f"no reply within {limit:g} s") from error
        except httpx2.ConnectError as error:
            raise self._unreachable(f"no connection: {error}") from error
        except httpx2.TransportError as error:
            return _Busy(f"the server hung up ({type(error).__name__})")
        except httpx2.RequestError as error:
            raise ModelError(f"{self._door.name}: the reply cannot be decoded: {error}") from error
        if response.status_code in _BUSY:
            return _Busy(f"the server answers {response.status_code}", _retry_after(response))
        return response

    def _read(self, path: str, response: httpx2.Response) -> Any:
        status, kind = response.status_code, response.headers.get("content-type", "no type")
        if status in {401, 403}:
            raise KeyRefused(f"{self._door.name}: key refused ({status})", fix=_KEY)
        text = self._door.without_key(response.text)
        if status != httpx2.codes.OK:
            raise ModelError(
                f"{self._door.name}: {path} answered {status}: {_words(text)}",
                fix=_MODEL if status == httpx2.codes.NOT_FOUND else "",
            )
        if "json" not in kind:
            raise ModelError(f"{self._door.name}: {path} answered {kind}, not JSON")
        try:
            return json.loads(text)
        except ValueError as error:
            raise ModelError(f"{self._door.name}: {path} answered broken JSON: {error}") from error

    def _unreachable(self, what: str) -> ModelUnreachable:
        return ModelUnreachable(
            f"{self._door.name}: {self._door.without_key(what)}",
            fix=f"check that the server runs at {self._door.endpoint.base_url} (model.url)",
        )


def _retry_after(response: httpx2.Response) -> float | None:
    """The header's seconds; a date or anything else counts as none."""
    told = response.headers.get("retry-after", "").strip()
    return float(told) if told.isascii() and told.isdigit() else None


def _words(text: str) -> str:
    """What the server says is wrong, shortened."""
    try:
        told = json.loads(text)
    except ValueError:
        told = text
    if isinstance(told, dict):
        told = told.get("error", told.get("message", told.get("detail", told)))
    if isinstance(told, dict):
        told = told.get("message", told)
    return " ".join(str(told).split())[:300]
