"""`osler kb patients` and `kb record`: similar patients, and a record read from a FHIR server."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import httpx2
import typer
from rich.console import Group

from osler.audit.entries import record_reading
from osler.build.knowledge import open_knowledge_base
from osler.cli.options import JsonSession
from osler.cli.session import ABSTAINED
from osler.cli.tables import document_page
from osler.errors import BadConfig, BadQuestion, read_text_file
from osler.reports import PassageView
from osler.sources.catalogue import EMR
from osler.sources.formats.reading import decode_text
from osler.sources.reading import read
from osler.sources.records import Document
from osler_serve.clinic.records.codes import parse_code
from osler_serve.clinic.records.fhir_server import BackendClient, fetch_record, fetch_token
from osler_serve.clinic.records.patient import group_age
from osler_serve.clinic.records.patient_document import PatientProfile, profile_of
from osler_serve.clinic.records.search import PatientIndex, PatientMatch, open_patients


def patients(
    here: JsonSession,
    query: Annotated[
        Path | None,
        typer.Argument(help="A record in a format that `kb add` reads, or a text with codes."),
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option(
            "--code", "-c", help='A code, as in "E11.9" or "ICD-9-CM 250.00"; repeatable.'
        ),
    ] = None,
    age: Annotated[int | None, typer.Option(min=0, max=150, help="Age in years.")] = None,
    sex: Annotated[str | None, typer.Option(help="Sex: female, male or other.")] = None,
    k: Annotated[int, typer.Option("--k", min=1, max=200, help="How many to show.")] = 10,
) -> None:
    """List the most similar patients of source emr, and why. Exit code 1: none.

    Similarity 1 is an identical record, 0 one with nothing in common.
    """
    settings = here.load_settings()
    with open_knowledge_base(settings) as kb:
        held = open_patients(settings, kb)
        profile = _read_profile(held, query, code or [], age, sex)
        opened = settings.access.may_open
        matches = [
            match
            for match in held.nearest_patients(profile, k=k)
            if opened(EMR, match.passage.id.partition("#")[0])
        ]
        cohort = held.load_snapshot().cohort
    unmapped = {system.value: count for system, count in cohort.unmapped.items()}
    asked = " ".join(sorted(map(str, profile.codes)))
    record_reading(settings, "patients", asked, [match.passage.id for match in matches])
    document = {
        "asked": {"codes": sorted(map(str, profile.codes)), "age": profile.age, "sex": profile.sex},
        "patients": [_match_document(each) for each in matches],
        "compared": len(cohort),
        "unmapped": unmapped,
    }
    pages = [
        document_page(
            {"patient": one.passage.title, **_match_document(one), "passage": one.passage.id}
        )
        for one in matches
    ]
    facts = {"compared": len(cohort), "codes without a map": unmapped}
    here.show_result(Group(*pages, document_page(facts)), document)
    if not matches:
        raise typer.Exit(ABSTAINED)


def _read_profile(
    held: PatientIndex, query: Path | None, written: list[str], age: int | None, sex: str | None
) -> PatientProfile:
    """Merges the file's profile with the options; options take precedence."""
    if sex is not None and sex not in {"female", "male", "other"}:
        raise BadQuestion(f"unknown --sex {sex!r}", fix="use female, male or other")
    profile = _read_patient(held, query) if query else PatientProfile("query")
    codes = profile.codes | frozenset(map(parse_code, written))
    if not codes:
        raise BadQuestion(
            "there is no diagnosis to compare with", fix="give --code, or a file with codes"
        )
    return replace(
        profile,
        codes=codes,
        age=profile.age if age is None else group_age(age),
        sex=profile.sex if sex is None else sex,
    )


def _read_patient(held: PatientIndex, path: Path) -> PatientProfile:
    """The profile of the first patient in the file, else of the codes and names in its text."""
    # A bundle or a folder of tables may hold many patients: the first is the one asked about.
    for record in read(path):
        if isinstance(record, Document) and record.kind.endswith("atient"):
            return profile_of("query", record.sections, record.title)
    return held.read_profile(decode_text(path.read_bytes(), path.name) if path.is_file() else "")


def _match_document(found: PatientMatch) -> dict[str, object]:

    return {
        "passage": PassageView.document_of(found.passage),
        "score": round(found.similar.score, 6),
        "matches": [
            {"asked": str(match.asked), "found": str(match.found), "level": match.level.value}
            for match in found.similar.matches
        ],
    }


def record(
    here: JsonSession,
    server: Annotated[str, typer.Argument(help="Address of the FHIR R4 server.")],
    patient: Annotated[str, typer.Argument(help="Id of the Patient resource.")],
    out: Annotated[Path, typer.Option(help="File to write; it must not exist yet.")],
    token_file: Annotated[
        Path | None, typer.Option(help="File with a token that you have.", show_default=False)
    ] = None,
    client: Annotated[
        str, typer.Option(help="Name of this client at the server (SMART Backend Services).")
    ] = "",
    key: Annotated[
        Path | None, typer.Option(help="Its private key, PEM.", show_default=False)
    ] = None,
    key_id: Annotated[str, typer.Option(help="`kid` of its public key at the server.")] = "",
    algorithm: Annotated[str, typer.Option(help="RS384 or ES384.")] = "RS384",
) -> None:
    """Read a patient's whole record from a FHIR server into a file: `Patient/ID/$everything`.

    The file holds names and dates, and only you can read it: add it with
    `osler kb add FILE --source emr`, which leaves them out, and delete it.
    """
    with httpx2.Client(follow_redirects=False, timeout=30) as http:
        if token_file is not None:
            token = read_text_file(token_file, BadConfig).strip()
        elif key is not None and client and key_id:
            signer = BackendClient(client, read_text_file(key, BadConfig), key_id, algorithm)
            token = fetch_token(server, signer, http)
        else:
            raise BadConfig(
                "a FHIR server wants a token",
                fix="give --token-file, or --client, --key and --key-id",
            )
        bundle = fetch_record(server, patient, token, http)
    try:
        place = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BadConfig(f"{out} cannot be written: {error.strerror}", fix="name another") from error
    with os.fdopen(place, "w", encoding="utf-8") as file:
        json.dump(bundle, file, ensure_ascii=False)
    count = len(bundle["entry"])
    line = f"{count:,} resources; next: osler kb add {out} --source emr, then delete the file"
    here.report_line(line, {"file": str(out), "resources": count})
