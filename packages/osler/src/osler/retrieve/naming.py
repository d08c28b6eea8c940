"""The words by which a question names what it is about: telling words, names, other spellings; all
without a model, for models too small to extract them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from osler.kb.search.sparse import stem_terms
from osler.retrieve import STOP_CHARACTERS, STOP_WORDS, content_terms
from osler.retrieve.entity_names import fold_text, fold_words
from osler.text import has_cjk

# Letters from which a word may differ from another by one edit: misspelt, or British.
_SPELT = 7


def find_respelt(word: str, said: Collection[str]) -> str:
    """The one of these words that is this one, or this one in another spelling; empty for none.

    "Microcephaly" is no misspelt "macrocephaly", nor "Pearson" a person.
    """
    if word in said or len(word) < _SPELT:
        return word if word in said else ""
    apart = {"micro", "macro"}
    return next(
        (
            other
            for other in sorted(said)
            if {word[:5], other[:5]} != apart
            and _is_respelt(word, other)
            and not _is_generic(other)
        ),
        "",
    )


def _is_respelt(word: str, other: str) -> bool:
    """Whether one edit, not in the first letter, makes one word of the other."""
    if word[0] != other[:1] or abs(len(word) - len(other)) > 1:
        return False
    short, long = sorted((word, other), key=len)
    same = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), None)
    if same is None:
        return True
    rest = short[same:] if len(short) < len(long) else short[same + 1 :]
    swapped = len(short) == len(long) and (
        short[same : same + 2] == long[same : same + 2][::-1]
        and short[same + 2 :] == long[same + 2 :]
    )
    return rest == long[same + 1 :] or swapped


def telling_words(text: str) -> list[str]:
    """Content words that are not generic; of Chinese the pairs of characters between generics."""
    generic = _generic_words()
    left = fold_text(text) if has_cjk(text) else text
    for word in generic.han if has_cjk(text) else ():
        left = left.replace(word, " ")
    terms = (term for term in content_terms(left) if len(term) > 1 and not term.isdigit())
    return [term for term in terms if has_cjk(term) or not generic.latin.issuperset({_stem(term)})]


def _is_generic(name: str) -> bool:
    return not telling_words(name) and not any(char.isdigit() for char in name)


@dataclass(frozen=True, slots=True)
class _Generic:
    latin: frozenset[str]
    """Stems."""
    han: tuple[str, ...]
    """The longest first."""


@cache
def _generic_words() -> _Generic:
    """Words of questions that name no subject."""
    text = files(__package__).joinpath("generic_words.txt").read_text(encoding="utf-8")
    words = text.split()
    latin = frozenset(_stem_words([word for word in words if not has_cjk(word)]).values())
    return _Generic(latin, tuple(sorted(filter(has_cjk, words), key=lambda word: -len(word))))


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    return _stem_words([word])[word]


def _stem_words(words: Sequence[str]) -> dict[str, str]:
    """Each word's stem, by the tokenizer of the full-text index and in one spelling."""
    spelt = {word: "".join(fold_words(word)) or word for word in words}
    stemmed = stem_terms(list(dict.fromkeys(spelt.values())))
    return {word: stemmed.get(fold, fold) for word, fold in spelt.items()}


