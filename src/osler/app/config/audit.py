"""Settings of the audit log: whether there is one, what it holds, and where its copies go."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from osler.app.config.fields import OptionalPlace, SettingsSection, Whole

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
    copies: OptionalPlace = None
    """File in a second place, to which signed checkpoints are appended."""
    every: Whole = Field(default=100, ge=1, le=1_000_000)
    """Entries from one copied checkpoint to the next."""
