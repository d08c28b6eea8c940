"""The manners of real models, as switches: what they put around, into and in place of a reply.

A competent reply, as a prompt asks for it, goes in; what comes out says the same in the manner of
some model. `mannered` serves it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from osler.text import split_sentences

THOUGHT = "Let me think about what is asked here, and what the passages say of it."
REFUSAL = (
    "I'm sorry, but I can't help with medical questions. Please consult a healthcare professional."
)
CHATTER = ("Sure! Here is the answer:", "I hope this helps!")
INVENTED = "\nTool_Observation: Leeches cure it.\nConclusion: Leeches cure it. [1]"
ORDER = re.compile(
    r"(?:say|write|answer|reply)(?: only| exactly)?:? [\"“]([^\"”]+)[\"”]", re.IGNORECASE
)
"""An order that a passage may hold, and what it wants to be said."""


@dataclass(frozen=True, slots=True)
class Manners:
    """The manners of a model and its server; the defaults are those of one that obeys."""

    thinking: Literal["none", "text", "apart", "template", "hidden"] = "none"
    """In `<think>`, in `reasoning_content`, with its end alone, since the template began it, or
    counted and not shown."""
    thought_tokens: int = 40
    """Tokens of its thinking; a call with fewer is cut while it thinks."""
    tells_not_to: bool = True
    """Whether a request can switch its thinking off."""
    shortens: bool = False
    """Whether `reasoning_effort = "low"` makes it think a quarter as long."""
    tags: Literal["plain", "bold", "headed", "fenced", "bulleted", "chinese"] = "plain"
    calls: Literal["tags", "native", "json", "tool_call", "function"] = "tags"
    """The notation of tool calls."""
    actions: Literal["one", "all", "invented"] = "all"
    """Of a reply: its first action alone, all of them, or all and what it invents after them."""
    chatter: bool = False
    """Whether it is courteous before and after."""
    json: Literal["plain", "fenced", "prose", "comments", "commas", "quotes"] = "plain"
    marks: Literal["[1]", "【1】", "[^1]", "(Reference 1)", "[1,2]", "[1–3]"] = "[1]"
    """Citations; the last two name the passage among others."""
    steps: Literal["plain", "full-width", "zero-based", "bold"] = "plain"
    """Numbers of a plan's steps."""
    terse: bool = False
    """Whether it leaves out all that stands before a tagged answer."""
    refuses: bool = False
    repeats: bool = False
    """Whether it says each thing again, and what was said before."""
    obeys: bool = False
    """Whether it does what any text in the prompt tells it."""
    logprobs: bool = True
    scores: bool = True
    """Whether a given text can be scored."""
    grammar: bool = False
    continues: bool = True
    """Whether a message of the assistant's is continued; else a new turn begins."""
    streams: bool = True
    server: Literal["", "Ollama"] = ""
    """Ollama speaks as Ollama does; else it is vLLM if it continues or scores, or of no kind."""
    serves: str = ""
    """Another model's name, which replies bear."""
    endless: bool = False
    """Whether no reply ends by itself."""
    silent: bool = False
    """Whether replies hold no word."""
    seconds: float = 0.0
    """Seconds of work for a chat; one after the other where it has one slot."""
    one_slot: bool = False
    fault: Literal["", "slow", "cut", "429", "500", "wrong JSON"] = ""
    faulty_calls: int = 1_000_000
    """Chats, from the first, that the fault befalls."""
    context: int = 32_768
    """Tokens of prompt and reply together."""


_ANSWER = re.compile(r"<answer>(?:(?!<answer>).)*</answer>\s*$", re.DOTALL)


def dress_reply(reply: str, manners: Manners, prompt: str) -> str:
    """The reply in the model's manner, without its thinking."""
    if manners.obeys and (order := ORDER.search(prompt)):
        return order[1]
    if manners.refuses:
        return REFUSAL
    if is_json(reply):
        dressed = _JSON[manners.json](reply)
        return _with_chatter(dressed, manners)
    dressed = _limit_actions(_cut_to_answer(reply) if manners.terse else reply, manners)
    dressed = _write_marks(dressed, manners)
    dressed = _write_steps(dressed, manners)
    dressed = _write_calls(dressed, manners)
    if manners.repeats:
        dressed = _repeat_sentences(dressed)
    return _with_chatter(_dress_tags(dressed, manners), manners)


def _cut_to_answer(reply: str) -> str:
    """The tagged answer alone, of a reply that ends in one."""
    tagged = _ANSWER.search(reply)
    return tagged.group() if tagged else reply


def is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _with_chatter(text: str, manners: Manners) -> str:
    return f"{CHATTER[0]}\n\n{text}\n\n{CHATTER[1]}" if manners.chatter else text


# JSON

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_JSON: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "fenced": lambda text: f"```json\n{text}\n```",
    "prose": lambda text: f"Here is the JSON that you asked for:\n\n{text}\n\nIt has all fields.",
    "comments": lambda text: f"{text[0]} // as asked\n{text[1:]}",
    "commas": lambda text: f"{text[:-1]},{text[-1]}",
    "quotes": lambda text: _STRING.sub(lambda m: "'" + m[1].replace("'", r"\'") + "'", text),
}


