"""Export of tasks for other harnesses: questions and scoring written out as files.

| Harness | Files |
|---|---|
| lm-evaluation-harness | `NAME.yaml` a task, `NAME.jsonl`, `osler_tasks.py` that reads and scores |
| inspect_ai | `osler_tasks.py` with a `@task` for each, `NAME.jsonl` |

A folder may be moved: nothing in it names where it lies. Choices are scored by the harness itself;
worded answers by Osler's own measures, so Osler must be installed beside it for those.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from osler.errors import BadRun, translate_os_errors
from osler.evaluate.record import Kind, Sample
from osler.text import read_packaged
from osler.types import Language

Harness = Literal["lm-eval", "inspect"]
HARNESSES: tuple[Harness, ...] = get_args(Harness)
MODULE = "osler_tasks.py"
TOKENS: dict[Kind, int] = {"choice": 8, "choices": 16, "short": 64, "long": 512}
"""Limit of an answer's tokens, by kind."""

_ANSWER: dict[Language, str] = {"en": "Answer:", "zh": "答案："}
_SEVERAL: dict[Language, str] = {
    "en": "Answer (all right letters, no other words):",
    "zh": "答案（只写所有正确选项的字母）：",
}


@dataclass(frozen=True, slots=True)
class ExportedTask:
    """Data set as a task for another harness."""

    name: str
    kind: Kind
    samples: Sequence[Sample]
    digest: str
    """SHA-256 over the files that it was read from."""

    @property
    def slug(self) -> str:
        """Name as an identifier in Python and YAML: "osler_medqa_us"."""
        name = "osler_" + re.sub(r"\W", "_", self.name)
        return f"{name}_" if keyword.iskeyword(name) else name


def export_tasks(parts: Sequence[ExportedTask], harness: Harness, folder: Path) -> list[Path]:
    """Writes the folder; returns the files. What lay there under the same names is replaced.

    Raises `BadRun` where it cannot be written, and for two parts of one name.
    """
    names = [part.slug for part in parts]
    if len(set(names)) < len(names):
        raise BadRun("two tasks have one name", fix="name each data set once")
    made = dict(_data_files(parts))
    made |= dict(_lm_eval(parts) if harness == "lm-eval" else _inspect_files(parts))
    with translate_os_errors(f"{folder} cannot be written", BadRun):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in made]


def make_export_row(sample: Sample) -> dict[str, Any]:
    """Makes a flat line of the data, with the prompt as a harness without our templates asks it."""
    question, gold = sample.question, sample.gold
    lettered = question.lettered
    ask = _SEVERAL if sample.kind == "choices" else _ANSWER
    lines = [question.text, *(f"{a}. {text}" for a, text in lettered), ask[question.language]]
    return {
        "id": sample.id,
        "question": question.text,
        "options": list(question.options),
        "letters": list(question.letters),
        "prompt": "\n".join(lines),
        "gold": list(gold.letters),
        "golds": list(gold.texts),
        # lm-evaluation-harness wants the index of the right choice, inspect_ai its letter.
        "right": question.letters.index(gold.letters[0]) if gold.letters else -1,
        "language": question.language,
    }


def _data_files(parts: Sequence[ExportedTask]) -> Iterator[tuple[str, str]]:
    for part in parts:
        lines = [json.dumps(make_export_row(sample), ensure_ascii=False) for sample in part.samples]
        yield f"{part.slug}.jsonl", "\n".join([*lines, ""])


def _lm_eval(parts: Sequence[ExportedTask]) -> Iterator[tuple[str, str]]:
    yield MODULE, _read_template("lm_eval_tasks.py.txt")
    for part in parts:
        yield f"{part.slug}.yaml", "\n".join([*_yaml_lines(part), ""])


def _yaml_lines(part: ExportedTask) -> Iterator[str]:
    yield f"task: {part.slug}"
    yield "tag: osler"
    yield f"custom_dataset: !function {MODULE.removesuffix('.py')}.load"
    yield "dataset_kwargs:"
    yield f"  file: {part.slug}.jsonl"
    yield "test_split: test"
    yield 'doc_to_text: "{{prompt}}"'
    if part.kind == "choice":
        yield "output_type: multiple_choice"
        yield 'doc_to_choice: "{{letters}}"'
        yield "doc_to_target: right"
        yield from _measure_lines("acc")
    else:
        yield "output_type: generate_until"
        yield f'doc_to_target: "{{{{{"gold" if part.kind == "choices" else "golds"}}}}}"'
        yield "generation_kwargs:"
        # Worded answers may hold single line breaks; a set of letters may not.
        yield '  until: ["\\n\\n"]' if part.kind != "choices" else '  until: ["\\n"]'
        yield "  do_sample: false"
        yield f"  max_gen_toks: {TOKENS[part.kind]}"
        scores = {"choices": ("several", "acc"), "short": ("short", "em", "f1")}
        function, *names = scores.get(part.kind, ("long", "rouge_l"))
        yield f"process_results: !function {MODULE.removesuffix('.py')}.{function}"
        yield from _measure_lines(*names)
    yield "metadata:"
    yield "  version: 1"
    yield f'  sha256: "{part.digest}"'


def _measure_lines(*names: str) -> Iterator[str]:
    yield "metric_list:"
    for name in names:
        yield f"  - metric: {name}"
        yield "    aggregation: mean"
        yield "    higher_is_better: true"


def _inspect_files(parts: Sequence[ExportedTask]) -> Iterator[tuple[str, str]]:
    made = [_read_template("inspect_tasks.py.txt")]
    for part in parts:
        body = {
            "choice": f'_choices("{part.slug}", False)',
            "choices": f'_choices("{part.slug}", True)',
            "short": f'Task(dataset=_data("{part.slug}"), solver=generate(), scorer=f1())',
            "long": f'Task(dataset=_data("{part.slug}"), solver=generate(), scorer=rouge_l())',
        }[part.kind]
        made.append(f"\n\n@task\ndef {part.slug}():\n    return {body}\n")
    yield MODULE, "".join(made)


def _read_template(name: str) -> str:
    return read_packaged(__package__, name)
