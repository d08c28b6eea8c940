"""The page: static files out of the package, under a policy that loads nothing from elsewhere."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from osler_serve.problems import RefusedRequest

# Where `make page` puts the page, whose source is `web/`; the wheel carries it.
BUILT = Path(__file__).parent / "static" / "dist"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}
_FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


def is_built() -> bool:
    """Whether the page lies in the package; a clone has it after `make page`."""
    return (BUILT / "index.html").is_file()


def read_files() -> dict[str, bytes]:
    """The built files by their address below the page's; empty where it was not built."""
    if not is_built():
        return {}
    found = (path for path in sorted(BUILT.rglob("*")) if path.is_file())
    return {path.relative_to(BUILT).as_posix(): path.read_bytes() for path in found}


# Read once: what is not among them has no address, whatever a request calls it.
_files = cache(read_files)


@router.get("/")
async def index(request: Request) -> Response:
    return _serve_file(request, "index.html")


@router.get("/icon.svg")
async def icon(request: Request) -> Response:
    return _serve_file(request, "icon.svg")


@router.get("/assets/{name}")
async def asset(request: Request, name: str) -> Response:
    return _serve_file(request, f"assets/{name}")


@cache
def _compress(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _serve_file(request: Request, name: str) -> Response:
    """Raises `RefusedRequest` (404)."""
    content = _files().get(name)
    if content is None:
        fix = "" if _files() else "build the page: make page"
        raise RefusedRequest(404, "no_page", "there is no such page", fix=fix)
    headers = {"Content-Security-Policy": POLICY, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        content = _compress(content)
    if name.startswith("assets/index-"):  # these names hold the hash of what is in them
        headers["Cache-Control"] = _FOR_EVER
    return Response(content, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])
