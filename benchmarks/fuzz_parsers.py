"""Every parser under a fuzzer that follows coverage, and every file format under hostile files.

    python benchmarks/fuzz_parsers.py [--cases N] [--only NAME,…]     # pip install atheris
    python benchmarks/fuzz_parsers.py --hostile

A parser may return or raise an error of Osler's own; anything else, a case over 10 seconds and a
process over 1 GB are findings. Cases begin from `seeds` and from the cases that reached new code,
which are kept in `tests/fixtures/fuzz/kept.jsonl` (a test replays them); what breaks a parser is to
be added there.

`--hostile` adds each of 341 files, made of whole ones by the ways in which files go wrong (cut,
flipped, swollen, nested, misnamed, wrongly encoded), to a knowledge base in a process of its own.
"""

from __future__ import annotations

import argparse
import base64
import bz2
import gzip
import io
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from osler.errors import OslerError
from osler.kb.base import KnowledgeBase
from osler.llm.reading.verdicts import read_verdict
from osler.llm.recording.tape import Tape
from osler.methods.kag.parse import read_plan, read_search
from osler.methods.omni.dossier import parse_saved_plan
from osler.methods.omni.plan import parse_source_plan
from osler.methods.omni.planners.feedback import read_feedback
from osler.methods.omni.planners.single import parse_terms, read_passage
from osler.methods.tcrag.actions import parse_action, parse_released
from osler.questions import parse_labeled, parse_question
from osler.settings import load
from osler.sources.formats.registry import by_name
from osler.text import split_sentences
from osler.trace import from_line
from osler_lab.evaluate.judges import parse_marks
from osler_lab.evaluate.record import RECORD_LINES

CORPUS = Path(__file__).parents[1] / "tests" / "fixtures" / "fuzz" / "kept.jsonl"
SECONDS, MEGABYTES = 10, 1024
TOOLS = ("DOC_RAG", "KG_RAG")

# Whole files of each format, small. Those of packages are made by them (`made_files`).
FILES: dict[str, tuple[str, bytes]] = {
    "osler-jsonl": ("a.jsonl", b'{"osler": 1}\n{"id": "a#0", "text": "Iron is given.", "n": 0}\n'),
    "pubmed-xml": (
        "a.xml",
        b"<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>"
        b"Iron</ArticleTitle><Abstract><AbstractText>Iron is given.</AbstractText></Abstract>"
        b"</Article></MedlineCitation></PubmedArticle></PubmedArticleSet>",
    ),
    "medquad-xml": (
        "a.xml",
        b'<Document id="1" source="NIH" url="http://x"><Focus>Iron</Focus><QAPairs><QAPair pid="1">'
        b'<Question qid="1">What?</Question><Answer>Iron.</Answer></QAPair></QAPairs></Document>',
    ),
    "jats": (
        "a.nxml",
        b"<article><front><article-meta><article-id pub-id-type='pmc'>1</article-id><title-group>"
        b"<article-title>Iron</article-title></title-group></article-meta></front><body><sec><title>"
        b"Use</title><p>Iron is given.</p></sec></body></article>",
    ),
    "cnxml": (
        "index.cnxml",
        b'<document xmlns="http://cnx.rice.edu/cnxml"><title>Iron</title><content><para>Iron.</para>'
        b"</content></document>",
    ),
    "mediawiki": (
        "a.xml",
        b"<mediawiki><page><title>Iron</title><ns>0</ns><id>1</id><revision><text>'''Iron''' is a "
        b"[[metal]].\n== Use ==\n{{cite}} Given.</text></revision></page></mediawiki>",
    ),
    "fhir": (
        "a.json",
        b'{"resourceType": "Bundle", "entry": [{"resource": {"resourceType": "Patient", "id": "1",'
        b' "birthDate": "1970-01-01"}}, {"resource": {"resourceType": "Condition", "subject":'
        b' {"reference": "Patient/1"}, "code": {"text": "Anaemia"}}}]}',
    ),
    "wiki-api": (
        "a.json",
        b'{"query": {"pages": {"1": {"pageid": 1, "title": "Iron", "extract": "A metal."}}}}',
    ),
    "guideline-jsonl": (
        "a.jsonl",
        b'{"id": "1", "title": "Iron", "clean_text": "# Iron\\n\\nGiven.", "source": "who"}\n',
    ),
    "medrag-jsonl": (
        "a.jsonl",
        b'{"id": "a_0", "title": "Iron", "content": "Iron is given.", "contents": "Iron."}\n',
    ),
    "wikiextractor": ("wiki_00", b'<doc id="1" url="u" title="Iron">\nIron\n\nA metal.\n</doc>\n'),
    "kilt": (
        "a.jsonl",
        b'{"wikipedia_id": "1", "wikipedia_title": "Iron", "text": ["Iron", "A metal."]}\n',
    ),
    "evaluation": ("a.jsonl", b'{"question": "Q?", "options": {"A": "x"}, "answer_idx": "A"}\n'),
    "json-records": ("a.json", b'[{"id": 1, "title": "Iron", "text": "Iron is given."}]'),
    "csv": ("a.csv", b'id,title,text\n1,Iron,"Iron is ""given""."\n'),
    "obo": (
        "a.obo",
        b'format-version: 1.2\n\n[Term]\nid: D:1\nname: iron\ndef: "A metal." []\nis_a: D:2 ! x\n',
    ),
    "medline": ("a.txt", b"PMID- 1\nTI  - Iron\nAB  - Iron is given.\n      Twice.\n"),
    "html": (
        "a.html",
        b"<html><title>Iron</title><body><h1>Use</h1><p>Iron &amp; zinc.<table><tr><td>1</table>",
    ),
    "markdown": ("a.md", b"# Iron\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- given\n"),
    "plain": ("a.txt", "Iron is given.\n\n铁剂口服。".encode()),
}
PACKAGED = ("xlsx", "parquet", "pdf")


