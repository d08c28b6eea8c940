"""What a client of the OpenAI interface reads of evidence that is out of date."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from osler.answer.cautions import find_cautions
from osler.types import Answer, Evidence, Halt, Hit, Language, Passage, Solution, Statement
from osler_serve.chat import ChatAnswer


def talk(language: Language, text: str, *titles: str) -> ChatAnswer:
    hits = [
        Hit(Passage(f"book:{n}#0", text, "book", title, language=language), 1.0, n, "q", "book")
        for n, title in enumerate(titles, 1)
    ]
    quote = Evidence(hits[0], 0, len(text))
    answer = Answer((Statement(text, (1,)),), (quote,), language=language)
    found = find_cautions(answer, hits)
    answer = Answer(answer.statements, answer.evidence, language=language, cautions=found)
    live = SimpleNamespace(solution=Solution(answer, Halt.CONVERGED, "w"))
    return ChatAnswer(cast(Any, None), cast(Any, live), cast(Any, None), "http://x", inline=False)


def test_cautions_stand_after_the_answer_so_that_the_places_of_citations_stay() -> None:
    ours = talk(
        "en",
        "Samplosis is treated.",
        "Handbook of Samplosis, 2nd edition",
        "Handbook of Samplosis, 3rd edition",
    )
    answer, told = ours.join_text().split("\n\n")
    assert answer == "Samplosis is treated. [1]"
    assert told.startswith("Of the evidence:\n- ")
    assert "has a later issue among what was found: Handbook of Samplosis, 3rd edition" in told


def test_cautions_are_told_in_chinese_and_absent_where_there_are_none() -> None:
    told = talk("zh", "样本病推荐使用例素。", "样本病学 第7版", "样本病学 第8版").join_text()
    assert "关于证据：" in told
    assert "有更新的版本：样本病学 第8版" in told
    assert "\n" not in talk("zh", "样本病推荐使用例素。", "样本病学 第7版").join_text()
