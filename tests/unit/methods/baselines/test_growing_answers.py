"""Methods whose answer grows: FL-RAG, FS-RAG, FLARE and DRAGIN, after their papers' examples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from osler.build.strategies import build_solver
from osler.errors import CapabilityMissing
from osler.llm.core.base import Attended, Message
from osler.settings import Settings
from osler.trace import Noted
from osler.types import Grounding, Halt, Passage, Question, Usage
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, tokens_of

from .conftest import Hiding, Play, Unsure, cited, notes, parts_of, passage

EINSTEIN = Question("einstein", "Give me a brief introduction to Einstein.")
OFFICE = passage("office", "In 1903 Einstein secured a job at the Swiss Patent Office.", "Patents")
BORN = passage("born", "Albert Einstein was born in Ulm in 1879.", "Einstein")

BIDEN = Question("biden", "Generate a summary about Joe Biden.")
DEGREE = passage(
    "degree", "Joe Biden graduated from the University of Delaware with a degree in history."
)


async def test_fixed_length_asks_with_the_last_window(play: Play) -> None:
    model = ScriptedModel(
        ["Albert Einstein was born in Ulm in", " 1879. So the answer is: a physicist."], cut={0}
    )
    played = await play(
        {"kind": "fl-rag", "window": 8}, EINSTEIN, model, {"Ulm": [BORN], "": [OFFICE]}
    )
    assert played.queries == [EINSTEIN.text, "Albert Einstein was born in Ulm in"]
    assert [sampling.max_tokens for sampling in model.samplings] == [8, 8]
    assert played.asked[1] == "Albert Einstein was born in Ulm in"
    assert "Ulm in 1879" in model.seen[1][0].content, "the new passage stands before the text"
    assert "Patent Office" not in model.seen[1][0].content, "and the last ones are gone"
    assert played.solution.answer.text.startswith("Albert Einstein was born in Ulm in 1879. [1]")
    assert played.solution.halt is Halt.CONVERGED


async def test_a_sentence_is_the_query_of_the_next(play: Play) -> None:
    model = ScriptedModel(
        [
            "Albert Einstein was born in Ulm in 1879. This is thrown away.",
            "In 1903 Einstein secured a job at the Swiss Patent Office.",
            "So the answer is: a physicist.",
        ]
    )
    played = await play({"kind": "fs-rag"}, EINSTEIN, model, {"Ulm": [OFFICE], "": [BORN]})
    assert played.queries == [
        EINSTEIN.text,
        "Albert Einstein was born in Ulm in 1879.",
        "In 1903 Einstein secured a job at the Swiss Patent Office.",
    ]
    assert "thrown away" not in played.solution.answer.text
    assert len(played.solution.answer.citations) == 2


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("masked", "Joe Biden attended the, where he earned."),
        (
            "direct",
            "Joe Biden attended the University of Pennsylvania, where he earned a law degree.",
        ),
    ],
)
async def test_flare_searches_for_what_it_was_unsure_of(query: str, asked: str, play: Play) -> None:
    """Figure 1 of the paper: the unsure sentence, and the one written anew."""
    unsure = "Joe Biden attended the University of Pennsylvania, where he earned a law degree."
    low = dict.fromkeys(["University", "of", "a", "law", "degree"], 0.2)
    model = Unsure(
        [
            "Joe Biden is the 46th president.",
            unsure,
            "Joe Biden graduated from the University of Delaware with a degree in history.",
            "So the answer is: Joe Biden is the president.",
        ],
        probability=0.9,
        low=low | {"Pennsylvania": 0.05},
    )
    played = await play(
        {"kind": "flare", "query": query}, BIDEN, model, {"attended": [DEGREE], "": [BORN]}
    )
    assert played.queries == [BIDEN.text, asked]
    assert "Pennsylvania" not in played.solution.answer.text
    assert "University of Delaware" in played.solution.answer.text
    assert "# External knowledge" in model.seen[0][0].content
    assert "# External knowledge" not in model.seen[1][0].content, "§3.2.1: without passages"
    assert DEGREE.text in model.seen[2][0].content, "written anew with what was found"
    assert BORN.text not in model.seen[2][0].content
    assert any(
        "least probability 0.05" in e.text for e in played.run.events if isinstance(e, Noted)
    )


async def test_without_log_probabilities_each_sentence_is_searched_for_and_told(play: Play) -> None:
    script = ScriptedModel(["Born in Ulm.", "Albert Einstein was born in Ulm in 1879."])
    played = await play({"kind": "flare", "rounds": 1}, EINSTEIN, Hiding(script), {"": [BORN]})
    assert played.queries == [EINSTEIN.text, "Born in Ulm."]
    assert "unsure (no log-probabilities were told): Born in Ulm." in notes(played)
    assert [hit.passage.id for hit in played.solution.answer.evidence] == [BORN.id]


@pytest.mark.parametrize("query", ["masked", "direct"])
async def test_where_the_text_ends_flare_neither_searches_nor_asks_again(
    query: str, play: Play
) -> None:
    model = Unsure(["Joe Biden is the 46th president.", " \n"], probability=0.9)
    played = await play({"kind": "flare", "query": query}, BIDEN, model, {"": [BORN]})
    assert played.queries == [BIDEN.text]
    assert notes(played) == []
    assert played.solution.answer.text.startswith("Joe Biden is the 46th president.")
    assert played.solution.usage.calls == 2


async def test_entropy_that_is_not_told_triggers_nothing_and_is_noted(play: Play) -> None:
    script = ScriptedModel(["So the answer is: physics."])
    played = await play({"kind": "dragin-entropy"}, EINSTEIN, Hiding(script), {"": [BORN]})
    assert played.queries == []
    assert notes(played) == ["no log-probabilities were told: nothing triggers a search"]
    assert played.solution.answer.grounding is Grounding.UNGROUNDED


async def test_a_sure_sentence_stands_without_a_search(play: Play) -> None:
    model = Unsure(["So the answer is: Joe Biden."], probability=0.81)
    played = await play({"kind": "flare"}, BIDEN, model, {"": [BORN]})
    assert played.queries == [BIDEN.text]


@dataclass
class Looking(ScriptedModel):
    """A script with an attention: each text's unsure token, and what it looks at."""

    unsure: str = ""
    looks_at: tuple[str, ...] = ()
    contexts: list[object] = field(default_factory=list)

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        self.contexts.append(context)
        tokens = tokens_of(text, 0.5)
        words = [token.text.strip() for token in tokens]
        entropies = tuple(2.0 if word == self.unsure else 0.1 for word in words)
        weights = tuple(
            tuple(
                0.5 if self.unsure in (words[i], words[j]) and self._seen(words, i, j) else 0.01
                for j in range(i)
            )
            for i in range(len(words))
        )
        return Attended(tokens, entropies, weights, Usage(calls=1, scored_tokens=len(tokens)))

    def _seen(self, words: list[str], i: int, j: int) -> bool:
        return words[j] == self.unsure or words[j] in self.looks_at


