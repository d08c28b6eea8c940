"""Reads one action by recursive descent, tolerantly (KAG-Thinker Tables 1, 5 and 11).

Quotes of all kinds or none, full-width punctuation, backticks, spaces around signs,
commas, `=` and brackets inside names, a missing last parenthesis.
"""

from __future__ import annotations

import difflib
import re

from osler.errors import MalformedOutput
from osler.methods.kag.logical_forms import (
    COMPARISONS,
    Constraint,
    Deduce,
    Form,
    Math,
    Operation,
    Output,
    Place,
    Retrieval,
    SpoNode,
)

FUNCTION = re.compile(
    r"(?P<name>retrieval|retriever|get_spo|search_s|math|deduce|output|get)"
    r"\s*(?P<open>[(（]|(?=#))",
    re.IGNORECASE,
)
"""A function's name and its parenthesis; `Output #3` has none (Table 5)."""

# Opening quote → quotes that may close it: its own kind first, then common slips.
_CLOSING = {"'": "'’", '"': '"”', "`": "`", "‘": "’'", "“": '”"', "「": "」"}
_EQUALS = r"[=＝]"
_KEY = re.compile(r"\s*(?P<on>[spo])\s*(?:=|＝|\.|．)", re.IGNORECASE)
_NEXT_KEY = re.compile(
    r"\s*[spo]\s*(?:[=＝]|[.．]\s*(?:['\"`‘“「]|[^,，=＝<>!]{1,80}(?:[=＝<>!]|\s+in\s)))",
    re.IGNORECASE,
)
_COMPARISON = re.compile(r"\s*(!=|≠|<=|≤|>=|≥|=|＝|<|＜|>|＞|\bin\b)\s*", re.IGNORECASE)
_SIGNS = {"≠": "!=", "≤": "<=", "≥": ">=", "＝": "=", "＜": "<", "＞": ">"}
_TARGET = re.compile(rf"\s*[,，]?\s*target\s*{_EQUALS}\s*", re.IGNORECASE)
_CONTENT = re.compile(rf"\s*[,，]?\s*content\s*{_EQUALS}\s*", re.IGNORECASE)
_OP = re.compile(rf"\s*op\s*{_EQUALS}\s*['\"`‘’“”]?\s*([\w-]+)\s*['\"`‘’“”]?\s*", re.IGNORECASE)
_ARROW = re.compile(r"\s*(?:->|→|-＞|=>)\s*['\"`‘“]?\s*([^\W\d]\w*)")
_END = re.compile(
    r"\s*(?:$|->|→|-＞|=>|</|\n|[.。;；]\s*(?:$|\n|</)|(?:step|action)\s*\d*\s*[:：])",
    re.IGNORECASE,
)
_COMMA = re.compile(r"\s*[,，;；]")
_PARENTHESIS = re.compile("[)）]")
_NUMBERS = re.compile(r"#\d{1,4}(?:\s*[,，]\s*#\d{1,4})*")
_ALIAS = re.compile(r"[^\W\d]\w*")
_ALIAS_LIKE = re.compile(r"[a-z]{1,8}\d{1,3}", re.IGNORECASE)
_OPERATIONS = {operation.lower(): operation for operation in Operation}
# Spellings such as "judgment" and "multi-choices" are nearer than this, other words are not.
_NEAR = 0.75


def read_form(text: str, start: int = 0) -> tuple[Form, int]:
    """The action that begins at or after `start`, and where it ends.

    Raises `MalformedOutput`.
    """
    match = FUNCTION.search(text, start)
    if match is None:
        raise MalformedOutput(
            text[start:], expected="Retrieval(…), Math(…), Deduce(…) or Output(…)"
        )
    reader = _FormReader(text, match.end(), closes=bool(match["open"]))
    name = match["name"].lower()
    if name in ("retrieval", "retriever", "get_spo", "search_s"):
        return reader.read_retrieval(), reader.at
    if name == "math":
        return reader.read_math(), reader.at
    if name == "deduce":
        return reader.read_deduce(), reader.at
    return reader.read_output(), reader.at


