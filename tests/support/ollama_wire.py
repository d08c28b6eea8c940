"""Ollama's interface, in front of a test double that answers as the OpenAI interface does.

Its paths and fields are those of docs.ollama.com (`/api/chat`, `/api/ps`, `/api/show`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from loopback_servers import (
    LINES,
    LoopbackReply,
    LoopbackRequest,
    json_reply,
    reply_head,
)

LONGEST = 32_768
"""Tokens of the model's own window; what is allotted of it is less."""


def answer_as_ollama(
    asked: LoopbackRequest,
    model: str,
    context: int,
    chat: Callable[[Mapping[str, Any]], LoopbackReply | bytes],
) -> LoopbackReply | bytes:
    """`chat` answers a body of the OpenAI interface; `context` is the window that is allotted."""
    tagged = model if ":" in model else f"{model}:latest"
    match asked.path:
        case "/v1/models":
            return json_reply({"data": [{"id": tagged, "object": "model"}]})
        case "/api/version":
            return json_reply({"version": "0.34.0"})
        case "/api/ps":
            loaded = {"name": tagged, "model": tagged, "context_length": context}
            return json_reply({"models": [loaded]})
        case "/api/show":
            return json_reply({"model_info": {"double.context_length": LONGEST}})
        case "/api/chat":
            return _answer_lines(chat(_to_openai(asked.body)))
        case _:
            return json_reply(b"404 page not found", 404, kind="text/plain")


def _to_openai(body: Mapping[str, Any]) -> dict[str, Any]:
    options = body.get("options", {})
    kept = {name: value for name, value in body.items() if name != "options"}
    return {**kept, "stream": False, "max_tokens": options.get("num_predict"), **options}


def _answer_lines(reply: LoopbackReply | bytes) -> LoopbackReply | bytes:
    """A whole reply, as Ollama streams it: two lines, the counts in the last."""
    if isinstance(reply, LoopbackReply):
        lines = _answer_lines(reply.sent)
        sent = lines if isinstance(lines, bytes) else lines.sent
        return LoopbackReply(sent, reply.then, reply.drip, reply.after)
    head, _, body = reply.partition(b"\r\n\r\n")
    if b" 200 " not in head.splitlines()[0]:
        return reply
    told = [json.dumps(line, ensure_ascii=False) for line in _lines_of(json.loads(body))]
    return reply_head(kind=LINES) + "".join(f"{line}\n" for line in told).encode()


def _lines_of(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    choice, usage = told["choices"][0], told["usage"]
    said = choice["message"]
    message = {"role": "assistant", "content": said.get("content") or ""}
    if thinking := said.get("reasoning_content"):
        message["thinking"] = thinking
    if calls := said.get("tool_calls"):
        message["tool_calls"] = [_call_of(one["function"]) for one in calls]
    end = {"role": "assistant", "content": ""}
    counts = {"prompt_eval_count": usage["prompt_tokens"], "eval_count": usage["completion_tokens"]}
    reason = "length" if choice["finish_reason"] == "length" else "stop"
    return [
        {"model": told["model"], "message": message, "done": False},
        {"model": told["model"], "message": end, "done": True, "done_reason": reason, **counts},
    ]


def _call_of(function: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments are an object here, not its text."""
    return {"function": {**function, "arguments": json.loads(function["arguments"])}}
