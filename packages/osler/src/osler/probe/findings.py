"""What the probe found of a model and its server, and the lines that say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from osler.build.tc_rag import metric_of
from osler.doctor import Check

T = TypeVar("T")
CHOICES = 3
"""Choices that a model is asked for."""
Place = Literal["", "text", "template", "apart", "hidden"]
"""Where thinking stands; "" if absent."""
LEAST_CONTEXT = 2048
"""Tokens below which no prompt with evidence fits."""
_LARGER = (
    "start the server with a larger one (vLLM: --max-model-len, llama.cpp: -c, Ollama:"
    " OLLAMA_CONTEXT_LENGTH)"
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """Where and how long a model thought before one easy question."""

    place: Place = ""
    tokens: int = 0
    ended: bool = True
    """False: it was cut, so that the tokens are the least that it would have taken."""
    fields: tuple[str, ...] = ()
    """Fields of a request, as `model.request` has them, that were seen to switch it off."""
    shorter: bool = False
    """Whether they only made it shorter."""

    @property
    def is_off(self) -> bool:
        return bool(self.fields) and not self.shorter


@dataclass(frozen=True, slots=True)
class Findings:
    """One model and its observed abilities; `None` where the minute was too short to observe
    one."""

    section: str
    """Of the settings: "model", or a role's."""
    name: str = ""
    server: str = ""
    faults: tuple[Check, ...] = ()
    """What keeps its replies from being answers."""
    continues: Literal["yes", "asked", "no"] | None = None
    """asked: a turn of the user's asks for the rest, since servers of its kind are not known to
    continue a message."""
    scores: bool | None = None
    logprobs: bool | None = None
    formats: tuple[str, ...] | None = None
    tools: bool | None = None
    thinking: Thinking | None = None
    tags: Literal["plain", "dressed", "no"] | None = None
    cites: Literal["yes", "wrong", "no"] | None = None
    mark: str = ""
    """How it wrote its first citation."""
    chooses: int | None = None
    """Right ones of `CHOICES`: sentences picked, statements confirmed."""
    refuses: bool | None = None
    context: int | None = None
    longest: int | None = None
    """Tokens that the server could allot, where that is more."""
    speed: float | None = None
    """Tokens a second, of one call alone."""
    beside: bool | None = None
    """Whether two calls made at once ended at about the same time."""
    slots: int | None = None
    seconds: float = 0.0
    calls: int = 0
    unread: tuple[str, ...] = field(default=())
    """What servers said where they refused a question."""

    @property
    def ok(self) -> bool:
        return not any(check.status == "fail" for check in self.rows())

    def rows(self) -> tuple[Check, ...]:
        """A line for each question; faults first, and nothing else where there are no replies."""
        if any(fault.status == "fail" for fault in self.faults):
            return self.faults
        answers = Check("replies", "pass", f"{self.name} on {self.server} answers")
        return (*self.faults, answers, *(word(name, self) for name, word in _WORDED.items()))


Row = Callable[[str, Findings], Check]
"""A row's name and what was found → the row."""


def _told(value: Callable[[Findings], T | None], word: Callable[[str, T, Findings], Check]) -> Row:
    """A row about one value; where the minute was too short for that, the row says so."""

    def row(name: str, found: Findings) -> Check:
        told = value(found)
        return _unknown(name, found) if told is None else word(name, told, found)

    return row


def _plain(words: Mapping[T, str], value: Callable[[Findings], T | None]) -> Row:
    """A row whose words follow from one value, and that only tells."""
    return _told(value, lambda name, told, _: Check(name, "pass", words[told]))


def _unknown(name: str, found: Findings) -> Check:
    why = f": {found.unread[-1]}" if found.unread else ": the minute was up"
    return Check(name, "warn", f"not told{why}", "ask again when the server is idle")


def _word_formats(name: str, formats: tuple[str, ...], _: Findings) -> Check:
    return Check(name, "pass", ", ".join(formats) or "no: its replies are read as they come")


_PLACES: Mapping[Place, str] = {
    "text": "in the text",
    "template": "in the text, begun by the chat template",
    "apart": "apart from the text",
    "hidden": "where nobody sees it",
}


