"""The runner: what is done is not done again, whatever happened in between."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import TaskBarrier

from osler.errors import BadRun, ModelUnreachable
from osler.trace import Answered, Run, Started
from osler.types import Answer, Authorship, Halt, Question, Solution, Statement
from osler_lab.evaluate import plan as planning
from osler_lab.evaluate.log import TriedSamples, read_records, read_trace
from osler_lab.evaluate.merge import merge_logs
from osler_lab.evaluate.plan import EvaluatedTask, EvaluationPlan
from osler_lab.evaluate.record import Gold, Sample, SampleKey
from osler_lab.evaluate.runner import EvaluationRunner, ReadyStrategy, RunnerCell, SolvedRun
from osler_lab.jobs.runner import HOPELESS, LEASE, Claims


def samples(n: int, gold: str = "A") -> list[Sample]:
    return [
        Sample("made", "choice", Question(f"q{i:03d}", f"Case {i}?", ("x", "y")), Gold((gold,)))
        for i in range(n)
    ]


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


class Counting:
    """Answers A, counts, and fails where it is told to."""

    def __init__(self, broken: set[str] | None = None, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.given: list[object] = []
        self.broken = broken or set()
        self.error = error or ModelUnreachable("the server is away")
        self.meeting: TaskBarrier | None = None

    async def solve(self, question: Question, run: Run) -> Solution:
        self.asked.append(question.id)
        self.given += [question, run]
        if self.meeting is not None:
            await self.meeting.come(self)
        if question.id in self.broken:
            raise self.error
        return Solution(Answer(option="A"), Halt.CONVERGED, "said so", run.usage)


def runner(
    folder: Path, solver: Counting, *, jobs: int = 1, again: bool = True
) -> EvaluationRunner:
    async def prepare(label: str) -> ReadyStrategy:
        return ReadyStrategy(solver, {"reader": "counting"}, kind="direct")

    return EvaluationRunner(folder, prepare, jobs, again)


def cells(n: int) -> list[RunnerCell]:
    return [RunnerCell("direct", "made", samples(n))]


@pytest.mark.parametrize("jobs", [1, 5])
async def test_every_sample_is_tried_once_and_keeps_its_trace(tmp_path: Path, jobs: int) -> None:
    solver = Counting()
    await runner(tmp_path, solver, jobs=jobs).run(cells(40))
    assert sorted(solver.asked) == [f"q{i:03d}" for i in range(40)]
    records = list(read_records(tmp_path))
    assert {record.status for record in records} == {"done"}
    assert all(record.outcome.option == "A" for record in records)
    record = records[17]
    assert record.trace is not None
    first, last = read_trace(tmp_path, record.trace)
    assert isinstance(first, Started)
    assert first.question == record.sample.question
    assert isinstance(last, Answered)


class Unconfirmed(Counting):
    """Answers in words of its own, which no passage bears out."""

    async def solve(self, question: Question, run: Run) -> Solution:
        said = (Statement("Yes, it is x.", kind="unconfirmed"),)
        answer = Answer(said, authorship=Authorship.WRITTEN)
        return Solution(answer, Halt.CONVERGED, "said so", run.usage)


async def test_an_answer_that_nothing_confirms_ends_as_at_other_doors(tmp_path: Path) -> None:
    await runner(tmp_path, Unconfirmed()).run(cells(1))
    (record,) = read_records(tmp_path)
    assert record.trace is not None
    last = read_trace(tmp_path, record.trace)[-1]
    assert isinstance(last, Answered)
    assert last.solution.halt is Halt.NO_EVIDENCE
    assert [one.kind for one in last.solution.answer.statements] == ["notice", "unconfirmed"]
    outcome = record.outcome
    assert outcome.halt == "no_evidence"
    assert outcome.text == "Yes, it is x.", "what is said about an answer is not graded"
    assert [one.text for one in outcome.statements] == ["Yes, it is x."]


async def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    await runner(tmp_path, Counting()).run(cells(20))
    later = Counting()
    await runner(tmp_path, later).run(cells(33))
    assert later.asked == [f"q{i:03d}" for i in range(20, 33)]


async def test_a_run_is_kept_with_its_tape_where_that_is_wanted(tmp_path: Path) -> None:
    kept: list[SolvedRun] = []

    def taped() -> tuple[Counting, Callable[[SolvedRun], str]]:
        def keep(done: SolvedRun) -> str:
            kept.append(done)
            return f"run-{len(kept)}"

        return Counting({"q001"}), keep

    async def prepare(label: str) -> ReadyStrategy:
        return ReadyStrategy(Counting({s.id for s in samples(3)}), kind="direct", taped=taped)

    await EvaluationRunner(tmp_path, prepare).run(cells(3))
    found = {record.sample.id: record for record in read_records(tmp_path)}
    assert [found[f"q00{n}"].tape for n in range(3)] == ["run-1", "", "run-2"]
    assert found["q001"].status == "failed"
    assert [type(done.run.events[-1]) for done in kept] == [Answered, Answered]


async def test_gold_never_reaches_a_solver(tmp_path: Path) -> None:
    solver = Counting()
    secret = [
        Sample(
            "made", "long", Question("q", "Case?"), Gold((), ("the secret reference",), ("PMID:4",))
        )
    ]
    await runner(tmp_path, solver).run([RunnerCell("direct", "made", secret)])
    seen = repr([(given, vars(given) if isinstance(given, Run) else "") for given in solver.given])
    assert "secret" not in seen
    assert "PMID:4" not in seen


async def test_a_failed_sample_does_not_stop_the_others_and_is_tried_again(tmp_path: Path) -> None:
    await runner(tmp_path, Counting({"q003"})).run(cells(6))
    (failed,) = [r for r in read_records(tmp_path) if r.status == "failed"]
    assert failed.error == "ModelUnreachable: the server is away"
    left = Counting({"q003"})
    await runner(tmp_path, left, again=False).run(cells(6))
    assert left.asked == []
    mended = Counting()
    await runner(tmp_path, mended).run(cells(6))
    assert mended.asked == ["q003"]
    assert {r.status for r in read_records(tmp_path)} == {"done"}


async def test_a_bug_in_a_strategy_is_noted_with_its_place(tmp_path: Path) -> None:
    await runner(tmp_path, Counting({"q001"}, KeyError("lost"))).run(cells(3))
    (failed,) = [r for r in read_records(tmp_path) if r.status == "failed"]
    assert failed.error.startswith("KeyError: 'lost' (test_runner.py:")


@pytest.mark.parametrize("jobs", [1, 3])
async def test_a_run_in_which_everything_fails_stops_and_says_why(
    tmp_path: Path, jobs: int
) -> None:
    solver = Counting({s.id for s in samples(200)})
    with pytest.raises(BadRun, match=f"{HOPELESS} samples in a row.*the server is away") as stopped:
        await runner(tmp_path, solver, jobs=jobs).run(cells(200))
    assert HOPELESS <= len(solver.asked) < HOPELESS + jobs
    assert stopped.value.__cause__ is None, "it is raised as it is, not in a group"
    asked = len(solver.asked)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*left, return_exceptions=True)
    assert len(solver.asked) == asked, "and nobody works on"


async def test_two_runners_share_a_folder_and_no_sample_is_tried_twice(tmp_path: Path) -> None:
    one, two = Counting(), Counting()
    one.meeting = two.meeting = TaskBarrier(2)
    await asyncio.gather(
        runner(tmp_path, one, jobs=3).run(cells(100)), runner(tmp_path, two, jobs=3).run(cells(100))
    )
    assert sorted(one.asked + two.asked) == [f"q{i:03d}" for i in range(100)]
    assert one.asked
    assert two.asked


async def test_truncated_last_log_line_is_ignored(tmp_path: Path) -> None:
    await runner(tmp_path, Counting()).run(cells(4))
    path = only(tmp_path, "records-*.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    later = Counting()
    await runner(tmp_path, later).run(cells(4))
    assert later.asked == ["q003"]
    assert len(list(read_records(tmp_path))) == 4


async def test_a_damaged_line_is_named_and_not_passed_over(tmp_path: Path) -> None:
    await runner(tmp_path, Counting()).run(cells(2))
    path = only(tmp_path, "records-*.jsonl")
    path.write_bytes(b'{"strategy": 3}\n' + path.read_bytes())
    with pytest.raises(BadRun, match=r"records-.*at byte 0: not a record"):
        await runner(tmp_path, Counting()).run(cells(2))
    with pytest.raises(BadRun, match="at byte 0: not a record"):
        list(read_records(tmp_path))


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_runner import Counting, cells, runner
class Hanging(Counting):
    async def solve(self, question, run):
        if len(self.asked) < 20:
            return await super().solve(question, run)
        self.asked.append(question.id)
        if len(self.asked) == 23:
            print("all three hang", flush=True)
        await asyncio.Event().wait()
asyncio.run(runner(Path(sys.argv[1]), Hanging(), jobs=3).run(cells(120)))
"""


