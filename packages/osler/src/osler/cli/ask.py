"""`osler ask` and `plan`: questions and their runs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from osler.cli.conversation import ask_in_thread, converse
from osler.cli.options import (
    Asked,
    Choices,
    EstimateAlone,
    Filters,
    Offered,
    Planner,
    Trace,
    refuse_options,
)
from osler.cli.run_output import first_step, make_report, show_result, watch_events
from osler.cli.session import ABSTAINED, CliSession, complete_preset, complete_strategy
from osler.cli.words import LANGUAGE
from osler.errors import BadConfig, BadQuestion, OslerError, read_text_file, translate_os_errors
from osler.text import escape_controls

if TYPE_CHECKING:
    from osler.methods.omni.dossier import SavedPlan
    from osler.runs.answering import FinishedRun
    from osler.settings import Settings
    from osler.trace import Sink
    from osler.types import Question

Strategy = Annotated[
    str | None,
    typer.Option(
        help="How to solve it: tc-rag, kag-thinker, omni-rag, unified, direct, cot, rag or"
        " another of docs/guide/baselines.md.",
        autocompletion=complete_strategy,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="Settings by name, as --profile before the verb.", autocompletion=complete_preset
    ),
]
GivenPlan = Annotated[
    Path | None,
    typer.Option(
        help="Run this plan (of `osler plan`, or written by hand): with omni-rag a source plan,"
        " with kag-thinker the steps, as they stand."
    ),
]

WithFilm = Annotated[
    bool, typer.Option("--film", help="Show the steps of the run: live, and below the answer.")
]

WithPassages = Annotated[
    bool, typer.Option("--long", help="Show each quote in its passage, below the answer.")
]

QuestionFile = Annotated[
    Path | None,
    typer.Option(
        "--file",
        help="Ask every question of this file: one a line, or JSON Lines. What is loaded"
        " serves them all; with --json each answer is one line.",
    ),
]
ThreadName = Annotated[
    str | None,
    typer.Option(help="Ask within this conversation; it is created if absent."),
]
AskedAs = Annotated[
    str | None,
    typer.Option("--as", help="With --thread: the question as it is to be searched for."),
]

# Bytes; far above any question, far below what would fill the memory.
STDIN_LIMIT = 1_000_000


def ask(
    here: CliSession,
    question: Asked = None,
    option: Choices = None,
    strategy: Strategy = None,
    filters: Filters = Filters(),  # noqa: B008 - frozen
    k: Annotated[int | None, typer.Option("--k", min=1, help="Passages of one search.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same run.")] = None,
    preset: Preset = None,
    trace: Trace = None,
    file: QuestionFile = None,
    plan: GivenPlan = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Show what would be searched, and stop.")
    ] = False,
    estimate: EstimateAlone = False,
    film: WithFilm = False,
    long: WithPassages = False,
    thread: ThreadName = None,
    standalone: AskedAs = None,
) -> None:
    """Answer a question from cited evidence, or abstain. Without one: a conversation.

    Where no strategy is named, here or in the settings, it is auto: a formula is computed, several
    steps are taken by rules, and all else is one search with a single fused ranking and the
    sentences that answer, chosen by small experts; no language model is needed. Exit code 0:
    answered. 1: the evidence does not say. 6: answered, but a source was down. 7: refused.
    """
    here.preset, keep = preset or here.preset, not filters.is_given
    steps = plan if strategy == "kag-thinker" else None
    given = None if steps else _read_plan(plan)
    flags: dict[str, object] = {"strategy.k": k, "sampling.seed": seed, **filters.as_settings()}
    flags["strategy.kind"] = strategy or ("omni-rag" if given else None)
    flags["strategy.forms"] = steps and read_text_file(steps, BadConfig)
    settings = here.load_settings(flags)
    if thread is None:
        refuse_options("it goes with --thread", **{"as": standalone})
    else:
        refuse_options("it does not go with --thread", plan_only=plan_only, plan=given)
    if file and (question or option or given or thread or plan_only or film):
        raise BadQuestion("--file stands alone", fix="leave out the question and its options")
    is_talk = question is None and not (file or given or plan_only or estimate or standalone)
    if is_talk and sys.stdin.isatty():
        return converse(here, settings, thread, film=film, passages=long, keep=keep)
    asked = read_questions(file) if file else [_pick_question(question, tuple(option or ()), given)]
    # Verbs import what they run: `--help` and a usage error load neither numpy nor a model.
    if estimate:
        return show_estimate(here, settings, asked)
    if file:
        return ask_all(here, settings, asked, trace, passages=long)
    from osler.runs.answering import ask as solve

    with watch_events(here, trace, first=first_step(settings), film=film) as sink:
        if thread is not None:
            report = ask_in_thread(here, settings, thread, asked[0], standalone, sink, keep=keep)
        else:
            made = solve(settings, asked[0], sink=sink, plan_only=plan_only, plan=given)
            report = make_report(asyncio.run(made), asked[0])
    return show_result(here, report, film=film, passages=long)


def show_estimate(here: CliSession, settings: Settings, questions: Sequence[Question]) -> None:
    """What the answers may cost together, with what that rests on."""
    from dataclasses import asdict

    from osler.build.privacy import open_runs
    from osler.runs.estimates import estimate_cost

    found = asyncio.run(estimate_cost(settings, questions, opens=open_runs(settings)))
    here.show(asdict(found))


def _read_plan(path: Path | None) -> SavedPlan | None:
    if path is None:
        return None
    from osler.methods.omni.dossier import read_saved_plan

    return read_saved_plan(path)


def _pick_question(text: str | None, options: tuple[str, ...], plan: SavedPlan | None) -> Question:
    """The question; that of the plan where none is given."""
    if text is None and plan is not None and plan.question is not None:
        return plan.question
    return read_question(text, options)


def read_question(text: str | None, options: tuple[str, ...]) -> Question:
    from osler.questions import parse_question

    asked = parse_question(_read_text(text), options=options)
    has_words = any(map(str.isalpha, asked.text))
    return asked if has_words else replace(asked, language=LANGUAGE.get())


def _read_text(text: str | None) -> str | bytes:
    if text not in (None, "-"):
        return str(text)
    if text is None and sys.stdin.isatty():
        raise BadQuestion("no question", fix='write it after the verb: osler ask "…"')
    # One byte over the limit shows that there is more, without reading all of it.
    data = sys.stdin.buffer.read(STDIN_LIMIT + 1)
    if len(data) > STDIN_LIMIT:
        raise BadQuestion(f"the question has over {STDIN_LIMIT:,} bytes", fix="ask one thing")
    return data


def plan(
    here: CliSession,
    question: Asked = None,
    option: Choices = None,
    strategy: Annotated[
        Literal["omni-rag", "kag-thinker"],
        typer.Option(help="A plan of queries by source, or of steps, each with its answer."),
    ] = "omni-rag",
    planner: Planner = None,
    sources: Offered = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search as well, so that readers need not.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write plan, question and what was found to this file, as JSON."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same plan.")] = None,
    trace: Trace = None,
) -> None:
    """Make a plan, to be read, edited and run with `osler ask --plan FILE`.

    A plan of steps is made and solved in one: each step is shown with its set, and the answer
    follows, with the exit codes of `osler ask`.
    """
    if strategy == "kag-thinker":
        asked = read_question(question, tuple(option or ()))
        _solve_steps(here, here.load_settings({"strategy.kind": strategy}), asked, out, trace)
        return
    settings = here.load_settings(
        {
            "strategy.kind": "omni-rag",
            "strategy.planner": planner,
            "kb.sources": sources,
            "sampling.seed": seed,
        }
    )
    from osler.runs.answering import plan_question

    asked = read_question(question, tuple(option or ()))
    first = first_step(settings)
    with watch_events(here, trace, first=first, film=True, danger_aside=True) as sink:
        made = asyncio.run(plan_question(settings, asked, search=search, sink=sink))
    if out is not None:
        _write_plan(out, made.document)
    if here.json:
        sys.stdout.write(f"{made.document}\n")
    elif out is None:
        sys.stdout.write(f"{escape_controls(made.plan)}\n")
    else:
        here.print_line(f"written to {out}; run it: osler ask --plan {out}")


def _solve_steps(
    here: CliSession, settings: Settings, asked: Question, out: Path | None, trace: Path | None
) -> None:
    """Shows the steps that KAG-Thinker takes, and the answer; the steps alone are written."""
    from osler.cli.render import plan_block
    from osler.runs.answering import ask as solve
    from osler.trace import proof_steps

    with watch_events(here, trace, first=first_step(settings)) as sink:
        report = make_report(asyncio.run(solve(settings, asked, sink=sink)), asked)
    steps = proof_steps(report.events)
    if out is not None:
        _write_plan(out, "\n".join(step.wire for step in steps))
    if not (here.json or here.quiet):
        here.make_console().print(*plan_block(steps), sep="\n", end="\n\n")
    show_result(here, report, film=False)


def _write_plan(path: Path, text: str) -> None:
    with translate_os_errors(f"cannot write {path}", OslerError, "name another file with --out"):
        path.write_text(f"{text}\n", encoding="utf-8")


def ask_all(
    here: CliSession,
    settings: Settings,
    questions: Sequence[Question],
    trace: Path | None,
    *,
    passages: bool,
) -> None:
    """Asks every question; with --json one document a line.

    Ends with exit code 1 where none was answered.
    """
    with watch_events(here, trace, first=("opening the knowledge base", "")) as sink:
        if not asyncio.run(_answer_all(here, settings, questions, sink, passages=passages)):
            raise typer.Exit(ABSTAINED)


def read_questions(path: Path) -> list[Question]:
    """One question a line, or JSON Lines with `question` and, if it has any, `options`."""
    if path.suffix.lower() in (".jsonl", ".json"):
        from osler.questions import read_labeled

        return [one.question for one in read_labeled(path)]
    from osler.questions import parse_question

    lines = read_text_file(path, BadQuestion, "name a text file").splitlines()
    if not (found := [parse_question(line) for line in lines if line.strip()]):
        raise BadQuestion(f"{path} has no question", fix="write one question a line")
    return found


async def _answer_all(
    here: CliSession,
    settings: Settings,
    questions: Sequence[Question],
    sink: Sink,
    *,
    passages: bool,
) -> int:
    """Shows each answer when it is there; the number of questions that were answered."""
    from osler.cli.render import run_page, short_page
    from osler.cli.run_output import report_document
    from osler.types import Grounding

    answered = 0
    async for question, finished in _solve_in_turn(settings, questions, sink):
        report = make_report(finished, question)
        if here.json:
            document = report_document(report)
            sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
        else:
            console = here.make_console()
            console.print(f"? {question.text}", style="bold", markup=False)
            page = run_page(report, with_film=False, with_facts=False, with_passages=passages)
            console.print(short_page(report) if here.quiet else page)
            console.print("")
        sys.stdout.flush()
        solution = finished.solution
        answered += solution is not None and solution.answer.grounding is not Grounding.ABSTAINED
    return answered


async def _solve_in_turn(
    settings: Settings, questions: Sequence[Question], sink: Sink
) -> AsyncIterator[tuple[Question, FinishedRun]]:
    from osler.build.resource_cache import ResourceCache
    from osler.runs.answering import ask

    cache = ResourceCache(settings)
    try:
        parts = await cache.parts_for(settings)
        for question in questions:
            yield question, await ask(settings, question, sink=sink, parts=parts)
    finally:
        cache.close()
