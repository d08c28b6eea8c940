r"""Parses a model's reply, tolerantly: a plan, a search or an answer (KAG-Thinker Tables 1 to 9).

    Step1: … Action1: Retrieval(s=s1:film['Hit Parade Of 1947'], p=p1:director, o=o1:director)
    Math(content=['o1', 'weight=16kg'], target='…')->math6
    Deduce(op=choice, content=['o2','o4'], target='…')->o5
    Output(o5)
    <answer>\boxed{…}</answer>                 the wire form of every sub-answer

A step whose action cannot be read is looked up in its own words, so that one bad step loses no
plan. Nothing but `MalformedOutput` is ever raised. The grammars hold a model to the same formats:
names and values stand in straight quotes, as in Table 1, or bare, as in Table 5; a quote inside
quotes is an apostrophe: a letter follows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.llm.core.grammar import (
    Grammar,
    Node,
    alt,
    chars,
    free_text,
    maybe,
    named_rule,
    repeat,
    seq,
    visible_char,
)
from osler.llm.core.spans import answer_span, strip_types, tagged_span
from osler.llm.reading.answers import answer_words, declines
from osler.llm.reading.refusals import is_non_answer, is_refusal
from osler.llm.reading.steps import WrittenStep, split_steps
from osler.llm.reading.verdicts import after_reasoning
from osler.methods.kag.logical_forms import (
    Form,
    LogicalPlan,
    Operation,
    PlanStep,
    Retrieval,
)
from osler.methods.kag.reader import FUNCTION, read_form

MOST_STEPS = 50
"""Upper bound on steps: a longer plan comes from a model that repeats itself."""
LONGEST = 60_000
"""Characters of a reply that are read."""

_ANY = re.IGNORECASE | re.DOTALL
_THINK = re.compile(r"<think>.*?(?:</think>|$)", _ANY)
_TAGS = {tag: re.compile(rf"<{tag}>(.*?)(?:</{tag}>|$)", _ANY) for tag in ("answer", "search")}


# Number (0 where none is given), question, action.
_Read = tuple[int, str, Form]


@dataclass(frozen=True, slots=True)
class PlanReading:
    """A parsed plan, and what was mended in it or left out."""

    plan: LogicalPlan
    mended: tuple[str, ...] = ()


def read_plan(reply: str) -> LogicalPlan:
    """The steps of `<think>…</think><answer>Step1: …</answer>`, or of the bare lines."""
    return read_plan_tolerantly(reply).plan


def read_plan_tolerantly(reply: str) -> PlanReading:
    """The plan with what had to be mended. Raises `MalformedOutput` where no step can be read."""
    text = _check_length(reply)
    inside = _tag_content("answer", text)
    # A model may put its plan before the tag, and a word or nothing into it.
    written = split_steps(inside, FUNCTION) or split_steps(_THINK.sub("", text), FUNCTION)
    if not written:
        raise MalformedOutput(reply, expected="Step1: … and Action1: …")
    if len(written) > MOST_STEPS:
        expected = f"at most {MOST_STEPS} steps, not {len(written)}"
        raise MalformedOutput(reply, expected=expected)
    found, mended, errors = _read_written(written)
    if len(errors) == len(written):
        raise MalformedOutput(errors[0].reply or reply, expected=errors[0].expected)
    # Models restart or skip numbers; then references "#n" can only mean positions.
    numbers = [number for number, _, _ in found]
    told = 0 not in numbers and len(set(numbers)) == len(numbers)
    steps = (
        PlanStep(number if told else place, question, form)
        for place, (number, question, form) in enumerate(found, 1)
    )
    return PlanReading(LogicalPlan(tuple(steps)), tuple(mended))


def read_search(reply: str) -> PlanStep:
    """The one sub-problem of `<search>Step: … Action: …</search>` (Table 9).

    Raises `MalformedOutput` too when the reply does not ask for a search.
    """
    text = _check_length(reply)
    if not _TAGS["search"].search(text):
        raise MalformedOutput(reply, expected="<search>…</search>")
    for step in split_steps(_tag_content("search", text), FUNCTION):
        return PlanStep(step.number or 1, step.words, _read_action(step))
    raise MalformedOutput(reply, expected="a Step and an Action in <search>")


def _check_length(reply: str) -> str:
    if len(reply) > LONGEST:
        raise MalformedOutput(reply, expected=f"at most {LONGEST} characters")
    return reply


def _tag_content(tag: str, reply: str) -> str:
    """The content of the tag; without a tag the reply without its thinking. Closing tags are
    optional."""
    text = _THINK.sub("", reply)
    match = _TAGS[tag].search(text)
    # A reply that opens with the thought's end was begun inside it by the prompt.
    return match[1] if match else text.rpartition("</think>")[2]


def _read_written(
    written: list[WrittenStep],
) -> tuple[list[_Read], list[str], list[MalformedOutput]]:
    """The steps, those with a bad action as lookups of their words; and what was wrong."""
    found: list[_Read] = []
    mended: list[str] = []
    errors: list[MalformedOutput] = []
    for place, step in enumerate(written, 1):
        number = step.number or place
        try:
            found.append((step.number, step.words, _read_action(step)))
        except MalformedOutput as error:
            errors.append(error)
            if not step.words:
                mended.append(f"step {number} could not be read and was left out")
                continue
            mended.append(f"step {number}'s action could not be read: its words are looked up")
            found.append((step.number, step.words, Retrieval.of_words(number, step.words)))
    return found, mended, errors


def _read_action(step: WrittenStep) -> Form:
    if not step.action:
        raise MalformedOutput(step.words, expected="an Action for each Step")
    return read_form(step.action)[0]


LONGEST_ANSWER = 160
"""Characters of an answer, under a grammar."""


def boxed_answer() -> Node:
    return seq(r"<answer>\boxed{", free_text(LONGEST_ANSWER, without="<{}"), "}</answer>")


def boxed_grammar(*, reason: int = 0) -> Grammar:
    """`reason`: characters of reasoning that may come first."""
    return Grammar("boxed", after_reasoning(boxed_answer(), reason))


_MOST_PLAIN = 600


def reply_answer(completion: Completion) -> str:
    r"""The reply's answer inside `\boxed{}`, else inside `<answer>`; empty for "unknown" and for an
    echo of the prompt's own box.

    Raises `MalformedOutput` when there is neither.
    """
    text = completion.text
    span = answer_span(text) or tagged_span(text, "answer")
    if span is None:
        raise MalformedOutput(text, expected=r"<answer>\boxed{…}</answer>")
    answer = " ".join(strip_types(text, span).split())
    return "" if is_non_answer(answer) else answer


def answer_or_text(completion: Completion) -> str:
    """The reply's answer; of one with neither tag the reply itself (the released executor).

    Raises `MalformedOutput` for an answer or a search that was begun and not finished.
    """
    text = completion.text
    if answer_span(text) or tagged_span(text, "answer"):
        return reply_answer(completion)
    plain = " ".join(answer_words(text).split())
    if is_refusal(plain) or declines(plain):
        return ""
    if not plain or len(plain) > _MOST_PLAIN or "<" in plain or "\\boxed" in plain:
        raise MalformedOutput(text, expected=r"<answer>\boxed{…}</answer>")
    return "" if is_non_answer(plain) else plain


EDGE_MARKS = "!\"#$&'()*+,.:;<=>?@[\\]^`{|}~，。；：、．！？（）［］＝＜＞≠≤≥→‘’“”「」"
"""Characters with a meaning in a logical form, or that end a bare word for a tolerant reader."""
# A quote before a letter is an apostrophe; before anything else it closes the text.
_APOSTROPHE = seq("'", chars("", ("a", "z")))


def form_grammar(*, longest: int = 60) -> Grammar:
    """One logical form; names, values and targets of up to `longest` characters."""
    return Grammar("logical-form", _form_node(longest))


def plan_grammar(*, steps: int = 6, longest: int = 60, thinking: int = 0) -> Grammar:
    """`<answer>Step1: …\\nAction1: …\\nStep2: …</answer>` of one to `steps` steps (Table 1).

    `thinking`: characters of `<think>…</think>` that may stand before it.
    """
    step = _step_node(longest)
    rest: Node | None = None
    # Built from the last step backwards, so that every prefix of the steps is a complete plan.
    for number in range(steps, 0, -1):
        own = seq(f"Step{number}: ", step, f"\nAction{number}: ", _form_node(longest))
        rest = seq(own, maybe("\n", rest)) if rest else own
    assert rest is not None, "a plan has steps"  # noqa: S101
    answer = seq("<answer>", rest, maybe(" "), "</answer>")
    before = seq("<think>", free_text(thinking, without="<"), "</think>\n\n") if thinking else None
    return Grammar("plan", seq(maybe(before), answer) if before else answer)


def search_grammar(*, longest: int = 60, names: Sequence[str] = ()) -> Grammar:
    """`<search>Step1: …\\nAction1: Retrieval(…)</search>`, with numbers or without (Table 9).

    `names`: the subjects that may be searched, which the step's words name too; empty = any.
    """
    number = maybe(repeat(chars("", ("0", "9")), 1, 2))
    if not names:
        parts = ("Step", number, ": ", _step_node(longest), alt("\n", " "), "Action", number, ": ")
        return Grammar("search", seq("<search>", *parts, _form_node(longest), "</search>"))
    words = named_rule("words", repeat(visible_char("<\n:#…\"'[]()"), 0, longest))
    kind = named_rule("kind", free_text(longest // 2, without=EDGE_MARKS))
    arms = [
        seq(
            *("Step", number, ": ", words, name, words, alt("\n", " "), "Action", number, ": "),
            *("Retrieval(s=s1:", kind, f"['{name}'], p=p1:", kind, ", o=o1", maybe(":", kind), ")"),
        )
        for name in names
    ]
    return Grammar("search", seq("<search>", alt(*arms), "</search>"))


def _step_node(longest: int) -> Node:
    return named_rule("step", free_text(2 * longest, without="<"))


def _form_node(longest: int) -> Node:
    letters = repeat(chars("", ("a", "z"), ("A", "Z")), 1, 10)
    alias = named_rule("alias", seq(letters, maybe(repeat(chars("", ("0", "9")), 1, 2))))
    text = named_rule("text", _text_node(longest))
    items = seq(
        "[", _item_node(longest), repeat(seq(",", maybe(" "), _item_node(longest)), 0, 7), "]"
    )
    content = named_rule("content", items)
    result = seq(")->", alias)
    op = named_rule("op", alt(*Operation))
    forms = alt(
        _retrieval_node(alias, longest),
        seq("Math(content=", content, ", target=", text, result),
        seq("Deduce(op=", op, ", content=", content, ", target=", text, result),
        seq("Output(", alias, repeat(seq(",", maybe(" "), alias), 0, 4), ")"),
    )
    return named_rule("form", forms)


def _retrieval_node(alias: Node, longest: int) -> Node:
    """Table 11; an alias that was used before stands alone."""
    kind = named_rule("kind", free_text(longest, without=EDGE_MARKS))
    name = seq("[", alt(_quoted_node(longest), free_text(longest, without="[]'’‘`\"<>")), "]")
    entity = named_rule("entity", seq(alias, maybe(":", maybe(" "), kind, maybe(name))))
    edge = named_rule("edge", seq(alias, maybe(":", maybe(" "), kind)))
    value = alt(_quoted_node(longest), free_text(longest, without=EDGE_MARKS))
    constraint = named_rule("constraint", seq(", ", chars("spo"), ".", kind, "=", value))
    parts = seq("Retrieval(s=", entity, ", p=", edge, ", o=", entity)
    return seq(parts, repeat(constraint, 0, 3), ")")


def _item_node(longest: int) -> Node:
    """A reference, quoted or not, or a literal such as 'weight=16kg'."""
    return named_rule("item", alt(_quoted_node(longest), free_text(longest, without="[]',;<>`\"")))


def _text_node(longest: int) -> Node:
    """A bare text may have apostrophes, and no brackets: they would end it."""
    barred = "()[]'`\"<>"
    inner = alt(visible_char(barred), _APOSTROPHE)
    return alt(
        _quoted_node(longest), seq(free_text(1, without=barred), repeat(inner, 0, longest - 1))
    )


def _quoted_node(longest: int) -> Node:
    inner = alt(visible_char("'[]<"), _APOSTROPHE)
    return named_rule("quoted", seq("'", repeat(inner, 1, longest), "'"))
