"""DRAGIN writes at most as many tokens ahead as it was told."""

from osler.types import Question
from osler_lab.testing.scripted import ScriptedModel

from .conftest import Hiding, Play, passage

EINSTEIN = Question("einstein", "Give me a brief introduction to Einstein.")
BORN = passage("born", "Albert Einstein was born in Ulm in 1879.", "Einstein")


async def test_dragin_writes_ahead_as_far_as_it_was_told(play: Play) -> None:
    script = ScriptedModel(["So the answer is: a physicist."])
    settings = {"kind": "dragin-entropy", "look_ahead": 12, "threshold": 99}
    await play(settings, EINSTEIN, Hiding(script), {"": [BORN]})
    assert [sampling.max_tokens for sampling in script.samplings] == [12]
