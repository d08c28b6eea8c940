"""The page for people, as it was built: `web/` at the repository's root holds its source.

It is static files and has no logic of the server's; `osler.serve.page` hands them out. The wheel
carries them (`make page` makes them), so that nobody needs Node to install Osler.
"""

from __future__ import annotations

from pathlib import Path

BUILT = Path(__file__).parent / "dist"


def read_files() -> dict[str, bytes]:
    """The built files by their address below the page's; empty where it was not built."""
    if not (BUILT / "index.html").is_file():
        return {}
    found = (path for path in sorted(BUILT.rglob("*")) if path.is_file())
    return {path.relative_to(BUILT).as_posix(): path.read_bytes() for path in found}
