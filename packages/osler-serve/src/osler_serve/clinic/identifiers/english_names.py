"""English names and towns by the word itself: one with a capital that no ordinary text has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.sources.common_words import is_common, is_listed
from osler_serve.clinic.identifiers.found import Identifier

_UPPER = "A-ZÀ-ÖØ-ÞŁŚŻŽŠČĐİŞŐŰ"
_ANY = r"0-9A-Za-zÀ-ÖØ-öø-ɏ"
_TOKEN = re.compile(
    rf"(?<![\w@/.#-])(?:(?:[{_UPPER}]\.){{1,3}}"
    rf"|(?:[OD]['’])?[{_UPPER}][{_ANY}'’]*(?:-[{_ANY}'’]+)*)(?![\w@]|\.\w)"
)
# Between two words of one name.
_JOIN = re.compile(
    r" (?:(?:van|von|der|den|de|del|la|el|al|bin|ibn|da|dos|di|le|du|ter|st\.?) ){0,2}"
    r"|, (?=[A-Z]\.)",
    re.IGNORECASE,
)
# What follows a word that names a disease, sign, score, device or body, not a person.
_THING = re.compile(
    r"(?:['’]s?)?(?: and [A-Z][a-z]+| et al)?[ -](?:[a-z]+ )?(?:al\b|disease"
    r"|syndrome|sign|score|scale|test|palsy"
    r"|phenomenon|virus|catheter|procedure|thyroiditis|lymphoma|tumou?r|fracture|index"
    r"|criteria|classification"
    r"|an(?:a)?emia|block|reflex|law|formula|risk|study|trial|method|contracture|aneurysm|ulcer|cyst|node"
    r"|grade|stage|class|type|maneuver|manoeuvre|position|tube|drain|needle|line|stain|bod(?:y|ies)|cells?"
    r"|antibod|antigen|murmur|nodule|ring|hernia|operation|repair|incision|clip|forceps|retractor|bandage"
    r"|collar|splint|cast|dressing|tablet|capsule|inhaler|cream|ointment|vaccine|infection|fever|rash"
    r"|encephalopathy|nephropathy|neuropathy|dystrophy|ataxia|chorea|lesion|duct|gland|muscle|ligament"
    r"|neg\b|pos\b|negative|positive|equivocal|loaded|pessary|triad|angle|view"
    r"|projection|technique|approach|protocol|guideline|diet|exercise|questionnaire"
    r"|inventory|instrument|chart|curve|regimen|equation|rule|pattern|breathing|respiration|pulse)"
)
_AMOUNT = re.compile(r"(?:['’]s)? (?:\d|mg\b|mcg\b|tabs?\b|[IVX]+\b|[A-Z]\d|[<>=+])")
_BY_PLACE = re.compile(r"\b(?:in|at|from|near|to|of|around|outside)\s$", re.IGNORECASE)
_LIVES = re.compile(
    r"\b(?:in|from|near|outside|around|moved to|back to|transferred to"
    r"|returned to|flight to|drove to) $",
    re.IGNORECASE,
)
_STARTS = re.compile(r"(?:^|[.!?:;]\s+|[\"“(]|^\W+|\d\) |\s[-–—] )$")
_COUNTED = re.compile(
    r"(?:mg|mcg|start|stop|on|took|takes|taking|give|given|with|use|apply|applied) $", re.IGNORECASE
)
_DRUG = re.compile(
    r"(?:mab|nib|olol|pril|sartan|statin|azole|cillin|mycin|cycline|floxacin|gliptin|flozin|glutide|parin"
    r"|xaban|setron|prazole|tidine|amine|idine|zepam|zolam|barbital|caine|sone|solone|vir|fenac|profen|oxin|osin|grel"
    r"|itis|osis|emia|aemia|oma|pathy|ectomy|ology|gram|scopy|plasty|tomy|ella|coccus|bacter|bacillus|virus"
    r"|ide|ine|ate|ium|ase|ol|ic|al|ing|ed|ly|tion|sion|ment|ness|ism|ity)$"
)
_SHORT = re.compile(r"(?:[A-Z]{1,4}s?|[A-Z]{1,3}[Hh]?x|[IVX]+)\.?")


def follows_thing(after: str) -> bool:
    """Whether what follows a word makes it the name of a disease, sign, score or work."""
    return _THING.match(after) is not None


def find_english_names(line: str) -> Iterator[Identifier]:
    """Runs of words with capitals of which one is a name's, and towns that something is in."""
    tokens = list(_TOKEN.finditer(line))
    at = 0
    while at < len(tokens):
        end = at + 1
        while end < len(tokens) and _JOIN.fullmatch(
            line, tokens[end - 1].end(), tokens[end].start()
        ):
            end += 1
        yield from _find_in_run(line, tokens[at:end])
        at = end


def is_person(words: str) -> bool:
    """Whether a word is a known name's or no ordinary text's, and not all are headings."""
    each = [_bare(word).strip(".,") for word in words.split()]
    return any(
        not is_abbreviation(word) and (is_listed(word, "given", "family") or not is_common(word))
        for word in each
    )


