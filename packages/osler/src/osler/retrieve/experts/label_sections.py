"""`label-sections`: which section of a drug's label answers a question.

A linear model over the packaged encoder's vector of the question. It learnt from questions that two
hands wrote as consumers type them, each with the kind of section that answers it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osler.retrieve.experts.kinds import KindModel, unfit_error

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder
    from osler.retrieve.experts.cards import ShelvedExpert

LABEL_SECTIONS = "label-sections"
"""Name of the expert, also on tapes."""
HEADED: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(words, re.IGNORECASE)
    for kind, words in {
        "dose": "dosage and|directions|patient|recommended|instructions for use",
        "supply": "supplied|strengths|package|description|product",
        "indications": "indications|uses|purpose",
        "interactions": "interaction|when using|ask",
        "contraindications": "contraindications|do not use",
        "reactions": "adverse|when using|boxed",
        "overdose": "overdos",
        "pharmacology": "pharmaco|mechanism",
        "warnings": "warning|precaution|when using|ask|stop use|boxed",
        "description": "description|ingredient|product|supplied",
        "populations": "populations|pediatric|geriatric|renal|hepatic|impairment",
        "pregnancy": "pregnan|lactation|breast|populations|nursing|reproductive|boxed",
        "storage": "storage|supplied|other information",
        "abuse": "abuse|warning",
    }.items()
}
"""Headings of labels, under which what is asked for may stand, by the kinds that are learnt."""


@dataclass(frozen=True)
class LabelSections:
    """How likely a section of a label answers, as a `Relevance` of a question to headings."""

    names: tuple[str, ...]
    model: KindModel

    @classmethod
    def of_expert(cls, expert: ShelvedExpert, encoder: Encoder) -> LabelSections:
        """Raises `ModelError` for weights that do not fit the card, and for an unknown kind."""
        if not HEADED.keys() >= set(expert.card.features):
            raise unfit_error(expert)
        return cls(expert.card.features, KindModel.of_expert(expert, encoder))

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Of each heading the probability that the question `query` asks for what is under it."""
        shares = await asyncio.to_thread(self._weigh, query)
        return tuple(
            sum(share for kind, share in shares.items() if HEADED[kind].search(text))
            for text in texts
        )

    def _weigh(self, question: str) -> dict[str, float]:
        vector = self.model.encoder.encode([question], kind="query")[0]
        return dict(zip(self.names, map(float, self.model.share_kinds(vector)), strict=True))
