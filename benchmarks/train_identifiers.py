"""Trains the tagger of names on made-up names in open texts; writes `weights.json.xz`.

    python benchmarks/train_identifiers.py ../shared/data NAMES.json [en] [zh]

Card. Texts (tier open): MedQA-US, PubMedQA, MeQSum, CMB-Clin, CMB-Exam, Chinese consumers'
questions, in which words for persons (the patient, 患者) give way to names; templates
and parts of names in `benchmarks/identifiers`; the marked sentences of `tests/fixtures/phi` that
the rules were written against; NAMES.json: `given`, `family` and `zh_family` (name: frequency) of
Faker (MIT). No row of a text ships, nor a name: weights of features alone. A logistic regression
for each language; minutes on two cores.
"""

from __future__ import annotations

import json
import lzma
import random
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

from osler.sources.common_words import is_common, read_words
from osler_serve.clinic.identifiers.chinese import COMPOUND, EVERY_SURNAME
from osler_serve.clinic.identifiers.removal import find_by_rules
from osler_serve.clinic.identifiers.tagger import describe_signs, describe_words

HERE = Path(__file__).parent / "identifiers"
FOLDER = Path(__file__).parents[1] / "packages/osler-serve/src/osler_serve/clinic/identifiers"
WEIGHTS = FOLDER / "weights.json.xz"
MANY = {"en": 16000, "zh": 18000}  # sentences
NOTES = Path(__file__).parents[1] / "tests/fixtures/phi"
MARK = re.compile(r"\[\[([A-Z]+):(.*?)\]\]")
Sentence = tuple[str, list[tuple[int, int]]]
Names = dict[str, Any]
"""Of Faker: `given`, `family`: lists; `zh_family`: name and frequency."""
chance = random.Random(40)


def read_texts(data: Path, language: str) -> list[str]:
    """Sentences of open texts."""
    asked = data / "A_questions"
    if language == "en":
        rows = [
            json.loads(row)["question"]
            for row in (asked / "medqa_us/phrases_no_exclude_test.jsonl").open()
        ]
        rows += [json.loads(row)["letter"] for row in (asked / "meqsum/meqsum.jsonl").open()]
        held = json.loads((asked / "pubmedqa/ori_pqal_rest.json").read_text())
        rows += [text for row in held.values() for text in row["CONTEXTS"]]
        return [
            one for row in rows for one in re.split(r"(?<=[.?!])\s+|\n", row) if 10 < len(one) < 250
        ]
    rows = [json.loads(row)["ask"] for row in (asked / "zh_consumer/zh_consumer.jsonl").open()]
    rows += re.findall(r'": "([^"]+)"', (asked / "cmb_clin/CMB-Clin.json").read_text())
    rows += re.findall(r'": "([^"]+)"', (asked / "cmb_exam/CMB-4000.json").read_text())
    return [
        one
        for row in rows
        for one in re.split(r"(?<=[。？！?!；])|\\n|\n", row)
        if 5 < len(one) < 120 and not re.search("XX|某", one)
    ]


class EnglishNames:
    """Persons of the templates' slots: given, family, full name, initials."""

    def __init__(self, names: Names) -> None:
        self.given: list[str] = [one for one in names["given"] if " " not in one]
        self.family: list[str] = names["family"]
        self.words = [one for one in self.family if is_common(one) and len(one) > 2]
        self.given_words = [one for one in self.given if is_common(one) and len(one) > 2]

    def make(self, slot: str) -> str:
        if slot in "gf":
            name = self.make(slot.upper())
            return (
                name.lower()
                if slot == "g"
                else chance.choice((name.lower(), name.upper(), name.upper()))
            )
        if slot == "G":
            return chance.choice(self.given_words if chance.random() < 0.3 else self.given)
        if slot == "F":
            name = chance.choice(self.words if chance.random() < 0.3 else self.family)
            return f"{name}-{chance.choice(self.family)}" if chance.random() < 0.05 else name
        if slot in "Ii":
            letters = [
                chance.choice("ABCDEFGHIJKLMNOPRSTVWYZ")
                for _ in range(1 if slot == "i" else chance.choice((2, 2, 3)))
            ]
            return "".join(letters)
        given, family = self.make("G"), self.make("F")
        return chance.choice(
            (f"{given} {family}",) * 6
            + (
                f"{given[0]}. {family}",
                f"{given} {family[0]}.",
                f"{given} {chance.choice('ABCDEFHJLMPRST')}. {family}",
                f"{given} {self.make('G')} {family}",
                f"{family} {given}",
                f"{given} van {family}",
            )
        )


