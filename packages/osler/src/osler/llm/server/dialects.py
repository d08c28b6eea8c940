"""Differences between the servers that call themselves OpenAI-compatible.

A request is made and a reply is read here, for each kind of server; `scoring.py` does
so for the scoring of given texts. What the servers have in common is that they ignore
fields they do not know, so a reply is never taken to have obeyed: entries are counted,
texts compared, and what a server can do is what it was seen to do (`client.connect_server`).
`docs/guide/servers.md` has the table, and where each line of it is from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.core.grammar import Grammar
from osler.llm.server import replies
from osler.llm.server.endpoint import BadReply
from osler.llm.server.replies import ChatGatherer
from osler.text import join_surrogates


class Dialect(StrEnum):
    """The kinds of server."""

    LLAMA_CPP = "llama.cpp"
    VLLM = "vLLM"
    OLLAMA = "Ollama"
    OPENROUTER = "OpenRouter"
    GENERIC = "generic"


class ConstraintKind(StrEnum):
    """The ways of constraining a reply, the most exact first."""

    GRAMMAR = "grammar"
    SCHEMA = "schema"


class ScoringMethod(StrEnum):
    """The ways of scoring a given text."""

    ECHO = "echo"
    FORCED = "forced"


@dataclass(frozen=True, slots=True)
class DialectTraits:
    """How a kind of server is detected, and what is tried with it."""

    endpoints: tuple[str, ...] = ()
    """Endpoints outside `/v1` that only this kind has; the first that answers is read."""
    key: str = ""
    """A key of that endpoint's reply, or, without endpoints, of an entry in the list of models."""
    kinds: tuple[ConstraintKind, ...] = (ConstraintKind.SCHEMA,)
    """Constraints that it is tried for."""
    scoring: ScoringMethod | None = None
    """The way to score that is tried."""
    continues: bool = False
    """Set where it continues a message of the assistant's."""
    lists_models: bool = False
    """Set where its list of models is complete, so that a name that is missing is an error."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Fields that switch off the cutting of tails: the paper samples by temperature alone."""


TRAITS: Mapping[Dialect, DialectTraits] = {
    Dialect.LLAMA_CPP: DialectTraits(
        ("/props",),
        "default_generation_settings",
        (ConstraintKind.GRAMMAR, ConstraintKind.SCHEMA),
        ScoringMethod.FORCED,
        continues=True,
        sampling={"top_k": 0, "top_p": 1.0, "min_p": 0.0},
    ),
    Dialect.VLLM: DialectTraits(
        ("/version",),
        "version",
        tuple(ConstraintKind),
        ScoringMethod.ECHO,
        continues=True,
        lists_models=True,
        sampling={"top_k": -1, "top_p": 1.0, "min_p": 0.0},
    ),
    Dialect.OLLAMA: DialectTraits(("/api/version",), "version", lists_models=True),
    Dialect.OPENROUTER: DialectTraits(
        key="supported_parameters",
        # Else a provider that knows none of the fields may be chosen, and ignores them.
        sampling={"provider": {"require_parameters": True}},
    ),
    Dialect.GENERIC: DialectTraits(),
}
"""Every dialect, in the order in which they are looked for."""


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """Capabilities found when a server was connected to."""

    dialect: Dialect = Dialect.GENERIC
    kinds: frozenset[ConstraintKind] = frozenset()
    """The kinds of constraint that were seen to hold."""
    logprobs: bool = False
    """Set when generated tokens came with log-probabilities."""
    scoring: ScoringMethod | None = None
    """The way of scoring that was seen to work."""
    echoes: bool = False
    """Set when a continued message came back with its beginning in front."""
    thinks: bool = False
    """Set when it reported thinking before a reply."""
    without: frozenset[str] = frozenset()
    """Fields that it refused and that are left out since."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The completion of a chat, and how much of it was reported."""

    completion: Completion
    told: int
    """Tokens with an entry in the reply."""
    unreported: bool
    """Set when log-probabilities of the text exist that the reply does not report."""


