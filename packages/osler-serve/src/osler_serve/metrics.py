"""Counts for Prometheus; a registry of its own for each server."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from osler.trace import Asked, Event, Retrieved
from osler_serve.active_runs import ActiveRun
from osler_serve.run_manager import RunManager

MEDIA = "text/plain; version=1.0.0; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


# Where the workers of a server put their counts together; the name is prometheus_client's.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class ServerMetrics:
    """No label holds what somebody wrote."""

    def __init__(self) -> None:
        self.registry = here = CollectorRegistry()
        # What a process reads when it is asked cannot be put together with others'.
        self._own = CollectorRegistry() if METRICS_FOLDER in os.environ else here
        self._requests = Counter(
            "osler_http_requests",
            "Requests by route and status.",
            ("route", "status"),
            registry=here,
        )
        self._seconds = Histogram(
            "osler_http_seconds",
            "To the end of the reply.",
            ("route",),
            buckets=_SECONDS,
            registry=here,
        )
        self._runs = Counter(
            "osler_runs", "Runs that ended.", ("strategy", "status"), registry=here
        )
        self._tokens = Counter(
            "gen_ai_client_token_usage", "Tokens of models.", ("role", "kind"), registry=here
        )
        self._calls = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "Of a model call.",
            ("role", "operation"),
            buckets=_SECONDS,
            registry=here,
        )
        self._down = Counter("osler_source_failures", "Searches with a source down.", registry=here)

    def watch_runs(self, desk: RunManager) -> None:
        """Reads how many runs there are when asked."""
        unfinished = Gauge("osler_runs_unfinished", "Runs queued or running.", registry=self._own)
        unfinished.set_function(lambda: desk.unfinished)
        running = Gauge("osler_runs_running", "Runs worked on.", registry=self._own)
        running.set_function(lambda: desk.running)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_event(self, live: ActiveRun, event: Event) -> None:
        match event:
            case Asked(role=role, kind=kind, usage=usage):
                self._tokens.labels(role, "input").inc(usage.prompt_tokens + usage.scored_tokens)
                self._tokens.labels(role, "output").inc(usage.completion_tokens)
                self._calls.labels(role, kind).observe(usage.seconds)
            case Retrieved(failed=failed) if failed:
                self._down.inc()
            case _:
                return

    def count_end(self, live: ActiveRun) -> None:
        """Also of a run that failed before it began."""
        self._runs.labels(live.settings.strategy.kind, live.status).inc()

    def render_text(self) -> bytes:
        """Counts and times of all workers together; how many runs there are, of this one."""
        if METRICS_FOLDER not in os.environ:
            return generate_latest(self.registry)
        every = CollectorRegistry()
        MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return generate_latest(every) + generate_latest(self._own)
