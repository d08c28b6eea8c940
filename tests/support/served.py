"""A real Osler server on loopback, in a thread, over a small knowledge base and a scripted model.

with serving(tmp_path) as place:
    httpx2.post(f"{place.url}/api/v1/search", json={"query": "adrenaline"})
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from uvicorn import Config
from waiting import AwaitableEvent

from osler.build.models import LoadedModel
from osler.build.resource_cache import ResourceCache
from osler.kb.base import KnowledgeBase
from osler.kb.search.base import BackendChoice
from osler.llm.core.base import Completion, Message, Sampling, Scored
from osler.settings import Settings
from osler.sources.catalogue import DRUG_LABEL
from osler.types import Locator, Passage, Usage
from osler_lab.testing.scripted import HashingEncoder, tokens_of
from osler_serve.app import build_state, create_app
from osler_serve.state import Page, ServerState
from osler_serve.transport import DrainingServer, build_server, open_sockets

REPLY = "Adrenaline is given first. [1]"
TEXTS = {
    "guideline": (
        "# Anaphylaxis\n\nAdrenaline is given first, into the outer thigh, at once.\n\n"
        "# Asthma\n\nSalbutamol is given first in an acute attack.\n"
    ),
    "book": "# 过敏性休克\n\n过敏性休克首选肾上腺素，立即肌内注射。\n",
    "wiki": "A hostile page: <img src=x onerror=alert(1)> <script>alert(1)</script>, adrenaline.\n",
}


@dataclass
class FixedModel:
    """A model that always says the same, once the gate is open where there is one."""

    reply: str = REPLY
    name: str = "speaks"
    gate: AwaitableEvent | None = None
    called: threading.Event = field(default_factory=threading.Event)
    """Set by the first call; a test that waits for another clears it."""
    asked: int = 0
    stopped: int = 0
    """Calls that were cancelled."""
    seen: list[str] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.asked += 1
        self.seen.append(messages[-1].content)
        self.called.set()
        try:
            if self.gate is not None:
                await self.gate.passed()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        tokens = tokens_of(self.reply, 0.9)
        return Completion(self.reply, tokens, "stop", Usage(calls=1, completion_tokens=len(tokens)))

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        tokens = tokens_of(text, 0.9)
        return Scored(tokens, Usage(calls=1, scored_tokens=len(tokens)))


class Connections(set[Any]):
    """Open connections; another thread can wait for their number."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()

    def add(self, one: Any) -> None:
        with self._changed:
            super().add(one)
            self._changed.notify_all()

    def discard(self, one: Any) -> None:
        with self._changed:
            super().discard(one)
            self._changed.notify_all()

    def wait_for_number(self, number: int, timeout: float = 20.0) -> bool:
        """Whether there are so many within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self) == number, timeout)


@dataclass
class ServedOsler:
    """A server that runs."""

    url: str
    port: int
    site: ServerState
    server: DrainingServer
    model: FixedModel
    thread: threading.Thread
    connections: Connections

    def wait_for_runs(self, timeout: float = 20.0) -> None:
        """Returns when each run that was begun is put away."""
        for live in list(self.site.desk._live.values()):
            if (task := live.task) is not None:
                done = threading.Event()
                ended = partial(_set_at_end, done)
                task.get_loop().call_soon_threadsafe(task.add_done_callback, ended)
                assert done.wait(timeout), f"the run {live.id} does not end"

    def stop_server(self) -> None:
        """Stops as on SIGTERM: runs may end first."""
        self.server.should_exit = True
        self.thread.join(30)


def serving_settings(home: Path, **sections: Any) -> Settings:
    """A model that words answers, one search, no sampling to speak of."""
    tree: dict[str, Any] = {
        "home": str(home),
        "model": {"writes": "yes"},
        "strategy": {"kind": "rag", "k": 3},
        **sections,
    }
    return Settings.model_validate(tree)


def fill_knowledge_base(
    home: Path,
    texts: dict[str, str] | None = None,
    engine: BackendChoice = BackendChoice(),  # noqa: B008 - frozen
) -> None:
    """A knowledge base of a few passages, indexed by a hashing encoder."""
    folder = home / "texts"
    with KnowledgeBase.create(home / "kb", engine) as kb:
        for source, text in (texts or TEXTS).items():
            (folder / source).mkdir(parents=True)
            # As plain text, what looks like markup is kept.
            name = "page.txt" if "<" in text else "pages.md"
            (folder / source / name).write_text(text, encoding="utf-8")
            kb.add([folder / source], source=source, licence="CC0-1.0")
        kb.build(HashingEncoder())


def put_label(kb: KnowledgeBase, id: str, title: str, source: str = "label") -> None:
    texts = [("Product", "Effective: 2021-05-01"), ("Overdosage", f"<b>{title}</b>: call.")]
    if id == "w1":
        texts.append(("Drug interactions", "Aspirin adds to bleeding."))
    where = [Locator(section, kind=DRUG_LABEL, code=f"SPL:{id}") for section, _ in texts]
    kb.put(
        Passage(f"{source}:{id}#{n}", text, source, title, where[n])
        for n, (_, text) in enumerate(texts)
    )


def fill_with_labels(home: Path) -> None:
    """Labels of two drugs, and of a third in a private source."""
    with KnowledgeBase.create(home / "kb") as kb:
        put_label(kb, "w1", "Warfarin sodium")
        put_label(kb, "a1", "Apixaban (Eliquis)")
        put_label(kb, "d1", "Dabigatran", source="emr")
        kb.build(HashingEncoder())


def loaded_shelf(settings: Settings, model: FixedModel) -> ResourceCache:
    """The model and a hashing encoder, whatever the settings name."""
    return ResourceCache(settings, encoder=HashingEncoder(), ready=_SameModel(model))


def bring_encoder(folder: Path) -> dict[str, str]:
    """Brings the hashing encoder as a package does, for the processes that a server starts;
    returns what names it in `embedder`."""
    made = folder / "hashing-0.dist-info"
    made.mkdir(exist_ok=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: hashing\nVersion: 0\n")
    place = f"{HashingEncoder.__module__}:{HashingEncoder.__name__}"
    (made / "entry_points.txt").write_text(f"[osler.encoders]\nhashing = {place}\n")
    sys.path.append(str(folder))
    return {"kind": "plugin", "name": "hashing"}


def no_page(log: Path) -> str:
    return f"<!doctype html><title>{log.parent.name}</title>"


@contextmanager
def serve_osler(
    home: Path,
    *,
    model: FixedModel | None = None,
    page: Page = no_page,
    fill: Callable[[Path], None] = fill_knowledge_base,
    port: int = 0,
    **sections: Any,
) -> Iterator[ServedOsler]:
    """The server, ready to answer, at a free port or this one; it is stopped at the end."""
    if "uploads" in sections.get("serve", {}):
        sections = {"embedder": bring_encoder(home), **sections}
    settings = serving_settings(home, **sections)
    if not (home / "kb").exists():
        fill(home)
    speaks = model or FixedModel()
    shelf = loaded_shelf(settings, speaks)
    made = build_state(settings, page, shelf=shelf)
    sock = open_sockets("127.0.0.1", port)
    port = sock.getsockname()[1]
    up = threading.Event()
    running = _SignallingServer(build_server(create_app(made), made).config, made, up)
    running.server_state.connections = connections = Connections()
    thread = threading.Thread(target=running.run, args=([sock],))
    thread.start()
    try:
        assert up.wait(20), "the server did not start"
        assert running.started, "the server did not start"
        yield ServedOsler(
            f"http://127.0.0.1:{port}", port, made, running, speaks, thread, connections
        )
    finally:
        running.should_exit = True
        thread.join(30)
        sock.close()
        assert not thread.is_alive(), "the server did not stop"


# uvicorn has no event for "accepting": `startup` is overridden to set one.
class _SignallingServer(DrainingServer):
    """Tells when it takes requests, or has given up."""

    def __init__(self, config: Config, site: ServerState, up: threading.Event) -> None:
        super().__init__(config, site)
        self._up = up

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            self._up.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._up.set()

    async def main_loop(self) -> None:
        """As uvicorn's, which looks ten times a second: some hundred servers are stopped here."""
        counter = 0
        while not await self.on_tick(counter):
            await asyncio.sleep(0.01)
            counter = (counter + 1) % 1_000


def _set_at_end(done: threading.Event, _task: object) -> None:
    done.set()


class _SameModel(dict[Any, LoadedModel]):
    """Whatever model the settings name is this one."""

    def __init__(self, model: FixedModel) -> None:
        super().__init__()
        self._ready = LoadedModel(model, False, ())

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: object) -> LoadedModel:
        return self._ready


def start_run(client: httpx2.Client, question: str = "What is given first?", **more: Any) -> str:
    """Starts a run; its id."""
    reply = client.post("/api/v1/runs", json={"question": question, **more})
    assert reply.status_code == 202, reply.text
    return str(reply.json()["run_id"])


def read_stream(client: httpx2.Client, run: str, **headers: str) -> list[tuple[int, str, Any]]:
    """Number, name and data of each numbered event, to the end of the stream."""
    events: list[tuple[int, str, Any]] = []
    number, name = 0, ""
    with client.stream("GET", f"/api/v1/runs/{run}/events", headers=headers) as reply:
        assert reply.status_code == 200
        for line in reply.iter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: ") and number:
                events.append((number, name, json.loads(line[6:])))
                number = 0
    return events
