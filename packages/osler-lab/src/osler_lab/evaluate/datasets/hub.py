"""Files of data sets from the hub, by pinned revision and checked sum.

    hub:OWNER/REPO@REVISION/PATH            the hub's own sum for that revision is checked
    hub:OWNER/REPO@REVISION/PATH#SHA256     this one too

A revision is a whole commit hash: a branch may move, and then the same words are other data. A file
lies below the data folder under its repository and revision. Once it was checked no server is
asked again, and a file that changed since is fetched anew. The files must have the form that the
data set's publisher gave them; the hub's own conversions (Parquet) do not.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import httpx2

from osler.errors import BadConfig
from osler.sources.download.transfer import Fetcher, FetchFailed, SumMismatch, describe_hub_file

PREFIX = "hub:"
HUB = "https://huggingface.co"
ENDPOINT, TOKEN = "HF_ENDPOINT", "HF_TOKEN"
"""Environment variables, as the hub's own tools have them: another hub, and the reader's key."""

_WORD = re.compile(
    r"hub:(?P<repo>\w[\w.-]*/\w[\w.-]*)@(?P<revision>[^/#]+)/(?P<path>[^#]+)(?:#(?P<sum>.*))?"
)


@dataclass(frozen=True, slots=True)
class HubFile:
    """File of one commit of a data set's repository."""

    repo: str
    revision: str
    path: str
    sha256: str = ""
    """Checksum given by the user; empty: only the hub's own sum is checked."""

    @property
    def place(self) -> PurePosixPath:
        """Path of the file below the data folder."""
        return PurePosixPath("hub", self.repo, self.revision, self.path)


def parse_hub(word: str) -> HubFile:
    """Raises `BadConfig` for what is no pinned file of a repository."""
    match = _WORD.fullmatch(word)
    if match is None:
        raise BadConfig(f"{word!r} names no file", fix='write "hub:OWNER/REPO@REVISION/PATH"')
    file = HubFile(match["repo"], match["revision"], match["path"], match["sum"] or "")
    if not re.fullmatch(r"[0-9a-f]{40}", file.revision):
        raise BadConfig(
            f"{file.repo} has the revision {file.revision!r}, and data from the hub must be pinned",
            fix="give the commit's 40 digits",
        )
    if file.sha256 and not re.fullmatch(r"[0-9a-f]{64}", file.sha256):
        raise BadConfig(f"{file.sha256!r} is not a SHA-256", fix="give 64 hexadecimal digits")
    if any(part in ("", ".", "..") for part in file.path.split("/")):
        raise BadConfig(f"{file.path!r} is not a path in a repository", fix="name a file of it")
    return file


def hub_file(
    file: HubFile,
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    fetcher: Fetcher | None = None,
) -> Path:
    """The file, whole and checked, below the data folder.

    Raises `FetchFailed` where it cannot be had, `SumMismatch` where it is another file.
    """
    target = folder / file.place
    if _is_checked(target, file):
        return target
    known = os.environ if environment is None else environment
    base = known.get(ENDPOINT, "").rstrip("/") or HUB
    if fetcher is not None:
        return _fetch_file(file, target, base, fetcher)
    token = known.get(TOKEN, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx2.Client(headers=headers) as client:
        return _fetch_file(file, target, base, Fetcher(client))


def _fetch_file(file: HubFile, target: Path, base: str, fetcher: Fetcher) -> Path:
    entry = _find_entry(file, base, fetcher)
    url = f"{base}/datasets/{file.repo}/resolve/{file.revision}/{quote(file.path)}"
    remote = describe_hub_file(url, target.name, entry)
    theirs = remote.sum
    if theirs and file.sha256 and theirs != file.sha256:
        raise SumMismatch(f"{file.path} of {file.repo}: the hub has another sum than was given")
    target.unlink(missing_ok=True)  # it was not checked, or it has changed since
    if file.sha256:
        remote = replace(remote, algorithm="sha256", sum=file.sha256)
    fetcher.fetch(remote, target.parent)
    data = target.read_bytes()
    # Of small files the hub has no SHA-256, only git's blob id.
    if not theirs and _blob_id(data) != entry.get("oid"):
        target.unlink()
        raise SumMismatch(f"{file.path} of {file.repo}: not the file of that commit")
    _note_path(target).write_text(hashlib.sha256(data).hexdigest(), encoding="utf-8")
    return target


def _find_entry(file: HubFile, base: str, fetcher: Fetcher) -> dict[str, Any]:
    """The hub's description of the file at that commit: its size and checksum."""
    # The tree API lists one folder.
    below = "".join(f"/{quote(part)}" for part in PurePosixPath(file.path).parent.parts)
    listing = httpx2.URL(f"{base}/api/datasets/{file.repo}/tree/{file.revision}{below}")
    for each in fetcher.list_hub_files(listing):
        if each.get("path") == file.path:
            return each
    raise FetchFailed(
        f"{file.repo} has no {file.path} at {file.revision[:12]}",
        fix="look at the repository's files at that commit",
    )


def _note_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")


def _is_checked(target: Path, file: HubFile) -> bool:
    """Whether it was checked before, and is still the same."""
    if not (target.is_file() and _note_path(target).is_file()):
        return False
    noted = _note_path(target).read_text(encoding="utf-8").strip()
    with target.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    return digest == noted and file.sha256 in ("", digest)


def _blob_id(data: bytes) -> str:
    """The id that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
