"""Documents that are sent over HTTP: found at once, or nothing of them is stored."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pypdf
import pytest
from docx import Document as WordDocument
from reportlab.pdfgen.canvas import Canvas
from served import ServedOsler, serve_osler

from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler_serve.keys import Caller, new_key
from osler_serve.ledger import Ledger
from osler_serve.ops import uploads
from osler_serve.scopes import KeyScope
from osler_serve.upload_queue import UploadQueue

WARD = "/api/v1/uploads/ward"
SERVE = {"uploads": ["ward"], "upload_mib": 1, "upload_documents": 4, "caller_uploads": 2}
PATIENCE = 120  # files are read by processes that stand back on a busy machine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    home = tmp_path_factory.mktemp("served")
    with serve_osler(home, serve=SERVE) as running:
        yield running


@pytest.fixture
def http(place: ServedOsler) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=place.url, timeout=PATIENCE) as client:
        yield client


def pdf_file(text: str, password: str = "") -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out)
    canvas.drawString(72, 720, text)
    canvas.save()
    if not password:
        return out.getvalue()
    writer, locked = pypdf.PdfWriter(out), io.BytesIO()
    writer.encrypt(password, algorithm="RC4-128")
    writer.write(locked)
    return locked.getvalue()


def word_file(text: str) -> bytes:
    made, out = WordDocument(), io.BytesIO()
    made.add_paragraph(text)
    made.save(out)
    return out.getvalue()


def send(http: httpx2.Client, name: str, data: bytes, where: str = WARD) -> httpx2.Response:
    return http.post(where, files={"file": (name, data)})


def found(http: httpx2.Client, words: str) -> list[str]:
    reply = http.post("/api/v1/search", json={"query": words, "sources": ["ward"], "k": 3})
    if reply.status_code == 422:  # the source is not there yet
        return []
    return [hit["passage"]["text"] for hit in reply.json()["hits"]]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("My rules.PDF", pdf_file("Zebrafish oil is kept in room seven."), "zebrafish oil"),
        ("rules.docx", word_file("Okapi drops are kept in room eight."), "okapi drops"),
        ("rules.txt", "貘乳膏放在九号房间。每天检查一次。".encode(), "貘乳膏"),
    ],
)
def test_a_document_is_found_as_soon_as_it_is_sent_until_it_is_deleted(
    name: str, data: bytes, words: str, http: httpx2.Client
) -> None:
    made = send(http, name, data)
    assert made.status_code == 201, made.text
    upload = made.json()["upload"]
    assert (made.json()["documents"], upload["bytes"]) == (1, len(data))
    assert upload["name"] in [one["name"] for one in http.get(WARD).json()["uploads"]]
    assert words.split()[0].lower() in found(http, words)[0].lower()
    assert http.delete(f"{WARD}/{upload['name']}").status_code == 204
    assert not any(words.split()[0].lower() in text.lower() for text in found(http, words))
    assert http.delete(f"{WARD}/{upload['name']}").status_code == 404


def test_what_may_be_sent_and_where_is_told(http: httpx2.Client) -> None:
    told = http.get("/api/v1/uploads").json()
    assert (told["sources"], told["mib"]) == (["ward"], 1)
    assert {".pdf", ".docx", ".xml", ".txt"} <= set(told["endings"])


def test_a_file_is_read_again_as_it_lies_there(place: ServedOsler, http: httpx2.Client) -> None:
    send(http, "again.txt", b"The numbat chart hangs in room one. It holds today.")
    before = found(http, "numbat chart")
    again = http.post(f"{WARD}/again.txt/reread")
    assert (again.status_code, again.json()["documents"]) == (200, 1)
    assert found(http, "numbat chart") == before
    stored = place.site.settings.home / "uploads" / "ward" / "again.txt"
    stored.write_bytes(b"\x7fELF damaged")
    broken = http.post(f"{WARD}/again.txt/reread")
    assert (broken.status_code, broken.json()["code"]) == (422, "bad_upload")
    assert not any("numbat" in text for text in found(http, "numbat chart"))
    assert "again.txt" in [one["name"] for one in http.get(WARD).json()["uploads"]]
    http.delete(f"{WARD}/again.txt")
    assert http.post(f"{WARD}/again.txt/reread").status_code == 404


def test_a_file_of_the_same_name_takes_its_place(http: httpx2.Client) -> None:
    violet = b"The quokka plan is violet. It holds today."
    every = (b"The quokka plan is green. It holds today.", violet, violet)
    told = [send(http, "plan.txt", data).json()["replaced"] for data in every]
    assert told == [False, True, False], "the same once more takes nothing away"
    texts = " ".join(found(http, "quokka plan"))
    assert "violet" in texts
    assert "green" not in texts
    assert [one["name"] for one in http.get(WARD).json()["uploads"]] == ["plan.txt"]
    http.delete(f"{WARD}/plan.txt")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("tool.exe", b"MZ\x90", "a file of .exe is not accepted"),
        ("tool.txt", b"\x7fELF\x02", "is a program"),
        ("script.txt", b"#!/bin/sh\necho This is text. Yes.", "is a program"),
        ("locked.pdf", pdf_file("secret", "word"), "save it without a password"),
        ("locked.docx", b"\xd0\xcf\x11\xe0 locked", "save it without a password"),
        ("broken.docx", word_file("x")[:900], "truncated or damaged"),
        ("broken.pdf", b"%PDF-1.7 nothing", "not a PDF that can be opened"),
        ("bomb.xml", b'<!DOCTYPE a [<!ENTITY e "x">]><article><front/></article>', ""),
        ("empty.txt", b"", "empty.txt is empty"),
        ("empty.docx", b" \r\n", "empty.docx is empty"),
        ("list.zip", b"PK\x03\x04", "a file of .zip is not accepted"),
        ("../../.ssh/keys", b"x", "no ending"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words_and_nothing_of_it_is_stored(
    name: str, data: bytes, said: str, place: ServedOsler, http: httpx2.Client
) -> None:
    refused = send(http, name, data)
    assert refused.status_code == 422
    assert refused.json()["code"] == "bad_upload"
    assert said in f"{refused.json()['detail']}; {refused.json().get('fix', '')}"
    left = [path for path in (place.site.settings.home / "uploads").rglob("*") if path.is_file()]
    assert left == []
    assert not list((place.site.settings.home / "uploads").glob(".incoming*"))
    assert http.get(WARD).json()["uploads"] == []


def test_a_file_over_the_bound_is_refused_before_it_is_read(
    place: ServedOsler, http: httpx2.Client
) -> None:
    refused = send(http, "large.txt", b"Words. " * 200_000)
    assert refused.status_code == 413
    with socket.create_connection(("127.0.0.1", place.port), timeout=20) as claims:
        head = f"POST {WARD} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {2 * 2**30}\r\n\r\n"
        claims.sendall(head.encode())
        assert claims.recv(100).startswith(b"HTTP/1.1 413"), "before a byte of it has come"


def sections(count: int, word: str) -> bytes:
    return "".join(f"# Part {n}\n\nThe {word} of part {n}.\n\n" for n in range(count)).encode()


def wait_for_vectors(http: httpx2.Client) -> dict[str, Any]:
    """Health once nothing waits to be encoded; the server must be ready all the while."""
    until = time.monotonic() + PATIENCE
    while True:
        ready = http.get("/readyz")
        assert ready.status_code == 200, ready.text
        health: dict[str, Any] = ready.json()
        assert health["status"] == ("degraded" if health["degraded"] else "ready")
        if not health["vectors_behind"] or time.monotonic() > until:
            return health


def test_the_server_encodes_what_is_sent_and_is_ready_all_the_while(
    place: ServedOsler, http: httpx2.Client
) -> None:
    wait_for_vectors(http)
    assert send(http, "long.md", sections(150, "axolotl")).json()["passages"] == 150
    behind = http.get("/readyz").json()
    assert behind["vectors_behind"] > 0
    assert "found by words alone" in behind["degraded"][0]
    assert found(http, "axolotl")
    assert wait_for_vectors(http) == {"status": "ready", "degraded": [], "vectors_behind": 0}
    assert http.get(WARD).json()["behind"] == 0
    with KnowledgeBase.open(place.site.settings.kb.path) as kb:
        numbers = [hit for hit, _ in kb.rank_by_words(["axolotl"], k=400)]
        assert len(kb.get_vectors(numbers)) == 150
    http.delete(f"{WARD}/long.md")


def test_a_file_that_costs_too_much_leaves_what_was_there(
    place: ServedOsler, http: httpx2.Client
) -> None:
    send(http, "plan.md", sections(3, "quoll"))
    refused = send(http, "plan.md", sections(250, "kakapo"))
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_upload")
    assert "over 4 documents or 200 sections" in refused.json()["detail"]
    assert found(http, "quoll")
    assert not any("kakapo" in text for text in found(http, "kakapo"))
    kept = place.site.settings.home / "uploads" / "ward" / "plan.md"
    assert b"quoll" in kept.read_bytes()
    assert wait_for_vectors(http)["status"] == "ready"
    http.delete(f"{WARD}/plan.md")


def test_a_key_with_its_share_of_uploads_waits_and_others_do_not(
    place: ServedOsler, http: httpx2.Client
) -> None:
    queue, (here, other) = place.site.uploads, (Caller(one, "lab", 1, 1) for one in ("local", "x"))
    with queue.hold_place(here), queue.hold_place(here):
        refused = send(http, "a.exe", b"Some words. More words.")
        with queue.hold_place(other):
            pass
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_uploads")
    assert int(refused.headers["Retry-After"]) >= 1
    assert send(http, "a.exe", b"Some words. More words.").status_code == 422


def test_an_upload_whose_process_died_is_refused_and_the_next_is_taken(
    place: ServedOsler, http: httpx2.Client
) -> None:
    assert send(http, "a.exe", b"").status_code == 422
    process = place.site.uploads._process
    assert process is not None
    process.kill()
    assert send(http, "a.exe", b"").status_code in (422, 503)
    assert send(http, "c.txt", b"Quagga drops. More words.").status_code == 201
    assert found(http, "quagga")
    http.delete(f"{WARD}/c.txt")


@pytest.mark.parametrize("ends", ["reader", "server"])
def test_an_earlier_file_comes_back_where_the_process_that_reads_the_new_one_dies(
    place: ServedOsler, http: httpx2.Client, ends: str
) -> None:
    assert send(http, "d.txt", b"Numbat rests. More words.").status_code == 201
    settings = place.site.settings
    kept = settings.home / "uploads" / "ward" / "d.txt"
    waiting = uploads.incoming_file(settings, b"Bilby wakes. More words.")
    sent = waiting.__enter__()
    child = os.fork()
    if not child:  # dies while it reads
        uploads._read_upload = lambda *_: os._exit(9)
        uploads.store_upload(settings, "ward", "d.txt", sent)
    os.waitpid(child, 0)
    assert b"Bilby" in kept.read_bytes()
    assert not (settings.home / "uploads").stat().st_mode & 0o077
    if ends == "reader":
        waiting.__exit__(None, None, None)
    else:  # and the server with it: the next one, here this, clears up
        uploads.clear_interrupted(settings)
    assert b"Numbat" in kept.read_bytes()
    assert not list((settings.home / "uploads").glob(".incoming*"))
    http.delete(f"{WARD}/d.txt")


def test_a_long_name_is_cut_and_stays_its_own(http: httpx2.Client) -> None:
    names = {
        send(http, f"{'药' * 200}{n}.txt", b"Kiwi hides. More words.").json()["upload"]["name"]
        for n in range(2)
    }
    assert len(names) == 2
    assert all(len(one.encode()) < 256 for one in names)
    for one in names:
        assert http.delete(f"{WARD}/{one}").status_code == 204


def test_keys_take_turns() -> None:
    class Recorded(UploadQueue):
        asked: ClassVar[list[str]] = []

        async def _ask_process(self, *asked: str) -> Any:
            self.asked.append(asked[0])
            return 0

    async def ask_all() -> None:
        queue = Recorded(Settings())
        busy, calm = (Caller(name, "lab", 1, 1) for name in ("busy", "calm"))
        wanted = [queue.ask(busy, f"busy {n}") for n in range(3)]
        asking = asyncio.gather(*wanted, queue.ask(calm, "calm"))
        await asyncio.sleep(0)  # all of them stand in the queue
        life = asyncio.create_task(queue.work())
        await asking
        life.cancel()

    asyncio.run(ask_all())
    assert Recorded.asked[:4] == ["busy 0", "calm", "busy 1", "busy 2"]


def test_a_source_that_takes_no_files_refuses_them(http: httpx2.Client) -> None:
    refused = send(http, "a.txt", b"Some words. More words.", "/api/v1/uploads/guideline")
    assert (refused.status_code, refused.json()["code"]) == (403, "no_uploads")


def test_a_key_sends_files_only_where_it_may_find_them(tmp_path: Path) -> None:
    access = {"private": ["ward"]}
    with serve_osler(tmp_path, serve={"uploads": ["ward"]}, access=access) as place:
        ledger = Ledger(tmp_path / "serve")
        keys = {
            name: new_key(ledger, name, scope=scope)
            for name, scope in (
                ("other", KeyScope()),
                ("own", KeyScope(sources=("public", "ward"))),
                ("reader", KeyScope(sources=("ward",), verbs=("search", "read"))),
            )
        }
        ledger.close()
        codes, told = {}, {}
        for name, key in keys.items():
            headers = {"Authorization": f"Bearer {key}"}
            with httpx2.Client(base_url=place.url, headers=headers, timeout=PATIENCE) as client:
                codes[name] = send(client, "a.txt", b"Some words. More words.").status_code
                told[name] = client.get("/api/v1/transparency").json()["uploads"]
    assert told == {"other": [], "own": ["ward"], "reader": []}
    assert codes == {"other": 403, "own": 201, "reader": 403}