def is_heading(words: str) -> bool:
    """Whether each word is one that stands beside names (Pt, Admit): none is a name."""
    return all(is_listed(word.strip(".,:"), "never", "short") for word in words.split())


def _find_in_run(line: str, run: list[re.Match[str]]) -> Iterator[Identifier]:
    """A name from the first word that can belong to one, to the last; else a town."""
    sure = [at for at in range(len(run)) if _is_name(line, run, at)]
    if not sure:
        for one in run:
            if is_listed(_bare(one[0]), "towns") and _LIVES.search(line[: one.start()]):
                yield Identifier("ADDRESS", one.start(), one.start() + len(_bare(one[0])))
        return
    first, last = sure[0], sure[-1]
    while first > 0 and _can_belong(line, run[first - 1]):
        first -= 1
    while last + 1 < len(run) and _can_belong(line, run[last + 1]):
        last += 1
    start, stop = run[first].start(), run[last].start() + len(_bare(run[last][0]))
    is_place = first == last and _LIVES.search(line[:start])
    yield Identifier("ADDRESS" if is_place else "NAME", start, stop)


def is_abbreviation(word: str) -> bool:
    """Abbreviations, headings, contractions, and words with capitals inside: brands and genes."""
    plain = word.rstrip(".")
    return (
        (
            _SHORT.fullmatch(word) is not None
            and not (len(plain) == 4 and is_listed(plain, "given", "family"))
        )
        or is_listed(plain, "never", "short")
        or re.search(r"['’](?:t|d|ll|m|re|ve)$", plain) is not None
        or re.fullmatch(r"\w-[a-z]+", plain) is not None
        or re.search(r"^(?!Mac|Mc|De|Di|La|Le|Van|Von|Fitz|[OD]['’]).*[a-z][A-Z]", plain)
        is not None
    )


def _bare(word: str) -> str:
    return re.sub(r"['’](?:s|S)?$", "", word)


def _can_belong(line: str, one: re.Match[str]) -> bool:
    """An initial, or a word that is a name as well, beside a word that is one."""
    word = _bare(one[0])
    if re.fullmatch(r"(?:[A-Z]\.?){1,3}", word):
        return len(word.replace(".", "")) == 1 or "." in word
    if is_abbreviation(word):
        return False
    return (
        is_listed(word, "given", "family")
        or not is_common(word)
        or (not _STARTS.search(line[: one.start()]) and not is_listed(word, "never"))
    )


def _is_name(line: str, run: list[re.Match[str]], at: int) -> bool:
    one = run[at]
    word = _bare(one[0])
    before, after = line[: one.start()], line[one.start() + len(word) :]
    if is_abbreviation(word) or _THING.match(after) or re.fullmatch(r"(?:[A-Z]\.)+", one[0]):
        return False
    given, family = is_listed(word, "given"), is_listed(word, "family")
    if word.isupper() and (given or family) and len(word) > 2:
        return any(other is not one and is_person(other[0]) for other in run)
    if any(letter.isdigit() for letter in word) or (word.isupper() and len(word) < 5):
        return False
    alone = len(run) == 1
    ambiguous = is_common(word)
    if given and not ambiguous:
        return True
    if given or family:
        if (
            len(run) > at + 1
            and _looks_personal(run[at + 1][0])
            and not _THING.match(line[run[at + 1].end() :])
        ):
            return given or (not _STARTS.search(before) and not is_listed(word, "eponyms"))
        if is_listed(word, "eponyms", "brands") or (ambiguous and not given):
            return False
        if not ambiguous:
            return True
        return _is_person_here(before, after, alone)
    if ambiguous or (_DRUG.search(word.casefold()) and (alone or _STARTS.search(before))):
        return False
    if is_listed(word, "towns"):
        return bool(_BY_PLACE.search(before))
    if word.isupper():
        return any(other is not one and other[0].isupper() and len(other[0]) > 1 for other in run)
    return not ((_AMOUNT.match(after) and alone) or (alone and _COUNTED.search(before)))


def _looks_personal(word: str) -> bool:
    word = _bare(word)
    return not is_abbreviation(word) and (
        is_listed(word, "given", "family")
        or not is_common(word)
        or re.fullmatch(r"[A-Z]\.", word) is not None
    )


def _is_person_here(before: str, after: str, alone: bool) -> bool:
    """Whether a word that is a name and a word (Rose, Mark, May) stands where a person would."""
    mid = not _STARTS.search(before)
    verb = re.match(
        r"(?:['’]s )?(?: (?:and|is|was|has|had|will|says|said|reports?|reported|denies"
        r"|denied|feels|felt|remains"
        r"|lives?|lived|came|attended|called|rang|phoned|asked|wants|told|agreed|prefers|needs|likes|seems|tells|who)\b"
        r"|,? \(|['’]s |, \d|,? aged)",
        after,
    )
    return alone and (mid or verb is not None)
