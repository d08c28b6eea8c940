"""Questions that nobody labelled: sentences found by words, none of the test part."""

import json
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler.kb.base import KnowledgeBase
from osler.train.experts.judge_cases import UNLABELLED
from osler.train.experts.splits import DataSplit, hash_of
from osler.train.experts.unlabelled import read_unlabelled

PAGES = {
    "gout": "It was sunny in the whole country. Colchicine relieves an attack of gout. Short.",
    "shingles": "Aciclovir is given early against shingles.",
    "secret": "A secret page says that colchicine relieves an attack of gout too.",
}


@pytest.fixture
def base(tmp_path: Path) -> KnowledgeBase:
    pages = tmp_path / "pages.jsonl"
    rows = [{"id": name, "title": name, "content": text} for name, text in PAGES.items()]
    pages.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kb = KnowledgeBase.create(tmp_path / "kb")
    kb.add([pages], source="web")
    return kb


def write_questions(folder: Path, *asked: str) -> Path:
    file = folder / "questions_unlabelled.txt"
    file.write_text("".join(f"{one}\n" for one in asked))
    return file


def test_sentences_that_share_words_come_first_and_nobody_says_what_they_are_worth(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    asked = write_questions(tmp_path, "does colchicine help an attack of gout", "zzz")
    split = DataSplit({hash_of("medquad:secret"): "test", hash_of("medquad:gout"): "train"})
    (case,) = read_unlabelled(asked, base, split)
    assert (case.source, case.worth) == (UNLABELLED, ())
    assert [text.sentence for text in case.texts] == [
        "Colchicine relieves an attack of gout.",
        "It was sunny in the whole country.",
    ]
    assert case.texts[0].heading == "gout"


def test_a_page_of_the_test_part_is_never_read(base: KnowledgeBase, tmp_path: Path) -> None:
    asked = write_questions(tmp_path, "does colchicine help an attack of gout")
    for name in ("secret", "medquad:secret"):
        (case,) = read_unlabelled(asked, base, DataSplit({hash_of(name): "test"}))
        assert not any("secret" in text.heading for text in case.texts)
    (case,) = read_unlabelled(asked, base, DataSplit({}))
    assert any("secret" in text.heading for text in case.texts)


def test_a_file_that_is_not_there_is_told(base: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"nothing\.txt is not there"):
        read_unlabelled(tmp_path / "nothing.txt", base, DataSplit({}))
