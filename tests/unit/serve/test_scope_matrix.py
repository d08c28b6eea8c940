"""Each interface under each scope: every operation of the schema and every MCP tool is a row, every
scope of sources, patients, strategies and tokens a column, and every cell is tried.

A door that is not in `DOORS` fails the first test: whoever adds one says here what it tells.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
from scoped_server import (
    CONCEPT,
    MARK,
    SOURCE_SCOPES,
    Keyed,
    call_mcp,
    call_tool,
    list_operations,
    list_tools,
    serve_scoped,
)

from osler_serve.scopes import ROUTE_VERBS, TOOL_VERBS

PLAIN = "Is adrenaline given first?"


@dataclass
class Cell:
    """One key at the interfaces, and what is private: a source, and a run and a thread over it."""

    client: httpx2.Client
    source: str
    passage: str
    asked: str
    """A word of the owner's question, which only who sees the run may read."""
    run: str
    thread: str

    def call(self, method: str, path: str, **given: Any) -> str:
        return self.client.request(method, path, **given).text

    def tool(self, name: str, **given: Any) -> str:
        return call_tool(self.client, name, **given)[1]


def start(cell: Cell, path: str, **more: Any) -> str:
    """A run over the source, to its end."""
    body = {"question": PLAIN, "sources": [cell.source], "strategy": "rag", **more}
    begun = cell.client.post(path, json=body)
    if begun.status_code != 202:
        return begun.text
    run = begun.json()["run_id"]
    return "".join(
        cell.call("GET", f"/api/v1/runs/{run}{end}") for end in ("/events", "", "/export")
    )


def ask_in_thread(cell: Cell) -> str:
    """In the owner's thread, and in one of the caller's own."""
    own = cell.client.post("/api/v1/threads").json()["thread_id"]
    told = start(cell, f"/api/v1/threads/{own}/turns")
    cell.client.delete(f"/api/v1/threads/{own}")
    body = {"question": "Why is it given?", "sources": [cell.source]}
    return told + cell.call("POST", f"/api/v1/threads/{cell.thread}/turns", json=body)


def begin_thread(cell: Cell) -> str:
    return cell.call("POST", "/api/v1/threads", json={"run_id": cell.run})


def rewrite(cell: Cell) -> str:
    where = f"/api/v1/threads/{cell.thread}/standalone"
    return cell.call("POST", where, json={"question": "Why is it given?"})


def export(cell: Cell, where: str) -> str:
    return "".join(cell.call("GET", f"{where}/export?to={kind}") for kind in ("markdown", "csv"))


def chat(cell: Cell) -> str:
    """The question names the source, which no message of OpenAI's form can do."""
    said = f"{PLAIN} Search {cell.source}, and open {cell.passage}."
    body = {"model": "osler/rag", "messages": [{"role": "user", "content": said}]}
    return cell.call("POST", "/v1/chat/completions", json={**body, "stream": True})


def search(cell: Cell, path: str = "/api/v1/search") -> str:
    query = {"query": "adrenaline given first"}
    named = cell.call("POST", path, json={**query, "sources": [cell.source]})
    return named + cell.call("POST", path, json=query)


def open_passage(cell: Cell) -> str:
    where = f"/api/v1/passages/{cell.passage.replace('#', '%23')}"
    return cell.call("GET", where) + cell.call("GET", f"{where}?context=3")


def cancel(cell: Cell) -> str:
    return cell.call("POST", f"/api/v1/runs/{cell.run}/cancel")


def plan_request(cell: Cell) -> dict[str, Any]:
    return {"question": PLAIN, "sources": [cell.source]}


def get(path: str) -> Callable[[Cell], str]:
    def read(cell: Cell) -> str:
        return cell.call("GET", path.format(run=cell.run, thread=cell.thread, concept=CONCEPT))

    return read


TEXT, QUESTION, NAME, NOTHING = "text", "question", "name", ""


@dataclass(frozen=True)
class Door:
    ask: Callable[[Cell], str]
    tells: str = NOTHING
    """What it tells an open key: the private text, the owner's question, the source's name."""
    over: tuple[str, ...] = tuple(MARK)
    """The sources that it can reach at all."""
    owned: bool = False
    """It is asked for the owner's run or thread."""


