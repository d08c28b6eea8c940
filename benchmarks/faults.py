"""Fails each write of each verb in turn, and cuts the power after each, and looks at what is left.

    python benchmarks/faults.py [POINTS] [--seed N] [--verbs add,ask] [--minutes M] [--state FILE]
    python benchmarks/faults.py --kills N

A point is a verb, a fault (full, short, broken, denied, unsynced) and the n-th operation from which
on the disk fails, or before which SIGKILL comes (killed); or a verb and the operation after which
the power went, with what was flushed kept and the rest dropped; or a kill at a random moment of an
evaluation, a server with fifty questions in flight, or the embedded engine. After each it must
hold: the verb ended, or said why not, in an error of Osler's own; nothing that is half there is
taken for a whole; what was acknowledged is there; the same verb, run again on a disk that works,
ends as it does on one that never failed.

Works in forked children of one process that has all imports behind it. All points of all verbs are
listed, shuffled by the seed, and tried until there are POINTS; `--state` remembers which were.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from disk_faults import FAULTS, RECORDED, FaultDial, RecordedDisk
from served import FixedModel, loaded_shelf, no_page, serving_settings
from stores import write_corpus

from osler.answer.follow_up import Standalone
from osler.audit import entries
from osler.errors import BadRun, OslerError
from osler.kb.base import KnowledgeBase
from osler.kb.search.base import BackendChoice
from osler.kb.upkeep import release
from osler.retrieve.hybrid import LexicalRetriever
from osler.runs import answering
from osler.runs.threads import Thread, ThreadStore, Turn
from osler.settings import Settings
from osler.trace import Run
from osler.types import Answer, Halt, Question, Solution
from osler_lab.evaluate.log import read_records, read_trace
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.evaluate.runner import EvaluationRunner, ReadyStrategy, RunnerCell
from osler_lab.jobs.journal import append_line, read_lines, require_agreement
from osler_lab.testing.scripted import HashingEncoder
from osler_lab.train.record import DATA, write_records
from osler_serve.active_runs import ActiveRun
from osler_serve.app import build_state
from osler_serve.keys import Caller
from osler_serve.ops import forget as forgetting
from osler_serve.ops.audit_proofs import read_head, verify_audit
from osler_serve.ops.audit_proofs import read_lines as read_audit_lines
from osler_serve.ops.backup import check_backup, make_backup, part_folders, restore_backup

WORDS = ("iron", "zinc", "gold", "lead")
CUTS = ("cut", "cut-strict")
SECONDS = 60
QUESTION = Question("", "What is said on iron?")


@dataclass(frozen=True)
class Verb:
    prepare: Callable[[Path], None]
    act: Callable[[Path], None]
    """Raises `OslerError` where it fails; what it says was done it wrote to `done` beside."""
    check: Callable[[Path], None]
    """Raises `AssertionError` for what is half, lost or damaged; before and after `act` is
    repeated."""
    end: Callable[[Path], Any] = lambda _: None
    """What must come out at last, however often it failed before."""
    cuts: bool = True
    """Whether the shim sees all its operations: Edge renames files without the C library."""


def acknowledge(folder: Path, what: str) -> None:
    """Outside of the disk that fails: what a user was told is done."""
    with folder.with_name("acknowledged").open("a") as file:
        file.write(f"{what}\n")


def acknowledged(folder: Path) -> list[str]:
    path = folder.with_name("acknowledged")
    return path.read_text().splitlines() if path.exists() else []


# Knowledge bases -------------------------------------------------------------------------


def fill(folder: Path) -> None:
    (folder / "more").mkdir()
    for word in WORDS[2:]:
        write_corpus(folder / "more" / f"{word}.jsonl", 6, word)
    with KnowledgeBase.create(folder / "kb") as kb:
        for word in WORDS[:2]:
            kb.add([write_corpus(folder / f"{word}.jsonl", 6, word)], source="book")


def fill_and_build(folder: Path) -> None:
    fill(folder)
    with KnowledgeBase.open(folder / "kb") as kb:
        kb.build(HashingEncoder())


def fill_and_snapshot(folder: Path) -> None:
    fill_and_build(folder)
    with KnowledgeBase.open(folder / "kb") as kb:
        kb.take_snapshot("first")
        kb.add([folder / "more"], source="book")


def add(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        kb.add([folder / "more"], source="book")
    acknowledge(folder, "add")


def build(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        kb.build(HashingEncoder(), batch=4)
    acknowledge(folder, "build")


def rm(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        if any(one.source == "book" for one in kb.info().sources):
            kb.remove(source="book")
    acknowledge(folder, "rm")


def snapshot(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        if "second" not in [one.name for one in kb.list_snapshots()]:
            kb.take_snapshot("second")
    acknowledge(folder, "snapshot")


def rollback(folder: Path) -> None:
    KnowledgeBase.restore(folder / "kb", "first")
    acknowledge(folder, "rollback")


def build_edge(folder: Path) -> None:
    """The embedded engine's index, and a search in it by a worker."""
    with KnowledgeBase.open(folder / "kb", EDGE) as kb:
        kb.build(HashingEncoder(), batch=4)
    acknowledge(folder, "build")
    search_edge(folder)


