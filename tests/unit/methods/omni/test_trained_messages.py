"""What a trained planner is asked, in training and in a run."""

from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.single import SYSTEM, planner_messages
from osler.sources.catalogue import BOOK
from osler.types import Question


def test_a_trained_planner_is_asked_the_question_with_its_options_and_sources() -> None:
    question = Question("q", "Which drug is first in anaphylaxis?", ("adrenaline", "aspirin"))
    system, user = planner_messages(question, (SourceDescription(BOOK),))
    assert (system.role, system.content) == ("system", SYSTEM)
    assert user.role == "user"
    for part in (question.text, "adrenaline", "aspirin", BOOK):
        assert part in user.content
