"""PubMed's update files, fetched on a schedule from a server on loopback."""

from __future__ import annotations

import gzip
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.store.access import hold_lock
from osler.kb.upkeep import fetch_on_schedule
from osler.sources.download.job import DownloadJob, LicenceNotAccepted, find_recipe
from osler.sources.download.transfer import RetryPolicy
from osler_lab.testing.scripted import HashingEncoder

ARTICLE = (
    "<PubmedArticle><MedlineCitation><PMID Version='{version}'>{pmid}</PMID><Article>"
    "<ArticleTitle>Gout</ArticleTitle><Abstract><AbstractText>{text}</AbstractText></Abstract>"
    "</Article></MedlineCitation></PubmedArticle>"
)
DELETED = "<DeleteCitation><PMID Version='1'>{pmid}</PMID></DeleteCitation>"


class _Handler(SimpleHTTPRequestHandler):
    broken = ""

    def do_GET(self) -> None:
        """As the server's trouble wants it."""
        match _Handler.broken:
            case "500":
                self.send_error(500)
            case "cut":
                self.send_response(200)
                self.send_header("Content-Length", "100000")
                self.end_headers()
                self.wfile.write(b"<html>half")
                self.close_connection = True
            case "page":
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"<html><title>Log in</title></html>")
            case _:
                super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    (folder := tmp_path / "www" / "updatefiles").mkdir(parents=True)
    return folder


