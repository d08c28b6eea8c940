"""`kinds`: what sentences tell, by the expert that comes with Osler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from expert_folders import write_expert

from osler.errors import ModelError
from osler.kb.encoders.base import MiniLMEncoder
from osler.kb.encoders.e5 import E5Encoder
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.kinds import KINDS, SentenceKinds

TREATED = "Treatment is with antibiotics by mouth for seven days, and surgery where these fail."
SEEN = "The most common signs are fever, a rash on the trunk and pain in the joints."
TESTED = "The diagnosis is confirmed by a blood test for antibodies and by a biopsy."


@pytest.mark.model
async def test_the_packaged_expert_tells_treatment_from_signs_and_tests() -> None:
    kinds = SentenceKinds.of_expert(open_expert(KINDS), {"en": MiniLMEncoder()})
    texts = (TREATED, SEEN, TESTED)
    for kind, place in (("treatment", 0), ("symptoms", 1), ("diagnosis", 2)):
        shares = await kinds.relevance(kind, texts)
        assert int(np.argmax(shares)) == place
        assert shares[place] > 0.5
    assert sum([(await kinds.relevance(name, [SEEN]))[0] for name in kinds.names]) == pytest.approx(
        1
    )
    assert await kinds.relevance("treatment", []) == ()
    assert await kinds.relevance("treatment", ["口服抗菌药七天。"]) == (0.0,)


@pytest.mark.model
async def test_chinese_sentences_are_told_by_what_was_learnt_from_english_ones() -> None:
    kinds = SentenceKinds.of_expert(open_expert(KINDS), {"zh": E5Encoder()})
    texts = (
        "首选口服抗生素治疗七天，无效时手术治疗。",
        "最常见的症状是发热、皮疹和关节疼痛。",
        "本病的病因是基因突变，由父母遗传。",
    )
    for kind, place in (("treatment", 0), ("symptoms", 1), ("causes", 2)):
        assert int(np.argmax(await kinds.relevance(kind, texts))) == place


def test_weights_that_do_not_fit_the_card_are_refused(tmp_path: Path) -> None:
    own = open_expert(KINDS)
    tensors = dict(own.read_tensors())
    facts = own.card.model_dump(exclude={"weights", "further", "split", "date", "languages"})
    write_expert(tmp_path, {**tensors, "bias_en": tensors["bias_en"][:-1]}, **facts)
    broken = replace(own, folder=tmp_path, card=open_expert(KINDS, tmp_path).card)
    with pytest.raises(ModelError, match="do not fit its card"):
        SentenceKinds.of_expert(broken, {"en": MiniLMEncoder()})
