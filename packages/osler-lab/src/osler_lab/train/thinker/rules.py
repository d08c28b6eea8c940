"""Quality rules that need no model: format, references, answers, repetition.

They look at a sample's chat, read back into its parts. A rule condemns, or it is silent: only what
is wholly mechanical (`fluency.structure`, `logic.flow`) is ever called sound by a rule. Each rule
gives the aspect and the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.base import Message
from osler.llm.core.spans import answer_span, tagged_span
from osler.llm.reading.refusals import is_non_answer
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.kag.parse import read_plan, read_search
from osler.methods.kag.variables import REFERENCE, find_dependencies
from osler.retrieve import content_terms
from osler.text import is_cjk, split_sentences
from osler.trace import Run
from osler_lab.evaluate.metrics.overlap import exact_match, f1
from osler_lab.train.thinker.quality import FRAMEWORK, Inspection, QualityItem, Verdict

THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
TAGS = ("think", "answer", "search", "Python", "references", "result")
_TAG = {name: re.compile(rf"<(/?){name}>") for name in TAGS}


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """A turn of the assistant's with what it answers."""

    asked: str
    text: str

    @property
    def thought(self) -> str:
        return "\n".join(part.strip() for part in THINK.findall(self.text))

    @property
    def visible(self) -> str:
        """Text without the thought."""
        return THINK.sub("", self.text).strip()

    @property
    def has_search(self) -> bool:
        return "<search>" in self.visible

    @property
    def has_program(self) -> bool:
        return "<Python>" in self.visible

    @property
    def answer(self) -> str | None:
        r"""Text inside `\boxed{}`, else inside `<answer>`; `None` for neither."""
        # `\boxed{}` inside a thought is a draft, no answer.
        visible = self.visible
        span = answer_span(visible) or tagged_span(visible, "answer")
        return None if span is None else visible[slice(*span)].strip()

    @property
    def plan(self) -> LogicalPlan | None:
        """Plan of the turn; `None` for a turn that is no plan."""
        # A search has the form of a plan of one step, so it is recognised first.
        if "Action" not in self.visible or self.has_search:
            return None
        try:
            return read_plan(self.visible)
        except MalformedOutput:
            return None


@dataclass(frozen=True, slots=True)
class SearchedAnswer:
    """A sub-answer and the references that came before it."""

    question: str
    references: str
    answer: str


def assistant_turns(item: QualityItem) -> list[AssistantTurn]:
    """The assistant's turns in order."""
    turns, asked = [], ""
    for message in item.messages:
        if message.role == "user":
            asked = message.content
        elif message.role == "assistant":
            turns.append(AssistantTurn(asked, message.content))
    return turns


