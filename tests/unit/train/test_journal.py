"""The shared, resumable log of a job."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import TaskBarrier

from osler.errors import BadRun, MalformedOutput
from osler_lab.jobs import runner
from osler_lab.jobs.journal import require_agreement
from osler_lab.train.spo.job import DoneItems, JobStage, StageJob


@dataclass(frozen=True)
class Doubled:
    name: str
    value: int


def stage(folder: Path) -> JobStage[Doubled]:
    return JobStage(folder, "doubled", Doubled, lambda one: one.name)


class Doubler:
    def __init__(self, failing: str = "") -> None:
        self.failing, self.did = failing, list[str]()
        self.meeting = TaskBarrier(1)

    async def __call__(self, item: str) -> Doubled:
        self.did.append(item)
        await self.meeting.come(self)
        if self.failing and item in self.failing.split():
            raise MalformedOutput("x", expected="a number")
        return Doubled(item, 2 * int(item))


def job(folder: Path, doubler: Doubler, jobs: int = 1) -> StageJob[str, Doubled]:
    return StageJob(stage(folder), doubler, lambda item: item, jobs)


ITEMS = [str(n) for n in range(20)]


def test_journal_does_not_repeat_finished_items(tmp_path: Path) -> None:
    first, second = Doubler(), Doubler()
    asyncio.run(job(tmp_path, first, jobs=3).run(ITEMS[:11]))
    asyncio.run(job(tmp_path, second).run(ITEMS))
    assert (sorted(first.did), sorted(second.did)) == (sorted(ITEMS[:11]), sorted(ITEMS[11:]))
    assert {one.name: one.value for one in stage(tmp_path).results()} == {
        item: 2 * int(item) for item in ITEMS
    }


def test_several_at_one_folder_share_the_work(tmp_path: Path) -> None:
    doublers = [Doubler(), Doubler()]

    async def both() -> None:
        doublers[0].meeting = doublers[1].meeting = TaskBarrier(2)
        await asyncio.gather(*(job(tmp_path, doubler).run(ITEMS) for doubler in doublers))

    asyncio.run(both())
    assert sorted(doublers[0].did + doublers[1].did) == sorted(ITEMS)
    assert all(doubler.did for doubler in doublers)


def test_a_failure_is_noted_the_rest_goes_on_and_next_time_it_is_tried_again(
    tmp_path: Path,
) -> None:
    asyncio.run(job(tmp_path, Doubler("3 5")).run(ITEMS))
    assert stage(tmp_path).failed_reasons().keys() == {"3", "5"}
    assert "expected a number" in stage(tmp_path).failed_reasons()["3"]
    again = Doubler()
    asyncio.run(job(tmp_path, again).run(ITEMS))
    assert (sorted(again.did), stage(tmp_path).failed_reasons()) == (["3", "5"], {})


def test_where_nothing_succeeds_any_more_the_job_stops_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "HOPELESS", 3)
    with pytest.raises(BadRun, match=r"3 items in a row have failed.*expected a number"):
        asyncio.run(job(tmp_path, Doubler(" ".join(ITEMS))).run(ITEMS))


def test_truncated_last_journal_line_is_no_result(tmp_path: Path) -> None:
    asyncio.run(job(tmp_path, Doubler()).run(ITEMS[:2]))
    (path,) = tmp_path.glob("doubled-*.jsonl")
    path.write_bytes(path.read_bytes()[:-5])
    assert [one.name for one in stage(tmp_path).results()] == ["0"]
    assert DoneItems(tmp_path, "doubled").refresh_done() == {"0"}


def test_a_damaged_line_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "doubled-a.jsonl").write_bytes(b'{"key":"1","value":{"name":1}}\n')
    with pytest.raises(BadRun, match=r"doubled-a\.jsonl at byte 0: no result of doubled"):
        list(stage(tmp_path).results())
    (tmp_path / "doubled-b.jsonl").write_bytes(b"nonsense\n")
    with pytest.raises(BadRun, match=r"doubled-b\.jsonl: a line without a key"):
        stage(tmp_path).places()


def test_a_key_with_quotes_and_the_separator_in_it_reads_back(tmp_path: Path) -> None:
    hostile = 'a","value":{"b'
    line = stage(tmp_path).result_line(Doubled(hostile, 1))
    (tmp_path / "doubled-a.jsonl").write_bytes(line)
    assert json.loads(line)["key"] == hostile
    assert [one.name for one in stage(tmp_path).results()] == [hostile]


def test_a_folder_keeps_how_it_was_made(tmp_path: Path) -> None:
    require_agreement(tmp_path / "new", "explored", {"seed": 0, "k": 10})
    require_agreement(tmp_path / "new", "explored", {"seed": 0, "k": 10})
    with pytest.raises(BadRun, match="seed 0, now 1"):
        require_agreement(tmp_path / "new", "explored", {"seed": 1, "k": 10})
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["explored.json"]