async def test_a_killed_run_loses_at_most_the_samples_in_flight(tmp_path: Path) -> None:
    child = subprocess.Popen(  # noqa: ASYNC220, S603
        [sys.executable, "-c", CHILD, str(tmp_path), str(Path(__file__).parent)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout as told:
        assert told.readline() == "all three hang\n"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    tried = TriedSamples(tmp_path)
    tried.refresh()
    assert len(tried.status) == 20
    later = Counting()
    await runner(tmp_path, later).run(cells(120))
    assert len(later.asked) == 100
    records = list(read_records(tmp_path))
    assert len(records) == 120
    assert all(record.trace and read_trace(tmp_path, record.trace) for record in records)


def test_a_claim_of_another_host_is_free_after_its_lease(tmp_path: Path) -> None:
    now = [1_000.0]
    mine = Claims(tmp_path, "mine", lease=60, clock=lambda: now[0])
    assert mine.take_batch("b")
    (path,) = tmp_path.iterdir()
    path.write_text("elsewhere 1 theirs", encoding="utf-8")
    os.utime(path, (now[0], now[0]))
    assert not mine.take_batch("b")
    mine.release_batch("b")
    assert path.exists()
    now[0] += 61
    assert mine.take_batch("b")
    mine.release_batch("b")
    assert not path.exists()


def test_a_claim_of_a_process_that_died_here_is_free_at_once(tmp_path: Path) -> None:
    import socket

    claims = Claims(tmp_path, "mine")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "b").write_text(f"{socket.gethostname()} {dead.pid} x", encoding="utf-8")
    assert claims.take_batch("b")
    assert not Claims(tmp_path, "other").take_batch("b")


@pytest.mark.parametrize(
    "owner", [b"", b"a host", b"one two three", b"\xff\xfe a b", b"here 99999999999999999999 x"]
)
def test_a_claim_that_cannot_be_read_is_free_after_its_lease(tmp_path: Path, owner: bytes) -> None:
    now = time.time()
    (tmp_path / "b").write_bytes(owner)
    os.utime(tmp_path / "b", (now, now))
    assert not Claims(tmp_path, "mine", clock=lambda: now + 1).take_batch("b")
    assert Claims(tmp_path, "mine", clock=lambda: now + LEASE + 5).take_batch("b")


def plan(seed: int = 0, digest: str = "d", sigma: float = 1.0, n: int = 5) -> EvaluationPlan:
    entrant = planning.make_entrant("rag", {"strategy": {"sigma": sigma}, "home": "/anywhere"})
    task = EvaluatedTask("made", "choice", digest, 10, 9, {"no gold": 1})
    return EvaluationPlan(seed, {"made": task}, {"rag": entrant}, {"rag": {"made": n}}, "0")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (plan(seed=1), "seed 0, now 1"),
        (plan(digest="e"), "the files of made differ"),
        (plan(sigma=2.0), r"rag has other strategy\.sigma"),
    ],
)
def test_a_log_folder_made_otherwise_is_refused(
    tmp_path: Path, other: EvaluationPlan, said: str
) -> None:
    planning.save_plan(tmp_path, plan())
    with pytest.raises(BadRun, match=said):
        planning.save_plan(tmp_path, other)
    assert planning.read_plan(tmp_path) == plan()


