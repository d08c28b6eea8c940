"""Follow-up questions as every interface searches for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from osler.answer.follow_up import Standalone
from osler.runs.threads import make_standalone, standalone_of
from osler.settings import Settings


def test_a_follow_up_is_made_to_stand_alone_by_rule(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    made = asyncio.run(make_standalone(settings, "And in pregnancy?", ["How is cystitis treated?"]))
    assert made == Standalone("How is cystitis treated: in pregnancy?", "rule")


def test_of_a_conversation_each_question_rests_on_those_before_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    questions = ["How is lithium monitored?", "When is it stopped?", "And in pregnancy?"]
    made = asyncio.run(standalone_of(settings, questions))
    assert made == Standalone("When is lithium stopped: in pregnancy?", "rule")
