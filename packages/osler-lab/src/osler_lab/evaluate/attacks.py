"""Noise attacks on what a tool returns (TC-RAG App. 8.6).

Noise is injected at the first tool call of a run. A *structural* attack puts it in the
place of the results, a *partial* one appends it to them; *clean* runs are not attacked, and their
Backtracks are false. What counts is how often the controller notices (Summary, Backtrack), and
whether the answer stays right (EM) and cites the passages that answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from osler.errors import MalformedSource
from osler.methods.tcrag.stack import FrameKind
from osler.text import language_of
from osler.trace import Event, Popped, Pushed, Run, Solver
from osler.types import Halt, Hit, Passage, Question, Retriever
from osler_lab.evaluate.intervals import Estimate, proportion

Kind = Literal["clean", "structural", "partial"]
Noise = Literal["none", "irrelevant", "relevant", "mixed"]
CELLS: tuple[tuple[Kind, Noise], ...] = (
    ("clean", "none"),
    *((kind, noise) for kind in get_args(Kind)[1:] for noise in get_args(Noise)[1:]),
)
"""What is compared with the six cells of the paper's table, and these."""

# Options of a set that names none, as PubMedQA has it.
_OPTIONS = ("yes", "no", "maybe")


@dataclass(frozen=True, slots=True)
class Target:
    """A question with the passages that answer it and those that do not."""

    question: Question
    gold: str
    """Letter of the right option."""
    passages: tuple[Passage, ...]
    relevant: tuple[Passage, ...]
    """About the same matter, without the answer."""
    irrelevant: tuple[Passage, ...]

    def noise_of(self, kind: Noise) -> tuple[Passage, ...]:
        if kind == "none":
            return ()
        if kind == "relevant":
            return self.relevant
        if kind == "irrelevant":
            return self.irrelevant
        # Mixed noise alternates, so that any k of it holds both kinds.
        pairs = zip(self.relevant, self.irrelevant, strict=False)
        return tuple(passage for pair in pairs for passage in pair)


@dataclass
class AttackState:
    """Whether the attack of a run has been made; all tools of the run share it."""

    fired: bool = False


@dataclass(frozen=True)
class AttackedRetriever:
    """A tool's retriever under attack: its first answer in a run, no later one."""

    inner: Retriever
    kind: Kind
    noise: Sequence[Passage]
    shot: AttackState

    async def search(self, query: str, *, k: int) -> list[Hit]:
        hits = await self.inner.search(query, k=k)
        if self.shot.fired or self.kind == "clean":
            return hits
        # Set before the results are looked at: an empty search counts as the attacked call, too.
        self.shot.fired = True
        kept = [] if self.kind == "structural" else hits
        # Ranks go on after the honest hits; the score of noise is 0, as no search found it.
        first = len(kept) + 1
        injected = [
            Hit(passage, 0.0, rank, query, passage.source)
            for rank, passage in enumerate(self.noise[:k], first)
        ]
        return [*kept, *injected]


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    id: str
    attacked: bool
    """Whether a tool was called at all; without a call there is nothing to attack."""
    summarised: bool
    backtracked: bool
    right: bool
    halt: Halt
    cited: bool = False
    """Whether the answer quotes a passage that answers."""


@dataclass(frozen=True, slots=True)
class AttackCell:
    """Cell of the paper's Table 3: one kind of attack with one kind of noise."""

    kind: Kind
    noise: Noise
    summary: Estimate
    backtrack: Estimate
    em: Estimate
    unattacked: int
    """Runs without a tool call; they are in all shares. All runs of the clean cell."""
    cited: Estimate
    """Share of the answers that quote a passage that answers."""


Build = Callable[[Retriever], Solver]
"""The method under attack, over the one retriever that is attacked."""