# Tags, actions and steps

_TAG = re.compile(
    r"^(Thought|Tool_Use|Tool_Input|Backtrack|Summary|Conclusion|Answer):[ ]*", re.MULTILINE
)
_CALL = re.compile(r"^Tool_Use: (?P<tool>\w+)(?:\nTool_Input: (?P<input>.*))?$", re.MULTILINE)
_ACTION = re.compile(r"^(?:Tool_Use|Backtrack|Summary|Conclusion):", re.MULTILINE)
_CHINESE = {
    "Thought": "思考",
    "Tool_Use": "使用工具",
    "Tool_Input": "工具输入",
    "Backtrack": "回溯",
    "Summary": "总结",
    "Conclusion": "结论",
    "Answer": "答案",
}
_TAGS: Mapping[str, Callable[[re.Match[str]], str]] = {
    "plain": lambda tag: tag.group(),
    "fenced": lambda tag: tag.group(),
    "bold": lambda tag: f"**{tag[1]}:** ",
    "headed": lambda tag: f"### {tag[1]}\n",
    "bulleted": lambda tag: f"- **{tag[1]}**: ",
    "chinese": lambda tag: f"{_CHINESE[tag[1]]}：",
}


_ANGLED = re.compile(r"<(?!think)(\w[\w-]*)>[^<]*</\1>")
_ANGLED_TAGS: Mapping[str, str] = {
    "bold": r"**\g<0>**",
    "headed": r"### Answer\n\g<0>",
    "bulleted": r"- \g<0>",
    "chinese": r"答案：\g<0>",
}


def _dress_tags(text: str, manners: Manners) -> str:
    if manners.tags == "fenced":
        return f"```\n{text}\n```" if _TAG.search(text) or _ANGLED.search(text) else text
    tagged = _TAG.sub(_TAGS[manners.tags], text)
    return _ANGLED.sub(_ANGLED_TAGS.get(manners.tags, r"\g<0>"), tagged)


def _limit_actions(text: str, manners: Manners) -> str:
    found = _ACTION.search(text)
    if manners.actions == "one" and text.startswith("Thought:") and found:
        return text[: found.start()].rstrip()
    return text + INVENTED if manners.actions == "invented" and "Tool_Use:" in text else text


def _write_calls(text: str, manners: Manners) -> str:
    """The call in the model's notation; a native one leaves the text (`native_calls`)."""

    def write(call: re.Match[str]) -> str:
        tool, query = call["tool"], call["input"] or ""
        said = json.dumps(query)
        match manners.calls:
            case "json":
                return f'{{"tool": "{tool}", "input": {said}}}'
            case "tool_call" | "native":
                return (
                    f'<tool_call>\n{{"name": "{tool}", "arguments": {{"query": {said}}}}}\n'
                    "</tool_call>"
                )
            case "function":
                return f"{tool}({said})"
            case _:
                return call.group()

    return _CALL.sub(write, text)


_NATIVE = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


def native_calls(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The text without its calls, and the calls as a server's parser gives them."""
    calls = [json.loads(found) for found in _NATIVE.findall(text)]
    told = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": one["name"], "arguments": json.dumps(one["arguments"])},
        }
        for n, one in enumerate(calls)
    ]
    return _NATIVE.sub("", text).strip(), told


_STEP = re.compile(r"^(Step|Action)(\d+):", re.MULTILINE)
_WIDE = str.maketrans("0123456789", "０１２３４５６７８９")


def _write_steps(text: str, manners: Manners) -> str:
    def write(step: re.Match[str]) -> str:
        word, number = step[1], int(step[2])
        match manners.steps:
            case "full-width":
                return f"{word}{step[2].translate(_WIDE)}："
            case "zero-based":
                return f"{word}{number - 1}:"
            case "bold":
                return (
                    f"{number}. **{word}{number}**:" if word == "Step" else f"- **{word}{number}**:"
                )
            case _:
                return step.group()

    return _STEP.sub(write, text)


# Marks and sentences

_MARK = re.compile(r"\[(\d+)\]")


def _write_marks(text: str, manners: Manners) -> str:
    styles: Mapping[str, Callable[[int], str]] = {
        "[1]": lambda n: f"[{n}]",
        "【1】": lambda n: f"【{n}】",
        "[^1]": lambda n: f"[^{n}]",
        "(Reference 1)": lambda n: f"(Reference {n})",
        "[1,2]": lambda n: f"[{n}, {n + 1}]",
        "[1–3]": lambda n: f"[{n}–{n + 2}]",
    }
    return _MARK.sub(lambda mark: styles[manners.marks](int(mark[1])), text)


def _repeat_sentences(text: str) -> str:
    """Each sentence of a plain text three times, as a model in a loop writes."""
    if _TAG.search(text) or any(sign in text for sign in ("<", "[[", "\n")):
        return text
    spans = split_sentences(text)
    return " ".join(text[start:end].strip() for start, end in spans for _ in range(3)) or text