def search_edge(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb", EDGE) as kb:
        found = asyncio.run(LexicalRetriever(kb).search("Text 1 on iron.", k=3))
        assert found, "the index finds nothing"


def check_edge(folder: Path) -> None:
    check_base(folder)
    if "build" in acknowledged(folder):
        search_edge(folder)


def check_base(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        problems = [line for line in kb.verify() if not line.startswith("it is not built")]
        assert problems == [], problems
        documents = kb.info().documents
        words = acknowledged(folder)
        # A file's documents are there all or not at all.
        assert documents % 6 == 0, f"{documents} documents"
        if "add" in words:
            assert documents == 24, f"{documents} documents after add"
        if "rm" in words:
            assert documents == 0, f"{documents} documents after rm"
        if "build" in words:
            kb.require_built(HashingEncoder().identity)
        if "rollback" in words:
            assert documents == 12, f"{documents} documents after rollback"
        names = [one.name for one in kb.list_snapshots()]
    if "snapshot" in words:
        assert "second" in names, names
    for name in names:
        copy = folder.with_name("copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder / "kb", copy)
        KnowledgeBase.restore(copy, name)
        with KnowledgeBase.open(copy) as kb:
            assert kb.info().documents == 12, "a snapshot is half"


def end_of_base(folder: Path) -> Any:
    with KnowledgeBase.open(folder / "kb") as kb:
        return kb.build(HashingEncoder()).snapshot


# Questions -------------------------------------------------------------------------------


def settings_in(folder: Path) -> Settings:
    return serving_settings(folder, serve={"runs": 4, "waiting": 60})


def ask(folder: Path, settings: Settings | None = None) -> None:
    settings = settings or settings_in(folder)
    shelf = loaded_shelf(settings, FixedModel())

    async def solve() -> answering.FinishedRun:
        return await answering.ask(settings, QUESTION, parts=await shelf.parts_for(settings))

    try:
        acknowledge(folder, f"run {asyncio.run(solve()).run}")
    finally:
        shelf.close()


def serve(folder: Path, questions: int = 3) -> None:
    """So many questions at once, without the sockets."""
    settings = settings_in(folder)
    site = build_state(settings, no_page, shelf=loaded_shelf(settings, FixedModel()))

    async def solve() -> None:
        caller = Caller("me", "default", 99, 999)
        begun = [await site.desk.start_run(caller, QUESTION, settings) for _ in range(questions)]
        for live in begun:
            live.at_end.append(partial(acknowledge_end, folder, live))
        await asyncio.wait([live.task for live in begun if live.task])
        assert site.desk.unfinished == 0
        assert caller.running == 0
        for live in begun:
            assert live.status in ("finished", "failed"), live.status
        if failed := [live.detail for live in begun if live.status == "failed"]:
            raise BadRun(failed[0])

    try:
        with site.ledger.hold_open(site.desk.is_kept):
            asyncio.run(solve())
    finally:
        site.shelf.close()
        site.ledger.close()


def acknowledge_end(folder: Path, live: ActiveRun) -> None:
    if live.status == "finished":
        acknowledge(folder, f"run {live.id}")


def check_runs(folder: Path) -> None:
    """Every run that has its name can be replayed, and those that were acknowledged are there."""
    home = settings_in(folder).runs.path
    kept = [run for run in home.glob("*") if not run.name.startswith(".")]
    for run in kept:
        asyncio.run(answering.replay(run))
    missing = {line.split()[1] for line in acknowledged(folder) if line.startswith("run ")}
    missing -= {run.name for run in kept}
    assert not missing, f"acknowledged and lost: {missing}"


def check_ledger(folder: Path) -> None:
    check_runs(folder)
    settings = settings_in(folder)
    site = build_state(settings, no_page, shelf=loaded_shelf(settings, FixedModel()))
    with site.ledger.hold_open(site.desk.is_kept):
        for entry in site.ledger.list_runs("default", before="", limit=100):
            assert entry.status not in ("queued", "running"), entry
            kept = site.desk.is_kept(entry.id)
            assert kept == (entry.status == "finished"), (entry, kept)
    site.shelf.close()
    site.ledger.close()


def fill_home(folder: Path) -> None:
    fill_and_build(folder)
    ask(folder)
    folder.with_name("acknowledged").unlink()


def back_up(folder: Path) -> None:
    """To the same disk, and back to another home on it."""
    settings, path = settings_in(folder), folder / "all.zip"
    if not path.exists():
        make_backup(settings, path)
        acknowledge(folder, "backup")
    if not (folder / "other" / "kb").exists():
        shutil.rmtree(folder / "other", ignore_errors=True)
        restore_backup(path, settings_in(folder / "other"))
        acknowledge(folder, "restore")


def check_backups(folder: Path) -> None:
    check_runs(folder)
    path, other = folder / "all.zip", folder / "other"
    if path.exists():
        parts = check_backup(path).parts
        assert parts["runs"] == 3, parts
    else:
        assert "backup" not in acknowledged(folder)
    # The knowledge base is the last part to get its name: where it is, all is.
    if (other / "kb").exists():
        with KnowledgeBase.open(other / "kb") as kb:
            assert kb.verify() == []
        check_runs(other)
    else:
        assert "restore" not in acknowledged(folder)


def fill_archive(folder: Path) -> None:
    fill_home(folder)
    make_backup(settings_in(folder), folder / "all.zip")


def restore(folder: Path) -> None:
    """To a home of its own; where it was killed, once more."""
    other = settings_in(folder / "other")
    if "restore" not in acknowledged(folder):
        restore_backup(folder / "all.zip", other)
        acknowledge(folder, "restore")


def check_restored(folder: Path) -> None:
    """Each part is all there or not at all, and the knowledge base the last."""
    other, one = folder / "other", settings_in(folder)
    for part, place in part_folders(settings_in(other)).items():
        if part != "home" and place.is_dir() and any(place.iterdir()):
            first = {
                p.relative_to(part_folders(one)[part]) for p in _files_in(part_folders(one)[part])
            }
            assert {p.relative_to(place) for p in _files_in(place)} == first, part
    check_backups(folder)


def _files_in(folder: Path) -> list[Path]:
    beside = ("-wal", "-shm", "-journal", ".lock")
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(beside)]


# Conversations, records, what is forgotten ------------------------------------------------


def talk(folder: Path) -> None:
    """Turns of a thread, each acknowledged when it is there."""
    store = ThreadStore(folder)
    thread = store.create_thread("ward")
    for n in range(len(thread.turns), 4):
        store.add_turn(thread, f"run-{n}", QUESTION.text, Standalone(QUESTION.text))
        thread = store.read_thread("ward")
        acknowledge(folder, f"turn {n}")


def check_threads(folder: Path) -> None:
    turns = [turn.run for one in ThreadStore(folder).list_threads() for turn in _turns(folder, one)]
    wanted = {f"run-{line.split()[1]}" for line in acknowledged(folder) if line[:4] == "turn"}
    assert turns == [f"run-{n}" for n in range(len(turns))], turns
    assert wanted <= set(turns), f"acknowledged and lost: {wanted - set(turns)}"


def _turns(folder: Path, thread: Thread) -> Sequence[Turn]:
    return ThreadStore(folder).read_thread(thread.id).turns


def audited(folder: Path) -> Settings:
    # The anchor lies in the home that is set back between trials, or each would be a rollback.
    return serving_settings(folder, audit={"log": "require", "anchor": str(folder / "anchor")})


def record(folder: Path) -> None:
    """Entries of the audit log, as a new process writes them."""
    entries._open_log.cache_clear()
    for n in range(6):
        entries.write_entry(audited(folder), {"what": "trial", "n_of_trial": n})
        acknowledge(folder, f"entry {n}")


def signed_entries(settings: Settings) -> list[dict[str, Any]]:
    """What stands behind the signed head was never answered for."""
    place = entries.log_folder(settings)
    head = read_head(place)
    return [json.loads(line) for line in read_audit_lines(place)[: head.size if head else 0]]


def check_record(folder: Path) -> None:
    """What was answered for is on record; a new writer puts the rest in order first."""
    entries._open_log.cache_clear()
    settings = audited(folder)
    there = {one["n_of_trial"] for one in signed_entries(settings) if one["what"] == "trial"}
    wanted = {int(line.split()[1]) for line in acknowledged(folder) if line[:5] == "entry"}
    assert wanted <= there, f"acknowledged and lost: {wanted - there}"


def end_of_record(folder: Path) -> str:
    settings = audited(folder)
    entries._open_log.cache_clear()
    entries.write_entry(settings, {"what": "last"})
    found = verify_audit(settings)
    # That a power cut spoilt one of two slots is mended by the next two entries.
    return "; ".join(found.problems)


def ask_on_record(folder: Path) -> None:
    entries._open_log.cache_clear()
    entries._salt.cache_clear()
    ask(folder, audited(folder))


def check_asked(folder: Path) -> None:
    """Nobody was answered who is not on record."""
    check_runs(folder)
    entries._open_log.cache_clear()
    signed = signed_entries(audited(folder))
    there = {one.get("run") for one in signed if one["what"] == "run"}
    wanted = {line.split()[1] for line in acknowledged(folder) if line.startswith("run ")}
    assert wanted <= there, f"answered and not on record: {wanted - there}"


MARKED = "zyxomarker"


def fill_marked(folder: Path) -> None:
    fill_and_snapshot(folder)
    (folder / "marked.md").write_text(f"# Note\n\nIron is given to {MARKED} today.\n")
    with KnowledgeBase.open(folder / "kb") as kb:
        kb.add([folder / "marked.md"], source="own")
        kb.build(HashingEncoder())
    (folder / "marked.md").unlink()
    ask(folder)
    talk(folder)
    folder.with_name("acknowledged").unlink()


def forget_mark(folder: Path) -> None:
    setattr(forgetting, "load_encoder", lambda _: HashingEncoder())  # noqa: B010  mypy
    forgetting.forget(settings_in(folder), MARKED)
    acknowledge(folder, "forget")


def check_forgotten(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        problems = [line for line in kb.verify() if not line.startswith("it is not built")]
        assert problems == [], problems
        assert kb.info().documents in (24, 25)
    if "forget" in acknowledged(folder):
        files = [path for path in folder.rglob("*") if path.is_file()]
        left = [path for path in files if MARKED.encode() in path.read_bytes()]
        assert left == [], left


def hold_and_release(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        if "web" not in kb.sources:
            kb.add([folder / "more"], source="web.held")
            acknowledge(folder, "held")
            release(kb, "web")
        elif "web.held" in kb.sources:
            release(kb, "web")
    acknowledge(folder, "released")


def check_held(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb") as kb:
        problems = [line for line in kb.verify() if not line.startswith("it is not built")]
        assert problems == [], problems
        counted = {one.source: one.documents for one in kb.info().sources}
    assert counted["book"] == 12, counted
    there = counted.get("web", 0) + counted.get("web.held", 0)
    assert there or "held" not in acknowledged(folder), counted
    if "released" in acknowledged(folder):
        assert counted.get("web") == 12, counted


# Evaluation and training -----------------------------------------------------------------


class Answers:
    async def solve(self, question: Question, run: Run) -> Solution:
        return Solution(Answer(option="A"), Halt.CONVERGED, "said so", run.usage)


SAMPLES = [
    Sample("made", "choice", Question(f"q{i}", f"Case {i}?", ("x", "y")), Gold(("A",)))
    for i in range(60)
]
FEW = SAMPLES[:5]


def evaluate(folder: Path, samples: Sequence[Sample] = FEW) -> None:
    async def prepare(label: str) -> ReadyStrategy:
        return ReadyStrategy(Answers(), {"reader": "made"}, kind="direct")

    log = folder / "log"
    require_agreement(log, "plan", {"data": "made"})
    runner = EvaluationRunner(log, prepare)
    asyncio.run(runner.run([RunnerCell("direct", "made", samples)]))
    acknowledge(folder, "eval")


def check_log(folder: Path) -> None:
    if not (folder / "log").is_dir():
        assert "eval" not in acknowledged(folder)
        return
    records = list(read_records(folder / "log"))
    for record in records:
        assert record.trace is not None
        assert len(read_trace(folder / "log", record.trace)) == 2
    if "eval" in acknowledged(folder):
        assert len(records) in (len(FEW), len(SAMPLES)), f"{len(records)} records"


def train(folder: Path) -> None:
    """What the stages of training data write: facts, a journal, a data set."""
    log = folder / "train"
    require_agreement(log, "stage", {"seed": 1})
    there = {line for _, line in read_lines(log / "kept.jsonl")} if _has(log) else set()
    for n in range(5):
        if (line := f'{{"n": {n}}}\n'.encode()) not in there:
            append_line(log / "kept.jsonl", line)
    write_records(folder / "records", [json.dumps({"n": n}) for n in range(20)])
    acknowledge(folder, "train")


def _has(log: Path) -> bool:
    return (log / "kept.jsonl").exists()


def check_training(folder: Path) -> None:
    if _has(folder / "train"):
        for _, line in read_lines(folder / "train" / "kept.jsonl"):
            json.loads(line)
    made = folder / "records" / DATA
    if made.exists():
        assert len(made.read_text().splitlines()) == 20, "half a data set"
    else:
        assert "train" not in acknowledged(folder)


def end_of_training(folder: Path) -> Any:
    lines = [line for _, line in read_lines(folder / "train" / "kept.jsonl")]
    return sorted(set(lines)), (folder / "records" / DATA).read_text()


EDGE = BackendChoice("edge")
KILLED: dict[str, Verb] = {
    "eval": Verb(lambda _: None, partial(evaluate, samples=SAMPLES), check_log),
    "serve": Verb(fill_and_build, partial(serve, questions=50), check_ledger),
    "edge": Verb(fill, build_edge, check_edge, end_of_base),
}
"""Those that `benchmarks/kill.py` does not kill."""
VERBS: dict[str, Verb] = {
    "add": Verb(fill, add, check_base, end_of_base),
    "build": Verb(fill, build, check_base, end_of_base),
    "rm": Verb(fill_and_build, rm, check_base, end_of_base),
    "snapshot": Verb(fill_and_build, snapshot, check_base, end_of_base),
    "rollback": Verb(fill_and_snapshot, rollback, check_base, end_of_base),
    "ask": Verb(fill_and_build, ask, check_runs),
    "serve": Verb(fill_and_build, serve, check_ledger),
    "backup": Verb(fill_home, back_up, check_backups),
    "restore": Verb(fill_archive, restore, check_restored),
    "eval": Verb(lambda _: None, evaluate, check_log),
    "edge": Verb(fill, build_edge, check_edge, end_of_base, cuts=False),
    "thread": Verb(lambda _: None, talk, check_threads),
    "ask-audit": Verb(fill_and_build, ask_on_record, check_asked),
    "serve-6": Verb(fill_and_build, partial(serve, questions=6), check_ledger),
    "audit": Verb(lambda _: None, record, check_record, end_of_record),
    "forget": Verb(fill_marked, forget_mark, check_forgotten, end_of_base),
    "release": Verb(fill, hold_and_release, check_held, end_of_base),
    "train": Verb(lambda _: None, train, check_training, end_of_training),
}


# The trial -------------------------------------------------------------------------------


def in_child(work: Callable[[], Any]) -> str:
    """ "" for a child that did the work, else why not: "said: …" or a traceback."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what a log says is no result
        try:
            result = work()
            said = "" if result is None else f"= {result}"
        except OslerError as error:
            said = f"said: {type(error).__name__}: {error}"
        except BaseException:
            said = traceback.format_exc()
        os.write(writing, said.encode()[-4000:])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    return said


@dataclass
class Trial:
    """One verb over and over, on one disk."""

    name: str
    root: Path
    dial: FaultDial
    verbs: Mapping[str, Verb] = field(default_factory=lambda: VERBS)

    def __post_init__(self) -> None:
        self.verb = self.verbs[self.name]
        self.start, self.work = self.root / f"start-{self.name}", self.root / "work" / "home"
        self.dial.aim_at(self.root / "nowhere")
        self.start.mkdir()
        self.must(lambda: self.verb.prepare(self.start))
        self.reset()
        self.verb.act(self.work)  # here, so that no child needs to load what all use
        began = time.monotonic()
        self.reset()
        self.must(lambda: self.verb.act(self.work))
        self.took = time.monotonic() - began
        self.verb.check(self.work)
        self.end = self.must(lambda: self.verb.end(self.work))

    def must(self, work: Callable[[], Any]) -> str:
        said = in_child(work)
        assert not said or said.startswith("="), f"{self.name}: {said}"
        return said

    def reset(self) -> None:
        self.dial.turn_off()
        shutil.rmtree(self.work.parent, ignore_errors=True)
        shutil.copytree(self.start, self.work)

    def count(self, fault: str) -> int:
        self.reset()
        self.dial.aim_at(self.work)
        self.dial.count_only(FAULTS[fault])
        self.must(lambda: self.verb.act(self.work))
        return self.dial.count

    def record(self) -> None:
        """The operations of one whole act, for the power cuts."""
        self.reset()
        self.dial.aim_at(self.work)
        self.dial.count_only(RECORDED, record=True)
        self.must(lambda: self.verb.act(self.work))
        self.dial.stop_recording()
        self.recording = self.dial.read_recording()
        self.words = acknowledged(self.work)

    def fail(self, fault: str, first: int) -> str:
        """ "" = all is well."""
        self.reset()
        self.dial.aim_at(self.work)
        self.dial.turn_on(FAULTS[fault], first)
        said = in_child(lambda: self.verb.act(self.work))
        self.dial.turn_off()
        if said and not said.startswith("said: ") and (fault != "killed" or "signal 9" not in said):
            return f"act: {said}"
        return self.look()

    def kill(self, chance: random.Random) -> tuple[bool, str]:
        """Whether SIGKILL came before the end; and what is wrong then."""
        self.reset()
        if (child := os.fork()) == 0:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with suppress(OslerError):
                self.verb.act(self.work)
            os._exit(0)
        time.sleep(chance.uniform(0, self.took))
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status), self.look()

    def cut(self, after: int, *, strict: bool) -> str:
        self.reset()
        disk = RecordedDisk.of_folder(self.work)
        for one in self.recording[:after]:
            disk.apply(one)
        disk.lay_out(self.work, strict=strict)
        if after == len(self.recording):
            for word in self.words:
                acknowledge(self.work, word)
        return self.look()

    def look(self) -> str:
        verb, work = self.verb, self.work
        for claim in work.rglob("claims/*"):
            os.utime(claim, (0, 0))  # nobody looked for longer than a claim lasts

        def go_on() -> Any:
            verb.check(work)
            verb.act(work)
            verb.check(work)
            return verb.end(work)

        end = in_child(go_on)
        return "" if end == self.end else f"after: {end}"


def list_points(trials: dict[str, Trial]) -> list[tuple[str, str, int]]:
    points = []
    for name, trial in trials.items():
        for fault in FAULTS:
            points += [(name, fault, n) for n in range(1, trial.count(fault) + 1)]
        if trial.verb.cuts:
            trial.record()
            cuts = range(len(trial.recording) + 1)
            points += [(name, cut, n) for cut in CUTS for n in cuts]
    return points


def try_points(
    trials: dict[str, Trial],
    points: list[tuple[str, str, int]],
    until: float = float("inf"),
    state: Path | None = None,
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many were tried, by verb and fault; and what went wrong."""
    tried: Counter[tuple[str, str]] = Counter()
    problems = []
    for name, fault, n in points:
        if time.monotonic() > until:
            break
        trial = trials[name]
        if fault in CUTS:
            problem = trial.cut(n, strict=fault == "cut-strict")
        else:
            problem = trial.fail(fault, n)
        tried[name, fault] += 1
        if problem:
            problems.append(f"{name} {fault} {n}: {problem}")
            print(f"{name} {fault} {n}: {problem}", flush=True)
        if state:
            with state.open("a") as file:
                file.write(json.dumps([f"{name} {fault} {n}", problem]) + "\n")
    return tried, problems


def read_tried(state: Path) -> dict[str, str]:
    """What came of each point that was tried before, by its name."""
    return dict(map(json.loads, state.read_text().splitlines())) if state.exists() else {}


def try_kills(root: Path, dial: FaultDial, kills: int, seed: int, until: float) -> int:
    """Kills that many times in all, verb by verb; returns how many left something wrong."""
    chance, wrong = random.Random(seed), 0
    for name in KILLED:
        trial, rounds, hit = Trial(name, root, dial, KILLED), 0, 0
        while hit < kills // len(KILLED) and time.monotonic() < until:
            was_hit, problem = trial.kill(chance)
            rounds, hit, wrong = rounds + 1, hit + was_hit, wrong + bool(problem)
            if problem:
                print(f"{name} killed: {problem}", flush=True)
        print(f"{name:<6} {rounds} rounds, {hit} kills that hit", flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("points", nargs="?", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbs", default=",".join(VERBS))
    parser.add_argument("--faults", default="", help="only these, as killed,full")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--kills", type=int, default=0, help="instead: so many SIGKILLs")
    asked = parser.parse_args()
    if "OSLER_FAULTS" not in os.environ:
        with tempfile.TemporaryDirectory() as name:
            dial = FaultDial(Path(name) / "dial", Path(name))
            command = [sys.executable, *sys.argv]
            done = subprocess.run(command, env=dial.environment(), check=False)  # noqa: S603
        sys.exit(done.returncode)
    # In memory, where there is such a place: the shim says when a flush fails, not the disk.
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=fast) as name:
        root = Path(name).resolve()
        dial = FaultDial.attached(Path(os.environ["OSLER_FAULTS"]))
        if asked.kills:
            until = time.monotonic() + 60 * asked.minutes
            sys.exit(bool(try_kills(root, dial, asked.kills, asked.seed, until)))
        trials = {one: Trial(one, root, dial) for one in asked.verbs.split(",")}
        points = list_points(trials)
        random.Random(asked.seed).shuffle(points)
        seen = read_tried(asked.state) if asked.state else {}
        rest = [point for point in points if " ".join(map(str, point)) not in seen]
        if asked.faults:
            rest = [point for point in rest if point[1] in asked.faults.split(",")]
        began = time.monotonic()
        print(f"{len(points)} points in all, {len(seen)} tried before", flush=True)
        rest = rest[: max(0, asked.points - len(seen))]
        tried, problems = try_points(trials, rest, began + 60 * asked.minutes, state=asked.state)
    seconds = time.monotonic() - began
    for verb in trials:
        counts = "  ".join(f"{f} {tried[verb, f]}" for f in (*FAULTS, *CUTS))
        print(f"{verb:<9} {counts}")
    print(f"{sum(tried.values())} points in {seconds:.0f} s, {len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
