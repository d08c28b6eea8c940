"""Reads a question as chains of relations, with what is done with their ends.

Questions and noun phrases are matched with the words of the vocabulary from the outside in; where
that reads nothing, the relations that stand inside a question are resolved first and the rest is
asked with their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from osler.methods.kag.text_route.relations import (
    NAME,
    TextVocabulary,
    read_text_vocabulary,
)
from osler.retrieve.words import content_terms

_KIND = (
    r"(?:silent film|film|movie|song|single|album|book|novel|play|poem|painting|band|group|singer"
    r"|person|man|woman|actor|city|country|state|town|place|magazine|company|series|show|game|people|one"
    r"|drug|university|school|player|author|location|region|county|mountain|river|disease|network|team)"
)
_TYPED = re.compile(rf"^(?:the )?(?:tv |television |video )?{_KIND}s?[,:]? (?=[^a-z ])")
_WHO = re.compile(
    r"(?i)^(?:who|what|when|where|which \w+|in (?:what|which) \w+)"
    r"(?: is| was| are| were|['’]s)? (?=\S)"
)
_SAME = re.compile(
    r"^(?P<pair>.+?),? ?(?P<tail>\b(?:(?:have|has|had|were|was|are|is) )?(?:the )?(?:[a-z]+ )*?"
    r"(?:in|from|of|share|shares|have|has|had|hold|to|by) (?:the )?same (?P<noun>[a-z ]+?))$"
)
_SAME_AS = re.compile(
    r"(?i)^(?P<one>.+?) (?:have|has|share|of|from|in) the same (?P<noun>[a-z ]+?)"
    r" (?:as|with) (?P<two>.+)$"
)
# A noun phrase with a verb of the question in it is no name.
_CLAUSE = re.compile(
    r"\b(?:where|who|whom|whose|which|that|did|does|was|were|has|had) "
    r"|^(?:Who|What|When|How|Where|Which|In what|In which)\b.* (?:is|the|in|of|are|do|at) "
)
_INSIDE = rf"(?:the )?(?<!\w)(⟦\d+⟧|\"[^\"]+\"|(?!(?:Wh\w+|How|In|The|My|Our|An?|Is)\b){NAME})"
_MARK = re.compile(r"⟦(\d+)⟧")


@dataclass(frozen=True, slots=True)
class Chain:
    """A named thing and the relations followed from it, in order."""

    name: str
    hops: tuple[str, ...] = ()

    def then(self, *hops: str) -> Chain:
        return replace(self, hops=(*self.hops, *hops))


@dataclass(frozen=True, slots=True)
class TextQuery:
    chains: tuple[Chain, ...]
    operation: str = ""
    """"" for one chain; "latest", "earliest", "largest" or "same" of two."""
    rest: str = ""
    """A question that no relation covers, with "#1" for the end of the chain."""

    @property
    def lookups(self) -> int:
        """The facts that it needs."""
        return sum(len(chain.hops) for chain in self.chains) + bool(self.rest)


def read_question(text: str) -> list[TextQuery]:
    """The ways to read an English question, likeliest first; none where it chains nothing."""
    reader = _Reader(read_text_vocabulary())
    asked = " ".join(text.split()).strip().removesuffix("?").strip()
    if asked.endswith(("!", "?")) and " or " not in asked:
        asked = asked[:-1]
    found = list(dict.fromkeys(reader.read(asked)))
    return [query for query in found if query.lookups > 1][:8]


@dataclass(frozen=True)
class _Reader:
    known: TextVocabulary

    def read(self, text: str) -> Iterator[TextQuery]:
        if compared := list(self._read_comparison(text)):
            yield from compared
            return
        if same := list(self._read_same(text)):
            yield from same
            return
        whole = [TextQuery((chain,)) for chain in self._read_whole(text)]
        yield from whole or self._read_inside(text)

    def _read_whole(self, text: str) -> Iterator[Chain]:
        """A question that is one relation of a noun phrase, or a noun phrase by itself."""
        if led := _WHO.match(text):
            yield from (chain for chain in self._phrase(text[led.end() :]) if chain.hops)
        for name, subject in self._asked(text):
            if not text.startswith(subject):  # "A is located" is a clause, no question
                for chain in self._phrase(subject):
                    yield chain.then(name)

    def _asked(self, text: str) -> Iterator[tuple[str, str]]:
        """The relations that a question or clause asks for, with the words of the subject."""
        for relation in self.known.relations.values():
            for ask in relation.asks:
                if matched := ask.fullmatch(text):
                    yield relation.name, matched[1]

    def _phrase(self, text: str) -> Iterator[Chain]:
        """The chains that a noun phrase may stand for; one without relations is a name."""
        text = text.strip(" ,")
        found = False
        for chain in self._related(text):
            found = True
            yield chain
        plain = _TYPED.sub("", text)
        plain = re.sub(r"^the (?=[a-z])", "", plain)
        if not found and re.match(r"[^a-z]", plain) and not _CLAUSE.search(plain):
            yield Chain(plain)

    def _related(self, text: str) -> Iterator[Chain]:
        of = re.fullmatch(
            rf"(?:the |an? )?({self.known.noun}) (?:of|for|to) (?:the )?(.+)", text, re.IGNORECASE
        )
        if of:
            for chain in self._phrase(of[2]):
                yield chain.then(*self.known.nouns[of[1].lower()])
        own = re.fullmatch(
            rf"(?:the )?(.+)['’]s?,? (?:the )?({self.known.noun})", text, re.IGNORECASE
        )
        if own:
            for chain in self._phrase(own[1]):
                yield chain.then(*self.known.nouns[own[2].lower()])
        clause = re.fullmatch(
            rf"(?:the )?({_KIND}) ((?:who|that|which|where|in which|of which).+)", text
        )
        if clause:
            clause_text = re.sub(r"^(?:that|in which|of which|which) ", "", clause[2])
            variants = (clause[2], clause_text, f"who {clause_text}", f"where {clause_text}")
            for name, subject in (pair for each in variants for pair in self._asked(each)):
                for chain in self._phrase(subject):
                    yield chain.then(_typed_relation(name, clause[1]))

    def _read_comparison(self, text: str) -> Iterator[TextQuery]:
        """ "Which film has the director who died first, A or B?", "Was A or B born first?"."""
        for comparator in self.known.comparators:
            for words in comparator.words.finditer(text):
                head, tail = text[: words.start()], text[words.end() :]
                behind = re.match(
                    r"(?: than the other)?[^,]{0,30}?(?:,|:| out of| between| among|\?) ?", tail
                )
                if behind and re.match(r"which|what|who|whose|between|of", head, re.IGNORECASE):
                    pair = tail[behind.end() :]
                elif led := re.match(
                    r"(?:was|were|is|did|has|have|are|who,?) ", head, re.IGNORECASE
                ):
                    pair, head = head[led.end() :], ""
                else:
                    continue
                through = self._hops_in(head)
                for one, two in self._pairs(pair, "or|and"):
                    chains = (
                        one.then(*through, comparator.relation),
                        two.then(*through, comparator.relation),
                    )
                    yield TextQuery(chains, comparator.order)

    def _hops_in(self, head: str) -> tuple[str, ...]:
        """The relation that leads from what is compared to what bears the value."""
        found = re.search(
            rf"(?i)(?:whose|has the|have the|has a|with the|had the) ({self.known.noun})\b", head
        )
        return self.known.nouns[found[1].lower()] if found else ()

    def _pairs(self, text: str, joint: str) -> Iterator[tuple[Chain, Chain]]:
        """Every way to split a text at a joint into two noun phrases."""
        text = re.sub(r"^(?:both |the two )?", "", text.strip(" ,"))
        for split in re.finditer(rf",? (?:{joint}) ", text):
            one, two = text[: split.start()], text[split.end() :]
            for first in self._phrase(_TYPED.sub("", one)):
                for second in self._phrase(_TYPED.sub("", two)):
                    yield first, second

    def _read_same(self, text: str) -> Iterator[TextQuery]:
        """ "Are A and B from the same country?", "Do directors of films A and B share …?"."""
        led = re.match(r"(?i)(?:are|is|do|does|did|were|was|have|has) (?:both )?(?:the )?", text)
        if not led:
            return
        body = text[led.end() :]
        if compared := _SAME_AS.match(body):
            pairs = [
                (a, b) for a in self._phrase(compared["one"]) for b in self._phrase(compared["two"])
            ]
            yield from self._share(pairs, (), compared["noun"])
        elif shared := _SAME.match(body):
            plural = re.match(
                rf"(?i)({self.known.noun})s of (?:the )?(?:{_KIND}s?)?[,:]? ?", shared["pair"]
            )
            inside = re.search(rf"\b({self.known.noun})s\b", shared["tail"], re.IGNORECASE)
            noun = plural or inside
            through = self.known.nouns[noun[1].lower()] if noun else ()
            pair = shared["pair"][plural.end() :] if plural else shared["pair"]
            pair = re.sub(r",? (?:both|all)$", "", pair)
            yield from self._share(self._pairs(pair, "and"), through, shared["noun"])

    def _share(
        self, pairs: Iterable[tuple[Chain, Chain]], through: tuple[str, ...], noun: str
    ) -> Iterator[TextQuery]:
        path = self.known.nouns.get(noun.strip().lower())
        if path:
            for one, two in pairs:
                yield TextQuery((one.then(*through, *path), two.then(*through, *path)), "same")

    def _read_inside(self, text: str) -> Iterator[TextQuery]:
        """Resolves the relations that stand inside a question; the rest is asked with their end."""
        chains: list[Chain] = []
        rest = text
        for _ in range(4):
            step = self._innermost(rest)
            if step is None:
                break
            start, end, subject, hops = step
            if marked := _MARK.fullmatch(subject):
                n = int(marked[1])
                chains[n] = chains[n].then(*hops)
            else:
                n = len(chains)
                chains.append(Chain(subject, hops))
            rest = f"{rest[:start]}⟦{n}⟧{rest[end:]}"
        marks = _MARK.findall(rest)
        if len(marks) != 1:
            return
        chain = chains[int(marks[0])]
        plain = _MARK.sub("Ⓧ", rest)
        for whole in self._read_whole(plain):
            if whole.name == "Ⓧ":
                yield TextQuery((chain.then(*whole.hops),))
        if content_terms(_MARK.sub("", rest)):
            yield TextQuery((chain,), rest=_MARK.sub("#1", rest))

    def _innermost(self, text: str) -> tuple[int, int, str, tuple[str, ...]] | None:
        """The first relation of a name or of a value known before: its place, subject, hops."""
        noun = self.known.noun
        of = rf"(?:[Tt]he )?\b({noun}) of (?:{_KIND} )?{_INSIDE}(?!['’]s)"
        own = rf"{_INSIDE} ({noun})\b(?!-)"
        for pattern, subject, related in ((own, 1, 2), (of, 2, 1)):
            if found := re.search(pattern, text):
                hops = self.known.nouns[found[related].lower()]
                return found.start(), found.end(), _bare_name(found[subject]), hops
        for relation, clause in _clause_forms():
            # Most forms have words that the text lacks; to compile them all takes most of a second.
            said = all(piece in text for piece in clause.split("{}"))
            if said and (found := _compile_clause(clause).search(text)):
                hop = _typed_relation(relation, found[0])
                return found.start(), found.end(), _bare_name(found[1]), (hop,)
        return None


@cache
def _clause_forms() -> tuple[tuple[str, str], ...]:
    """The words of relative clauses by relation, with "{}" for the subject: "{} was born"."""
    forms = []
    for relation in read_text_vocabulary().relations.values():
        whole = [
            re.sub(r"\\(.)", r"\1", ask.pattern.replace("(.+)", "{}")) for ask in relation.asks
        ]
        short = [re.sub("^(?:where|who) ", "", form) for form in whole]
        forms += [(relation.name, form) for form in dict.fromkeys((*whole, *short))]
    return tuple(forms)


@cache
def _compile_clause(form: str) -> re.Pattern[str]:
    """ "The city where X was born", by a form; group 1 is the subject."""
    led = rf"(?<!\w)(?:[Tt]he )?(?:[a-z]+ )?{_KIND},? (?:in which |of which |that |which |who )?"
    words = re.escape(form).replace(r"\{\}", _INSIDE)
    return re.compile(rf"{led}{words}(?!\w)")


def _typed_relation(name: str, words: str) -> str:
    """ "The country where X is located" asks for its country."""
    return "country" if name == "located_in" and re.match(r"(?:\w+ )*?country\b", words) else name


def _bare_name(text: str) -> str:
    """A name without quotation marks and without the sign of possession."""
    return re.sub(r"['’]s?$", "", text.strip('"'))
