"""What the encoder `match` learns from: questions, the sentences around them, and a teacher.

The cases are the judge's. A larger encoder, the teacher, measures how near each question lies to
every sentence of the pool, so that a step also reads the nearest sentences of other questions.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.jobs.runner import Progress
from osler.llm.core.cache import write_whole
from osler.llm.transformers.hub import import_extra, silence_transformers
from osler.retrieve.experts.judge import JudgedText
from osler.text import one_line
from osler.train.experts.judge_cases import COVIDQA, LABELLED, SEARCHED, JudgedCase
from osler.train.experts.judge_voices import change_voice
from osler.train.experts.pair_questions import BIOASQ, MEDQUAD, PUBMEDQA

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

TAKEN: Mapping[str, int] = {COVIDQA: 260, MEDQUAD: 350, BIOASQ: 200, PUBMEDQA: 120}
"""Questions of the published sets; of those that were labelled for Osler all are taken."""
_MOST, _RIGHT = 12, 4
"""Sentences of a question, and right ones among them."""
_NEAR = 40
"""Nearest sentences by the teacher from which a step draws."""
_OWN_RIGHT, _OWN_OTHERS = 2, 5
"""Sentences of a question that a step reads: the best, and others."""
_LONGEST = 128
"""Pieces of a text that the teacher reads; of a question there are fewer."""


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A question with the sentences that were judged for it, by number in the pool."""

    question: str
    labelled: bool
    """Whether it was labelled for Osler; else it is of a published set."""
    texts: tuple[int, ...]
    worth: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MatchStep:
    """What one step reads: questions, sentences, and the score that each pair should get."""

    questions: tuple[str, ...]
    texts: tuple[str, ...]
    taught: Floats
    """The teacher's cosines, shape (questions, texts)."""
    wanted: Floats
    """These with what is known of answers added."""


@dataclass(frozen=True)
class MatchRows:
    """Rows and their pool of sentences."""

    rows: tuple[MatchRow, ...]
    pool: tuple[str, ...]

    @classmethod
    def collect(cls, cases: Sequence[JudgedCase], seed: int) -> MatchRows:
        """The labelled cases and a sample of the others."""
        chance = random.Random(seed)
        chosen = [one for one in cases if one.source in (LABELLED, SEARCHED)]
        for name, number in TAKEN.items():
            own = [one for one in cases if one.source == name]
            chosen += chance.sample(own, min(number, len(own)))
        pool: dict[str, int] = {}
        rows = []
        for case in chosen:
            kept = _choose_texts(case, chance)
            texts = tuple(pool.setdefault(text_of(case.texts[at]), len(pool)) for at in kept)
            labelled = case.source in (LABELLED, SEARCHED)
            worth = tuple(case.worth[at] for at in kept)
            rows.append(MatchRow(case.question, labelled, texts, worth))
        return cls(tuple(rows), tuple(pool))


def text_of(text: JudgedText) -> str:
    """The sentence under its heading, as the gate gives it to the encoder."""
    return one_line(f"{text.heading}. {text.sentence}" if text.heading else text.sentence)


def _choose_texts(case: JudgedCase, chance: random.Random) -> list[int]:
    if len(case.texts) <= _MOST:
        return list(range(len(case.texts)))
    right = [at for at, worth in enumerate(case.worth) if worth > 0][:_RIGHT]
    wrong = [at for at, worth in enumerate(case.worth) if worth == 0]
    return right + chance.sample(wrong, min(_MOST - _RIGHT, len(wrong)))


