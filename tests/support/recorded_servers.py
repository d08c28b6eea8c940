"""Recorded servers: what was asked of one, byte for byte what it said, and saying it again.

A recording is a JSON file that says where it is from ("from life", or "from documentation"
where the server could not be had) and holds one exchange for each request. It is matched
by method, path and body; a request that was never recorded is refused with these words.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from loopback_servers import JSON, Answers, LoopbackReply, LoopbackRequest, json_reply

Source = Literal["from life", "from documentation"]
_GO_ON = "Your reply is not finished."


class Recording:
    """Requests to a server and its replies. `about` names the server and its documentation."""

    def __init__(self, source: Source, about: str, exchanges: list[dict[str, Any]]) -> None:
        self.source = source
        self.about = about
        self.exchanges = exchanges

    @classmethod
    def read(cls, path: Path) -> Recording:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        return cls(recorded["source"], recorded["about"], recorded["exchanges"])

    def write(self, path: Path) -> None:
        exchanges = [json.dumps(one, ensure_ascii=False) for one in self.exchanges]
        head = {"source": self.source, "about": self.about}
        # One exchange a line: a new one is one line of a diff.
        opening = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
        listed = ",\n".join(exchanges)
        path.write_text(f'{opening},\n "exchanges": [\n{listed}\n]}}\n', encoding="utf-8")

    def add_exchange(self, asked: LoopbackRequest, answer: bytes) -> None:
        """Writes an exchange down, once for equal requests."""
        if self._find_exchange(asked) is None:
            kind, status, body = _split_reply(answer)
            content = {"json": json.loads(body)} if kind == JSON else {"text": body}
            request = {"method": asked.method, "path": asked.path, "body": asked.body}
            self.exchanges.append({**request, "status": status, "kind": kind, **content})

    def __call__(self, asked: LoopbackRequest) -> LoopbackReply | bytes:
        """Replies as the recorded server did."""
        exchange = self._find_exchange(asked)
        if exchange is None:
            words = f"never recorded: {asked.method} {asked.path} {json.dumps(asked.body)[:300]}"
            return json_reply({"error": {"message": words}}, 501)
        body = exchange["json"] if "json" in exchange else exchange["text"].encode()
        return json_reply(body, exchange["status"], kind=exchange["kind"])

    def _find_exchange(self, asked: LoopbackRequest) -> dict[str, Any] | None:
        bodies = (asked.body, _without_request_to_go_on(asked.body))
        for body in bodies:
            wanted = (asked.method, asked.path, body)
            for one in self.exchanges:
                if (one["method"], one["path"], one["body"]) == wanted:
                    return one
        return None


def _without_request_to_go_on(body: Any) -> Any:
    """The body as it was recorded: before a user's turn asked for what comes next (`llm/continue`),
    messages ended with the assistant's."""
    messages = body.get("messages") if isinstance(body, dict) else None
    if not messages or not str(messages[-1]["content"]).startswith(_GO_ON):
        return body
    return {**body, "messages": messages[:-1]}


def record_answers(answer: Answers, recording: Recording) -> Answers:
    """The same server, with what it says written down."""

    def record_answer(asked: LoopbackRequest) -> LoopbackReply | bytes:
        reply = answer(asked)
        assert isinstance(reply, bytes), "only whole replies are recorded"
        recording.add_exchange(asked, reply)
        return reply

    return record_answer


async def run_kit(kit: Any, **given: Any) -> None:
    """Runs a kit's tests on what is given in place of its fixtures, to record what they ask."""
    for name in sorted(dir(kit)):
        if name.startswith("test_"):
            test = getattr(kit, name)
            for case in _parametrized_cases(test):
                try:
                    done = test(**given, **case)
                    if inspect.isawaitable(done):
                        await done
                except pytest.skip.Exception:
                    continue


def _parametrized_cases(test: Any) -> Iterator[Mapping[str, Any]]:
    """Each way in which `parametrize` would call it."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for values in product(*(mark.args[1] for mark in marks)):
        yield {mark.args[0]: value for mark, value in zip(marks, values, strict=True)}


def _split_reply(answer: bytes) -> tuple[str, int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    kinds = [line.split(": ", 1)[1] for line in lines if line.lower().startswith("content-type")]
    return kinds[0].partition(";")[0], int(first.split(" ")[1]), body.decode()
