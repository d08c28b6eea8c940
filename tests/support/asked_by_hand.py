"""What a server can do, asked by hand: plain requests, of which nothing is Osler's.

Truth about a server, that the lines of `osler doctor --model` are held to. The words are those of
the OpenAI interface; what a server ignores without saying so is seen in what it replies.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2

_WORD = "osler"
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_HELD = {
    "type": "json_schema",
    "json_schema": {"name": "reply", "strict": True, "schema": _SCHEMA},
}
_TOOL = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
_GBNF = f'root ::= "{_WORD}"'
_GRAMMARS: list[dict[str, Any]] = [{"grammar": _GBNF}, {"structured_outputs": {"grammar": _GBNF}}]
_CONTINUING: list[dict[str, bool]] = [
    {},
    {"continue_final_message": True, "add_generation_prompt": False},
]
"""By itself, as llama.cpp does; in vLLM's words."""
_USER = {"role": "user", "content": "Name one vitamin."}


@dataclass(frozen=True, slots=True)
class Truth:
    streams: bool
    """Several pieces, not one."""
    logprobs: bool
    scores: bool
    """Whether /completions tells log-probabilities of a conversation, which it tokenised."""
    counts: bool
    """Whether a stream tells how many tokens were read and written."""
    schema: bool
    grammar: bool
    """Whether llama.cpp's own field is obeyed, or vLLM's."""
    continues: bool
    beside: bool
    calls_tools: bool


@dataclass(frozen=True, slots=True)
class Asker:
    url: str
    model: str
    key: str = ""

    def find_truth(self) -> Truth:
        return Truth(
            streams=len(self._stream_times(12)) > 1,
            logprobs=self._tells_logprobs(),
            scores=self._scores(),
            counts=self._counts(),
            schema=self._holds_schema(),
            grammar=any(self._text(**way, max_tokens=8) == _WORD for way in _GRAMMARS),
            continues=self._continues(),
            beside=self._works_beside(),
            calls_tools=bool(
                self._message(tools=[{"type": "function", "function": _TOOL}]).get("tool_calls")
            ),
        )

    def post(self, path: str, body: Mapping[str, Any]) -> httpx2.Response:
        asked = {"model": self.model, "temperature": 0.0, **body}
        return httpx2.post(self.url + path, json=asked, headers=self._headers(), timeout=300)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def _choice(self, **more: Any) -> dict[str, Any]:
        """Of a whole reply; nothing where the request is refused."""
        reply = self.post("/chat/completions", {"messages": [_USER], "max_tokens": 24, **more})
        return dict(reply.json()["choices"][0]) if reply.status_code == 200 else {"message": {}}

    def _message(self, **more: Any) -> dict[str, Any]:
        return dict(self._choice(**more)["message"])

    def _text(self, **more: Any) -> str:
        return str(self._message(**more).get("content") or "").strip()

    def _tells_logprobs(self) -> bool:
        told = self._choice(logprobs=True, top_logprobs=1).get("logprobs")
        return bool(told and told.get("content"))

    def _scores(self) -> bool:
        asked = {"model": self.model, "messages": [_USER]}
        root = self.url.removesuffix("/v1")
        reply = httpx2.post(f"{root}/tokenize", json=asked, headers=self._headers(), timeout=300)
        tokens = reply.json().get("tokens") if reply.status_code == 200 else None
        if not tokens:
            return False
        body = {"prompt": tokens, "echo": True, "logprobs": 1, "max_tokens": 1}
        reply = self.post("/completions", body)
        told = reply.json()["choices"][0].get("logprobs") if reply.status_code == 200 else None
        return len((told or {}).get("token_logprobs") or []) > len(tokens)

    def _counts(self) -> bool:
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        body = {"messages": [_USER], "max_tokens": 4, **streamed}
        return '"completion_tokens"' in self.post("/chat/completions", body).text

    def _holds_schema(self) -> bool:
        try:
            return bool(
                json.loads(self._text(response_format=_HELD, max_tokens=48)) == {"word": _WORD}
            )
        except ValueError:
            return False

    def _continues(self) -> bool:
        """A message of one token that is continued makes the prompt longer by that token alone; a
        message that is ended has the marks of its end and of the next turn as well."""
        begun = [_USER, {"role": "assistant", "content": "one"}]
        alone = self._prompt_tokens([_USER])
        return any(self._prompt_tokens(begun, **way) - alone == 1 for way in _CONTINUING)

    def _prompt_tokens(self, messages: list[dict[str, str]], **more: bool) -> int:
        body = {"messages": messages, "max_tokens": 1, **more}
        reply = self.post("/chat/completions", body)
        return int(reply.json()["usage"]["prompt_tokens"]) if reply.status_code == 200 else -1

    def _works_beside(self) -> bool:
        """Whether each of two streams has a piece before the other's last."""
        told: list[list[float]] = []
        asked = [threading.Thread(target=lambda: told.append(self._stream_times(64))) for _ in "12"]
        for thread in asked:
            thread.start()
        for thread in asked:
            thread.join()
        one, other = told
        # One that was ended by the other has fewer pieces.
        ended = 2 * min(len(one), len(other)) < max(len(one), len(other))
        return not ended and one[0] < other[-1] and other[0] < one[-1]

    def _stream_times(self, tokens: int) -> list[float]:
        """When each piece of text came, until the reply ended or broke off."""
        count = {"role": "user", "content": "Count from one to sixty in words."}
        how = {"max_tokens": tokens, "temperature": 0.0, "stream": True}
        body = {"model": self.model, "messages": [count], **how}
        address, times = f"{self.url}/chat/completions", list[float]()
        asked = httpx2.stream("POST", address, json=body, headers=self._headers(), timeout=300)
        with suppress(httpx2.RemoteProtocolError), asked as reply:
            for line in reply.iter_lines():
                if '"content":"' in line.replace('": "', '":"'):
                    times.append(time.monotonic())
        return times
