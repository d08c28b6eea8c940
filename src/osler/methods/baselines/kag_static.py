"""KAG 0.8's static pipeline: plan once, solve each task in order, then answer (KAG-Thinker T8).

After Liang et al. 2024, *KAG: Boosting LLMs in Professional Domains via Knowledge Augmented
Generation*, and KAG-Thinker §4.3: the planner writes all tasks at once as a graph, with the
tasks that each depends on; each task's query is filled in with the answers before it,
retrieved for, and answered in short; the generator answers from the tasks and their passages.

Departures: a task is a query in words (KAG's Retriever executor); its Math and Deduce executors
are KAG-Thinker's, which is a strategy of its own. The retrieval is the one that all methods
share, not KAG's hybrid of graph and text, unless the sources hold a graph. Answers are put into
the queries that name them; the released planner has the model rewrite such a query. Without a
readable plan the question itself is the only task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from osler.answer import UNDECIDED
from osler.methods.baselines.episode import Episode, MethodDeps
from osler.methods.baselines.replies import json_in
from osler.trace import Noted, Run
from osler.types import Question, Solution

_HOLE = re.compile(r"\{\{\s*(\d+)\.output\s*\}\}|#(\d+)")


@dataclass(frozen=True)
class PlannedTask:
    name: str
    query: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class KagStatic:
    kit: MethodDeps
    tasks: int = 6

    async def solve(self, question: Question, run: Run) -> Solution:
        with Episode(self.kit, question, run) as episode:
            plan = await self._plan_tasks(episode)
            run.emit(Noted("plan: " + "; ".join(f"#{t.name} {t.query}" for t in plan)))
            episode.decision = UNDECIDED  # the answer to a task decides nothing
            answers: dict[str, str] = {}
            steps: list[str] = []
            for task in plan:
                query = fill_query(task.query, answers)
                answers[task.name] = await self._answer_task(episode, query, steps)
                steps.append(f"#{task.name} {query} {answers[task.name]}")
                episode.draft = answers[task.name]
            prompt = episode.render(
                "baselines/kag_answer",
                **episode.variables,
                steps=steps,
                documents=episode.list_documents(),
            )
            episode.conclude_text((await episode.ask(prompt)).text)
        return await episode.finish("answered from the tasks of one plan")

    async def _plan_tasks(self, episode: Episode) -> list[PlannedTask]:
        prompt = episode.render(
            "baselines/kag_plan", question=episode.question.text, limit=self.tasks
        )
        plan = order_tasks(read_plan((await episode.ask(prompt)).text, self.tasks))
        return plan or [PlannedTask("1", episode.question.text)]

    async def _answer_task(self, episode: Episode, query: str, steps: Sequence[str]) -> str:
        hits = await episode.search(query)
        prompt = episode.render(
            "baselines/kag_step",
            question=query,
            steps=steps,
            documents=episode.list_documents(hits),
        )
        return " ".join((await episode.ask(prompt)).text.split())


def read_plan(text: str, most: int) -> list[PlannedTask]:
    """Reads `{"1": {"query": …, "dependent_task_ids": […]}, …}`; [] when it cannot be read."""
    said = json_in(text)
    tasks = []
    for name, value in said.items() if isinstance(said, dict) else ():
        query = value.get("query") if isinstance(value, dict) else None
        needs = value.get("dependent_task_ids", []) if isinstance(value, dict) else []
        if isinstance(query, str) and query.strip():
            named = tuple(str(need) for need in needs) if isinstance(needs, list) else ()
            tasks.append(PlannedTask(str(name), " ".join(query.split()), named))
    return tasks[:most]


def order_tasks(tasks: Sequence[PlannedTask]) -> list[PlannedTask]:
    """Sorts tasks so that each follows those it needs; tasks in a cycle keep the plan's order."""
    names = {task.name for task in tasks}
    left = [replace(task, needs=tuple(n for n in task.needs if n in names)) for task in tasks]
    done: list[PlannedTask] = []
    while left:
        made = {task.name for task in done}
        # A cycle leaves nothing ready: then the first of the plan goes on.
        ready = [task for task in left if made.issuperset(task.needs)] or left[:1]
        done += ready
        left = [task for task in left if task not in ready]
    return done


def fill_query(query: str, answers: Mapping[str, str]) -> str:
    """Fills the answers of earlier tasks into a query; unknown references stay."""

    def fill_hole(hole: re.Match[str]) -> str:
        return answers.get(hole.group(1) or hole.group(2), hole.group())

    return _HOLE.sub(fill_hole, query)
