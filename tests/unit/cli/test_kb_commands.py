"""`osler kb …` on a real knowledge base of two small files; only the encoder is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from osler.build.knowledge import open_or_create
from osler.kb.base import BuildResult, KnowledgeBase, Progress
from osler.kb.check import KnowledgeBaseInfo, SourceInfo
from osler.kb.encoders.base import Kind
from osler.kb.ingest.files import IngestResult
from osler.settings import Settings
from osler.types import Hit, Language, Passage
from osler_lab.testing.scripted import HashingEncoder

TEXTS = {
    "anaphylaxis.md": "# Anaphylaxis\n\nGive adrenaline into the thigh at once.\n",
    "anaemia.md": "# 贫血\n\n缺铁性贫血补充铁剂。\n",
}


class EnglishOnly(HashingEncoder):
    languages: frozenset[Language] = frozenset({"en"})


@pytest.fixture
def books(folder: Path) -> Path:
    books = folder / "books"
    books.mkdir()
    for name, text in TEXTS.items():
        (books / name).write_text(text, encoding="utf-8")
    return books


@pytest.fixture
def kb(osler: Any, books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A knowledge base that is searched by words alone."""
    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: None)
    assert osler("kb", "add", str(books), "--source", "book").exit_code == 0
    assert osler("kb", "build").exit_code == 0


def test_kb_add_counts_what_was_added(osler: Any, books: Path) -> None:
    first = osler("kb", "add", str(books), "--source", "book")
    assert first.exit_code == 0
    assert " ".join(first.stdout.split("\n")[0].split()) == "read 2 files, 0 unchanged"
    assert first.stdout.endswith(
        "1 Chinese passages get no vectors, since the encoder reads English only: they are found by"
        " words alone\n"
        "next: osler kb build\n"
    )
    again = json.loads(osler("kb", "add", str(books), "-s", "book", "--json").stdout)
    assert (again["files"], again["unchanged"]) == (0, 2)


@pytest.mark.parametrize("present", [True, False])
def test_chinese_is_told_to_have_no_vectors_only_without_its_encoder(
    osler: Any, books: Path, monkeypatch: pytest.MonkeyPatch, *, present: bool
) -> None:
    monkeypatch.setattr("osler.build.models.is_present", lambda _: present)
    added = osler("kb", "add", str(books), "--source", "book").stdout
    assert ("get no vectors" in added) is not present


def test_kb_add_says_before_encoding_how_long_that_will_take(
    osler: Any, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[str] = []

    class TimedEncoder(HashingEncoder):
        def encode(self, texts: Sequence[str], *, kind: Kind) -> Any:
            timed.extend(texts)
            return super().encode(texts, kind=kind)

    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: TimedEncoder())
    monkeypatch.setattr("osler.cli.kb.WORTH_TIMING", 1)
    lines = osler("kb", "add", str(books), "--source", "book").stdout.splitlines()
    assert re.fullmatch(
        r"1 passages want a vector, about \d+ s here; by words they are found now", lines[-2]
    )
    assert lines[-1] == "next: osler kb build"
    assert timed, "the estimate is of this machine"


def test_kb_info_says_which_passages_are_found_by_words_alone(
    osler: Any, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: EnglishOnly())
    osler("kb", "add", str(books), "--source", "book")
    built = osler("kb", "build").stdout
    shown = osler("kb", "info").stdout
    told = "1 Chinese passages have no vectors: they are found by words alone"
    assert told in built.replace("\n", " ")
    assert told in shown
    document = json.loads(osler("kb", "info", "--json").stdout)
    assert document["by_words"] == {"zh": 1}


