"""Settings of the notice to people in danger: on or off, contacts, custom rules."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from osler.danger.notice import ANYWHERE, region_names
from osler.settings.fields import OptionalPlace, SettingsSection


def _parse_switch(value: object) -> object:
    return {True: "on", False: "off"}.get(value) if isinstance(value, bool) else value


class DangerSettings(SettingsSection):
    notice: Annotated[Literal["on", "off"], BeforeValidator(_parse_switch)] = "on"
    """Whether a question about an emergency or self-harm is answered with emergency contacts first
    (docs/guide/danger.md)."""
    region: str = ANYWHERE
    """Whose numbers are named: us, gb, cn, eu, …; any = those of no country."""
    emergency: str = Field(default="", max_length=200)
    """Whom to call in an emergency, instead of the region's, as in "2222"."""
    crisis: str = Field(default="", max_length=200)
    """Whom to call in a crisis, instead of the region's crisis line."""
    note: str = Field(default="", max_length=1_000)
    """A text of your own that ends the notice."""
    classifier: Annotated[Literal["on", "off"], BeforeValidator(_parse_switch)] = "on"
    """Whether a small classifier is asked beside the rules."""
    rules: OptionalPlace = None
    """A rules file of your own, in place of the packaged one."""

    @field_validator("region")
    @classmethod
    def _check_region(cls, region: str) -> str:
        if region not in region_names():
            raise ValueError(f"choose one of {', '.join(region_names())}")
        return region
