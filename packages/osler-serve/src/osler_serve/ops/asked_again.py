"""Saved questions: the last question of a thread, asked again when the knowledge base has changed.

What changed is found by comparing two answers to one question: statements and cited passages that
are new or gone, and whether it is answered at all. No model judges whether two statements mean the
same: one that is worded otherwise is new.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from osler.answer.follow_up import Standalone
from osler.build.danger import danger_notice
from osler.build.resource_cache import ResourceCache
from osler.errors import BadRun
from osler.runs.answering import ask
from osler.runs.files import find_answer, read_record, read_run_settings
from osler.runs.threads import Thread, ThreadStore
from osler.settings import Settings
from osler.types import Answer


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """What differs between an earlier and a later answer to one question."""

    question: str
    before: str
    """Run of the earlier answer."""
    after: str
    new_statements: tuple[str, ...]
    gone_statements: tuple[str, ...]
    new_passages: tuple[str, ...]
    """Ids of passages that only the later answer cites, or of which it quotes other words."""
    gone_passages: tuple[str, ...]
    grounding: tuple[str, str]
    """Before and after."""

    @property
    def is_change(self) -> bool:
        parts = self.new_statements, self.gone_statements, self.new_passages, self.gone_passages
        return any(parts) or self.grounding[0] != self.grounding[1]

    def lines(self) -> Iterator[str]:
        """What changed, a line each, after the question."""
        yield f"? {self.question}"
        if not self.is_change:
            yield "  asked again: the answer is as it was"
        if self.grounding[0] != self.grounding[1]:
            yield f"  {self.grounding[0]} before, {self.grounding[1]} now"
        yield from (f"  + {text}" for text in self.new_statements)
        yield from (f"  - {text}" for text in self.gone_statements)
        yield from (f"  + evidence {id}" for id in self.new_passages)
        yield from (f"  - evidence {id}" for id in self.gone_passages)


def compare_answers(
    question: str, before: tuple[str, Answer], after: tuple[str, Answer]
) -> AnswerChange:
    """Compares two answers, each with the name of its run."""
    (first, old), (second, new) = before, after
    was, now = ([one.text for one in answer.statements] for answer in (old, new))
    cited, cites = ([(e.passage.id, e.quote) for e in answer.evidence] for answer in (old, new))
    return AnswerChange(
        question,
        first,
        second,
        _only_in(now, was),
        _only_in(was, now),
        tuple(dict.fromkeys(one[0] for one in cites if one not in cited)),
        tuple(dict.fromkeys(one[0] for one in cited if one not in cites)),
        (old.grounding.value, new.grounding.value),
    )


def _only_in(these: Sequence[str], those: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in these if one not in those)


def read_answer(settings: Settings, run: str) -> Answer:
    """The answer of a kept run. Raises `BadRun` where it is gone or has none."""
    if answer := find_answer(settings.runs.path / run):
        return answer
    raise BadRun(f"run {run} has no answer", fix="ask the question again")


async def ask_again(
    settings: Settings, threads: Sequence[Thread], cache: ResourceCache
) -> AsyncIterator[AnswerChange]:
    """Asks the last question of each thread whose last answer is of another knowledge base.

    It is solved by that answer's strategy, and the new answer becomes the thread's next turn.
    Raises `BadRun` for a run that is gone.
    """
    store = ThreadStore(settings.home)
    for thread in threads:
        if not thread.turns:
            continue
        last = thread.turns[-1]
        folder = settings.runs.path / last.run
        record = read_record(folder)
        strategy = read_run_settings(folder, record).strategy
        chosen = settings.model_copy(update={"strategy": strategy})
        parts = await cache.parts_for(chosen)
        if record.snapshot == parts.snapshot:
            continue
        earlier = [turn.question for turn in thread.turns]
        notice = danger_notice(chosen, record.question, earlier)
        finished = await ask(chosen, record.question, parts=parts, danger=notice)
        if finished.solution is None:
            continue
        alone = Standalone(last.standalone, last.origin)
        store.add_turn(thread, finished.run, last.question, alone)
        now = finished.run, finished.solution.answer
        yield compare_answers(
            record.question.text, (last.run, read_answer(settings, last.run)), now
        )
