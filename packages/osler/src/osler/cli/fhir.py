"""`osler kb record`: a patient's record from a FHIR server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import JsonSession
from osler.errors import BadConfig


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
    import httpx2

    from osler.sources.patients.fhir_server import BackendClient, fetch_record, fetch_token

    with httpx2.Client(follow_redirects=False, timeout=30) as http:
        if token_file is not None:
            token = _read(token_file).strip()
        elif key is not None and client and key_id:
            signer = BackendClient(client, _read(key), key_id, algorithm)
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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} cannot be read: {error}", fix="name another file") from error
