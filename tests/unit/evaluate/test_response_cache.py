"""What a model said once is not asked of it again, and nothing else is taken for it."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import BadRun
from osler.llm.core.base import Attentive, Likelihood, Message, Sampling
from osler.llm.recording import WrappedScorer, wrap_model
from osler_lab.studies.replies import ResponseCache
from osler_lab.testing.scripted import ScriptedModel, TextOnly

ASKED = [Message("user", "为什么？")]


@pytest.fixture
def replies(tmp_path: Path) -> Iterator[ResponseCache]:
    with closing(ResponseCache(tmp_path / "made" / "replies.sqlite")) as found:
        yield found


def scorer(model: ScriptedModel, replies: ResponseCache) -> WrappedScorer:
    found = wrap_model(model, replies, "one")
    assert isinstance(found, WrappedScorer)
    return found


async def test_a_reply_comes_again_equal_with_its_cost_and_the_model_is_not_asked(
    replies: ResponseCache,
) -> None:
    first = await scorer(ScriptedModel(["一"]), replies).complete(ASKED, Sampling())
    again = await scorer(ScriptedModel([]), replies).complete(ASKED, Sampling())
    assert again == first
    assert again.usage.calls == 1
    assert len(replies) == 1


@pytest.mark.parametrize(
    "other",
    [
        replace(Sampling(), seed=1),
        replace(Sampling(), temperature=0.0),
        replace(Sampling(), max_tokens=7),
        replace(Sampling(), stop=("。",)),
    ],
)
async def test_another_way_to_decode_is_another_request(
    replies: ResponseCache, other: Sampling
) -> None:
    model = scorer(ScriptedModel(["one", "two"]), replies)
    assert (await model.complete(ASKED, Sampling())).text == "one"
    assert (await model.complete(ASKED, other)).text == "two"


async def test_other_weights_under_the_same_name_are_another_model(replies: ResponseCache) -> None:
    for identity in ("one", "two"):
        model = wrap_model(ScriptedModel([identity]), replies, identity)
        assert (await model.complete(ASKED, Sampling())).text == identity


async def test_only_the_texts_that_were_never_scored_are_scored(replies: ResponseCache) -> None:
    class Counting(ScriptedModel):
        async def score(self, context, text):  # type: ignore[no-untyped-def]
            weighed.append(text)
            return await super().score(context, text)

    weighed: list[str] = []
    model = scorer(Counting([], scores={"a": 0.25}), replies)
    before = await model.score("x", "a")
    scored = await model.score_all("x", ["b", "a", "b"])
    assert weighed == ["a", "b"]
    assert scored[1] == before
    assert scored[0] == scored[2]
    await model.score("y", "a")
    assert weighed == ["a", "b", "a"]


def test_what_remembers_can_do_what_the_model_can(replies: ResponseCache) -> None:
    plain = wrap_model(TextOnly(ScriptedModel([])), replies, "one")
    assert not isinstance(plain, Likelihood)
    assert isinstance(scorer(ScriptedModel([]), replies), Likelihood)
    assert not isinstance(scorer(ScriptedModel([]), replies), Attentive)


async def test_two_processes_share_a_file(tmp_path: Path) -> None:
    with (
        closing(ResponseCache(tmp_path / "r")) as one,
        closing(ResponseCache(tmp_path / "r")) as two,
    ):
        await scorer(ScriptedModel(["said"]), one).complete(ASKED, Sampling())
        found = await scorer(ScriptedModel([]), two).complete(ASKED, Sampling())
    assert found.text == "said"


def test_several_may_make_the_file_at_once(tmp_path: Path) -> None:
    start = Barrier(8, timeout=60)

    def made(_: int) -> list[int]:
        counted = []
        for name in range(30):
            start.wait()
            with closing(ResponseCache(tmp_path / str(name))) as replies:
                counted.append(len(replies))
        return counted

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(made, range(8))) == [[0] * 30] * 8


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    text, base = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("these are my notes, and no replies\n" * 40, encoding="utf-8")
    with closing(sqlite3.connect(base)) as db:
        db.execute("CREATE TABLE mine (x)")
    for path in (text, base):
        before = path.read_bytes()
        with pytest.raises(BadRun, match=path.name):
            ResponseCache(path)
        assert path.read_bytes() == before


@given(text=st.text(), seed=st.integers(0, 2**32 - 1))
async def test_any_text_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, seed: int
) -> None:
    path = tmp_path_factory.mktemp("replies") / "r"
    sampling = Sampling(seed=seed)
    with closing(ResponseCache(path)) as replies:
        first = await scorer(ScriptedModel([text]), replies).complete(ASKED, sampling)
        again = await scorer(ScriptedModel([]), replies).complete(ASKED, sampling)
    assert first == again
