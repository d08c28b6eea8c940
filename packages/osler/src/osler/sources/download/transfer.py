"""Resumable download of one file.

While it is fetched it is `NAME.part`, with the server's validators in `NAME.part.json`. To resume,
the rest is requested with `Range` and `If-Range`: a server that has another file now, or does not
know ranges, sends the whole, and the download begins anew. The file gets its name only when its
length and its checksum are right.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal

import httpx2

from osler.errors import OslerError, SourceUnavailable

Algorithm = Literal["md5", "sha256"]
Progress = Callable[[str, int, int | None], None]
Sleep = Callable[[float], None]

_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_RANGE = "bytes "


class FetchFailed(SourceUnavailable):
    """A file that could not be fetched."""


class SumMismatch(FetchFailed):
    """A file whose checksum is not the published one."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on a server."""

    url: str
    name: str
    """Of the file on disk; no folder."""
    size: int | None = None
    algorithm: Algorithm | None = None
    sum: str = ""
    """In hexadecimal, lower case."""
    sum_url: str = ""
    """Where the sum stands, if `sum` is empty: first word of the file, or after "=" ."""
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Parameters of the address that must not be logged or stored."""
    login: tuple[str, str] | None = field(default=None, repr=False)


def describe_hub_file(url: str, name: str, entry: Mapping[str, Any]) -> RemoteFile:
    """The file of an entry in the hub's listing, which has a SHA-256 of large files (LFS) only."""
    lfs, size = entry.get("lfs"), entry.get("size")
    sum_ = str(lfs.get("oid", "")).removeprefix("sha256:") if isinstance(lfs, dict) else ""
    known = size if isinstance(size, int) else None
    return RemoteFile(url, name, known, "sha256" if sum_ else None, sum_)


