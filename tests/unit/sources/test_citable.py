"""Identifiers of published works, found, normalised and checked."""

from __future__ import annotations

import pytest

from osler.sources.citable import find_citable_ids, is_valid_id, normalise_id


@pytest.mark.parametrize(
    ("text", "kind", "value", "words"),
    [
        ("See PMID: 33012345.", "pmid", "33012345", "PMID: 33012345"),
        ("(doi:10.1056/NEJMo1).", "doi", "10.1056/nejmo1", "doi:10.1056/NEJMo1"),
        ("at https://doi.org/10.1000/xyz.12,", "doi", "10.1000/xyz.12", "doi.org/10.1000/xyz.12"),
        (
            "10.1002/(SICI)1097-0258(1998)17:15/16<1661::AID-SIM968>3.0.CO;2-2.",
            "doi",
            "10.1002/(sici)1097-0258(1998)17:15/16<1661::aid-sim968>3.0.co;2-2",
            "10.1002/(SICI)1097-0258(1998)17:15/16<1661::AID-SIM968>3.0.CO;2-2",
        ),
        ("doi.org/10.1000/a%3C1::B%3E3", "doi", "10.1000/a<1::b>3", "doi.org/10.1000/a%3C1::B%3E3"),
        ("<b>10.1000/xyz</b><sup>2</sup>", "doi", "10.1000/xyz", "10.1000/xyz"),
        ("pmc7001234 says", "pmcid", "PMC7001234", "pmc7001234"),
        ("Trial nct04280705", "nct", "NCT04280705", "nct04280705"),
        (
            "EudraCT number: 2010-018418-26",
            "eudract",
            "2010-018418-26",
            "EudraCT number: 2010-018418-26",
        ),
        ("ISBN 978-0-306-40615-7", "isbn", "9780306406157", "ISBN 978-0-306-40615-7"),
        ("ISBN-10: 0-306-40615-2", "isbn", "9780306406157", "ISBN-10: 0-306-40615-2"),
        ("NICE guideline NG136 says", "guideline", "NICE NG136", "NICE guideline NG136"),
        ("SIGN 155", "guideline", "SIGN 155", "SIGN 155"),
        ("NGC-10422", "guideline", "NGC 10422", "NGC-10422"),
    ],
)
def test_an_identifier_is_found_in_its_one_form(
    text: str, kind: str, value: str, words: str
) -> None:
    (found,) = find_citable_ids(text)
    assert (found.kind, found.value, found.is_valid) == (kind, value, True)
    assert text[found.start : found.end] == words


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("isbn", "978-0-306-40615-8"),
        ("isbn", "0-306-40615-3"),
        ("isbn", "97803064061"),
        ("nct", "NCT0428070"),
        ("eudract", "1010-018418-26"),
        ("pmid", "012345"),
        ("pmid", "123456789"),
        ("pmcid", "PMC0123"),
    ],
)
def test_a_wrong_form_or_check_digit_is_seen(kind: str, written: str) -> None:
    assert not is_valid_id(kind, normalise_id(kind, written))


def test_doses_and_years_are_no_identifiers() -> None:
    assert (
        list(find_citable_ids("In 2019, 10.5 mg; 10/12 patients; TA100; pH 7; SIGN of life")) == []
    )
