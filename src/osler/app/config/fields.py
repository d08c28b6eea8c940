"""Kinds of values that settings have, and how each is written in a file or the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

NONE = "none"
"""How "no bound" and "no file" are written in a file or in the environment."""


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not true or false")
    return value


def none(value: object) -> object:
    return None if value == NONE else value


def listed(value: object) -> object:
    """The environment and the command line write a list as "a,b"."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _at_home(value: object) -> object:
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("a path is wanted, not an empty text")
        return Path(value).expanduser()
    return value


Whole = Annotated[int, BeforeValidator(_no_truth_value)]
Real = Annotated[float, BeforeValidator(_no_truth_value), Field(allow_inf_nan=False)]
Limit = Annotated[
    Annotated[int, Field(ge=1, le=1_000_000_000), BeforeValidator(_no_truth_value)] | None,
    BeforeValidator(none),
]
RealLimit = Annotated[
    Annotated[
        float,
        Field(gt=0, le=1_000_000_000, allow_inf_nan=False),
        BeforeValidator(_no_truth_value),
    ]
    | None,
    BeforeValidator(none),
]
ShareLimit = Annotated[
    Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(_no_truth_value)]
    | None,
    BeforeValidator(none),
]
Year = Annotated[
    Annotated[int, Field(ge=1000, le=9999), BeforeValidator(_no_truth_value)] | None,
    BeforeValidator(none),
]
Place = Annotated[Path, BeforeValidator(_at_home)]
SourceName = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
