"""What an entry says: who asked what, of which sources, with which models, and what was shown."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_state_dir

from osler.errors import StorageFailed, translate_os_errors
from osler.kb.store.durable import write_private
from osler.llm.core.cache import hash_file
from osler.settings import Settings
from osler.trace import Answered, Event, Retrieved, Sink
from osler.types import Question

if TYPE_CHECKING:
    from osler.audit.log import AuditLog

_LOG = logging.getLogger("osler.audit")
_SALT = "salt"
RUN_FILES = {"events": "events.jsonl", "tape": "tape.jsonl", "record": "run.json"}


def log_folder(settings: Settings) -> Path:
    return settings.audit.path or settings.home / "audit"


def open_audit(settings: Settings) -> AuditLog | None:
    """The log that the settings name; `None` = off. Raises `BadConfig` and `StorageFailed`."""
    return None if settings.audit.log == "off" else _open_log(*audit_places(settings))


def audit_places(settings: Settings) -> tuple[Path, Path, Path | None, tuple[Path, ...]]:
    """Folder, signing key, the place of copies and the anchors of the log."""
    chosen, folder = settings.audit, log_folder(settings)
    key_file = chosen.key_file or folder / "key.pem"
    return folder, key_file, chosen.copies, anchor_places(settings)


def anchor_places(settings: Settings) -> tuple[Path, ...]:
    """Beside the signing key, a row of the server's ledger, and outside of home."""
    from osler.audit.checkpoints import LEDGER

    folder = log_folder(settings)
    name = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16]
    state = Path(user_state_dir("osler", appauthor=False))
    key_file = settings.audit.key_file or folder / "key.pem"
    return (
        key_file.with_name(f"{key_file.name}.checkpoint"),
        settings.home / "serve" / LEDGER,
        settings.audit.anchor or state / "audit" / f"{name}.checkpoint",
    )


@cache
def _open_log(*places: Any) -> AuditLog:
    log = make_log(*places)
    log.check()
    return log


def make_log(
    folder: Path, key_file: Path, copies: Path | None, anchors: tuple[Path, ...]
) -> AuditLog:
    """The log at these places, not yet checked."""
    from osler.audit.checkpoints import CheckpointSigner
    from osler.audit.log import AuditLog

    return AuditLog(folder, CheckpointSigner(key_file), copies, anchors=anchors)


def write_entry(settings: Settings, record: Mapping[str, Any]) -> None:
    """Appends it, where there is a log. Blocks.

    Raises `StorageFailed` where it cannot be written and audit.log is "require".
    """
    try:
        if (log := open_audit(settings)) is not None:
            log.append(record)
    except StorageFailed as error:
        if settings.audit.log == "require":
            raise
        _LOG.warning("an entry is missing: %s", error)


def check_audit(settings: Settings) -> None:
    """Raises `StorageFailed` where `write_entry` would. Blocks."""
    if settings.audit.log == "require" and (log := open_audit(settings)) is not None:
        log.check_writable()


def content_of(settings: Settings, text: str) -> str:
    """The text, or its hash under a secret of the log's: short texts could be guessed otherwise."""
    if settings.audit.content == "text":
        return text
    return (
        "hmac-sha256:" + hmac.new(_salt(log_folder(settings)), text.encode(), "sha256").hexdigest()
    )


@cache
def _salt(folder: Path) -> bytes:
    path = folder / _SALT
    with translate_os_errors(f"{path} cannot be read or made", StorageFailed):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            write_private(path, secrets.token_bytes(32))
        return path.read_bytes()


def record_reading(settings: Settings, verb: str, asked: str, shown: list[str]) -> None:
    """Of a search or a passage on the command line. Raises as `write_entry` does."""
    if settings.audit.log != "off":
        entry = {"what": f"command.{verb}", "asked": content_of(settings, asked), "shown": shown}
        write_entry(settings, entry)


class HeldAnswer:
    """Passes events on as they come, but for the answer: that waits until it is on record."""

    def __init__(self, sink: Sink | None, *, hold: bool) -> None:
        self._sink, self._hold = sink, hold
        self._held: list[Event] = []

    def __call__(self, event: Event) -> None:
        if self._hold and isinstance(event, Answered):
            self._held.append(event)
        elif self._sink is not None:
            self._sink(event)

    def release(self) -> None:
        for event in self._held:
            if self._sink is not None:
                self._sink(event)
        self._held.clear()


def begin_entry(settings: Settings, run: str, question: Question) -> None:
    """Written before a model is asked. Raises as `write_entry` does."""
    if settings.audit.log != "off":
        asked = content_of(settings, question.with_options)
        write_entry(settings, {"what": "run.begun", "run": run, "asked": asked})


def end_entry(
    settings: Settings,
    question: Question,
    facts: Mapping[str, Any],
    events: Sequence[Event],
    folder: Path | None,
) -> None:
    """What was shown, with the hashes of the run's files, where it was kept; before it is shown.

    Raises as `write_entry` does.
    """
    if settings.audit.log == "off":
        return
    answer = events[-1].solution.answer if isinstance(events[-1], Answered) else None
    found = (note.passage for one in events if isinstance(one, Retrieved) for note in one.hits)
    files = {} if folder is None else RUN_FILES
    write_entry(
        settings,
        {
            "what": "run",
            **facts,
            "asked": content_of(settings, question.with_options),
            "shown": content_of(settings, answer.text if answer else ""),
            "cited": [one.passage.id for one in answer.evidence] if answer else [],
            "found": sorted(set(found)),
            **{name: hash_file(folder / file) for name, file in files.items() if folder},
        },
    )
