"""Counts as tables. Pure: values in, renderables out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from osler.cli.costs import count_noun
from osler.sources.catalogue import EMR
from osler.text import escape_controls

if TYPE_CHECKING:
    from osler.app.doctor.checks import Check
    from osler.cli.runs import ListedRun
    from osler.kb.base import BuildResult, IngestResult, KnowledgeBaseInfo
    from osler.kb.check import Provenance, SourceInfo
    from osler.kb.ingest.rejects import DeadLetter
    from osler.kb.search.push import PushResult
    from osler.kb.store.snapshots import Snapshot
    from osler.types import Language

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red"}


def added_page(added: IngestResult) -> Group:
    counts = (
        f"{count_noun(added.files, 'file')} read, {added.unchanged:,} unchanged;"
        f" {count_noun(added.documents, 'document')}, {count_noun(added.passages, 'passage')}"
    )
    if added.kept or added.gone:
        counts += f"; {added.kept:,} documents as before, {added.gone:,} gone"
    lines: list[RenderableType] = [plain_text(counts), *_drop_lines(added.drops)]
    lines += [plain_text(f"no parser knows {file}", "yellow") for file in added.unknown]
    lines += [plain_text(f"could not be read: {why}", "red") for why in added.failed]
    lines += [plain_text(f"no longer there: {file}", "yellow") for file in added.vanished]
    if added.vanished:
        lines.append(plain_text("their documents stay until `osler kb update --prune`"))
    return Group(*lines)


def built_page(built: BuildResult) -> Group:
    return Group(
        plain_text(
            f"{built.passages:,} passages, {built.encoded:,} encoded now"
            f" in {built.seconds:.1f} s; snapshot {built.snapshot}"
        )
    )


_LANGUAGES: Mapping[Language, str] = {"en": "English", "zh": "Chinese"}


def by_words_lines(counts: Mapping[Language, int], *, built: bool = True) -> list[str]:
    """A line for each language whose passages have no vectors."""
    have = (
        "have no vectors"
        if built
        else f"get no vectors, since the encoder reads {_other_languages(counts)} only"
    )
    return [
        f"{count:,} {_LANGUAGES[language]} passages {have}: they are found by words alone"
        for language, count in counts.items()
    ]


def _other_languages(counts: Mapping[Language, int]) -> str:
    return " and ".join(name for one, name in _LANGUAGES.items() if one not in counts) or "neither"


def pushed_page(pushed: PushResult) -> Group:
    """Passages on the server, by source."""
    rows = ((source, f"{count:,}") for source, count in pushed.passages.items())
    table = make_table(("source", "on the server"), rows, numeric={"on the server"})
    done = f"{pushed.sent:,} sent, {pushed.deleted:,} deleted in {pushed.seconds:.1f} s"
    return Group(table, plain_text(done))


def info_page(info: KnowledgeBaseInfo) -> Group:
    """A row for each source; below it, what it dropped and why."""
    head = [
        plain_text(f"knowledge base {info.path}"),
        plain_text(f"snapshot  {_snapshot_line(info)}"),
        plain_text(f"encoder   {info.encoder or 'none: search by words alone'}"),
    ]
    if info.size:
        kept = f", {info.snapshots:,} snapshots" if info.snapshots else ""
        head.append(plain_text(f"size      {_format_size(info.size)}{kept}"))
    if info.pending:
        head.append(plain_text(f"pending   {info.pending:,} passages want a vector", "yellow"))
    head += [plain_text(f"words     {line}") for line in by_words_lines(info.by_words)]
    if not info.sources:
        return Group(*head, plain_text("it is empty; next: osler kb add PATH --source SOURCE"))
    table = make_table(
        ("source", "documents", "passages", "words a passage", "languages", "licences", "dropped"),
        map(_source_row, info.sources),
        numeric={"documents", "passages", "dropped"},
    )
    notes = [line for source in info.sources for line in _source_notes(source)]
    return Group(*head, table, *notes)


def snapshots_page(snapshots: Sequence[Snapshot]) -> RenderableType:
    if not snapshots:
        return plain_text("no snapshots yet; next: osler kb snapshot NAME")
    rows = (
        (
            one.name,
            _format_time(one.taken),
            f"{one.documents:,}",
            f"{one.passages:,}",
            _format_size(one.size),
            one.snapshot or "-",
        )
        for one in snapshots
    )
    names = ("name", "taken", "documents", "passages", "size", "build")
    return make_table(names, rows, numeric=names[2:5])


def dead_page(letters: Sequence[DeadLetter]) -> RenderableType:
    if not letters:
        return plain_text("no dead letters: all that was to be read was read")
    table = make_table(("source", "file", "record", "line", "reason", "when"), cut="file")
    for letter in letters:
        file = f"{letter.path}!{letter.member}" if letter.member else letter.path
        cells = (
            _blank_zero(letter.record),
            _blank_zero(letter.line),
            letter.reason,
            _format_time(letter.at),
        )
        table.add_row(plain_text(letter.source), _one_line(file), *map(plain_text, cells))
    return table


def provenance_line(provenance: Provenance) -> Text:
    """One line on the origin of a passage."""
    parts = [
        f"from {provenance.origin}",
        f"sha256 {provenance.checksum[:12]}" if provenance.checksum else "",
    ]
    parts += [
        f"in since {_format_time(provenance.added)}" if provenance.added else "",
        f"trust {provenance.trust}",
    ]
    parts += ["RETRACTED" if provenance.retracted else "", *provenance.kinds, provenance.state]
    return plain_text("; ".join(filter(None, parts)), "red" if provenance.retracted else "dim")


def _source_notes(source: SourceInfo) -> list[Text]:
    """Notes on a source that have no column of their own."""
    name, notes = source.source, []
    if source.waiting:
        notes.append(f"{name}: waiting to be read {source.waiting:,}; next: osler kb update")
    if source.failed:
        notes.append(f"{name}: dead letters {source.failed:,}; see: osler kb dead")
    if source.retracted:
        notes.append(f"{name}: retracted {source.retracted:,}")
    if source.origins:
        tiers = ", ".join(f"{tier} ({n:,})" for tier, n in source.trust.items())
        notes.append(
            f"{name}: paths added {source.origins:,};"
            f" latest document {_format_time(source.latest)}; trust {tiers}"
        )
    return [*(plain_text(note) for note in notes), *_drop_lines(source.drops, name)]


def _format_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _blank_zero(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _format_size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def checks_page(checks: Sequence[Check]) -> Group:
    lines: list[RenderableType] = []
    for check in checks:
        line = plain_text(f"{check.status:<5} {check.name}: {check.detail}", _COLOURS[check.status])
        lines.append(line)
        if check.fix and check.status != "pass":
            lines.append(plain_text(f"      {check.fix}"))
    return Group(*lines)


def runs_page(runs: Sequence[ListedRun]) -> RenderableType:
    if not runs:
        return plain_text("no runs yet")
    table = make_table(("run", "when", "strategy", "halt", "question"), cut="question")
    for run in runs:
        cells = map(plain_text, (run.id, run.when, run.strategy, run.halt))
        table.add_row(*cells, _one_line(" ".join(run.question.split())))
    return table


def _snapshot_line(info: KnowledgeBaseInfo) -> str:
    if info.built:
        return info.snapshot
    changed = f"{info.snapshot}, changed since" if info.snapshot else "none"
    return f"{changed}; next: osler kb build"


def _source_row(source: SourceInfo) -> tuple[str, ...]:
    name, samples = source.source, source.illustrative
    if samples and name == EMR:
        name += " (synthetic)"  # made-up patients, the user's own as well as the sample's
    elif samples:
        name += " (sample)" if samples == source.passages else f" ({samples:,} sample)"
    words = ", ".join(f"{language} {mean:.0f}" for language, mean in source.words.items())
    return (
        name,
        f"{source.documents:,}",
        f"{source.passages:,}",
        words,
        ", ".join(source.words),
        ", ".join(filter(None, source.licences)),
        f"{sum(source.drops.values()):,}",
    )


def _drop_lines(drops: Mapping[str, int], source: str = "") -> list[Text]:
    head = f"{source}: " if source else ""
    return [plain_text(f"{head}dropped {n:,}: {why}", "yellow") for why, n in drops.items()]


def make_table(
    names: Sequence[str],
    rows: Iterable[Sequence[str]] = (),
    *,
    numeric: Collection[str] = (),
    cut: str = "",
) -> Table:
    """Columns as wide as they need; only `cut` gives way where the page is too narrow."""
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(names))
    for name in names:
        # Ids and counts are copied from the page, so they must stand on one line.
        fixed = bool(cut) and name != cut
        table.add_column(name, justify="right" if name in numeric else "left", no_wrap=fixed)
    for row in rows:
        table.add_row(*map(plain_text, row))
    return table


def plain_table(rows: Iterable[Sequence[str]]) -> Table:
    """Rows without a head: mostly a name and its value."""
    return make_table(("", ""), rows)


def plain_text(words: str, style: str = "") -> Text:
    """A cell or a line, without what a terminal would obey instead of show."""
    return Text(escape_controls(words), style=style)


def _one_line(words: str) -> Text:
    return Text(escape_controls(words), no_wrap=True, overflow="ellipsis")
