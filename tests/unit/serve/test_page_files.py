"""The page's files: handed out under a strict policy, and nothing beside them."""

from __future__ import annotations

import gzip
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx2
import pytest
from served import serve_osler

from osler.sources.catalogue import BUILT_IN
from osler_serve import page
from osler_serve.keys import new_key
from osler_serve.ledger import Ledger

BUILT = {
    "index.html": b'<script type="module" src="./assets/index-1.js"></script>',
    "assets/index-1.js": b"1;",
    "assets/scoreboard.json": b"[]",
    "icon.svg": b"<svg/>",
}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_files", lambda: BUILT)


@pytest.mark.usefixtures("built")
def test_content_security_policy_forbids_foreign_resources_and_framing(http: httpx2.Client) -> None:
    reply = http.get("/")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = reply.headers["content-security-policy"]
    assert policy == page.POLICY
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["cache-control"] == "no-store"
    script = http.get("/assets/index-1.js")
    assert (script.status_code, script.content) == (200, b"1;")
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-encoding"] == "gzip"
    plain = http.get("/assets/index-1.js", headers={"Accept-Encoding": "identity"})
    assert (plain.content, plain.headers.get("content-encoding")) == (b"1;", None)
    figures = http.get("/assets/scoreboard.json")
    assert figures.headers["content-type"] == "application/json"
    assert figures.headers["cache-control"] == "no-store"
    assert script.headers["x-content-type-options"] == "nosniff"


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "path", ["/assets/none.js", "/assets/..%2findex.html", "/assets/%2e%2e/__init__.py", "/dist"]
)
def test_path_outside_the_page_files_is_404(http: httpx2.Client, path: str) -> None:
    assert http.get(path).status_code == 404


def test_page_that_was_not_built_names_the_build_command(
    http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_files", dict)
    reply = http.get("/")
    assert (reply.status_code, reply.json()["fix"]) == (404, "build the page: make page")


@pytest.mark.usefixtures("built")
def test_the_empty_page_opens_without_a_key_and_what_it_shows_does_not(home: Path) -> None:
    ledger = Ledger(home / "serve")
    new_key(ledger, "one")
    ledger.close()
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        assert client.get("/").status_code == 200
        assert client.get("/assets/index-1.js").status_code == 200
        assert client.get("/api/v1/runs").status_code == 401
        assert client.post("/").status_code == 401


def test_page_files_are_keyed_by_their_path_in_the_page_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path)
    assert page.read_files() == {}
    (tmp_path / "assets").mkdir()
    for name, content in BUILT.items():
        (tmp_path / name).write_bytes(content)
    assert page.read_files() == BUILT


@pytest.mark.skipif(not page.read_files(), reason="the page is not built: make page")
def test_built_page_is_small_and_names_no_other_host() -> None:
    files = page.read_files()
    scripts = [content for name, content in files.items() if name.endswith(".js")]
    assert scripts
    assert sum(len(gzip.compress(content)) for content in scripts) <= 150_000
    for name, content in files.items():
        named = set(re.findall(rb"https?://[a-z0-9.-]+", content))
        # Names of XML's languages and React's own advice: nothing that is loaded.
        assert named <= {b"http://www.w3.org", b"https://react.dev"}, name


SCOREBOARD = """# Scoreboard

Words of *one* [link](elsewhere.md).

| half | right |
|---|--:|
| `dev` | **31.0** \\* |

- seed 0
- data
"""


def test_published_scoreboard_becomes_blocks_of_the_page() -> None:
    script = Path(__file__).parents[3] / "scripts" / "page_sources.py"
    blocks = list(runpy.run_path(str(script))["read_blocks"](SCOREBOARD))
    assert blocks == [
        {"heading": "Scoreboard", "level": 1},
        {"text": "Words of one link."},
        {"head": ["half", "right"], "rows": [["dev", "31.0 *"]]},
        {"list": ["seed 0", "data"]},
    ]


@pytest.mark.skipif(not page.read_files(), reason="the page is not built: make page")
def test_the_wheel_carries_the_page(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    root = Path(__file__).parents[3] / "packages" / "osler-serve"
    subprocess.run(command, cwd=root, check=True, capture_output=True, timeout=120)  # noqa: S603
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as held:
        for name, content in page.read_files().items():
            assert held.read(f"osler_serve/static/dist/{name}") == content


def test_the_page_names_the_sources_as_the_catalogue_does() -> None:
    text = (Path(__file__).parents[3] / "web/src/sources.ts").read_text(encoding="utf-8")
    named = re.findall(r'^  (\w+): \{ en: "(.+)", zh: "(.+)" \},$', text, flags=re.MULTILINE)
    assert named == [(one.name, one.label["en"], one.label["zh"]) for one in BUILT_IN]


def test_the_page_reads_no_field_that_the_api_does_not_have(http: httpx2.Client) -> None:
    schemas = http.get("/openapi.json").json()["components"]["schemas"].values()
    known = [{*one.get("properties", {})} for one in schemas]
    text = (Path(__file__).parents[3] / "web/src/api.ts").read_text(encoding="utf-8")
    read = re.findall(
        r"^export interface (\w+)[^{]*\{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL
    )
    fields = {name: {*re.findall(r"^  (\w+)\??:", body, flags=re.MULTILINE)} for name, body in read}
    assert len(fields.pop("Block")) > 1  # of the scoreboard, which is a file
    assert [name for name, own in fields.items() if not any(own <= one for one in known)] == []
