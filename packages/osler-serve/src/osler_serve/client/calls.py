"""The operations of the HTTP API, each a method that says what its reply is; the same ones of both
clients."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, get_type_hints, overload
from urllib.parse import quote

from osler import reports
from osler_serve import evaluation_replies as evaluation
from osler_serve import replies

Json = dict[str, Any]
T = TypeVar("T")
"""The reply."""
P = ParamSpec("P")
"""The arguments of an operation."""

_API = "/api/v1"


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[T]):
    """One request, and by its type the reply."""

    method: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Json | None = None
    file: tuple[str, bytes] | None = None
    """Name and content, sent as a form."""


class ApiCalls(ABC):
    """Each method sends one request. Raises `ServerRefused` for a reply that is an error."""

    @abstractmethod
    def _send_call(self, call: ApiCall[T], reply: type[T]) -> Any: ...


class BlockingCalls:
    """Whose operations give the reply."""


class AwaitedCalls:
    """Whose operations give what is awaited for it."""


class Operation(Generic[P, T]):
    """A method of both clients, made of the function that says what is sent."""

    def __init__(self, build: Callable[Concatenate[Any, P], ApiCall[T]]) -> None:
        self._build = build
        (self._reply,) = get_args(get_type_hints(build)["return"])

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], ApiCall[T]]: ...
    @overload
    def __get__(self, client: BlockingCalls, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AwaitedCalls, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self._build

        def send(*given: P.args, **named: P.kwargs) -> Any:
            return client._send_call(self._build(client, *given, **named), self._reply)

        return update_wrapper(send, self._build)


class ApiOperations(ApiCalls):
    """The operations that both clients have."""

    @Operation
    def start_run(self, /, question: str, **how: Any) -> ApiCall[replies.RunStarted]:
        """Starts a run, which goes on by itself; `how`: options, language, strategy, sources,
        since, until, kinds, as_of, k, seed, limits, plan."""
        return ApiCall("POST", f"{_API}/runs", body={"question": question, **how})

    @Operation
    def get_run(self, run: str) -> ApiCall[replies.RunReport]:
        """The run with its answer, citations and evidence, as far as it is."""
        return ApiCall("GET", _path("runs", run))

    @Operation
    def list_runs(self, *, before: str = "", limit: int = 20) -> ApiCall[replies.RunList]:
        """The workspace's runs, the newest first; `before`: the last page's `next`."""
        return ApiCall("GET", f"{_API}/runs", query={"before": before, "limit": limit})

    @Operation
    def cancel_run(self, run: str) -> ApiCall[replies.RunReport]:
        return ApiCall("POST", _path("runs", run, "cancel"))

    @Operation
    def export_run(self, run: str, to: str = "markdown") -> ApiCall[bytes]:
        """The answer with its references as a file: markdown, docx, pdf, ris, fhir and others."""
        return ApiCall("GET", _path("runs", run, "export"), query={"to": to})

    @Operation
    def list_studies(self, run: str) -> ApiCall[evaluation.StudyTable]:
        """What the studies behind an answer state, as rows of quotes."""
        return ApiCall("GET", _path("runs", run, "studies"))

    @Operation
    def read_report(self, run: str) -> ApiCall[bytes]:
        """The run as one HTML page without scripts."""
        return ApiCall("GET", f"/runs/{quote(run, safe='')}/report.html")

    @Operation
    def judge_run(self, run: str, verdict: str, note: str = "") -> ApiCall[evaluation.FeedbackView]:
        """Says that an answer was helpful, wrong or unsafe."""
        body = {"verdict": verdict, "note": note}
        return ApiCall("POST", _path("runs", run, "feedback"), body=body)

    @Operation
    def list_feedback(self, *, limit: int = 1_000) -> ApiCall[evaluation.FeedbackList]:
        return ApiCall("GET", f"{_API}/feedback", query={"limit": limit})

    @Operation
    def make_plan(self, /, question: str, **how: Any) -> ApiCall[replies.PlanView]:
        """A source plan, which is not run; `how`: options, language, planner, sources, seed,
        limits."""
        return ApiCall("POST", f"{_API}/plan", body={"question": question, **how})

    @Operation
    def create_thread(self, run: str = "") -> ApiCall[replies.ThreadView]:
        """A conversation; with `run`, one that goes on from that run."""
        return ApiCall("POST", f"{_API}/threads", body={"run_id": run})

    @Operation
    def list_threads(self) -> ApiCall[replies.ThreadList]:
        return ApiCall("GET", f"{_API}/threads")

    @Operation
    def get_thread(self, thread: str) -> ApiCall[replies.ThreadView]:
        return ApiCall("GET", _path("threads", thread))

    @Operation
    def get_changes(self, thread: str) -> ApiCall[replies.ChangeList]:
        """What changed between the answers to questions that were asked again."""
        return ApiCall("GET", _path("threads", thread, "changes"))

    @Operation
    def delete_thread(self, thread: str) -> ApiCall[None]:
        return ApiCall("DELETE", _path("threads", thread))

    @Operation
    def list_follow_ups(self, run: str) -> ApiCall[replies.FollowUpList]:
        """Questions to ask next, about what a run found and does not cite."""
        return ApiCall("GET", _path("runs", run, "follow_ups"))

    @Operation
    def list_conversations(
        self, *, find: str = "", before: str = "", limit: int = 50
    ) -> ApiCall[replies.ConversationList]:
        """Threads and single questions, those last asked in first; those that have these words."""
        query = {"find": find, "before": before, "limit": limit}
        return ApiCall("GET", f"{_API}/conversations", query=query)

    @Operation
    def rename_conversation(self, conversation: str, title: str) -> ApiCall[None]:
        return ApiCall("PUT", _path("conversations", conversation), body={"title": title})

    @Operation
    def delete_conversation(self, conversation: str) -> ApiCall[None]:
        """Deletes it with its runs."""
        return ApiCall("DELETE", _path("conversations", conversation))

    @Operation
    def rewrite_question(self, thread: str, question: str) -> ApiCall[replies.StandaloneView]:
        """How a question would be searched for after those of the thread."""
        body = {"question": question}
        return ApiCall("POST", _path("threads", thread, "standalone"), body=body)

    @Operation
    def ask_in_thread(
        self, /, thread: str, question: str, **how: Any
    ) -> ApiCall[replies.TurnStarted]:
        """Starts the run that answers a turn; `how` as for `start_run`, standalone and after."""
        body = {"question": question, **how}
        return ApiCall("POST", _path("threads", thread, "turns"), body=body)

    @Operation
    def export_thread(self, thread: str, to: str = "markdown") -> ApiCall[bytes]:
        return ApiCall("GET", _path("threads", thread, "export"), query={"to": to})

    @Operation
    def search(self, /, query: str, *, k: int = 10, **how: Any) -> ApiCall[replies.SearchResult]:
        """The passages that these words find; `how`: sources, since, until, kinds,
        as_of, languages, trust, retracted."""
        return ApiCall("POST", f"{_API}/search", body={"query": query, "k": k, **how})

    @Operation
    def get_passage(
        self, passage: str, *, context: int = 0, snapshot: str = ""
    ) -> ApiCall[replies.PassageInContext]:
        query = {"context": context, "snapshot": snapshot}
        return ApiCall("GET", _path("passages", passage), query=query)

    @Operation
    def compare_labels(
        self, drugs: Sequence[str], *, sections: Sequence[str] = ()
    ) -> ApiCall[reports.LabelsSideBySide]:
        """The latest label of each drug, section by section; `sections`: words of the headings."""
        return ApiCall("GET", f"{_API}/labels", query={"drug": drugs, "section": sections})

    @Operation
    def list_sources(self) -> ApiCall[replies.SourceList]:
        return ApiCall("GET", f"{_API}/sources")

    @Operation
    def get_status(self) -> ApiCall[replies.KbStatus]:
        """The state of the knowledge base."""
        return ApiCall("GET", f"{_API}/kb")

    @Operation
    def find_concepts(self, term: str) -> ApiCall[replies.ConceptMatchList]:
        return ApiCall("GET", f"{_API}/graph/concepts", query={"term": term})

    @Operation
    def get_concept(self, concept: str, *, limit: int = 50) -> ApiCall[replies.ConceptView]:
        return ApiCall("GET", _path("graph", "concepts", concept), query={"limit": limit})

    @Operation
    def send_document(self, source: str, name: str, data: bytes) -> ApiCall[replies.UploadReport]:
        """Sends a PDF, Word, XML, HTML or text file into a source that takes files."""
        return ApiCall("POST", _path("uploads", source), file=(name, data))

    @Operation
    def list_documents(self, source: str) -> ApiCall[replies.UploadList]:
        return ApiCall("GET", _path("uploads", source))

    @Operation
    def list_places(self) -> ApiCall[replies.UploadPlaces]:
        """The sources that take files, and which files."""
        return ApiCall("GET", f"{_API}/uploads")

    @Operation
    def reread_document(self, source: str, name: str) -> ApiCall[replies.UploadReport]:
        return ApiCall("POST", _path("uploads", source, name, "reread"))

    @Operation
    def delete_document(self, source: str, name: str) -> ApiCall[None]:
        return ApiCall("DELETE", _path("uploads", source, name))

    @Operation
    def list_evaluations(self) -> ApiCall[evaluation.EvaluationList]:
        return ApiCall("GET", f"{_API}/evaluations")

    @Operation
    def get_evaluation(self, name: str) -> ApiCall[evaluation.EvaluationView]:
        return ApiCall("GET", _path("evaluations", name))

    @Operation
    def get_samples(
        self, name: str, strategy: str, task: str
    ) -> ApiCall[evaluation.EvaluationSampleList]:
        query = {"strategy": strategy, "task": task}
        return ApiCall("GET", _path("evaluations", name, "samples"), query=query)

    @Operation
    def get_transparency(self) -> ApiCall[replies.Transparency]:
        """Who it is for, what it is made of, and what it does not do."""
        return ApiCall("GET", f"{_API}/transparency")

    @Operation
    def list_examples(self) -> ApiCall[evaluation.ExampleList]:
        return ApiCall("GET", f"{_API}/examples")

    @Operation
    def check_alive(self) -> ApiCall[replies.Health]:
        return ApiCall("GET", "/healthz")

    @Operation
    def check_ready(self) -> ApiCall[replies.Health]:
        return ApiCall("GET", "/readyz")

    @Operation
    def read_metrics(self) -> ApiCall[bytes]:
        """Counts for Prometheus."""
        return ApiCall("GET", "/metrics")


def _path(*parts: str) -> str:
    return "/".join((_API, *(quote(part, safe="") for part in parts)))


def given_query(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Without what is empty, which the server takes as not asked for."""
    return {name: value for name, value in (query or {}).items() if value not in ("", None, [])}


class StreamPlace:
    """How far a stream of events was read, and how often it broke off since."""

    ends = frozenset({"run.finished", "run.failed", "run.cancelled"})
    pauses = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
    """Seconds before each new try: a worker that died is started again meanwhile."""

    def __init__(self, after: int) -> None:
        self.after, self.is_over, self.was_open = after, False, False
        self._breaks = 0

    def read_event(self, number: str, data: str) -> Json:
        event: Json = json.loads(data)
        self.after, self._breaks = int(number), 0
        self.is_over = event.get("type") in self.ends
        return event

    def pause_before_next(self) -> float | None:
        """`None` = it is not tried again: it never opened, or broke off too often."""
        if not self.was_open or self._breaks == len(self.pauses):
            return None
        self._breaks += 1
        return self.pauses[self._breaks - 1]


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


def flat_metadata(hit: reports.SearchHit) -> Json:
    """What the passage says of itself beside its text: title, source, section, year, address,
    licence, and whether it is a sample; its score and rank in this search."""
    passage = hit.passage
    place = {name: value for name, value in passage.locator if value not in ("", None)}
    own = passage.model_dump(include={"source", "title", "licence", "illustrative"})
    return {**place, **own, "score": hit.score, "rank": hit.rank}