@dataclass(frozen=True)
class MatchSampler:
    """Draws what a step reads; the same step of the same seed is the same."""

    data: MatchRows
    taught: Floats
    """Cosines of the teacher, shape (rows, pool)."""
    labelled: int
    others: int
    """Questions of a step, of each kind."""
    texts: int
    """Sentences drawn for each question."""
    right: float
    wrong: float
    """What is added to a right sentence's cosine, and taken from one that is known to be wrong
    where a right one is read."""
    seed: int = 0

    @cached_property
    def _near(self) -> Any:
        import numpy as np

        return np.argsort(-self.taught, axis=1)[:, :_NEAR]

    @cached_property
    def _kinds(self) -> tuple[list[int], list[int]]:
        at = range(len(self.data.rows))
        rows = self.data.rows
        return [n for n in at if rows[n].labelled], [n for n in at if not rows[n].labelled]

    def draw_step(self, step: int) -> MatchStep:
        """Questions of both kinds with their own sentences and the nearest of all."""
        import numpy as np

        chance = random.Random(self.seed + step)
        rows = [
            number
            for kind, size in zip(self._kinds, (self.labelled, self.others), strict=True)
            for number in chance.sample(kind, min(size, len(kind)))
        ]
        worth: dict[tuple[int, int], float] = {}
        drawn: list[int] = []
        for number in rows:
            own = self._draw_own(self.data.rows[number], chance)
            worth |= {(number, text): value for text, value in own}
            near = [int(one) for one in self._near[number]]
            room = min(max(0, self.texts - len(own)), len(near))
            drawn += [text for text, _ in own] + chance.sample(near, room)
        texts = list(dict.fromkeys(drawn))
        taught = self.taught[np.ix_(rows, texts)]
        wanted = taught.copy()
        for at, number in enumerate(rows):
            wanted[at] += self._change_scores(number, texts, worth)
        asked = tuple(change_voice(self.data.rows[number].question, chance) for number in rows)
        return MatchStep(asked, tuple(self.data.pool[one] for one in texts), taught, wanted)

    def _draw_own(self, row: MatchRow, chance: random.Random) -> list[tuple[int, float]]:
        own = list(zip(row.texts, row.worth, strict=True))
        chance.shuffle(own)
        own.sort(key=lambda one: -one[1])
        others = own[_OWN_RIGHT:]
        return own[:_OWN_RIGHT] + chance.sample(others, min(_OWN_OTHERS, len(others)))

    def _change_scores(
        self, number: int, texts: Sequence[int], worth: Mapping[tuple[int, int], float]
    ) -> list[float]:
        known = [worth.get((number, text)) for text in texts]
        wrong = self.wrong if 1.0 in known else 0.0
        return [
            0.0 if one is None else self.right * one - (wrong if one == 0 else 0.0) for one in known
        ]


def teach_scores(
    data: MatchRows, teacher: Path, kept: Path, progress: Progress | None = None
) -> Floats:
    """The teacher's cosines of every question with every sentence, kept in the file `kept`.

    `teacher` is a folder of a sentence encoder that takes the mean of its tokens, with weights in
    safetensors: no pickle is read. Raises
    `ModelError` without the extra `train`, and where what is kept is of other data.
    """
    import numpy as np

    shape = len(data.rows), len(data.pool)
    if kept.is_file():
        found: Floats = np.load(kept)
        if found.shape != shape:
            raise ModelError(f"{kept} is of other data", fix="choose another --work folder")
        return found
    read = _TeachingEncoder(teacher)
    asked = read.encode([row.question for row in data.rows], progress)
    scores: Floats = asked @ read.encode(data.pool, progress).T
    with write_whole(kept) as draft, draft.open("wb") as out:
        np.save(out, scores)
    return scores


class _TeachingEncoder:
    """A sentence encoder of `transformers`: the mean of the last layer, scaled to length 1."""

    def __init__(self, folder: Path) -> None:
        transformers = import_extra("transformers")
        with silence_transformers():
            self._words = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model = transformers.AutoModel.from_pretrained(
                folder, local_files_only=True, use_safetensors=True
            ).eval()

    def encode(self, texts: Sequence[str], progress: Progress | None) -> Floats:
        import numpy as np

        torch = import_extra("torch")
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found = np.zeros((len(texts), self._model.config.hidden_size), np.float32)
        for begin in range(0, len(order), 32):
            chosen = order[begin : begin + 32]
            read = self._words(
                [texts[at] for at in chosen],
                padding=True,
                truncation=True,
                max_length=_LONGEST,
                return_tensors="pt",
            )
            with torch.no_grad():
                states = self._model(**read).last_hidden_state
            found[chosen] = mean_vectors(states, read["attention_mask"]).numpy()
            if progress is not None:
                progress("reading with the teacher", begin + len(chosen), len(order))
        return found


def mean_vectors(states: Any, mask: Any) -> Any:
    """The mean over the tokens that the mask keeps, each of length 1."""
    torch = import_extra("torch")
    weights = mask[..., None].to(states.dtype)
    mean = (states * weights).sum(1) / weights.sum(1)
    return torch.nn.functional.normalize(mean, dim=-1)