def test_a_search_in_a_language_without_vectors_says_so(
    osler: Any, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("models", "knowledge"):
        monkeypatch.setattr(f"osler.build.{place}.load_encoder", lambda _: EnglishOnly())
    osler("kb", "add", str(books), "--source", "book")
    osler("kb", "build")
    found = osler("kb", "search", "缺铁性贫血")
    assert "补充铁剂" in found.stdout
    assert "只按词语检索：编码器只读英文" in found.stdout
    assert json.loads(osler("kb", "search", "缺铁性贫血", "--json").stdout)["by_words"] is True
    assert json.loads(osler("kb", "search", "adrenaline", "--json").stdout)["by_words"] is False
    assert "words alone" not in osler("kb", "search", "adrenaline").stdout


def test_files_that_could_not_be_read_end_with_6(
    osler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = IngestResult(3, 0, 2, 9, {"no abstract": 2, "no text": 1}, ["b.bin"], ["c.xml: line 3"])
    monkeypatch.setattr(KnowledgeBase, "add", lambda *_, **__: added)
    result = osler("kb", "add", "x", "--source", "book")
    assert result.exit_code == 6
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "read 3 files, 0 unchanged",
        "documents 2",
        "passages 9",
        "dropped no abstract 2, no text 1",
        "no parser knows b.bin",
        "could not be read c.xml: line 3",
        "next: osler kb build",
    ]


def test_options_of_add_reach_the_knowledge_base(
    osler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def add(kb: KnowledgeBase, paths: Iterable[Path], **options: Any) -> IngestResult:
        seen.update(options, paths=list(paths))
        return IngestResult()

    monkeypatch.setattr(KnowledgeBase, "add", add)
    terms = ("--format", "markdown", "--licence", "CC0-1.0", "--trust", "4")
    osler("kb", "add", "a", "b", "-s", "wiki", *terms)
    del seen["progress"]
    assert seen == {
        "paths": [Path("a"), Path("b")],
        "source": "wiki",
        "fmt": "markdown",
        "licence": "CC0-1.0",
        "trust": 4,
        "chunk": "omni",
    }
    osler("kb", "add", "a", "-s", "wiki", "--key", "drug", "--key", "form")
    assert seen["fmt"] == "rows:drug|form"


def test_kb_add_without_a_source_says_which_there_are(osler: Any, books: Path) -> None:
    result = osler("kb", "add", str(books))
    assert result.exit_code == 2
    assert (
        "--source: book, guideline, research, wiki, graph, or a name of your own" in result.stderr
    )


def test_kb_add_with_a_bad_source_name_ends_with_4(osler: Any, books: Path) -> None:
    result = osler("kb", "add", str(books), "--source", "My Books")
    assert result.exit_code == 4
    assert "cannot name a source" in result.stderr


def test_kb_build_counts_what_was_built(osler: Any, kb: None) -> None:
    built = json.loads(osler("kb", "build", "--json").stdout)
    assert built["passages"] == 2
    assert built["snapshot"]


def test_the_sample_is_added_before_it_is_built(
    osler: Any, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_sample(settings: Settings, progress: Progress | None) -> BuildResult:
        with open_or_create(settings) as kb:
            kb.add([books], source="book", illustrative=True)
            return kb.build(None, progress=progress)

    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: None)
    monkeypatch.setattr("osler.build.knowledge.build_sample", build_sample)
    built = osler("kb", "build", "--sample").stdout
    assert built.split()[:4] == ["passages", "2", "encoded", "0"]


@pytest.mark.parametrize(
    "words", [("--workers", "3"), ("--source", "book"), ("--on", "processes", "--source", "book")]
)
def test_an_option_of_a_build_that_would_do_nothing_is_refused(
    osler: Any, words: tuple[str, ...]
) -> None:
    refused = osler("kb", "build", *words)
    assert (refused.exit_code, "it goes with" in refused.stderr) == (2, True)


def test_a_passage_is_shown_with_its_neighbours(osler: Any, kb: None) -> None:
    id = "book:anaphylaxis#0"
    assert "Give adrenaline" in osler("kb", "get", id).stdout
    document = json.loads(osler("kb", "get", id, "--context", "2", "--json").stdout)
    assert document["id"] == id
    assert [passage["id"] for passage in document["context"]] == [id]


def test_a_formula_that_an_answer_cites_is_opened_without_a_knowledge_base(osler: Any) -> None:
    english = json.loads(osler("kb", "get", "formulas:cockcroft-gault#0", "--json").stdout)
    assert "140" in english["text"]
    chinese = json.loads(osler("kb", "get", "formulas:cockcroft-gault#1", "--json").stdout)
    assert chinese["language"] == "zh"
    assert osler("kb", "get", "formulas:cockcroft-gault#2").exit_code != 0


def test_an_unknown_passage_ends_with_2_and_names_the_nearest(osler: Any, kb: None) -> None:
    result = osler("kb", "get", "book:anaphylaxis#9")
    assert result.exit_code == 2
    assert "book:anaphylaxis#0" in result.stderr


def test_kb_info_tells_the_contents_by_source(osler: Any, kb: None) -> None:
    shown = osler("kb", "info").stdout
    row = next(line for line in shown.splitlines() if line.startswith("book "))
    assert row.split()[:3] == ["book", "2", "2"]
    document = json.loads(osler("kb", "info", "--json").stdout)
    assert document["passages"] == 2
    assert document["sources"][0]["words"].keys() == {"en", "zh"}


def test_what_was_dropped_is_told_with_its_reason(
    osler: Any, kb: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SourceInfo("book", 1, 3, 1200, {"en": 141.2}, ("CC0-1.0", ""), 3, {"no abstract": 12})
    info = KnowledgeBaseInfo(Path("kb"), (source,), "", 0, "", False, 7)
    monkeypatch.setattr(KnowledgeBase, "info", lambda _: info)
    shown = [" ".join(line.split()) for line in osler("kb", "info").stdout.splitlines()]
    for line in (
        "encoder none: search by words alone",
        "pending 7",
        "source files documents passages words licences illustrative drops",
        "book 1 3 1,200 en 141 CC0-1.0, 3 no abstract 12",
        "next: osler kb build",
    ):
        assert line in shown


def test_kb_info_of_an_empty_knowledge_base_names_the_next_command(
    osler: Any, tmp_path: Path
) -> None:
    KnowledgeBase.create(tmp_path / "osler" / "kb").close()
    assert "it is empty; next: osler kb add" in osler("kb", "info").stdout


def test_kb_info_without_a_knowledge_base_ends_with_4(osler: Any) -> None:
    result = osler("kb", "info")
    assert result.exit_code == 4
    assert "there is no knowledge base" in result.stderr


def test_kb_verify_passes_a_whole_knowledge_base(osler: Any, kb: None) -> None:
    assert osler("kb", "info", "--verify").stdout == "the knowledge base is whole\n"
    assert json.loads(osler("kb", "info", "--verify", "--json").stdout) == {
        "problems": [],
        "ok": True,
    }


def test_kb_verify_lists_each_problem_and_ends_with_1(
    osler: Any, kb: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnowledgeBase, "verify", lambda _: ["a is bad", "b is worse"])
    result = osler("kb", "info", "--verify")
    assert result.exit_code == 1
    assert result.stdout == "a is bad\nb is worse\n"


def test_kb_remove_takes_a_source_out(osler: Any, kb: None) -> None:
    result = osler("kb", "rm", "--source", "book", "--document", "anaemia")
    assert result.stdout == "passages taken out: 1; next: osler kb build\n"
    assert json.loads(osler("kb", "rm", "-s", "book", "--json").stdout) == {"passages": 1}


def test_kb_search_finds_as_many_hits_as_set(
    osler: Any, monkeypatch: pytest.MonkeyPatch, passage: Passage
) -> None:
    seen: list[tuple[str, int, tuple[str, ...]]] = []

    async def search(settings: Settings, query: str, *, k: int, sources: Any) -> list[Hit]:
        seen.append((query, k, settings.kb.sources))
        return [Hit(passage, 0.5, 1, query, passage.source)]

    monkeypatch.setattr("osler.build.knowledge.search_passages", search)
    assert "1. 0.500 guideline · Anaphylaxis" in osler("kb", "search", "shock").stdout
    document = json.loads(
        osler("kb", "search", "休克", "--k", "3", "-s", "book", "-s", "wiki", "--json").stdout
    )
    assert document["hits"][0]["passage"]["id"] == passage.id
    assert seen == [("shock", 10, ()), ("休克", 3, ("book", "wiki"))]


def test_kb_search_without_hits_ends_with_1(osler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def search(*_: Any, **__: Any) -> list[Hit]:
        return []

    monkeypatch.setattr("osler.build.knowledge.search_passages", search)
    result = osler("kb", "search", "shock")
    assert (result.exit_code, result.stdout) == (1, "nothing found\n")


def test_a_broken_pdf_is_named_so_and_an_update_ends_with_6_only_where_that_is_new(
    osler: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.md").write_text("# Gout\n\nColchicine is given first.\n", encoding="utf-8")
    (folder / "scan.pdf").write_bytes(b"nothing of a PDF")
    added = osler("kb", "add", str(folder), "--source", "book")
    assert added.exit_code == 6
    assert "is not a PDF that can be opened" in " ".join(added.stdout.split())
    assert osler("kb", "update").exit_code == 0
    (folder / "other.pdf").write_bytes(b"nothing either")
    assert osler("kb", "update").exit_code == 6
    assert osler("kb", "update").exit_code == 0
