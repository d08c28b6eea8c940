"""The audit log read: its entries, whether they are those that were signed, and a run's proof."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.audit.checkpoints import (
    HEAD,
    Anchors,
    Checkpoint,
    MerkleFrontier,
    hash_leaf,
    is_signed_by,
    newest_signed,
    read_checkpoints,
    read_slots,
)
from osler.audit.entries import RUN_FILES, anchor_places, audit_places, log_folder, make_log
from osler.audit.log import ENTRIES, PUBLIC, storage_errors
from osler.errors import BadConfig, BadRun, StorageFailed, UnknownRun, translate_os_errors
from osler.settings import Settings


def accept_audit(settings: Settings) -> int | None:
    """Goes on with a log that was refused; the number of the entry that says what is missing, and
    `None` where nothing is. Raises `BadConfig`, and `StorageFailed` for one that is damaged."""
    log = make_log(*audit_places(settings))
    try:
        log.check()
    except StorageFailed:
        return log.accept()
    return None


def verify_audit(settings: Settings, copies: Path | None = None) -> Verification:
    """Raises `BadConfig` where there is no log, or no list of checkpoints at `copies`."""
    folder = log_folder(settings)
    public = folder / PUBLIC
    key = public.read_text().strip() if public.is_file() else ""
    anchored = [one for _, one in Anchors(anchor_places(settings), key).read()]
    if not key and not anchored:
        raise BadConfig(f"there is no audit log in {folder}", fix="set audit.log = require")
    place = copies or settings.audit.copies
    try:
        lines = place.read_text(encoding="utf-8").splitlines() if place else []
        kept = read_checkpoints(lines)
    except (OSError, ValueError) as error:
        raise BadConfig(f"{place} holds no checkpoints: {error}", fix="name another") from error
    return verify_log(folder, key, [*kept, *anchored])


def read_entries(settings: Settings) -> list[dict[str, Any]]:
    """Those that can be read. Raises `StorageFailed`."""
    entries = []
    for line in read_lines(log_folder(settings)):
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue  # `osler audit --verify` names it
    return entries


def prove_run(settings: Settings, run: str) -> dict[str, Any]:
    """All that a stranger needs to see that the run was recorded, and as what.

    Raises `UnknownRun` for one that the log does not know, `BadRun` where its files are gone.
    """
    folder = log_folder(settings)
    lines, head = read_lines(folder), read_head(folder)
    index = _find_run(lines, run)
    if index is None or head is None:
        fix = "`osler audit` lists them"
        raise UnknownRun(f"the audit log knows no run {run!r}", fix=fix)
    place = settings.runs.path / run
    with translate_os_errors(f"the files of the run {run} are gone", BadRun):
        files = {name: (place / file).read_text("utf-8") for name, file in RUN_FILES.items()}
    leaves = [hash_leaf(line) for line in lines[: head.size]]
    return {
        "entry": lines[index].decode(),
        "index": index,
        "path": [node.hex() for node in prove_inclusion(leaves, index)],
        "checkpoint": json.loads(head.to_json()),
        "public_key": (folder / PUBLIC).read_text().strip(),
        "files": files,
        # Not splitlines(): JSON may hold U+2028 and other line ends of Unicode.
        "answer": json.loads(files["events"].strip().split("\n")[-1])["solution"]["answer"],
    }


def _find_run(lines: list[bytes], run: str) -> int | None:
    """The last entry of the run."""
    for index in range(len(lines) - 1, -1, -1):
        if run.encode() in lines[index]:
            entry = json.loads(lines[index])
            if entry.get("what") == "run" and entry.get("run") == run:
                return index
    return None


def read_head(folder: Path) -> Checkpoint | None:
    """The last checkpoint, of the log's own key where one is; `None` of a log without one."""
    try:
        slots = read_slots((folder / HEAD).read_bytes())
        public = (folder / PUBLIC).read_text().strip()
    except FileNotFoundError:
        return None
    newest = max(slots, key=lambda one: one.size, default=None)
    return newest_signed(slots, public) or newest


def read_lines(folder: Path) -> list[bytes]:
    """The entries as they are hashed. Raises `StorageFailed`."""
    lines = _read_data(folder).split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _read_data(folder: Path) -> bytes:
    with storage_errors(folder):
        path = folder / ENTRIES
        return path.read_bytes() if path.exists() else b""


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify_log` found."""

    entries: int
    public_key: str
    checkpoints: int
    """That were compared, of the head and of the copies."""
    problems: tuple[str, ...]


def verify_log(folder: Path, public_key: str, copies: Iterable[Checkpoint] = ()) -> Verification:
    """Holds the entries against the head and every copied checkpoint.

    Whoever has neither the signing key nor the second place cannot change, reorder, add or cut
    off an entry unseen. Raises `StorageFailed`.
    """
    lines, head = read_lines(folder), read_head(folder)
    problems = _slot_problems(folder, public_key)
    if lines and not _read_data(folder).endswith(b"\n"):
        problems.append("the last entry is cut short")
    if head is None:
        problems.append("there is no signed head")
    elif head.size != len(lines):
        problems.append(f"{len(lines):,} entries are there, {head.size:,} were signed")
    wanted: dict[int, list[Checkpoint]] = {}
    for one in (*copies, *([head] if head else [])):
        wanted.setdefault(one.size, []).append(one)
    checked, tree = 0, MerkleFrontier()
    for number, line in enumerate((None, *lines)):
        if line is not None:
            tree.append(hash_leaf(line))
            if _number_of(line) != number - 1:
                problems.append(f"entry {number - 1:,} is out of place or damaged")
        for one in wanted.pop(number, ()):
            checked += 1
            problems += _check_one(one, tree.root().hex(), public_key)
    problems += [f"a checkpoint knows {size:,} entries, not {len(lines):,}" for size in wanted]
    return Verification(len(lines), public_key, checked, tuple(dict.fromkeys(problems)))


def _slot_problems(folder: Path, public_key: str) -> list[str]:
    """Both slots are whole and signed, and of neighbouring sizes, but after a power cut."""
    if (head := read_head(folder)) is None or head.size < 2:
        return []
    slots = read_slots((folder / HEAD).read_bytes())
    sizes = {one.size for one in slots if is_signed_by(one, public_key)}
    damaged = "one of the two signed heads is damaged or missing: by a power cut, or by somebody"
    return [] if sizes == {head.size - 1, head.size} else [damaged]


def _check_one(signed: Checkpoint, root: str, public_key: str) -> list[str]:
    if not is_signed_by(signed, public_key):
        return [f"the checkpoint of {signed.size:,} entries is not signed by this log's key"]
    if signed.root != root:
        return [f"the first {signed.size:,} entries are not those that were signed"]
    return []


def _number_of(line: bytes) -> int | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry.get("n") if isinstance(entry, dict) else None


def prove_inclusion(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """PATH(index, leaves) of RFC 6962, §2.1.1: the siblings from the leaf up to the root."""
    if len(leaves) == 1:
        return []
    half = 1 << ((len(leaves) - 1).bit_length() - 1)  # the largest power of two below the size
    left, right = leaves[:half], leaves[half:]
    if index < half:
        return [*prove_inclusion(left, index), MerkleFrontier(right).root()]
    return [*prove_inclusion(right, index - half), MerkleFrontier(left).root()]
