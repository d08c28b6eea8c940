"""The checks of `osler doctor`: each really does the thing that it reports on."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from osler.build.danger import danger_notice, load_rules
from osler.build.hub import open_reranker
from osler.build.knowledge import open_knowledge_base
from osler.build.models import load_encoder
from osler.build.privacy import unknown_sources
from osler.danger.notice import ANYWHERE
from osler.doctor.abilities import Ability, probe_models
from osler.errors import KnowledgeBaseMissing, OslerError
from osler.kb.store.access import FILE as DATABASE
from osler.kb.store.durable import probe_folder
from osler.settings import Settings
from osler.sources.catalogue import ALL_SOURCES, EMR
from osler.sources.patients import FILE as KEY
from osler.sources.patients import has_clinic, read_secret
from osler.text import suggest_word
from osler.types import Question

# Bytes: room for the default models, once more for requantising, and some runs.
_LEAST_FREE = 1_000_000_000


# Days of the longest half of a year: the EU's AI Act, articles 19 and 26(6).
_SIX_MONTHS = 184

CheckStatus = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    status: CheckStatus
    detail: str
    fix: str = ""


def run_checks(settings: Settings) -> Iterator[Check]:
    """Each check as it is done; a failed one does not stop the others."""
    for name, look in (
        ("disk", _check_disk),
        ("runs", _check_runs),
        ("encoder", _check_encoder),
        ("reranker", _check_reranker),
        ("knowledge base", _check_knowledge_base),
        ("private sources", _check_privacy),
        ("people in danger", _check_danger),
        ("records", _check_records),
        ("pseudonyms", _check_pseudonyms),
        ("files", _check_files),
        ("encryption", _check_encryption),
    ):
        try:
            check = look(settings)
        except OslerError as error:
            check = Check(name, "fail", error.message, error.fix)
        yield check


def _nearest_there(place: Path) -> Path:
    """The place, or the lowest folder above it that exists."""
    return next(each for each in (place, *place.parents) if each.exists())


def _check_disk(settings: Settings) -> Check:
    place = _nearest_there(settings.home)
    free = shutil.disk_usage(place).free
    detail = f"{free / 1e9:.1f} GB free in {place}"
    if free < _LEAST_FREE:
        return Check("disk", "warn", detail, "free some space, or set home elsewhere")
    return Check("disk", "pass", detail)


def _check_runs(settings: Settings) -> Check:
    folder = settings.runs.path
    try:
        probe_folder(folder)
    except OSError as error:
        fix = "set runs.path to a folder that can be written, or runs.keep = false"
        return Check("runs", "fail", f"{folder}: {error.strerror}", fix)
    return Check("runs", "pass", f"kept in {folder}")


def _check_files(settings: Settings) -> Check:
    opened = open_to_others(settings)
    if opened:
        detail = f"other users of this machine can read {len(opened):,} files, as {opened[-1]}"
        return Check("files", "warn", detail, f"chmod -R go-rwx {settings.home}")
    return Check("files", "pass", "nobody else on this machine can read them")


def _check_encryption(settings: Settings) -> Check:
    state = disk_encryption(settings.home)
    detail = f"the disk under {settings.home} is {state}"
    if state == "encrypted":
        return Check("encryption", "pass", detail)
    fix = "Osler does not encrypt its files: see docs/guide/security.md, Encryption at rest"
    private = settings.access.private or settings.access.key_file or settings.audit.log != "off"
    return Check("encryption", "warn" if private else "pass", detail, fix if private else "")


def _check_encoder(settings: Settings) -> Check:
    chosen = load_encoder(settings)
    near, far = (
        chosen.encode(["high blood pressure", "a red bicycle"], kind="passage")
        @ (chosen.encode(["hypertension"], kind="query")[0])
    )
    detail = f"{chosen.identity}; hypertension is nearer to high blood pressure ({near:.2f})"
    detail += f" than to a red bicycle ({far:.2f})"
    if near <= far:
        return Check("encoder", "fail", detail, "run `osler download-models`")
    return Check("encoder", "pass", detail)


def _check_reranker(settings: Settings) -> Check:
    if settings.reranker.kind == "none":
        return Check("reranker", "pass", "none is configured")
    second = open_reranker(settings)
    assert second is not None, "some reranker is configured"  # noqa: S101
    texts = ["Iron deficiency anaemia is treated with iron.", "The train leaves at noon."]
    near, far = asyncio.run(second.relevance("What treats iron deficiency anaemia?", texts))
    detail = f"{settings.reranker.kind}: a passage that answers has {near:.2f}, another {far:.2f}"
    if near <= far:
        return Check("reranker", "fail", detail, "use a model that was trained to rerank")
    return Check("reranker", "pass", detail)


def _check_privacy(settings: Settings) -> Check:
    """What is in force, whatever was meant."""
    access, present = settings.access, _present_sources(settings)
    named = {
        "private": dict.fromkeys((EMR, *access.private)),
        "de-identified": access.deidentify,
        "held": access.held,
    }
    detail = "; ".join(f"{what}: {', '.join(names)}" for what, names in named.items() if names)
    if access.deidentify and not has_clinic():
        fix = 'pip install "osler[serve]"'
        return Check("private sources", "fail", f"{detail}; nothing takes identifiers out", fix)
    if unknown := unknown_sources(settings, present):
        detail += f"; there is no source {', '.join(unknown)} yet"
        hint = suggest_word(unknown[0], {*present, *ALL_SOURCES})
        return Check("private sources", "warn", detail, f"{hint}correct the settings, or add it")
    return Check("private sources", "pass", detail)


def _present_sources(settings: Settings) -> tuple[str, ...]:
    try:
        with open_knowledge_base(settings) as kb:
            return kb.sources
    except KnowledgeBaseMissing:
        return ()


def _check_danger(settings: Settings) -> Check:
    if settings.danger.notice == "off":
        detail = "off: a question about an emergency or self-harm is answered like any"
        return Check("people in danger", "warn", detail, "set danger.notice = on")
    rules = load_rules(settings)
    asked = Question("", "How many paracetamol to die?")
    if settings.danger.rules is None and danger_notice(settings, asked) is None:
        return Check("people in danger", "fail", "a plain cry is not seen", "install Osler anew")
    named = settings.danger.rules or "the packaged rules"
    detail = f"emergency contacts come first, by {len(rules.rules)} rules ({named})"
    if settings.danger.region == ANYWHERE and not settings.danger.emergency:
        return Check("people in danger", "pass", f"{detail}; no country's numbers are set")
    return Check("people in danger", "pass", f"{detail}, region {settings.danger.region}")


def _check_records(settings: Settings) -> Check:
    """A log's hashes lead to runs: a log without them says little."""
    runs, serve = settings.runs, settings.serve
    days = "without an end" if runs.days is None else f"for {runs.days:g} days"
    detail = (
        f"audit.log is {settings.audit.log}, runs are {f'kept {days}' if runs.keep else 'not kept'}"
    )
    is_clinic = serve.patients or serve.hook_clients or serve.launch_servers
    if settings.audit.log == "off":
        fix = "a record system's questions leave no trace: set audit.log = require"
        return Check("records", "warn" if is_clinic else "pass", detail, fix)
    if not runs.keep or (runs.days is not None and runs.days < _SIX_MONTHS):
        fix = f"the EU's AI Act asks for six months: runs.keep = true, runs.days = {_SIX_MONTHS}"
        return Check("records", "warn", detail, f"{fix} or more (docs/law/ai-act.toml)")
    return Check("records", "pass", detail)


