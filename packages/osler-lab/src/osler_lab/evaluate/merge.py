"""Merge of several log folders: the records of all, with their traces."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from osler.errors import BadRun
from osler.llm.core.cache import write_whole
from osler.runs.files import RECORDS, TRACES
from osler_lab.evaluate.judged import FILES
from osler_lab.evaluate.log import RUNS
from osler_lab.evaluate.plan import join_plans, read_plan, save_plan


def merge_logs(logs: Sequence[Path], into: Path) -> None:
    """Copies every writer's files; the try that counts is chosen when they are read.

    All plans are checked before anything is copied. Raises `BadRun` where two logs were made
    otherwise, or where two different files have one name.
    """
    if not logs:
        raise BadRun("no logs to merge", fix="name their folders")
    whole = read_plan(logs[0])
    for log in logs[1:]:
        whole = join_plans(whole, read_plan(log))
    save_plan(into, whole)
    for log in logs:
        for run in sorted((log / RUNS).glob("[!.]*")):
            # Its name is chosen by chance: one that is there is this one.
            if not (into / RUNS / run.name).exists():
                shutil.copytree(run, into / RUNS / run.name)
        for kind in (RECORDS, TRACES, FILES):
            for path in sorted(log.glob(f"{kind}*.jsonl")):
                _copy_file(path, into / path.name)


def _copy_file(path: Path, target: Path) -> None:
    if target.exists():
        # A writer only appends: of two copies of its file the longer one holds the other.
        old, new = target.read_bytes(), path.read_bytes()
        if not (new.startswith(old) or old.startswith(new)):
            raise BadRun(f"{path} and {target} are different files of one name")
        if len(new) <= len(old):
            return
    with write_whole(target) as draft:
        shutil.copyfile(path, draft)
