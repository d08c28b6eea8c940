"""Chinese towns, counties and provinces by their names, with smaller places behind them.

`towns.txt.xz` holds the names of counties and above without the word for their kind, and in its
second line those that are ordinary words too (made by `benchmarks/list_towns.py`). English towns
gained two of 74 places and a false alarm: they are not listed.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from osler_serve.clinic.identifiers.found import Identifier

_LONGEST = 6
_H = r"[\u4e00-\u9fff]"
_INTO = re.compile(r"(?:在|从|到|去|回|来自|住|老家|赴|往|寄|籍贯|至|由|自|跑|经|来|飞)$")
_START = re.compile(r"(?:^|[\s，。；、：:,;（(“\"])$")
_KIND = re.compile(r"自治[区州县旗]|地区|[省市县旗盟州](?!立|级)|区(?!别|分|域)")
_WITHIN = re.compile(
    rf"(?:(?![的了着是有人在看来去从到]){_H}){{1,5}}?"
    r"(?:街道|大街|[镇乡村街路巷山寺塔湖岛庙]|小区|社区|花园|苑|牧场|机场|广场|步行街|出租屋|胡同|火车站)"
    r"[0-9A-Za-z号弄栋幢室楼单元-]*"
)
_END = re.compile(
    r"$|[\s，。；、：:,;（()）]|人|来|打|过|那|这|附近|上班|务工|老家|转|回|的|看|读|做|早产"
)


@cache
def _read_towns() -> tuple[frozenset[str], ...]:
    packed = files("osler_serve.clinic.identifiers").joinpath("towns.txt.xz").read_bytes()
    lines = lzma.decompress(packed).decode().splitlines()
    return tuple(frozenset(line.split()) for line in lines)


def find_towns(line: str) -> Iterator[Identifier]:
    """In order."""
    at = 0
    while at < len(line):
        end = _measure(line, at)
        if end:
            yield Identifier("PLACE", at, end)
        at = end or at + 1


def _town_at(line: str, at: int) -> int:
    """Length of the longest name of a town that begins here; 0 without one."""
    plain, also = _read_towns()
    lengths = range(_LONGEST, 1, -1)
    return next(
        (one for one in lengths if (name := line[at : at + one]) in plain or name in also), 0
    )


def _measure(line: str, at: int) -> int:
    """Where the place that begins here ends, with smaller ones behind it; 0: none does."""
    length = _town_at(line, at)
    if not length:
        return 0
    name, end = line[at : at + length], at + length
    towns = 1
    while True:
        if kind := _KIND.match(line, end):
            end, towns = kind.end(), towns + 1
        if not (more := _town_at(line, end)):
            break
        end, towns = end + more, towns + 1
    if within := _WITHIN.match(line, end):
        end, towns = within.end(), towns + 1
    before = line[max(0, at - 2) : at]
    known = _INTO.search(before) is not None
    if towns == 1 and name in _read_towns()[1]:
        return end if known and _END.match(line, end) else 0
    sure = known or length > 2 or _START.search(before) is not None
    return end if sure and (towns > 1 or known or _END.match(line, end)) else 0