BASE = ("emr", "own")
DOORS: dict[str, Door] = {
    "POST /api/v1/runs": Door(lambda cell: start(cell, "/api/v1/runs"), TEXT),
    "POST /v1/chat/completions": Door(chat),
    # No source takes files here: what they do with one is for test_uploads_door.py.
    "POST /api/v1/uploads/{source}": Door(
        lambda cell: cell.call(
            "POST", f"/api/v1/uploads/{cell.source}", files={"file": ("a.txt", b"Text.")}
        )
    ),
    "GET /api/v1/uploads": Door(get("/api/v1/uploads")),
    "POST /api/v1/uploads/{source}/{name}/reread": Door(
        lambda cell: cell.call("POST", f"/api/v1/uploads/{cell.source}/pages.md/reread")
    ),
    "GET /api/v1/uploads/{source}": Door(
        lambda cell: cell.call("GET", f"/api/v1/uploads/{cell.source}")
    ),
    "DELETE /api/v1/uploads/{source}/{name}": Door(
        lambda cell: cell.call("DELETE", f"/api/v1/uploads/{cell.source}/pages.md")
    ),
    "POST /api/v1/plan": Door(
        lambda cell: cell.call("POST", "/api/v1/plan", json=plan_request(cell))
    ),
    "GET /api/v1/runs": Door(get("/api/v1/runs?limit=100"), QUESTION, owned=True),
    "GET /api/v1/runs/{id}": Door(get("/api/v1/runs/{run}"), TEXT, owned=True),
    "GET /api/v1/runs/{id}/events": Door(get("/api/v1/runs/{run}/events"), TEXT, owned=True),
    "POST /api/v1/runs/{id}/cancel": Door(cancel, TEXT, owned=True),
    "GET /runs/{id}/report.html": Door(get("/runs/{run}/report.html"), TEXT, owned=True),
    "GET /api/v1/runs/{id}/export": Door(
        lambda cell: export(cell, f"/api/v1/runs/{cell.run}"), TEXT, owned=True
    ),
    "GET /api/v1/runs/{id}/studies": Door(get("/api/v1/runs/{run}/studies"), owned=True),
    "GET /api/v1/runs/{id}/follow_ups": Door(get("/api/v1/runs/{run}/follow_ups"), owned=True),
    "POST /api/v1/threads": Door(begin_thread, QUESTION, owned=True),
    "GET /api/v1/threads": Door(get("/api/v1/threads"), QUESTION, owned=True),
    "GET /api/v1/conversations": Door(get("/api/v1/conversations?limit=100"), QUESTION, owned=True),
    "PUT /api/v1/conversations/{id}": Door(
        lambda cell: cell.call("PUT", f"/api/v1/conversations/{cell.thread}", json={"title": "x"}),
        owned=True,
    ),
    "GET /api/v1/threads/{id}": Door(get("/api/v1/threads/{thread}"), QUESTION, owned=True),
    "GET /api/v1/threads/{id}/changes": Door(get("/api/v1/threads/{thread}/changes"), owned=True),
    "POST /api/v1/threads/{id}/standalone": Door(rewrite, owned=True),
    "POST /api/v1/threads/{id}/turns": Door(ask_in_thread, TEXT),
    "GET /api/v1/threads/{id}/export": Door(
        lambda cell: export(cell, f"/api/v1/threads/{cell.thread}"), TEXT, owned=True
    ),
    "DELETE /api/v1/threads/{id}": Door(
        lambda cell: cell.call("DELETE", f"/api/v1/threads/{cell.thread}"), NOTHING, owned=True
    ),
    "POST /api/v1/runs/{id}/feedback": Door(
        lambda cell: cell.call(
            "POST", f"/api/v1/runs/{cell.run}/feedback", json={"verdict": "wrong"}
        ),
        owned=True,
    ),
    "GET /api/v1/feedback": Door(get("/api/v1/feedback"), QUESTION, owned=True),
    "GET /cds-services": Door(get("/cds-services")),
    "POST /cds-services/{id}": Door(
        lambda cell: cell.call("POST", "/cds-services/osler-patient-view", json={})
    ),
    "POST /cds-services/{id}/feedback": Door(
        lambda cell: cell.call("POST", "/cds-services/osler-patient-view/feedback", json={})
    ),
    "POST /api/v1/search": Door(search, TEXT),
    "GET /api/v1/passages/{id}": Door(open_passage, TEXT, BASE),
    "GET /api/v1/labels": Door(get("/api/v1/labels?drug=adrenaline")),
    "GET /api/v1/sources": Door(get("/api/v1/sources"), NAME, BASE),
    "GET /api/v1/kb": Door(get("/api/v1/kb")),
    "GET /api/v1/graph/concepts": Door(get("/api/v1/graph/concepts?term=adrenaline")),
    "GET /api/v1/graph/concepts/{id}": Door(
        get("/api/v1/graph/concepts/{concept}"), TEXT, ("graph",)
    ),
    "GET /api/v1/transparency": Door(get("/api/v1/transparency"), NAME, BASE),
    "GET /api/v1/examples": Door(get("/api/v1/examples")),
    "GET /v1/models": Door(get("/v1/models")),
    "GET /v1/models/{id}": Door(get("/v1/models/osler/rag")),
    "GET /api/v1/evaluations": Door(get("/api/v1/evaluations")),
    "GET /api/v1/evaluations/{name}": Door(get("/api/v1/evaluations/x")),
    "GET /api/v1/evaluations/{name}/samples": Door(
        get("/api/v1/evaluations/x/samples?strategy=rag&task=x")
    ),
    "GET /api/v1/launch": Door(get("/api/v1/launch")),
    "DELETE /api/v1/launch": Door(
        lambda cell: cell.client.delete("/api/v1/launch").text,
    ),
    "GET /metrics": Door(get("/metrics")),
    "search_evidence": Door(
        lambda cell: cell.tool("search_evidence", query="adrenaline", sources=[cell.source]), TEXT
    ),
    "search": Door(lambda cell: cell.tool("search", query="adrenaline")),
    "get_passage": Door(lambda cell: cell.tool("get_passage", passage_id=cell.passage), TEXT, BASE),
    "fetch": Door(lambda cell: cell.tool("fetch", id=cell.passage), TEXT, BASE),
    "lookup_concept": Door(
        lambda cell: cell.tool("lookup_concept", term="adrenaline"), TEXT, ("graph",)
    ),
    "answer_question": Door(
        lambda cell: cell.tool(
            "answer_question", question=f"{PLAIN} Search {cell.source}: {cell.passage}"
        ),
    ),
    "plan_sources": Door(lambda cell: cell.tool("plan_sources", **plan_request(cell))),
    "calculate": Door(lambda cell: cell.tool("calculate", python="1 + 1")),
    "list_formulas": Door(lambda cell: cell.tool("list_formulas")),
    "read_patient": Door(
        lambda cell: cell.tool("read_patient", patient=cell.passage, resource="Condition")
    ),
    # The last one: it takes away what the others are asked for.
    "DELETE /api/v1/conversations/{id}": Door(
        lambda cell: cell.call("DELETE", f"/api/v1/conversations/{cell.run}"), owned=True
    ),
}