def roles_alternate(messages: Sequence[Message]) -> bool:
    """Whether user and assistant take turns, after one system turn at most; assistant last."""
    roles = [message.role for message in messages]
    if roles[:1] == ["system"]:
        roles = roles[1:]
    wanted = ["user", "assistant"] * (len(roles) // 2)
    return bool(roles) and roles == wanted


def unbalanced_tag(text: str) -> str:
    """The first tag that is not opened and closed in turn; "" for none."""
    for name, pattern in _TAG.items():
        depth = 0
        for mark in pattern.finditer(text):
            depth += -1 if mark[1] else 1
            # Tags of one name never nest in the paper's format, so a depth of 2 is an error, too.
            if depth not in (0, 1):
                return name
        if depth:
            return name
    return ""


def searched_answers(turns: Sequence[AssistantTurn]) -> Iterator[SearchedAnswer]:
    """Yields each answer that was searched for, with all that the searches brought."""
    question, references = "", ""
    for reply in turns:
        if reply.asked.startswith("<references>"):
            # Several searches for one sub-question: the answer may rest on any of them.
            references += reply.asked
        else:
            question, references = reply.asked, ""
        if references and not reply.has_search and reply.answer is not None:
            yield SearchedAnswer(question, references, reply.answer)
            references = ""


DECIDED = {("fluency", "structure"), ("logic", "flow")}
"""Aspects that are sound where no rule condemns them."""
# Both bounds are ours: App. 10 names the aspects, but no numbers.
MOST_REPLY = 4_000
"""Characters of a last answer, beyond which it is too long to be clear."""
LEAST_FRESH = 0.5
"""Share of distinct runs of four words, below which a text repeats itself."""

Fault = tuple[str, str]
"""Aspect as "logic.flow", and the reason."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_STEP = re.compile(r"^Step\d+: (.*)$", re.MULTILINE)
_MARK = re.compile(r"\[(\d{1,3})\]")
_CITED = re.compile(r"^\[(\d{1,3})\] ", re.MULTILINE)
_RESULT = re.compile(r"<result>(.*?)</result>", re.DOTALL)
_PRIVATE = {
    "an e-mail address": re.compile(r"\b[\w.+-]+@[\w-]+\.[a-z]{2,}\b", re.IGNORECASE),
    # Chinese formats: mobile numbers of 11 digits from 13 to 19, identity cards of 18.
    "a mobile number": re.compile(r"(?<!\d)1[3-9]\d{9}(?!\d)"),
    "a social security number": re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"),
    "an identity card's number": re.compile(r"(?<!\d)[1-9]\d{5}(?:19|20)\d{9}[\dXx](?!\d)"),
    "a credential": re.compile(r"\b(?:sk-[\w-]{16,}|password\s*[:=]\s*\S+)", re.IGNORECASE),
}
_SHOUTING = re.compile(r"[!！]{3,}|(?:\b[A-Z]{3,}\b[ ,]+){5,}")
_YES_NO = frozenset({"yes", "no", "true", "false", "是", "否", "对", "错"})


@dataclass(frozen=True)
class RuleInspector:
    """Judge that applies all rules."""

    name: str = "rules"

    async def inspect(self, item: QualityItem, run: Run) -> Inspection:
        """Inspects without a call; `run` stays as it is."""
        return inspect_by_rules(item)


def inspect_by_rules(item: QualityItem) -> Inspection:
    """Applies the rules to a sample."""
    aspects: dict[str, dict[str, Verdict]] = {
        dimension.name: {
            aspect: True if (dimension.name, aspect) in DECIDED else None
            for aspect in dimension.aspects
        }
        for dimension in FRAMEWORK
    }
    reasons = []
    for aspect, why in find_faults(item):
        dimension, _, name = aspect.partition(".")
        aspects[dimension][name] = False
        reasons.append(f"{aspect}: {why}")
    return Inspection(item.id, "rules", aspects, tuple(reasons))


def find_faults(item: QualityItem) -> Iterator[Fault]:
    """Yields every fault that a rule finds."""
    turns = assistant_turns(item)
    for rule in RULES:
        yield from rule(item, turns)


def _structure_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    aspect = "fluency.structure"
    if not roles_alternate(item.messages):
        yield aspect, "the turns of user and assistant do not alternate"
    thinks = any(m.role == "system" and "<think>" in m.content for m in item.messages)
    for n, reply in enumerate(turns, 1):
        if name := unbalanced_tag(reply.text):
            yield aspect, f"reply {n}: <{name}> is not closed"
        elif thinks and not reply.thought:
            yield aspect, f"reply {n} has no thought"
        if not reply.visible:
            yield aspect, f"reply {n} says nothing"
        if "\N{REPLACEMENT CHARACTER}" in reply.text:
            yield aspect, f"reply {n} has broken characters"
        if reply.has_search:
            try:
                read_search(reply.visible)
            except MalformedOutput as error:
                yield aspect, f"reply {n}: its search cannot be read ({error.message[:80]})"
        elif "Function Usage: Output" in reply.asked or "用法：Output" in reply.asked:
            try:
                read_plan(reply.visible)
            except MalformedOutput as error:
                yield aspect, f"reply {n}: its plan cannot be read ({error.message[:80]})"


def _flow_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    aspect = "logic.flow"
    for reply in turns:
        if plan := reply.plan:
            for problem in find_dependencies(plan).problems:
                yield aspect, problem
    for n, reply in enumerate(turns):
        step = _STEP.search(reply.asked) if n else None
        if step and (open_ := REFERENCE.search(step[1])):
            yield aspect, f"{open_[0]} was not filled in before it was asked"
        follows = turns[n + 1].asked if n + 1 < len(turns) else ""
        if reply.has_search and not follows.startswith("<references>"):
            yield aspect, "a search without references"
        if reply.has_program and not follows.startswith("<result>"):
            yield aspect, "a program without a result"


def _rejection_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    aspect = "accuracy.rejection"
    for n, reply in enumerate(turns, 1):
        # A logical-form sample ends with its plan; a plan anywhere else is answered later.
        last = n == len(turns)
        if reply.has_search or reply.has_program or (reply.plan and not last):
            if last:
                yield aspect, "it ends without an answer"
            continue
        answer = reply.answer
        if answer is None:
            if last or reply.asked.startswith("<references>"):
                yield aspect, f"reply {n} has no boxed answer"
        elif is_non_answer(answer):
            yield aspect, f"reply {n} answers {answer!r}"


def _answer_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    """A letter is right or wrong; of words only what shares nothing with any gold is wrong."""
    answer = turns[-1].answer if turns else None
    if not item.golds or not answer or (turns and turns[-1].plan):
        return
    letters = [gold for gold in item.golds if len(gold) == 1 and gold.isascii() and gold.isalpha()]
    if len(letters) == len(item.golds):
        # Single letters in words of their own: "A and C", "A, C".
        chosen = set(re.findall(r"\b[A-Za-z]\b", answer)) if len(answer) > 1 else {answer}
        if chosen != set(letters):
            yield "accuracy.facts", f"the answer is {answer!r}, not {', '.join(letters)}"
    elif not exact_match(answer, item.golds) and not f1(answer, item.golds):
        yield "accuracy.facts", f"the answer {answer[:60]!r} shares no word with the gold answer"


def _hallucination_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    for one in searched_answers(turns):
        known = f"{one.references}\n{one.question}\n{item.question}"
        words, numbers = set(content_terms(one.answer)), set(_NUMBER.findall(one.answer))
        # A verdict shares no word with its references, and is borne out by them all the same.
        if one.answer.casefold().rstrip(".。") in _YES_NO:
            continue
        if words and not words & set(content_terms(known)):
            yield "accuracy.hallucination", f"nothing of {one.answer[:60]!r} is in the references"
        elif numbers and not numbers & set(_NUMBER.findall(known)):
            yield "accuracy.hallucination", f"no number of {one.answer[:60]!r} is in the references"


def _process_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    aspect = "accuracy.process"
    for reply in turns:
        result = _RESULT.fullmatch(reply.asked.strip())
        if result and reply.answer != result[1].strip():
            yield aspect, f"the program gave {result[1].strip()!r}, the answer is {reply.answer!r}"
    if turns:
        offered = set(_CITED.findall(turns[-1].asked))
        cited = set(_MARK.findall(turns[-1].visible))
        if offered and (missing := cited - offered):
            yield aspect, f"[{min(missing)}] cites a document that was not given"


def _topic_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    asked = set(content_terms(item.question))
    plan = next((plan for reply in turns if (plan := reply.plan)), None)
    if plan and asked and not any(asked & set(content_terms(step.question)) for step in plan.steps):
        yield "relevance.topic", "no step shares a word with the question"


def _clarity_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    if turns and not turns[-1].plan and len(turns[-1].visible) > MOST_REPLY:
        yield "relevance.clarity", f"the last answer has {len(turns[-1].visible):,} characters"


def _repetition_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    for n, reply in enumerate(turns, 1):
        prose = f"{reply.thought}\n{'' if reply.plan or reply.has_search else reply.visible}"
        sentences = Counter(" ".join(prose[a:b].split()) for a, b in split_sentences(prose))
        # Short sentences ("Yes.", "So it is.") repeat in good prose, too.
        again = [text for text, times in sentences.items() if times > 2 and len(text) > 7]
        if again:
            yield "fluency.concise", f"reply {n} repeats {again[0][:60]!r}"
        elif _is_repetitive(prose):
            yield "fluency.concise", f"reply {n} goes round in circles"


def _is_repetitive(prose: str) -> bool:
    # Chinese has no spaces: runs are of four characters there.
    units = re.findall(r"[^\W_]", prose) if _han_share(prose) > 0.3 else prose.casefold().split()
    runs = [tuple(units[i : i + 4]) for i in range(len(units) - 3)]
    # Below 40 runs the share of distinct ones is noise.
    return len(runs) > 40 and len(set(runs)) / len(runs) < LEAST_FRESH


def _language_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    prose = "\n".join(reply.thought for reply in turns)
    if len(prose) < 20:
        return
    share = _han_share(prose)
    if item.language == "zh" and share < 0.3:
        yield "fluency.idiom", "a Chinese question is thought about in another language"
    if item.language == "en" and share > 0.3:
        yield "fluency.idiom", "an English question is thought about in Chinese"


def _han_share(text: str) -> float:
    letters = [c for c in text if c.isalpha()]
    return sum(map(is_cjk, letters)) / len(letters) if letters else 0.0


def _privacy_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    whole = "\n".join(message.content for message in item.messages)
    for what, pattern in _PRIVATE.items():
        if pattern.search(whole):
            yield "security.privacy", f"it holds {what}"


def _conduct_faults(item: QualityItem, turns: list[AssistantTurn]) -> Iterator[Fault]:
    if any(_SHOUTING.search(reply.text) for reply in turns):
        yield "emotion.manners", "it shouts"


RULES: tuple[Callable[[QualityItem, list[AssistantTurn]], Iterator[Fault]], ...] = (
    _structure_faults,
    _flow_faults,
    _rejection_faults,
    _answer_faults,
    _hallucination_faults,
    _process_faults,
    _topic_faults,
    _clarity_faults,
    _repetition_faults,
    _language_faults,
    _privacy_faults,
    _conduct_faults,
)
