"""One file: interrupted, resumed, changed in mid-download, wrong, refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Protocol

import pytest

from osler.sources.download.transfer import Fetcher, FetchFailed, RemoteFile, SumMismatch

BODY = bytes(range(256)) * 40
"""10,240 bytes."""
MD5 = hashlib.md5(BODY, usedforsecurity=False).hexdigest()


class Shelf(Protocol):
    """The server of conftest, as far as it is used here."""

    files: dict[str, bytes]
    etags: dict[str, str]
    ranges: bool
    cut_at: list[int]
    busy: list[int]
    asked: list[tuple[str, str]]
    logins: list[str]
    change: object
    url: str

    @property
    def ranges_asked(self) -> list[str]: ...


@pytest.fixture
def remote(shelf: Shelf) -> RemoteFile:
    shelf.files["/f.gz"] = BODY
    shelf.etags["/f.gz"] = '"v1"'
    return RemoteFile(f"{shelf.url}f.gz", "f.gz", algorithm="md5", sum=MD5)


def test_a_file_comes_whole_and_leaves_nothing_beside_it(
    fetcher: Fetcher, remote: RemoteFile, tmp_path: Path
) -> None:
    seen: list[tuple[str, int, int | None]] = []
    path = fetcher.fetch(remote, tmp_path, lambda *step: seen.append(step))

    assert path.read_bytes() == BODY
    assert [each.name for each in tmp_path.iterdir()] == ["f.gz"]
    assert seen[-1] == ("f.gz", len(BODY), len(BODY))


def test_what_is_there_is_checked_and_not_fetched_again(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    fetcher.fetch(remote, tmp_path)
    fetcher.fetch(remote, tmp_path)
    assert len(shelf.asked) == 1

    (tmp_path / "f.gz").write_bytes(b"spoiled")
    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY


def test_broken_download_resumes_where_it_stopped(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path, naps: list[float]
) -> None:
    shelf.cut_at = [4_000, 3_000]

    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY

    assert shelf.ranges_asked == ["", "bytes=4000-", "bytes=7000-"]
    assert len(naps) == 2


def test_an_interrupted_download_goes_on_in_another_process(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    def interrupted(name: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    shelf.cut_at = [5_000]
    with pytest.raises(KeyboardInterrupt):
        fetcher.fetch(remote, tmp_path, interrupted)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.gz.part", "f.gz.part.json"]

    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY
    assert shelf.ranges_asked == ["", "bytes=5000-"]


def test_a_server_without_ranges_sends_the_whole_again(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.ranges, shelf.cut_at = False, [4_000]

    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY
    assert shelf.ranges_asked == ["", "bytes=4000-"]


def test_a_file_that_changes_in_mid_download_is_fetched_anew(
    fetcher: Fetcher, shelf: Shelf, tmp_path: Path
) -> None:
    new = b"new" * 5_000

    def change(number: int) -> None:
        if number == 2:
            shelf.files["/f.gz"], shelf.etags["/f.gz"] = new, '"v2"'

    shelf.files["/f.gz"], shelf.etags["/f.gz"] = BODY, '"v1"'
    shelf.cut_at, shelf.change = [4_000], change

    path = fetcher.fetch(RemoteFile(f"{shelf.url}f.gz", "f.gz"), tmp_path)

    assert path.read_bytes() == new


def test_download_without_an_etag_is_not_resumed(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.etags.clear()
    shelf.cut_at = [4_000]
    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY
    assert shelf.ranges_asked == ["", ""]


def test_download_with_a_weak_etag_is_not_resumed(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.etags["/f.gz"] = 'W/"v1"'
    shelf.cut_at = [4_000]
    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY
    assert shelf.ranges_asked == ["", ""]


def test_a_part_that_is_whole_already_is_only_checked(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    (tmp_path / "f.gz.part").write_bytes(BODY)
    (tmp_path / "f.gz.part.json").write_text(f'{{"etag": "\\"v1\\"", "total": {len(BODY)}}}')

    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY
    assert shelf.ranges_asked == [f"bytes={len(BODY)}-"]


def test_a_part_of_which_nothing_is_known_is_thrown_away(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    (tmp_path / "f.gz.part").write_bytes(b"of another file")
    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY
    assert shelf.ranges_asked == [""]


def test_checksum_mismatch_is_reported_and_the_file_not_kept(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.files["/f.gz"] = BODY[:-1] + b"x"
    with pytest.raises(SumMismatch, match="md5 sum is not the publisher's"):
        fetcher.fetch(remote, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "beside",
    [f"MD5(f.gz)= {MD5}\n", f"{MD5}  f.gz\n", f"{'0' * 32}  other\n{MD5.upper()}  f.gz\n"],
)
def test_a_sum_that_stands_beside_the_file_is_read(
    beside: str, fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.files["/f.gz.md5"] = beside.encode()
    listed = RemoteFile(remote.url, "f.gz", algorithm="md5", sum_url=f"{remote.url}.md5")
    assert fetcher.fetch(listed, tmp_path).read_bytes() == BODY

    shelf.files["/f.gz"] = b"wrong"
    (tmp_path / "f.gz").unlink()
    with pytest.raises(SumMismatch):
        fetcher.fetch(listed, tmp_path)


def test_a_file_that_is_not_there_is_told_without_another_try(
    fetcher: Fetcher, shelf: Shelf, tmp_path: Path
) -> None:
    with pytest.raises(FetchFailed, match=r"gone\.gz: the server answers 404; .*--mirror"):
        fetcher.fetch(RemoteFile(f"{shelf.url}gone.gz", "gone.gz"), tmp_path)
    assert len(shelf.asked) == 1


def test_a_busy_server_is_asked_again(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path, naps: list[float]
) -> None:
    shelf.busy = [503, 429]
    assert fetcher.fetch(remote, tmp_path).read_bytes() == BODY
    assert len(naps) == 2


def test_a_server_that_stays_busy_is_left_and_the_part_stays(
    fetcher: Fetcher, remote: RemoteFile, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.cut_at = [4_000]
    shelf.change = lambda number: shelf.busy.append(503) if number > 1 else None
    with pytest.raises(FetchFailed, match="answers 503, 4 tries in a row; run the same command"):
        fetcher.fetch(remote, tmp_path)
    assert (tmp_path / "f.gz.part").stat().st_size == 4_000


def test_api_key_is_sent_and_in_no_message(fetcher: Fetcher, shelf: Shelf, tmp_path: Path) -> None:
    remote = RemoteFile(
        f"{shelf.url}x.zip?url=http://a/b.zip",
        "x.zip",
        secret={"apiKey": "s3cret"},
        login=("me", "pass"),
    )
    with pytest.raises(FetchFailed) as caught:
        fetcher.fetch(remote, tmp_path)
    assert "apiKey=s3cret" in shelf.asked[0][0]
    assert "url=http" in shelf.asked[0][0]
    assert shelf.logins[0].startswith("Basic ")
    assert "s3cret" not in str(caught.value) + repr(remote)
    assert "pass" not in repr(remote)


def test_an_empty_file_is_a_file(fetcher: Fetcher, shelf: Shelf, tmp_path: Path) -> None:
    shelf.files["/empty"] = b""
    assert fetcher.fetch(RemoteFile(f"{shelf.url}empty", "empty"), tmp_path).read_bytes() == b""
