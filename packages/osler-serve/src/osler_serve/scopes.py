"""What a key may do: which operations, over which sources and patients, at which daily cost.

Every operation of the API and every MCP tool has one verb; one that has none is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from osler.errors import BadArgument
from osler.runs.files import read_record
from osler.settings import STRATEGIES, ServeSettings, Settings
from osler.settings.sections import EVERY, PUBLIC, AccessSettings
from osler.sources.catalogue import EMR
from osler_serve.problems import RefusedRequest

Verb = Literal[
    "ask",
    "plan",
    "search",
    "read",
    "runs",
    "evaluations",
    "calculate",
    "patients",
    "hooks",
    "upload",
    "operate",
]
VERBS: tuple[Verb, ...] = get_args(Verb)

_API = "/api/v1"
ROUTE_VERBS: dict[tuple[str, str], Verb] = {
    ("POST", f"{_API}/runs"): "ask",
    ("POST", "/v1/chat/completions"): "ask",
    ("POST", f"{_API}/plan"): "plan",
    ("GET", f"{_API}/runs"): "runs",
    ("GET", f"{_API}/runs/{{id}}"): "runs",
    ("GET", f"{_API}/runs/{{id}}/events"): "runs",
    ("POST", f"{_API}/runs/{{id}}/cancel"): "runs",
    ("GET", "/runs/{id}/report.html"): "runs",
    ("GET", f"{_API}/runs/{{id}}/export"): "runs",
    ("GET", f"{_API}/runs/{{id}}/studies"): "runs",
    ("GET", f"{_API}/runs/{{id}}/follow_ups"): "runs",
    ("POST", f"{_API}/runs/{{id}}/feedback"): "runs",
    ("GET", f"{_API}/feedback"): "runs",
    ("GET", f"{_API}/conversations"): "runs",
    ("PUT", f"{_API}/conversations/{{id}}"): "ask",
    ("DELETE", f"{_API}/conversations/{{id}}"): "ask",
    ("POST", f"{_API}/threads"): "ask",
    ("GET", f"{_API}/threads"): "runs",
    ("GET", f"{_API}/threads/{{id}}"): "runs",
    ("DELETE", f"{_API}/threads/{{id}}"): "ask",
    ("POST", f"{_API}/threads/{{id}}/standalone"): "ask",
    ("POST", f"{_API}/threads/{{id}}/turns"): "ask",
    ("GET", f"{_API}/threads/{{id}}/changes"): "runs",
    ("GET", f"{_API}/threads/{{id}}/export"): "runs",
    ("POST", f"{_API}/search"): "search",
    ("GET", f"{_API}/passages/{{id}}"): "read",
    ("GET", f"{_API}/labels"): "read",
    ("GET", f"{_API}/sources"): "read",
    ("GET", f"{_API}/kb"): "read",
    ("GET", f"{_API}/graph/concepts"): "read",
    ("GET", f"{_API}/graph/concepts/{{id}}"): "read",
    ("GET", f"{_API}/transparency"): "read",
    ("GET", f"{_API}/examples"): "read",
    ("GET", "/v1/models"): "read",
    ("GET", "/v1/models/{id}"): "read",
    ("GET", f"{_API}/evaluations"): "evaluations",
    ("GET", f"{_API}/evaluations/{{name}}"): "evaluations",
    ("GET", f"{_API}/evaluations/{{name}}/samples"): "evaluations",
    ("GET", f"{_API}/uploads"): "upload",
    ("POST", f"{_API}/uploads/{{source}}"): "upload",
    ("POST", f"{_API}/uploads/{{source}}/{{name}}/reread"): "upload",
    ("GET", f"{_API}/uploads/{{source}}"): "upload",
    ("DELETE", f"{_API}/uploads/{{source}}/{{name}}"): "upload",
    ("GET", f"{_API}/launch"): "read",
    ("DELETE", f"{_API}/launch"): "read",
    ("GET", "/cds-services"): "hooks",
    ("POST", "/cds-services/{id}"): "hooks",
    ("POST", "/cds-services/{id}/feedback"): "hooks",
    ("GET", "/metrics"): "operate",
}
TOOL_VERBS: dict[str, Verb] = {
    "search_evidence": "search",
    "search": "search",
    "get_passage": "read",
    "fetch": "read",
    "lookup_concept": "read",
    "answer_question": "ask",
    "plan_sources": "plan",
    "calculate": "calculate",
    "list_formulas": "calculate",
    "read_patient": "patients",
}


@dataclass(frozen=True, slots=True)
class KeyScope:
    """The limits of a key. The default is what a key made without any has: no private source."""

    sources: tuple[str, ...] = (PUBLIC,)
    verbs: tuple[str, ...] = ()
    """Empty = all."""
    strategies: tuple[str, ...] = ()
    """Empty = all."""
    patients: tuple[str, ...] = ()
    """Document ids of `emr`; empty = every record that `sources` opens."""
    tokens: int | None = None
    """Model tokens in a day (UTC); `None` = no bound."""

    def narrow_settings(self, settings: Settings) -> Settings:
        """The settings as this key has them: never more than the server's own."""
        own = settings.access
        sources = _meet_sources(own, self.sources)
        patients = self.patients or own.patients
        if self.patients and own.patients:
            # Records that both name; where there are none, a name that no record has.
            patients = tuple(one for one in self.patients if one in own.patients) or ("",)
        if (sources, patients) == (own.sources, own.patients):
            return settings
        narrowed = own.model_copy(update={"sources": sources, "patients": patients})
        return settings.model_copy(update={"access": narrowed})

    def require_verb(self, verb: Verb | None) -> None:
        """Raises `RefusedRequest` (403); `None` stands for an operation without a verb."""
        if verb is None or not self.allows_verb(verb):
            raise RefusedRequest(
                403, "not_in_scope", f"this key may not {verb or 'do this'}", fix="use another key"
            )

    def allows_verb(self, verb: Verb) -> bool:
        return not self.verbs or verb in self.verbs

    def allows_strategy(self, kind: str) -> bool:
        return not self.strategies or kind in self.strategies

    def describe_limits(self) -> str:
        """One line for a reader: "sources public,emr; tokens 200000"."""
        limits = {key: value for key, value in asdict(self).items() if value}
        return "; ".join(
            f"{key} {','.join(value) if isinstance(value, tuple) else value}"
            for key, value in limits.items()
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)


