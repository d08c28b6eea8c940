"""Solutions and passages as pages for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from osler.answer import NOTHING_SAID
from osler.cli.film import describe_plan, draw_film, planned_sources
from osler.cli.tables import age_notes, count_noun, format_money, plain_text
from osler.cli.words import say, say_all, say_end, say_read
from osler.text import escape_controls
from osler.trace import (
    DangerNoticed,
    Event,
    ProofStep,
    Retrieved,
    Started,
    list_read_passages,
    proof_steps,
)
from osler.types import (
    Answer,
    Authorship,
    DangerNotice,
    Evidence,
    Grounding,
    Halt,
    Hit,
    Passage,
    Question,
    Solution,
    Usage,
)

ILLUSTRATIVE = "illustrative sample text, not a clinical reference"
# Stand around a quote, so that it is seen without colour.
OPEN, CLOSE = "«", "»"


@dataclass(frozen=True)
class RunPage:
    """A run that is over, as far as a page needs it."""

    run: str
    strategy: str
    snapshot: str
    models: Mapping[str, str]
    solution: Solution | None
    """`None` when only the plan was wanted, or the run did not end."""
    events: Sequence[Event]
    question: Question
    seconds: float | None = None
    """Of the whole run; `None` when it was not measured."""
    kept: bool = True
    """Whether the run can be replayed."""

    @property
    def danger(self) -> DangerNotice | None:
        """The emergency notice shown first; present even if the run did not end."""
        notices = (event.notice for event in self.events if isinstance(event, DangerNoticed))
        return next(notices, self.solution.danger if self.solution else None)

    @property
    def steps(self) -> tuple[ProofStep, ...]:
        return proof_steps(self.events)

    @property
    def notes_of(self) -> tuple[str, ...]:
        """As in `Started`."""
        begun = (event.notes_of for event in self.events[:2] if isinstance(event, Started))
        return next(begun, ())


def run_page(
    report: RunPage,
    *,
    with_film: bool = True,
    notes: bool = False,
    with_danger: bool = True,
    with_facts: bool = True,
    with_passages: bool = True,
) -> Group:
    """All there is to show: answer, evidence, film, why it halted, what it cost.

    `notes`: the film with the notes of models that may not word medicine, else folded away.
    Without `with_facts`, one line says how the answer came about. Without `with_passages`, each
    piece of evidence is a line, and no quote of the answer is shown again.
    """
    blocks: list[list[RenderableType]] = []
    if with_danger and report.danger is not None:
        blocks.append([danger_block(report.danger)])
    if report.solution is not None:
        answer = report.solution.answer
        shown = evidence_block if with_passages else source_lines
        blocks += [answer_block(answer, report.question), shown(answer, report.run)]
        blocks.append(cautions_block(answer))
        blocks.append(proof_block(proof_steps(report.events), answer))
    if with_film:
        blocks.append(
            [
                _heading_text(say("How it went", report.question.language)),
                *draw_film(report.events, notes=notes),
            ]
        )
    elif report.solution is None:
        blocks.append(_plan_lines(report))
    blocks.append(list(facts_block(report)) if with_facts else how_lines(report))
    return _space_blocks(blocks)


def how_lines(report: RunPage) -> list[RenderableType]:
    """The sources that were down; then one line on how the answer came about."""
    reasons = (
        why for event in report.events if isinstance(event, Retrieved) for why in event.failed
    )
    language = report.question.language
    down = [f"! {say('source down', language)}: {reason}" for reason in dict.fromkeys(reasons)]
    parts = [report.strategy, *_how_it_ended(report)]
    if report.seconds is not None:
        parts.append(f"{report.seconds:.0f} {say('s', language)}")
    if report.solution is not None and report.solution.usage.money is not None:
        parts.append(format_money(report.solution.usage.money))
    again = f"osler trace {report.run}" if report.kept else say("not kept", language)
    summary = say("How: ", language) + say("; ", language).join(parts)
    summary += f" ({again})" if report.solution else ""
    return [
        *(plain_text(line, style="yellow") for line in down),
        plain_text(summary, style="dim"),
    ]


def _how_it_ended(report: RunPage) -> Iterator[str]:
    read = list_read_passages(report.events)
    sources = dict.fromkeys(sorted(id.partition(":")[0] for id in read))
    if read:
        yield say_read(len(read), [*sources], report.question.language)
    if report.solution is None:
        return
    answer, halt = report.solution.answer, report.solution.halt
    if answer.statements:
        quoted = answer.authorship is Authorship.EXTRACTIVE
        yield say("quoted" if quoted else "worded by a model", report.question.language)
    if halt is not Halt.CONVERGED:
        yield say_end(halt, " ".join(report.solution.why.split()), report.question.language)


def compare_page(reports: Sequence[RunPage]) -> RenderableType:
    """The films of runs side by side, each under its strategy and over its answer."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), expand=True)
    columns = []
    for report in reports:
        table.add_column(escape(report.strategy), ratio=1, vertical="top")
        film = [Text(line.plain, style=line.style) for line in draw_film(report.events)]
        solution = report.solution
        ended = [] if solution is None else answer_block(solution.answer, report.question)
        columns.append(_space_blocks([film, ended, list(facts_block(report))[:2]]))
    table.add_row(*columns)
    return table