def _word_thinking(name: str, thinking: Thinking, _: Findings) -> Check:
    if not thinking.place:
        return Check(name, "pass", "no")
    long = f"{'about' if thinking.ended else 'more than'} {thinking.tokens:,} tokens"
    told = f"{_PLACES[thinking.place]}, {long}"
    how = "shortened by" if thinking.shorter else "switched off by"
    off = f"{how} {', '.join(thinking.fields)}" if thinking.fields else "cannot be told not to"
    return Check(name, "pass", f"{told}; {off}")


def _word_tags(name: str, tags: str, _: Findings) -> Check:
    if tags == "no":
        fix = "use strategies without actions (rag, auto, omni-rag), or a model tuned to follow"
        return Check(name, "warn", "no: actions of tc-rag and react cannot be read", fix)
    words = {"plain": "yes, as asked", "dressed": "yes, in a style of its own"}
    return Check(name, "pass", words[tags])


def _word_citations(name: str, cites: str, found: Findings) -> Check:
    if cites == "yes":
        return Check(name, "pass", f"yes, as {found.mark}")
    wrong = f"the wrong passage, as {found.mark}" if cites == "wrong" else "no"
    fix = "each sentence is held against the passages all the same; see answer.uncited"
    return Check(name, "warn", wrong, fix)


def _word_choices(name: str, right: int, _: Findings) -> Check:
    score = f"{right} of {CHOICES} choices right"
    if right == CHOICES:
        return Check(name, "pass", f'{score} (answer.judge and answer.confirm = "model")')
    fix = "keep the defaults of answer.judge and answer.confirm, which need no model"
    return Check(name, "warn", score, fix)


def _word_refusals(name: str, refuses: bool, _: Findings) -> Check:
    if refuses:
        fix = 'name a model that answers questions of medicine, or set model.writes = "no"'
        return Check(name, "warn", "declines a plain question of medicine", fix)
    return Check(name, "pass", "no")


def _word_context(name: str, found: Findings) -> Check:
    if found.context is None:
        return Check(name, "pass", "not told by the server")
    told = f"{found.context:,} tokens"
    if found.context < LEAST_CONTEXT:
        return Check(name, "fail", f"{told}: too few for a prompt with evidence", _LARGER)
    more = found.longest and found.longest > found.context
    return Check(name, "pass", f"{told} of {found.longest:,}" if more else told)


def _word_speed(name: str, found: Findings) -> Check:
    if found.speed is None and found.beside is not None:
        fix = "what an answer costs and a budget in tokens cannot be told with this server"
        return Check(
            name, "warn", "not told: the server does not count the tokens of its replies", fix
        )
    if found.speed is None:
        return _unknown(name, found)
    return Check(name, "pass", f"{found.speed:,.0f} tokens a second")


def _word_beside(name: str, beside: bool, found: Findings) -> Check:
    told = "two take about as long as one" if beside else "one after the other"
    slots = f" ({found.slots} slots)" if found.slots else ""
    return Check(name, "pass", told + slots)


def _word_metric(name: str, scores: bool, found: Findings) -> Check:
    metric = metric_of(scores=scores, tells=bool(found.logprobs), composed=False)
    told = "none can be had" if metric == "off" else metric
    return Check(name, "pass", f'{told} (metric = "auto")')


_YES_NO = {True: "yes", False: "no"}
_CONTINUES: Mapping[Literal["yes", "asked", "no"], str] = {
    "yes": "yes",
    "asked": "asked for the rest in a turn of its own, it goes on",
    "no": "it does not go on where its message ended",
}
_TOOLS = {True: "yes", False: "no: tools are called in the text"}
_WORDED: Mapping[str, Row] = {
    "continues a message": _plain(_CONTINUES, lambda found: found.continues),
    "scores a given text": _plain(_YES_NO, lambda found: found.scores),
    "log-probabilities": _plain(_YES_NO, lambda found: found.logprobs),
    "held to a format": _told(lambda found: found.formats, _word_formats),
    "native tools": _plain(_TOOLS, lambda found: found.tools),
    "thinks": _told(lambda found: found.thinking, _word_thinking),
    "follows tags": _told(lambda found: found.tags, _word_tags),
    "cites": _told(lambda found: found.cites, _word_citations),
    "picks and confirms": _told(lambda found: found.chooses, _word_choices),
    "refuses": _told(lambda found: found.refuses, _word_refusals),
    "context": _word_context,
    "speed": _word_speed,
    "calls beside each other": _told(lambda found: found.beside, _word_beside),
    "state value of tc-rag": _told(lambda found: found.scores, _word_metric),
}
"""What is asked, in the order in which it is shown."""