def made_files() -> dict[str, tuple[str, bytes]]:
    """Those of packages that are there."""
    made = dict(FILES)
    with suppress(ImportError):
        from openpyxl import Workbook

        book, out = Workbook(), io.BytesIO()
        for row in (["Name", "Dose", "Note"], ["Iron", "200 mg", "oral"], ["Zinc", "50 mg", ""]):
            book.active.append(row)
        book.save(out)
        made["xlsx"] = ("a.xlsx", out.getvalue())
    with suppress(ImportError):
        import pyarrow
        import pyarrow.parquet

        out = io.BytesIO()
        table = pyarrow.table({"id": ["1"], "title": ["Iron"], "text": ["Iron is given."]})
        pyarrow.parquet.write_table(table, out)
        made["parquet"] = ("a.parquet", out.getvalue())
    made["pdf"] = ("a.pdf", _pdf("Iron is given."))
    return made


def _pdf(text: str) -> bytes:
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 6\n0000000000 65535 f \n%s" % table
    return out + head + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)


# Parsers ---------------------------------------------------------------------------------

REPLIES: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "action": (
        lambda text: parse_action(text, tools=TOOLS),
        (
            'Thought: look.\nAction: DOC_RAG["iron"]',
            "Conclusion: iron [1]",
            "Backtrack",
            "Summary: x",
        ),
    ),
    "released-action": (
        lambda text: parse_released(text, tools=TOOLS),
        ("Thought: x\nAction: DOC_RAG\nAction Input: iron\nObservation:", "Final Answer: iron"),
    ),
    "source-plan": (
        parse_source_plan,
        ("<book>iron; zinc</book><graph>iron, treats</graph>", "<wiki>a</wiki>"),
    ),
    "saved-plan": (
        parse_saved_plan,
        ('{"question": "q", "queries": [{"source": "book", "query": "iron"}]}',),
    ),
    "logical-forms": (
        read_plan,
        (
            "Step1: Which?\nAction1: Retrieval(s=s1:drug[iron], p=p1:treats, o=o1:disease)\n"
            "Step2: Say.\nAction2: Output(o1)",
        ),
    ),
    "logical-search": (read_search, ("Step1: a\nAction1: Retrieval(s=s1:a[`b`], p=p1:c, o=o1:d)",)),
    "feedback": (read_feedback, ("Yes\n1. iron", "No. Search: iron")),
    "passage": (read_passage, ("Passage: iron is given.",)),
    "terms": (parse_terms, ("iron; zinc\n- gold", "1. iron, 2. zinc")),
    "verdict": (read_verdict, ("Yes.", "no", "Verdict: yes")),
    "marks": (lambda text: parse_marks(text, ("accuracy", "safety")), ("accuracy: 5\nsafety: 4",)),
    "question": (parse_question, ("Which?\nA. x\nB. y", "哪种？\nA、铁\nB、锌")),
    "labelled": (
        lambda text: parse_labeled(text, "a.jsonl"),
        ('{"question": "Q?", "answer": "iron", "documents": ["a"]}',),
    ),
    "event": (
        from_line,
        ('{"query":"iron","source":"book","type":"retrieval.asked"}', '{"type":"run.started"}'),
    ),
    "record": (
        lambda text: RECORD_LINES.decode_line(text.encode("utf-8", "replace")),
        ('{"strategy": "rag"}',),
    ),
    "sentences": (split_sentences, ("A. B. e.g. iron. 铁。Dr. X said no. 1. No [1].",)),
}


