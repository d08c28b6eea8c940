"""What every part knows of patients: pseudonyms under a secret, and where their records are read.

Pseudonyms are made under the secret of a knowledge base. Without it, whoever knows the numbers of a
hospital can find a patient by hashing them all. It is handed on in the environment: files are also
read in processes of their own.

Readers of records, similar patients, and texts without identifiers come with the server's package:
`osler_serve.clinic`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, KnowledgeBaseError
from osler.sources.catalogue import EMR

CLINIC = "osler_serve"
"""The package with the clinic: found by name, as its verbs are."""
FILE = "pseudonym.key"
_KEY, _SOURCES = "OSLER_PSEUDONYM_KEY", "OSLER_DEIDENTIFIED"
# The environment is the process's: two knowledge bases are written in turn.
_TURN = threading.RLock()


def make_secret(folder: Path) -> None:
    """Makes the file of the secret, for its owner alone, and flushes it with its name: with an
    empty one pseudonyms would be plain hashes. Raises `OSError`."""
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        key = secrets.token_hex(32)
        file.write(f"{key} {_sum_key(key)}".encode())
        file.flush()
        os.fsync(file.fileno())
    names = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(names)
    finally:
        os.close(names)


def _sum_key(key: str) -> str:
    return hashlib.sha256(f"sum of {key}".encode()).hexdigest()[:16]


def read_secret(folder: Path) -> str:
    """The secret of a knowledge base in 64 hexadecimal digits, "" for none.

    Raises `KnowledgeBaseError` where it is not as it was made, and `OSError`.
    """
    path = folder / FILE
    if not path.exists():
        return ""
    key, *sums = path.read_text("ascii", errors="replace").strip().split(" ")
    if re.fullmatch("[0-9a-f]{64}", key) and (not sums or sums == [_sum_key(key)]):
        return key
    raise KnowledgeBaseError(
        f"{path} is damaged: patients would get other pseudonyms",
        fix="put the file back from a backup",
    )


@contextmanager
def use_secret(folder: Path, deidentified: Collection[str]) -> Iterator[None]:
    """Within it, pseudonyms are those of this knowledge base. One that was made before there was
    a secret has none, and its pseudonyms stay plain hashes. Raises what `read_secret` does."""
    values = {
        _KEY: read_secret(folder),
        _SOURCES: ",".join(sorted(deidentified)),
    }
    with _TURN:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def hash_keyed(text: str) -> str:
    """16 hexadecimal digits: HMAC-SHA256 under the secret, plain SHA-256 without one."""
    data = text.encode("utf-8", "surrogatepass")
    if key := os.environ.get(_KEY):
        return hmac.new(bytes.fromhex(key), data, hashlib.sha256).hexdigest()[:16]
    return hashlib.sha256(data).hexdigest()[:16]


def is_deidentified(source: str) -> bool:
    """Whether texts of the source lose their identifiers when they are added."""
    return source in os.environ.get(_SOURCES, "").split(",")


def hash_pseudonym(key: str) -> str:
    """A pseudonym for a person: `patient-` and 16 hexadecimal digits of the key's keyed hash."""
    return f"patient-{hash_keyed(key)}"


def pseudonymize_place(source: str, name: str) -> str:
    """The stored name of a file or a member of an archive: in the source `emr`, and where texts are
    de-identified, a hash of it.

    Exports of patients are often called after them.
    """
    is_hidden = source == EMR or is_deidentified(source)
    return f"file-{hash_keyed(name)}" if is_hidden and name else name


_RESOURCE = re.compile(
    r'"resourceType"\s*:\s*"(?:Patient|Condition|Observation|Encounter|Procedure|AllergyIntolerance'
    r'|Medication(?:Request|Statement|Administration)|DiagnosticReport|DocumentReference)"'
)
_OF_PERSON = re.compile(r'"(?:subject|patient|birthDate|gender|telecom|address)"\s*:\s*[\[{"]')


def holds_resources(text: str) -> bool:
    """Whether FHIR resources of a patient stand in a text, as in a bundle under another name."""
    return _RESOURCE.search(text) is not None and _OF_PERSON.search(text) is not None


def has_clinic() -> bool:
    """Whether records of patients can be read and compared, and identifiers be taken out."""
    return find_spec(CLINIC) is not None


def import_clinic(module: str) -> Any:
    """A module of the clinic, as "records.search". Raises `BadConfig` where it is not installed."""
    if not has_clinic():
        told = "records and identifiers of patients are read by osler[serve]"
        raise BadConfig(told, fix='pip install "osler[serve]"')
    return import_module(f"{CLINIC}.clinic.{module}")