def read_scope(text: str) -> KeyScope:
    """The scope as `to_json` wrote it; "" = the default one."""
    stored: dict[str, Any] = json.loads(text or "{}")
    lists = {key: tuple(value) for key, value in stored.items() if isinstance(value, list)}
    return KeyScope(**{**stored, **lists})


def make_scope(**given: Any) -> KeyScope:
    """The scope of these parts, empty ones left out. Raises `BadArgument` for an unknown word."""
    scope = KeyScope(**{key: value for key, value in given.items() if value})
    for what, words, allowed in (
        ("verb", scope.verbs, VERBS),
        ("strategy", scope.strategies, tuple(STRATEGIES)),
    ):
        if unknown := sorted(set(words) - set(allowed)):
            raise BadArgument(
                f"unknown {what} {unknown[0]!r}", fix=f"choose from {', '.join(allowed)}"
            )
    return scope


def local_scope(limits: ServeSettings) -> KeyScope:
    """Of callers on this machine without a key: no private source, unless the settings say so."""
    more = (EMR,) if limits.patients else ()
    return KeyScope(sources=tuple(dict.fromkeys((*limits.sources, *more))))


def _meet_sources(own: AccessSettings, asked: Sequence[str]) -> tuple[str, ...]:
    """What both let through."""
    if EVERY in own.sources:
        return tuple(asked)
    if EVERY in asked:
        return own.sources
    other = AccessSettings(private=own.private, sources=tuple(asked))
    named = {*own.sources, *asked} - {PUBLIC}
    both = [name for name in sorted(named) if own.may_search(name) and other.may_search(name)]
    if PUBLIC in own.sources and PUBLIC in asked:
        both.insert(0, PUBLIC)
    return tuple(both) or ("",)  # no source has an empty name


@dataclass(frozen=True, slots=True)
class RunReach:
    """What a run could find: whoever may see it may find the same."""

    sources: tuple[str, ...] = (PUBLIC,)
    patients: tuple[str, ...] = ()

    def is_open_to(self, access: AccessSettings) -> bool:
        if not all(_may_see(access, source) for source in self.sources):
            return False
        if EMR not in self.sources or not access.patients:
            return True
        return bool(self.patients) and set(self.patients) <= set(access.patients)


def read_reach(text: str) -> RunReach | None:
    """The reach as the ledger has it; `None` for that of an older version, which has none."""
    if not text:
        return None
    stored = json.loads(text)
    return RunReach(tuple(stored["sources"]), tuple(stored["patients"]))


def recorded_reach(folder: Path) -> RunReach:
    """Of a kept run. Raises `BadRun`."""
    record = read_record(folder)
    patients = record.settings.get("access", {}).get("patients", ())
    return RunReach(record.sources, tuple(patients))


def reach_of(settings: Settings) -> RunReach:
    """Of a run with these settings."""
    from osler.build.knowledge import open_record_source

    access = settings.access
    usual = tuple(PUBLIC if name == EVERY else name for name in access.sources)
    open_ones = tuple(name for name in usual if not access.is_private(name))
    named = settings.kb.sources or (*open_ones, *open_record_source(access))
    return RunReach(tuple(named), access.patients)


def _may_see(access: AccessSettings, source: str) -> bool:
    if source == PUBLIC:
        return EVERY in access.sources or PUBLIC in access.sources
    return access.may_search(source)


def reach_from_lines(access: AccessSettings, lines: Iterable[str]) -> RunReach:
    """Of a run of which nothing but its events is left: the private sources that they name."""
    text = "\n".join(lines)
    # Ids of passages begin so. A question that quotes one hides its run: that is the safe side.
    private = tuple(one for one in dict.fromkeys((EMR, *access.private)) if f'"{one}:' in text)
    return RunReach((PUBLIC, *private))
