"""Questions taken apart: MedRAG and its follow-up questions, and KAG 0.8's static plan.

MedRAG, many passages of fused rankings and a chain of thought; i-MedRAG, in rounds of it.

Xiong et al. 2024, *Benchmarking Retrieval-Augmented Generation for Medicine*, §3: 32 snippets
by Reciprocal Rank Fusion of several retrievers (k of the fusion 100), then the question with
its options, answered as JSON with `step_by_step_thinking` and `answer_choice`.

RRF-2 fuses the rankings of the word index and of the vector index, with equal weights; RRF-4 also
those of the knowledge units that were extracted of the chunks, by words and by vectors. Whoever
builds the retriever sees to it.

Departures: the paper's four are BM25 and three encoders (Contriever, SPECTER, MedCPT) over the
same chunks; a knowledge base here has vectors of one encoder. As many snippets are shown as fit the
prompt, as in the released code. An open question's answer is the thinking.

Xiong et al. 2025, *Improving Retrieval-Augmented Generation in Medicine with Iterative
Follow-up Questions*, §2: in each of 4 rounds the model analyses what is known and writes 3
queries ("## Analysis", "## Queries"); each is answered from passages of its own; after the last
round the question is answered from all queries and answers.

Departures: 32 passages are found for a query, as many are read as fit the prompt. A round
without a readable query ends the asking.

KAG 0.8's static pipeline: plan once, solve each task in order, then answer (KAG-Thinker T8).

After Liang et al. 2024, *KAG: Boosting LLMs in Professional Domains via Knowledge Augmented
Generation*, and KAG-Thinker §4.3: the planner writes all tasks at once as a graph, with the
executor of each, the tasks that it depends on, and the logical form of a lookup; a task's query
that names earlier answers is rewritten by the model with these in it. A Retriever's form is
looked up in the concept graph, its query in KAG's hybrid of indexes and graph of names; the answer
is read in short. Math and Deduce work on the answers before them. The generator answers from the
tasks and their passages.

What looks up forms, searches the hybrid, computes and infers is KAG-Thinker's, and is handed in:
methods know nothing of each other. Without a concept graph, or without an extracted corpus, the
retrieval that all methods share stands in, which the trace says.

Departures: the planner writes the logical form, where the released pipeline has a model rewrite
each query to one; answers are put into the form as they stand. Without a readable plan the
question itself is the only task.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from osler.answer import UNDECIDED
from osler.llm.reading.answers import answer_words
from osler.llm.reading.json_replies import json_in, read_list
from osler.llm.reading.refusals import is_non_answer
from osler.llm.reading.verdicts import stated_values
from osler.methods.episode import Episode, EpisodeMethod
from osler.trace import Run
from osler.types import Hit, Language, Retriever


@dataclass(frozen=True)
class MedRag(EpisodeMethod):
    async def run_episode(self, episode: Episode) -> str:
        hits = await episode.search(episode.question.text)
        conclude_json(
            episode,
            await episode.ask_text("baselines/medrag", documents=episode.list_documents(hits)),
        )
        return "one chain of thought over fused rankings"


def conclude_json(episode: Episode, text: str) -> None:
    """Decides for `{"step_by_step_thinking": …, "answer_choice": …}`, else for the text."""
    value = json_in(text)
    if not isinstance(value, dict):
        episode.conclude_text(text)
        return
    thinking = str(value.get("step_by_step_thinking", ""))
    choice = str(value.get("answer_choice", ""))
    if episode.question.options:
        episode.conclude_answer(choice, thinking)
    else:
        episode.conclude_text(thinking or choice)


_QUERIES = re.compile(r"^\W*(?:queries|查询|问题)\b\W*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class IMedRag(EpisodeMethod):
    rounds: int = 4
    queries: int = 3

    async def run_episode(self, episode: Episode) -> str:
        known: list[str] = []
        episode.decision = UNDECIDED  # an answer to a follow-up question decides nothing
        for _ in range(self.rounds):
            asked = await episode.ask_text(
                "baselines/i_medrag_ask", known=known, limit=self.queries
            )
            queries = read_queries(asked, self.queries)
            for query in queries:
                episode.draft = await self._answer_query(episode, query)
                known.append(f"Query: {query}\nAnswer: {episode.draft}")
            if not queries:
                break
        conclude_json(episode, await episode.ask_text("baselines/i_medrag_answer", known=known))
        return "answered from follow-up questions"

    async def _answer_query(self, episode: Episode, query: str) -> str:
        hits = await episode.search(query)
        documents = episode.list_documents(hits)
        reply = await episode.ask_text(
            "baselines/i_medrag_reply", question=query, documents=documents
        )
        return " ".join(answer_words(reply).split())


def read_queries(text: str, most: int) -> list[str]:
    """The queries under their heading; [] without a heading, unless the reply is a JSON list."""
    parts = _QUERIES.split(text)
    if len(parts) == 1 and "[" not in text:
        return []
    return read_list(parts[-1], most)


_HOLE = re.compile(r"\{\{\s*(\d+)\.output\s*\}\}|#(\d+)")
# Characters by which a rewritten query may be longer than twice the filled one.
_ROOM = 40

Executor = Literal["Retriever", "Math", "Deduce"]
_EXECUTORS: Mapping[str, Executor] = {name.casefold(): name for name in get_args(Executor)}
_NO_GRAPH = (
    "no concept graph and no extracted corpus (`osler kb graph add`, `osler kb extract`): tasks are"
    " looked up by the search that all methods share"
)


@dataclass(frozen=True)
class PlannedTask:
    name: str
    query: str
    needs: tuple[str, ...] = ()
    executor: Executor = "Retriever"
    form: str = ""
    """The logical form of a lookup, as the planner wrote it; empty without one."""


TaskSolver = Callable[[str, Sequence[str], Language, Run], Awaitable[str]]
"""From a query, and the answers before it, to the result of a Math or a Deduce; "" without one."""


@dataclass(frozen=True)
class KagStatic(EpisodeMethod):
    forms: Retriever | None = None
    """Looks up logical forms in the concept graph; `None` without one."""
    hybrid: Retriever | None = None
    """KAG's hybrid over indexes and the graph of names; `None` without an extracted corpus."""
    solvers: Mapping[Executor, TaskSolver] = field(default_factory=dict)
    """Of Math and Deduce; a task without one is looked up."""
    tasks: int = 6
    """Of a plan, at most (ours)."""

    async def run_episode(self, episode: Episode) -> str:
        if self.forms is None and self.hybrid is None:
            episode.note(_NO_GRAPH)
        written = await episode.ask_text("baselines/kag_plan", limit=self.tasks)
        plan = order_tasks(read_plan(written, self.tasks))
        plan = plan or [PlannedTask("1", episode.question.text)]
        listed = (f"#{t.name} {t.executor}: {t.form or t.query}" for t in plan)
        episode.note("plan: " + "; ".join(listed))
        episode.decision = UNDECIDED  # the answer to a task decides nothing
        answers: dict[str, str] = {}
        steps: list[str] = []
        for task in plan:
            query = await self._rewrite_query(episode, task.query, answers, steps)
            filled = replace(task, query=query, form=fill_query(task.form, answers))
            answer = await self._answer_task(episode, filled, steps)
            steps.append(f"#{task.name} {query} {answer or 'unknown'}")
            # "unknown" is no answer, and fills no later query.
            if answer:
                answers[task.name] = episode.draft = answer
        episode.conclude_text(
            await episode.ask_text(
                "baselines/kag_answer", steps=steps, documents=episode.list_documents()
            )
        )
        return "answered from the tasks of one plan"

    async def _rewrite_query(
        self, episode: Episode, query: str, answers: Mapping[str, str], steps: Sequence[str]
    ) -> str:
        """The query with the answers that it names; a reply that is no query leaves them filled
        in."""
        filled = fill_query(query, answers)
        if filled == query:
            return filled
        reply = await episode.ask_text(
            "baselines/kag_rewrite", query=query, filled=filled, steps=steps
        )
        lines = [line for line in answer_words(reply).splitlines() if line.endswith(("?", "？"))]
        said = next((each for each in (*stated_values(reply), *lines) if each.strip()), "")
        said = " ".join(said.split())
        is_query = 0 < len(said) <= 2 * len(filled) + _ROOM and not _HOLE.search(said)
        return said if is_query and not is_non_answer(said) else filled

    async def _answer_task(self, episode: Episode, task: PlannedTask, steps: Sequence[str]) -> str:
        solver = self.solvers.get(task.executor)
        if solver is not None:
            language = episode.question.language
            result = await solver(task.query, steps, language, episode.run)
            if result:
                return result
            episode.note(f"#{task.name} {task.executor} has no result: it is looked up")
        hits = await self._look_up_task(episode, task)
        reply = await self._read_step(episode, task, steps, hits)
        if not is_non_answer(reply):
            return reply
        # KAG solves a task that came to nothing once more, with what the question itself finds.
        episode.note(f"#{task.name} has no answer: it is looked up again with the question")
        wider = await episode.search(f"{task.query} {episode.question.text}")
        known = {hit.passage.id for hit in hits}
        fresh = [hit for hit in wider if hit.passage.id not in known]
        again = await self._read_step(episode, task, steps, [*fresh, *hits]) if fresh else ""
        return "" if is_non_answer(again) else again

    async def _read_step(
        self, episode: Episode, task: PlannedTask, steps: Sequence[str], hits: Sequence[Hit]
    ) -> str:
        documents = episode.list_documents(hits)
        reply = await episode.ask_text(
            "baselines/kag_step", question=task.query, steps=steps, documents=documents
        )
        return " ".join(answer_words(reply).split())

    async def _look_up_task(self, episode: Episode, task: PlannedTask) -> list[Hit]:
        """The graph's statements by form, then the passages of the hybrid; each once."""
        stated: Sequence[Hit] = ()
        if self.forms is not None and task.form:
            failed = episode.failed
            stated = await episode.search(task.form, where=self.forms)
            episode.failed = failed  # a form that cannot be read is no source that is down
        found = await episode.search(task.query, where=self.hybrid)
        return list({hit.passage.id: hit for hit in (*stated, *found)}.values())


def read_plan(text: str, most: int) -> list[PlannedTask]:
    """Reads `{"1": {"executor": …, "query": …, "dependent_task_ids": […], "logical_form": …}, …}`;
    [] when it cannot be read."""
    said = json_in(text)
    tasks = []
    for name, value in said.items() if isinstance(said, dict) else ():
        query = value.get("query") if isinstance(value, dict) else None
        needs = value.get("dependent_task_ids", []) if isinstance(value, dict) else []
        if isinstance(query, str) and query.strip():
            named = tuple(str(need) for need in needs) if isinstance(needs, list) else ()
            executor = _EXECUTORS.get(str(value.get("executor", "")).casefold(), "Retriever")
            form = str(value.get("logical_form") or "")
            tasks.append(PlannedTask(str(name), " ".join(query.split()), named, executor, form))
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
