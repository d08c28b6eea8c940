"""`retrieve` from data as published to a search: its corpus, its parts, its order."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from osler.errors import BadConfig, MalformedSource
from osler.evaluate.trained_on import read_trained_on
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.searching import SearchExpert
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.hybrid import HybridRetriever
from osler.train.experts.jobs import make_job
from osler.train.experts.letters import read_letters
from osler.train.experts.pair_questions import read_pair_questions
from osler.train.experts.query_map import MapRecipe
from osler.train.experts.retrieve_job import RetrieveJob
from osler.train.experts.searches import (
    choose_share,
    document_name,
    open_corpus,
    read_searches,
)
from osler.train.experts.splits import hash_of, make_split, read_split, write_split

SUBJECTS = [
    "Gout",
    "Asthma",
    "Uveitis",
    "Scurvy",
    "Rickets",
    "Malaria",
    "Measles",
    "Mumps",
    "Rabies",
    "Tetanus",
    "Cholera",
    "Typhus",
    "Anthrax",
    "Leprosy",
    "Syphilis",
    "Psoriasis",
    "Eczema",
    "Migraine",
    "Epilepsy",
    "Glaucoma",
    "Cataract",
    "Anaemia",
    "Leukaemia",
    "Lymphoma",
    "Melanoma",
    "Hepatitis",
    "Cirrhosis",
    "Colitis",
    "Gastritis",
    "Nephritis",
]
PAGE = """<Document id="{n}" source="GHR"><Focus>{name}</Focus><QAPairs>
<QAPair pid="1"><Question qtype="information">What is {name} ?</Question>
<Answer>{name} is a disease that doctors have described for a long time.</Answer></QAPair>
<QAPair pid="2"><Question qtype="treatment">How is {name} treated ?</Question>
<Answer>{name} is treated with rest, with fluids and by a specialist.</Answer></QAPair>
</QAPairs></Document>"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    with tarfile.open(folder / "MedQuAD_xml.tar.gz", "w:gz") as packed:
        for n, name in enumerate(SUBJECTS):
            page = PAGE.format(n=n, name=name).encode()
            member = tarfile.TarInfo(f"3_GHR_QA/{n}.xml")
            member.size = len(page)
            packed.addfile(member, io.BytesIO(page))
    abstracts = [(str(n), f"Does rest help in {name}?") for n, name in enumerate(SUBJECTS)]
    records = {
        pmid: {
            "QUESTION": asked,
            "CONTEXTS": [f"Patients with {asked.split()[-1][:-1]} rested for a week at home."],
            "LABELS": ["METHODS"],
            "LONG_ANSWER": "Rest helped most patients.",
            "final_decision": "yes",
        }
        for pmid, asked in abstracts
    }
    (folder / "ori_pqal_rest.json").write_text(json.dumps(records))
    lines = [
        {"id": f"pubmed_{pmid}_0", "title": "x", "content": one["CONTEXTS"][0], "PMID": int(pmid)}
        for pmid, one in records.items()
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "pubmedqa_contexts.jsonl").write_text(text)
    letters = [
        {"name": "liveqa", "question": f"Dear doctor, my son {n} has {name}. What shall I do?"}
        for n, name in enumerate(SUBJECTS)
    ]
    letters.append({"name": "liveqa", "question": "This is one sentence about nothing."})
    letters.append({"name": "expertqa", "question": "Is it Psoriasis?"})
    (folder / "train_long.json").write_text(json.dumps(letters))
    write_split(make_split(read_pair_questions(folder)), folder / "split.json")
    return folder


@pytest.fixture(scope="module")
def job(data: Path, tmp_path_factory: pytest.TempPathFactory) -> RetrieveJob:
    folder = tmp_path_factory.mktemp("retrieve")
    made = RetrieveJob(
        data, data / "split.json", folder / "retrieve", folder / "work", MapRecipe(rank=8, steps=60)
    )
    made.train()
    made.evaluate()
    return made


