"""The operations of the HTTP API, each a method; `GET /openapi.json` describes what they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote

Json = dict[str, Any]
J = TypeVar("J")
"""A reply's JSON, or what is awaited for it."""
B = TypeVar("B")
"""A reply's bytes, or what is awaited for them."""

_API = "/api/v1"


class ApiCalls(ABC, Generic[J, B]):
    """Each method sends one request. Raises `ServerRefused` for a reply that is an error."""

    @abstractmethod
    def _json(self, method: str, path: str, *, query: Any = None, body: Any = None) -> J: ...

    @abstractmethod
    def _upload(self, path: str, name: str, data: bytes) -> J: ...

    @abstractmethod
    def _bytes(self, path: str, *, query: Any = None) -> B: ...

    def start_run(self, question: str, **how: Any) -> J:
        """Starts a run, which goes on by itself; `how`: options, language, strategy, sources, k,
        seed, limits, plan."""
        return self._json("POST", f"{_API}/runs", body={"question": question, **how})

    def get_run(self, run: str) -> J:
        """The run with its answer, citations and evidence, as far as it is."""
        return self._json("GET", _path("runs", run))

    def list_runs(self, *, before: str = "", limit: int = 20) -> J:
        """The workspace's runs, the newest first; `before`: the last page's `next`."""
        return self._json("GET", f"{_API}/runs", query={"before": before, "limit": limit})

    def cancel_run(self, run: str) -> J:
        return self._json("POST", _path("runs", run, "cancel"))

    def export_run(self, run: str, to: str = "markdown") -> B:
        """The answer with its references as a file: markdown, docx, pdf, ris, fhir and others."""
        return self._bytes(_path("runs", run, "export"), query={"to": to})

    def list_studies(self, run: str) -> J:
        """What the studies behind an answer state, as rows of quotes."""
        return self._json("GET", _path("runs", run, "studies"))

    def read_report(self, run: str) -> B:
        """The run as one HTML page without scripts."""
        return self._bytes(f"/runs/{quote(run, safe='')}/report.html")

    def judge_run(self, run: str, verdict: str, note: str = "") -> J:
        """Says that an answer was helpful, wrong or unsafe."""
        body = {"verdict": verdict, "note": note}
        return self._json("POST", _path("runs", run, "feedback"), body=body)

    def list_feedback(self, *, limit: int = 1_000) -> J:
        return self._json("GET", f"{_API}/feedback", query={"limit": limit})

    def make_plan(self, question: str, **how: Any) -> J:
        """A source plan, which is not run; `how`: options, language, planner, sources, seed,
        limits."""
        return self._json("POST", f"{_API}/plan", body={"question": question, **how})

    def create_thread(self, run: str = "") -> J:
        """A conversation; with `run`, one that goes on from that run."""
        return self._json("POST", f"{_API}/threads", body={"run_id": run})

    def list_threads(self) -> J:
        return self._json("GET", f"{_API}/threads")

    def get_thread(self, thread: str) -> J:
        return self._json("GET", _path("threads", thread))

    def get_changes(self, thread: str) -> J:
        """What changed between the answers to questions that were asked again."""
        return self._json("GET", _path("threads", thread, "changes"))

    def delete_thread(self, thread: str) -> J:
        return self._json("DELETE", _path("threads", thread))

    def rewrite_question(self, thread: str, question: str) -> J:
        """How a question would be searched for after those of the thread."""
        body = {"question": question}
        return self._json("POST", _path("threads", thread, "standalone"), body=body)

    def ask_in_thread(self, thread: str, question: str, **how: Any) -> J:
        """Starts the run that answers a turn; `how` as for `start_run`, standalone and after."""
        body = {"question": question, **how}
        return self._json("POST", _path("threads", thread, "turns"), body=body)

    def export_thread(self, thread: str, to: str = "markdown") -> B:
        return self._bytes(_path("threads", thread, "export"), query={"to": to})

    def search(self, query: str, *, k: int = 10, **how: Any) -> J:
        """The passages that these words find; `how`: sources, year_from, year_to, languages,
        kinds, trust, retracted."""
        return self._json("POST", f"{_API}/search", body={"query": query, "k": k, **how})

    def get_passage(self, passage: str, *, context: int = 0, snapshot: str = "") -> J:
        query = {"context": context, "snapshot": snapshot}
        return self._json("GET", _path("passages", passage), query=query)

    def list_sources(self) -> J:
        return self._json("GET", f"{_API}/sources")

    def get_status(self) -> J:
        """The state of the knowledge base."""
        return self._json("GET", f"{_API}/kb")

    def find_concepts(self, term: str) -> J:
        return self._json("GET", f"{_API}/graph/concepts", query={"term": term})

    def get_concept(self, concept: str, *, limit: int = 50) -> J:
        return self._json("GET", _path("graph", "concepts", concept), query={"limit": limit})

    def send_document(self, source: str, name: str, data: bytes) -> J:
        """Sends a PDF, Word, XML, HTML or text file into a source that takes files."""
        return self._upload(_path("uploads", source), name, data)

    def list_documents(self, source: str) -> J:
        return self._json("GET", _path("uploads", source))

    def list_places(self) -> J:
        """The sources that take files, and which files."""
        return self._json("GET", f"{_API}/uploads")

    def reread_document(self, source: str, name: str) -> J:
        return self._json("POST", _path("uploads", source, name, "reread"))

    def delete_document(self, source: str, name: str) -> J:
        return self._json("DELETE", _path("uploads", source, name))

    def list_evaluations(self) -> J:
        return self._json("GET", f"{_API}/evaluations")

    def get_evaluation(self, name: str) -> J:
        return self._json("GET", _path("evaluations", name))

    def get_samples(self, name: str, strategy: str, task: str) -> J:
        query = {"strategy": strategy, "task": task}
        return self._json("GET", _path("evaluations", name, "samples"), query=query)

    def get_transparency(self) -> J:
        """Who it is for, what it is made of, and what it does not do."""
        return self._json("GET", f"{_API}/transparency")

    def list_examples(self) -> J:
        return self._json("GET", f"{_API}/examples")

    def check_alive(self) -> J:
        return self._json("GET", "/healthz")

    def check_ready(self) -> J:
        return self._json("GET", "/readyz")

    def read_metrics(self) -> B:
        """Counts for Prometheus."""
        return self._bytes("/metrics")


def _path(*parts: str) -> str:
    return "/".join((_API, *(quote(part, safe="") for part in parts)))


def given_query(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Without what is empty, which the server takes as not asked for."""
    return {name: value for name, value in (query or {}).items() if value not in ("", None)}


class EventReader:
    """Puts a stream's lines together to events (WHATWG server-sent events)."""

    def __init__(self) -> None:
        self._number, self._data = "", list[str]()

    def read_line(self, line: str) -> tuple[str, str] | None:
        """The number ("" = none) and the data of an event that this line ends."""
        name, _, value = line.partition(":")
        if name == "id":
            self._number = value.strip()
        elif name == "data":
            self._data.append(value.removeprefix(" "))
        elif not line and self._data:
            found = (self._number, "\n".join(self._data))
            self._number, self._data = "", []
            return found
        return None


def flat_metadata(hit: Json) -> Json:
    """What the passage says of itself beside its text: title, source, section, year, address,
    licence, and whether it is a sample; its score and rank in this search."""
    passage = hit["passage"]
    place = {name: value for name, value in passage["locator"].items() if value not in ("", None)}
    own = {name: passage[name] for name in ("source", "title", "licence", "illustrative")}
    return {**place, **own, "score": hit["score"], "rank": hit["rank"]}
