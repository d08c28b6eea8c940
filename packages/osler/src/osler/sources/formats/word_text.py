"""What a paragraph of a Word document says: runs, signs of symbol fonts, powers, and formulas as
one line, "w/h²".

Left out are hidden and struck text, and of tracked changes what was deleted or moved away.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_GONE = (
    f"{W}del",
    f"{W}moveFrom",
    # The same as before it, for older programs.
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
)
_CHARACTERS = {"noBreakHyphen": "-", **dict.fromkeys(("tab", "ptab", "br", "cr"), " ")}
# The font's own encoding, from 0x20 and from 0xA0: what it shows for each code.
_SYMBOL_FONT = (
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_"
    "‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪\ufffd〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",
)
_SHOWN: dict[str, dict[int, str]] = {
    "symbol": dict(enumerate(_SYMBOL_FONT[0], 0x20)) | dict(enumerate(_SYMBOL_FONT[1], 0xA0)),
    "wingdings": {0xDF: "←", 0xE0: "→", 0xE8: "→", 0xFB: "✗", 0xFC: "✓"},
}
_OFF = frozenset({"0", "false", "off"})
_UNKNOWN_SIGN = "\ufffd"
_OF_FONTS_ONLY = re.compile("[\ue000-\uf8ff]")
# Those of a formula are raised where the file is read, as of any XML.
_POWER = re.compile(r"[-+−⁺⁻]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]")
_HIGH = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_ONE_TERM = re.compile(r"[\w.]*")
# Parts of formulas, and what stands before them.
_MARKS = {"num": "", "den": "/", "sup": "^"}
_SPACED = frozenset({"m", "mr", "eqArr", "func"})


def paragraph_text(paragraph: Any) -> str:
    """The text of a `w:p`, white space as it stands."""
    runs = [
        (_is_high(run), _formula_text(run) if run.tag == f"{_M}oMath" else _run_text(run))
        for run in paragraph.iter(f"{W}r", f"{_M}oMath")
        if next(run.iterancestors(*_GONE), None) is None
    ]
    text = ""
    for is_high, pieces in groupby(runs, key=itemgetter(0)):
        piece = "".join(one for _, one in pieces)
        # 10⁹ would be another number as 109.
        is_power = is_high and text[-1:].isdigit() and _POWER.match(piece)
        text += piece.translate(_HIGH) if is_power else piece
    return text


def _is_high(run: Any) -> bool:
    place = run.find(f"{W}rPr/{W}vertAlign")
    return place is not None and place.get(f"{W}val") == "superscript"


def _run_text(run: Any) -> str:
    looks = (run.find(f"{W}rPr/{W}{name}") for name in ("vanish", "strike", "dstrike"))
    if any(one is not None and one.get(f"{W}val") not in _OFF for one in looks):
        return ""
    font = run.find(f"{W}rPr/{W}rFonts")
    return "".join(
        _piece_text(piece, "" if font is None else font.get(f"{W}ascii", "")) for piece in run
    )


def _piece_text(piece: Any, font: str) -> str:
    if piece.tag == f"{W}t":
        return _show(piece.text or "", font) if font.casefold() in _SHOWN else piece.text or ""
    if piece.tag == f"{W}sym":
        try:
            return _show(chr(int(piece.get(f"{W}char", ""), 16)), piece.get(f"{W}font", ""))
        except (ValueError, OverflowError):
            return _UNKNOWN_SIGN
    return _CHARACTERS.get(piece.tag.removeprefix(W), "")


def _show(text: str, font: str) -> str:
    """Codes of a font as what it shows; they stand as they are, or from U+F000 on."""
    signs = _SHOWN.get(font.casefold(), {})
    shown = text.translate(signs | {0xF000 + code: sign for code, sign in signs.items()})
    return _OF_FONTS_ONLY.sub(_UNKNOWN_SIGN, shown)


def _formula_text(part: Any) -> str:
    name = part.tag.removeprefix(_M)
    if part.tag in _GONE or name == "t":
        return "" if part.tag in _GONE else part.text or ""
    pieces = [text for text in map(_formula_text, part) if text]
    text = (" " if name in _SPACED else "").join(pieces)
    if name == "d":  # brackets are no text
        return f"{_sign_of(part, 'begChr', '(')}{text}{_sign_of(part, 'endChr', ')')}"
    if name == "nary":
        return _sign_of(part, "chr", "∫") + text
    if name == "rad":
        return f"{''.join(pieces[:-1])}√{_as_term(''.join(pieces[-1:]))}"
    if name in {"sup", "deg"} and _POWER.match(text):
        return text.translate(_HIGH)
    return _MARKS[name] + _as_term(text) if name in _MARKS and text else text


def _as_term(text: str) -> str:
    return text if _ONE_TERM.fullmatch(text) else f"({text})"


def _sign_of(part: Any, name: str, usual: str) -> str:
    found = part.find(f"{part.tag}Pr/{_M}{name}")
    return usual if found is None else found.get(f"{_M}val", "")