def test_the_card_compares_with_the_rule_on_the_test_part(job: RetrieveJob, data: Path) -> None:
    card = open_expert("retrieve", job.out).card
    test = read_split(data / "split.json").choose_items(read_searches(data), "test")
    assert {one.rule for one in card.figures} == {"hybrid 1 : 0.7, plain queries"}
    assert sum(one.n for one in card.figures if one.measure == "nDCG@10") == len(test)
    assert all(one.expert.value > 0.5 for one in card.figures)
    assert "letters" in {one.name for one in card.data}


def test_no_question_is_in_the_corpus_and_every_gold_document_is(
    job: RetrieveJob, data: Path
) -> None:
    questions = read_searches(data)
    with KnowledgeBase.open(job.work / "kb") as kb:
        passages = kb.get_passages(range(1, 1_000)).values()
    names = {document_name(one) for one in passages}
    assert {gold for one in questions for gold in one.gold} <= names
    texts = " ".join(f"{one.heading} {one.text}" for one in passages)
    assert "Does rest help" not in texts
    assert "How is" not in texts


def test_no_test_question_is_listed_as_seen(job: RetrieveJob, data: Path) -> None:
    split = read_split(data / "split.json")
    seen = read_trained_on(job.out / "trained-on.txt")
    kept = [one for one in read_searches(data) if split.part_of(one) == "train"]
    assert 0 < len(seen) <= len(kept) + len(read_letters(data, split, 0)["train"])


async def test_a_search_gives_probabilities_best_first(job: RetrieveJob) -> None:
    expert = SearchExpert(open_expert("retrieve", job.out))
    with KnowledgeBase.open(job.work / "kb") as kb:
        found = HybridRetriever(kb, MiniLMEncoder(threads=1), expert=expert)
        hits = await found.search("How is glaucoma treated?", k=5)
        assert "Glaucoma is treated" in hits[0].passage.text
        assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert 0 <= scores[-1] <= scores[0] <= 1
        assert len(await found.search("", k=5)) <= 5


def test_letters_ask_about_pages_of_their_part_and_no_text_is_in_both(data: Path) -> None:
    split = read_split(data / "split.json")
    letters = read_letters(data, split, 0)
    assert letters["train"]
    texts: dict[str, set[str]] = {}
    for part, several in letters.items():
        for one in several:
            pages = {name.partition("_Sec")[0] for name in one.gold}
            assert {split.parts.get(hash_of(f"medquad:{page}")) for page in pages} == {part}
            subject = one.id.rpartition(":")[2]
            assert subject in one.text
            texts.setdefault(one.text.replace(subject, "X"), set()).add(part)
    assert all(len(parts) == 1 for parts in texts.values())
    assert not any("one sentence" in one.text for one in letters["train"]), "no subject is named"


def test_a_share_keeps_pages_whole(data: Path) -> None:
    questions = read_searches(data)
    some = choose_share(questions, 0.5)
    assert 0 < len(some) < len(questions)
    assert choose_share(questions, 1.0) == questions
    pages = {one.documents[0] for one in some if one.source == "medquad"}
    for one in questions:
        assert (one in some) or one.documents[0] not in pages


def test_an_expert_of_a_share_is_measured_on_the_same_share(data: Path, tmp_path: Path) -> None:
    """Else most gold documents are not in the knowledge base that it searches."""
    where = (data, data / "split.json", tmp_path / "retrieve", tmp_path / "work")
    RetrieveJob(*where, MapRecipe(rank=8, steps=60), share=0.7).train()
    card = make_job("retrieve", *where).evaluate()
    some = choose_share(read_searches(data), 0.7)
    test = read_split(data / "split.json").choose_items(some, "test")
    assert sum(one.n for one in card.figures if one.measure == "nDCG@10") == len(test) > 5
    with pytest.raises(BadConfig, match="documents of other questions"):
        make_job("retrieve", *where, share=1.0).evaluate()


def test_a_folder_without_the_passages_is_refused(data: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "ori_pqal_rest.json").write_text((data / "ori_pqal_rest.json").read_text())
    with pytest.raises(MalformedSource, match="no passages"):
        open_corpus(bare, tmp_path, MiniLMEncoder(threads=1), read_searches(bare))
