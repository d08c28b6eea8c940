"""Names by a trained tagger, beside the rules: one weight for each feature of a word or a sign.

A logistic regression over the word itself, its form, the lists, its neighbours and what the rules
say of it. `weights.json.xz` is written by `benchmarks/train_identifiers.py`; its card stands there.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files

from osler.sources.common_words import is_common, is_listed, read_words
from osler_serve.clinic.identifiers.chinese import EVERY_SURNAME, TITLES
from osler_serve.clinic.identifiers.english_names import follows_thing, is_abbreviation
from osler_serve.clinic.identifiers.found import Identifier

_LETTERS = r"[^\W\d_\u4e00-\u9fff]+"
_WORD = re.compile(rf"{_LETTERS}(?:['’-]{_LETTERS})*|\d+|[^\w\s]|_")
_HAN = re.compile(r"[\u4e00-\u9fff]+")
_LISTS = ("given", "family", "towns", "eponyms", "brands", "never", "short")
_THING = re.compile(
    r"[\u4e00-\u9fff]{0,3}?(?:病|综合征|征|分[级类型期]|评分|量表|标准|试验|反射|细胞|法)"
)
_EDGE = "⊥"
# What the best word of a name weighs at least: English, in lower case, Chinese.
SURE, LOWER, SURE_ZH = 0.0, 1.0, 0.5


@cache
def _read_weights() -> dict[str, dict[str, float]]:
    packed = files("osler_serve.clinic.identifiers").joinpath("weights.json.xz").read_bytes()
    return {
        language: {name: weight / 100 for name, weight in weights.items()}
        for language, weights in json.loads(lzma.decompress(packed)).items()
    }


def find_tagged_names(line: str, ruled: Iterable[Identifier]) -> Iterator[Identifier]:
    """Runs of words or signs that are oftener a name than not, in English and Chinese.

    `ruled` is what the rules found in the line.
    """
    ruled = list(ruled)
    for language, describe, is_sound in (
        ("en", describe_words, _is_english),
        ("zh", describe_signs, _is_chinese),
    ):
        weights = _read_weights()[language]
        runs: list[tuple[int, int, list[float]]] = []
        for start, end, features in describe(line, ruled):
            score = sum(weights.get(one, 0.0) for one in features)
            if score <= 0:
                continue
            if runs and line[runs[-1][1] : start] in ("", " ", "-", ". "):
                runs[-1] = (runs[-1][0], end, [*runs[-1][2], score])
            else:
                runs.append((start, end, [score]))
        for start, end, scores in runs:
            if is_sound(line, start, end, scores):
                yield Identifier("NAME", start, end)


def _is_english(line: str, start: int, end: int, scores: list[float]) -> bool:
    """Whether no thing is named after the name, and the run is no abbreviation or heading."""
    words = line[start:end].split()
    if end - start < 2 or (_HAN.search(line) and not re.search("[A-Z][a-z]{2}", line[start:end])):
        return False
    if follows_thing(line[end:]) or all(is_abbreviation(word) for word in words):
        return False
    if is_listed(words[-1], "brands") or (
        is_listed(words[-1], "eponyms") and _HAN.match(line, end)
    ):
        return False
    return max(scores) > (LOWER if words[0].islower() else SURE)


def _is_chinese(line: str, start: int, end: int, scores: list[float]) -> bool:
    """Whether a title or 老, 小 stands beside a surname alone, and other names are no mere part."""
    if end - start > 1:
        is_thing = line[start] not in EVERY_SURNAME and _THING.match(line, end)
        return max(scores) > SURE_ZH and not is_thing
    return line[start] in EVERY_SURNAME and (
        re.match(rf"(?:{TITLES})", line[end:]) is not None
        or re.search(r"(?:^|[^\u4e00-\u9fff]|[找叫给让问跟和])[老小]$", line[:start]) is not None
    )


def _shape(word: str) -> str:
    if not word[0].isalpha():
        return "9" if word[0].isdigit() else word
    if word.islower():
        return "x"
    if len(word) == 1:
        return "X"
    return "XX" if word.isupper() else "Xx" if word[1:].islower() else "Xy"


@lru_cache(maxsize=20_000)
def _describe(word: str) -> tuple[str, str, str]:
    """Shape; the word where it is an ordinary one; the lists that have it."""
    shape, lower = _shape(word), word.casefold()
    if not word[0].isalpha():
        return shape, shape, ""
    common = is_common(word) or any(is_listed(word, one) for one in ("never", "short"))
    lists = "".join(one[0] for one in _LISTS if is_listed(word.removesuffix("'s"), one))
    return shape, lower if common else "?", ("c" if common else "r") + lists


def _kinds_at(ruled: list[Identifier], start: int) -> str:
    return next((one.kind[0] for one in ruled if one.start <= start < one.end), "-")


def describe_words(line: str, ruled: list[Identifier]) -> Iterator[tuple[int, int, list[str]]]:
    """Start, end and features of each word that may belong to an English name."""
    words = list(_WORD.finditer(line))
    held = [_describe(one[0]) for one in words]
    edge = (_EDGE, _EDGE, "")
    told = [edge, edge, *held, edge, edge]
    rules = ["-", *(_kinds_at(ruled, one.start()) for one in words), "-"]
    for at, one in enumerate(words):
        shape, low, lists = held[at]
        if not one[0][0].isalpha() or (shape == "x" and lists == "c"):
            continue
        (s2, l2, _), (s1, l1, k1), _, (t1, r1, m1), (_, r2, _) = told[at : at + 5]
        rule = rules[at + 1]
        kind = shape + lists
        own = f"t{one[0].casefold()[-3:]}" if lists[0] == "r" else f"W{low}{shape}"
        features = (
            f"b\tk{kind}\tw{low}\tR{rule}\tR{rule}k{kind}\tR{rule}w{low}\t<{l1}\t>{r1}\t<<{l2}\t"
            f">>{r2}\t<{l1}k{kind}\t>{r1}k{kind}\t<{s1}{k1}k{kind}\t>{t1}{m1}k{kind}\t<{l2} {l1}\t"
            f">{r1} {r2}\t<{l2} {l1}{shape}\t>{r1} {r2}{shape}\ts{s2}{s1}{shape}{t1}\t"
            f"R{rules[at]}{rule}{rules[at + 2]}\t<{l1}>{r1}\t<{l1}R{rule}\t>{r1}R{rule}\t{own}\t"
            f"w{low}<{l1}\tw{low}>{r1}"
        )
        yield one.start(), one.end(), features.split("\t")


_PLAIN = str.maketrans("，；：（）！？　\t", ",;:()!?  ")


def describe_signs(line: str, ruled: list[Identifier]) -> Iterator[tuple[int, int, list[str]]]:
    """Position, end and features of each Chinese character."""
    if not _HAN.search(line):
        return
    text = f"{_EDGE * 4}{line.translate(_PLAIN)}{_EDGE * 4}"
    pairs = "".join("01"[text[j : j + 2] in read_words()] for j in range(len(text) - 1))
    families = "".join("01"[one in EVERY_SURNAME] for one in text)
    kinds = ["-", *(_kinds_at(ruled, at) for at in range(len(line))), "-"]
    for at, sign in enumerate(line):
        if not _HAN.match(sign):
            continue
        i = at + 4
        a, b, c, _, d, e, f = tuple(text[i - 3 : i + 4])
        known, family = pairs[i - 3 : i + 3], families[i - 2 : i + 2]
        rule = "".join(kinds[at : at + 3])
        features = (
            f"b\t0{sign}\t1{c}\t2{b}\t3{a}\t4{d}\t5{e}\t6{f}\tA{b}{c}\tB{c}{sign}\tC{sign}{d}\t"
            f"D{d}{e}\tE{e}{f}\tF{a}{b}\tG{c}{sign}{d}\tH{b}{c}{sign}\tI{sign}{d}{e}\tJ{a}{b}{c}\t"
            f"L{d}{e}{f}\tK{known}\tk{known[1:5]}{family[1:]}\tf{family}\tR{rule}\t"
            f"R{rule[1]}{known[2:4]}\t=l{c == sign}{d == sign}\t={c == sign}{b}{d}\t"
            f"={d == sign}{c}{e}\tS{c}{family[2:]}{known[2:4]}\tT{d}{family[2:]}{known[2:4]}\t"
            f"U{b}{c}{family[2]}\tV{sign}{known[2:4]}"
        )
        yield at, at + 1, features.split("\t")
