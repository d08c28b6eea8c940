"""Conversations, documents of one's own, files of an answer, and the state of a run on the page."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pypdf
import pytest
from browsing import (
    ask_question,
    expect_count,
    expect_exact_text,
    expect_text,
)
from docx import Document as WordDocument
from record_system import CLIENT, RecordSystem, serve_record_system
from served import (
    FixedModel,
    ServedOsler,
    fill_knowledge_base,
    read_stream,
    serve_osler,
    start_run,
)
from waiting import AwaitableEvent

from osler.runs.threads import FILE, MOST_TURNS
from osler_serve.clinic.launch_sessions import COOKIE

Window = Callable[..., Any]
FIRST = "What is given first in anaphylaxis?"
TRIAL = (
    "120 patients were randomised to adrenaline or placebo (hazard ratio 0.5; 95% CI 0.2 to 0.9)."
)
OTHER = "90 patients were randomised to adrenaline or air (hazard ratio 0.7; 95% CI 0.3 to 1.2)."


def follow_up(page: Any, question: str) -> None:
    page.get_by_label("Ask a follow-up question").fill(question)
    page.locator(".followup").get_by_role("button", name="Ask", exact=True).click()


def test_a_follow_up_is_asked_under_an_answer_and_begins_a_conversation(page: Any) -> None:
    ask_question(page, FIRST)
    page.get_by_label("Ask a follow-up question").fill("Why is it given?")
    page.get_by_role("button", name="Show what will be searched for").click()
    alone = page.get_by_label("Searched for as")
    alone.wait_for()
    assert "anaphylaxis" in alone.input_value().lower()
    alone.fill("Why is adrenaline given in anaphylaxis?")
    page.locator(".followup").get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/#/threads/**")
    expect_count(page.locator(".turn"), 2)
    expect_text(page.locator(".turn .alone"), "Why is adrenaline given in anaphylaxis?")
    expect_text(page.locator(".turn .answer"), "Adrenaline is given first.")
    follow_up(page, "And in children?")
    expect_count(page.locator(".turn"), 3)
    expect_text(page.locator(".turn .alone").last, "anaphylaxis")
    page.locator(".turn summary").first.click()
    expect_exact_text(page.locator("h1"), FIRST)


def test_a_follow_up_that_is_sent_twice_is_asked_once(window: Window, place: ServedOsler) -> None:
    with httpx2.Client(base_url=place.url) as client:
        run = start_run(client, FIRST)
        read_stream(client, run)
        thread = client.post("/api/v1/threads", json={"run_id": run}).json()["thread_id"]
        with window(place, f"threads/{thread}") as page:
            held: list[Any] = []

            def hold(route: Any) -> None:
                held.append(route)

            page.route("**/turns", hold)
            field = page.get_by_label("Ask a follow-up question")
            field.fill("Why is it given?")
            for _ in range(2):
                field.press("Enter")
            expect_count(page.locator(".followup button:disabled"), 2)
            (waiting,) = held
            waiting.continue_()
            expect_count(page.locator(".turn"), 2)


def test_a_conversation_is_listed_saved_renamed_and_deleted(
    window: Window, place: ServedOsler
) -> None:
    with window(place, expected=["404"]) as page:
        list_save_rename_and_delete(page)


def list_save_rename_and_delete(page: Any) -> None:
    ask_question(page, FIRST)
    follow_up(page, "Why is it given?")
    page.wait_for_url("**/#/threads/**")
    address = page.url
    page.locator(".turn .answer").wait_for()
    share = page.locator(".share").last
    share.get_by_label("File format").select_option("markdown")
    with page.expect_download() as saved:
        share.get_by_role("button", name="Save as a file").click()
    text = Path(saved.value.path()).read_text(encoding="utf-8")
    assert f"# {FIRST}" in text
    assert "# Why is it given?" in text
    here = page.locator(".side li", has=page.locator("a[aria-current]"))
    expect_text(here, FIRST)
    here.locator("summary").click()
    here.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("Ward round")
    page.keyboard.press("Enter")
    page.get_by_label("Search conversations").fill("ward ROUND")
    expect_exact_text(page.locator(".side li a"), ["Ward round"])
    page.get_by_label("Search conversations").fill("")
    here.locator("summary").click()
    here.get_by_role("button", name="Pin", exact=True).click()
    expect_text(page.locator(".side .day").first, "Pinned")
    expect_text(page.locator(".side li a").first, "Ward round")
    page.get_by_label("Search conversations").fill("ward ROUND")
    expect_count(page.locator(".side li"), 1)
    here.locator("summary").click()
    page.get_by_role("button", name="Delete: Ward round").click()
    page.get_by_role("button", name="Really delete?: Ward round").click()
    page.get_by_label("A medical question").wait_for()
    expect_count(page.locator(".side li"), 0)
    page.goto(address)
    expect_text(page.get_by_role("alert"), "not there any more")


def test_two_windows_in_one_conversation_do_not_talk_past_each_other(
    window: Window, place: ServedOsler
) -> None:
    with httpx2.Client(base_url=place.url) as client:
        run = start_run(client, FIRST)
        read_stream(client, run)
        thread = client.post("/api/v1/threads", json={"run_id": run}).json()["thread_id"]
        with window(place, f"threads/{thread}", expected=["409"]) as page:
            page.locator(".turn").wait_for()
            asked = {"question": "Why is it given?"}
            assert client.post(f"/api/v1/threads/{thread}/turns", json=asked).status_code == 202
            follow_up(page, "And in children?")
            expect_text(
                page.locator(".followup [role=alert]"), "asked in this conversation meanwhile"
            )
            expect_count(page.locator(".turn"), 2)
            kept = page.get_by_label("Ask a follow-up question").input_value()
            assert kept == "And in children?", "nothing that was written is lost"
            page.locator(".followup").get_by_role("button", name="Ask", exact=True).click()
            expect_count(page.locator(".turn"), 3)


def test_a_kept_question_is_asked_again_once_the_knowledge_base_has_changed(
    window: Window, home: Path
) -> None:
    with served_trials(home) as place, window(place) as page:
        ask_question(page, "What does adrenaline do in patients?")
        assert page.get_by_text("The knowledge base has changed").count() == 0
        fill_again(place)
        page.reload()
        page.get_by_text("The knowledge base has changed").wait_for()
        page.get_by_role("button", name="Ask again").click()
        page.wait_for_url("**/#/threads/**")
        expect_count(page.locator(".turn"), 2)
        changes = page.get_by_role("region", name="What changed since the answer before")
        expect_text(changes.locator("del").last, "no longer cited: research:pages#")


def test_a_conversation_of_five_hundred_turns_opens_at_its_end(
    window: Window, place: ServedOsler
) -> None:
    with httpx2.Client(base_url=place.url) as client:
        run = start_run(client, FIRST)
        read_stream(client, run)
        thread = client.post("/api/v1/threads", json={"run_id": run}).json()["thread_id"]
    more = [(thread, n, run, FIRST, f"Is it so, {n}?") for n in range(2, MOST_TURNS + 1)]
    with closing(sqlite3.connect(place.site.settings.home / FILE)) as db, db:
        insert = "INSERT INTO turn VALUES ('default', ?, ?, ?, ?, ?, 'rule', '2026-01-01')"
        db.executemany(insert, more)
    with window(place, f"threads/{thread}", expected=["409"]) as page:
        page.locator(".turn .answer").wait_for()
        expect_count(page.locator(".turn"), 20)
        expect_text(page.locator(".turn").last, "500. ")
        page.get_by_role("button", name="Show earlier questions: 480").click()
        expect_count(page.locator(".turn"), 120)
        follow_up(page, "One more?")
        expect_text(page.locator(".followup [role=alert]"), "This conversation is full")


def test_an_answer_is_copied_with_its_citations_and_saved_as_word(page: Any) -> None:
    ask_question(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy", exact=True).click()
    expect_text(page.locator(".actions"), "Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "Adrenaline is given first. [1]" in copied
    page.get_by_text("Save", exact=True).click()
    first = page.locator(".actions .menu[open] button").first
    assert first.inner_text() == "Word"
    with page.expect_download() as saved:
        first.click()
    assert saved.value.suggested_filename.endswith(".docx")
    texts = [one.text for one in WordDocument(saved.value.path()).paragraphs]
    assert any("Adrenaline is given first." in text for text in texts)


def locked_pdf() -> bytes:
    writer, out = pypdf.PdfWriter(), io.BytesIO()
    writer.add_blank_page(200, 200)
    writer.encrypt("word", algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()


def word_file(text: str) -> bytes:
    made, out = WordDocument(), io.BytesIO()
    made.add_paragraph(text)
    made.save(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    home = tmp_path_factory.mktemp("ward")
    with serve_osler(home, serve={"uploads": ["ward"], "upload_mib": 1}) as running:
        yield running


def send(page: Any, name: str, data: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    page.get_by_label("Send documents").set_input_files([file])


def test_a_document_is_sent_found_read_again_and_deleted(window: Window, ward: ServedOsler) -> None:
    with window(ward, "knowledge") as page:
        send(page, "Room plan.docx", word_file("Okapi drops are kept in room eight."))
        lines = page.locator(".lines")
        expect_text(lines, "Room plan.docx: Documents 1, Passages 1 · found by words at once")
        expect_text(page.locator(".files"), "Room-plan.docx")
        # What can be searched is counted anew without a reload.
        page.locator("tbody th", has_text="ward").wait_for()
        page.get_by_role("button", name="Read again: Room-plan.docx").click()
        expect_text(lines, "Room-plan.docx: Documents 1")
        page.get_by_label("Words to search for").fill("okapi drops")
        page.get_by_role("button", name="Search").click()
        expect_text(page.locator(".hits mark").first, "Okapi")
        page.get_by_role("button", name="Delete: Room-plan.docx").click()
        page.get_by_role("button", name="Really delete?: Room-plan.docx").click()
        page.get_by_text("No documents yet.").wait_for()


def test_a_bad_file_gets_a_clear_word_and_nothing_of_it_stays(
    window: Window, ward: ServedOsler
) -> None:
    bad = {
        "tool.exe": (b"MZ\x90", "a file of .exe is not accepted"),
        "tool.txt": (b"\x7fELF\x02", "is a program"),
        "locked.pdf": (locked_pdf(), "save it without a password"),
        "broken.docx": (word_file("x")[:900], "truncated or damaged"),
        # Its size alone refuses it: not a byte of it is sent.
        "large.txt": (b"Words. " * 200_000, "too large; the limit is 1 MiB"),
    }
    with window(ward, "knowledge", expected=["422"]) as page:
        for number, (name, (data, said)) in enumerate(bad.items(), 1):
            send(page, name, data)
            expect_count(page.locator(".lines [role=alert]"), number)
            expect_text(page.locator(".lines p").first, said)
        page.get_by_text("No documents yet.").wait_for()
    left = (ward.site.settings.home / "uploads").rglob("*")
    assert [path for path in left if path.is_file()] == []


def test_a_server_that_takes_no_documents_shows_no_form(window: Window, home: Path) -> None:
    with serve_osler(home) as place, window(place, "knowledge") as page:
        page.locator("table").wait_for()
        assert page.get_by_label("Send documents").count() == 0


def test_who_waits_reads_the_place_in_the_queue_the_step_and_the_time(
    window: Window, home: Path
) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with (
        serve_osler(home, model=model, serve={"runs": 1}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        first = start_run(client)
        assert model.called.wait(20)
        start_run(client)
        last = start_run(client, FIRST)
        with window(place, f"runs/{first}") as page:
            expect_text(page.get_by_role("status").first, "Working: ")
            expect_text(page.locator(".elapsed"), " s")
        with window(place, f"runs/{last}") as page:
            expect_text(page.get_by_role("status").first, "Waiting in the queue: place 2")
            assert model.gate
            model.gate.set()
            page.get_by_role("heading", name="Answer", exact=True).wait_for()


def test_runs_are_grouped_and_filtered_by_their_state(page: Any, place: ServedOsler) -> None:
    with httpx2.Client(base_url=place.url) as client:
        for _ in range(2):
            read_stream(client, start_run(client, "What is given first in case nine?"))
    page.get_by_role("link", name="All questions").click()
    page.get_by_label("Filter").fill("case nine")
    expect_count(page.locator(".runs li"), 2)
    page.get_by_label("Group by").select_option("question")
    expect_exact_text(page.locator("main h2"), "What is given first in case nine? (2)")
    page.get_by_label("Group by").select_option("strategy")
    expect_exact_text(page.locator("main h2"), "rag (2)")
    page.get_by_label("Status").select_option("finished")
    expect_count(page.locator(".runs li"), 2)


@contextmanager
def served_trials(home: Path) -> Iterator[ServedOsler]:
    """Two studies, each cited."""

    def fill(at: Path) -> None:
        texts = f"# One\n\n{TRIAL}\n\n# Two\n\n{OTHER}\n"
        fill_knowledge_base(at, {"research": texts})

    model = FixedModel(reply=f"{OTHER} [1] {TRIAL} [2]")
    with serve_osler(home, model=model, fill=fill) as place:
        yield place


def test_what_the_studies_state_is_a_table_that_sorts(window: Window, home: Path) -> None:
    with served_trials(home) as place, window(place) as page:
        ask_question(page, "What does adrenaline do in patients?")
        expect_count(page.locator(".document"), 1)
        expect_count(page.locator(".document .card"), 2)
        page.get_by_text("Study details", exact=True).click()
        sizes = page.locator(".studies tbody td:nth-child(4)")
        expect_count(sizes, 2)
        page.get_by_role("button", name="Participants").click()
        expect_exact_text(sizes, ["90", "120"])
        page.get_by_role("button", name="Participants").click()
        expect_exact_text(sizes, ["120", "90"])
        expect_text(page.locator(".studies tbody tr").first, "hazard ratio")


def test_evidence_that_changed_since_is_marked(window: Window, home: Path) -> None:
    with served_trials(home) as place, window(place) as page:
        ask_question(page, "What does adrenaline do in patients?")
        assert page.get_by_text("changed since").count() == 0
        fill_again(place)
        page.reload()
        page.get_by_text("This evidence has changed since the answer was given: [1] [2]").wait_for()
        badges = page.locator(".card .badge.failed")
        expect_exact_text(badges.first, "changed since")


def fill_again(place: ServedOsler) -> None:
    """The source's file says something else by now."""
    from osler.kb.base import KnowledgeBase
    from osler_lab.testing.scripted import HashingEncoder

    home = place.site.settings.home
    file = home / "texts" / "research" / "pages.md"
    file.write_text("# One\n\nNothing of the kind is said.\n\n# Two\n\nNor here.\n", "utf-8")
    with KnowledgeBase.open(home / "kb") as kb:
        kb.update(source="research", checksum=True)
        kb.build(HashingEncoder())


