"""Logical forms of KAG-Thinker as a format (§3.1.1, Tables 1 and 11).

    Retrieval(s=s1:film['Hit Parade Of 1947'], p=p1:director, o=o1:director)
    Math(content=['o1', 'weight=16kg'], target='…')->math6
    Deduce(op=choice, content=['o2','o4'], target='…')->o5
    Output(o5)

Names and values stand in straight quotes, as in Table 1, or bare, as in Table 5. A
quote inside quotes is an apostrophe: a letter follows it.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from osler.methods.kag.logical_forms import Operation

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
    alias = named_rule("alias", _alias_node())
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


def _alias_node() -> Node:
    letters = repeat(chars("", ("a", "z"), ("A", "Z")), 1, 10)
    return seq(letters, maybe(repeat(chars("", ("0", "9")), 1, 2)))


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