def constraint_fields(server: ServerProfile, rule: Grammar) -> dict[str, Any] | None:
    """Returns the fields that hold a reply to the rule; None where this server cannot."""
    match server.dialect:
        case Dialect.LLAMA_CPP:
            names = {ConstraintKind.GRAMMAR: "grammar", ConstraintKind.SCHEMA: "json_schema"}
            return _first_field(server, rule, names)
        case Dialect.VLLM:
            names = {ConstraintKind.GRAMMAR: "grammar", ConstraintKind.SCHEMA: "json"}
            fields = _first_field(server, rule, names)
            return fields and {"structured_outputs": fields}
        case Dialect.OLLAMA:
            return _first_field(server, rule, {ConstraintKind.SCHEMA: "format"})
        case Dialect.OPENROUTER | Dialect.GENERIC:
            return _response_format(server, rule)
        case _:
            assert_never(server.dialect)


def _first_field(
    server: ServerProfile, rule: Grammar, names: Mapping[ConstraintKind, str]
) -> dict[str, Any] | None:
    forms = {ConstraintKind.GRAMMAR: rule.gbnf, ConstraintKind.SCHEMA: rule.json_schema}
    # `names` is in the order of exactness: the first form that both sides have is taken.
    for kind, name in names.items():
        if forms[kind] and kind in server.kinds:
            return {name: forms[kind]}
    return None


