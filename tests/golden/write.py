"""Writes the golden prompts anew; read the diff before you commit it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "house"))

from test_prompt_house import GOLDEN, NAMES, example  # noqa: E402

from osler.prompts import render  # noqa: E402

GOLDEN.mkdir(parents=True, exist_ok=True)
for name in NAMES:
    for language in ("en", "zh"):
        text = render(name, language, **example(name, language)).text
        (GOLDEN / f"{name.replace('/', '.')}.{language}.txt").write_text(text + "\n", "utf-8")