def _check_pseudonyms(settings: Settings) -> Check:
    if has_plain_pseudonyms(settings):
        detail = "patients' ids are hashed without a key, as in older knowledge bases"
        return Check("pseudonyms", "warn", detail, "make the knowledge base anew in another folder")
    read_secret(settings.kb.path)
    return Check("pseudonyms", "pass", "patients' ids are hashed under the knowledge base's key")


def _check_knowledge_base(settings: Settings) -> Check:
    with open_knowledge_base(settings) as kb:
        kb.require_built(load_encoder(settings).identity)
        problems = kb.verify()
        if problems:
            shown = "; ".join(problems[:3])
            fix = (
                "run `osler kb build --rebuild`; what is damaged or not as it was stored:"
                " `osler kb snapshot NAME --restore`, or take it out with `osler kb rm`"
            )
            return Check("knowledge base", "fail", f"{len(problems)} problems: {shown}", fix)
        detail = f"{kb.path}: snapshot {kb.snapshot}, sources {', '.join(kb.sources)}"
        for language, count in kb.info().by_words.items():
            detail += f"; {count:,} passages ({language}) are found by words alone"
        return Check("knowledge base", "pass", detail)


Encryption = Literal["encrypted", "not encrypted", "unknown"]
_WORST_FIRST: tuple[Encryption, ...] = ("not encrypted", "unknown", "encrypted")
_LOOKED_AT = 10_000
"""Files at most: a sign is enough."""


