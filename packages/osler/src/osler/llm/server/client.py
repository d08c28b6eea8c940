"""Language models on any server that speaks the OpenAI interface, hosted or local.

`connect_server` finds out what a server can do by trying it, since servers ignore fields
that they do not know, and gives a `ScoringOpenAIModel` only where scoring a given
text was seen to work. `connection.py` has what becomes of each fault, `dialects.py` what each
kind of server says, and `docs/guide/servers.md` the table of what each can do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from random import Random
from typing import Any

from osler.errors import CapabilityMissing, ModelError
from osler.llm.core.base import Completion, Message, Sampling, Scored, raw_text
from osler.llm.core.grammar import Grammar, lit
from osler.llm.core.grammar.schema import from_schema
from osler.llm.core.thinking import ThinkingAllowance, split_thinking
from osler.llm.server import dialects, probe, replies, scoring
from osler.llm.server.connection import Clock, RequestRefused, ServerClient, ServerSession
from osler.llm.server.connection import Endpoint as Endpoint
from osler.llm.server.dialects import (
    TRAITS,
    ConstraintKind,
    Dialect,
    ServerProfile,
    request_body,
)
from osler.llm.server.endpoint import BadReply, join_fields, mapping_at
from osler.llm.server.probe import DROPPABLE, unless_refused
from osler.llm.server.replies import ask_to_continue, continue_reply
from osler.types import Usage

_WORD = "osler"
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_PROOFS = {
    ConstraintKind.GRAMMAR: Grammar("proof", lit(_WORD)),
    ConstraintKind.SCHEMA: from_schema(_SCHEMA, name="proof"),
}
"""A word that nobody would say, asked for by a constraint alone."""
_ASKED = Message("user", "Name one vitamin.")
_BEGUN = Message("assistant", "One vitamin is the")


class OpenAIModel:
    """`LanguageModel` on a server."""

    def __init__(self, api: ServerClient, server: ServerProfile) -> None:
        self._api = api
        self.server = server
        self.allowance = ThinkingAllowance(thinks=server.thinks)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.server.dialect.value!r})"

    @property
    def name(self) -> str:
        """The model and the host that serves it."""
        return self._api.name

    @property
    def constrains(self) -> bool:
        """Whether any grammar may be asked for; else `complete` refuses those it cannot enforce."""
        return ConstraintKind.GRAMMAR in self.server.kinds

    @property
    def calls_at_once(self) -> int:
        """Requests under way at most; one, once a request has ended another."""
        return self._api.turns.at_once

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        """Completes as `LanguageModel.complete` does.

        Log-probabilities that the server tells of another distribution than the raw
        model's (under a grammar, or at a temperature) are scored anew where it can score,
        and left out where it cannot.
        """
        return await self.allowance.complete(
            sampling, lambda granted: self._complete_once(messages, sampling, granted)
        )

    async def _complete_once(
        self, messages: Sequence[Message], sampling: Sampling, granted: Sampling
    ) -> Completion:
        try:
            read = await self._request_chat(messages, granted)
        except RequestRefused as error:
            # Room for thinking may be what the model's context lacks.
            if granted.max_tokens == sampling.max_tokens or "context" not in str(error):
                raise
            read = await self._request_chat(messages, sampling)
        completion = read.completion
        return await self._score_unreported(messages, completion) if read.unreported else completion

    async def _request_chat(
        self, messages: Sequence[Message], sampling: Sampling
    ) -> dialects.ChatReply:
        rule = sampling.grammar
        constraint = dialects.constraint_fields(self.server, rule) if rule else {}
        if constraint is None:
            raise CapabilityMissing(
                f"{self.name} cannot be held to this grammar",
                fix="use vLLM, llama.cpp's server or a local model",
            )
        if (raw := raw_text(messages)) is not None:
            return await self._request_raw(raw, sampling, constraint)
        dialect = self.server.dialect
        turns = messages if TRAITS[dialect].continues else ask_to_continue(messages)
        async with self._api.open() as line:
            reply, seconds = await self._gather_reply(line, turns, sampling, constraint)
            # Read within the session, so that a reply that breaks the interface names the model.
            read = dialects.read_chat(reply, self.server, messages, sampling, seconds)
            if len(turns) > len(messages):
                begun = dialects.begun_text(messages)
                read = replace(read, completion=continue_reply(read.completion, begun))
            return self._without_key(read)

    async def ask_whole(
        self, messages: Sequence[Message], sampling: Sampling, more: Mapping[str, Any] | None = None
    ) -> tuple[Any, float]:
        """The whole reply as the server gave it, in the OpenAI interface's form, and its seconds.

        `more`: further fields of the request, such as tools.
        """
        async with self._api.open() as line:
            return await self._gather_reply(line, messages, sampling, more or {})

    async def _gather_reply(
        self,
        line: ServerSession,
        turns: Sequence[Message],
        sampling: Sampling,
        more: Mapping[str, Any],
    ) -> tuple[Any, float]:
        dialect = self.server.dialect
        body = dialects.chat_body(self.server, self._api.model, turns, sampling, more)
        body = join_fields(body, self._api.endpoint.fields)
        path, root = dialects.chat_path(dialect)
        began = time.perf_counter()
        try:
            gathered = await line.gather_stream(
                path, body, lambda: dialects.make_gatherer(dialect, sampling), root=root
            )
        except RequestRefused as error:
            await self._explain_refusal(line, error)
            raise
        return gathered.reply, time.perf_counter() - began

    async def _request_raw(
        self, prompt: str, sampling: Sampling, constraint: Mapping[str, Any]
    ) -> dialects.ChatReply:
        """Completes a prompt as it stands, past the chat template."""
        if self.server.dialect not in RAW_DIALECTS:
            raise CapabilityMissing(
                f"{self.name} accepts conversations only, not a raw prompt",
                fix="use vLLM, llama.cpp's server, a GGUF file or transformers",
            )
        told = {"logprobs": sampling.top} if sampling.top else {}
        fields = {"prompt": prompt, **told, **constraint}
        body = request_body(self.server, self._api.model, sampling, fields)
        began = time.perf_counter()
        async with self._api.open() as line:
            reply = to_chat_reply(await line.request_json("/completions", body))
            seconds = time.perf_counter() - began
            return self._without_key(dialects.read_chat(reply, self.server, (), sampling, seconds))

    def _without_key(self, read: dialects.ChatReply) -> dialects.ChatReply:
        """Removes a key that came in pieces, which is whole only here."""
        completion, scrub = read.completion, self._api.without_key
        text, thinking = scrub(completion.text), scrub(completion.thinking)
        if (text, thinking) == (completion.text, completion.thinking):
            return read
        return replace(
            read, completion=replace(completion, text=text, thinking=thinking, tokens=())
        )

    async def _explain_refusal(self, line: ServerSession, error: RequestRefused) -> None:
        """Raises an error that names the available models, where the model is what is wrong."""
        if error.status == 404:
            models = await probe.ask_models(line)
            try:
                probe.check_model(models, self._api.endpoint)
            except ModelError as named:
                raise ModelError(f"{error.message}; {named.message}", fix=named.fix) from error

    async def _score_unreported(
        self, messages: Sequence[Message], completion: Completion
    ) -> Completion:
        """Adds the log-probabilities that the reply did not report, where the server can score."""
        return completion


class ScoringOpenAIModel(OpenAIModel):
    """`LanguageModel` and `Likelihood` on a server."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        """Scores as `Likelihood.score` does. llama.cpp's server needs a request for each token."""
        if not text:
            raise ModelError("there is no text to score")
        if self.server.scoring is None:
            raise CapabilityMissing(f"{self.name} cannot score a given text")
        began = time.perf_counter()
        async with self._api.open() as line:
            model = self._api.model
            tokens = await scoring.score_text(
                self.server.scoring, line.request_json, model, context, text
            )
        seconds = round(time.perf_counter() - began, 3)
        return Scored(tokens, Usage(calls=1, scored_tokens=len(tokens), seconds=seconds))

    async def _score_unreported(
        self, messages: Sequence[Message], completion: Completion
    ) -> Completion:
        scored = await self.score(messages, completion.text)
        usage = completion.usage + scored.usage + Usage(calls=-1)  # one completion to the caller
        return replace(completion, tokens=scored.tokens, usage=usage)