def test_log_folder_may_be_extended_with_more_samples(tmp_path: Path) -> None:
    planning.save_plan(tmp_path, plan(n=5))
    assert planning.save_plan(tmp_path, plan(n=50)).asked == {"rag": {"made": 50}}
    assert planning.save_plan(tmp_path, plan(n=5)).asked == {"rag": {"made": 50}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema": 99}', "has schema 99, this version reads 1"),
        ("{", "is damaged"),
        ("[]", "has schema None"),
        ('{"schema": 1, "seed": "x"}', "is damaged: "),
    ],
)
def test_a_plan_of_another_version_or_half_written_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / planning.PLAN).write_text(text, encoding="utf-8")
    with pytest.raises(BadRun, match=said):
        planning.read_plan(tmp_path)


def test_a_smaller_limit_tries_a_part_of_what_a_larger_one_does() -> None:
    whole = samples(50)
    assert planning.choose_samples(whole, None, 3) == whole
    few, more = (
        planning.choose_samples(whole, 5, 3),
        planning.choose_samples(list(reversed(whole)), 20, 3),
    )
    assert more[:5] == few
    assert planning.choose_samples(whole, 5, 4) != few


async def test_logs_are_merged_and_a_done_try_wins(tmp_path: Path) -> None:
    one, two, both = tmp_path / "1", tmp_path / "2", tmp_path / "both"
    for folder, broken in ((one, {"q000"}), (two, {"q001"})):
        planning.save_plan(folder, plan(n=2))
        await runner(folder, Counting(broken)).run(cells(2))
    merge_logs([one, two], both)
    merge_logs([one, two], both)
    records = {record.key: record for record in read_records(both)}
    assert records[SampleKey("direct", "made", "q000")].status == "done"
    assert {record.status for record in records.values()} == {"done"}
    assert all(r.trace and read_trace(both, r.trace) for r in records.values())
    planning.save_plan(tmp_path / "3", plan(seed=9))
    with pytest.raises(BadRun, match="seed"):
        merge_logs([one, tmp_path / "3"], both)


