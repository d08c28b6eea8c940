"""Data sets from a hub's loopback copy: pinned, checked, kept."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from osler.errors import BadConfig
from osler.sources.download.transfer import FetchFailed, SumMismatch
from osler_lab.evaluate.datasets.hub import HubFile, hub_file, parse_hub
from osler_lab.studies.tasks import read_task

REVISION = "0123456789abcdef0123456789abcdef01234567"
ROW = {"question": "Which?", "options": {"A": "one", "B": "two"}, "answer_idx": "B"}
DATA = json.dumps(ROW).encode() + b"\n"
SUM = hashlib.sha256(DATA).hexdigest()
BLOB = hashlib.sha1(b"blob %d\0" % len(DATA) + DATA, usedforsecurity=False).hexdigest()
FILE = HubFile("someone/medqa", REVISION, "data/test set.jsonl")


@dataclass
class Hub:
    """One repository with one file, as the hub tells of it."""

    listed: dict[str, Any]
    data: bytes = DATA
    asked: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    url: str = ""

    @property
    def environment(self) -> dict[str, str]:
        return {"HF_ENDPOINT": f"{self.url}/", "HF_TOKEN": "a-key"}


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub({"type": "file", "path": FILE.path, "size": len(DATA), "oid": BLOB})

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

        def do_GET(self) -> None:
            made.asked.append(self.path)
            made.keys.add(self.headers.get("Authorization", ""))
            tree = f"/api/datasets/{FILE.repo}/tree/{REVISION}/data"
            replies = {
                tree: json.dumps([{"type": "directory", "path": "data/more"}]).encode(),
                f"{tree}?cursor=2": json.dumps([made.listed]).encode(),
                f"/datasets/{FILE.repo}/resolve/{REVISION}/data/test%20set.jsonl": made.data,
            }
            body = replies.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            if self.path == tree:
                self.send_header("Link", f'<https://hub.invalid{tree}?cursor=2>; rel="next"')
            self.end_headers()
            self.wfile.write(body or b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_is_fetched_once_checked_and_kept_under_its_revision(
    hub: Hub, tmp_path: Path
) -> None:
    found = hub_file(FILE, tmp_path, environment=hub.environment)
    assert found == tmp_path / "hub" / "someone" / "medqa" / REVISION / "data" / "test set.jsonl"
    assert found.read_bytes() == DATA
    assert hub.keys == {"Bearer a-key"}
    before = len(hub.asked)
    assert hub_file(FILE, tmp_path, environment={"HF_ENDPOINT": "http://127.0.0.1:9"}) == found
    assert len(hub.asked) == before == 3


def test_a_file_that_changed_on_disk_is_fetched_anew(hub: Hub, tmp_path: Path) -> None:
    found = hub_file(FILE, tmp_path, environment=hub.environment)
    found.write_bytes(DATA.replace(b"Which", b"Whose"))
    assert hub_file(FILE, tmp_path, environment=hub.environment).read_bytes() == DATA


@pytest.mark.parametrize("large", [True, False])
def test_another_file_than_the_commit_s_is_thrown_away(
    hub: Hub, tmp_path: Path, large: bool
) -> None:
    if large:
        hub.listed["lfs"] = {"oid": SUM, "size": len(DATA)}
    hub.data = DATA.replace(b"Which", b"Whose")
    with pytest.raises(SumMismatch):
        hub_file(FILE, tmp_path, environment=hub.environment)
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_the_user_s_own_sum_is_checked_too(hub: Hub, tmp_path: Path) -> None:
    own = HubFile(FILE.repo, REVISION, FILE.path, "0" * 64)
    with pytest.raises(SumMismatch):
        hub_file(own, tmp_path, environment=hub.environment)
    hub.listed["lfs"] = {"oid": SUM, "size": len(DATA)}
    with pytest.raises(SumMismatch, match="another sum than was given"):
        hub_file(own, tmp_path, environment=hub.environment)
    right = HubFile(FILE.repo, REVISION, FILE.path, SUM)
    assert hub_file(right, tmp_path, environment=hub.environment).read_bytes() == DATA


def test_a_file_that_the_commit_lacks_is_named(hub: Hub, tmp_path: Path) -> None:
    gone = HubFile(FILE.repo, REVISION, "data/gone.jsonl")
    with pytest.raises(FetchFailed, match=r"no data/gone\.jsonl at 0123456789ab"):
        hub_file(gone, tmp_path, environment=hub.environment)


def test_a_task_may_name_a_file_on_the_hub(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    word = f"medqa-us=hub:{FILE.repo}@{REVISION}/{FILE.path}#{SUM}"
    loaded = read_task(word, tmp_path)
    assert [sample.gold.letters for sample in loaded.samples] == [("B",)]
    with pytest.raises(BadConfig, match="where shall someone/medqa be kept"):
        read_task(word, None)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (f"hub:medqa@{REVISION}/a", "names no file"),
        ("hub:a/b@main/data.jsonl", "must be pinned"),
        (f"hub:a/b@{REVISION[:12]}/data.jsonl", "must be pinned"),
        (f"hub:a/b@{REVISION}/../../etc", "is not a path"),
        (f"hub:a/b@{REVISION}//etc", "is not a path"),
        (f"hub:a/b@{REVISION}/x#abc", "is not a SHA-256"),
    ],
)
def test_what_is_not_pinned_is_refused(word: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        parse_hub(word)