def danger_block(danger: DangerNotice) -> Text:
    """The first words to somebody in danger."""
    return plain_text(f"! {danger.text}", style="bold red")


def answer_block(answer: Answer, question: Question) -> list[RenderableType]:
    """The answer with its citation numbers, and what the reader must know of it."""
    lines: list[RenderableType] = []
    if answer.option is not None:
        lines.append(plain_text(_option_text(answer.option, question), style="bold"))
    if answer.text:
        lines.append(plain_text(answer.text))
    note = answer.note
    if answer.grounding is Grounding.ABSTAINED:
        note = note or NOTHING_SAID[answer.language]
    elif answer.authorship is Authorship.EXTRACTIVE and answer.statements:
        note = note or say("Extractive: quoted sentences, worded by no model.", answer.language)
    if note:
        lines.append(plain_text(note, style="italic"))
    return lines


def evidence_block(answer: Answer, run: str) -> list[RenderableType]:
    """Each cited passage with its marks, its age when the run was made, and its quotes marked
    inside it."""
    if not answer.evidence:
        return []
    lines: list[RenderableType] = [_heading_text(say("Evidence", answer.language))]
    for group in _by_passage(answer):
        marks, passage = " ".join(mark for mark, _ in group), group[0][1].passage
        lines += _passage_entry(marks, passage, mark_quotes(group), age_notes(answer, passage, run))
    return lines


def source_lines(answer: Answer, run: str) -> list[RenderableType]:
    """Where each piece of evidence is from, in a line; with its quote where the answer lacks it."""
    lines: list[RenderableType] = []
    for one, mark in zip(answer.evidence, answer.marks, strict=True):
        head = " · ".join((_head_text(one.passage), *age_notes(answer, one.passage, run)))
        lines.append(plain_text(f"{mark} {head}", style="cyan"))
        if one.quote not in answer.text:
            lines.append(_Indented(plain_text(f"{OPEN}{one.quote}{CLOSE}")))
    if any(one.passage.illustrative for one in answer.evidence):
        lines.append(Text(say(ILLUSTRATIVE, answer.language), style="yellow"))
    return lines


def proof_block(steps: Sequence[ProofStep], answer: Answer) -> list[RenderableType]:
    """Each step of the plan with what it came to, and the numbers of the evidence under it."""
    shown = [step for step in steps if step.function != "Output"]
    # One search alone is no derivation: its quotes stand above.
    if not any(step.answer for step in shown) or (len(shown) == 1 and not shown[0].computed):
        return []
    marked: dict[str, list[str]] = {}
    for one, mark in zip(answer.evidence, answer.marks, strict=True):
        marked.setdefault(one.passage.id, []).append(mark)
    lines: list[RenderableType] = [_heading_text(say("By these steps", answer.language))]
    for step in shown:
        cited = {mark for id in step.passages for mark in marked.get(id, ())}
        marks = "".join(f" {mark}" for mark in answer.marks if mark in cited)
        line = f"{step.n}. {step.step} → {step.answer or '?'}{marks}"
        lines.append(plain_text(line))
        if step.computed:
            lines.append(_Indented(plain_text(step.computed)))
    return lines


def _plan_lines(report: RunPage) -> list[RenderableType]:
    planned = planned_sources(report.events)
    return [plain_text(say_all(describe_plan(event))) for event in planned]


def plan_block(steps: Sequence[ProofStep]) -> list[RenderableType]:
    """The plan as it can be edited and run again."""
    text = "\n".join(step.wire for step in steps)
    return [_heading_text(say("Plan")), plain_text(text)] if steps else []


def cautions_block(answer: Answer) -> list[RenderableType]:
    """The cautions, each with the quotes that are not among the evidence."""
    if not answer.cautions:
        return []
    lines: list[RenderableType] = [_heading_text(say("Cautions", answer.language))]
    for caution in answer.cautions:
        lines.append(plain_text(f"! {caution.rule}: {caution.text}", style="yellow"))
        for against in caution.evidence[1:]:
            lines += _passage_entry(" ", against.passage, mark_quotes([("", against)]))
    return lines


def facts_block(report: RunPage) -> Iterator[Text]:
    """Halt reason, models, snapshot, cost, and the command that replays the run."""
    solution = report.solution
    if solution is not None:
        yield _fact_line("halt", f"{solution.halt.value}: {solution.why}")
        answer = solution.answer
        worded = f", {answer.authorship.value}" if answer.statements else ""
        yield _fact_line("grounding", f"{answer.grounding.value}{worded}")
    models = ", ".join(f"{role} {name}" for role, name in report.models.items())
    yield _fact_line("model", models or "none")
    yield _fact_line("knowledge", f"snapshot {report.snapshot}" if report.snapshot else "none used")
    if solution is not None:
        yield _fact_line("cost", format_cost(solution.usage, report.seconds))
    again = f"  (osler replay {report.run})" if report.kept else "  (not kept)"
    yield _fact_line("run", f"{report.run}{again if solution is not None else ''}")


