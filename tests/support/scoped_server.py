"""A server over public and private sources, with a key for each scope, and its interfaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from served import TEXTS, ServedOsler, fill_knowledge_base, serve_osler

from osler.graph.items import Definition, Name
from osler.graph.store import Graph
from osler_serve.cli.serve import report_page
from osler_serve.keys import new_key
from osler_serve.ledger import Ledger
from osler_serve.scopes import VERBS, make_scope

MARK = {"emr": "zyxomarkone", "own": "zyxomarktwo", "graph": "zyxomarkfour"}
PRIVATE = {
    **TEXTS,
    "emr": f"# Patient\n\nAdrenaline is given first to this patient with {MARK['emr']}.\n",
    "own": f"# Note\n\nAdrenaline is given first on this ward with {MARK['own']}.\n",
}
SOURCE_SCOPES = {
    "public": ("public",),
    "emr": ("public", "emr"),
    "own": ("public", "own"),
    "graph": ("public", "graph"),
    "all": ("all",),
    "one": ("guideline",),
}
CONCEPT = "X:1"


@dataclass
class Keyed:
    """A server with a key for each verb and for each scope of sources."""

    place: ServedOsler
    home: Path
    keys: dict[str, str]

    def client(self, key: str) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.keys[key]}"}
        return httpx2.Client(base_url=self.place.url, headers=headers, timeout=20)

    def add_key(self, name: str, **scope: Any) -> None:
        made = new_key(self.place.site.ledger, name, scope=make_scope(**scope))
        self.keys[name] = made

    def passage_of(self, source: str) -> str:
        """The id of the source's only passage."""
        if source == "graph":
            return f"graph:{CONCEPT}"
        knowledge = self.place.site.shelf._knowledge
        assert knowledge is not None
        return next(knowledge.kb.read_documents(source))[0].id


@contextmanager
def serve_scoped(home: Path) -> Iterator[Keyed]:
    """`emr`, `own` and `graph` are private; keys are named as scopes, or verb-VERB."""
    ledger = Ledger(home / "serve")
    keys = {
        f"verb-{verb}": new_key(ledger, verb, scope=make_scope(verbs=(verb,))) for verb in VERBS
    }
    for name, sources in SOURCE_SCOPES.items():
        keys[name] = new_key(ledger, f"sources-{name}", scope=make_scope(sources=sources))
    elsewhere = make_scope(sources=("all",))
    keys["elsewhere"] = new_key(ledger, "elsewhere", workspace="ward", scope=elsewhere)
    keys["old"] = new_key(ledger, "old")
    ledger.close()

    def fill(where: Path) -> None:
        fill_knowledge_base(where, PRIVATE)
        with Graph.create(where / "kb") as graph:
            said = f"Adrenaline is given first with {MARK['graph']}."
            graph.add([Name(CONCEPT, "Adrenaline"), Definition(CONCEPT, said, "made")])

    private = {"private": ("own", "graph")}
    with serve_osler(
        home,
        page=report_page,
        fill=fill,
        access=private,
        serve={"patients": True, "caller_minute": 100_000},
    ) as place:
        yield Keyed(place, home, keys)


def list_operations(client: httpx2.Client) -> list[tuple[str, str]]:
    """Method and path of each operation of the schema but the probes, which know nothing."""
    schema = client.get("/openapi.json").json()
    return [
        (method.upper(), path)
        for path, item in schema["paths"].items()
        for method in item
        if path not in ("/healthz", "/readyz")
    ]


def call_mcp(client: httpx2.Client, method: str, **params: Any) -> Any:
    """The result of an MCP request."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": "application/json, text/event-stream"}
    reply = client.post("/mcp", json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()["result"]


def list_tools(client: httpx2.Client) -> set[str]:
    return {tool["name"] for tool in call_mcp(client, "tools/list")["tools"]}


def call_tool(client: httpx2.Client, name: str, **arguments: Any) -> tuple[bool, str]:
    """Whether the call failed, and all that it said."""
    result = call_mcp(client, "tools/call", name=name, arguments=arguments)
    return bool(result.get("isError")), json.dumps(result, ensure_ascii=False)