async def connect_server(
    endpoint: Endpoint, *, rng: Random | None = None, clock: Clock | None = None
) -> OpenAIModel | ScoringOpenAIModel:
    """Connects to the model behind the endpoint, and finds out what it can do.

    A server that cannot score gives a model without `score`. Costs a few requests of a
    few tokens: one to speak, one for each kind of constraint, and two scores where the
    kind of server has them. Raises `ModelUnreachable`, and `ModelError` for a refused
    key or a model that is not there.
    """
    api = ServerClient(endpoint, rng=rng, clock=clock)
    async with api.open() as line:
        server = await probe.identify_server(line, endpoint)
    server = await _probe_first_reply(api, server)
    server = replace(server, kinds=await _probe_constraints(api, server))
    # Seen to work, not looked up: a proxy in front of the server may drop what it does not know.
    if (way := TRAITS[server.dialect].scoring) is not None:
        scoring_model = ScoringOpenAIModel(api, replace(server, scoring=way))
        if await _scores_well(scoring_model):
            return scoring_model
    return OpenAIModel(api, server)


async def _probe_first_reply(api: ServerClient, server: ServerProfile) -> ServerProfile:
    """Learns from a first reply; leaves out, one by one, the fields that the server refuses.

    Few tokens cannot repeat four words by themselves, so a server that gives back the
    words it was to continue echoes them.
    """
    continues = TRAITS[server.dialect].continues
    messages = [_ASKED, _BEGUN] if continues else [_ASKED]
    sampling = Sampling(temperature=0.0, max_tokens=1 if continues else 16)
    while True:
        try:
            read = await OpenAIModel(api, server)._request_chat(messages, sampling)
        except RequestRefused as error:
            # Each refusal takes one more field out, so that the loop ends.
            if error.field not in DROPPABLE - server.without:
                raise
            server = replace(server, without=server.without | {error.field})
            continue
        text, thought = read.completion.text, read.completion.thinking
        echoes = continues and text.startswith(_BEGUN.content)
        thinks = bool(thought or split_thinking(read.completion).thinking)
        return replace(server, logprobs=read.told > 0, echoes=echoes, thinks=thinks)


