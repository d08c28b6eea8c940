"""Rules that need no language: e-mail, telephone, numbers of known form, numeric dates."""

from __future__ import annotations

from osler.sources.patients.identifiers.found import Patterns

# No digit or letter beside it: Chinese writes no blanks, so \b does not do.
_L, _R = r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])"
_YEAR = r"(?:1[89]|20)\d\d"

PATTERNS: Patterns = {
    "EMAIL": (r"[\w.+-]+@[^\W_][\w-]*(?:\.[^\W_][\w-]*)+",),
    "PHONE": (
        rf"\+\d{{1,3}}[ -]?(?:\(\d{{1,4}}\)[ -]?)?\d{{1,4}}(?:[ -]?\d{{2,4}}){{1,4}}{_R}",
        r"(?<![\w-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])",
        rf"{_L}\(?0\d{{2,4}}\)?[ -]?\d{{3,4}}[ -]?\d{{3,4}}{_R}",
        rf"{_L}1[3-9]\d[ -]?\d{{4}}[ -]?\d{{4}}{_R}",
    ),
    "ID": (
        rf"{_L}\d{{3}}-\d\d-\d{{4}}{_R}",
        rf"{_L}\d{{17}}[\dXx]{_R}",
        rf"{_L}\d{{4}}([ -]?)\d{{4}}\1\d{{4}}\1\d{{3,7}}{_R}",
        rf"{_L}(?=\w*\d)(?=\w*[A-Z])[A-HJ-NPR-Z0-9]{{17}}{_R}",
        rf"{_L}(?:\d{{1,3}}\.){{3}}\d{{1,3}}{_R}(?!\.\d)",
    ),
    "DATE": (
        rf"{_L}{_YEAR}([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01]){_R}",
        rf"{_L}\d{{1,2}}([-/.])\d{{1,2}}\1(?:{_YEAR}|\d\d){_R}",
    ),
}