def test_a_trace_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    asyncio.run(runner(tmp_path, Counting()).run(cells(1)))
    (record,) = read_records(tmp_path)
    path = only(tmp_path, "traces-*.jsonl")
    path.write_bytes(path.read_bytes()[:30])
    assert record.trace is not None
    with pytest.raises(BadRun, match="ends before byte"):
        read_trace(tmp_path, record.trace)


@pytest.mark.parametrize("damage", [b"\xff", b"{}", b"[" * 30], ids=["bytes", "no event", "deep"])
def test_a_trace_that_is_damaged_is_named(tmp_path: Path, damage: bytes) -> None:
    asyncio.run(runner(tmp_path, Counting()).run(cells(1)))
    (record,) = read_records(tmp_path)
    path = only(tmp_path, "traces-*.jsonl")
    path.write_bytes(damage + path.read_bytes()[len(damage) :])
    assert record.trace is not None
    with pytest.raises(BadRun, match=r"traces-.*\.jsonl"):
        read_trace(tmp_path, record.trace)


def test_the_plan_keeps_no_path_of_this_machine(tmp_path: Path) -> None:
    settings = {"home": "/a", "runs": {"path": "/b"}, "kb": {"path": "/c", "chunk": "omni"}}
    kept = json.dumps(planning.make_entrant("x", settings).settings)
    assert kept == '{"kb": {"chunk": "omni"}}'


async def test_progress_is_told_before_the_first_sample_and_after_each(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []

    async def prepare(label: str) -> ReadyStrategy:
        assert told == [("direct on made", 0, 2)]
        return ReadyStrategy(Counting(), kind="direct")

    def note(stage: str, done: int, total: int | None) -> None:
        told.append((stage, done, total))

    await EvaluationRunner(tmp_path, prepare, progress=note).run(cells(2))
    assert [done for _, done, _ in told] == [0, 1, 1, 2]
