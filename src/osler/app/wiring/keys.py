"""Keys of servers: read where a model is made, and stored nowhere."""

from __future__ import annotations

import os
from pathlib import Path

from osler.errors import BadConfig


def read_server_key(
    file: Path | None, section: str, variable: str = "OPENAI_API_KEY"
) -> str | None:
    """The file's words, else `variable` of the environment. Raises `BadConfig`."""
    if file is None:
        return os.environ.get(variable)
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        fix = f"set {section}.key_file to a file that holds the key alone"
        raise BadConfig(f"the key file {file} cannot be read: {error}", fix=fix) from error
