"""`answer.options` reaches the composer."""

from osler.answer.extractive import ExtractiveComposer
from osler.answer.options import OptionLetters, OptionTexts
from osler.build import Parts
from osler.build.composers import answer_wording
from osler.build.models import LoadedModel
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, TextOnly


def chooser(options: str, *, scores: bool = True) -> object:
    script = ScriptedModel([])
    model = script if scores else TextOnly(script)
    parts = Parts(
        {"reader": LoadedModel(model)},
        lambda name, sources: ScriptedRetriever({}),
        OverlapRelevance(),
        OverlapRelevance(),
        (),
    )
    settings = Settings.model_validate({"answer": {"options": options}})
    composer = answer_wording(settings, parts)
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