def parse_objects(text: str, place: str) -> list[dict[str, Any]]:
    """The JSON objects of the listing at the place. Raises `FetchFailed`."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise FetchFailed(f"the listing at {_display_url(place)} is not JSON") from error
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a download is retried."""

    retries: int = 5
    """Attempts in a row without a single new byte."""
    seconds: float = 60.0
    """Time without a byte after which a connection is given up."""
    first_wait: float = 1.0
    longest_wait: float = 60.0


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches files; any number of threads may share it, each with a file of its own."""

    client: httpx2.Client
    patience: RetryPolicy = RetryPolicy()
    sleep: Sleep = time.sleep

    def fetch(self, remote: RemoteFile, folder: Path, progress: Progress | None = None) -> Path:
        """Fetches the file into the folder and checks it; one that is there is only checked, unless
        it has neither size nor sum, and the server a later one.

        Raises `SumMismatch` (the content is deleted) and `FetchFailed`, after which the part
        that was fetched stays for the next time.
        """
        target = folder / remote.name
        wanted = remote.sum or (self._published_sum(remote) if remote.sum_url else "")
        is_right = target.is_file() and _is_right(target, remote, wanted)
        if is_right and not self._has_later(remote, target):
            return target
        part = _PartialFile(folder, remote.name)
        idle = 0
        while True:
            before = part.size
            try:
                self._continue_part(remote, part, progress)
                break
            except _RetryNeeded as again:
                idle = 0 if part.size > before else idle + 1
                if idle > self.patience.retries:
                    raise FetchFailed(
                        f"{remote.name}: {again.why}, {idle} tries in a row",
                        fix="run the same command again: it resumes where it stopped",
                    ) from again
                self.sleep(min(self.patience.longest_wait, again.wait or self._wait_before(idle)))
        if remote.algorithm and wanted and _sum_of(part.path, remote.algorithm) != wanted:
            part.discard_part()
            raise SumMismatch(
                f"{remote.name}: the {remote.algorithm} sum is not the publisher's",
                fix="run the same command again; if it stays so, tell the publisher or the mirror",
            )
        part.move_to(target)
        return target

    def fetch_text(self, url: str, remote: RemoteFile | None = None) -> str:
        """A small text: a listing, a sum. Raises `FetchFailed`."""
        return self.fetch_page(url, remote).text

    def fetch_page(self, url: str, remote: RemoteFile | None = None) -> httpx2.Response:
        """As `fetch_text`, with the headers of the reply."""
        for attempt in range(self.patience.retries + 1):
            try:
                response = self.client.get(url, follow_redirects=True, timeout=self._timeout)
            except httpx2.TransportError as error:
                if attempt == self.patience.retries:
                    raise FetchFailed(
                        f"{_display_url(url)} cannot be reached: {type(error).__name__}",
                        fix="check the network, or name a copy with --mirror",
                    ) from error
            else:
                if response.status_code == httpx2.codes.OK:
                    return response
                if response.status_code not in _BUSY or attempt == self.patience.retries:
                    raise _refusal_of(
                        remote.name if remote else _display_url(url), response.status_code
                    )
            self.sleep(self._wait_before(attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def list_hub_files(self, listing: httpx2.URL) -> Iterator[dict[str, Any]]:
        """The files of a folder on the hub, which lists a thousand of them a page."""
        page: httpx2.URL | None = listing
        while page is not None:
            response = self.fetch_page(str(page))
            for each in parse_objects(response.text, str(page)):
                if each.get("type") == "file":
                    yield each
            onward = response.links.get("next", {}).get("url", "")
            # Of the address only the query: a mirror may still name the hub itself.
            page = listing.copy_with(query=httpx2.URL(onward).query) if onward else None

    @property
    def _timeout(self) -> httpx2.Timeout:
        return httpx2.Timeout(self.patience.seconds)

    def _wait_before(self, attempt: int) -> float:
        return min(self.patience.longest_wait, self.patience.first_wait * 2.0**attempt)

    def _published_sum(self, remote: RemoteFile) -> str:
        # NCBI writes "MD5(pubmed25n0001.xml.gz)= 5d0a…", md5sum "5d0a…  NAME".
        lines = self.fetch_text(remote.sum_url, remote).splitlines()
        for line in lines:
            if len(lines) == 1 or remote.name in line:
                for word in line.replace("=", " ").split():
                    if len(word) in (32, 64) and all(c in "0123456789abcdefABCDEF" for c in word):
                        return word.lower()
        raise FetchFailed(f"{remote.name}: there is no sum at {_display_url(remote.sum_url)}")

    def _has_later(self, remote: RemoteFile, there: Path) -> bool:
        if remote.size is not None or remote.algorithm:
            return False
        url, auth = _address_of(remote)
        try:
            reply = self.client.request(
                "HEAD", url, follow_redirects=True, timeout=self._timeout, auth=auth
            )
        except httpx2.TransportError:
            return False  # what is there stays
        return reply.is_success and _modified(reply.headers) > there.stat().st_mtime

    def _continue_part(
        self, remote: RemoteFile, part: _PartialFile, progress: Progress | None
    ) -> None:
        """Requests the missing rest. Raises `_RetryNeeded` when the connection breaks."""
        headers = {"Accept-Encoding": "identity", **part.range_headers()}
        url, auth = _address_of(remote)
        try:
            with self.client.stream(
                "GET", url, headers=headers, follow_redirects=True, timeout=self._timeout, auth=auth
            ) as response:
                if self._prepare_part(remote, part, response):
                    _write_body(remote, part, response, progress)
        except httpx2.TransportError as error:
            raise _RetryNeeded(f"the connection broke ({type(error).__name__})") from error

    def _prepare_part(
        self, remote: RemoteFile, part: _PartialFile, response: httpx2.Response
    ) -> bool:
        """Prepares the part for the body of the reply; false when nothing is missing."""
        status = response.status_code
        if status in _BUSY:
            delay = response.headers.get("retry-after", "")
            raise _RetryNeeded(
                f"the server answers {status}", float(delay) if delay.isdigit() else None
            )
        if status == httpx2.codes.RANGE_NOT_SATISFIABLE:
            if part.total is not None and part.size == part.total:
                return False  # nothing is missing
            part.discard_part()
            raise _RetryNeeded("the file on the server has changed")
        if status == httpx2.codes.PARTIAL_CONTENT:
            start, total = _parse_content_range(response)
            if start == part.size and part.is_of(response):
                part.total = total
                return True
            part.discard_part()
            raise _RetryNeeded("the server sent the wrong byte range")
        if status != httpx2.codes.OK:
            raise _refusal_of(remote.name, status)
        part.discard_part()  # the whole comes: it is another file, or the server knows no ranges
        length = response.headers.get("content-length", "")
        part.begin_body(response, int(length) if length.isdigit() else remote.size)
        return True


def _address_of(remote: RemoteFile) -> tuple[httpx2.URL, httpx2.BasicAuth | None]:
    url = httpx2.URL(remote.url)
    if remote.secret:
        url = url.copy_merge_params(dict(remote.secret))
    return url, httpx2.BasicAuth(*remote.login) if remote.login else None


def _modified(headers: Mapping[str, str | None]) -> float:
    """`Last-Modified` in seconds since 1970; 0 where it is not known."""
    try:
        return parsedate_to_datetime(headers.get("last-modified") or "").timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _write_body(
    remote: RemoteFile, part: _PartialFile, response: httpx2.Response, progress: Progress | None
) -> None:
    with part.path.open("ab") as file:
        # Written as they arrive: gathered pieces would be lost with the connection.
        for piece in response.iter_raw():
            file.write(piece)
            if progress:
                progress(remote.name, file.tell(), part.total)
    if part.total is not None and part.size < part.total:
        raise _RetryNeeded(f"the connection broke at {part.size:,} of {part.total:,} bytes")
    if part.total is not None and part.size > part.total:
        part.discard_part()
        raise _RetryNeeded("the file is longer than announced")


class _RetryNeeded(Exception):
    """A failure that another attempt may mend."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.why, self.wait = why, wait


