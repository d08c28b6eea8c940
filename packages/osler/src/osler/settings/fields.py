"""Kinds of values that settings have, and how each is written in a file or the environment."""

from __future__ import annotations

import tomllib
from contextlib import suppress
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


_NUMBER, _OR_NONE = BeforeValidator(_reject_boolean), BeforeValidator(parse_none)
Whole = Annotated[int, _NUMBER]
Real = Annotated[float, _NUMBER, Field(allow_inf_nan=False)]
Limit = Annotated[Annotated[int, Field(ge=1, le=1_000_000_000), _NUMBER] | None, _OR_NONE]
RealLimit = Annotated[
    Annotated[float, Field(gt=0, le=1_000_000_000, allow_inf_nan=False), _NUMBER] | None, _OR_NONE
]
ShareLimit = Annotated[
    Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _NUMBER] | None, _OR_NONE
]
Place = Annotated[Path, BeforeValidator(_expand_home)]


def _parse_date(value: object) -> object:
    """A year as a number, a month as "2024-03", a day as a date."""
    if not isinstance(value, str):
        return _reject_boolean(value)
    for form in ("%Y", "%Y-%m", "%Y-%m-%d"):
        with suppress(ValueError):
            day = datetime.strptime(value, form).date()
            return {"%Y": day.year, "%Y-%m": f"{day:%Y-%m}"}.get(form, day)
    raise ValueError("write a date as 2024, 2024-03 or 2024-03-31")


PartialDate = Annotated[
    Annotated[int, Field(ge=1000, le=9999, strict=True)]
    | date
    | Annotated[str, Field(pattern=r"^[1-9]\d{3}-\d\d$")]
    | None,
    BeforeValidator(_parse_date),
    _OR_NONE,
]
OptionalPlace = Annotated[Place | None, _OR_NONE]
Places = Annotated[tuple[Place, ...], BeforeValidator(split_list)]
Names = Annotated[tuple[str, ...], BeforeValidator(split_list)]
SourceNames = Annotated[tuple[SourceName, ...], BeforeValidator(split_list)]


def first_day(given: int | date | str) -> int:
    """The first day of a year or month, or the day, as 20240131."""
    return _fill(given, "0101")


def last_day(given: int | date | str) -> int:
    """The last day of a year or month, or the day, as 20240131; any month's is a 31st."""
    return _fill(given, "1231")


def _fill(given: int | date | str, month_and_day: str) -> int:
    digits = str(given).replace("-", "")  # 2024, 202401 or 20240131
    return int(digits + f"yyyy{month_and_day}"[len(digits) :])


class SettingsSection(BaseModel):
    """A section of the settings. The text below a key is its description: for files and guides."""

    # pydantic would read the descriptions from the source at every start: `show` does when asked.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