def _parse_reply(name: str, data: bytes) -> None:
    with suppress(OslerError):
        REPLIES[name][0](
            data.decode("utf-8", "surrogateescape" if data[:1] == b"\0" else "replace")
        )


def _parse_file(name: str, data: bytes) -> None:
    stream = io.BufferedReader(io.BytesIO(data))
    with suppress(OslerError):
        for _ in islice(by_name(name).parse(stream, FILE_NAMES[name]), 10_000):  # type: ignore[union-attr]
            pass


def _parse_settings(data: bytes) -> None:
    path = Path(tempfile.gettempdir()) / f"osler-fuzz-{os.getpid()}.toml"
    path.write_bytes(data)
    with suppress(OslerError):
        load({}, cwd=path.parent, env={}, file=path)


def _parse_tape(data: bytes) -> None:
    path = Path(tempfile.gettempdir()) / f"osler-fuzz-{os.getpid()}.jsonl"
    path.write_bytes(data)
    with suppress(OslerError):
        Tape.read(path)


FILE_NAMES = {name: file for name, (file, _) in {**FILES, "pdf": ("a.pdf", b"")}.items()}
# What openpyxl and pyarrow raise is anything at all, and is caught where files are read.
TARGETS: dict[str, Callable[[bytes], None]] = {
    **{name: (lambda data, name=name: _parse_reply(name, data)) for name in REPLIES},  # type: ignore[misc]
    **{name: (lambda data, name=name: _parse_file(name, data)) for name in FILE_NAMES},  # type: ignore[misc]
    "settings": _parse_settings,
    "tape": _parse_tape,
}
SETTINGS = b'home = "/tmp/x"\n[kb]\nsources = ["book"]\n[strategy]\nkind = "rag"\nk = 3\n'


def seeds_of(name: str) -> list[bytes]:
    if name in REPLIES:
        return [text.encode() for text in REPLIES[name][1]]
    if name == "settings":
        return [SETTINGS]
    if name == "tape":
        return [b'{"made": "recorded", "date": ""}\n{"key": "k"}\n']
    return [made_files()[name][1]]


def kept_cases(name: str) -> list[bytes]:
    rows = map(json.loads, CORPUS.read_text("utf-8").splitlines())
    return [base64.b64decode(row["data"]) for row in rows if row["parser"] == name]


# Only what is imported within the block is followed.
_CHILD = """
import sys, atheris
folder, name, *words = sys.argv[1:]
sys.path.insert(0, folder)
with atheris.instrument_imports(include=["osler"]):
    import fuzz_parsers
atheris.Setup(["fuzz", *words], fuzz_parsers.TARGETS[name])
atheris.Fuzz()
"""


