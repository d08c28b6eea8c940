"""`answer.options` and `answer.judge` reach the composer."""

import pytest

from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import JUDGED
from osler.answer.options import OptionLetters, OptionTexts
from osler.answer.picking import SHOWN
from osler.answer.written import WrittenComposer
from osler.build import Parts
from osler.build.composers import answer_wording
from osler.build.models import LoadedModel
from osler.errors import BadConfig
from osler.llm.core.base import LanguageModel
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, TextOnly


def parts_with(model: LanguageModel) -> Parts:
    return Parts(
        {"reader": LoadedModel(model)},
        lambda name, sources: ScriptedRetriever({}),
        OverlapRelevance(),
        OverlapRelevance(),
        (),
    )


def chooser(options: str, *, scores: bool = True) -> object:
    script = ScriptedModel([])
    model = script if scores else TextOnly(script)
    settings = Settings.model_validate({"answer": {"options": options}})
    composer = answer_wording(settings, parts_with(model))
    assert isinstance(composer, ExtractiveComposer)
    return composer.options


def test_texts_are_the_default_and_need_a_model_that_scores() -> None:
    assert Settings().answer.options == "texts"
    assert isinstance(chooser("texts"), OptionTexts)
    assert chooser("texts", scores=False) is None


def test_letters_need_only_a_model_that_replies() -> None:
    assert isinstance(chooser("letters"), OptionLetters)
    assert isinstance(chooser("letters", scores=False), OptionLetters)


def test_a_letter_may_be_written_whatever_the_model_can() -> None:
    for scores in (True, False):
        found = chooser("written", scores=scores)
        assert isinstance(found, OptionLetters)
        assert found.written
    assert not getattr(chooser("letters"), "written", True)


def test_a_model_of_ones_own_picks_quotes_and_the_packaged_one_may_not() -> None:
    own = {"kind": "openai", "url": "http://127.0.0.1:1/v1", "name": "m", "writes": "no"}
    for judge, picks in (("model", True), ("judge", False), ("off", False)):
        settings = Settings.model_validate({"model": own, "answer": {"judge": judge}})
        composer = answer_wording(settings, parts_with(ScriptedModel([])))
        assert isinstance(composer, ExtractiveComposer)
        assert (composer.picker is not None) is picks
        assert composer.gate.judged == (SHOWN if picks else JUDGED)
    packaged = Settings.model_validate({"answer": {"judge": "model"}})
    with pytest.raises(BadConfig, match="needs a model of your own"):
        answer_wording(packaged, parts_with(ScriptedModel([])))


def test_a_model_of_ones_own_confirms_statements_and_the_packaged_one_may_not() -> None:
    own = {"kind": "openai", "url": "http://127.0.0.1:1/v1", "name": "m"}
    for confirm in ("model", "words"):
        settings = Settings.model_validate({"model": own, "answer": {"confirm": confirm}})
        composer = answer_wording(settings, parts_with(ScriptedModel([])))
        assert isinstance(composer, WrittenComposer)
        assert (composer.checker is not None) is (confirm == "model")
    written = {"model": {"writes": "yes"}, "answer": {"confirm": "model"}}
    with pytest.raises(BadConfig, match="needs a model of your own"):
        answer_wording(Settings.model_validate(written), parts_with(ScriptedModel([])))