def nearest_operation(name: str) -> Operation:
    """The operation of that name, else the one nearest in spelling, else entailment, which takes
    any known facts (KAG 0.8's executor)."""
    key = name.lower().replace("_", "").replace("-", "")
    if key in _OPERATIONS:
        return _OPERATIONS[key]
    near = difflib.get_close_matches(key, _OPERATIONS, n=1, cutoff=_NEAR)
    return _OPERATIONS[near[0]] if near else Operation.ENTAILMENT


class _FormReader:
    """A cursor in a text; every method reads on from it."""

    def __init__(self, text: str, at: int, *, closes: bool) -> None:
        self.text = text
        self.at = at
        self.closes = closes

    # Functions

    def read_retrieval(self) -> Retrieval:
        nodes: dict[str, SpoNode] = {}
        constraints: list[Constraint] = []
        while (match := _KEY.match(self.text, self.at)) is not None:
            on, self.at = match["on"].lower(), match.end()
            if match[0].rstrip()[-1] in ".．":
                constraints.append(self._read_constraint(on))  # type: ignore[arg-type]  # s, p or o
            elif on in nodes:
                raise self._form_error(f"{on} once in a Retrieval")
            else:
                nodes[on] = self._read_node()
            self._skip_comma()
        self._close_form()
        if not nodes:
            raise self._form_error("s=…, p=…, o=… in a Retrieval")
        absent = SpoNode("")
        s, p, o = (nodes.get(place, absent) for place in "spo")
        return Retrieval(s, p, o, tuple(constraints))

    def read_math(self) -> Math:
        content, target = self._read_content(), self._read_target()
        return Math(content, target, self._read_arrow())

    def read_deduce(self) -> Deduce:
        match = _OP.match(self.text, self.at)
        op = Operation.ENTAILMENT
        if match is not None:
            op, self.at = nearest_operation(match[1]), match.end()
        content, target = self._read_content(), self._read_target()
        return Deduce(op, content, target, self._read_arrow())

    def read_output(self) -> Output:
        if not self.closes:
            match = _NUMBERS.match(self.text, self.at)
            if match is None:
                raise self._form_error("variables in an Output")
            self.at = match.end()
            return Output(tuple(part.strip() for part in re.split("[,，]", match[0])))
        names = []
        while self._peek_char() not in (")", "）", ""):
            names.append(self._read_value(commas=True))
            self._skip_comma()
        self._close_form()
        if not any(names):
            raise self._form_error("variables in an Output")
        return Output(tuple(name for name in names if name))

    # Arguments of a Retrieval

    def _read_node(self) -> SpoNode:
        """Reads `alias:type['name']['id']`, each part optional; a phrase alone is a name."""
        self._skip_space()
        if self._peek_char() in _CLOSING and (quoted := self._try_quoted("[,，)）")) is not None:
            return SpoNode("", name=quoted)
        alias = type_ = ""
        if (match := _ALIAS.match(self.text, self.at)) and self._alias_ends(match.end()):
            alias, self.at = match[0], match.end()
        self._skip_space()
        typed = self._peek_char() in (":", "：")
        if typed:
            self.at += 1
        if typed or (not alias and self._peek_char() != "["):
            type_ = self._read_value("[")
        name, id = self._read_bracket(), self._read_bracket()
        if not (typed or alias or name):
            return SpoNode("", name=type_)
        return SpoNode(alias, type_, name, id)

    def _alias_ends(self, at: int) -> bool:
        """Whether an alias ends here: `:`, `[` or the next argument must follow."""
        # A window of 100 characters keeps the look-ahead linear on long replies.
        rest = self.text[at : at + 100]
        if rest.lstrip()[:1] in ("[", ":", "：", "", ")", "）"):
            return True
        return self._next_argument(at)

    def _read_bracket(self) -> str:
        """Reads `['name']`, or nothing. A bare name ends at the `]` before `[`, `)` or an
        argument."""
        self._skip_space()
        if self._peek_char() != "[":
            return ""
        self.at += 1
        self._skip_space()
        if self._peek_char() in _CLOSING and (quoted := self._try_quoted("]")) is not None:
            self._skip_space()
            self.at += self._peek_char() == "]"
            return quoted
        end = self.at
        while (end := self.text.find("]", end)) != -1:
            after = self.text[end + 1 : end + 100].lstrip()
            if after[:1] in ("[", ")", "）", "") or self._next_argument(end + 1):
                break
            end += 1
        if end == -1:
            raise self._form_error("a ] after a name")
        name, self.at = self.text[self.at : end].strip(), end + 1
        return name

    def _read_constraint(self, on: Place) -> Constraint:
        """Reads `property=value` after `s.`, `p.` or `o.`; both may contain spaces."""
        self._skip_space()
        quoted = self._try_quoted("=＝<>!≠≤≥＜＞i") if self._peek_char() in _CLOSING else None
        if quoted is not None:
            name = quoted
            match = _COMPARISON.match(self.text, self.at)
        else:
            match = _COMPARISON.search(self.text, self.at, self.at + 200)
            name = self.text[self.at : match.start()] if match else ""
        if match is None or not name.strip():
            raise self._form_error(f"a property and one of {' '.join(COMPARISONS)} after {on}.")
        self.at = match.end()
        sign = _SIGNS.get(match[1], match[1].lower())
        comparison = next(known for known in COMPARISONS if known == sign)
        several = comparison == "in"
        value = self._read_items() if several else self._read_value()
        return Constraint(on, name, comparison, value)

    # Arguments of Math and Deduce

    def _read_content(self) -> tuple[str, ...]:
        match = _CONTENT.match(self.text, self.at)
        if match is None:
            return ()
        self.at = match.end()
        if self._peek_char() == "[":
            return self._read_items()
        if self._peek_char() in _CLOSING and (quoted := self._try_quoted(",，)）")) is not None:
            return (quoted,)
        end = _TARGET.search(self.text, self.at)
        until = end.start() if end else self._last_close()
        item, self.at = self.text[self.at : until], until
        return (item,) if item.strip() else ()

    def _read_items(self) -> tuple[str, ...]:
        """Reads `['a', b, …]`; commas separate quoted items and aliases, not free text."""
        self._skip_space()
        if self._peek_char() != "[":
            raise self._form_error("a list in [ ]")
        self.at += 1
        items: list[str] = []
        free: int | None = None  # where the free text began that may go on
        while True:
            self._skip_space()
            here = self._peek_char()
            if here == "":
                raise self._form_error("a ] after a list")
            if here == "]" and self._list_ends():
                self.at += 1
                return tuple(item for item in items if item)
            if here in _CLOSING and (item := self._try_quoted(",，]")) is not None:
                items.append(item)
                free = None
            else:
                start = self.at
                item = self._bare_item()
                # A comma inside free text: the two parts are one item.
                if item and free is not None and not _ALIAS_LIKE.fullmatch(item):
                    items[-1] = self.text[free : self.at].strip()
                elif item:
                    items.append(item)
                    free = None if _ALIAS_LIKE.fullmatch(item) else start
            self._skip_comma()

    def _bare_item(self) -> str:
        start = self.at
        while self.at < len(self.text):
            here = self.text[self.at]
            if here in ",，" or (here == "]" and self._list_ends()):
                break
            self.at += 1
        return self.text[start : self.at].strip()

    def _list_ends(self) -> bool:
        """Whether the `]` here ends the list: a target, another argument or the end must follow."""
        after = self.text[self.at + 1 : self.at + 100]
        return (
            _TARGET.match(after) is not None
            or after.lstrip()[:1] in (")", "）", "")
            or re.match(r"\s*[,，]\s*(?:op|[spo]\s*[.=])", after) is not None
        )

    def _read_target(self) -> str:
        match = _TARGET.match(self.text, self.at)
        if match is None:
            self._close_form()
            return ""
        self.at = match.end()
        if self._peek_char() in _CLOSING and (target := self._try_quoted(")）")) is not None:
            self._close_form()
            return target
        end = self._last_close()
        target, self.at = self.text[self.at : end], end
        self._close_form()
        return target.strip(" '\"`‘’“”,，")

    def _last_close(self) -> int:
        """Position of the parenthesis that closes the function, judged by what follows it."""
        at = self.at
        while (match := _PARENTHESIS.search(self.text, at)) is not None:
            if _END.match(self.text, match.end()):
                return match.start()
            at = match.end()
        line = self.text.find("\n", self.at)
        return len(self.text) if line == -1 else line

    # Values

    def _read_value(self, stops: str = "", *, commas: bool = False) -> str:
        """Reads a quoted value; or a bare one, up to one of `stops`, the next argument or the last
        `)`.

        `commas`: every comma ends it, not only one that an argument follows.
        """
        self._skip_space()
        followers = f"{stops},，)）"
        if self._peek_char() in _CLOSING and (quoted := self._try_quoted(followers)) is not None:
            return quoted
        start, depth = self.at, 0
        while self.at < len(self.text):
            here = self.text[self.at]
            if depth == 0 and here in f"{stops})）":
                break
            if here in ",，" and ((commas and depth == 0) or self._next_argument(self.at)):
                break
            # Parentheses inside a bare value are counted, so that the function's own closes it.
            depth += (here in "(（") - (here in ")）")
            self.at += 1
        return self.text[start : self.at].strip()

    def _next_argument(self, at: int) -> bool:
        match = _COMMA.match(self.text, at)
        return match is not None and _NEXT_KEY.match(self.text, match.end()) is not None

    def _try_quoted(self, followers: str) -> str | None:
        """Reads a quoted text, which ends with its own kind of quote or one commonly used for
        it."""
        own, *others = tuple(_CLOSING[self.text[self.at]])
        quoted = self._until_quote(own, followers)
        return (
            quoted if quoted is not None or not others else self._until_quote(others[0], followers)
        )

    def _until_quote(self, closing: str, followers: str) -> str | None:
        """Reads up to the first `closing` quote that one of `followers` comes after."""
        chars: list[str] = []
        at = self.at + 1
        while at < len(self.text):
            here = self.text[at]
            if here == "\\" and self.text[at + 1 : at + 2] in ("'", '"', "`", "\\"):
                chars.append(self.text[at + 1])
                at += 2
                continue
            if here == closing and self._ends_quote(at + 1, followers):
                self.at = at + 1
                return "".join(chars)
            chars.append(here)
            at += 1
        return None

    def _ends_quote(self, at: int, followers: str) -> bool:
        rest = self.text[at : at + 100].lstrip()
        return rest[:1] in ("", *followers)

    # Punctuation

    def _peek_char(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip_space(self) -> None:
        while self._peek_char().isspace():
            self.at += 1

    def _skip_comma(self) -> None:
        self._skip_space()
        if self._peek_char() and self._peek_char() in ",，;；":
            self.at += 1
            self._skip_space()

    def _close_form(self) -> None:
        """Skips the last parenthesis, which may be missing; anything else there is an error."""
        self._skip_space()
        if self._peek_char() and self._peek_char() in ")）":
            self.at += 1
        elif self._peek_char() and not _END.match(self.text, self.at):
            raise self._form_error("a ) after the arguments")

    def _read_arrow(self) -> str:
        match = _ARROW.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        if self._peek_char() and self._peek_char() in "'\"`’”":
            self.at += 1
        return match[1]

    def _form_error(self, expected: str) -> MalformedOutput:
        return MalformedOutput(self.text[self.at :], expected=expected)