def test_a_patient_that_a_record_system_opens_is_shown_and_closed(
    window: Window, tmp_path: Path
) -> None:
    system, listed = RecordSystem(), tmp_path / "servers.json"
    with serve_record_system(system):
        back = "http://localhost:8642/launch/callback"
        listed.write_text(json.dumps({system.base: {"client_id": CLIENT, "redirect_uri": back}}))
        with (
            serve_osler(tmp_path, serve={"launch_servers": str(listed)}) as place,
            window(place) as page,
        ):
            with httpx2.Client(base_url=place.url) as browser:
                asked = {"iss": system.base, "launch": "l-1"}
                sent = browser.get("/launch", params=asked).headers["location"]
                agreed = httpx2.get(sent).headers["location"]
                assert browser.get(f"/launch{agreed.partition('/launch')[2]}").status_code == 303
                cookie = {"name": COOKIE, "value": browser.cookies[COOKIE], "url": place.url}
            page.context.add_cookies([cookie])
            page.reload()
            record = page.get_by_label("Patient's record")
            expect_text(record.locator("summary"), "Patient, female, age 70")
            record.locator("summary").click()
            expect_text(record, "Warfarin 3 mg oral tablet")
            record.get_by_role("button", name="Close the record").click()
            expect_count(page.get_by_label("Patient's record"), 0)
            assert httpx2.get(f"{place.url}/api/v1/launch").json() == {"patient": None}
