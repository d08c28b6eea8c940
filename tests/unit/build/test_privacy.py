"""What is private stays on this machine, and with the patients that were named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from served import read_stream, serve_osler, start_run

from osler.build.knowledge import search_passages, searched_sources
from osler.build.privacy import (
    PatientBoundRetriever,
    extraction_scope,
    index_hosts,
    remote_hosts,
    require_trusted,
    require_trusted_hosts,
    shared_cautions,
)
from osler.errors import BadConfig, BadFilter
from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler.types import Hit, Locator, Passage
from osler_lab.testing.scripted import HashingEncoder

AWAY = {"kind": "openai", "url": "https://models.example/v1", "name": "m"}


def settings_with(home: Path, **sections: Any) -> Settings:
    return Settings.model_validate({"home": str(home), **sections})


@pytest.mark.parametrize(
    ("sections", "hosts"),
    [
        ({"model": AWAY}, {"models.example"}),
        ({"model": {**AWAY, "url": "http://127.0.0.1:8000/v1"}}, set()),
        (
            {"model": {**AWAY, "url": "http://localhost.evil.example/v1"}},
            {"localhost.evil.example"},
        ),
        ({"embedder": AWAY}, {"models.example"}),
        ({"reranker": AWAY}, {"models.example"}),
        (
            {"web": {"kind": "searxng", "url": "https://search.example"}},
            {"search.example"},
        ),
        (
            {"strategy": {"kind": "kag-thinker", "search_url": "http://engine.example/s"}},
            {"engine.example"},
        ),
        ({"roles": {"reader": AWAY}}, {"models.example"}),
    ],
)
def test_every_machine_that_would_read_a_passage_is_named(
    tmp_path: Path, sections: dict[str, Any], hosts: set[str]
) -> None:
    settings = settings_with(tmp_path, **sections)
    sources = ("emr", "web")
    assert remote_hosts(settings, sources, ("reader",)) == hosts
    if hosts:
        with pytest.raises(BadConfig, match="is private") as refused:
            require_trusted_hosts(settings, sources, roles=("reader",))
        assert next(iter(hosts)) in refused.value.fix
    require_trusted_hosts(settings, ("guideline", "web"), roles=("reader",))
    allowed = settings_with(tmp_path, **sections, access={"remote": tuple(hosts)})
    require_trusted_hosts(allowed, sources, roles=("reader",))
    for language in ("en", "zh"):
        cautions = shared_cautions(allowed, sources, ("reader",), language)
        assert len(cautions) == bool(hosts)
        assert all(host in caution.text for caution in cautions for host in hosts)
    assert shared_cautions(allowed, ("guideline", "web"), ("reader",), "en") == ()


def test_private_texts_stay_out_of_an_open_graph(tmp_path: Path) -> None:
    own = settings_with(tmp_path, access={"private": ("own",)})
    assert extraction_scope(own, ("book", "emr", "own"), (), []) == ("book",)
    assert extraction_scope(own, ("book", "emr"), (), []) is None
    assert extraction_scope(own, ("book", "own"), ("book",), []) == ("book",)
    for named in ("own", "emr"):
        with pytest.raises(BadConfig, match="whoever may search graph") as refused:
            extraction_scope(own, ("book", "own"), (named,), [])
        assert f"access.private = {named},graph" in refused.value.fix
    closed = settings_with(tmp_path, access={"private": ("own", "graph")}, model=AWAY)
    assert extraction_scope(closed, ("own",), ("own",), []) == ("own",)
    with pytest.raises(BadConfig, match=r"own is private, and models\.example would read it"):
        extraction_scope(closed, ("own",), ("own",), ["summariser"])


def test_private_texts_are_not_indexed_by_another_machine_unasked(tmp_path: Path) -> None:
    away = settings_with(tmp_path, embedder=AWAY, reranker={**AWAY, "url": "http://r.example"})
    assert index_hosts(away) == {"models.example"}
    with pytest.raises(BadConfig, match="emr is private"):
        require_trusted(away, ("book", "emr"), index_hosts(away))
    require_trusted(away, ("book",), index_hosts(away))


class CountingRetriever:
    """A hundred passages, of ten patients in turn."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def search(self, query: str, *, k: int) -> list[Hit]:
        self.asked.append(k)
        passages = [Passage(f"emr:{n % 10}#{n}", "x", "emr", "x") for n in range(min(k, 100))]
        return [Hit(one, 1.0, rank, query, "test") for rank, one in enumerate(passages, 1)]


