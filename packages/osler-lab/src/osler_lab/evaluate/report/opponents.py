"""The simplest baselines of every strategy: the answer that is right most often, and chance.

Both are worked out from the gold of the samples in the log. The majority answer is thus the best
that always saying the same could score here; without it, 60 % may look like skill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from osler_lab.evaluate.intervals import Estimate, estimate_mean
from osler_lab.evaluate.metrics import overlap
from osler_lab.evaluate.record import Gold, Kind, Sample

MAJORITY, CHANCE = "majority answer", "chance"


@dataclass(frozen=True, slots=True)
class SimpleOpponent:
    """What a strategy without any knowledge of medicine scores."""

    name: str
    said: str
    """What it always says; empty for chance."""
    estimate: Estimate


@dataclass
class GoldTally:
    """Gold answers of a task, each sample once."""

    kind: Kind
    golds: dict[str, Gold] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    """Number of answers that a question could be given, by sample."""

    def note_sample(self, sample: Sample) -> None:
        self.golds[sample.id] = sample.gold
        options = len(sample.question.options)
        # Of n options, 2^n - 1 sets are not empty. A task may have questions of both kinds.
        self.answers[sample.id] = 2**options - 1 if sample.kind == "choices" else options

    def opponents(self, seed: int) -> dict[str, tuple[SimpleOpponent, ...]]:
        """By the measure that they are scored with; long answers have none."""
        match self.kind:
            case "choice" | "choices":
                return {"accuracy": (self._majority_option(seed), self._chance())}
            case "short":
                return self._majority_words(seed)
            case "long":
                return {}

    def _majority_option(self, seed: int) -> SimpleOpponent:
        sets = [" ".join(sorted(gold.letters)) for gold in self.golds.values()]
        said = most_common(sets)
        return SimpleOpponent(MAJORITY, said, estimate_mean([float(s == said) for s in sets], seed))

    def _chance(self) -> SimpleOpponent:
        value = fmean(1 / count for count in self.answers.values())
        return SimpleOpponent(CHANCE, "", Estimate(value, value, value, len(self.answers)))

    def _majority_words(self, seed: int) -> dict[str, tuple[SimpleOpponent, ...]]:
        known = [gold.texts for gold in self.golds.values() if gold.texts]
        if not known:
            return {}
        form = overlap.normalise_answer
        often = most_common([one for texts in known for one in {*map(form, texts)}])
        # As it was first written: without its marks 47.3 would be another number.
        said = next(text for texts in known for text in texts if form(text) == often)
        scores: dict[str, Callable[[str, Sequence[str]], float]]
        scores = {"held": overlap.holds_any, "em": overlap.exact_match, "f1": overlap.f1}
        return {
            name: (
                SimpleOpponent(
                    MAJORITY, said, estimate_mean([score(said, texts) for texts in known], seed)
                ),
            )
            for name, score in scores.items()
        }


def most_common(answers: Sequence[str]) -> str:
    """Of equally frequent answers the first in the alphabet, so that a report repeats."""
    counts = Counter(answers)
    return min(counts, key=lambda answer: (-counts[answer], answer))
