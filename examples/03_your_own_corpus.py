"""Make a knowledge base of your own database, keep it up to date, and ask it.

    python examples/03_your_own_corpus.py

The corpus is a small SQLite table of drug notes. Any other corpus works in the same way: write its
records as JSON Lines with an id, a title and a text, and add that file. When the corpus has
changed, write the file again and update: only records that changed are encoded.
"""

import asyncio
import json
import sqlite3
import tempfile
from pathlib import Path

import osler
from osler.build.models import load_encoder

NOTES = [
    ("paracetamol", "Paracetamol", "Adults take 1 g of paracetamol up to four times a day.", 2024),
    ("enoxaparin", "Enoxaparin", "Enoxaparin 40 mg once daily prevents thrombosis.", 2023),
    ("gentamicin", "Gentamicin", "Gentamicin is given at 5 mg/kg once daily.", 2019),
    ("placebo", "Placebo", "", 2020),  # a record without a text
]
CORRECTION = "Gentamicin is given at 7 mg/kg once daily, except in renal impairment."
QUESTION = "What dose of gentamicin is given once daily?"


def export(database: sqlite3.Connection, target: Path) -> None:
    """One JSON object per line. `year` and `licence` are optional, and so is `url`."""
    rows = database.execute("SELECT id, title, text, year FROM note ORDER BY id")
    with target.open("w", encoding="utf-8") as file:
        for id, title, text, year in rows:
            record = {"id": id, "title": title, "text": text, "year": year, "licence": "internal"}
            file.write(json.dumps(record) + "\n")


def answer(settings: osler.Settings) -> str:
    solution = asyncio.run(osler.ask(settings, osler.parse_question(QUESTION))).solution
    assert solution is not None, "only a plan has no solution"
    return solution.answer.text or solution.answer.note


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = osler.load(
            {"home": folder, "strategy.kind": "rag", "kb.sources": "formulary"},
            cwd=Path.cwd(),
            env={},
        ).settings
        encoder = load_encoder(settings)
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE note (id TEXT, title TEXT, text TEXT, year INTEGER)")
        database.executemany("INSERT INTO note VALUES (?, ?, ?, ?)", NOTES)
        corpus = Path(folder) / "corpus" / "notes.jsonl"
        corpus.parent.mkdir()

        export(database, corpus)
        with osler.KnowledgeBase.create(settings.kb.path) as kb:
            added = kb.add([corpus.parent], source="formulary", trust=4)
            kb.build(encoder)
            print(f"{added.documents} documents; dropped: {added.drops}")
        print(answer(settings))

        database.execute("UPDATE note SET text = ? WHERE id = 'gentamicin'", (CORRECTION,))
        export(database, corpus)
        with osler.KnowledgeBase.open(settings.kb.path) as kb:
            updated = kb.update()
            kb.build(encoder)
            print(f"{updated.documents} document changed, {updated.kept} kept")
            origin = kb.provenance("formulary:gentamicin#0")
            print(f"from {Path(origin.origin).name}, trust {origin.trust}")
        print(answer(settings))


if __name__ == "__main__":
    main()
