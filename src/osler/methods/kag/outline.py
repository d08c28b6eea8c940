"""Breadth decomposition by a model too small for the paper's Table 1.

Under a grammar that allows less: one relation a step, looked up of a name that the question
holds or of an earlier result, then an Output, a Deduce or a Math. The plan is written in the
paper's notation. What such a model writes without these bounds is no plan
(docs/papers/kag-thinker.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from string import ascii_uppercase, digits

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
from osler.llm.core.speaker import Speaker
from osler.methods.kag.grammar import EDGE_MARKS
from osler.methods.kag.logical_forms import (
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Operation,
    Output,
    PlanStep,
    Retrieval,
)
from osler.methods.kag.planner import ask_plan
from osler.retrieve.names import MARKS, names_in
from osler.trace import Run
from osler.types import Question


@dataclass(frozen=True)
class Outliner:
    """Asks for a chain of lookups; falls back to a single retrieval when the reply cannot be
    read."""

    speaker: Speaker
    steps: int = 2
    """Lookups, at most."""
    longest: int = 70
    """Characters of a step's words, under the grammar; in Chinese a third of it."""

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        names = names_in(question.text)
        longest = self.longest if question.language == "en" else self.longest // 3
        grammar = outline_grammar(
            names, steps=self.steps, longest=longest, target=_plain_words(question.text)
        )
        return await ask_plan(
            "kag/outline", question, self.speaker, grammar, run, mend=drop_repeated_lookups
        )


def drop_repeated_lookups(plan: LogicalPlan) -> LogicalPlan:
    """The plan without lookups that ask the same of the same subject again; what referred to such
    a one refers to the first."""
    first: dict[tuple[str, str], PlanStep] = {}
    aliases: dict[str, str] = {}
    kept: list[PlanStep] = []
    for step in plan.steps:
        action = _rename_aliases(step.action, aliases)
        if not isinstance(action, Retrieval):
            kept.append(replace(step, action=action))
            continue
        subject = action.s.name or action.s.alias
        same = first.setdefault((subject.casefold(), action.p.type.casefold()), step)
        if same is step:
            kept.append(replace(step, action=action))
        elif isinstance(same.action, Retrieval):
            aliases[action.o.alias] = same.action.o.alias
    return LogicalPlan(tuple(kept))


def _rename_aliases(form: Form, aliases: Mapping[str, str]) -> Form:
    match form:
        case Retrieval():
            return replace(form, s=replace(form.s, alias=aliases.get(form.s.alias, form.s.alias)))
        case Math() | Deduce():
            return replace(form, content=tuple(aliases.get(each, each) for each in form.content))
        case Output():
            names = tuple(aliases.get(each, each) for each in form.variables)
            return Output(tuple(dict.fromkeys(names)))


def _plain_words(text: str) -> str:
    """The question's words without what would end a target."""
    barred = set(MARKS + "()`:")
    return " ".join("".join(" " if c in barred else c for c in text).split())


def outline_grammar(
    names: tuple[str, ...], *, steps: int = 2, longest: int = 70, target: str = ""
) -> Grammar:
    """One to `steps` Retrievals with fixed aliases, then an Output, a Deduce or a Math.

    The subject is one of `names`, or what an earlier step found, and the step's words name it,
    too; any name where there are none. `target`: what a Deduce or a Math is for, the question's
    own words; empty = any text.
    """
    rest: Node = _ending_node(steps + 1, longest, target)
    for n in range(steps, 0, -1):
        following = rest if n == steps else alt(rest, _ending_node(n + 1, longest, target))
        rest = seq(_lookup_node(n, names, longest), "\n", following)
    return Grammar("outline", seq("<answer>", rest, "</answer>"))


def _ending_node(n: int, longest: int, asked: str) -> Node:
    """An Output of the last result, or a Deduce or a Math from all of them."""
    results = ", ".join(f"'o{m}'" for m in range(1, n))
    ops = alt(Operation.CHOICE, Operation.JUDGEMENT, Operation.ENTAILMENT, Operation.EXTRACT)
    target = asked or free_text(longest, without=MARKS + "()`:")
    deduce = seq("Deduce(op=", ops, f", content=[{results}], target='", target, f"')->o{n}")
    math = seq(f"Math(content=[{results}], target='", target, f"')->o{n}")
    words = seq(f"Step{n}: ", free_text(longest, without="<\n:#"), f"\nAction{n}: ")
    return seq(words, alt(f"Output(o{n - 1})", deduce, math))


def _lookup_node(n: int, names: tuple[str, ...], longest: int) -> Node:
    """Step and Action with the same subject: a name of the question, or an earlier result."""
    kind = named_rule("kind", free_text(20, without=EDGE_MARKS))
    tail = seq(f", p=p{n}:", kind, f", o=o{n}", maybe(":", kind), ")")
    # Without capitals and digits no name of the prompt's examples, and no list, gets in.
    plain = named_rule("plain", visible_char('<\n:#."甲乙' + digits + ascii_uppercase))
    before = seq(maybe(chars("", ("A", "Z"))), repeat(plain, 0, longest // 2))
    after = repeat(plain, 0, longest // 2)

    def lookup_about(words: Node | str, subject: Node | str) -> Node:
        return seq(f"Step{n}: ", before, words, after, f"\nAction{n}: Retrieval(s=", subject, tail)

    # Earlier results by their numbers; the step's words and the form's subject agree by
    # construction.
    arms = [lookup_about(f"#{m}", f"o{m}") for m in range(1, n)]
    arms += [lookup_about(name, seq(f"s{n}:", kind, f"['{name}']")) for name in names]
    if not names:
        anything = free_text(longest, without="<\n:#")
        arms.append(
            lookup_about(anything, seq(f"s{n}:", kind, "['", free_text(40, without=MARKS), "']"))
        )
    return alt(*arms)
