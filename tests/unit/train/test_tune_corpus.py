"""Texts for pre-training: read from files and a knowledge base, held out by their words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_models import tiny_tokenizer

from osler.errors import BadConfig, BadRun, ModelError
from osler.kb.base import KnowledgeBase
from osler_lab.train.tune.corpus import (
    Corpus,
    CorpusSource,
    is_held_out,
    pack_corpus,
    parse_source,
    read_texts,
)

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer()


def lines(file: Path, *texts_: Any) -> Path:
    told = [json.dumps({"text": t} if isinstance(t, str) else t) for t in texts_]
    file.write_text("\n".join(told), encoding="utf-8")
    return file


def some(n: int, word: str = "iron") -> list[str]:
    return [f"{word} number {i} treats anaemia. 口服铁剂{i}。" for i in range(n)]


def test_a_folder_has_the_texts_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt").write_text("One.\r\n\r\n\r\nTwo.", encoding="utf-8")
    (tmp_path / "deep" / "b.md").write_text("# 贫血", encoding="utf-8")
    (tmp_path / "deep" / "empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\0")
    lines(tmp_path / "c.jsonl", "Three.", {"text": "Four.", "more": 4})
    assert list(read_texts(CorpusSource("x", tmp_path))) == [
        "One.\n\nTwo.",
        "Three.",
        "Four.",
        "# 贫血",
    ]


def test_an_export_and_its_knowledge_base_hold_the_same_texts(tmp_path: Path) -> None:
    said = "Iron deficiency is treated with oral iron. " * 40
    (tmp_path / "iron.txt").write_text(f"{said}\n\n{said}", encoding="utf-8")
    (tmp_path / "other.txt").write_text("Adrenaline is given first.", encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "iron.txt", tmp_path / "other.txt"], source="book")
        kb.export(tmp_path / "out.jsonl")
    stored = list(read_texts(parse_source("kb:book", tmp_path / "kb", {})))
    assert len(stored) == 2
    assert stored[0].count("treated with oral iron.") == 80
    assert list(read_texts(CorpusSource("x", tmp_path / "out.jsonl"))) == stored
    with pytest.raises(BadConfig, match="no source 'wiki'; it has: book"):
        list(read_texts(parse_source("w=kb:wiki", tmp_path / "kb", {})))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b'{"text": "a"}\n{"txt": "b"}', r'x\.jsonl:2: no "text"'),
        (b'{"text": "a"}\n{"text', r"x\.jsonl:2: not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, written: bytes, told: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(written)
    with pytest.raises(BadRun, match=told):
        list(read_texts(CorpusSource("x", file)))


def test_no_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="no text files"):
        list(read_texts(CorpusSource("x", tmp_path / "none.txt")))


def test_sources_are_written_on_the_command_line(tmp_path: Path) -> None:
    weights = {"books": 2.0, "guideline": 1.0}
    assert parse_source("books=a/b.txt", tmp_path, weights) == CorpusSource(
        "books", Path("a/b.txt"), None, 2.0
    )
    assert parse_source("kb:guideline", tmp_path, weights) == CorpusSource(
        "guideline", tmp_path, "guideline", 1.0
    )
    assert parse_source("a/b.txt", tmp_path, weights) == CorpusSource("b", Path("a/b.txt"))


@pytest.mark.parametrize(
    ("sources", "held_out", "told"),
    [
        ([("a", None), ("a", None)], 0.1, "names must be distinct"),
        ([], 0.1, "names must be distinct"),
        ([("a", 1.0), ("b", None)], 0.1, "some sources have no weight"),
        ([("a", 0.0)], 0.1, "not above 0"),
        ([("a", None)], 1.0, "cannot be held out"),
    ],
)
def test_a_corpus_that_makes_no_sense_is_refused(
    sources: list[tuple[str, float | None]], held_out: float, told: str
) -> None:
    with pytest.raises(BadConfig, match=told):
        Corpus(tuple(CorpusSource(n, Path(n), None, w) for n, w in sources), held_out)


def test_texts_are_held_out_by_their_words_wherever_they_stand() -> None:
    said = some(2000)
    share = sum(is_held_out(text, 0.2) for text in said) / len(said)
    assert share == pytest.approx(0.2, abs=0.03)
    assert [is_held_out(t, 0.2) for t in said] == [is_held_out(t.upper(), 0.2) for t in said]


def test_what_is_held_out_is_never_learnt_and_doubles_count_once(
    tokenizer: Any, tmp_path: Path
) -> None:
    said = some(40)
    one, other = lines(tmp_path / "a.jsonl", *said), lines(tmp_path / "b.jsonl", *said, "Aspirin.")
    corpus = Corpus((CorpusSource("a", one), CorpusSource("b", other)), 0.25)
    found = pack_corpus(corpus, tokenizer, size=64, seed=0)
    learnt = tokenizer.decode([token for row in found.rows for token in row.tokens[1:]])
    held = tokenizer.decode([token for row in found.held["a"] for token in row.tokens[1:]])
    for text in said:
        assert (text in held, text in learnt) == (
            is_held_out(text, 0.25),
            not is_held_out(text, 0.25),
        )
    assert [(c.texts, c.doubles) for c in found.counts] == [(40, 0), (1, 40)]
    assert set(found.held) == {"a"}


def test_weights_are_shares_of_the_windows(tokenizer: Any, tmp_path: Path) -> None:
    small = CorpusSource("a", lines(tmp_path / "a.jsonl", *some(5)), None, 3.0)
    large = CorpusSource("b", lines(tmp_path / "b.jsonl", *some(60, "zinc")), None, 1.0)
    found = pack_corpus(Corpus((small, large), 0), tokenizer, size=32, seed=0)
    shares = [count.share for count in found.counts]
    assert shares == pytest.approx([0.75, 0.25], abs=1 / len(found.rows))
    assert found.held == {}
    again = pack_corpus(Corpus((small, large), 0), tokenizer, size=32, seed=0)
    assert list(again.rows) == list(found.rows)


def test_a_mark_of_the_template_in_a_text_is_letters(tokenizer: Any, tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", "The end <|im_end|> is near.")
    found = pack_corpus(Corpus((CorpusSource("a", file),), 0), tokenizer, size=64, seed=0)
    ends = [token for row in found.rows for token in row.tokens].count(tokenizer.eos_token_id)
    assert ends == 2


def test_a_corpus_of_which_nothing_is_left_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    one, same = lines(tmp_path / "a.jsonl", "One."), lines(tmp_path / "b.jsonl", "One.")
    with pytest.raises(BadRun, match="nothing is learnt from b: 0 texts held out, 1 that stood"):
        pack_corpus(
            Corpus((CorpusSource("a", one), CorpusSource("b", same)), 0), tokenizer, size=8, seed=0
        )
    with pytest.raises(BadConfig, match="of 1 texts none was held out"):
        pack_corpus(Corpus((CorpusSource("a", one),), 1e-9), tokenizer, size=8, seed=0)
    endless = tiny_tokenizer()
    endless.eos_token = None
    with pytest.raises(ModelError, match="names no end"):
        pack_corpus(Corpus((CorpusSource("a", one),), 0), endless, size=8, seed=0)


def test_a_corpus_is_known_by_its_texts_and_not_by_their_place(tmp_path: Path) -> None:
    digests = []
    for folder, said in (("x", "One."), ("y", "One."), ("z", "Two.")):
        (tmp_path / folder).mkdir()
        file = lines(tmp_path / folder / "a.jsonl", said)
        digests.append(Corpus((CorpusSource("a", file),)).digest())
    assert digests[0] == digests[1] != digests[2]
