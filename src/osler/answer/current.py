"""Evidence that still stands: what was retracted, or replaced by a later issue, supports nothing.

A passage is replaced when a later issue of its work was found that covers the same place: its
section, or half of its words. An older chapter that the later issue does not have stays, with the
caution `superseded`. No model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.answer.cautions import CautioningComposer, FindCautions, passage_name
from osler.answer.currency import Issue, read_issue, retraction_notice
from osler.retrieve.words import content_terms
from osler.types import Caution, Hit, Language, Passage, Question

SHARED_WORDS = 0.5
"""Share of the older passage's words from which the later one covers it."""
_NUMBERS = re.compile(r"[\d.]+")


_WORDS = {
    "superseded": {
        "en": "{mine} ({old}) was left out: its later issue was found, {theirs} ({new}).",
        "zh": "{mine}（{old}）未被采用：检索到其更新的版本 {theirs}（{new}）。",
    },
    "retracted": {
        "en": '{mine} was left out: it says "{said}" of itself.',
        "zh": "{mine} 未被采用：其自身标注为“{said}”。",
    },
}


@dataclass(frozen=True, slots=True)
class Replaced:
    """A passage that no longer stands, and why."""

    hit: Hit
    later: Hit | None
    """Its later issue; `None` where it was retracted."""

    def caution(self, language: Language) -> Caution:
        mine = self.hit.passage
        if self.later is None:
            words = _WORDS["retracted"][language]
            return Caution(
                "retracted",
                words.format(mine=passage_name(mine), said=retraction_notice(mine)),
                (),
            )
        text = _WORDS["superseded"][language].format(
            mine=passage_name(mine),
            theirs=passage_name(self.later.passage),
            old=read_issue(mine),
            new=read_issue(self.later.passage),
        )
        return Caution("superseded", text, ())


def split_current(hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], tuple[Replaced, ...]]:
    """The hits that still stand, in their order, and those that do not."""
    gone = [Replaced(hit, None) for hit in hits if retraction_notice(hit.passage)]
    retracted = {each.hit.passage.id for each in gone}
    standing = [hit for hit in hits if hit.passage.id not in retracted]
    issues = [(hit, read_issue(hit.passage)) for hit in standing]
    replaced = [
        Replaced(hit, later)
        for hit, issue in issues
        if (later := _later_issue(hit.passage, issue, issues))
    ]
    left = {each.hit.passage.id for each in replaced}
    current = tuple(hit for hit in standing if hit.passage.id not in left)
    return current, (*gone, *replaced)


def _later_issue(old: Passage, issue: Issue, among: Sequence[tuple[Hit, Issue]]) -> Hit | None:
    """The first of the hits that is of a later issue and covers the passage."""
    for hit, other in among:
        same = hit.passage.source == old.source
        if same and issue.is_before(other) and covers(hit.passage, old):
            return hit
    return None


def covers(later: Passage, old: Passage) -> bool:
    """Whether the later passage is about what the old one is: by its section, or by its words."""
    section = _section_name(old)
    if section and section == _section_name(later):
        return True
    words = set(content_terms(old.text))
    return len(words & set(content_terms(later.text))) >= SHARED_WORDS * max(1, len(words))


def _section_name(passage: Passage) -> str:
    return " ".join(_NUMBERS.sub(" ", passage.locator.section).casefold().split())


@dataclass(frozen=True)
class CurrentComposer(CautioningComposer):
    """A composer that sees only evidence that still stands."""

    def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], FindCautions]:
        current, gone = split_current(hits)
        return current, lambda answer: [each.caution(answer.language) for each in gone]
