"""Files to run Osler as a service: templates that are plain files, written as they are."""

from __future__ import annotations

from pathlib import Path

from osler.errors import BadConfig, translate_os_errors
from osler.text import read_packaged

NAMES = ("Containerfile", "osler.service", "compose.yaml", "kubernetes.yaml", "osler.toml")


def write_files(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Writes them all. Raises `BadConfig` when one is there already or cannot be written."""
    paths = [folder / name for name in NAMES]
    if not overwrite and (there := [path for path in paths if path.exists()]):
        raise BadConfig(f"{there[0]} already exists", fix="--force overwrites it")
    with translate_os_errors(f"cannot write to {folder}", BadConfig, "name another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            text = read_packaged(__package__, path.name)
            path.write_text(text, encoding="utf-8")
    return paths
