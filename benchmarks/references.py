"""Times the libraries of reference managers and the join of a list of retractions.

    python benchmarks/references.py FOLDER

makes in FOLDER 1,000 references as RIS and as a Zotero folder, 100,000 articles with 500 of them
retracted, and a list of 60,000 notices; then it tells seconds, memory and what is unmarked.
"""

from __future__ import annotations

import csv
import resource
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import PassageFilter

ARTICLES, RETRACTED, NOTICES, WORKS = 100_000, 500, 60_000, 1_000
HEADER = [
    "RetractionDate",
    "RetractionNature",
    "Reason",
    "OriginalPaperDOI",
    "OriginalPaperPubMedID",
]
ABSTRACT = (
    "Of {n} patients in ward {n} oral iron raised haemoglobin by {n} units over twelve weeks,"
    " compared with none; adverse events were as frequent in both groups."
)
ZOTERO = """
CREATE TABLE itemTypes AS SELECT 1 AS itemTypeID, 'journalArticle' AS typeName;
CREATE TABLE items(itemID INTEGER PRIMARY KEY, itemTypeID INT, key TEXT);
CREATE TABLE fieldsCombined(fieldID INTEGER PRIMARY KEY, fieldName TEXT);
INSERT INTO fieldsCombined VALUES (1,'title'),(2,'abstractNote'),(3,'date'),(4,'DOI');
CREATE TABLE itemDataValues(valueID INTEGER PRIMARY KEY, value);
CREATE TABLE itemData(itemID INT, fieldID INT, valueID INT, PRIMARY KEY(itemID, fieldID));
CREATE TABLE creatorTypes AS SELECT 1 AS creatorTypeID, 'author' AS creatorType;
CREATE TABLE creators AS SELECT 1 AS creatorID, 'Jane' AS firstName, 'Smith' AS lastName;
CREATE TABLE itemCreators(itemID INT, creatorID INT, creatorTypeID INT, orderIndex INT);
CREATE TABLE collections AS SELECT 1 AS collectionID, 'Ward' AS collectionName;
CREATE TABLE collectionItems(collectionID INT, itemID INT);
CREATE TABLE tags(tagID INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE itemTags(itemID INT, tagID INT);
CREATE TABLE itemNotes(itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT);
CREATE TABLE itemAttachments(itemID INTEGER PRIMARY KEY, parentItemID INT, contentType, path);
CREATE TABLE deletedItems(itemID INTEGER PRIMARY KEY);
CREATE TABLE retractedItems(itemID INTEGER PRIMARY KEY);
"""


def write_ris(path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for n in range(WORKS):
            file.write(
                f"TY  - JOUR\nID  - smith{n}\nTI  - Oral iron in ward {n}\nAU  - Smith, Jane\n"
                f"PY  - 2020\nJO  - J Iron\nDO  - 10.1000/w.{n}\n"
                f"AB  - {ABSTRACT.format(n=n)}\nER  - \n"
            )


def write_zotero(folder: Path) -> None:
    folder.mkdir()
    with closing(sqlite3.connect(folder / "zotero.sqlite")) as db, db:
        db.executescript(ZOTERO)
        for n in range(WORKS):
            db.execute("INSERT INTO items VALUES (?, 1, ?)", (n, f"K{n}"))
            db.execute("INSERT INTO itemCreators VALUES (?, 1, 1, 0)", (n,))
            db.execute("INSERT INTO collectionItems VALUES (1, ?)", (n,))
            told = (
                f"Oral iron in zone {n}",
                ABSTRACT.format(n=n + WORKS),
                "2020",
                f"10.1000/z.{n}",
            )
            for field, value in enumerate(told, 1):
                db.execute("INSERT INTO itemDataValues VALUES (?, ?)", (4 * n + field, value))
                db.execute("INSERT INTO itemData VALUES (?, ?, ?)", (n, field, 4 * n + field))


def write_articles(path: Path) -> None:
    """In MEDLINE's tagged format; of every other one the DOI alone is in the list of notices."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(1, ARTICLES + 1):
            file.write(
                f"PMID- {n}\nTI  - Oral iron in group {n}\nLID - 10.1000/a.{n} [doi]\n"
                f"AU  - Smith J\nDP  - 2020\nTA  - J Iron\nAB  - {ABSTRACT.format(n=n)}\n\n"
            )


def planted() -> list[int]:
    return list(range(7, ARTICLES, ARTICLES // RETRACTED))[:RETRACTED]


def write_notices(path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(HEADER)
        for place, n in enumerate(planted()):
            ids = (f"10.1000/A.{n}", "0") if place % 2 else ("unavailable", n)
            table.writerow(["7/14/2022 0:00", "Retraction", "+Error in Data;", *ids])
        for n in range(NOTICES - RETRACTED):
            row = (f"10.9999/other.{n}", 30_000_000 + n)
            table.writerow(["7/14/2022 0:00", "Retraction", "+Error in Data;", *row])


def timed(what: str, job: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    said = job()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = max(resource.getrusage(who).ru_maxrss for who in (0, -1)) // 1024  # self, children
    print(f"{what}: {wall:.1f} s ({cpu:.1f} s of this process), peak {peak} MB; {said}", flush=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    for write, name in (
        *((write_ris, "works.ris"), (write_zotero, "Zotero")),
        *((write_articles, "articles.nbib"), (write_notices, "notices.csv")),
    ):
        write(folder / name)
    with KnowledgeBase.create(folder / "kb") as kb:
        for name in ("works.ris", "Zotero", "articles.nbib"):
            timed(f"add {name}", partial(kb.add, [folder / name], source="research"))
        timed(f"join {NOTICES:,} notices", partial(kb.mark_retractions, folder / "notices.csv"))
        marks = [kb.get(f"research:{n}#0").locator for n in planted()]
        plain = sum(not one.is_retracted or "2022-07-14" not in one.notice for one in marks)
        found = kb.by_words(["iron"], k=2 * ARTICLES, within=PassageFilter())
        stand = {one.id for one, _ in found} & {f"research:{n}#0" for n in planted()}
        others = len(kb.list_retracted()) - RETRACTED
        print(
            f"unmarked {plain} of {RETRACTED}; still found {len(stand)}; marked by error {others}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
