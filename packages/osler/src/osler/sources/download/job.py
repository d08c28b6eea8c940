"""Downloads a whole recipe: lists its files, checks the room, fetches two at a time."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ConfigDict, Field, model_validator

from osler.errors import BadConfig, OslerError, translate_os_errors
from osler.sources.download.transfer import (
    Fetcher,
    FetchFailed,
    Progress,
    RemoteFile,
    RetryPolicy,
    Sleep,
    describe_hub_file,
    parse_objects,
)
from osler.sources.online.address_guard import PinnedTransport, refuse_private
from osler.sources.online.client import AGENT
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
    passages: int = Field(default=0, ge=0, description="About how many they make; 0 = not known.")
    newest: bool = Field(default=False, description="Of a listing, only the last by name.")
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


AT_ONCE = 2
_HREF = re.compile(r"""href\s*=\s*["']([^"'?#]+)["']""", re.IGNORECASE)
# Times the size that must be free, so that other programs do not meet a full disk.
_ROOM = 1.05


class LicenceNotAccepted(BadConfig):
    """The licence of a recipe has not been accepted."""


@dataclass(frozen=True)
class DownloadResult:
    """The files that a recipe gave."""

    recipe: DownloadRecipe
    folder: Path
    files: tuple[Path, ...]
    bytes: int


@dataclass(frozen=True)
class DownloadJob:
    """One recipe to one folder."""

    recipe: DownloadRecipe
    folder: Path
    mirror: str = ""
    """Takes the place of the recipe's base; the paths under it are the same."""
    only: int | None = None
    """The first files of a listing, at most."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    patience: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Sleep = time.sleep
    room: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free

    def run(self, *, accepted: bool, progress: Progress | None = None) -> DownloadResult:
        """Fetches and checks all files; those that are there already are checked (`Fetcher.fetch`).

        Raises `LicenceNotAccepted`, `BadConfig` (a key that is not set, instructions only) and
        `FetchFailed`. After a failure the fetched files stay, and the next run goes on.
        """
        recipe = self.recipe
        if recipe.listing == "none":
            raise BadConfig(f"{recipe.name} is not fetched: {recipe.note}", fix=recipe.licence_url)
        if not accepted:
            raise LicenceNotAccepted(
                f"{recipe.title}: {recipe.licence} ({recipe.licence_url})",
                fix="read it, and run the command again with --accept-licence",
            )
        key = self._read_key()
        fix = "free some disk space; the next run goes on where this one stopped"
        with translate_os_errors(f"{self.folder} cannot be written to", FetchFailed, fix):
            return self._run_open(key, progress)

    def _run_open(self, key: str, progress: Progress | None) -> DownloadResult:
        recipe = self.recipe
        self.folder.mkdir(parents=True, exist_ok=True)
        own_host = httpx2.URL(self.base).host
        # Called for each redirect too, also where a proxy of the environment makes the connection.
        hooks: dict[str, list[Callable[..., Any]]] = {
            "request": [partial(refuse_private, own_host=own_host)]
        }
        direct = {"all://": PinnedTransport(own_host)}
        with httpx2.Client(
            headers={"User-Agent": AGENT}, event_hooks=hooks, mounts=direct
        ) as client:
            fetcher = Fetcher(client, self.patience, self.sleep)
            remotes = self._list_remotes(fetcher, key)[: self.only]
            self._check_room(remotes)
            paths = self._fetch_all(fetcher, remotes, progress)
        return DownloadResult(
            recipe, self.folder, tuple(paths), sum(p.stat().st_size for p in paths)
        )

    @property
    def base(self) -> str:
        return f"{(self.mirror or self.recipe.base).rstrip('/')}/"

    def _read_key(self) -> str:
        name = self.recipe.key
        key = self.environment.get(name, "").strip() if name else ""
        if name and not key:
            raise BadConfig(
                f"{self.recipe.name} needs a key of your own: {self.recipe.note}",
                fix=f"set the environment variable {name}",
            )
        return key

    def _list_remotes(self, fetcher: Fetcher, key: str) -> list[RemoteFile]:
        recipe = self.recipe
        match recipe.listing:
            case "index":
                remotes = self._of_index(fetcher)
            case "hub":
                remotes = self._of_hub(fetcher)
            case "releases":
                remotes = self._of_releases(fetcher)
            case _:
                remotes = [RemoteFile(self.base + path, _safe_name(path)) for path in recipe.files]
        if not remotes:
            raise FetchFailed(
                f"{recipe.name}: no file of the form {recipe.pattern} is listed",
                fix="name a copy with --mirror, or tell us that the publisher has changed it",
            )
        return [self._with_key(self._with_sum(remote), key) for remote in remotes]

    def _of_index(self, fetcher: Fetcher) -> list[RemoteFile]:
        place = self.base + self.recipe.folder
        found: dict[str, str] = {}
        for link in _HREF.findall(fetcher.fetch_text(place)):
            if re.fullmatch(self.recipe.pattern, name := _safe_name(link)):
                # A link to elsewhere on the host is below the base, also at a mirror.
                path = httpx2.URL(link).path
                found[name] = self.base + path[1:] if path.startswith("/") else place + name
        names = sorted(found)[-1:] if self.recipe.newest else sorted(found)
        return [RemoteFile(found[name], name) for name in names]

    def _of_hub(self, fetcher: Fetcher) -> list[RemoteFile]:
        recipe, top = self.recipe, self.recipe.pattern.partition("/")[0]
        listing = httpx2.URL(f"{self.base}api/datasets/{recipe.folder}/tree/main/{top}")
        source = f"{self.base}datasets/{recipe.folder}/resolve/main/"
        return [
            describe_hub_file(source + quote(path), _safe_name(path), each)
            for each in fetcher.list_hub_files(listing)
            if re.fullmatch(recipe.pattern, path := str(each.get("path", "")))
        ]

    def _of_releases(self, fetcher: Fetcher) -> list[RemoteFile]:
        place = self.base + self.recipe.folder
        for each in parse_objects(fetcher.fetch_text(place), place):
            url = str(each.get("downloadUrl", ""))
            if re.fullmatch(self.recipe.pattern, url):
                through = f"{self.base}{self.recipe.through}?url={quote(url, safe=':/')}"
                return [RemoteFile(through, _safe_name(url))]
        return []

    def _with_sum(self, remote: RemoteFile) -> RemoteFile:
        match self.recipe.check:
            case "md5-beside":
                return replace(remote, algorithm="md5", sum_url=f"{remote.url}.md5")
            case "md5-list":
                return replace(remote, algorithm="md5", sum_url=self.base + self.recipe.sums)
            case _:
                return remote

    def _with_key(self, remote: RemoteFile, key: str) -> RemoteFile:
        if self.recipe.key_login:
            user, _, password = key.partition(":")
            return replace(remote, login=(user, password))
        if key and self.recipe.key_parameter:
            return replace(remote, secret={self.recipe.key_parameter: key})
        return remote

    def _check_room(self, remotes: list[RemoteFile]) -> None:
        """Raises `FetchFailed` without room for the sizes in the listing, else for the recipe's."""
        sizes = [remote.size for remote in remotes]
        if all(size is not None for size in sizes):
            needed = sum(size or 0 for size in sizes)
        else:
            needed = self.recipe.bytes if self.only is None else 0
        there = sum(path.stat().st_size for path in self.folder.iterdir() if path.is_file())
        free = self.room(self.folder)
        if max(0, needed - there) * _ROOM > free:
            raise FetchFailed(
                f"{self.recipe.name} needs about {_format_size(needed - there)},"
                f" and {self.folder} has room for {_format_size(free)}",
                fix="free some disk space, or name another folder with --to",
            )

    def _fetch_all(
        self, fetcher: Fetcher, remotes: list[RemoteFile], progress: Progress | None
    ) -> list[Path]:
        """Fetches in parallel. After a failure no file is begun; those under way are finished."""
        failed, stopped = threading.Event(), threading.Event()

        def report_progress(name: str, done: int, total: int | None) -> None:
            if stopped.is_set():
                raise FetchFailed(f"{name}: stopped")
            if progress:
                progress(name, done, total)

        def fetch_one(remote: RemoteFile) -> Path:
            if failed.is_set() or stopped.is_set():
                raise FetchFailed(f"{remote.name}: not begun, because another file failed")
            try:
                return fetcher.fetch(remote, self.folder, report_progress)
            except OslerError:
                failed.set()
                raise

        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = [pool.submit(fetch_one, remote) for remote in remotes]
            try:
                return [future.result() for future in futures]
            except OslerError:
                raise
            except BaseException:
                stopped.set()  # Ctrl-C must not wait for the file that is under way
                raise


def _safe_name(path: str) -> str:
    """A file name made of an address; never a folder, never hidden."""
    name = PurePosixPath(path).name
    if re.fullmatch(r"(?:master|main)", name):  # an archive of a repository's branch
        parts = PurePosixPath(path).parts
        name = f"{parts[1] if len(parts) > 1 else 'archive'}.zip"
    return re.sub(r"[^\w.-]", "-", name).lstrip(".") or "file"


def _format_size(number: int) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e8 else f"{number / 1e6:,.1f} MB"
