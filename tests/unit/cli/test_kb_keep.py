"""`osler kb update`, `snapshot`, `rollback`, `export`, `dead` on a real knowledge base."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.store import access
from osler.kb.upkeep import Fetched, Seen
from osler.sources.download.job import DownloadJob, load_recipes
from osler_lab.testing.scripted import HashingEncoder

TEXTS = {"gout.md": "# Gout\n\nUrate crystals form.\n", "scurvy.md": "# Scurvy\n\nVitamin C.\n"}


@pytest.fixture
def books(folder: Path) -> Path:
    books = folder / "books"
    books.mkdir()
    for name, text in TEXTS.items():
        (books / name).write_text(text)
    return books


@pytest.fixture
def kb(osler: Any, books: Path) -> Path:
    assert osler("kb", "add", str(books), "--source", "book", "--trust", "5").exit_code == 0
    return Path(json.loads(osler("kb", "info", "--json").stdout)["path"])


def test_kb_update_lists_missing_files_until_they_are_pruned(
    osler: Any, kb: Path, books: Path
) -> None:
    (books / "gout.md").unlink()
    shown = osler("kb", "update").stdout
    assert "0 files, 1 unchanged" in shown
    assert str(books / "gout.md") in "".join(shown.split())
    assert "osler kb update --prune" in shown
    pruned = json.loads(osler("kb", "update", "--prune", "--json").stdout)
    assert (pruned["gone"], pruned["vanished"]) == (1, [])


def test_an_update_that_changed_something_says_what_comes_next(
    osler: Any, kb: Path, books: Path
) -> None:
    assert "next:" not in osler("kb", "update").stdout
    (books / "new.md").write_text("# Anaemia\n\nIron.\n")
    shown = osler("kb", "update", "--source", "book").stdout
    assert "1 file, 2 unchanged" in shown
    assert shown.endswith("next: osler kb build\n")


def test_an_update_of_nothing_ends_with_4(osler: Any, kb: Path) -> None:
    result = osler("kb", "update", "--source", "wiki")
    assert result.exit_code == 4
    assert "nothing was added to wiki" in result.stderr


@pytest.mark.parametrize("words", [("--source", "book"), ("--prune",), ("--retry",)])
def test_marking_what_was_retracted_updates_nothing_and_says_so(
    osler: Any, words: tuple[str, ...]
) -> None:
    refused = osler("kb", "update", "--retractions", "list.csv", *words)
    assert (refused.exit_code, "not go with --retractions" in refused.stderr) == (2, True)


def test_a_snapshot_is_taken_listed_gone_back_to_and_deleted(osler: Any, kb: Path) -> None:
    assert osler("kb", "snapshot").stdout == "no snapshots yet; next: osler kb snapshot NAME\n"
    assert osler("kb", "snapshot", "monday").stdout == "snapshot monday: 2 documents, 2 passages\n"
    osler("kb", "rm", "--source", "book")
    assert (
        osler("kb", "snapshot", "monday", "--restore").stdout
        == "back at monday: 2 documents, 2 passages\n"
    )
    assert "Urate" in osler("kb", "get", "book:gout#0").stdout
    (row,) = [line for line in osler("kb", "snapshot").stdout.splitlines() if "monday" in line]
    assert row.split()[4:6] == ["2", "2"]
    for more in ((), ("--restore",)):
        assert osler("kb", "snapshot", "friday", *more, "--drop", "monday").exit_code == 2
    assert json.loads(osler("kb", "snapshot", "--drop", "monday", "--json").stdout) == []


def test_kb_rollback_restores_a_damaged_knowledge_base(osler: Any, kb: Path) -> None:
    osler("kb", "snapshot", "monday")
    (kb / access.FILE).write_bytes(b"nothing that SQLite knows" * 100)
    assert osler("kb", "info").exit_code == 4
    assert "monday" in osler("kb", "snapshot").stdout
    assert osler("kb", "snapshot", "monday", "--restore").exit_code == 0
    assert osler("kb", "info", "--verify").exit_code == 1, "it is whole, but not built"


def test_an_export_goes_in_again_without_a_source(osler: Any, kb: Path, folder: Path) -> None:
    done = json.loads(osler("kb", "export", str(folder / "all.jsonl"), "--json").stdout)
    assert (done["documents"], done["passages"]) == (2, 2)
    osler("kb", "rm", "--source", "book")
    assert osler("kb", "add", str(folder / "all.jsonl")).exit_code == 0
    provenance = json.loads(osler("kb", "get", "book:gout#0", "--json").stdout)["provenance"]
    assert provenance["trust"] == 5
    assert provenance["origin"].endswith("gout.md")


@pytest.mark.parametrize("rest", ["", "-02", "-02-28", "-02-28T23:59:59"])
def test_kb_export_since_takes_a_year_a_month_a_day_or_a_time(
    osler: Any, kb: Path, folder: Path, rest: str
) -> None:
    target = str(folder / "all.jsonl")
    assert "0 documents" in osler("kb", "export", target, "--since", f"2999{rest}").stdout
    assert "2 documents" in osler("kb", "export", target, "--since", f"2000{rest}").stdout


def test_another_form_of_export_ends_with_3(osler: Any, kb: Path, folder: Path) -> None:
    result = osler("kb", "export", str(folder / "all.parquet"))
    assert result.exit_code == 3
    assert "end it in .jsonl" in result.stderr


def test_without_a_source_only_an_export_can_be_added(osler: Any, books: Path) -> None:
    result = osler("kb", "add", str(books / "gout.md"))
    assert result.exit_code == 2
    assert "give it with --source" in result.stderr


def test_dead_letters_are_listed_with_their_place(osler: Any, kb: Path, books: Path) -> None:
    assert osler("kb", "info", "--dead").stdout.startswith("no dead letters")
    row = '{"id": "a", "title": "A", "content": "Iron.", "contents": ""}'
    (books / "rows.jsonl").write_text(f"{row}\n{{broken\n")
    osler("kb", "update")
    assert "not JSON" in osler("kb", "info", "--dead").stdout
    (letter,) = json.loads(osler("kb", "info", "--dead", "--json").stdout)
    assert (letter["path"], letter["record"]) == (str(books / "rows.jsonl"), 2)
    assert json.loads(osler("kb", "info", "--json").stdout)["sources"][0]["failed"] == 1


def test_kb_no_wait_is_refused_at_once_while_another_writes(osler: Any, kb: Path) -> None:
    with access.hold_lock(kb):
        result = osler("kb", "rm", "--source", "book", "--wait", "0")
    assert result.exit_code == 4
    assert "another process is writing" in result.stderr


def test_a_passage_is_corrected_and_found_without_a_build(osler: Any, kb: Path) -> None:
    done = osler("kb", "correct", "book:gout#0", "--text", "Sodium urate forms.")
    assert done.stdout == "book:gout#0 is corrected\n"
    assert "Sodium urate forms." in osler("kb", "get", "book:gout#0").stdout
    assert osler("kb", "correct", "book:none#0", "--text", "x").exit_code == 2


def test_a_watched_folder_is_taken_in(
    osler: Any, books: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: HashingEncoder())
    looked = osler("kb", "add", str(books), "-s", "own", "--looks", "2", "--watch", "0.1")
    assert looked.exit_code == 0, looked.stderr
    assert looked.stdout == "documents in: 2, out: 0; vectors: 2\n"
    assert "Urate" in osler("kb", "get", "own:gout#0").stdout
    terms = ("--trust", "5", "--licence", "CC0")
    osler("kb", "add", str(books), "-s", "own", "--looks", "1", "--watch", "0.1", *terms)
    assert '"licence": "CC0"' in osler("kb", "get", "own:gout#0", "--json").stdout


def test_a_scheduled_fetch_says_what_came_and_what_broke_off(
    osler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("osler.build.models.load_encoder", lambda _: HashingEncoder())
    told = [Fetched(3, "", Seen(2, 1, 0, 2)), Fetched(3, "", Seen(0, 0, 0, 0))]

    def fetch(kb: object, job: DownloadJob, *_: object, accepted: bool) -> list[Fetched]:
        assert (job.recipe.name, accepted) == ("pubmed-updates", True)
        return [*told, Fetched(3, "the server is away", Seen(0, 0, 0, 0))]

    monkeypatch.setattr("osler.kb.upkeep.fetch_on_schedule", fetch)
    looked = osler("kb", "fetch", "pubmed-updates", "--every", "24", "--accept-licence")
    assert looked.stdout == (
        "3 files; documents in: 2, out: 1\n3 files; documents in: 0, out: 0; the server is away\n"
    )
    assert "pubmed-updates" in osler("kb", "fetch").stdout
    unfit = next(name for name, one in load_recipes().items() if one.use)
    assert osler("kb", "fetch", unfit, "--every", "1").exit_code != 0


def test_an_export_to_a_server_takes_no_filter_and_nothing_that_may_not_be_read(
    osler: Any, kb: Path, books: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[object] = []
    monkeypatch.setattr(KnowledgeBase, "push", lambda *_, **__: pushed.append(1))
    server = ("kb", "export", "http://qdrant.example:6333")
    for more in (("--source", "book"), ("--since", "2030")):
        refused = osler(*server, *more)
        assert (refused.exit_code, "a server is given every source" in refused.stderr) == (2, True)
    assert osler("kb", "export", str(folder / "all.jsonl"), "--rebuild").exit_code == 2
    closed = osler("--set", "access.sources=wiki", *server)
    assert (closed.exit_code, "what may not be read" in closed.stderr) == (3, True)
    private = osler("--set", "access.private=book", *server)
    assert (private.exit_code, "book is private" in private.stderr) == (3, True)
    assert pushed == []
