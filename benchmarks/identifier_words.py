"""Makes `words.txt.xz`: the words of texts of open licences, by which names are told apart.

    .venv/bin/python benchmarks/identifier_words.py ../shared/data

Read are textbooks (OpenStax), PubMed and PMC records, MedQuAD, BioASQ, PubMedQA, MedMCQA, MedQA
and MuSiQue in English, and names of Hetionet; CMB, three of four rows of a Chinese dialogue set,
and the package's own Chinese.
Words alone come out, sorted: no sentence. Listed names are left out unless they are oftener words.
"""

from __future__ import annotations

import csv
import gzip
import lzma
import re
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "packages/osler/src/osler/sources"
SAMPLE = ROOT / "packages/osler/src/osler/sample"
MEDICAL = ("B_corpora/textbooks/*.gz", "B_corpora/medquad/*", "B_corpora/pubmed/*.jsonl")
QUESTIONS = ("pubmedqa/*.json", "bioasq/*.json", "medmcqa/*.json", "medqa_us/*.jsonl")
# Their capitals are authors' names too: read for words in lower case.
AUTHORED = (
    "B_corpora/pubmed/*.gz",
    "B_corpora/pubmed/medline_format/*",
    "B_corpora/jats_nxml/*.gz",
    "A_questions/multihop/musique/*corpus.json",
)
# Substances, side effects and symptoms: each name once is enough.
NAMED = "C_graphs/hetionet/hetionet-v1.0-nodes.tsv"
CHINESE = ("cmb_clin/CMB-Clin.json", "cmb_exam/CMB-4000.json", "cmb_exam/CMB-500.json")
OWN = (
    "packages/osler/src/osler/**/*.py",
    "packages/osler/src/osler/**/*.toml",
    "docs/**/*.md",
    "web/src/**/*.ts*",
    "README*.md",
)
_WORD = re.compile(r"(?<![A-Za-zÀ-ÿ])[A-Za-zà-ÿ]{2,}(?![A-Za-zÀ-ÿ])")
_PEOPLE = "LastName|ForeName|CollectiveName|AffiliationInfo|Affiliation|surname|given-names|aff"
_AUTHORS = re.compile(rf"<(?:{_PEOPLE}|ref-list)\b.*?</(?:{_PEOPLE}|ref-list)>", re.DOTALL)


def read_texts(path: Path) -> Iterator[str]:
    """The text of a file, or of each file of an archive."""
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                if (held := archive.extractfile(member)) is not None:
                    yield held.read().decode("utf-8", "ignore")
    elif path.suffix == ".gz":
        yield gzip.decompress(path.read_bytes()).decode("utf-8", "ignore")
    elif path.is_file():
        yield path.read_text(encoding="utf-8", errors="ignore")


def find_english(data: Path, listed: set[str]) -> set[str]:
    """Words twice in lower case, or three times with a capital where no author stands."""
    lower: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    medical = [*MEDICAL, *(f"A_questions/{one}" for one in QUESTIONS)]
    paths = [(path, False) for one in medical for path in sorted(data.glob(one))]
    paths += [(path, True) for one in AUTHORED for path in sorted(data.glob(one))]
    paths += [(path, False) for one in ("*.md", "*.jsonl") for path in SAMPLE.rglob(one)]
    for path, authored in paths:
        for text in read_texts(path):
            plain = re.sub(r"<[^>]+>", " ", _AUTHORS.sub(" ", text)).replace("\\n", " ")
            for word in _WORD.findall(plain):
                if word.islower():
                    lower[word] += 1
                elif not authored:
                    capital[word.lower()] += 1
    words = {word for word, times in lower.items() if times >= 2}
    words |= {word for word, times in capital.items() if times >= 3}
    return {word for word in words if word not in listed or lower[word] >= 25}


def find_named(data: Path, listed: set[str]) -> set[str]:
    """Words of the names of substances, side effects and symptoms in Hetionet (CC0)."""
    rows = (row.split("\t") for row in (data / NAMED).read_text("utf-8").splitlines())
    kinds = {"Compound", "Side Effect", "Symptom"}
    names = [row[1] for row in rows if row[2] in kinds]
    words = {word.lower() for name in names for word in re.findall(r"[A-Za-z]{4,}", name)}
    return words - listed


def find_chinese(data: Path, notes: list[str]) -> set[str]:
    """Pairs of neighbouring characters that stand twice, and those of the words of notes."""
    texts = [text for one in CHINESE for text in read_texts(data / "A_questions" / one)]
    with (data / "B_corpora/zh/样例_内科.csv").open(encoding="gb18030") as file:
        texts += ["。".join(row) for at, row in enumerate(csv.reader(file)) if at % 4]
    own = [path for one in OWN for path in ROOT.glob(one) if FOLDER not in path.parents]
    own += [
        ROOT / "packages/osler/src/osler/danger/rules.toml"
    ]  # twice: a pair that stands there once is a word
    texts += [text for path in (*own, *SAMPLE.rglob("*")) for text in read_texts(path)]
    runs = [run for text in texts for run in re.findall(r"[\u4e00-\u9fff]+", text)]
    pairs = Counter(run[at : at + 2] for run in runs for at in range(len(run) - 1))
    known = {pair for pair, times in pairs.items() if times >= 2}
    return known | {word[at : at + 2] for word in notes for at in range(len(word) - 1)}


def main() -> None:
    """Writes the file anew."""
    data = Path(sys.argv[1])
    lists = tomllib.loads((FOLDER / "lists.toml").read_text(encoding="utf-8"))
    listed = {*lists["given"].split(), *lists["family"].split()}
    words = find_english(data, listed) | find_named(data, listed)
    words |= find_chinese(data, lists["chinese"].split())
    text = "\n".join(sorted(words)) + "\n"
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / "words.txt.xz").write_bytes(packed)


if __name__ == "__main__":
    main()
