"""Whole recipes from a copy on loopback: listings, keys, licences, room on the disk."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from osler.errors import BadConfig
from osler.sources.catalogue import ALL_SOURCES
from osler.sources.download.job import (
    DownloadJob,
    DownloadRecipe,
    LicenceNotAccepted,
    find_recipe,
    load_recipes,
)
from osler.sources.download.transfer import FetchFailed, RetryPolicy
from osler.sources.online.address_guard import AddressRefused

PATIENT = RetryPolicy(retries=2, seconds=5.0)


def job(name: str, shelf: Any, folder: Path, **more: Any) -> DownloadJob:
    options: dict[str, Any] = {
        "mirror": shelf.url,
        "patience": PATIENT,
        "sleep": lambda seconds: None,
        "environment": {},
        "room": lambda folder: 10**15,
    }
    return DownloadJob(find_recipe(name), folder, **{**options, **more})


def put_pubmed(shelf: Any, *numbers: int) -> None:
    names = [f"pubmed25n{n:04}.xml.gz" for n in numbers]
    links = "".join(f'<a href="{name}">{name}</a> <a href="{name}.md5">m</a>' for name in names)
    shelf.files["/baseline/"] = f'<a href="../">up</a>{links}<a href="README.txt">r</a>'.encode()
    for name in names:
        body = name.encode() * 100
        sum_ = hashlib.md5(body, usedforsecurity=False).hexdigest()
        shelf.files[f"/baseline/{name}"] = body
        shelf.files[f"/baseline/{name}.md5"] = f"MD5({name})= {sum_}\n".encode()


def test_the_baseline_is_what_the_index_lists_each_file_with_its_sum(
    shelf: Any, tmp_path: Path
) -> None:
    put_pubmed(shelf, 1, 2, 3)

    done = job("pubmed-baseline", shelf, tmp_path).run(accepted=True)

    assert [path.name for path in done.files] == [f"pubmed25n000{n}.xml.gz" for n in (1, 2, 3)]
    assert done.bytes == sum(path.stat().st_size for path in tmp_path.iterdir()) == 6_000


def test_what_was_fetched_stays_when_a_file_fails_and_the_next_run_goes_on(
    shelf: Any, tmp_path: Path
) -> None:
    put_pubmed(shelf, 1, 2, 3)
    good = shelf.files.pop("/baseline/pubmed25n0002.xml.gz")

    with pytest.raises(FetchFailed, match=r"pubmed25n0002\.xml\.gz: the server answers 404"):
        job("pubmed-baseline", shelf, tmp_path).run(accepted=True)
    assert (tmp_path / "pubmed25n0001.xml.gz").exists()
    shelf.files["/baseline/pubmed25n0002.xml.gz"] = good
    shelf.asked.clear()
    done = job("pubmed-baseline", shelf, tmp_path).run(accepted=True)

    assert len(done.files) == 3
    assert "/baseline/pubmed25n0001.xml.gz" not in [path for path, _ in shelf.asked]


def test_only_so_many_files_are_fetched_as_are_asked_for(shelf: Any, tmp_path: Path) -> None:
    put_pubmed(shelf, 1, 2, 3)
    done = job("pubmed-baseline", shelf, tmp_path, only=1).run(accepted=True)
    assert [path.name for path in done.files] == ["pubmed25n0001.xml.gz"]


def test_a_licence_that_is_not_accepted_is_shown_and_nothing_is_called(
    shelf: Any, tmp_path: Path
) -> None:
    with pytest.raises(LicenceNotAccepted, match=r"CC BY-NC-ND.*--accept-licence"):
        job("statpearls", shelf, tmp_path / "x").run(accepted=False)
    assert shelf.asked == []
    assert not (tmp_path / "x").exists()


def test_a_full_disk_is_told_before_anything_is_fetched(shelf: Any, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match=r"needs about 26\.0 GB.* room for 1\.0 MB"):
        job("wikipedia-en", shelf, tmp_path, room=lambda folder: 10**6).run(accepted=True)
    assert shelf.asked == []


def hub_file(path: str, body: bytes) -> dict[str, object]:
    return {
        "type": "file",
        "path": path,
        "size": len(body),
        "lfs": {"oid": hashlib.sha256(body).hexdigest(), "size": len(body)},
    }


def test_a_data_set_of_the_hub_is_listed_page_by_page_and_checked(
    shelf: Any, tmp_path: Path
) -> None:
    bodies = {f"chunk/Book {n}.jsonl": f"text {n}".encode() for n in (1, 2)}
    listing = "/api/datasets/MedRAG/textbooks/tree/main/chunk"
    first, second = (hub_file(path, body) for path, body in bodies.items())
    other = {"type": "directory", "path": "chunk/x"}
    shelf.files[listing] = json.dumps([first, other]).encode()
    shelf.files[f"{listing}?cursor=abc"] = json.dumps([second]).encode()
    # As the hub itself writes it: with its own address, also when a mirror is asked.
    shelf.links[listing] = f'<https://huggingface.co{listing}?cursor=abc>; rel="next"'
    for path, body in bodies.items():
        place = path.replace(" ", "%20")
        shelf.files[f"/datasets/MedRAG/textbooks/resolve/main/{place}"] = body

    done = job("medrag-textbooks", shelf, tmp_path).run(accepted=True)

    assert [path.read_bytes() for path in done.files] == [b"text 1", b"text 2"]

    shelf.files["/datasets/MedRAG/textbooks/resolve/main/chunk/Book%201.jsonl"] = b"tampered"
    done.files[0].unlink()
    with pytest.raises(FetchFailed, match="sum is not the publisher"):
        job("medrag-textbooks", shelf, tmp_path).run(accepted=True)


def test_umls_is_the_newest_release_through_nlm_s_door_with_the_user_s_key(
    shelf: Any, tmp_path: Path
) -> None:
    url = "https://download.nlm.nih.gov/umls/kss/2026AA/umls-2026AA-metathesaurus-full.zip"
    shelf.files["/releases"] = json.dumps([{"downloadUrl": url}]).encode()
    shelf.files["/download"] = b"PK"

    with pytest.raises(BadConfig, match=r"a key of your own.*UMLS_API_KEY"):
        job("umls", shelf, tmp_path).run(accepted=True)
    keyed = job("umls", shelf, tmp_path, environment={"UMLS_API_KEY": "s3cret"})
    (path,) = keyed.run(accepted=True).files

    assert path.name == "umls-2026AA-metathesaurus-full.zip"
    asked = shelf.asked[-1][0]
    assert asked.startswith("/download?url=https")
    assert asked.endswith("&apiKey=s3cret")
    assert "umls-metathesaurus-full-subset" in shelf.asked[0][0]


def test_drugbank_is_asked_with_a_login(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/releases/latest/downloads/all-full-database"] = b"PK"
    environment = {"DRUGBANK_LOGIN": "me@example.org:pa:ss"}
    (path,) = job("drugbank", shelf, tmp_path, environment=environment).run(accepted=True).files
    assert path.name == "all-full-database"
    assert shelf.logins == ["Basic bWVAZXhhbXBsZS5vcmc6cGE6c3M="]


def test_a_repository_s_archive_is_called_after_the_repository(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/abachaa/MedQuAD/zip/refs/heads/master"] = b"PK"
    (path,) = job("medquad", shelf, tmp_path).run(accepted=True).files
    assert path.name == "MedQuAD.zip"


def test_a_listing_without_a_file_of_the_form_is_told(shelf: Any, tmp_path: Path) -> None:
    shelf.files["/baseline/"] = b"<html>moved</html>"
    with pytest.raises(FetchFailed, match="is listed"):
        job("pubmed-baseline", shelf, tmp_path).run(accepted=True)


def test_a_recipe_of_instructions_says_where_to_go(shelf: Any, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="osler kb fetch statpearls"):
        job("medrag-statpearls", shelf, tmp_path).run(accepted=True)


@pytest.mark.parametrize("name", list(load_recipes()))
def test_every_recipe_says_what_it_is_under_which_terms_and_when_it_was_confirmed(
    name: str,
) -> None:
    told = find_recipe(name)
    assert told.source in ALL_SOURCES
    assert told.licence
    assert told.licence_url.startswith("https://")
    assert told.base.startswith("https://")
    assert told.base.endswith("/")
    assert told.confirmed == "unconfirmed" or re.fullmatch(r"20\d\d-\d\d", told.confirmed)
    assert not (told.key and not told.note)
    re.compile(told.pattern)


def test_an_unknown_recipe_names_those_that_there_are() -> None:
    with pytest.raises(BadConfig, match="use one of pubmed-baseline"):
        find_recipe("everything")


@pytest.mark.parametrize(
    "wrong",
    [{"files": ()}, {"listing": "index"}, {"check": "md5-list"}, {"unknown": 1}, {"bytes": -1}],
)
def test_a_recipe_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    good = find_recipe("hpo").model_dump()
    assert DownloadRecipe(**good) == find_recipe("hpo")
    with pytest.raises(ValueError, match="1 validation error"):
        DownloadRecipe(**{**good, **wrong})


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "[::1]"])
def test_redirect_into_a_private_network_is_refused(shelf: Any, tmp_path: Path, host: str) -> None:
    put_pubmed(shelf, 1)
    name = "pubmed25n0001.xml.gz"
    own = shelf.url.split("127.0.0.1")[1]
    shelf.files["/elsewhere"] = b"secret"
    shelf.redirects[f"/baseline/{name}"] = f"http://{host}{own}elsewhere"
    with pytest.raises(AddressRefused, match="private network"):
        job("pubmed-baseline", shelf, tmp_path).run(accepted=True)
    assert not any(path == "/elsewhere" for path, _ in shelf.asked)
    assert b"secret" not in b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    shelf.redirects[f"/baseline/{name}"] = f"{shelf.url}baseline/moved"  # its own host may
    shelf.files["/baseline/moved"] = shelf.files[f"/baseline/{name}"]
    assert job("pubmed-baseline", shelf, tmp_path).run(accepted=True).files


@pytest.mark.parametrize("looks", [1, 2])
def test_a_name_that_leads_elsewhere_a_moment_later_gains_nothing(
    shelf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    """DNS rebinding: checked as a public address, connected to as this machine."""
    put_pubmed(shelf, 1)
    name = "pubmed25n0001.xml.gz"
    own = shelf.url.split("127.0.0.1")[1]
    shelf.files["/elsewhere"] = b"secret"
    shelf.redirects[f"/baseline/{name}"] = f"http://rebind.example{own}elsewhere"
    asked, called, real = [], [], socket.getaddrinfo

    def rebind(host: str, port: int, *args: Any, **more: Any) -> Any:
        if host != "rebind.example":
            return real(host, port, *args, **more)
        asked.append(host)
        seen = ["192.88.98.7", "93.184.216.34"] if len(asked) <= looks else ["127.0.0.1"]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in seen]

    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if not str(address[0]).startswith("127."):
            called.append(address[0])
            raise ConnectionRefusedError
        connect(self, address)

    monkeypatch.setattr(socket, "getaddrinfo", rebind)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises((FetchFailed, AddressRefused)):
        job("pubmed-baseline", shelf, tmp_path).run(accepted=True)
    assert called == ["192.88.98.7", "93.184.216.34"] * (looks - 1)
    assert not any(path == "/elsewhere" for path, _ in shelf.asked)


def test_of_dated_files_the_newest_is_fetched_wherever_on_the_host_the_link_leads(
    shelf: Any, tmp_path: Path
) -> None:
    names = [f"mplus_topics_compressed_2026-11-{day}.zip" for day in ("20", "27", "26")]
    links = "".join(f'<a href="https://medlineplus.gov/xml/{name}">XML</a>' for name in names)
    shelf.files["/xml.html"] = links.encode()
    shelf.files[f"/xml/{names[1]}"] = b"topics"
    done = job("medlineplus", shelf, tmp_path).run(accepted=True)
    assert [path.name for path in done.files] == [names[1]]