def format_cost(usage: Usage, seconds: float | None) -> str:
    tokens = (
        f"{usage.prompt_tokens - usage.cached_tokens:,} read, {usage.cached_tokens:,} cached,"
        f" {usage.completion_tokens:,} written, {usage.scored_tokens:,} scored"
        if usage.is_counted
        else "not counted by the server"
    )
    counts = (
        f"{count_noun(usage.calls, 'call')}, {count_noun(usage.searches, 'search', 'searches')}"
    )
    spent = usage.seconds if seconds is None else seconds
    paid = f"; {format_money(usage.money)}" if usage.money else ""
    return f"{counts}; tokens: {tokens}; {spent:.1f} s{paid}"


def short_page(report: RunPage) -> Group:
    """The answer alone, for `--quiet`."""
    if report.solution is None:
        return Group(*_plan_lines(report))
    answer = report.solution.answer
    cautions = (plain_text(f"! {one.rule}: {one.text}") for one in answer.cautions)
    return Group(*answer_block(answer, report.question), *cautions)


def passage_block(passage: Passage, mark: str = "") -> list[RenderableType]:
    """A passage with its head."""
    return _passage_entry(mark, passage, plain_text(passage.text))


def hits_page(hits: Sequence[Hit]) -> Group:
    if not hits:
        return Group(Text(say("nothing found")))
    return _space_blocks([passage_block(h.passage, f"{h.rank}. {h.score:.3f}") for h in hits])


def passages_page(passages: Sequence[Passage], wanted: str) -> Group:
    """A passage among its neighbours; the wanted one is marked when it has any."""
    alone = len(passages) == 1
    return _space_blocks(
        [passage_block(p, "" if alone else ">" if p.id == wanted else " ") for p in passages]
    )


def mark_quotes(group: Sequence[tuple[str, Evidence]]) -> Text:
    """The text of a passage with its quotes, which do not overlap, set off, and their marks."""
    text, at, marked = group[0][1].passage.text, 0, plain_text("")
    for mark, evidence in sorted(group, key=lambda pair: pair[1].start):
        marked.append(escape_controls(text[at : evidence.start]))
        marked.append(f"{OPEN}{escape_controls(evidence.quote)}{CLOSE}", style="bold")
        marked.append(mark if len(group) > 1 else "")
        at = evidence.end
    return marked.append(escape_controls(text[at:]))


def _by_passage(answer: Answer) -> list[list[tuple[str, Evidence]]]:
    """Marked evidence, together where it quotes other places of one passage."""
    groups: list[list[tuple[str, Evidence]]] = []
    for one, mark in zip(answer.evidence, answer.marks, strict=True):
        fits = (group for group in groups if all(_are_apart(one, other) for _, other in group))
        group = next(fits, None)
        if group is None:
            groups.append([(mark, one)])
        else:
            group.append((mark, one))
    return groups


def _are_apart(one: Evidence, other: Evidence) -> bool:
    return one.passage == other.passage and (one.end <= other.start or other.end <= one.start)


@dataclass(frozen=True)
class _Indented:
    """A text four columns in; unlike `Padding` it fills no line with blanks."""

    body: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.body.wrap(console, options.max_width - 4):
            line.rstrip()
            yield Text("    ").append_text(line)


def _passage_entry(
    mark: str, passage: Passage, body: Text, notes: Sequence[str] = ()
) -> list[RenderableType]:
    head = " · ".join(filter(None, (_head_text(passage), *notes, passage.id)))
    line = plain_text(f"{mark} {head}" if mark else head, "cyan")
    lines: list[RenderableType] = [line]
    if passage.illustrative:
        lines.append(_Indented(Text(say(say(ILLUSTRATIVE, passage.language)), style="yellow")))
    return [*lines, _Indented(body)]


def _head_text(passage: Passage) -> str:
    return " · ".join(filter(None, (passage.source, passage.title, str(passage.locator))))


def _option_text(letter: str, question: Question) -> str:
    try:
        return f"{letter}. {question.option_text(letter)}"
    except KeyError:
        return letter


def _heading_text(text: str) -> Text:
    return Text(text, style="bold underline")


def _fact_line(name: str, value: str) -> Text:
    return plain_text(f"{set_cell_size(say(name), 10)} {say_all(' '.join(value.split()))}")


def _space_blocks(blocks: Sequence[Sequence[RenderableType]]) -> Group:
    """Blocks with an empty line between; an empty block leaves none."""
    lines: list[RenderableType] = []
    for block in filter(None, blocks):
        lines += [*([Text("")] if lines else []), *block]
    return Group(*lines)
