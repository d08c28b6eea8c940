"""The manners that every table of methods and parts goes through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manners import Manners

BARE: Any = {"scores": False, "logprobs": False}
MANNERS: Mapping[str, Manners] = {
    "thinks in the text": Manners(thinking="text"),
    "thinks apart": Manners(thinking="apart"),
    "thinks after a template": Manners(thinking="template"),
    "bold tags": Manners(tags="bold"),
    "headed tags": Manners(tags="headed"),
    "fenced tags": Manners(tags="fenced"),
    "bulleted tags": Manners(tags="bulleted"),
    "Chinese tags": Manners(tags="chinese"),
    "native calls": Manners(calls="native"),
    "calls as JSON": Manners(calls="json"),
    "calls in tags": Manners(calls="tool_call"),
    "calls as functions": Manners(calls="function"),
    "invents observations": Manners(actions="invented"),
    "chatter": Manners(chatter=True),
    "JSON in a fence": Manners(json="fenced"),
    "JSON with prose": Manners(json="prose"),
    "JSON with comments": Manners(json="comments"),
    "JSON with a comma": Manners(json="commas"),
    "JSON in single quotes": Manners(json="quotes"),
    "full-width marks": Manners(marks="【1】"),
    "footnotes": Manners(marks="[^1]"),
    "references": Manners(marks="(Reference 1)"),
    "lists of marks": Manners(marks="[1,2]"),
    "ranges of marks": Manners(marks="[1–3]"),
    "full-width steps": Manners(steps="full-width"),
    "steps from zero": Manners(steps="zero-based"),
    "bold steps": Manners(steps="bold"),
    "says no more than is asked": Manners(terse=True),
    "repeats itself": Manners(repeats=True),
    "scores nothing": Manners(scores=False),
    "tells no log-probabilities": Manners(**BARE),
    "continues nothing": Manners(continues=False, **BARE),
    "streams nothing": Manners(streams=False),
    "a small context": Manners(context=4096),
    "Ollama with Qwen3": Manners(
        thinking="text", tags="bold", chatter=True, continues=False, **BARE
    ),
    "DeepSeek-R1 on vLLM": Manners(
        thinking="template", thought_tokens=900, tags="headed", marks="【1】", steps="bold", **BARE
    ),
    "a large model by its API": Manners(
        thinking="apart",
        calls="native",
        json="fenced",
        marks="(Reference 1)",
        tags="bulleted",
        steps="bold",
        chatter=True,
        continues=False,
        **BARE,
    ),
}
