"""The packaged expert `answers`: it chooses quotes, and is a reranker where the settings say so."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from osler.answer.quoting import QuoteJudge
from osler.app.config import Settings
from osler.app.wiring.experts import (
    _open_search_expert,
    expert_in_use,
    find_search_fault,
    search_expert,
)
from osler.app.wiring.hub import _open_answers, open_judge, open_reranker
from osler.errors import ModelMissing
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.answering import AnswersExpert
from osler.retrieve.experts.cards import CARD, WEIGHTS, read_card, render_card
from osler.retrieve.experts.shelf import packaged_folder
from osler.testing.conformance import RelevanceKit
from osler.types import Relevance


@pytest.fixture(scope="module")
def encoder() -> MiniLMEncoder:
    return MiniLMEncoder(threads=1)


def settings_of(**reranker: object) -> Settings:
    return Settings.model_validate({"reranker": reranker})


@pytest.fixture(scope="module")
def packaged(encoder: MiniLMEncoder) -> Relevance:
    found = open_reranker(settings_of(kind="answers"), encoder)
    assert isinstance(found, AnswersExpert)
    return found


class TestPackagedAnswers(RelevanceKit):
    @pytest.fixture
    def scorer(self, packaged: Relevance) -> Relevance:
        return packaged


def test_by_default_it_chooses_quotes_and_orders_no_search(encoder: MiniLMEncoder) -> None:
    assert open_reranker(Settings(), encoder) is None
    assert expert_in_use(Settings(), "answers") == "packaged"
    judge, faults = open_judge(Settings())
    assert isinstance(judge, QuoteJudge)
    assert faults == ()
    off = Settings.model_validate({"answer": {"quotes": "likelihood"}})
    assert expert_in_use(off, "answers") == "off"
    assert open_judge(off) == (None, ())


def test_without_its_weights_the_rule_chooses_and_says_so(tmp_path: Path) -> None:
    chosen = Settings.model_validate({"answer": {"quotes_path": str(tmp_path / "mine")}})
    judge, faults = open_judge(chosen)
    assert judge is None
    assert "there is no expert 'answers'" in faults[0]


def break_weights(folder: Path) -> None:
    weights = folder / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-100])


def change_base(folder: Path) -> None:
    """As where the packaged encoder is replaced by a newer one than the expert was made over."""
    card = read_card(folder).model_copy(update={"base": "all-MiniLM-L6-v2@" + "0" * 64})
    (folder / CARD).write_text(render_card(card), encoding="utf-8")


@pytest.mark.parametrize("spoil", [break_weights, change_base])
@pytest.mark.parametrize("name", ["answers", "retrieve"])
def test_where_an_expert_cannot_be_used_the_rule_takes_over_and_says_so(
    name: str, spoil: Callable[[Path], None], encoder: MiniLMEncoder, tmp_path: Path
) -> None:
    mine = tmp_path / name
    shutil.copytree(packaged_folder() / name, mine)
    places = {"answers": ("answer", "quotes_path"), "retrieve": ("retrieve", "path")}
    section, key = places[name]
    chosen = Settings.model_validate({section: {key: str(mine)}})
    assert find_faults(chosen, name, encoder) == (True, ())
    spoil(mine)
    used, faults = find_faults(chosen, name, encoder)
    assert not used
    assert name in faults[0]


def find_faults(
    settings: Settings, name: str, encoder: MiniLMEncoder
) -> tuple[bool, tuple[str, ...]]:
    """Whether the expert is used, and what the reader must know of it."""
    _open_answers.cache_clear()
    _open_search_expert.cache_clear()
    if name == "retrieve":
        return search_expert(settings, encoder) is not None, find_search_fault(settings)
    judge, faults = open_judge(settings)
    return judge is not None, faults


def test_a_folder_of_one_s_own_takes_the_place_of_the_packaged_one(
    encoder: MiniLMEncoder, tmp_path: Path
) -> None:
    chosen = settings_of(kind="answers", path=str(tmp_path / "mine"))
    with pytest.raises(ModelMissing, match="there is no expert 'answers'"):
        open_reranker(chosen, encoder)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (
            "How is gout treated?",
            "Gout. Attacks are treated with colchicine, with steroids or with naproxen.",
            "Gout. It runs in families, and men have it more often than women do.",
        ),
        (
            "What are the symptoms of scurvy?",
            "Scurvy. The symptoms of scurvy are bleeding gums, bruises and slow healing.",
            "Scurvy. Sailors of the eighteenth century were given lemons against it.",
        ),
        (
            "What causes malaria?",
            "Malaria. It is caused by parasites of the genus Plasmodium, which mosquitoes carry.",
            "Malaria. Thank you for your question about malaria.",
        ),
    ],
)
async def test_what_answers_stands_before_what_is_only_about_the_subject(
    packaged: Relevance, question: str, right: str, wrong: str
) -> None:
    first, second = await packaged.relevance(question, [right, wrong])
    assert first > 2 * second