LISTS = tomllib.loads((files("osler.sources") / "lists.toml").read_text("utf-8"))
PARTS = tomllib.loads((HERE / "parts.toml").read_text("utf-8"))
FILLERS = {slot: words.split() for slot, words in PARTS["fillers"].items()} | {
    "E": [one.title() for one in LISTS["eponyms"].split()],
    "B": [one.title() for one in LISTS["brands"].split()[150:]],
}
FILLERS["W"] += [one.title() for one in LISTS["towns"].split()]
EN_PERSON = re.compile(
    r"\b(?P<who>(?:[Tt]he|[Tt]his|[Aa]) (?:patient|man|woman|boy|girl|child|infant|mother"
    r"|father|physician|resident|nurse|surgeon)\b"
    r"|(?<=[a-z] )(?:he|she)(?= [a-z]+s )|^(?:He|She)\b"
    r"|(?P<kin>\b(?:[Hh]is|[Hh]er|[Mm]y) (?:wife|husband|mother|father|son|daughter|sister|brother"
    r"|friend|mom|mum|dad|partner|doctor))\b)"
    r"(?!['’]|-)"
)
ZH_PERSON = re.compile(
    r"患者|病人|患儿|宝宝|(?<!小)孩子|我(?:妈妈|爸爸|母亲|父亲|老公|老婆|儿子|女儿"
    r"|奶奶|爷爷|朋友)|老人|小孩(?!子)|医生(?=你?您?好)"
)


# A name, and in angle brackets what stands beside it and is none: <老>周, 罗<姐>.
BESIDE = re.compile(r"^(?:<(.*?)>)?([^<>]*)(?:<(.*?)>)?$")


def fill(template: str, make: Callable[[str], str]) -> Sentence:
    """The template with names in its slots, and where they stand."""
    text, spans, at = "", [], 0
    for slot in re.finditer(r"\{(\w)\}", template):
        text += template[at : slot.start()]
        at = slot.end()
        if slot[1] == "A":
            text += str(chance.randint(1, 89))
        elif slot[1] in FILLERS:
            text += chance.choice(FILLERS[slot[1]])
        else:
            before, name, after = BESIDE.sub(r"\1\t\2\t\3", make(slot[1])).split("\t")
            text += before
            spans.append((len(text), len(text) + len(name)))
            text += name + after
    return text + template[at:], spans


def name_english(text: str) -> str:
    """A template of an open sentence: a slot in place of a word for a person, or beside one."""

    def put(match: re.Match[str]) -> str:
        if chance.random() < 0.4:
            return match[0]
        if match["kin"]:
            return match["kin"] + chance.choice((" {G}", " {G}", ", {G},", " ({G})", " {N}"))
        return chance.choice(("{G}", "{G}", "{N}", "{T} {F}", "{T} {F}", "{F}"))

    text = re.sub(
        r"^A (?=\d+-year-old)",
        lambda _: chance.choice(("{N}, a ", "{T} {F}, a ", "{G} is a ", "A ")),
        text,
    )
    return EN_PERSON.sub(put, text)


class ChineseNames:
    """Persons of the templates' slots: full name, child's or given name, familiar name, surname."""

    def __init__(self, names: Names) -> None:
        parts: dict[str, str] = dict(PARTS["chinese"])
        self.signs = parts.pop("given").replace("\n", "")
        self.nicks = parts.pop("nicks").split()
        self.peoples = [one.split() for one in parts.values()]
        self.common: list[str] = list(names["zh_family"])
        self.weights: list[float] = list(names["zh_family"].values())
        self.rare: list[str] = [*COMPOUND.split("|"), *EVERY_SURNAME]
        self.words = [
            one for one in sorted(read_words()) if re.fullmatch(r"[\u4e00-\u9fff]{2}", one)
        ]
        self.named = [one for one in self.words if one[0] in self.common[:120]]

    def family(self) -> str:
        if chance.random() < 0.2:
            return chance.choice(self.rare)
        return chance.choices(self.common, self.weights)[0]

    def given(self) -> str:
        if chance.random() < 0.1:
            return chance.choice(self.words)
        if chance.random() < 0.1:
            return chance.choice(self.signs) * 2
        return "".join(chance.choices(self.signs, k=chance.choice((1, 2, 2, 2))))

    def foreign(self) -> str:
        parts = chance.choice(self.peoples)
        name = "".join(chance.sample(parts, chance.choice((1, 2, 2, 3))))
        return name if len(name) > 1 else name + chance.choice(parts)

    def make(self, slot: str) -> str:
        if slot == "S":
            return self.family()
        if slot == "N":
            draw = chance.random()
            if draw < 0.16:
                return self.foreign()
            return chance.choice(self.named) if draw < 0.22 else self.family() + self.given()
        given = self.given()
        if slot == "M":
            return chance.choice(
                (
                    chance.choice(self.signs) * 2,
                    chance.choice(self.nicks),
                    given if len(given) > 1 else given * 2,
                    "小" + given,
                    "阿" + given[0],
                    given[0] + "宝",
                    self.foreign(),
                    self.make("N"),
                )
            )
        family = self.family()
        return chance.choice(
            (
                f"<老>{family}",
                f"<小>{family}",
                f"<老>{family}",
                f"<小>{family}",
                f"{family}<姐>",
                f"{family}<哥>",
                f"{family}<总>",
                f"{family}<工>",
                f"{family}<嫂>",
                f"{family}<老>",
                f"{family}<婶>",
                "阿" + given[0],
                given[0] + chance.choice("哥姐叔婶嫂妹"),
                chance.choice("大二三胖瘦小") + chance.choice("妞娃毛宝虎牛柱妹哥姐丫"),
                given if len(given) > 1 else given * 2,
                self.make("N"),
                chance.choice(self.nicks),
                f"<老>{family}<头>",
            )
        )