def _response_format(server: ServerProfile, rule: Grammar) -> dict[str, Any] | None:
    if rule.json_schema is None or ConstraintKind.SCHEMA not in server.kinds:
        return None
    named = {"name": "reply", "strict": True, "schema": rule.json_schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def chat_path(dialect: Dialect) -> tuple[str, bool]:
    """Returns the path of a chat, and whether it is at the root.

    Ollama's own interface is used because its OpenAI one cuts a prompt that is too long without
    a word and has no field against it.
    """
    return ("/api/chat", True) if dialect is Dialect.OLLAMA else ("/chat/completions", False)


def make_gatherer(dialect: Dialect, sampling: Sampling) -> ChatGatherer:
    """Makes the collector of a streamed chat."""
    if dialect is Dialect.OLLAMA:
        return ChatGatherer(sampling.max_tokens, translate=from_ollama)
    return ChatGatherer(sampling.max_tokens)


def chat_body(
    server: ServerProfile,
    model: str,
    messages: Sequence[Message],
    sampling: Sampling,
    held: Mapping[str, Any],
) -> dict[str, Any]:
    """Makes the body of a chat; `held` comes from `constraint_fields`."""
    if server.dialect is Dialect.OLLAMA:
        return {**to_ollama(model, messages, sampling), **held}
    fields = {
        "messages": list_messages(messages),
        **({"logprobs": True, "top_logprobs": sampling.top} if sampling.top else {}),
        "stream": True,
        "stream_options": {"include_usage": True},
        **(turn_fields(messages) if server.dialect is Dialect.VLLM else {}),
        **held,
    }
    if "max_tokens" in server.without:
        fields["max_completion_tokens"] = sampling.max_tokens
    return request_body(server, model, sampling, fields)


def request_body(
    server: ServerProfile, model: str, sampling: Sampling, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Makes the body of a chat or a completion: what both have, and `fields`."""
    body = {
        "model": model,
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        **({"stop": list(sampling.stop)} if sampling.stop else {}),
        **TRAITS[server.dialect].sampling,
        **fields,
    }
    return {name: value for name, value in body.items() if name not in server.without}


def list_messages(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def turn_fields(messages: Sequence[Message]) -> dict[str, bool]:
    """Tells vLLM whether the last message is to be continued."""
    continued = bool(begun_text(messages))
    return {"continue_final_message": continued, "add_generation_prompt": not continued}


def begun_text(messages: Sequence[Message]) -> str:
    """Returns the assistant's unfinished turn; empty when the next turn is its own."""
    last = messages[-1] if messages else Message("user", "")
    return last.content if last.role == "assistant" else ""


def to_ollama(model: str, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
    options = {
        "temperature": sampling.temperature,
        "num_predict": sampling.max_tokens,
        "seed": sampling.seed,
        "stop": list(sampling.stop),
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
    }
    return {
        "model": model,
        "messages": list_messages(messages),
        "stream": True,
        "options": options,
        # Without these a prompt that is too long loses its beginning, and nobody notices.
        "truncate": False,
        "shift": False,
        **({"logprobs": True, "top_logprobs": sampling.top} if sampling.top else {}),
    }


def from_ollama(line: Any) -> Any:
    """Translates a line of Ollama's stream to a chunk of the OpenAI interface's."""
    if not isinstance(line, Mapping) or not isinstance(line.get("message"), Mapping):
        return line
    message, done = line["message"], bool(line.get("done"))
    choice: dict[str, Any] = {
        "delta": {
            "content": message.get("content"),
            "reasoning_content": message.get("thinking"),
            "tool_calls": message.get("tool_calls"),
        },
        "finish_reason": (line.get("done_reason") or "stop") if done else None,
    }
    if isinstance(line.get("logprobs"), list):
        choice["logprobs"] = {"content": line["logprobs"]}
    chunk: dict[str, Any] = {"choices": [{**choice, "message": choice["delta"]}]}
    if done:
        counts = line.get("prompt_eval_count"), line.get("eval_count")
        chunk["usage"] = {"prompt_tokens": counts[0], "completion_tokens": counts[1]}
    return chunk


def read_chat(
    reply: Any,
    server: ServerProfile,
    messages: Sequence[Message],
    sampling: Sampling,
    seconds: float,
) -> ChatReply:
    """Reads the completion in the reply to a chat. Raises `BadReply`."""
    choice = replies.first_choice(reply)
    message = replies.require_key(choice, "message", Mapping, "the first choice")
    finish, thought = choice.get("finish_reason"), _read_thought(message)
    # A server that ignores max_tokens is cut here, and the reply counts as cut.
    cut, most = finish == "length", replies.longest_reply(sampling.max_tokens)
    content = _read_content(message, thought, finish)
    if finish == "content_filter":
        raise BadReply("the server's content filter cut the reply")
    text = content.removeprefix(begun_text(messages)) if server.echoes else content
    cut, text = cut or len(text) > most, text[:most]
    text = text.rstrip(replies.STRAY) if cut else text
    text = _cut_at_stop(text, sampling.stop) if "stop" in server.without else text
    usage = replies.read_usage(reply, seconds)
    entries = replies.token_entries(choice) if sampling.top else ()
    tokens = replies.read_tokens(choice, text) if sampling.top else ()
    raw = _is_raw(server.dialect, sampling)
    # llama.cpp reports tokens that share a character as one.
    if not raw or (len(entries) < usage.completion_tokens and not text.isascii()):
        tokens = ()
    unreported = bool(sampling.top and text and not thought and not tokens)
    finished: Any = "length" if cut else "stop"
    completion = Completion(text, tokens, finished, usage, thought)
    return ChatReply(completion, len(entries), unreported and (not raw or not text.isascii()))


def _read_thought(message: Mapping[str, Any]) -> str:
    thought = message.get("reasoning_content") or message.get("reasoning")
    return join_surrogates(thought) if isinstance(thought, str) else ""


def _read_content(message: Mapping[str, Any], thought: str, finish: object) -> str:
    """Reads the content; it may be missing only where thinking used up the tokens."""
    content, calls = message.get("content"), replies.spell_calls(message)
    if calls and (content is None or isinstance(content, str)):
        return join_surrogates("\n".join(filter(None, (content, calls))))
    if content is None and thought and finish in ("length", "stop"):
        return ""
    if not isinstance(content, str):
        refusal = message.get("refusal") or finish
        raise BadReply(f"the reply's content is not text but {content!r} (finish: {refusal})")
    return join_surrogates(content)


def _cut_at_stop(text: str, stops: Sequence[str]) -> str:
    """Cuts the text at the first stop string, for a server that does not stop at them."""
    return text[: min((at for at in map(text.find, stops) if at >= 0), default=len(text))]


def _is_raw(dialect: Dialect, sampling: Sampling) -> bool:
    """Returns whether log-probabilities are the raw model's, before grammar and temperature.

    Under a grammar vLLM tells them after the mask, so that every token is certain; of the
    servers for which nothing is known that is assumed.
    """
    return dialect is Dialect.LLAMA_CPP or not sampling.grammar
