"""A question and what is right about it, kept apart.

Solvers take `Sample.question`. The gold answer stands beside it, never inside it, so that
no code path can hand it on with the question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from osler.types import Question

Kind = Literal["choice", "choices", "short", "long"]
"""Kinds of answer: an option; a set of options; a few words; a text."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Gold:
    """Right answers, as far as the data says."""

    letters: tuple[str, ...] = ()
    """Letters of the right options, in the order of the question."""
    texts: tuple[str, ...] = ()
    """Accepted answers (`short`), or reference texts (`long`); any one of them is right."""
    support: tuple[str, ...] = ()
    """Titles or addresses of the documents that the answer rests on."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Item of a data set: a question with its gold answer."""

    task: str
    kind: Kind
    question: Question
    gold: Gold
    tags: tuple[tuple[str, str], ...] = ()
    """Further properties in the data: subject, class, type, level."""

    @property
    def id(self) -> str:
        return self.question.id

    def tag_value(self, name: str) -> str:
        """The tag's value; empty where there is none."""
        return dict(self.tags).get(name, "")
