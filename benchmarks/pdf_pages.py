"""Words kept and their order on pages of public PDFs, beside other free readers.

    python benchmarks/pdf_pages.py FOLDER [--half dev] [--pages]

`FOLDER` holds PDFs of some ten pages and `gold.txt`, written by looking at the rendered pages:

    @NAME-3                 page 3 of NAME.pdf
    First words of a block  one line for each block, in reading order
    H Running head          what stands at the top or foot of each page
    W and its other words   more of it, and watermarks; not asked for
    R References [1]        where a list of references begins, which Osler leaves out

*kept*: of the words that three of the four other readers agree on (heads, feet and lists of
references apart), the share that is there. *order*: of the blocks, the share in the longest
run of right order; a block that is not found is out of order. *heads*: share of heads and feet
that are still there. *s*: of the processor, for all pages of the folder's PDFs. Documents are
sorted by name and taken by turns into the halves `dev` and `test`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from statistics import mean

Pages = list[str]
_WORD = re.compile(r"[㐀-鿿]|[^\W_㐀-鿿]+")
_BROKEN = re.compile(r"(?<=\w)[-\u00ad\u2010]\s*\n\s*(?=[a-z])")


def read_osler(path: Path) -> Pages:
    from osler.sources.formats.pdf import Pdf
    from osler.sources.records import Document

    pages: dict[int, str] = {}
    with path.open("rb") as stream:
        for record in Pdf().parse(stream, path.name):
            for section in record.sections if isinstance(record, Document) else ():
                page = section.page or 0
                pages[page] = f"{pages.get(page, '')}\n{section.text}"
    return [pages.get(number, "") for number in range(1, max(pages, default=0) + 1)]


def read_pypdf(path: Path) -> Pages:
    return [page.extract_text() for page in import_module("pypdf").PdfReader(path).pages]


def read_pdfminer(path: Path) -> Pages:
    return str(import_module("pdfminer.high_level").extract_text(path)).split("\f")


def read_pymupdf(path: Path) -> Pages:
    with import_module("pymupdf").open(path) as pdf:
        return [page.get_text() for page in pdf]


def read_pymupdf4llm(path: Path) -> Pages:
    reader = import_module("pymupdf4llm")
    chunks = reader.to_markdown(str(path), page_chunks=True, show_progress=False)
    return [chunk["text"] for chunk in chunks]


def read_pdftotext(path: Path, *ways: str) -> Pages:
    command = ["pdftotext", *ways, str(path), "-"]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - fixed words
    return done.stdout.decode().split("\f")


READERS: dict[str, Callable[[Path], Pages]] = {
    "osler": read_osler,
    "pypdf": read_pypdf,
    "pdfminer.six": read_pdfminer,
    "pymupdf": read_pymupdf,
    "pymupdf4llm": read_pymupdf4llm,
    "pdftotext": read_pdftotext,
    "pdftotext -layout": lambda path: read_pdftotext(path, "-layout"),
}
VOTERS = ("pypdf", "pdfminer.six", "pymupdf", "pdftotext -layout")


def words_of(text: str) -> Counter[str]:
    joined = _BROKEN.sub("", unicodedata.normalize("NFKC", text))
    return Counter(_WORD.findall(joined.casefold()))


def letters_of(text: str) -> str:
    return "".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


class Gold:
    """A page as it was seen: blocks in order, heads and feet, the list of references."""

    def __init__(self, name: str, lines: Iterable[str]) -> None:
        self.document, _, page = name.rpartition("-")
        self.page = int(page)
        self.blocks, self.heads, self.references = list[str](), list[str](), ""
        self.apart = Counter[str]()
        for line in lines:
            if line.startswith(("H ", "W ")):
                self.apart += words_of(line[2:])
            if line.startswith("H "):
                self.heads.append(line[2:])
            elif line.startswith("W "):
                continue
            elif line.startswith("R "):
                self.references = letters_of(line[2:])
            else:
                self.blocks.append(letters_of(line))

    def body_of(self, text: str) -> str:
        """The page without its list of references."""
        if not self.references:
            return text
        # In letters, since readers break lines in different places.
        found = letters_of(text).find(self.references)
        if found < 0:
            return text
        end = next(at for at in range(len(text)) if len(letters_of(text[:at])) >= found)
        return text[:end]


def agreed_words(gold: Gold, texts: dict[str, str]) -> Counter[str]:
    """As often as three of four have a word, less those of heads and feet."""
    counts = [words_of(gold.body_of(texts[one])) for one in VOTERS]
    agreed = Counter(
        {
            word: often
            for word in set().union(*counts)
            if (often := sorted(one[word] for one in counts)[1])
        }
    )
    return agreed - gold.apart


def ordered_blocks(blocks: list[str], text: str) -> int:
    """The length of the longest run of blocks that stand in the order of the page."""
    letters = letters_of(text)
    best: list[tuple[int, int]] = []  # place of a block, length of the best run that ends there
    for block in blocks:
        places = [found.start() for found in re.finditer(f"(?={re.escape(block)})", letters)]
        best += [
            (at, 1 + max((run for place, run in best if place < at), default=0)) for at in places
        ]
    return max((run for _, run in best), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=["dev", "test"], help="of the documents; else all")
    parser.add_argument("--pages", action="store_true", help="print each page of Osler's")
    asked = parser.parse_args()
    parts = ("\n" + (asked.folder / "gold.txt").read_text()).split("\n@")[1:]
    golds = [Gold(part.split("\n")[0], filter(None, part.split("\n")[1:])) for part in parts]
    names = sorted({gold.document for gold in golds})
    half = {"dev": names[::2], "test": names[1::2], None: names}[asked.half]
    golds = [gold for gold in golds if gold.document in half]
    read: dict[str, dict[str, Pages]] = {}
    seconds: dict[str, float] = {}
    for reader, pages_of in READERS.items():
        begun = _processor()
        read[reader] = {name: pages_of(asked.folder / f"{name}.pdf") for name in half}
        seconds[reader] = _processor() - begun
    print(f"{len(golds)} pages of {len(half)} documents")
    for reader in READERS:
        rows = [_score(gold, reader, read) for gold in golds]
        kept, order = mean(row[0] for row in rows), mean(row[1] for row in rows)
        heads = mean(share for gold, row in zip(golds, rows, strict=True) for share in row[2])
        figures = f"kept {kept:.4f} order {order:.4f} heads {heads:.3f}"
        print(f"{reader:18} {figures} s {seconds[reader]:.2f}")
    if asked.pages:
        for gold in golds:
            row = [_score(gold, reader, read) for reader in READERS]
            print(gold.document, gold.page, *(f"{one[0]:.3f}/{one[1]:.3f}" for one in row))


def _processor() -> float:
    """Seconds of the processor so far, of this process and of those that it started."""
    return sum(os.times()[:4])


def _score(
    gold: Gold, reader: str, read: dict[str, dict[str, Pages]]
) -> tuple[float, float, list[bool]]:
    texts = {
        one: pages[gold.document][gold.page - 1] if gold.page <= len(pages[gold.document]) else ""
        for one, pages in read.items()
    }
    text, agreed = texts[reader], agreed_words(gold, texts)
    kept = (agreed & words_of(text)).total() / agreed.total()
    heads = [_stands(letters_of(head), text) for head in gold.heads]
    return kept, ordered_blocks(gold.blocks, text) / len(gold.blocks), heads


def _stands(head: str, text: str) -> bool:
    """Whether a head is there; a page's number only as a line of its own."""
    if head.isdecimal():
        return any(letters_of(line) == head for line in text.split("\n"))
    return head in letters_of(text)


if __name__ == "__main__":
    main()