def test_only_named_patients_are_found_however_far_down_they_stand() -> None:
    inner = CountingRetriever()
    found = asyncio.run(PatientBoundRetriever(inner, frozenset({"emr:7"})).search("x", k=5))
    assert {hit.passage.id.partition("#")[0] for hit in found} == {"emr:7"}
    assert [hit.rank for hit in found] == [1, 2, 3, 4, 5]
    none = asyncio.run(PatientBoundRetriever(inner, frozenset({"emr:x"})).search("x", k=5))
    assert none == []


PERSON: dict[str, Any] = {
    "resourceType": "Bundle",
    "entry": [
        {"resource": {"resourceType": "Patient", "id": "p1", "gender": "female"}},
        {
            "resource": {
                "resourceType": "Condition",
                "subject": {"reference": "Patient/p1"},
                "code": {
                    "coding": [
                        {
                            "system": "http://snomed.info/sct",
                            "code": "44054006",
                            "display": "Zyxodisease",
                        }
                    ]
                },
            }
        },
    ],
}


@pytest.fixture
def old_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A knowledge base of before records of patients were refused outside of `emr`."""
    (tmp_path / "p.json").write_text(json.dumps(PERSON))
    (tmp_path / "a.md").write_text("# A\n\nZyxodisease is treated with aspirin.\n")
    with KnowledgeBase.create(tmp_path / "kb") as kb, monkeypatch.context() as before:
        before.setattr("osler.kb.ingest.prepare.is_patients", lambda source, kind: False)
        assert kb.add([tmp_path / "p.json"], source="guideline").documents == 1
        kb.add([tmp_path / "a.md"], source="guideline")
        kb.build(HashingEncoder())
    monkeypatch.setattr("osler.build.knowledge.load_encoder", lambda _: HashingEncoder())
    return tmp_path


@pytest.mark.parametrize("sources", [(), ("guideline",)])
def test_patients_lie_behind_their_scope_by_what_they_are(
    old_base: Path, sources: tuple[str, ...]
) -> None:
    everybody = settings_with(old_base)
    found = asyncio.run(search_passages(everybody, "zyxodisease", k=9, sources=sources))
    assert [hit.passage.text for hit in found] == ["Zyxodisease is treated with aspirin."]
    with KnowledgeBase.open(old_base / "kb") as kb:
        (record,) = (p for d in kb.read_documents("guideline") for p in d[:1] if p.locator.kind)
        assert any("1 records of patients lie in guideline" in said for said in kb.verify())
    key = (record.source, record.id.partition("#")[0], record.locator.kind)
    for sources, patients, opened in (
        (("public",), (), False),
        (("guideline",), (), False),
        (("guideline", "emr"), (), True),
        (("guideline", "emr"), ("emr:other",), False),
    ):
        access = {"sources": sources, "patients": patients}
        assert settings_with(old_base, access=access).access.may_open(*key) is opened


AS_LINES = "\n".join(json.dumps(entry["resource"]) for entry in PERSON["entry"])
IN_XML = """<?xml version="1.0"?>
<Bundle xmlns="http://hl7.org/fhir"><entry><resource><Patient><text>
<div xmlns="http://www.w3.org/1999/xhtml"><p>Ms Zyxo has zyxodisease, and comes often.</p></div>
</text></Patient></resource></entry></Bundle>
"""


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(PERSON),
        json.dumps(dict(reversed(PERSON.items()))),
        json.dumps([entry["resource"] for entry in PERSON["entry"]], indent=2),
        AS_LINES,
        IN_XML,
        f"# Export\n\nOf today:\n\n```json\n{json.dumps(PERSON, indent=1)}\n```\n",
    ],
    ids=["bundle", "bundle, type last", "array", "lines", "xml", "in a document"],
)
@pytest.mark.parametrize("name", ["p.md", "p.txt", "p.html", "p.json", "p.ndjson", "p.xml"])
def test_records_are_known_by_their_contents_whatever_the_file_is_called(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        done = kb.add([tmp_path / name], source="guideline")
        assert done.documents == 0
        assert done.drops or done.failed, "it is told"


def test_text_about_the_exchange_of_records_is_no_record(tmp_path: Path) -> None:
    text = 'A Patient resource has `"resourceType": "Patient"`; see <http://hl7.org/fhir>.'
    (tmp_path / "a.md").write_text(f"# FHIR\n\n{text}\n")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        assert kb.add([tmp_path / "a.md"], source="guideline").documents == 1


def test_no_door_of_a_server_shows_a_record_under_another_source(old_base: Path) -> None:
    with serve_osler(old_base) as place, httpx2.Client(base_url=place.url, timeout=20) as client:
        knowledge = place.site.shelf._knowledge
        assert knowledge is not None
        documents = knowledge.kb.read_documents("guideline")
        (record,) = (d[0].id for d in documents if d[0].locator.kind)
        asked = {"query": "zyxodisease", "sources": ["guideline"], "k": 9}
        assert record not in client.post("/api/v1/search", json=asked).text
        assert client.get(f"/api/v1/passages/{quote(record)}").status_code == 404
        run = start_run(client, "What is zyxodisease treated with?")
        read_stream(client, run)
        place.wait_for_runs()
        assert record not in client.get(f"/api/v1/runs/{run}").text
        assert record not in client.get(f"/api/v1/runs/{run}/events").text


def test_source_that_may_not_be_searched_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "texts"
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        for source in ("guideline", "own", "emr"):
            (folder / source).mkdir(parents=True)
            (folder / source / "a.md").write_text(f"# A\n\nAspirin of {source}.\n")
            kb.add([folder / source], source=source)
        private = {"private": ("own",)}
        usual = settings_with(tmp_path, access=private)
        assert searched_sources(usual, kb) == ("guideline",)
        named = settings_with(tmp_path, access=private, kb={"sources": ("own", "emr")})
        assert set(searched_sources(named, kb)) == {"own", "emr"}
        public = {"private": ("own",), "sources": ("public",)}
        closed = settings_with(tmp_path, access=public, kb={"sources": ("own",)})
        with pytest.raises(BadConfig) as refused:
            searched_sources(closed, kb)
        absent = settings_with(tmp_path, access=public, kb={"sources": ("nix",)})
        with pytest.raises(BadConfig) as missing:
            searched_sources(absent, kb)
        assert str(refused.value).replace("own", "nix") == str(missing.value)
        kb.build(HashingEncoder())
    monkeypatch.setattr("osler.build.knowledge.load_encoder", lambda _: HashingEncoder())
    nothing = settings_with(tmp_path, access={"sources": ("other",)})
    assert asyncio.run(search_passages(nothing, "aspirin", k=5, sources=())) == []


def test_kinds_of_what_may_not_be_searched_are_not_there(tmp_path: Path) -> None:
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        for id, kind in (("book:a", "tale"), ("own:b", "layoffs"), ("emr:1", "patient")):
            kb.put([Passage(f"{id}#0", "x", id.partition(":")[0], "x", Locator(kind=kind))])

        def refuse_kind(kind: str, **access: Any) -> str:
            asked = {"access": {"private": ("own",), **access}, "retrieve": {"kinds": (kind,)}}
            with pytest.raises(BadFilter) as refused:
                searched_sources(settings_with(tmp_path, **asked), kb)
            return f"{refused.value}; {refused.value.fix}"

        said = refuse_kind("zz", sources=("public",))
        assert "tale" in said
        assert not any(word in said for word in ("layoffs", "patient"))
        assert refuse_kind("layoffs", sources=("public",)) == said.replace("zz", "layoffs")
        assert "patient" in refuse_kind("zz", patients=("emr:1",))
        assert "patient" not in refuse_kind("zz", patients=("emr:2",))
        assert "layoffs" in refuse_kind("zz")
