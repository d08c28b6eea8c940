"""Export of tasks for other harnesses: questions and scoring written out as files.

| Harness | Files |
|---|---|
| lm-evaluation-harness | `NAME.yaml` a task, `NAME.jsonl`, `osler_tasks.py` that reads and scores |
| inspect_ai | `osler_tasks.py` with a `@task` for each, `NAME.jsonl` |

A folder may be moved: nothing in it names where it lies. Choices are scored by the harness itself;
worded answers by Osler's own measures, so Osler must be installed beside it for those.
"""

from osler.evaluate.export.write import HARNESSES, Harness, export_tasks

__all__ = ["HARNESSES", "Harness", "export_tasks"]
