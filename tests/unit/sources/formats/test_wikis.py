"""Wikipedia in its native forms: dumps, KILT, answers of the API."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from cpu_time import cpu_seconds

from osler.errors import MalformedSource
from osler.sources.formats.wikis import Kilt, Mediawiki, WikiApi, plain_wikitext
from osler.sources.records import Document, Drop, Record, Section


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("'''Gout''' is ''bad''.", "Gout is bad."),
        ("A [[joint|swollen joint]] and [[uric acid]].", "A swollen joint and uric acid."),
        ("{{Infobox disease|name=Gout|x={{nested|{{deep}}}}}}Gout.", "Gout."),
        (
            'It hurts.<ref name="a">Smith {{cite}} 2003</ref> A lot.<ref name="a" />',
            "It hurts. A lot.",
        ),
        ("[[File:Toe.jpg|thumb|A [[toe]] of [[man|a man]].]]Text.", "Text."),
        ("[[File:a.jpg|thumb|As [above], [[so]] below.]]Text [[a [b] c]].", "Text a [b] c."),
        ("Give <s>50</s> <del>5</del>6 mg.", "Give  6 mg."),
        ("Text.\n[[Category:Gout]]\n[[de:Gicht]]", "Text."),
        ('{| class="wikitable"\n! a\n|-\n| {{x}} b\n|}\nAfter.', "After."),
        ("* one\n** two\n# three", "- one\n- two\n- three"),
        ("From {{convert|5|kg|lb|abbr=on}} to {{convert|2|-|3|cm}}.", "From 5 kg to 2 - 3 cm."),
        ("{{lang|fr|goutte}} ({{IPA-fr|x}}) is French.", "goutte is French."),
        ("See [http://x.org the site] now.", "See the site now."),
        ("Below 10<sup>9</sup>/L or 10<sup>&minus;6</sup>.", "Below 10⁹/L or 10⁻⁶."),
        ("a<br/>b<!-- no -->&nbsp;c __NOTOC__", "a\nb c"),
        ("Lone {{ stays, and so do }}}} and [[ these", "Lone }} and [[ these"),
        ("<ref>never closed. Text", "never closed. Text"),
        ("{{open | {{closed}} rest", "{{open |  rest"),
    ],
)
def test_wikitext_is_read_like_the_page(wikitext: str, plain: str) -> None:
    assert plain_wikitext(wikitext) == plain


@pytest.mark.parametrize(
    ("wikitext", "plain"),
    [
        ("From 5{{ndash}}10 mg.", "From 5–10 mg."),
        ("BMI of 18.5{{en dash}}24.9", "BMI of 18.5–24.9"),
        ("Store at {{minus}}20 °C.", "Store at −20 °C."),
        ("About 3{{nbsp}}mg or 3{{±}}1 mg.", "About 3 mg or 3±1 mg."),
        ("Take {{frac|1|2}}, {{Frac|2|1|4}} or {{sfrac|3}}.", "Take 1/2, 2 1/4 or 1/3."),
        ("Below {{val|150|e=9|u=/L}} or 20{{e|-6}}/L.", "Below 150×10⁹/L or 20×10⁻⁶/L."),
        ("{{val|5|1|u=mg|up=kg}}, {{gaps|10|000}} {{chem|H|2|O}}", "5±1 mg/kg, 10000 H2O"),
        ("From {{convert|5|±|1|kg}}, 10{{sup|9}}.", "From 5 ± 1 kg, 10⁹."),
        ("{{nowrap|1=P = 0.05 in {{nowrap|2{{ndash}}3}}}}", "P = 0.05 in 2–3"),
        ("Give 3{{unknown}}mg or 5{{unknown|x}}{{y}}10 g.", "Give 3 mg or 5 10 g."),
        ("痛风{{x}}是{{val}}.", "痛风是."),
    ],
)
def test_a_number_is_not_changed_by_the_templates_in_it(wikitext: str, plain: str) -> None:
    assert plain_wikitext(wikitext) == plain


@pytest.mark.parametrize(
    ("piece", "plain"),
    [
        *((piece, piece) for piece in ("{{", "[[", "{|", "[[a|", "{{a|", "\n{|\n{{", "[http://")),
        ("<ref>", ""),
        ("''", ""),
    ],
)
def test_the_work_on_a_page_of_unclosed_brackets_grows_as_its_length(
    piece: str, plain: str
) -> None:
    """64 times the page: 60 to 110 times the work; 4,096 times it, were that quadratic."""
    short, long = 4_000 // len(piece), 64 * 4_000 // len(piece)
    assert plain_wikitext(piece * short) == (plain * short).strip()
    one = cpu_seconds(lambda: plain_wikitext(piece * short), tries=5)
    assert cpu_seconds(lambda: plain_wikitext(piece * long)) < 512 * one


DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/"><siteinfo>
<base>https://en.wikipedia.org/wiki/Main_Page</base></siteinfo>{}</mediawiki>"""


