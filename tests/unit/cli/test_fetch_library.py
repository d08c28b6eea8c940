"""`osler kb fetch medical-library`: a plan before anything, then all of it in one command."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from osler.cli.library import plan_library
from osler_lab.testing.scripted import HashingEncoder

ARTICLES = "<PubmedArticleSet>{}{}</PubmedArticleSet>".format(
    *(
        f"<PubmedArticle><MedlineCitation><PMID Version='1'>{pmid}</PMID><Article>"
        "<ArticleTitle>Quinine</ArticleTitle><Abstract><AbstractText>"
        f"Quinine treats malaria in {pmid} days."
        "</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>"
        for pmid in (7, 8)
    )
)
NOTICES = (
    "RetractionNature,Reason,RetractionDate,OriginalPaperDOI,OriginalPaperPubMedID\n"
    "Retraction,Data,7/14/2019 0:00,,8\n"
)


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A server on loopback with a small file for each recipe of the library."""
    root = tmp_path / "mirror"
    body = gzip.compress(ARTICLES.encode())
    name = "pubmed26n0001.xml.gz"
    files = {
        f"pubmed-baseline/baseline/{name}": body,
        f"pubmed-baseline/baseline/{name}.md5": hashlib.md5(body, usedforsecurity=False)
        .hexdigest()
        .encode(),
        "wikimed/index.html": b'<a href="wikipedia_en_medicine_nopic_2026-01.zim">z</a>',
        "wikimed/wikipedia_en_medicine_nopic_2026-01.zim": b"not a ZIM",
        "medlineplus/xml.html": b'<a href="/xml/mplus_topics_compressed_2026-11-27.zip">z</a>',
        "medlineplus/xml/mplus_topics_compressed_2026-11-27.zip": b"not a zip",
        "retraction-watch/retraction_watch.csv": NOTICES.encode(),
    }
    for part in plan_library():
        if part.name == "openfda-labels":
            for path in part.recipe.files:
                files[f"{part.name}/{path}"] = b"not a zip"
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    handler = partial(SimpleHTTPRequestHandler, directory=str(root))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_plan_says_disk_and_hours_and_fetches_nothing(osler: Any, tmp_path: Path) -> None:
    shown = osler("kb", "fetch", "medical-library")
    assert shown.exit_code == 0
    assert "hours; to begin: osler kb fetch medical-library --accept-licence --yes" in shown.stdout
    parts = json.loads(osler("kb", "fetch", "medical-library", "--json").stdout)
    assert {"medlineplus", "wikimed", "pubmed-baseline", "openfda-labels"} <= {
        part["name"] for part in parts
    }
    assert all(part["disk_bytes"] >= part["fetch_bytes"] > 0 for part in parts)
    assert all(part["licence"] and part["hours"] > 0 for part in parts if part["passages"])
    assert not (tmp_path / "osler" / "fetched").exists()


def test_nothing_is_fetched_before_the_licences_are_accepted(osler: Any, mirror: str) -> None:
    refused = osler("kb", "fetch", "medical-library", "--yes", "--mirror", mirror)
    assert refused.exit_code == 3
    assert "--accept-licence" in refused.stderr


def test_one_command_fetches_adds_marks_what_was_retracted_and_builds(
    osler: Any, mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("models", "knowledge"):
        monkeypatch.setattr(f"osler.build.{module}.load_encoder", lambda _: HashingEncoder())
    words = ("kb", "fetch", "medical-library", "--accept-licence", "--yes", "--mirror", mirror)
    done = osler(*words, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["encoded"] == 2
    found = json.loads(osler("kb", "search", "malaria", "--json").stdout)["hits"]
    assert [hit["passage"]["id"] for hit in found] == ["research:7#0"]
    assert (tmp_path / "osler" / "fetched" / "retraction-watch" / "retraction_watch.csv").exists()
    assert json.loads(osler(*words, "--json").stdout)["encoded"] == 0