SERVED = {f"{method} {path}" for method, path in ROUTE_VERBS} | set(TOOL_VERBS)
SPENDING = {
    "POST /api/v1/runs",
    "POST /api/v1/threads/{id}/turns",
    "POST /v1/chat/completions",
    "POST /api/v1/plan",
    "answer_question",
    "plan_sources",
}
"""They ask a model, by some strategy."""


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with serve_scoped(tmp_path_factory.mktemp("matrix")) as running:
        mine = running.passage_of("emr").partition("#")[0]
        running.add_key("mine", sources=("all",), patients=(mine,))
        running.add_key("other", sources=("all",), patients=("emr:another",))
        running.add_key("direct", strategies=("direct",), sources=("all",))
        running.add_key("spent", tokens=1)
        yield running


def owned_cell(keyed: Keyed, source: str) -> Cell:
    """A run and a thread of the key that may see all, with the mark in their questions."""
    with keyed.client("all") as owner:
        word = f"quxo{secrets.token_hex(6)}"
        asked = {"question": f"{PLAIN} {word}?", "sources": [source]}
        thread = owner.post("/api/v1/threads").json()["thread_id"]
        turn = owner.post(f"/api/v1/threads/{thread}/turns", json=asked).json()
        owner.get(f"/api/v1/runs/{turn['run_id']}/events")
        note = {"verdict": "wrong", "note": word}
        owner.post(f"/api/v1/runs/{turn['run_id']}/feedback", json=note)
    keyed.place.wait_for_runs()
    return Cell(owner, source, keyed.passage_of(source), word, turn["run_id"], thread)


