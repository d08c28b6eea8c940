"""Ask a question over a knowledge base of your own files, and open what was cited.

    python examples/01_ask.py notes.md "What treats iron deficiency anaemia?"

Everything is made in a temporary folder and thrown away at the end.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import osler
from osler.build.models import load_encoder


def main(notes: str, question: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        flags = {"home": home, "strategy.kind": "rag"}
        settings = osler.load(flags, cwd=Path.cwd(), env={}).settings

        with osler.KnowledgeBase.create(settings.kb.path) as kb:
            added = kb.add([Path(notes)], source="book", licence="mine")
            kb.build(load_encoder(settings))
            print(f"{added.documents} documents, {added.passages} passages")

        solution = asyncio.run(osler.ask(settings, osler.parse_question(question))).solution
        assert solution is not None, "only a plan has no solution"
        answer = solution.answer
        print(answer.text or answer.note)
        for number, evidence in enumerate(answer.evidence, 1):
            print(f"[{number}] {evidence.passage.id}: {evidence.quote!r}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