_QUOTED = re.compile(r"[\"“”«「『《]([^\"“”«»「」『』《》]{2,60})[\"“”»」』》]")
_WORD = re.compile(r"[^\W_][\w'’.&/-]*")
MARKS = "'’\"[]<>\n"
"""Characters that would end a quoted name."""
# Words that may stand inside a name, not at its ends.
_LINKS = frozenset(
    ["of", "the", "de", "la", "le", "du", "van", "von", "and", "&", "for", "da", "di"]
)
# First words of questions that begin no name.
_ASKING = STOP_WORDS | {"who", "whom", "whose"}
_ABBREVIATION = re.compile(r"[A-Z][A-Za-z]{0,2}[A-Z\d]{0,5}")
_MEASUREMENT = re.compile(
    r"(?<![\w.-])\d+(?:[.,]\d+)*\s*-?\s*"
    r"(?:%|(?:mg|mcg|µg|ug|g|kg|ng|ml|mL|l|L|dl|dL|mmol|µmol|umol|mEq|IU|U|mmHg|mm\s?Hg|cm|mm|kPa|bpm|lbs?"
    r"|years?|months?|weeks?|days?|hours?|min(?:utes?)?|seconds?)(?:/\w+)*(?:-old)?(?!\w)|[岁天周月年日]|毫克|公斤)"
)
_DECIMAL = re.compile(r"(?<![\w.-])\d+[.,]\d+(?![\w])")
# Words that frame what is asked about, at the ends of a run of content words.
_FRAME = frozenset(
    [
        *("lower", "lowers", "raise", "raises", "increase", "increases", "decrease", "decreases"),
        *("treat", "treats", "treated", "treating", "cause", "causes", "caused", "use", "uses"),
        *("used", "give", "gives", "given", "safe", "unsafe", "common", "usual", "typical"),
        *("enough", "rule", "first-line", "best", "drug", "drugs", "side", "effect", "effects"),
        *("symptoms", "signs", "dose"),
    ]
)
# Upper bound on names.
_MOST = 12


def names_in(question: str) -> tuple[str, ...]:
    """Possible subjects of a question, as spelt there: quoted texts, else runs of capitalised
    words, else runs of content words. The longest first; none with a character that ends a name in
    a logical form."""
    # A measurement is no name, nor part of one: "1.2 mg/dL", "70-year-old".
    question = _MEASUREMENT.sub(lambda match: ";" * len(match[0]), question)
    question = _DECIMAL.sub(lambda match: ";" * len(match[0]), question)
    found = [match[1].strip() for match in _QUOTED.finditer(question)]
    if not found:
        found = _capitalised_runs(question)
        # An abbreviation ("CKD", "LDL") says too little alone, and hides no drug in small letters.
        if all(_ABBREVIATION.fullmatch(name) for name in found):
            found = [*found, *(run for run in _content_runs(question) if run not in found)]
    # "A and B" may be one name or two: offer both readings.
    found += [part for name in found for part in name.split(" and ") if part != name]
    kept = [name for name in dict.fromkeys(found) if not set(name) & set(MARKS)]
    return tuple(sorted(kept, key=lambda name: -len(name))[:_MOST])


def _capitalised_runs(question: str) -> list[str]:
    """Runs of words that begin with a capital or a digit; the question's first word alone is no
    name."""
    runs: list[str] = []
    run: list[re.Match[str]] = []

    def close_run() -> None:
        while run and run[-1][0] in _LINKS:
            run.pop()
        if run and not (len(run) == 1 and run[0][0].casefold() in STOP_WORDS):
            runs.append(_trim_name(question[run[0].start() : run[-1].end()]))
        run.clear()

    for word in _WORD.finditer(question):
        apart = run and question[run[-1].end() : word.start()].strip()
        if apart:
            close_run()
        opens = word[0][0].isupper() or (run and word[0][0].isdigit())
        first_of_all = word.start() == 0 and word[0].casefold() in _ASKING
        if (opens and not first_of_all) or (run and word[0] in _LINKS):
            run.append(word)
        else:
            close_run()
    close_run()
    return [each for each in runs if each]


def _trim_name(name: str) -> str:
    return re.sub(r"['’]s?$", "", name).rstrip(".,")


def _content_runs(question: str) -> list[str]:
    """Runs of content words; Chinese is cut at function characters."""
    runs: list[str] = []
    for part in re.split(r"[^\w\s'’-]+", question):
        if has_cjk(part):
            runs += re.split(f"[{''.join(sorted(STOP_CHARACTERS))}\\s]+", part)
            continue
        run: list[str] = []
        for word in [*part.split(), "the"]:
            if word.casefold() not in STOP_WORDS:
                run.append(word)
            elif run:
                runs.append(_trim_name(" ".join(_strip_frame(run))))
                run = []
    return [run for run in runs if len(run) > 1]


def _strip_frame(run: list[str]) -> list[str]:
    """The run without framing words at its ends."""
    framed = [word.casefold() in _FRAME for word in run]
    if all(framed):
        return []
    start, end = framed.index(False), len(framed) - framed[::-1].index(False)
    return run[start:end]