async def test_dragin_asks_with_the_words_that_the_unsure_one_looks_at(play: Play) -> None:
    """The paper's figure: "… in 1903 he secured a job at" a university, or the patent office."""
    model = Looking(
        [
            "Einstein was born in Ulm. In 1903 he secured a job at university of Bern there.",
            " the Swiss Patent Office. And so on.",
            "So the answer is: a physicist.",
        ],
        unsure="university",
        looks_at=("Einstein", "1903", "secured", "job"),
    )
    played = await play(
        {"kind": "dragin", "words": 4},
        EINSTEIN,
        model,
        {"secured": [OFFICE], "": [BORN]},
    )
    # Once of the question and once of the text.
    assert played.queries == ["Einstein Einstein 1903 secured"]
    assert played.asked[1].endswith("In 1903 he secured a job at")
    assert "Patent Office" in model.seen[1][0].content
    assert "university" not in played.solution.answer.text
    assert played.solution.answer.text.startswith(
        "Einstein was born in Ulm. In 1903 he secured a job at the Swiss Patent Office."
    )
    assert played.solution.answer.grounding is Grounding.PARTLY


async def test_dragin_without_attention_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path, "strategy": {"kind": "dragin"}})
    parts = parts_of(ScriptedModel([]), ScriptedRetriever({}))
    with pytest.raises(CapabilityMissing, match="attention") as caught:
        build_solver(settings, parts)
    assert "dragin-entropy" in caught.value.fix


async def test_entropy_alone_triggers_on_an_unsure_word(play: Play) -> None:
    """0.5 and 0.5 left over are 0.69 nats; 0.99 and 0.01 are 0.06."""
    model = Unsure(
        ["Einstein worked at Bern.", "the Swiss Patent Office.", "So the answer is: physics."],
        probability=0.99,
        low={"Bern": 0.5},
    )
    played = await play(
        {"kind": "dragin-entropy", "threshold": 0.6}, EINSTEIN, model, {"": [OFFICE]}
    )
    assert played.queries == ["give brief introduction einstein worked bern"]
    answer = played.solution.answer
    assert "worked at the Swiss Patent Office." in answer.text
    assert cited(answer) == {OFFICE.id}


async def test_chinese_sentences_are_joined_without_a_space(play: Play) -> None:
    question = Question("铁", "缺铁性贫血如何治疗？", language="zh")
    iron = Passage("book:铁#0", "口服铁剂治疗缺铁性贫血。", "book", "贫血", language="zh")
    model = ScriptedModel(["口服铁剂治疗缺铁性贫血。此句不要。", "所以答案是铁剂。"])
    played = await play({"kind": "fs-rag"}, question, model, {"": [iron]})
    assert played.queries == [question.text, "口服铁剂治疗缺铁性贫血。"]
    assert played.solution.answer.text == "口服铁剂治疗缺铁性贫血。[1] 所以答案是铁剂。"
    assert played.run.usage.searches == 2
