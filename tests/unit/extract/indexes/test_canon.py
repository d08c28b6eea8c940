"""Which names mean one entity; worked by hand."""

from __future__ import annotations

from osler.extract.indexes.canon import NameClaim, concept_name, resolve_entities


def test_names_of_one_concept_are_one_entity_also_after_a_fusion() -> None:
    claims = [
        NameClaim("mi", ("A:1",)),
        NameClaim("heart attack", ("B:1",)),
        NameClaim("gout", ("A:2",)),
    ]
    assert resolve_entities(claims).count == 3
    fused = resolve_entities(claims, {"B:1": "A:1"})
    assert fused["mi"] == fused["heart attack"] == fused[concept_name("A:1")]
    assert fused["gout"] != fused["mi"]


def test_a_name_of_several_concepts_joins_none_of_them() -> None:
    """In one chunk or in two: MS is multiple sclerosis here and mitral stenosis there."""
    for claims in (
        [NameClaim("ms", ("A:1", "A:2"))],
        [NameClaim("ms", ("A:1",)), NameClaim("ms", ("A:2",))],
    ):
        whole = [
            *claims,
            NameClaim("multiple sclerosis", ("A:1",)),
            NameClaim("stenosis", ("A:2",)),
        ]
        found = resolve_entities(whole)
        assert len({found[name] for name in ("ms", "multiple sclerosis", "stenosis")}) == 3


def test_the_standard_name_that_most_chunks_give_counts() -> None:
    claims = [
        NameClaim("heart attack", standard="myocardial infarction"),
        NameClaim("heart attack", standard="myocardial infarction"),
        NameClaim("heart attack", standard="angina"),
        NameClaim("angina"),
    ]
    found = resolve_entities(claims)
    assert found["heart attack"] == found["myocardial infarction"]
    assert found["heart attack"] != found["angina"]


def test_a_synonym_counts_unless_names_of_two_entities_claim_it() -> None:
    one = NameClaim("myocardial infarction", synonyms=("mi",))
    found = resolve_entities([one, NameClaim("gout")])
    assert (found["mi"], found.refused) == (found["myocardial infarction"], 0)
    both = resolve_entities([one, NameClaim("mitral insufficiency", synonyms=("mi",))])
    assert both["myocardial infarction"] != both["mitral insufficiency"]
    assert (both["mi"], both.refused) == (None, 1)
    same = resolve_entities(
        [one, NameClaim("heart attack", standard="myocardial infarction", synonyms=("mi",))]
    )
    assert same.count == 1
    assert same.of.keys() == {"mi", "heart attack", "myocardial infarction"}


def test_names_of_different_types_are_never_joined_by_a_model() -> None:
    claims = [
        NameClaim("aspirin", type="Drug", synonyms=("headache",), standard="pain"),
        NameClaim("headache", type="Disease"),
        NameClaim("pain", type="Symptom"),
    ]
    found = resolve_entities(claims)
    assert found.count == 3
    assert found.refused == 1
    joined = resolve_entities([*claims, NameClaim("headache", type="Drug")])
    assert joined["aspirin"] == joined["headache"]