def test_every_operation_and_every_tool_is_a_row(keyed: Keyed) -> None:
    with keyed.client("all") as client:
        operations = {f"{method} {path}" for method, path in list_operations(client)}
        assert operations | list_tools(client) <= set(DOORS)
        # There is nothing else behind the MCP interface.
        asked = call_mcp(client, "resources/list"), call_mcp(client, "prompts/list")
    assert asked[0]["resources"] == asked[1]["prompts"] == []


def opens(scope: str, source: str, tells: str) -> bool:
    """Whether the key may read the source; of `emr`, whether the record."""
    if scope in ("mine", "other", "elsewhere"):
        return scope != "other" or source != "emr" or tells == NAME
    given = SOURCE_SCOPES.get(scope, ("public",))
    return "all" in given or source in given


@pytest.mark.parametrize("source", MARK)
@pytest.mark.parametrize("scope", [*SOURCE_SCOPES, "mine", "other", "elsewhere"])
def test_every_door_tells_of_a_source_to_its_keys_alone(
    keyed: Keyed, scope: str, source: str
) -> None:
    owned = owned_cell(keyed, source)
    # A key of fewer patients could not have found what the owner's run found.
    fewer = scope == "elsewhere" or (scope == "mine" and source == "emr")
    sees_run = opens(scope, source, TEXT) and not fewer
    with keyed.client(scope) as client:
        cell = replace(owned, client=client)
        said = {name: door.ask(cell) for name, door in DOORS.items() if name in SERVED}
    with keyed.client("all") as owner:
        for left in (f"threads/{owned.thread}", f"runs/{owned.run}"):
            # Only who sees it may delete it.
            assert (owner.get(f"/api/v1/{left}").status_code == 404) is sees_run
    for name in SERVED:
        door = DOORS[name]
        allowed = sees_run if door.owned else opens(scope, source, door.tells)
        secret = {TEXT: MARK[source], QUESTION: cell.asked, NAME: f'"{source}"'}.get(door.tells, "")
        if allowed and secret and source in door.over:
            assert secret in said[name], (name, said[name][:600])
        elif not allowed:
            leaks = [one for one in (secret, MARK[source], cell.asked) if one and one in said[name]]
            assert leaks == [], (name, said[name])
        if not secret:
            assert MARK[source] not in said[name], name


def test_every_door_of_a_model_keeps_to_strategies_and_tokens(keyed: Keyed) -> None:
    asking = {f"{method} {path}" for (method, path), verb in ROUTE_VERBS.items() if verb == "ask"}
    keeping = {"POST /api/v1/threads", "DELETE /api/v1/threads/{id}"}
    keeping |= {f"{verb} /api/v1/conversations/{{id}}" for verb in ("PUT", "DELETE")}
    rewriting = {"POST /api/v1/threads/{id}/standalone"}
    of_tools = {name for name, verb in TOOL_VERBS.items() if verb in ("ask", "plan")}
    assert asking - keeping - rewriting | of_tools | {"POST /api/v1/plan"} == SPENDING
    owned = owned_cell(keyed, "own")
    with keyed.client("direct") as client:
        for name in SPENDING:
            assert "this key may not run" in DOORS[name].ask(replace(owned, client=client)), name
        cards = client.get("/v1/models").json()["data"]
        assert {card["id"] for card in cards} == {"osler/direct", "osler/no-retrieval"}
        body = {"question": PLAIN, "strategy": "direct"}
        assert client.post("/api/v1/runs", json=body).status_code == 202
    with keyed.client("spent") as client:
        cell = replace(owned, client=client, source="guideline")
        assert "Adrenaline" in DOORS["POST /api/v1/runs"].ask(cell)
        keyed.place.wait_for_runs()
        for name in SPENDING:
            said = DOORS[name].ask(cell)
            assert "tokens a day of this key are spent" in said, (name, said)
