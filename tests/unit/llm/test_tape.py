"""A tape gives back what was recorded, and never invents."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from osler.errors import BadRun, ModelError, OslerError, SourceUnavailable, TapeMiss
from osler.llm.core.base import (
    Completion,
    CutShort,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
    Scored,
    score_all,
)
from osler.llm.core.grammar import Grammar, alt
from osler.llm.recording import (
    TapePlayer,
    WrappedRelevance,
    WrappedRetriever,
    WrappedScorer,
    replay_model,
    wrap_model,
)
from osler.llm.recording.tape import ModelAbilities, Tape
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.online.address_guard import AddressRefused
from osler.types import Hit, Passage, Relevance, Retriever
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, TextOnly

ASKED = [Message("user", "为什么？")]
PASSAGE = Passage("book:a#0", "因为缺铁。", "book", "贫血", language="zh")


async def recorded(path: Path) -> tuple[Tape, object]:
    tape = Tape(
        {"scripted": ModelAbilities()}, date="2026-11-21T10:00:00+00:00", prompts=("a/b@12345678",)
    )
    model = wrap_model(ScriptedModel(["一", "二"]), tape)
    assert isinstance(model, WrappedScorer)
    replies = (
        await model.complete(ASKED, Sampling()),
        await model.complete(ASKED, Sampling()),
        await model.score("贫血", "缺铁"),
        await model.score(ASKED, "缺铁"),
        await WrappedRetriever("rag", ScriptedRetriever({"": [PASSAGE]}), tape).search("铁", k=3),
        await WrappedRelevance("words", OverlapRelevance(), tape).relevance(
            "缺铁", ["缺铁性贫血", "茶"]
        ),
    )
    return written(tape, path), replies


def written(tape: Tape, path: Path) -> Tape:
    path.write_text("".join(f"{line}\n" for line in tape.to_lines()), encoding="utf-8")
    return Tape.read(path)


async def test_everything_comes_back_equal_from_the_file(tmp_path: Path) -> None:
    tape, replies = await recorded(tmp_path / "tape.jsonl")
    player = TapePlayer(tape)
    model = replay_model(player, "scripted")
    assert isinstance(model, WrappedScorer)
    assert model.name == "scripted"
    again = (
        await model.complete(ASKED, Sampling()),
        await model.complete(ASKED, Sampling()),
        await model.score("贫血", "缺铁"),
        await model.score(ASKED, "缺铁"),
        await WrappedRetriever("rag", None, player).search("铁", k=3),
        await WrappedRelevance("words", None, player).relevance("缺铁", ["缺铁性贫血", "茶"]),
    )
    assert again == replies


async def test_a_text_may_hold_line_ends_of_unicode(tmp_path: Path) -> None:
    tape = Tape({"scripted": ModelAbilities()})
    await wrap_model(ScriptedModel(["一\u2028二\x85三"]), tape).complete(ASKED, Sampling())
    assert written(tape, tmp_path / "tape.jsonl").entries == tape.entries


async def test_tape_miss_shows_the_nearest_recorded_call(tmp_path: Path) -> None:
    tape, _ = await recorded(tmp_path / "tape.jsonl")
    asked = [Message("system", "Be brief."), Message("user", "为何？")]
    with pytest.raises(TapeMiss, match="this complete was never recorded: user: 为何？") as caught:
        await replay_model(TapePlayer(tape), "scripted").complete(asked, Sampling())
    shown = caught.value.detail.splitlines()
    assert {"-user: 为什么？", "+system: Be brief.", "+user: 为何？"} <= set(shown)


async def test_a_miss_of_another_kind_is_compared_with_its_own_kind(tmp_path: Path) -> None:
    tape, _ = await recorded(tmp_path / "tape.jsonl")
    with pytest.raises(TapeMiss, match="this search was never recorded") as caught:
        await WrappedRetriever("rag", None, TapePlayer(tape)).search("铜", k=3)
    assert {"-铁", "+铜"} <= set(caught.value.detail.splitlines())


async def test_an_empty_tape_has_nothing_to_compare_with() -> None:
    with pytest.raises(TapeMiss) as caught:
        await replay_model(TapePlayer(Tape({"m": ModelAbilities()})), "m").complete(
            ASKED, Sampling()
        )
    assert caught.value.detail == ""


async def test_tape_replays_a_cancelled_call_as_cancelled(tmp_path: Path) -> None:
    class Slow(ScriptedModel):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    tape = Tape({"scripted": ModelAbilities()})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await wrap_model(Slow([]), tape).complete(ASKED, Sampling())
    again = written(tape, tmp_path / "tape.jsonl")
    assert again.entries[0].reply is None
    with pytest.raises(CutShort):
        await replay_model(TapePlayer(again), "scripted").complete(ASKED, Sampling())


class Down:
    """Every part of a run, and each out of order; what a search says is a kind of its own."""

    name = "scripted"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        raise ModelError("no memory", fix="buy some")

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        raise ModelError("no memory")

    async def search(self, query: str, *, k: int) -> list[Hit]:
        raise AddressRefused("no way to 192.0.2.1", fix="ask another")

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        raise SourceUnavailable("the reranker sleeps")


async def failures(
    model: LanguageModel, retriever: Retriever, scorer: Relevance
) -> list[tuple[type[OslerError], str, str]]:
    assert isinstance(model, Likelihood)
    calls = (
        lambda: model.complete(ASKED, Sampling()),
        lambda: score_all(model, ASKED, ["铁", "茶"]),
        lambda: retriever.search("铁", k=3),
        lambda: scorer.relevance("铁", ["茶"]),
    )
    told = []
    for call in calls:
        with pytest.raises(OslerError) as caught:
            await call()
        told.append((type(caught.value), caught.value.message, caught.value.fix))
    return told


async def test_tape_replays_a_failure_with_its_message(tmp_path: Path) -> None:
    tape, down = Tape({"scripted": ModelAbilities()}), Down()
    first = await failures(
        wrap_model(down, tape),
        WrappedRetriever("rag", down, tape),
        WrappedRelevance("words", down, tape),
    )
    player = TapePlayer(written(tape, tmp_path / "tape.jsonl"))
    again = await failures(
        replay_model(player, "scripted"),
        WrappedRetriever("rag", None, player),
        WrappedRelevance("words", None, player),
    )
    assert first[2][0] is AddressRefused
    assert again[2] == (SourceUnavailable, "no way to 192.0.2.1", "ask another")
    assert [told[1:] for told in again] == [told[1:] for told in first]
    assert [told[0] for told in again] == [ModelError, ModelError, *[SourceUnavailable] * 2]


async def test_a_failure_of_a_kind_that_is_not_known_is_named(tmp_path: Path) -> None:
    tape = Tape()
    with pytest.raises(SourceUnavailable):
        await WrappedRetriever("rag", Down(), tape).search("铁", k=3)
    written(tape, path := tmp_path / "tape.jsonl")
    for other in ("Earthquake", "annotations", "ClassVar"):
        text = "".join(f"{line}\n" for line in tape.to_lines())
        path.write_text(text.replace("SourceUnavailable", other), encoding="utf-8")
        with pytest.raises(BadRun, match=other):
            await WrappedRetriever("rag", None, TapePlayer(Tape.read(path))).search("铁", k=3)


async def test_a_reply_with_a_line_end_of_unicode_is_read_back(tmp_path: Path) -> None:
    tape, said = Tape(), "Iron\u2028helps.\x85 Yes.\x0c"

    async def reply() -> Completion:
        return Completion(said)

    await tape.call("complete", ("scripted", (), {}), reply)
    assert written(tape, tmp_path / "tape.jsonl").entries[0].reply["text"] == said


async def test_tape_is_human_readable_json_lines(tmp_path: Path) -> None:
    await recorded(tmp_path / "tape.jsonl")
    head, first, *rest = map(json.loads, (tmp_path / "tape.jsonl").read_text("utf-8").splitlines())
    assert head == {
        "tape": 3,
        "made": "recorded",
        "date": "2026-11-21T10:00:00+00:00",
        "models": {"scripted": {"scores": True, "constrains": True, "attends": False}},
        "prompts": ["a/b@12345678"],
    }
    assert first["kind"] == "complete"
    assert first["asked"][:2] == ["scripted", [{"role": "user", "content": "为什么？"}]]
    assert first["reply"]["text"] == "一"
    assert rest[-1]["asked"] == ["words", "缺铁"]


async def test_a_call_is_given_back_once(tmp_path: Path) -> None:
    tape, _ = await recorded(tmp_path / "tape.jsonl")
    model = replay_model(TapePlayer(tape), "scripted")
    assert isinstance(model, WrappedScorer)
    await model.score("贫血", "缺铁")
    with pytest.raises(TapeMiss):
        await model.score("贫血", "缺铁")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "nonsense",
        '{"tape":1,"model":"m"}',
        '{"tape":4}',
        '{"tape":2,"made":"recorded","date":"","models":{"m":{"flies":1}},"prompts":[]}',
        '{"tape":2,"made":"recorded","date":"","models":{},"prompts":[]}\n{"kind":1}',
    ],
)
def test_a_file_that_is_no_tape_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRun, match=r"tape\.jsonl"):
        Tape.read(path)


async def test_a_model_that_cannot_score_is_recorded_and_replayed_as_one(tmp_path: Path) -> None:
    tape = Tape({"scripted": ModelAbilities(scores=False, constrains=False)})
    model = wrap_model(TextOnly(ScriptedModel(["一"])), tape)
    assert not isinstance(model, Likelihood)
    await model.complete(ASKED, Sampling())
    again = written(tape, tmp_path / "tape.jsonl")
    assert again.models["scripted"].constrains is False
    played = replay_model(TapePlayer(again), "scripted")
    assert not isinstance(played, Likelihood)
    assert (await played.complete(ASKED, Sampling())).text == "一"


OLD = (
    '{"tape": 1, "model": "scripted", "made": "recorded", "scores": true, "constrains": true}\n'
    '{"kind":"complete","key":"KEY","asked":"…","reply":{"text":"一","tokens":[],'
    '"finish":"stop","usage":{"calls":1,"prompt_tokens":0,"completion_tokens":1,'
    '"cached_tokens":0,"scored_tokens":0,"searches":0,"seconds":0.0}}}\n'
)
"""As the version before grammars became values wrote it, with the keys it made."""


@pytest.mark.parametrize(
    ("grammar", "key"),
    [
        (None, "f009b1b6690d480ec64906a13f7cb3cd73479eb9bf86b47fa0d6943184ce7a95"),
        (
            Grammar("yes-no", alt("yes", "no")),
            "b99d118992a49a6e064bf2785867c6cd8801f408e25e8809ac99281c5e1b7fab",
        ),
    ],
)
async def test_tape_of_an_older_version_still_plays(
    tmp_path: Path, grammar: Grammar | None, key: str
) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_text(OLD.replace("KEY", key), encoding="utf-8")
    model = replay_model(TapePlayer(Tape.read(path)), "scripted")
    reply = await model.complete(ASKED, Sampling(grammar=grammar))
    assert (reply.text, reply.thinking) == ("一", "")


def test_a_tape_that_tells_of_adapters_still_opens(tmp_path: Path) -> None:
    told = {"scores": True, "constrains": True, "attends": False, "adapters": ["omni/plan"]}
    head = {"tape": 3, "made": "recorded", "date": "", "models": {"m": told}, "prompts": []}
    path = tmp_path / "tape.jsonl"
    path.write_text(json.dumps(head), encoding="utf-8")
    assert Tape.read(path).models == {"m": ModelAbilities()}


async def test_another_grammar_than_the_recorded_one_is_a_miss(tmp_path: Path) -> None:
    tape = Tape({"scripted": ModelAbilities()})
    held = Sampling(grammar=Grammar("x", alt("a", "b")))
    await wrap_model(ScriptedModel(["a"]), tape).complete(ASKED, held)
    model = replay_model(TapePlayer(written(tape, tmp_path / "tape.jsonl")), "scripted")
    long = Grammar("x", alt(*(f"{i} is another word" for i in range(99))))
    with pytest.raises(TapeMiss, match="为什么") as caught:
        await model.complete(ASKED, Sampling(grammar=long))
    assert '-grammar = root ::= "a" | "b"' in caught.value.detail
    assert '+grammar = root ::= "0 is another word"' in caught.value.detail


async def test_a_batch_is_replayed_text_by_text(tmp_path: Path) -> None:
    tape = Tape({"scripted": ModelAbilities()})
    model = wrap_model(ScriptedModel([]), tape)
    assert isinstance(model, Likelihood)
    batch = await score_all(model, ASKED, ["缺铁", "茶"])
    again = replay_model(TapePlayer(written(tape, tmp_path / "tape.jsonl")), "scripted")
    assert isinstance(again, Likelihood)
    assert await again.score(ASKED, "茶") == batch[1]
    assert await score_all(again, ASKED, ["缺铁"]) == batch[:1]
