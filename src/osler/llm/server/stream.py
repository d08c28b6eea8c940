"""Assembles a chat reply from the pieces that a server streams.

What comes out has the form of a reply that was not streamed, so that there is one
reader for both (`replies.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from osler.llm.server.bounded_reading import BadReply
from osler.llm.server.replies import longest_reply


class ChatGatherer:
    """Collects the chunks of `/chat/completions`; `translate` converts other servers' chunks.

    More than `max_tokens` tokens can spell is not read: the server has lost the bound,
    and the reply counts as cut.
    """

    def __init__(
        self, max_tokens: int, *, translate: Callable[[Any], Any] = lambda told: told
    ) -> None:
        self._most = longest_reply(max_tokens)
        self._max_tokens = max_tokens
        self._translate = translate
        self._said: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
        self._length = 0
        self._entries: list[Any] = []
        self._finish: str | None = None
        self._usage: Any = None
        self._pieces = 0
        self._whole: Any = None

    def take_piece(self, chunk: Any) -> bool:
        """Takes a chunk; True when the reply has grown past every bound. Raises `BadReply`."""
        chunk = self._translate(chunk)
        if not isinstance(chunk, Mapping):
            raise BadReply(f"an event is no JSON object: {str(chunk)[:80]}")
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not choices:
            return False
        if not isinstance(choices, list) or not isinstance(choices[0], Mapping):
            raise BadReply("an event's choices are no list of objects")
        self._pieces += 1
        self._add_choice(choices[0])
        return self._is_over()

    def take_whole(self, reply: Any) -> None:
        self._whole = self._translate(reply)

    def broken_off(self) -> bool:
        if not self._pieces:
            raise BadReply("the stream had no reply in it")
        return self._finish is None

    @property
    def reply(self) -> Any:
        """The reply in the form of a server that does not stream."""
        if self._whole is not None:
            return self._whole
        texts = {key: "".join(pieces) for key, pieces in self._said.items() if pieces}
        choice: dict[str, Any] = {
            "message": {"role": "assistant", "content": None, **texts},
            "finish_reason": self._finish,
        }
        if self._entries:
            choice["logprobs"] = {"content": self._entries}
        return {"choices": [choice], **({"usage": self._usage} if self._usage else {})}

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            raise BadReply(f"an event has no delta: {str(choice)[:80]}")
        self._add_piece("content", delta.get("content"))
        self._add_piece(
            "reasoning_content", delta.get("reasoning_content") or delta.get("reasoning")
        )
        self._add_piece("refusal", delta.get("refusal"))
        logprobs = choice.get("logprobs")
        entries = logprobs.get("content") if isinstance(logprobs, Mapping) else None
        self._entries += entries if isinstance(entries, list) else []
        finish = choice.get("finish_reason")
        self._finish = str(finish) if finish else self._finish

    def _add_piece(self, key: str, piece: Any) -> None:
        if piece is None:
            return
        if not isinstance(piece, str):
            raise BadReply(f"an event's {key} is no text but {str(piece)[:80]}")
        self._said[key].append(piece)
        self._length += len(piece)

    def _is_over(self) -> bool:
        if self._length <= self._most and len(self._entries) <= 2 * self._max_tokens:
            return False
        self._finish = "length"
        return True