@pytest.fixture
def job(published: Path, tmp_path: Path) -> Iterator[DownloadJob]:
    handler = partial(_Handler, directory=str(published.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        mirror = f"http://127.0.0.1:{server.server_address[1]}/"
        yield DownloadJob(
            find_recipe("pubmed-updates"),
            tmp_path / "fetched",
            mirror,
            environment={},
            patience=RetryPolicy(retries=0, seconds=5.0),
            sleep=lambda seconds: None,
            room=lambda folder: 10**15,
        )
        server.shutdown()
        thread.join()


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        yield made


def _publish(folder: Path, number: int, *records: str, right: bool = True) -> None:
    name = f"pubmed26n{number:04}.xml.gz"
    body = f"<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>".encode()
    data = gzip.compress(body, mtime=0)
    (folder / name).write_bytes(data if right else data[:-20])
    total = hashlib.md5(data, usedforsecurity=False).hexdigest()
    (folder / f"{name}.md5").write_text(f"MD5({name})= {total}\n")


def _article(pmid: int, text: str, version: int = 1) -> str:
    return ARTICLE.format(pmid=pmid, text=text, version=version)


def _found(kb: KnowledgeBase, word: str) -> list[str]:
    return [passage.id for passage, _ in kb.by_words([word], k=5)]


def test_each_look_takes_in_what_is_new_and_what_was_withdrawn_goes(
    published: Path, job: DownloadJob, kb: KnowledgeBase
) -> None:
    _publish(published, 1, _article(11, "Urate crystals form."), _article(12, "Toes swell."))
    looks = fetch_on_schedule(kb, job, HashingEncoder(), iter(int, 1), accepted=True)
    first = next(looks)
    assert (first.files, first.seen.documents, first.seen.encoded) == (1, 2, 2)
    assert not next(looks).seen.is_change
    _publish(published, 2, _article(11, "Sodium urate forms.", 2), DELETED.format(pmid=12))
    assert next(looks).problem == ""
    assert _found(kb, "sodium") == ["research:11#0"]
    assert _found(kb, "crystals") == _found(kb, "toes") == []
    assert kb.verify() == []


def test_a_file_that_breaks_off_waits_and_the_others_are_taken_in(
    published: Path, job: DownloadJob, kb: KnowledgeBase
) -> None:
    _publish(published, 1, _article(11, "Urate crystals form."))
    _publish(published, 2, _article(12, "Toes swell."), right=False)
    looks = fetch_on_schedule(kb, job, None, iter(int, 1), accepted=True)
    broken = next(looks)
    assert "pubmed26n0002" in broken.problem
    assert _found(kb, "crystals") == ["research:11#0"]
    _publish(published, 2, _article(12, "Toes swell."))
    assert next(looks).problem == ""
    assert _found(kb, "toes") == ["research:12#0"]


@pytest.mark.parametrize("trouble", ["500", "cut", "page"])
def test_a_server_in_trouble_takes_nothing_out_and_is_asked_again(
    published: Path,
    job: DownloadJob,
    kb: KnowledgeBase,
    monkeypatch: pytest.MonkeyPatch,
    trouble: str,
) -> None:
    _publish(published, 1, _article(11, "Urate crystals form."))
    looks = fetch_on_schedule(kb, job, None, iter(int, 1), accepted=True)
    next(looks)
    _publish(published, 2, _article(12, "Toes swell."))
    monkeypatch.setattr(_Handler, "broken", trouble)
    for _ in range(2):
        look = next(looks)
        assert look.problem
        assert not look.seen.is_change
        assert _found(kb, "crystals") == ["research:11#0"]
    monkeypatch.setattr(_Handler, "broken", "")
    assert (next(looks).problem, _found(kb, "toes")) == ("", ["research:12#0"])
    assert kb.verify() == []


def test_started_again_it_goes_on_and_a_write_by_another_is_waited_for(
    published: Path, job: DownloadJob, kb: KnowledgeBase
) -> None:
    _publish(published, 1, _article(11, "Urate crystals form."))
    first = fetch_on_schedule(kb, job, None, iter(int, 1), accepted=True)
    with hold_lock(kb.path):
        assert "written" in next(first).problem
    assert next(first).seen.documents == 1
    (again,) = fetch_on_schedule(kb, job, None, range(1), accepted=True)
    assert (again.files, again.seen.is_change) == (1, False)


def test_a_later_edition_under_the_same_name_takes_the_place_of_the_earlier(
    published: Path, job: DownloadJob, kb: KnowledgeBase
) -> None:
    def publish(text: str, second: int) -> None:
        (published / "a.txt").write_text(text)
        os.utime(published / "a.txt", (second, second))

    recipe = job.recipe.model_copy(
        update={"listing": "files", "files": ("updatefiles/a.txt",), "check": "none", "format": ""}
    )
    publish("Urate crystals form.", 10**9)
    looks = fetch_on_schedule(kb, replace(job, recipe=recipe), None, iter(int, 1), accepted=True)
    assert next(looks).seen.documents == 1
    assert not next(looks).seen.is_change
    publish("Sodium urate forms, later.", 10**9 + 60)
    assert next(looks).seen.documents == 1
    assert (len(_found(kb, "sodium")), _found(kb, "crystals")) == (1, [])


def test_a_fetched_file_that_could_not_be_read_is_tried_again(
    published: Path, job: DownloadJob, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    _publish(published, 1, _article(11, "Urate crystals form."))
    looks = fetch_on_schedule(kb, job, None, iter(int, 1), accepted=True)
    with monkeypatch.context() as patch:
        patch.setattr("osler.sources.discover.open_file", Mock(side_effect=PermissionError))
        assert next(looks).seen.failed == 1
    assert next(looks).seen.documents == 1


def test_nothing_is_fetched_before_its_licence_is_accepted(
    job: DownloadJob, kb: KnowledgeBase
) -> None:
    with pytest.raises(LicenceNotAccepted):
        next(fetch_on_schedule(kb, job, None, range(1), accepted=False))


def test_a_disk_that_takes_no_more_loses_nothing_and_is_tried_again(
    published: Path, job: DownloadJob, kb: KnowledgeBase
) -> None:
    resource = pytest.importorskip("resource", reason="limits of files are POSIX")
    _publish(published, 1, _article(11, "Urate crystals form."))
    looks = fetch_on_schedule(kb, job, None, iter(int, 1), accepted=True)
    next(looks)
    _publish(published, 2, _article(12, "Toes swell."), _article(11, "Sodium urate forms.", 2))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))  # any file: EFBIG from the system
    try:
        look = next(looks)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert look.problem
    assert not look.seen.is_change
    assert _found(kb, "crystals") == ["research:11#0"]
    assert next(looks).problem == ""
    assert (_found(kb, "toes"), _found(kb, "crystals")) == (["research:12#0"], [])
    assert kb.verify() == []
