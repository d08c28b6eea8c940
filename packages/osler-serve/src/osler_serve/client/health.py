"""One journey through a server, as a user makes it: `osler deploy check`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from osler.errors import OslerError
from osler_serve.client.http_client import Client

QUESTION = "What is given first in anaphylaxis?"


@dataclass(frozen=True, slots=True)
class HealthStep:
    """What was tried, and how it went."""

    name: str
    ok: bool
    seconds: float
    said: str


class HealthJourney:
    """Ready, what it is, search, a question with its stream of events, a cited passage."""

    def __init__(self, client: Client, question: str = QUESTION) -> None:
        self._client, self._question = client, question
        self._run = ""

    def steps(self) -> Iterator[HealthStep]:
        """Each as it ends; after one that fails, those that do not need it go on."""
        for name, step in (
            ("ready", self._check_ready),
            ("version", self._read_version),
            ("search", self._search),
            ("ask", self._start_run),
            ("stream", self._follow_events),
            ("answer", self._read_answer),
        ):
            yield _try_step(name, step)

    def _check_ready(self) -> str:
        return self._client.check_ready().status

    def _read_version(self) -> str:
        facts = self._client.get_transparency()
        count = sum(source.passages for source in facts.sources)
        return f"osler {facts.version}, {count:,} passages, snapshot {facts.snapshot}"

    def _search(self) -> str:
        hits = self._client.search(self._question, k=5).hits
        if not hits:
            raise OslerError("the search finds nothing", fix="`osler kb add`, or another question")
        return f"{len(hits)} passages, first {hits[0].passage.id}"

    def _start_run(self) -> str:
        self._run = self._client.start_run(self._question).run_id
        return self._run

    def _follow_events(self) -> str:
        types = [event["type"] for event in self._client.stream_events(self._require_run())]
        if not types or types[-1] != "run.finished":
            last = types[-1] if types else "no event"
            raise OslerError(f"the run ends with {last}", fix="see the server's log")
        return f"{len(types)} events"

    def _read_answer(self) -> str:
        run = self._client.get_run(self._require_run())
        for one in run.evidence:
            passage = self._client.get_passage(one.passage.id).passage
            if one.quote not in passage.text:
                raise OslerError(
                    f"{passage.id} does not hold its quote", fix="osler kb info --verify"
                )
        return f"{run.grounding}, {len(run.evidence)} quotes found in their passages"

    def _require_run(self) -> str:
        if not self._run:
            raise OslerError("there is no run", fix="fix what failed before")
        return self._run


def _try_step(name: str, step: Callable[[], str]) -> HealthStep:
    began = time.perf_counter()
    try:
        ok, said = True, step()
    except OslerError as error:
        ok, said = False, str(error)
    return HealthStep(name, ok, time.perf_counter() - began, said)
