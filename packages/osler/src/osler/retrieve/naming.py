"""The words by which a question names what it is about, and their other spellings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from osler.kb.search.sparse import stem_terms
from osler.retrieve.entity_names import fold_text, fold_words
from osler.retrieve.words import content_terms
from osler.text import has_cjk, split_sentences

# Telling words of a question that has one subject; of Chinese, whose terms overlap, three times.
_LONGEST = 12
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
            if abs(len(word) - len(other)) <= 1
            and word[0] == other[0]
            and {word[:5], other[:5]} != apart
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


def has_no_one_subject(question: str) -> bool:
    """Whether it is a letter or a case history: many telling words, or several sentences."""
    words = telling_words(question)
    most = _LONGEST * 3 if words and has_cjk(words[0]) else _LONGEST
    return len(words) > most or len(split_sentences(question)) > 1


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
