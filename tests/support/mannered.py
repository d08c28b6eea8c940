"""A small server of the OpenAI interface whose model has the manners that a test gives it.

    async with serve_manners(competent, Manners(thinking="text", tags="bold")) as place:
        model = await connect_server(Endpoint(base_url=place.url, model=MODEL))

`competent` replies as each prompt asks; the manners are put around what it says. A server that
continues or scores speaks as vLLM does, any other as a server of no known kind.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import ollama_wire as ollama
from loopback_servers import (
    HOLD,
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    chat_chunk,
    json_reply,
    reply_head,
    serve_loopback,
    stream_reply,
    token_entry,
)
from manners import THOUGHT, Manners, dress_reply, native_calls
from prefix_cache import PrefixCache, template_tokens

from osler_lab.testing.scripted import tokens_of

MODEL = "mannered"
PROBABILITY = 0.9

Turns = Sequence[Mapping[str, str]]
"""Messages as they were sent: each with `role` and `content`."""
Competent = Callable[[Turns, str], str]
"""Turns and the beginning of the last reply, if it is to be continued → the rest of the reply."""


@dataclass
class ManneredServer:
    """The answers of such a server."""

    competent: Competent
    manners: Manners
    chats: int = 0
    vocabulary: list[str] = field(default_factory=list)
    """Tokens by number, as they were met."""
    cache: PrefixCache = field(default_factory=PrefixCache)
    free_at: float = 0.0
    """When the one slot has done all that it was given."""

    def answer(self, asked: LoopbackRequest) -> LoopbackReply | bytes:
        manners = self.manners
        if manners.server == "Ollama":
            return ollama.answer_as_ollama(asked, MODEL, manners.context, self._answer_in_time)
        as_vllm = manners.continues or manners.scores
        match asked.path:
            case "/v1/chat/completions":
                return self._answer_in_time(asked.body)
            case "/v1/models":
                listed = {"id": manners.serves or MODEL, "max_model_len": manners.context}
                return json_reply({"data": [listed]})
            case "/version" if as_vllm:
                return json_reply({"version": "0.11.0"})
            case "/tokenize" if manners.scores:
                return json_reply({"tokens": self._tokenise(asked.body)})
            case "/v1/completions" if manners.scores and asked.body.get("echo"):
                return json_reply(self._echo_prompt(asked.body["prompt"]))
            case _:
                return json_reply({"error": "not here"}, 404)

    # Chats

    def _answer_in_time(self, body: Mapping[str, Any]) -> LoopbackReply | bytes:
        """The reply to a chat, after the seconds that it takes."""
        self.chats += 1
        reply = self._answer_chat(body)
        if not self.manners.seconds or not isinstance(reply, bytes):
            return reply
        now, work = time.monotonic(), self.manners.seconds
        self.free_at = (max(now, self.free_at) if self.manners.one_slot else now) + work
        return LoopbackReply(reply, after=self.free_at - now)

    def _answer_chat(self, body: Mapping[str, Any]) -> LoopbackReply | bytes:
        if self.chats <= self.manners.faulty_calls and (fault := self._fail(body)) is not None:
            return fault
        turns, most = body["messages"], int(body.get("max_tokens") or 10_000)
        said = sum(len(tokens_of(turn["content"], 1.0)) for turn in turns)
        # Ollama allots as large a window as a request asks for.
        context = int(body.get("num_ctx") or self.manners.context)
        if said + most > context:
            return json_reply({"error": {"message": _too_long(said, most, context)}}, 400)
        thinking, text = self._speak(body, turns)
        return self._send(body, thinking, text, most)

    def _fail(self, body: Mapping[str, Any]) -> LoopbackReply | bytes | None:
        begun = reply_head(kind="text/event-stream")
        match self.manners.fault:
            case "slow":
                return HOLD
            case "cut":
                return begun + b"data: " + json.dumps(chat_chunk("Oral")).encode() + b"\n\n"
            case "429" | "500" as status:
                return json_reply({"error": {"message": "busy"}}, int(status))
            case "wrong JSON":
                return json_reply(b'{"choices": [{"mess')
            case _:
                return None

    def _speak(self, body: Mapping[str, Any], turns: Turns) -> tuple[str, str]:
        """The thinking and the text of a reply of any length."""
        manners = self.manners
        prompt = "\n".join(turn["content"] for turn in turns)
        goes_on = manners.continues and turns[-1]["role"] == "assistant"
        begun = turns[-1]["content"] if goes_on else ""
        reply = self.competent(turns, begun)
        if manners.grammar and (rule := _rule_of(body)):
            return "", _held_to(rule) or reply
        # Nobody is courteous within a sentence.
        text = dress_reply(reply, replace(manners, chatter=manners.chatter and not begun), prompt)
        for stop in body.get("stop") or ():
            text = text.partition(stop)[0]
        # What continues a reply that has begun is past its thinking.
        thinks = manners.thinking != "none" and not begun and not self._is_told_not_to(body)
        long = manners.thought_tokens
        if manners.shortens and body.get("reasoning_effort") == "low":
            long //= 4
        thought = f"{THOUGHT} " * (1 + long // len(tokens_of(THOUGHT, 1.0)))
        if manners.silent:
            text = ""
        elif manners.endless:
            text = f"{text} " * (1 + int(body.get("max_tokens") or 1_000))
        return (thought.strip() if thinks else ""), text

    def _is_told_not_to(self, body: Mapping[str, Any]) -> bool:
        fields = body.get("chat_template_kwargs") or {}
        told = fields.get("enable_thinking") is False or body.get("reasoning_effort") == "none"
        return self.manners.tells_not_to and (told or body.get("think") is False)

    def _send(self, body: Mapping[str, Any], thinking: str, text: str, most: int) -> bytes:
        thought, told, cut = _cut_at(thinking, text, most)
        calls: list[dict[str, Any]] = []
        if self.manners.calls == "native" and not cut:
            told, calls = native_calls(told)
        marks = {"text": ("<think>\n", "\n</think>\n\n"), "template": ("", "\n</think>\n\n")}
        content = told
        if thought and self.manners.thinking in marks:
            opened, closed = marks[self.manners.thinking]
            content = f"{opened}{thought}" + ("" if cut and not told else f"{closed}{told}")
        apart = thought if self.manners.thinking == "apart" else ""
        finish = "length" if cut else "tool_calls" if calls else "stop"
        hidden = len(tokens_of(thought, 1.0)) if self.manners.thinking == "hidden" else 0
        return self._form_reply(body, content, apart, calls, finish, hidden)

    def _form_reply(
        self,
        body: Mapping[str, Any],
        content: str,
        apart: str,
        calls: list[dict[str, Any]],
        finish: str,
        hidden: int,
    ) -> bytes:
        count = len(tokens_of(content + apart, PROBABILITY)) + hidden
        usage = {**self._read_prompt(body["messages"]), "completion_tokens": count}
        if hidden:
            usage["completion_tokens_details"] = {"reasoning_tokens": hidden}
        named = {"model": self.manners.serves or MODEL}
        more: dict[str, Any] = {}
        if self.manners.logprobs and body.get("logprobs"):
            entries = [token_entry(t.text, t.logprob) for t in tokens_of(content, PROBABILITY)]
            more["logprobs"] = {"content": entries}
        if self.manners.streams and body.get("stream"):
            chunks = _chunks_of(content, apart, calls, finish, more, usage)
            return stream_reply([named | chunk for chunk in chunks])
        absent = None if apart or calls else ""
        message: dict[str, Any] = {"role": "assistant", "content": content or absent}
        message |= {"reasoning_content": apart} if apart else {}
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": finish, **more}
        return json_reply({**named, "choices": [choice], "usage": usage})

    def _read_prompt(self, turns: Turns) -> dict[str, Any]:
        tokens = template_tokens(turns)
        cached = self.cache.read_prompt(tokens)
        details = {"prompt_tokens_details": {"cached_tokens": cached}}
        return {"prompt_tokens": len(tokens), **details}

    # Scores

    def _tokenise(self, body: Mapping[str, Any]) -> list[int]:
        if "prompt" in body:
            text = str(body["prompt"])
        else:
            text = "\n".join(turn["content"] for turn in body["messages"])
        return [self._number_of(token.text) for token in tokens_of(text, 1.0)]

    def _number_of(self, token: str) -> int:
        if token not in self.vocabulary:
            self.vocabulary.append(token)
        return self.vocabulary.index(token)

    def _echo_prompt(self, ids: Sequence[int]) -> dict[str, Any]:
        pieces = [self.vocabulary[one] for one in ids]
        values: list[float | None] = [None, *[-0.5 for _ in ids[1:]]]
        return {"choices": [{"logprobs": {"tokens": pieces, "token_logprobs": values}}]}


def _too_long(said: int, most: int, context: int) -> str:
    return (
        f"This model's maximum context length is {context} tokens. However, you"
        f" requested {said + most} tokens ({said} in the messages, {most} in the completion)."
    )


def _rule_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The constraint of a request, as vLLM is told it; empty without one."""
    if "format" in body:
        return {"json": body["format"]}
    if "response_format" in body:
        return {"json": body["response_format"]["json_schema"]["schema"]}
    return body.get("structured_outputs") or {}


