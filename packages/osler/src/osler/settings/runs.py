"""Settings of what is recorded, runs and the audit log, and of the bounds of one run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from osler.settings.fields import (
    Limit,
    OptionalPlace,
    Place,
    RealLimit,
    SettingsSection,
)


class RunsSettings(SettingsSection):
    path: Place = Field(description='Folder of the recorded runs (default: "runs" in home).')
    keep: bool = True
    """Keep each run, so that it can be shown and replayed."""
    days: RealLimit = None
    """Days after which the server, and `osler forget --expired`, deletes a run."""


class BudgetSettings(SettingsSection):
    calls: Limit = None
    """Model calls of one run, at most; "none" = unbounded."""
    tokens: Limit = None
    """Tokens read, written or scored, at most."""
    searches: Limit = None
    """Searches, at most."""
    seconds: RealLimit = None
    """Seconds spent in model calls, at most; one that takes longer is stopped."""
    money: RealLimit = None
    """Money, at most, in the currency of [prices]; every model on a server needs a price then."""


_Switch = Annotated[
    Literal["off", "warn", "require"],
    # TOML and the environment read a bare off as false.
    BeforeValidator(lambda value: "off" if value is False else value),
]


class AuditSettings(SettingsSection):
    log: _Switch = "off"
    """The audit log (docs/guide/security.md): warn keeps one and goes on where it cannot be
    written; require answers nothing then. Needs the extra audit."""
    content: Literal["hash", "text"] = "hash"
    """What it holds of questions: their keyed hash, or their text."""
    path: OptionalPlace = None
    """Folder of the log (default: "audit" in home)."""
    key_file: OptionalPlace = None
    """File of the signing key (default: key.pem in the log's folder; made there)."""
    anchor: OptionalPlace = None
    """File outside of home that holds the last signed checkpoint, by which a log that was cut or
    set back is known (default: in the user's folder of states)."""
    copies: OptionalPlace = None
    """File in a second place, to which every hundredth signed checkpoint is
    appended."""
