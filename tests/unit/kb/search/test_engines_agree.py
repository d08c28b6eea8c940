"""Three engines behind one seam: what is found, what filters keep out, and what never is.

The server's client runs in memory here: the same code and the same requests as over HTTP.
"""

from collections.abc import Iterator
from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.search import push
from osler.kb.search.base import Choice, Engine, Filter, Ranking
from osler.kb.search.edge import Edge
from osler.kb.search.exact import Exact
from osler.kb.search.remote import Remote, numbers_of
from osler.kb.search.vectors import Floats
from osler.kb.store import access
from osler.retrieve.words import terms
from osler.testing.encoders import HashingEncoder

from .conftest import described, quick_folder

pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")

QUERY = "ferrous salts for iron deficiency anaemia"
ABOUT = {"old-trial", "new-trial", "review", "undated", "advice"}


def in_memory(folder: Path, readers: access.Readers) -> Remote:
    qdrant = pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
    client = qdrant.QdrantClient(":memory:")
    with catch_warnings(), readers.borrow() as db:
        simplefilter("ignore", UserWarning)  # payload indexes do nothing in memory
        push.push(db, client, "osler", lambda *_: None)
    return Remote(client, Choice("qdrant", ":memory:"), lambda ids: numbers_of(readers, ids))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with quick_folder() as made:
        yield described(made)


@pytest.fixture(params=["sqlite", "edge", "qdrant"], scope="module")
def engine(request: pytest.FixtureRequest, folder: Path) -> Iterator[Engine]:
    choice = Choice("edge" if request.param == "edge" else "sqlite")
    if request.param == "edge":
        pytest.importorskip("qdrant_edge", reason="the extra edge is not installed")
    with KnowledgeBase.open(folder, choice) as kb:
        kb.build(HashingEncoder())
    readers = access.Readers(folder)
    made: Engine
    match request.param:
        case "sqlite":
            made = Exact(readers)
        case "edge":
            made = Edge(folder)
        case _:
            made = in_memory(folder, readers)
    yield made
    made.close()
    readers.close()


@pytest.fixture(scope="module")
def names(folder: Path) -> dict[int, str]:
    """Document of each passage."""
    with access.writing(folder) as db:
        rows = db.execute("SELECT number, id FROM passage").fetchall()
    return {number: id.split(":")[1].split("#")[0] for number, id in rows}


def vector() -> Floats:
    return np.asarray(HashingEncoder().encode([QUERY], kind="query")[0], np.float32)


def found(engine: Engine, names: dict[int, str], within: Filter) -> set[str]:
    """By words; and by vector the same ones come first."""
    words = engine.by_words(terms(QUERY), k=50, within=within)
    dense = engine.by_vector(vector(), k=50, within=within)
    both = engine.by_both(terms(QUERY), vector(), k=50, within=within)
    assert both == (dense, words)
    by_words = {names[number] for number, _ in words}
    by_vector = [names[number] for number, _ in dense]
    assert by_words <= set(by_vector)
    return by_words


def test_each_passage_with_a_word_is_found_but_patients_and_the_retracted(
    engine: Engine, names: dict[int, str]
) -> None:
    assert found(engine, names, Filter()) == ABOUT


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        (Filter(("research",)), ABOUT - {"advice"}),
        (Filter(("emr",)), {"patient"}),
        (Filter(("emr", "guideline")), {"patient", "advice"}),
        (Filter(("wiki",)), set()),
        (Filter(()), set()),
        (Filter(years=(2015, None)), {"new-trial", "review", "advice"}),
        (Filter(years=(None, 2015)), {"old-trial", "review"}),
        (Filter(years=(2016, 2020)), {"advice"}),
        (Filter(kinds=("randomized controlled trial",)), {"old-trial", "new-trial"}),
        (Filter(kinds=("Review", "Randomized Controlled Trial"), years=(2000, None)),
         {"new-trial", "review"}),
        (Filter(kinds=("Trial",)), set()),
        (Filter(trust=4), {"advice"}),
        (Filter(retracted=True), ABOUT | {"withdrawn"}),
        (Filter(("research",), years=(2018, 2018), retracted=True), {"withdrawn"}),
        (Filter(languages=("en",)), ABOUT),
        (Filter(languages=("zh",)), set()),
        (Filter(("emr",), years=(1900, None)), set()),
    ],
    ids=str,
)  # fmt: skip
def test_filters_keep_out_what_they_say(
    engine: Engine, names: dict[int, str], within: Filter, expected: set[str]
) -> None:
    assert found(engine, names, within) == expected


def test_chinese_is_found_by_its_characters(engine: Engine, names: dict[int, str]) -> None:
    hits = engine.by_words(terms("缺铁性贫血怎么治疗"), k=3, within=Filter(languages=("zh",)))
    assert [names[number] for number, _ in hits] == ["zh"]


def test_another_form_of_an_english_word_is_the_same_word(
    engine: Engine, names: dict[int, str]
) -> None:
    hits = engine.by_words(terms("opening airway"), k=3, within=Filter())
    assert [names[number] for number, _ in hits] == ["asthma"]


def test_the_vectors_rank_by_their_inner_product(engine: Engine, folder: Path) -> None:
    with KnowledgeBase.open(folder, Choice("sqlite")) as kb:
        texts = {n: p.text for n, p in kb.passages(range(1, 20)).items()}
    by_hand = {
        n: float(HashingEncoder().encode([text], kind="passage")[0] @ vector())
        for n, text in texts.items()
    }
    ranked = engine.by_vector(vector(), k=50, within=Filter())
    assert [s for _, s in ranked] == sorted((s for _, s in ranked), reverse=True)
    assert {n: pytest.approx(by_hand[n], abs=1e-5) for n, _ in ranked} == dict(ranked)


def test_fewer_are_the_first_of_more(engine: Engine) -> None:
    def both(k: int) -> tuple[Ranking, Ranking]:
        return engine.by_both(terms(QUERY), vector(), k=k, within=Filter())

    for few, many in zip(both(2), both(20), strict=True):
        assert [s for _, s in few] == pytest.approx([s for _, s in many[:2]])


def test_a_query_without_words_is_ranked_by_its_vector_alone(engine: Engine) -> None:
    dense, words = engine.by_both([], vector(), k=5, within=Filter())
    assert dense
    assert words == []
    assert engine.by_words([], k=5, within=Filter()) == []
