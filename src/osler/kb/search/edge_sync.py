"""Brings the embedded index up to a build: a new generation, made by a child, then a swap."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from osler.errors import KnowledgeBaseError
from osler.kb.search import edge, generation
from osler.kb.search.generation import CurrentGeneration
from osler.kb.store.passages import Progress


def sync_generation(
    kb: Path,
    *,
    build: str,
    encoder: str,
    dimension: int,
    progress: Progress,
    afresh: bool = False,
) -> bool:
    """Makes the index hold what `build` holds; returns whether there was anything to do.

    The caller holds the writer's lock. What changed since the last generation is applied to
    a copy of it, so a small change costs a copy and no graph; `afresh`, another encoder or
    another version begin from nothing. Searches go on in the old generation until the new
    one is complete; until then both need room on the disk. Raises `KnowledgeBaseError`
    when the child fails; the old generation then stays.
    """
    current = None if afresh else generation.read_current(kb)
    like = (encoder, dimension, edge.VERSION)
    alike = current is not None and (current.encoder, current.dimension, current.version) == like
    if current is not None and alike and current.build == build:
        return False
    if not afresh:
        generation.sweep_old(kb)
    folder = kb / generation.FOLDER / _unused_name(kb)
    base = kb / generation.FOLDER / current.name if current is not None and alike else None
    _run_builder(kb, folder, base, dimension, progress)
    with closing(sqlite3.connect(folder / generation.POINTS)) as db:
        points, sources = generation.tally_points(db)
    generation.swap_current(
        kb, CurrentGeneration(folder.name, build, encoder, dimension, edge.VERSION, points, sources)
    )
    generation.sweep_old(kb)
    return True


def _unused_name(kb: Path) -> str:
    folder = kb / generation.FOLDER
    taken = [int(e.name) for e in folder.iterdir() if e.name.isdigit()] if folder.is_dir() else []
    return f"{max(taken, default=0) + 1:06}"


def _run_builder(
    kb: Path, folder: Path, base: Path | None, dimension: int, progress: Progress
) -> None:
    command = [sys.executable, "-m", "osler.kb.search.edge_build", str(kb), str(folder)]
    command += [str(base or "-"), str(dimension)]
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as child:
            try:
                for line in child.stdout or ():
                    progress(*json.loads(line))
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            raise KnowledgeBaseError(
                f"the embedded index could not be made (exit status {child.returncode})"
                + (f": {lines[-1]}" if lines else ""),
                fix="free some disk space and memory, then run `osler kb build` again",
            )
