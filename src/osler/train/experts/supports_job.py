"""Making and measuring the expert `supports`: a logistic regression over cues of the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osler.errors import BadConfig
from osler.evaluate.intervals import difference, mean
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.cards import WEIGHTS, ExpertCard, ExpertData, ExpertFigure
from osler.retrieve.experts.cues import FEATURES
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.experts.supporting import MAYBE_SHARE, SUPPORTS, LinearModel, open_linear
from osler.train.experts.claims import (
    FoundClaim,
    find_claims,
    offers_maybe,
    open_claim_base,
    read_claims,
)
from osler.train.experts.folder import ExpertFolderJob, figure_of, write_safetensors
from osler.train.experts.linear import fit_linear, tensors_of
from osler.train.experts.pair_questions import LICENCES
from osler.train.experts.splits import PARTS, Part, read_split

UNCONCLUDED, RIDGE = 0.3, 60.0
"""Weight of evidence without the conclusions (1 with them), and the penalty; both were chosen by
cross-validation within train and dev."""
_RULE = "yes"
"""The more frequent verdict."""
_WEAK = (
    "it reads the wording of the evidence, not its content: a sentence about something else counts"
    " as far as it is near the question",
    "where the abstract's conclusion is not among the passages it is no better than the more"
    " frequent verdict on PubMedQA",
    "claims that are statements: on HealthVer and CovidFact no better than always one word",
    'it never says "maybe"',
    "guidelines and books: it takes their prohibitions for a no, so only research is read",
    "English only",
)


@dataclass(frozen=True)
class SupportsJob(ExpertFolderJob):
    """Trains and measures the expert `supports`."""

    threads: int = 1

    def _find_parts(
        self, *parts: Part, limit: int | None = None, progress: Progress | None = None
    ) -> list[FoundClaim]:
        """The claims of some parts with their evidence."""
        split, encoder = read_split(self.split), MiniLMEncoder(threads=self.threads)
        claims = [one for one in read_claims(self.data) if split.part_of(one) in parts][:limit]
        with open_claim_base(self.data, self.work, encoder, progress) as kb:
            return find_claims(kb, encoder, claims, progress)

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Fits on train and dev."""
        learnt = self._find_parts("train", "dev", progress=progress)
        if len({one.claim.verdict for one in learnt} - {"maybe"}) < 2:
            raise BadConfig("the train part lacks questions of yes or no")
        self.out.mkdir(parents=True, exist_ok=True)
        write_safetensors(tensors_of(fit_model(learnt)), self.out / WEIGHTS)
        unsure = [one.claim.verdict == "maybe" for one in learnt if offers_maybe(one.claim)]
        card = self.start_card(
            SUPPORTS,
            question="Does the evidence say yes or no?",
            family="linear",
            replaces="the more frequent verdict, or the likelihood of yes and no",
            seed=0,
            weak=_WEAK,
            features=FEATURES,
            parameters={MAYBE_SHARE: round(sum(unsure) / max(1, len(unsure)), 4)},
            data=self._count_claims(),
        )
        list_questions(self.out, (one.claim.text for one in learnt))
        return self.write_card(card)

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""
        opened = open_expert(SUPPORTS, self.out)
        model = open_linear(opened, FEATURES)
        test = self._find_parts("test", limit=limit, progress=progress)
        figures = [
            _measure(model, own, f"test{on}: {source}", whole=not on)
            for on in ("", ", conclusions taken out of the base")
            for source in LICENCES
            if (own := [one for one in test if one.claim.source == source])
        ]
        return self.write_card(opened.card.model_copy(update={"figures": tuple(figures)}))

    def _count_claims(self) -> tuple[ExpertData, ...]:
        split, claims = read_split(self.split), read_claims(self.data)
        counts = Counter((one.source, split.part_of(one)) for one in claims)
        return tuple(
            ExpertData(name=name, licence=LICENCES[name], **{p: counts[name, p] for p in PARTS})
            for name in dict.fromkeys(one.source for one in claims)
        )


def fit_model(found: Sequence[FoundClaim]) -> LinearModel:
    """A logistic regression of "no" against "yes". Each question is learnt from with the
    conclusions in its evidence and, at less weight, without."""
    kept = [one for one in found if one.claim.verdict != "maybe"]
    rows = np.stack([one.whole for one in kept] + [one.unconcluded for one in kept])
    weights = np.repeat([1.0, UNCONCLUDED], len(kept))
    no = [int(one.claim.verdict == "no") for one in kept] * 2
    return fit_linear(rows, no, ridge=RIDGE, weights=weights)


def _measure(
    model: LinearModel, own: Sequence[FoundClaim], on: str, *, whole: bool
) -> ExpertFigure:
    """Accuracy beside that of always the more frequent verdict."""
    rows = np.stack([one.whole if whole else one.unconcluded for one in own])
    said = ["no" if share > 0.5 else "yes" for share in model.predict_shares(rows)]
    rights = [float(one.claim.verdict == word) for one, word in zip(own, said, strict=True)]
    rule = [float(one.claim.verdict == _RULE) for one in own]
    return ExpertFigure(
        on=on,
        measure="accuracy",
        n=len(own),
        expert=figure_of(mean(rights)),
        rule=f"majority ({_RULE})",
        rule_figure=figure_of(mean(rule)),
        gain=figure_of(difference(rule, rights)),
    )