async def run_attack(
    build: Build, targets: Iterable[Target], kind: Kind, noise: Noise, *, seed: int = 0
) -> list[AttackOutcome]:
    """Runs the method once per target; targets without noise of this kind are skipped."""
    outcomes = []
    for target in targets:
        if kind != "clean" and not target.noise_of(noise):
            continue
        shot = AttackState()
        inner = _HonestRetriever(target.passages)
        run = Run(id=target.question.id, seed=seed)
        solver = build(AttackedRetriever(inner, kind, target.noise_of(noise), shot))
        solution = await solver.solve(target.question, run)
        popped = _reactions(run.events)
        outcomes.append(
            AttackOutcome(
                target.question.id,
                shot.fired,
                "Summary" in popped,
                "Backtrack" in popped,
                solution.answer.option == target.gold,
                solution.halt,
                any(one.passage in target.passages for one in solution.answer.evidence),
            )
        )
    return outcomes


def _reactions(events: Iterable[Event]) -> set[str]:
    """What popped the first observation of a run, or its summary: the pop of a thought, or of a
    later observation, is no reaction to the attack, nor one that took nothing off the stack."""
    place, found = 0, set[str]()
    for event in events:
        if isinstance(event, Pushed) and event.kind == FrameKind.OBSERVATION:
            place = place or event.depth
        elif isinstance(event, Popped) and event.kind and event.depth + 1 == place:
            found.add(event.by)
            if event.by == "Backtrack":  # what stands there next is another
                break
    return found


def summarize_cell(kind: Kind, noise: Noise, outcomes: Sequence[AttackOutcome]) -> AttackCell:
    """Raises `ValueError` for no outcomes."""
    n = len(outcomes)
    return AttackCell(
        kind,
        noise,
        proportion(sum(o.summarised for o in outcomes), n),
        proportion(sum(o.backtracked for o in outcomes), n),
        proportion(sum(o.right for o in outcomes), n),
        sum(not o.attacked for o in outcomes),
        proportion(sum(o.cited for o in outcomes), n),
    )


def read_targets(path: Path) -> Iterator[Target]:
    """Reads noise sets from JSON Lines: id, question, answer, gold, distractor_relevant, ….

    `options` is a list or {letter: text}, by default yes, no and maybe; `answer` is the text or
    the letter of the right one. Raises `MalformedSource` naming file and line.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _read_target(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise MalformedSource(f"{path}:{number}: not a noise set: {error!r}") from error


def _read_target(record: dict[str, object]) -> Target:
    text = str(record["question"])
    question = Question(str(record["id"]), text, _options_of(record), language_of(text))
    distant = [*_texts_of(record, "distractor_out_of_domain")]
    return Target(
        question,
        _letter_of(question, str(record["answer"])),
        _make_passages(_texts_of(record, "gold"), "research"),
        _make_passages(_texts_of(record, "distractor_relevant"), "research"),
        _make_passages(distant, "web"),
    )


def _options_of(record: dict[str, object]) -> tuple[str, ...]:
    listed = record.get("options") or _OPTIONS
    if isinstance(listed, dict):
        listed = [listed[letter] for letter in sorted(listed)]
    if not isinstance(listed, list | tuple) or len(listed) < 2:
        raise TypeError("options should be a list of two or more")
    return tuple(map(str, listed))


def _letter_of(question: Question, answer: str) -> str:
    """The right option's letter. Raises `ValueError` for an answer that is none of them."""
    if answer in question.options:
        return question.letters[question.options.index(answer)]
    if answer in question.letters:
        return answer
    raise ValueError(f"the answer {answer!r} is none of the options")


def _texts_of(record: dict[str, object], key: str) -> list[tuple[str, str]]:
    items = record[key]
    if not isinstance(items, list):
        raise TypeError(f"{key} should be a list")
    return [(str(item["id"]), str(item["text"])) for item in items]


def _make_passages(texts: list[tuple[str, str]], source: str) -> tuple[Passage, ...]:
    return tuple(
        Passage(f"{source}:{id}#0", text, source, "", language=language_of(text))
        for id, text in texts
    )


@dataclass(frozen=True)
class _HonestRetriever:
    """Stands in for an honest tool: returns the target's passages for every query."""

    passages: tuple[Passage, ...]

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return [
            Hit(passage, 1.0 / rank, rank, query, passage.source)
            for rank, passage in enumerate(self.passages[:k], 1)
        ]
