"""A choice of many texts, written as a tree of their common beginnings.

An engine that holds a reply to a plain list of a thousand texts keeps a thousand open ends,
and tests every token of its vocabulary against each. In the tree no two branches begin with
the same character, so that an engine has few open ends wherever the reply stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, takewhile

from osler.llm.core.grammar.nodes import Lit, Node, alt, maybe, seq


def one_of(texts: Iterable[str]) -> Node:
    """Makes a node of exactly one of the texts. Raises `ValueError` when there is none."""
    distinct = sorted(set(texts))
    if not distinct:
        raise ValueError("a choice needs at least one text")
    return _choice_tree(distinct)


def _choice_tree(texts: list[str]) -> Node:
    """Makes the tree of sorted, distinct texts."""
    ends, rest = texts[0] == "", [text for text in texts if text]
    arms = [_branch_node(branch) for branch in _group_branches(rest)]
    if not arms:
        return Lit("")
    return maybe(alt(*arms)) if ends else alt(*arms)


def _group_branches(texts: list[str]) -> Iterator[list[str]]:
    for _, same in groupby(texts, key=lambda text: text[0]):
        yield list(same)


def _branch_node(texts: list[str]) -> Node:
    """Makes the node of texts with a common beginning."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(texts[0], texts[-1], strict=False))
    size = len(list(same))  # of sorted texts the outermost differ first
    head, tails = Lit(texts[0][:size]), [text[size:] for text in texts]
    return head if tails == [""] else seq(head, _choice_tree(tails))