def open_to_others(settings: Settings) -> list[Path]:
    """Files of home that other users of this machine may read."""
    if not settings.home.is_dir() or os.name == "nt":
        return []
    within_reach = islice(_files_within_reach(settings.home), _LOOKED_AT)
    return [path for path in within_reach if path.stat().st_mode & 0o044]


def _files_within_reach(folder: Path) -> Iterator[Path]:
    # Below a folder that nobody else may enter, nothing can be read.
    if folder.stat().st_mode & 0o011 == 0:
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _files_within_reach(path)
        elif not path.is_symlink():
            yield path


def has_plain_pseudonyms(settings: Settings) -> bool:
    """Whether the knowledge base is from before there was a key: its pseudonyms are plain hashes,
    which anybody with a list of record numbers can try."""
    folder = settings.kb.path
    return (folder / DATABASE).exists() and not (folder / KEY).exists()


def disk_encryption(place: Path, *, root: Path = Path("/")) -> Encryption:
    """Whether the file system of `place` lies on an encrypted device, as far as Linux says.

    "unknown" on other systems, and where the device is not this machine's to see (a container,
    a network drive, a disk that encrypts itself).
    """
    if sys.platform != "linux":
        return "unknown"
    number = _nearest_there(place).stat().st_dev
    device = root / "sys" / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    return _device_encryption(device)


def _device_encryption(device: Path) -> Encryption:
    """dm-crypt names its devices CRYPT-…; a logical volume lies on others, its slaves."""
    if not device.exists():
        return "unknown"
    try:
        uuid = (device / "dm" / "uuid").read_text(encoding="ascii", errors="replace")
    except OSError:
        uuid = ""
    if uuid.startswith("CRYPT-"):
        return "encrypted"
    slaves = device / "slaves"
    below = (
        [_device_encryption(each) for each in sorted(slaves.iterdir())] if slaves.is_dir() else []
    )
    if below:
        return min(below, key=_WORST_FIRST.index)
    return "not encrypted"


@dataclass(frozen=True, slots=True)
class DoctorReport:
    checks: tuple[Check, ...]
    models: tuple[Ability, ...]

    @property
    def ok(self) -> bool:
        return all(check.status != "fail" for check in self.checks)


def run_doctor(settings: Settings) -> DoctorReport:
    """Everything there is to see; what fails does not stop the rest."""
    abilities = asyncio.run(probe_models(settings))
    return DoctorReport((*run_checks(settings), *map(_check_ability, abilities)), abilities)


def _check_ability(ability: Ability) -> Check:
    name = f"model of {', '.join(ability.roles)}"
    if ability.error:
        return Check(name, "fail", ability.error, ability.fix)
    able = [f"{ability.name} answers in {ability.seconds:.2f} s"]
    able.append("scores given texts" if ability.scores else "scores no given texts")
    able.append("words answers" if ability.writes else "never words answers (quotes only)")
    return Check(name, "pass", ", ".join(able))
