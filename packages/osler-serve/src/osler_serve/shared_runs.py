"""Runs that are not over, as all servers of one home see them.

Each server has a folder below `home/serve/live`, whose lock the system lets go of when the process
dies. In it every run has a file with the lines that it has said so far, which other servers read on
from. A server that finds another's lock free takes that one's runs and works on them anew.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from osler.errors import KnowledgeBaseBusy
from osler.kb.store.access import hold_lock
from osler.methods.omni.dossier import SavedPlan
from osler.settings import Settings
from osler.types import DangerNotice, Question
from osler_serve.active_runs import ActiveRun
from osler_serve.ledger import Ledger, RunClaim

# Seconds that a server waits for another that looks for dead ones.
_START = 10.0
_COUNTS = "asked"


@dataclass(frozen=True)
class StoredRequest:
    """What another server needs to work on a run."""

    question: Question
    settings: Settings
    workspace: str
    created: str
    plan: SavedPlan | None
    danger: DangerNotice | None

    def to_json(self) -> str:
        return _REQUEST.dump_json(self).decode()


_REQUEST = TypeAdapter(StoredRequest)


def read_request(text: str) -> StoredRequest | None:
    """`None` for one of another version."""
    try:
        # As Python: in JSON a path that a section made of another is none.
        return _REQUEST.validate_python(json.loads(text))
    except ValidationError:
        return None


class SharedRuns:
    """What this server tells others of its runs, and learns of theirs. Every method blocks for a
    moment, but for `write_line`."""

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self._ledger, self._folder = ledger, folder
        self._files: dict[str, FileIO] = {}
        self.worker = ""
        """This server's folder; "" = it shares nothing."""

    @contextmanager
    def hold_open(self) -> Iterator[None]:
        """Shares this server's runs until the block ends."""
        name = secrets.token_hex(6)
        place = self._folder / name
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with ExitStack() as held:
            with hold_lock(self._folder, wait=_START):  # nobody takes it for a dead one's yet
                place.mkdir(mode=0o700)
                held.enter_context(hold_lock(place))
            self.worker = name
            yield
            self.worker = ""
        shutil.rmtree(place, ignore_errors=True)

    def make_claim(self, live: ActiveRun) -> RunClaim:
        caller = live.caller
        request = StoredRequest(
            live.question, live.settings, caller.workspace, live.created, live.plan, live.danger
        )
        return RunClaim(live.id, self.worker, caller.id, live.reserved, 0, request.to_json())

    def open_lines(self, id: str, lines: list[str]) -> None:
        """Begins the file of a run of this server."""
        with suppress(OSError):  # without it others see the run at its end alone
            file = FileIO(str(self._path(self.worker, id)), "wb")
            self._files[id] = file
            file.write("".join(f"{line}\n" for line in lines).encode())

    def write_line(self, id: str, line: str) -> None:
        if (file := self._files.get(id)) is not None:
            with suppress(OSError):
                file.write(f"{line}\n".encode())

    def close_lines(self, id: str) -> None:
        """The run is over, and the ledger knows how it ended."""
        if (file := self._files.pop(id, None)) is not None:
            file.close()
            for path in (Path(str(file.name)), self._stop_path(self.worker, id)):
                path.unlink(missing_ok=True)

    def find_lines(self, id: str) -> Path | None:
        """The lines of a run of another server; `None` of one that is over, or nobody's."""
        claim = self._ledger.find_claim(id)
        return None if claim is None else self._path(claim.worker, id)

    def read_lines(self, id: str) -> list[str]:
        """What a run of another server has said so far."""
        path = self.find_lines(id)
        return [] if path is None else _whole_lines(path)

    def ask_to_stop(self, id: str) -> None:
        """Asks the server that works on the run to cancel it."""
        if (claim := self._ledger.find_claim(id)) is not None:
            with suppress(OSError):
                self._stop_path(claim.worker, id).touch()

    def asked_to_stop(self) -> list[str]:
        """Runs of this server that another was asked to cancel."""
        return [path.stem for path in self._folder.joinpath(self.worker).glob("*.stop")]

    def take_orphans(self) -> list[tuple[RunClaim, list[str]]]:
        """The runs of servers that died, which are this one's now, and what they said there."""
        taken: list[tuple[RunClaim, list[str]]] = []
        others = [path for path in self._folder.iterdir() if path.is_dir()]
        with suppress(KnowledgeBaseBusy), hold_lock(self._folder):
            for path in others:
                if path.name == self.worker:
                    continue
                with suppress(KnowledgeBaseBusy), hold_lock(path):
                    claims = self._ledger.take_claims(path.name, self.worker)
                    taken += [(one, _whole_lines(self._path(path.name, one.id))) for one in claims]
                    shutil.rmtree(path, ignore_errors=True)
        return taken

    def share_counts(self, own: Mapping[str, int]) -> Mapping[str, int]:
        """Tells other servers how often each caller asked in the last minute; what they told."""
        told: Counter[str] = Counter()
        others = [one for one in self._folder.iterdir() if one.is_dir() and one.name != self.worker]
        for place in others:
            with suppress(OSError, ValueError):  # it has just started, or ended
                told.update(json.loads((place / _COUNTS).read_text()))
        if others:
            with suppress(OSError):  # a full disk: each then counts its own
                draft = self._folder / self.worker / f"{_COUNTS}.new"
                draft.write_text(json.dumps(own))
                draft.replace(draft.with_suffix(""))
        return told

    def _path(self, worker: str, id: str) -> Path:
        return self._folder / worker / f"{id}.jsonl"

    def _stop_path(self, worker: str, id: str) -> Path:
        return self._folder / worker / f"{id}.stop"


def _whole_lines(path: Path) -> list[str]:
    with suppress(OSError):
        text = path.read_bytes()
        return text[: text.rfind(b"\n") + 1].decode().split("\n")[:-1]
    return []