def _held_to(rule: Mapping[str, Any]) -> str:
    """What a simple rule leaves to be said; empty for another."""
    if str(rule.get("grammar", "")).startswith('root ::= "'):
        return str(rule["grammar"]).split('"')[1]
    words = (rule.get("json") or {}).get("properties", {}).get("word", {}).get("enum")
    return json.dumps({"word": words[0]}) if words else ""


def _cut_at(thinking: str, text: str, most: int) -> tuple[str, str, bool]:
    """Thinking and text within `most` tokens, and whether something was cut."""
    thought, said = tokens_of(thinking, 1.0), tokens_of(text, 1.0)
    if len(thought) + len(said) <= most:
        return thinking, text, False
    if len(thought) >= most:
        return thinking[: thought[most - 1].end], "", True
    left = most - len(thought)
    return thinking, text[: said[left - 1].end], True


def _chunks_of(
    content: str,
    apart: str,
    calls: list[dict[str, Any]],
    finish: str,
    more: dict[str, Any],
    usage: dict[str, Any],
) -> list[dict[str, Any]]:
    """The reply as events; what is known of its tokens comes with the first."""
    chunks: list[dict[str, Any]] = []
    if apart:
        chunks.append({"choices": [{"index": 0, "delta": {"reasoning_content": apart}}]})
    half = len(content) // 2
    chunks.append(chat_chunk(content[:half], **more))
    chunks.append(chat_chunk(content[half:]))
    if calls:
        told = [{"index": n, **one} for n, one in enumerate(calls)]
        chunks.append({"choices": [{"index": 0, "delta": {"tool_calls": told}}]})
    return [*chunks, {**chat_chunk(finish=finish), "usage": usage}]


@asynccontextmanager
async def serve_manners(
    competent: Competent, manners: Manners | None = None
) -> AsyncIterator[LoopbackServer]:
    """The server on a free port of 127.0.0.1, gone with the block."""
    served = ManneredServer(competent, manners or Manners())
    async with serve_loopback(served.answer) as place:
        yield place
