"""`label-sections`: which section of a label answers, by the expert that comes with Osler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from expert_folders import write_expert

from osler.errors import ModelError
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.label_sections import HEADED, LABEL_SECTIONS, LabelSections
from osler.sources.formats.labels import HEADINGS

SECTIONS = ("Dosage and administration", "Drug interactions", "Pregnancy", "How supplied")


@pytest.mark.model
@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("how many tablets of naproxen a day", 0),
        ("can i drink beer on metronidazole", 1),
        ("im expecting, is sertraline ok for the baby?", 2),
        ("what colour is the 5 mg warfarin tablet", 3),
    ],
)
async def test_the_packaged_expert_tells_the_section(question: str, place: int) -> None:
    sections = LabelSections.of_expert(open_expert(LABEL_SECTIONS), MiniLMEncoder())
    shares = await sections.relevance(question, SECTIONS)
    assert int(np.argmax(shares)) == place
    assert await sections.relevance(question, ["Clinical studies"]) == (0,)
    assert max(await sections.relevance(question, HEADINGS)) <= 1


def test_every_kind_has_a_heading_of_labels() -> None:
    for kind, headed in HEADED.items():
        assert any(headed.search(heading) for heading in HEADINGS), kind


@pytest.mark.parametrize("broken", ["bias", "kind"])
def test_weights_that_do_not_fit_the_card_are_refused(tmp_path: Path, broken: str) -> None:
    own = open_expert(LABEL_SECTIONS)
    tensors = dict(own.read_tensors())
    facts = own.card.model_dump(exclude={"weights", "further", "split", "date", "languages"})
    if broken == "bias":
        tensors["bias"] = tensors["bias"][:-1]
    else:
        facts["features"] = ("colour", *facts["features"][1:])
    write_expert(tmp_path, tensors, **facts)
    card = open_expert(LABEL_SECTIONS, tmp_path).card
    with pytest.raises(ModelError, match="do not fit its card"):
        LabelSections.of_expert(replace(own, folder=tmp_path, card=card), MiniLMEncoder())