class _PartialFile:
    """A file that is not whole yet, and the validators and length of the whole."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.part"
        self._note = folder / f"{name}.part.json"
        self._known = self._read_state()
        if not self._known:
            self.path.unlink(missing_ok=True)  # its validators are lost

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def total(self) -> int | None:
        total = self._known.get("total")
        return total if isinstance(total, int) else None

    # Writing the total writes the note on the disk: it must outlive the process.
    @total.setter
    def total(self, value: int | None) -> None:
        if value != self.total:
            self._write_state({**self._known, "total": value})

    def range_headers(self) -> dict[str, str]:
        """Headers that request the rest, if a validator can prove that it is of the same file."""
        if not self.size or not (tag := self._tag):
            return {}
        return {"Range": f"bytes={self.size}-", "If-Range": tag}

    def is_of(self, response: httpx2.Response) -> bool:
        """Whether a reply has the same ETag, as far as both have one."""
        etag = response.headers.get("etag")
        return etag is None or not self._known.get("etag") or etag == self._known["etag"]

    def begin_body(self, response: httpx2.Response, total: int | None) -> None:
        about = {name: response.headers.get(name) for name in ("etag", "last-modified")}
        self._write_state({**about, "total": total})

    def discard_part(self) -> None:
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)
        self._known = {}

    def move_to(self, target: Path) -> None:
        self.path.touch()  # a file of no bytes
        if at := _modified(self._known):  # by which a later one is told from it
            os.utime(self.path, (at, at))
        os.replace(self.path, target)
        self._note.unlink(missing_ok=True)

    @property
    def _tag(self) -> str:
        # A strong tag, else the date: a weak tag does not promise the same bytes (RFC 9110 §8.8.1).
        etag = self._known.get("etag") or ""
        return (
            etag if etag and not etag.startswith("W/") else self._known.get("last-modified") or ""
        )

    def _read_state(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            state = json.loads(self._note.read_text(encoding="utf-8"))
            if isinstance(state, dict):
                return state
        return {}

    def _write_state(self, known: dict[str, Any]) -> None:
        self._known = known
        self._note.write_text(json.dumps(known), encoding="utf-8")


def _parse_content_range(response: httpx2.Response) -> tuple[int, int | None]:
    """Start and total of `Content-Range: bytes 5-9/10`; -1 for what cannot be read."""
    header = response.headers.get("content-range", "")
    span, _, total = header.removeprefix(_RANGE).partition("/")
    start = span.partition("-")[0]
    if not (header.startswith(_RANGE) and start.isdigit()):
        return -1, None
    return int(start), int(total) if total.isdigit() else None


def _is_right(path: Path, remote: RemoteFile, wanted: str) -> bool:
    if remote.size is not None and path.stat().st_size != remote.size:
        return False
    return not (remote.algorithm and wanted) or _sum_of(path, remote.algorithm) == wanted


def _sum_of(path: Path, algorithm: Algorithm) -> str:
    if not path.exists():
        path.touch()  # a file of no bytes
    with path.open("rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()


def _refusal_of(name: str, status: int) -> OslerError:
    fixes = {
        401: "check the key",
        403: "check the key, and that its licence was granted",
        404: "the publisher has moved it: see the recipe's page, or name a copy with --mirror",
    }
    return FetchFailed(f"{name}: the server answers {status}", fix=fixes.get(status, ""))


def _display_url(url: str) -> str:
    """An address without its query, which may hold a key."""
    return str(httpx2.URL(url).copy_with(query=None))
