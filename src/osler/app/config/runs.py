"""Settings of recorded runs and of the bounds of one run."""

from __future__ import annotations

from pydantic import Field

from osler.app.config.fields import Limit, Place, RealLimit, SettingsSection


class RunsSettings(SettingsSection):
    path: Place = Field(description='Folder of the recorded runs (default: "runs" in home).')
    keep: bool = True
    """Keep each run, so that it can be shown and replayed."""
    days: RealLimit = None
    """Days after which the server, and `osler forget --expired`, deletes a run."""


class BudgetSettings(SettingsSection):
    calls: Limit = None
    """Model calls of one run, at most; "none" = unbounded."""
    tokens: Limit = Field(default=None, description="Tokens read, written or scored, at most.")
    searches: Limit = Field(default=None, description="Searches, at most.")
    seconds: RealLimit = None
    """Seconds spent in model calls, at most; one that takes longer is stopped."""
