"""Reports of evaluations, kept while the server runs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path

from osler.evaluate.report import EvaluationReport, build_report

_KEPT = 8
Stamp = tuple[tuple[str, int, int], ...]


class ReportCache:
    """The reports of log folders, each built once for as long as its files stay as they are."""

    def __init__(self) -> None:
        self._built: OrderedDict[Path, tuple[Stamp, EvaluationReport]] = OrderedDict()
        self._one_by_one = asyncio.Lock()

    async def load_report(self, folder: Path) -> EvaluationReport:
        """Raises `BadRun` as `build_report` does."""
        async with self._one_by_one:
            stamp = await asyncio.to_thread(_file_stamps, folder)
            known = self._built.get(folder)
            if known is None or known[0] != stamp:
                known = (stamp, await asyncio.to_thread(build_report, folder))
            self._built[folder] = known
            self._built.move_to_end(folder)
            while len(self._built) > _KEPT:
                self._built.popitem(last=False)
            return known[1]


def _file_stamps(folder: Path) -> Stamp:
    files = sorted(path for path in folder.glob("*.json*") if path.is_file())
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
