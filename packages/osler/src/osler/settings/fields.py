"""Kinds of values that settings have, and how each is written in a file or the environment."""

from __future__ import annotations

import tomllib
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from osler.reports import SourceName

# How "no bound" and "no file" are written in a file or in the environment.
NONE = "none"


def _reject_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number, not true or false")
    return value


def parse_none(value: object) -> object:
    return None if value == NONE else value


def split_list(value: object) -> object:
    """The environment and the command line write a list as "a,b", or as TOML and JSON do."""
    if not isinstance(value, str):
        return value
    text, form = value.strip(), 'write a list as a,b or as ["a", "b"]'
    if text.startswith("["):
        try:
            return tomllib.loads(f"list = {text}")["list"]
        except tomllib.TOMLDecodeError as error:
            raise ValueError(form) from error
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if any(part[0] in "\"'" for part in parts):
        raise ValueError(form)
    return parts


def _expand_home(value: object) -> object:
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("expected a path, not an empty text")
        return Path(value).expanduser()
    return value


Whole = Annotated[int, BeforeValidator(_reject_boolean)]
Real = Annotated[float, BeforeValidator(_reject_boolean), Field(allow_inf_nan=False)]
Limit = Annotated[
    Annotated[int, Field(ge=1, le=1_000_000_000), BeforeValidator(_reject_boolean)] | None,
    BeforeValidator(parse_none),
]
RealLimit = Annotated[
    Annotated[
        float,
        Field(gt=0, le=1_000_000_000, allow_inf_nan=False),
        BeforeValidator(_reject_boolean),
    ]
    | None,
    BeforeValidator(parse_none),
]
ShareLimit = Annotated[
    Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(_reject_boolean)]
    | None,
    BeforeValidator(parse_none),
]
Place = Annotated[Path, BeforeValidator(_expand_home)]


def _parse_year_or_day(value: object) -> object:
    if not isinstance(value, str):
        return _reject_boolean(value)
    if value.isdecimal() and len(value) == 4:
        return int(value)
    try:
        return _parse_day(value)
    except ValueError:
        raise ValueError("write a year or a day, as 2024 or 2024-01-31") from None


def _parse_day(value: object) -> object:
    if isinstance(value, str):
        try:
            return datetime.strptime(value, "%Y-%m-%d").date()
        except ValueError:
            raise ValueError("write a day as 2024-01-31") from None
    return _reject_boolean(value)


Day = Annotated[date | None, BeforeValidator(_parse_day), BeforeValidator(parse_none)]
YearOrDay = Annotated[
    Annotated[int, Field(ge=1000, le=9999, strict=True)] | date | None,
    BeforeValidator(_parse_year_or_day),
    BeforeValidator(parse_none),
]
OptionalPlace = Annotated[Place | None, BeforeValidator(parse_none)]
Places = Annotated[tuple[Place, ...], BeforeValidator(split_list)]
Names = Annotated[tuple[str, ...], BeforeValidator(split_list)]
SourceNames = Annotated[tuple[SourceName, ...], BeforeValidator(split_list)]


def first_day(given: int | date) -> int:
    """A year's first day, or the day, as 20240131."""
    return given * 10_000 + 101 if isinstance(given, int) else last_day(given)


def last_day(given: int | date) -> int:
    """A year's last day, or the day, as 20240131."""
    if isinstance(given, int):
        return given * 10_000 + 1231
    return given.year * 10_000 + given.month * 100 + given.day


class SettingsSection(BaseModel):
    """A section of the settings. The text below a key is its description: for files and guides."""

    # pydantic would read the descriptions from the source at every start: `show` does when asked.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