def page(text: str = "Gout hurts.", title: str = "Gout", ns: str = "0", more: str = "") -> str:
    return (
        f"<page><title>{title}</title><ns>{ns}</ns><id>7</id>{more}<revision><id>1</id>"
        f"<timestamp>2016-06-01T00:00:00Z</timestamp><text>{text}</text></revision></page>"
    )


def dump(*pages: str) -> list[Record]:
    return list(Mediawiki().parse(BytesIO(DUMP.format("".join(pages)).encode()), "w.xml"))


def test_an_article_of_a_dump_keeps_its_headings_but_not_its_references() -> None:
    text = "Gout hurts.\n== Causes ==\nUrate.\n== References ==\nSmith.\n== See also ==\n* Urate"

    assert dump(page(text, title="Gout &amp; pain")) == [
        Document(
            id="7",
            title="Gout & pain",
            sections=(Section("Gout hurts."), Section("Urate.", ("Causes",))),
            year=2016,
            date="2016-06-01",
            url="https://en.wikipedia.org/wiki/Gout_%26_pain",
        )
    ]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (page(more='<redirect title="X"/>'), "redirect"),
        (page("#REDIRECT [[X]]"), "redirect"),
        (page("#重定向 [[X]]"), "redirect"),
        (page(ns="1"), "not an article"),
        (page("{{only|a template}}"), "no text"),
    ],
)
def test_what_is_no_article_is_a_drop(record: str, reason: str) -> None:
    assert dump(record) == [Drop(f"w.xml: page 7", reason)]  # noqa: F541


def test_a_kilt_page_has_its_sections_from_marks() -> None:
    text = ["Gout\n", "Gout hurts.\n", "Section::::Causes.\n", "Urate.\n", "BULLET::::- Beer\n"]
    text += [
        "Section::::Causes.:Genes.\n",
        "Some formula_1.\n",
        "Section::::See also.\n",
        "Urate\n",
    ]
    line = json.dumps({"wikipedia_title": "Gout", "text": text, "wikipedia_id": "7"})

    (found,) = Kilt().parse(BytesIO(line.encode()), "k.jsonl")

    assert isinstance(found, Document)
    assert found.id == "7"
    assert [(s.path, s.text) for s in found.sections] == [
        ((), "Gout hurts."),
        (("Causes",), "Urate.\n- Beer"),
        (("Causes", "Genes"), "Some ."),
    ]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"wikipedia_title": "a", "text": "b"}, "no text"),
        ({"wikipedia_title": "a", "text": ["a"]}, "no text"),
    ],
)
def test_a_kilt_page_that_lacks_something_is_a_drop(record: dict[str, Any], reason: str) -> None:
    assert list(Kilt().parse(BytesIO(json.dumps(record).encode()), "k")) == [Drop("k:1", reason)]


@pytest.mark.parametrize("as_list", [False, True])
def test_an_answer_of_the_api_holds_pages_or_says_they_are_missing(as_list: bool) -> None:
    here = {"pageid": 7, "title": "Gout", "extract": "Gout hurts.\n\n\n== Causes ==\nUrate."}
    missing = {"title": "Guot", "missing": ""}
    pages: Any = [here, missing] if as_list else {"7": here, "-1": missing}
    data = json.dumps({"batchcomplete": "", "query": {"pages": pages}}).encode()

    found, gone = WikiApi().parse(BytesIO(data), "a.txt")

    assert WikiApi().matches("a.txt", data)
    assert isinstance(found, Document)
    assert [(s.path, s.text) for s in found.sections] == [
        ((), "Gout hurts."),
        (("Causes",), "Urate."),
    ]
    assert gone == Drop("a.txt: Guot", "missing page")


def test_an_extract_may_be_html() -> None:
    page = {
        "pageid": 7,
        "title": "Gout",
        "extract": "<p>Gout <b>hurts</b>.</p><h2>Causes</h2><p>Urate.</p>",
    }
    data = json.dumps({"query": {"pages": {"7": page}}}).encode()

    (found,) = WikiApi().parse(BytesIO(data), "a.json")

    assert isinstance(found, Document)
    assert found.sections == (Section("Gout hurts."), Section("Urate.", ("Causes",)))


def test_an_answer_that_breaks_off_is_malformed() -> None:
    with pytest.raises(MalformedSource):
        list(WikiApi().parse(BytesIO(b'{"query": {"pages": {"1"'), "a"))