def name_chinese(text: str) -> str:
    """As `name_english`, for Chinese."""

    def put(match: re.Match[str]) -> str:
        word = match[0]
        if chance.random() < 0.4:
            return word
        if word.startswith("我"):
            return word + chance.choice(("{N}", "{M}"))
        if word == "医生":
            return "{S}医生"
        if word in ("患者", "病人", "患儿"):
            return chance.choice(
                (
                    word + "{N}",
                    "{N}",
                    "{O}",
                    word + "{N}，",
                    "{S}" + chance.choice(("女士", "先生", "大爷", "阿姨", "老师", "某")),
                )
            )
        if word in ("宝宝", "孩子", "小孩"):
            return chance.choice(("{M}", "{M}", word + "{M}"))
        return chance.choice(("{O}", "{N}", "{S}大爷", "{S}奶奶"))

    return ZH_PERSON.sub(put, text)


def read_notes(language: str) -> list[str]:
    """Templates of the marked sentences that the rules were written against."""

    def put(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind != "NAME":
            return str(name)
        if language == "en":
            if name.isupper():
                return "{I}" if len(name) < 4 else "{f}"
            return "{N}" if " " in name else chance.choice(("{F}", "{G}"))
        return "{S}" if len(name) == 1 else "{N}" if name[0] in EVERY_SURNAME else "{M}"

    texts = [(NOTES / f"{one}{language}.txt").read_text("utf-8") for one in ("", "unseen_two_")]
    return [MARK.sub(put, line) for text in texts for line in text.splitlines() if "{" not in line]


def vary(sentence: Sentence, language: str) -> Sentence:
    """The sentence as others write it: without capitals, all in capitals, with other marks."""
    text, spans = sentence
    draw = chance.random()
    if language == "en":
        return (text.lower() if draw < 0.06 else text.upper() if draw < 0.1 else text), spans
    return (text.translate(str.maketrans("，。：；（）", ",.:;()")) if draw < 0.4 else text), spans


def make_sentences(data: Path, names: Names, language: str, many: int) -> Iterator[Sentence]:
    """Templates and notes, open sentences with names, and open sentences as they are."""
    texts = read_texts(data, language)
    templates = (HERE / f"templates-{language}.txt").read_text("utf-8").splitlines()
    maker = EnglishNames(names) if language == "en" else ChineseNames(names)
    notes = read_notes(language)
    put = name_english if language == "en" else name_chinese
    tempting = [
        one
        for one in texts
        if re.search(r"[a-z,] [A-Z][a-z]{3}|[高白黄安石马周方江胡常时温成谢林王李张陈]", one)
    ]
    persons = [one for one in texts if (EN_PERSON if language == "en" else ZH_PERSON).search(one)]
    for _ in range(many):
        draw = chance.random()
        if draw < 0.15:
            template = chance.choice(notes)
        elif draw < 0.4:
            template = chance.choice(templates)
        elif draw < 0.67:
            template = put(chance.choice(persons).replace("{", "").replace("}", ""))
        else:
            template = (
                chance.choice(tempting if draw < 0.85 else texts).replace("{", "").replace("}", "")
            )
        yield vary(fill(template, maker.make), language)


def train(sentences: list[Sentence], language: str, strength: float) -> dict[str, int]:
    """Weights of features, in hundredths."""
    describe = describe_words if language == "en" else describe_signs
    rows, labels = [], []
    for text, spans in sentences:
        for start, _, features in describe(text, find_by_rules(text)):
            rows.append(dict.fromkeys(features, 1))
            labels.append(any(a <= start < b for a, b in spans))
    vector = DictVectorizer()
    table = vector.fit_transform(rows)
    kept = np.asarray((table != 0).sum(axis=0)).ravel() >= 3
    model = LogisticRegression(C=strength, max_iter=300).fit(table[:, kept], labels)
    held = zip(vector.get_feature_names_out()[kept], model.coef_[0], strict=True)
    weights = {name: round(100 * weight) for name, weight in held if abs(weight) > 0.08}
    weights["b"] = weights.get("b", 0) + round(100 * model.intercept_[0])
    return weights


def main() -> None:
    """Trains the languages that are named, and keeps the other's weights."""
    data, names = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text("utf-8"))
    for language in sys.argv[3:] or MANY:
        sentences = list(make_sentences(data, names, language, MANY[language]))
        weights = train(sentences, language, 1.0)
        print(language, len(sentences), len(weights))
        held = json.loads(lzma.decompress(WEIGHTS.read_bytes())) if WEIGHTS.exists() else {}
        text = json.dumps(held | {language: weights}, ensure_ascii=False, sort_keys=True)
        WEIGHTS.write_bytes(lzma.compress(text.encode(), preset=9))
    print(WEIGHTS.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
