"""A judge over a whole data set, resumable: what was judged before is not judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadRun
from osler.trace import Run
from osler.train.thinker.quality import Inspection, Inspector, QualityItem
from osler.types import Usage

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class InspectionRun:
    """The verdicts in the order of the samples, and what the new ones cost."""

    found: tuple[Inspection, ...]
    new: int
    usage: Usage


async def inspect_all(
    items: Sequence[QualityItem],
    inspector: Inspector,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> InspectionRun:
    """Every sample's verdict; `keep` is the file where they are kept, one a line.

    Samples are known by their id, so ids must differ. Raises `BadRun`.
    """
    ids = [item.id for item in items]
    if twice := {id for id in ids if ids.count(id) > 1} if len(set(ids)) < len(ids) else set():
        raise BadRun(f"several samples have the id {min(twice)!r}", fix="give each its own")
    known = (
        # Several judges may keep their verdicts in one file.
        {one.id: one for one in _read_inspections(keep) if one.judge == inspector.name}
        if keep
        else {}
    )
    new, usage = 0, Usage()
    for n, item in enumerate(items, 1):
        if item.id not in known:
            run = Run(id=f"inspect.{item.id}")
            # One after the other: each verdict is on disk before the next is paid for.
            known[item.id] = await inspector.inspect(item, run)
            usage += run.usage
            new += 1
            if keep is not None:
                _append_inspection(keep, known[item.id])
        if progress is not None:
            progress(f"inspected by {inspector.name}", n, len(items))
    return InspectionRun(tuple(known[id] for id in ids), new, usage)


def _append_inspection(path: Path, one: Inspection) -> None:
    try:
        with path.open("ab") as file:
            file.write(_adapter().dump_json(one) + b"\n")
    except OSError as error:
        raise BadRun(f"{path} cannot be written: {error.strerror}", fix="make room") from error


def _read_inspections(path: Path) -> list[Inspection]:
    """Half a line at the end is none. Raises `BadRun` naming file and line."""
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            found.append(_adapter().validate_json(line))
        except ValidationError as error:
            raise BadRun(f"{path}:{number}: not a verdict: {error.errors()[0]['msg']}") from error
    return found


@cache
def _adapter() -> TypeAdapter[Inspection]:
    return TypeAdapter(Inspection)
