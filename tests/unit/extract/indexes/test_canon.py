"""Which names mean one entity; worked by hand."""

from __future__ import annotations

from osler.extract.indexes.canon import Claim, classes, concept, members


def test_names_of_one_concept_are_one_entity_also_after_a_fusion() -> None:
    claims = [Claim("mi", ("A:1",)), Claim("heart attack", ("B:1",)), Claim("gout", ("A:2",))]
    assert classes(claims).count == 3
    fused = classes(claims, {"B:1": "A:1"})
    assert fused["mi"] == fused["heart attack"] == fused[concept("A:1")]
    assert fused["gout"] != fused["mi"]


def test_a_name_of_several_concepts_joins_none_of_them() -> None:
    """In one chunk or in two: MS is multiple sclerosis here and mitral stenosis there."""
    for claims in (
        [Claim("ms", ("A:1", "A:2"))],
        [Claim("ms", ("A:1",)), Claim("ms", ("A:2",))],
    ):
        whole = [*claims, Claim("multiple sclerosis", ("A:1",)), Claim("stenosis", ("A:2",))]
        found = classes(whole)
        assert len({found[name] for name in ("ms", "multiple sclerosis", "stenosis")}) == 3


def test_the_standard_name_that_most_chunks_give_counts() -> None:
    claims = [
        Claim("heart attack", standard="myocardial infarction"),
        Claim("heart attack", standard="myocardial infarction"),
        Claim("heart attack", standard="angina"),
        Claim("angina"),
    ]
    found = classes(claims)
    assert found["heart attack"] == found["myocardial infarction"]
    assert found["heart attack"] != found["angina"]


def test_a_synonym_counts_unless_names_of_two_entities_claim_it() -> None:
    one = Claim("myocardial infarction", synonyms=("mi",))
    found = classes([one, Claim("gout")])
    assert (found["mi"], found.refused) == (found["myocardial infarction"], 0)
    both = classes([one, Claim("mitral insufficiency", synonyms=("mi",))])
    assert both["myocardial infarction"] != both["mitral insufficiency"]
    assert (both["mi"], both.refused) == (None, 1)
    same = classes([one, Claim("heart attack", standard="myocardial infarction", synonyms=("mi",))])
    assert same.count == 1
    assert members(same) == [frozenset({"mi", "heart attack", "myocardial infarction"})]


def test_names_of_different_types_are_never_joined_by_a_model() -> None:
    claims = [
        Claim("aspirin", type="Drug", synonyms=("headache",), standard="pain"),
        Claim("headache", type="Disease"),
        Claim("pain", type="Symptom"),
    ]
    found = classes(claims)
    assert found.count == 3
    assert found.refused == 1
    joined = classes([*claims, Claim("headache", type="Drug")])
    assert joined["aspirin"] == joined["headache"]
