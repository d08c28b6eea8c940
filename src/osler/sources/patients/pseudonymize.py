"""Names of files as they are stored: exports of patients are called after them."""

from __future__ import annotations

import hashlib

from osler.sources.catalogue import EMR


def pseudonymize_place(source: str, name: str) -> str:
    """The name of a file or of a member of an archive; of the source `emr`, a hash of it."""
    if source != EMR or not name:
        return name
    return f"file-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
