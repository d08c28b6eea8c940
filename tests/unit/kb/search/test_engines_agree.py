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
from osler.kb.search.base import BackendChoice, Floats, PassageFilter, Ranking, SearchBackend
from osler.kb.search.edge import EdgeBackend
from osler.kb.search.exact import ExactBackend
from osler.kb.search.remote import QdrantBackend, numbers_of
from osler.kb.store import access
from osler.retrieve import content_terms
from osler_lab.testing.scripted import HashingEncoder

from .conftest import described, quick_folder

pytestmark = pytest.mark.filterwarnings("ignore:Local mode performs exact")

QUERY = "ferrous salts for iron deficiency anaemia"
ABOUT = {"old-trial", "new-trial", "review", "undated", "advice"}


def in_memory(folder: Path, readers: access.ReaderPool) -> QdrantBackend:
    qdrant = pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")
    client = qdrant.QdrantClient(":memory:")
    with catch_warnings(), readers.borrow() as db:
        simplefilter("ignore", UserWarning)  # payload indexes do nothing in memory
        push.push_passages(db, client, "osler", lambda *_: None)
    return QdrantBackend(
        client, BackendChoice("qdrant", ":memory:"), lambda ids: numbers_of(readers, ids)
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with quick_folder() as made:
        yield described(made)


@pytest.fixture(params=["sqlite", "edge", "qdrant"], scope="module")
def engine(request: pytest.FixtureRequest, folder: Path) -> Iterator[SearchBackend]:
    choice = BackendChoice("edge" if request.param == "edge" else "sqlite")
    if request.param == "edge":
        pytest.importorskip("qdrant_edge", reason="the extra edge is not installed")
    with KnowledgeBase.open(folder, choice) as kb:
        kb.build(HashingEncoder())
    readers = access.ReaderPool(folder)
    made: SearchBackend
    match request.param:
        case "sqlite":
            made = ExactBackend(readers)
        case "edge":
            made = EdgeBackend(folder)
        case _:
            made = in_memory(folder, readers)
    yield made
    made.close()
    readers.close()


@pytest.fixture(scope="module")
def names(folder: Path) -> dict[int, str]:
    """Document of each passage."""
    with access.open_for_writing(folder) as db:
        rows = db.execute("SELECT number, id FROM passage").fetchall()
    return {number: id.split(":")[1].split("#")[0] for number, id in rows}


def vector() -> Floats:
    return np.asarray(HashingEncoder().encode([QUERY], kind="query")[0], np.float32)


def found(engine: SearchBackend, names: dict[int, str], within: PassageFilter) -> set[str]:
    """By words; and by vector the same ones come first."""
    words = engine.by_words(content_terms(QUERY), k=50, within=within)
    dense = engine.by_vector(vector(), k=50, within=within)
    both = engine.by_both(content_terms(QUERY), vector(), k=50, within=within)
    assert both == (dense, words)
    by_words = {names[number] for number, _ in words}
    by_vector = [names[number] for number, _ in dense]
    assert by_words <= set(by_vector)
    return by_words


def test_each_passage_with_a_word_is_found_but_patients_and_the_retracted(
    engine: SearchBackend, names: dict[int, str]
) -> None:
    assert found(engine, names, PassageFilter()) == ABOUT


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        (PassageFilter(("research",)), ABOUT - {"advice"}),
        (PassageFilter(("emr",)), {"patient"}),
        (PassageFilter(("emr", "guideline")), {"patient", "advice"}),
        (PassageFilter(("wiki",)), set()),
        (PassageFilter(()), set()),
        (PassageFilter(years=(2015, None)), {"new-trial", "review", "advice"}),
        (PassageFilter(years=(None, 2015)), {"old-trial", "review"}),
        (PassageFilter(years=(2016, 2020)), {"advice"}),
        (PassageFilter(kinds=("randomized controlled trial",)), {"old-trial", "new-trial"}),
        (PassageFilter(kinds=("Review", "Randomized Controlled Trial"), years=(2000, None)),
         {"new-trial", "review"}),
        (PassageFilter(kinds=("Controlled Trial",)), set()),
        (PassageFilter(kinds=("tag: ÉPILEPSIE",)), {"review"}),
        (PassageFilter(kinds=("rct",), as_of=20151231, years=(None, 2015)), {"old-trial"}),
        # The advice is of March 2020; of the others the year alone is known.
        (PassageFilter(days=(20150401, None)), {"review", "new-trial", "advice"}),
        (PassageFilter(days=(20200315, 20210630)), {"advice"}),
        (PassageFilter(days=(20200401, None)), {"new-trial"}),
        (PassageFilter(days=(None, 20200330)), {"old-trial", "review"}),
        (PassageFilter(days=(None, 20200331)), {"old-trial", "review", "advice"}),
        (PassageFilter(trust=4), {"advice"}),
        (PassageFilter(retracted=True), ABOUT | {"withdrawn"}),
        (PassageFilter(("research",), years=(2018, 2018), retracted=True), {"withdrawn"}),
        (PassageFilter(languages=("en",)), ABOUT),
        (PassageFilter(languages=("zh",)), set()),
        (PassageFilter(("emr",), years=(1900, None)), set()),
    ],
    # Sorted, whatever the hash of a name: workers of one run must know a test by one id.
    ids=lambda value: " ".join(sorted(value)) if isinstance(value, set) else str(value),
)  # fmt: skip
def test_filters_keep_out_what_they_say(
    engine: SearchBackend, names: dict[int, str], within: PassageFilter, expected: set[str]
) -> None:
    assert found(engine, names, within) == expected


def test_chinese_is_found_by_its_characters(engine: SearchBackend, names: dict[int, str]) -> None:
    hits = engine.by_words(
        content_terms("缺铁性贫血怎么治疗"), k=3, within=PassageFilter(languages=("zh",))
    )
    assert [names[number] for number, _ in hits] == ["zh"]


def test_another_form_of_an_english_word_is_the_same_word(
    engine: SearchBackend, names: dict[int, str]
) -> None:
    hits = engine.by_words(content_terms("opening airway"), k=3, within=PassageFilter())
    assert [names[number] for number, _ in hits] == ["asthma"]


def test_the_vectors_rank_by_their_inner_product(engine: SearchBackend, folder: Path) -> None:
    with KnowledgeBase.open(folder, BackendChoice("sqlite")) as kb:
        texts = {n: p.text for n, p in kb.get_passages(range(1, 20)).items()}
    by_hand = {
        n: float(HashingEncoder().encode([text], kind="passage")[0] @ vector())
        for n, text in texts.items()
    }
    ranked = engine.by_vector(vector(), k=50, within=PassageFilter())
    assert [s for _, s in ranked] == sorted((s for _, s in ranked), reverse=True)
    # The embedded index keeps numbers of 16 bits.
    assert {n: pytest.approx(by_hand[n], abs=5e-4) for n, _ in ranked} == dict(ranked)


def test_fewer_are_the_first_of_more(engine: SearchBackend) -> None:
    def both(k: int) -> tuple[Ranking, Ranking]:
        return engine.by_both(content_terms(QUERY), vector(), k=k, within=PassageFilter())

    for few, many in zip(both(2), both(20), strict=True):
        assert [s for _, s in few] == pytest.approx([s for _, s in many[:2]])


def test_a_query_without_words_is_ranked_by_its_vector_alone(engine: SearchBackend) -> None:
    dense, words = engine.by_both([], vector(), k=5, within=PassageFilter())
    assert dense
    assert words == []
    assert engine.by_words([], k=5, within=PassageFilter()) == []
