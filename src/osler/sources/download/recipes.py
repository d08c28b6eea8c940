"""Recipes: the downloads that the package knows, as data (`recipes.toml`)."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from osler.errors import BadConfig
from osler.text import read_packaged_table

Listing = Literal["files", "index", "hub", "releases", "none"]
Check = Literal["none", "md5-beside", "md5-list", "hub"]


class DownloadRecipe(BaseModel):
    """One download. Immutable; the fields are those of `recipes.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    source: str = Field(description="Source that `kb add` should put it under.")
    base: str = Field(description="Address that `--mirror` takes the place of.")
    listing: Listing = "files"
    files: tuple[str, ...] = Field(default=(), description="Paths under the base.")
    folder: str = Field(default="", description="Path under the base of an index, or in a hub.")
    pattern: str = Field(
        default="", description="Of the files of a listing, as a regular expression."
    )
    check: Check = "none"
    sums: str = Field(default="", description='Path of the list of sums, with check = "md5-list".')
    key: str = Field(default="", description="Environment variable that holds the key.")
    key_parameter: str = Field(default="", description='Of the address; "" = none is sent so.')
    key_login: bool = Field(default=False, description="The key is USER:PASSWORD of HTTP Basic.")
    through: str = Field(default="", description="Address that takes `url=` and the key.")
    licence: str
    licence_url: str
    bytes: int = Field(ge=0, description="About how much; 0 = not known.")
    confirmed: str = Field(description='When the address was last seen to be right; "unconfirmed".')
    format: str = Field(default="", description="For `kb add --format`; empty = recognised.")
    use: str = Field(default="", description="What it is for, where it is not for `kb add`.")
    note: str = ""

    @model_validator(mode="after")
    def _check_fields(self) -> DownloadRecipe:
        if self.listing == "files" and not self.files:
            raise ValueError("a list of files is empty")
        if self.listing in {"index", "hub", "releases"} and not self.pattern:
            raise ValueError("a listing needs a pattern")
        if self.check == "md5-list" and not self.sums:
            raise ValueError("a list of sums needs its path")
        return self


@cache
def load_recipes() -> dict[str, DownloadRecipe]:
    """The recipes by name, in the order of the file."""
    return {
        name: DownloadRecipe(name=name, **fields)
        for name, fields in read_packaged_table(__package__, "recipes.toml").items()
    }


def find_recipe(name: str) -> DownloadRecipe:
    """The recipe of this name. Raises `BadConfig`, with the known names, for any other."""
    try:
        return load_recipes()[name]
    except KeyError:
        known = ", ".join(load_recipes())
        raise BadConfig(f"there is no recipe {name!r}", fix=f"use one of {known}") from None