def fuzz(name: str, cases: int, folder: Path) -> tuple[int, str]:
    """Runs one target in a process of its own; how many cases, and what was found."""
    corpus, artifacts = folder / name, folder / f"{name}-found"
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(exist_ok=True)
    for number, data in enumerate([*seeds_of(name), *kept_cases(name)]):
        (corpus / f"seed-{number}").write_bytes(data)
    command = [sys.executable, "-c", _CHILD, str(Path(__file__).parent), name, str(corpus)]
    command += [f"-runs={cases}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}"]
    command += [f"-artifact_prefix={artifacts}/", "-seed=1", "-max_len=20000", "-close_fd_mask=1"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    counts = re.findall(r"(?m)^#(\d+)\s", done.stderr)
    return int(counts[-1]) if counts else 0, _finding(done, artifacts)


def _finding(done: subprocess.CompletedProcess[str], artifacts: Path) -> str:
    if done.returncode == 0:
        return ""
    said = done.stderr.partition("Uncaught Python exception")[2][:3000] or done.stderr[-1500:]
    found = [f"{path.name}: {path.read_bytes()[:300]!r}" for path in artifacts.iterdir()]
    return "\n".join([said, *found])


# Hostile files ---------------------------------------------------------------------------


def hostile_files(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Fourteen ways for files to go wrong, for each format; and what concerns all of them."""
    for kind, (name, data) in made_files().items():
        ending = Path(name).suffix

        def named(how: str, kind: str = kind, ending: str = ending) -> str:
            return f"{kind}-{how}{ending}"

        flipped = bytearray(data)
        for _ in range(8):
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        middle = len(data) // 2
        yield named("cut"), data[:middle]
        yield named("cut-one"), data[:-1]
        yield named("head"), data[: max(8, len(data) // 10)]
        yield named("flipped"), bytes(flipped)
        yield named("noise"), data[:middle] + chance.randbytes(2000) + data[middle:]
        yield named("nul"), data[:middle] + b"\0" * 1000 + data[middle:]
        yield named("utf16"), data.decode("latin-1").encode("utf-16")
        yield named("surrogate"), data.replace(b"Iron", b"\xed\xa0\x80\xff\xfe")
        yield named("twice"), data + data
        yield named("swollen"), data.replace(b"Iron", b"Iron " * 400_000)
        yield named("long-word"), data.replace(b"Iron", b"I" * 2_000_000)
        yield named("brackets"), data[:middle] + b"[{<(" * 200_000 + data[middle:]
        yield f"{kind}-cut{ending}.gz", gzip.compress(data * 50)[:-40]
        yield f"{kind}-bomb{ending}.gz", gzip.compress(data + b" " * (8 << 20))
    yield from _general_files()


def _general_files() -> Iterator[tuple[str, bytes]]:
    deep = 100_000
    yield "deep.json", b'{"a":' * deep
    yield "deep-list.json", b"[" * deep
    yield "digits.json", b'[{"id": ' + b"9" * 5_000_000 + b', "text": "x"}]'
    yield "deep.xml", b"<PubmedArticleSet>" + b"<a>" * deep
    yield "deep.html", b"<div>" * deep
    laughs = b'<!DOCTYPE a [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    yield "laughs.xml", laughs + b"<PubmedArticleSet>&b;</PubmedArticleSet>"
    yield "bomb.md.bz2", bz2.compress(b"# T\n" + b"a " * (30 << 20))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../up.md", b"# T\n\nx")
        archive.writestr("a" * 5000 + ".md", b"# T\n\nx")
        archive.writestr("bomb.md", b" " * (60 << 20))
    yield "archive.zip", out.getvalue()
    with suppress(ImportError):
        yield "ratio.parquet", _dictionary_bomb()
    for name in ("a.md", "a.xlsx", "a.pdf"):
        yield f"empty-{name}", b""


def _dictionary_bomb() -> bytes:
    """A value of seven megabytes, named 64 times: some kilobytes that unfold to 448 MB."""
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    column = pyarrow.DictionaryArray.from_arrays([0] * 64, ["iron " * 1_400_000])
    table = pyarrow.table({"id": [str(n) for n in range(64)], "text": column})
    pyarrow.parquet.write_table(table, out, compression="zstd")
    return out.getvalue()


def try_file(name: str, data: bytes, folder: Path) -> str:
    """What is wrong with how it was read; "" = nothing."""
    path, kb = folder / name, folder / "kb"
    path.write_bytes(data)
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        try:
            with KnowledgeBase.create(kb) as base:
                base.add([path], source="book")
                assert all(one.startswith("it is not built") for one in base.verify())
            os._exit(0)
        except OslerError:
            os._exit(0)
        except BaseException:
            (folder / "said").write_text(traceback.format_exc())
            os._exit(1)
    began = time.monotonic()
    _, status, spent = os.wait4(child, 0)
    seconds, megabytes = spent.ru_utime + spent.ru_stime, spent.ru_maxrss // 1024
    problems = []
    if status:
        said = folder / "said"
        problems.append(said.read_text()[-800:] if said.exists() else f"status {status}")
    if seconds > SECONDS:
        problems.append(f"{seconds:.1f} s of the processor, {time.monotonic() - began:.1f} in all")
    if megabytes > MEGABYTES:
        problems.append(f"{megabytes} MB")
    return "; ".join(problems)


def run_hostile(seed: int = 1, limit: int | None = None) -> tuple[int, list[str]]:
    tried, problems = 0, []
    for name, data in islice(hostile_files(random.Random(seed)), limit):
        tried += 1
        with tempfile.TemporaryDirectory() as folder:
            if problem := try_file(name, data, Path(folder)):
                problems.append(f"{name}: {problem}")
                print(problems[-1], flush=True)
    return tried, problems


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20_000, help="in all")
    parser.add_argument("--only", default=",".join(TARGETS))
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--corpus", type=Path, help="where the cases that reach new code are kept")
    asked = parser.parse_args()
    if asked.hostile:
        number, problems = run_hostile()
        print(f"{number} hostile files, {len(problems)} problems")
        sys.exit(bool(problems))
    names, tried, findings = asked.only.split(","), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            tried[name], finding = fuzz(
                name, -(-asked.cases // len(names)), asked.corpus or Path(folder)
            )
            findings += bool(finding)
            print(f"{name:<16} {tried[name]:>7} cases  {finding or 'nothing'}", flush=True)
    print(f"{sum(tried.values())} cases, {findings} findings")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
