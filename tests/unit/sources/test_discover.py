"""What is found at a path: every file is taken or accounted for, and nothing is trusted."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from osler.errors import BadConfig, MalformedSource
from osler.sources.discover import FoundFile, FoundFolder, discover, hash_tree
from osler.sources.formats import containers
from osler.sources.formats.registry import FOLDER_PARSERS, PARSERS, by_name, sniff_file
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop, Record, SourceFile

NOTE = b"# Gout\n\nA joint disease.\n"
MEDLINE = b"PMID- 1\nTI  - Title.\nAB  - Text.\n\nPMID- 2\nDP  - 2001\n"


def records(*paths: Path, fmt: str | None = None) -> list[Record]:
    found: list[Record] = []
    for item in discover(paths, fmt=fmt):
        found += [item] if isinstance(item, Drop) else read_records(item)
    return found


def titles(*paths: Path) -> list[str]:
    return [record.title for record in records(*paths) if isinstance(record, Document)]


def drops(*paths: Path, fmt: str | None = None) -> list[Drop]:
    return [record for record in records(*paths, fmt=fmt) if isinstance(record, Drop)]


def tar_of(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def test_a_folder_is_walked_in_sorted_order_at_all_levels(tmp_path: Path) -> None:
    for name in ("b/two.md", "a.md", "b/a/one.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(NOTE)

    found = [item for item in discover([tmp_path]) if isinstance(item, FoundFile)]

    root = tmp_path.name
    assert [item.name for item in found] == [
        f"{root}/a.md",
        f"{root}/b/a/one.md",
        f"{root}/b/two.md",
    ]
    assert found[0].file == SourceFile(tmp_path / "a.md")


def test_a_file_has_the_same_name_alone_as_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(NOTE)

    ids = {
        r.id for p in (tmp_path, tmp_path / "a.md") for r in records(p) if isinstance(r, Document)
    }

    assert len(ids) == 1


def test_a_file_of_no_known_format_is_a_drop(tmp_path: Path) -> None:
    (tmp_path / "judged.csv").write_text("id,answer\n1,Rest. Then walk.\n")
    (tmp_path / "empty.md").write_bytes(b"")

    assert {drop.reason for drop in drops(tmp_path)} == {"unknown format", "empty file"}
    assert drops(tmp_path / "judged.csv")[0].where.endswith("/judged.csv")


def test_hidden_files_links_licences_and_pipes_are_drops_with_their_reason(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(NOTE)
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "link.md").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    (inside / ".DS_Store").write_bytes(b"x")
    (inside / "LICENSE.txt").write_text("You may. You may not.")
    os.mkfifo(inside / "pipe")

    assert drops(inside) == [
        Drop("in/.DS_Store", "hidden"),
        Drop("in/LICENSE.txt", "licence or readme"),
        Drop("in/link.md", "link"),
        Drop("in/loop", "link"),
        Drop("in/pipe", "not a regular file"),
    ]
    assert titles(inside) == []


def test_a_path_that_does_not_exist_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(MalformedSource, match=r"does not exist; check the path"):
        discover([tmp_path / "nowhere"])
    with pytest.raises(MalformedSource):
        hash_tree(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "compress"), [("m.txt.gz", gzip.compress), ("m.txt.bz2", bz2.compress)]
)
def test_a_compressed_file_is_read_as_what_is_in_it(
    tmp_path: Path, name: str, compress: type[object]
) -> None:
    (tmp_path / name).write_bytes(compress(MEDLINE))  # type: ignore[call-arg, arg-type]

    document, drop = records(tmp_path)

    assert isinstance(document, Document)
    assert drop == Drop(f"{tmp_path.name}/{name}:5: PMID 2", "no title")


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_a_truncated_gzip_is_named_and_the_others_go_on(tmp_path: Path, cut: int) -> None:
    data = b"".join(b"PMID- %d\nTI  - T %d.\nAB  - Text %d.\n" % (n, n * n, n) for n in range(400))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(data)[:-cut])
    (tmp_path / "b.md").write_bytes(NOTE)

    assert drops(tmp_path) == [Drop(f"{tmp_path.name}/a.txt.gz", "truncated or damaged")]
    assert titles(tmp_path)[-1] == "Gout"


@pytest.mark.parametrize("name", ["a.txt.gz", "a.xml.bz2", "a.tar", "a.tar.gz", "a.tgz", "a.zip"])
def test_corrupt_container_is_a_drop(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"garbage" * 200)

    assert drops(tmp_path) == [Drop(f"{tmp_path.name}/{name}", "truncated or damaged")]


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.bz2", "w:bz2")],
)
def test_members_of_a_tar_are_read_in_its_order(tmp_path: Path, name: str, mode: str) -> None:
    members = {"x/b.md": NOTE, "x/a.md": b"# Second\n\nText.", "m.txt.gz": gzip.compress(MEDLINE)}
    path = tar_of(tmp_path / name, members, mode)

    assert titles(path) == ["Gout", "Second", "Title."]
    assert [str(i.file) for i in discover([path]) if isinstance(i, FoundFile)] == [
        f"{name}!x/b.md",
        f"{name}!x/a.md",
        f"{name}!m.txt.gz",
    ]


def test_large_members_are_read_whole(tmp_path: Path) -> None:
    text = b"# Big\n\n" + b"A sentence of some length. " * 20_000
    path = tar_of(tmp_path / "a.tar.gz", {"big.md": text, "small.md": NOTE})

    sizes = [
        len(record.sections[0].text) for record in records(path) if isinstance(record, Document)
    ]

    assert sizes == [len(text) - len("# Big\n\n") - 1, len("A joint disease.")]


def test_members_of_a_zip_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", b"")
        archive.writestr("folder/a.md", NOTE)
        archive.writestr("b.bin", b"\0\1\2")

    assert titles(path) == ["Gout"]
    assert drops(path) == [Drop(f"{tmp_path.name}/a.zip!b.bin", "unknown format")]


@pytest.mark.parametrize(
    ("written", "read"),
    [("心衰".encode("gb18030"), "心衰"), ("心衰".encode(), "心衰"), (b"caf\x82s", "cafés")],
)
def test_a_name_in_a_zip_is_read_without_the_mark_of_utf8(
    tmp_path: Path, written: bytes, read: str
) -> None:
    path, place = tmp_path / "a.zip", b"x" * len(written)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{place.decode()}.txt", b"It is a joint disease.")
    path.write_bytes(path.read_bytes().replace(place, written))

    assert titles(path) == [read]


@pytest.mark.parametrize(
    "name", ["../evil.md", "/etc/evil.md", "a/../../evil.md", "C:\\evil.md", "."]
)
def test_archive_path_traversal_is_refused(tmp_path: Path, name: str) -> None:
    tar = tar_of(tmp_path / "a.tar", {name: NOTE, "good.md": NOTE}, "w")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, NOTE)
        archive.writestr("good.md", NOTE)

    for path in (tar, tmp_path / "a.zip"):
        assert [drop.reason for drop in drops(path)] == ["unsafe path in an archive"]
        assert titles(path) == ["Gout"]


def test_a_member_without_a_name_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), NOTE)
        archive.writestr("good.md", NOTE)

    assert titles(tmp_path / "a.zip") == ["Gout"]


def test_archive_links_and_devices_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind in (
            ("s.md", tarfile.SYMTYPE),
            ("h.md", tarfile.LNKTYPE),
            ("d", tarfile.CHRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        link = zipfile.ZipInfo("s.md")
        link.external_attr = 0o120777 << 16
        zipped.writestr(link, "/etc/passwd")

    assert {drop.reason for drop in drops(tmp_path)} == {"link or device in an archive"}
    assert len(drops(tmp_path)) == 4


def test_nested_archive_is_refused(tmp_path: Path) -> None:
    inner = tar_of(tmp_path / "inner.tar", {"a.md": NOTE}, "w").read_bytes()
    path = tar_of(
        tmp_path / "outer.tar", {"inner.tar": inner, "LICENSE": b"x", "._a.md": b"x"}, "w"
    )

    assert [drop.reason for drop in drops(path)] == [
        "archive in an archive",
        "licence or readme",
        "hidden",
    ]


def test_archive_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_ALWAYS_ALLOWED", 100_000)
    bomb = b"# A\n\n" + b"0" * 10_000_000
    (tmp_path / "a.md.gz").write_bytes(gzip.compress(bomb))
    tar_of(tmp_path / "b.tar.gz", {"skipped.bin": bomb, "a.md": NOTE})
    tar_of(tmp_path / "c.tar", {"a.md.gz": gzip.compress(bomb)}, "w")
    with zipfile.ZipFile(tmp_path / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.md", bomb)
    (tmp_path / "e.md").write_bytes(NOTE)

    assert [drop.reason for drop in drops(tmp_path) if drop.reason != "unknown format"] == [
        "decompression bomb"
    ] * 4
    assert titles(tmp_path) == ["Gout"]


def test_a_folder_of_umls_tables_is_one_unit_however_it_is_named(tmp_path: Path) -> None:
    meta = tmp_path / "graph" / "META"
    meta.mkdir(parents=True)
    (meta / "MRCONSO.RRF").write_text("C1|ENG|P|L|PF|S|Y|A||||MSH|PT|C|Gout|0|N||\n")
    (meta / "MRDEF.RRF").write_text("C1|A|AT||MSH|A joint disease.|N||\n")

    for path in (tmp_path, meta, meta / "MRCONSO.RRF"):
        (found,) = discover([path])
        assert isinstance(found, FoundFolder)
        assert found.parser.name == "umls-rrf"
        assert [record.id for record in read_records(found) if isinstance(record, Document)] == [
            "C1"
        ]
    assert hash_tree(meta) == hash_tree(meta / "MRCONSO.RRF")


def test_a_named_format_is_used_instead_of_sniffing(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("Rest and water.")

    assert drops(tmp_path)[0].reason == "unknown format"
    (document,) = records(tmp_path, fmt="plain")
    assert isinstance(document, Document)


def test_a_file_that_is_not_of_the_named_format_is_a_drop_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("not xml")
    (tmp_path / "b.xml").write_text("<other/>")

    malformed, other = drops(tmp_path, fmt="pubmed-xml")

    assert malformed.reason == "malformed file"
    assert "not well-formed" in malformed.where
    assert other == Drop(f"{tmp_path.name}/b.xml", "no record")


def test_a_format_of_folders_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")

    with pytest.raises(MalformedSource, match="not a folder"):
        discover([tmp_path / "a.csv"], fmt="mimic")
    assert [drop.reason for drop in drops(tmp_path, fmt="mimic")] == ["malformed file"]


def test_an_unknown_format_is_refused_with_the_names_of_the_known(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"no format 'odt'; use one of .*pubmed-xml, .*mimic"):
        discover([tmp_path], fmt="odt")


def test_every_parser_is_found_by_its_name() -> None:
    assert all(by_name(parser.name) is parser for parser in PARSERS)
    assert all(by_name(parser.name) is parser for parser in FOLDER_PARSERS)


def test_empty_or_zero_bytes_have_no_sniffed_format() -> None:
    assert sniff_file("", b"") is None
    assert sniff_file("a", b"\0" * 4096) is None


def test_the_fingerprint_of_a_file_is_the_hash_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(NOTE)

    assert hash_tree(path) == hashlib.sha256(NOTE).hexdigest()


def test_the_fingerprint_of_a_folder_changes_with_any_name_or_byte(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.md").write_bytes(NOTE)
    seen = {hash_tree(tmp_path)}

    assert hash_tree(tmp_path) in seen
    (tmp_path / "a" / "x.md").write_bytes(NOTE + b" ")
    seen.add(hash_tree(tmp_path))
    (tmp_path / "a" / "x.md").rename(tmp_path / "a" / "y.md")
    seen.add(hash_tree(tmp_path))
    (tmp_path / "z.md").write_bytes(b"")
    seen.add(hash_tree(tmp_path))

    assert len(seen) == 4


def test_a_file_whose_name_is_not_text_is_reported_in_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff\nname.md")
    (tmp_path / name).write_bytes(NOTE)
    tar_of(tmp_path / "a.tar", {name: NOTE}, "w")

    found = drops(tmp_path)

    assert [drop.reason for drop in found] == ["name is not text"] * 2
    assert all(drop.where.encode("utf-8") and "\n" not in drop.where for drop in found)
    assert len(hash_tree(tmp_path)) == 64