async def _probe_constraints(api: ServerClient, server: ServerProfile) -> frozenset[ConstraintKind]:
    candidates = TRAITS[server.dialect].kinds
    return frozenset([kind for kind in candidates if await _holds_constraint(api, server, kind)])


async def _holds_constraint(api: ServerClient, server: ServerProfile, kind: ConstraintKind) -> bool:
    tried = OpenAIModel(api, replace(server, kinds=frozenset({kind})))
    # A constraint holds from where the thinking ends.
    most = 512 if server.thinks else 64
    sampling = Sampling(temperature=0.0, max_tokens=most, top=0, grammar=_PROOFS[kind])
    read = await unless_refused(tried._request_chat([_ASKED], sampling))
    return read is not None and _PROOFS[kind].accepts(read.completion.text.strip())


async def _scores_well(model: ScoringOpenAIModel) -> bool:
    """Returns whether a text is scored after words and after a conversation, not all zeroes."""
    for context in ("The heart", [_ASKED]):
        scored = await unless_refused(model.score(context, " pumps red blood"))
        if scored is None or not any(token.logprob < 0 for token in scored.tokens):
            return False
    return True


RAW_DIALECTS = frozenset({Dialect.VLLM, Dialect.LLAMA_CPP, Dialect.GENERIC})
"""Servers that are known to read such a prompt as it stands; Ollama puts it into a template."""


def to_chat_reply(reply: Any) -> dict[str, Any]:
    """Translates a completion's reply to a chat's. Raises `BadReply` for one without a text."""
    choice = replies.first_choice(reply)
    text = replies.require_key(choice, "text", str, "the first choice")
    logprobs = mapping_at(choice, "logprobs")
    # llama.cpp's server tells them as in a chat.
    entries = logprobs.get("content") or _legacy_entries(logprobs)
    chat = {
        "message": {"content": text},
        "finish_reason": choice.get("finish_reason"),
        "logprobs": {"content": entries},
    }
    return {"choices": [chat], "usage": reply.get("usage")}


def _legacy_entries(logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Entries of parallel lists: the tokens, their log-probabilities, the likeliest of each."""
    tokens, values = logprobs.get("tokens") or [], logprobs.get("token_logprobs") or []
    tops = logprobs.get("top_logprobs") or []
    if not all(isinstance(one, list) for one in (tokens, values, tops)):
        raise BadReply("the log-probabilities are not lists")
    if len(tokens) != len(values):
        raise BadReply(f"{len(tokens)} tokens have {len(values)} log-probabilities")
    return [
        {
            "token": token,
            "logprob": value,
            "top_logprobs": [{"token": one, "logprob": p} for one, p in (top or {}).items()],
        }
        for token, value, top in zip_longest(tokens, values, tops[: len(tokens)])
    ]
