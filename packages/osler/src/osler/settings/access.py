"""Settings of access: which sources are private, who finds them, which machines may read them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from pydantic import Field

from osler.settings.fields import Names, OptionalPlace, SettingsSection, SourceNames
from osler.sources.catalogue import EMR, HELD, is_patients

EVERY, PUBLIC = "all", "public"
"""Words for many sources: all of them, and all that are not private."""


class AccessSettings(SettingsSection):
    private: SourceNames = Field(
        default=(),
        description=f"Your private sources. {EMR} always is one. A private source is searched only"
        " when it is named, and on the server only for a key whose scope names it.",
    )
    sources: Names = Field(
        default=(EVERY,),
        min_length=1,
        description=f'Only these sources are searched and opened: names, "{PUBLIC}" (all that are'
        f' not private), "{EVERY}". The server narrows this to the scope of the key.',
    )
    patients: Names = Field(
        default=(),
        description=f"Only these records of {EMR} are found, by document id; empty = all.",
    )
    deidentify: SourceNames = ()
    """Sources whose texts lose names, dates, numbers, addresses, telephones and e-mails when they
    are added, by rules (docs/guide/security.md says what they miss)."""
    remote: Names = ()
    """Other machines that may read private texts, by host name: model servers and online services.
    This machine always may."""
    held: SourceNames = ()
    """Sources whose new documents are held: `osler kb add` puts them aside, and they are found once
    `osler kb build --release SOURCE` lets them in."""
    key_file: OptionalPlace = None
    """File with a server key: the command line then keeps to its scope."""

    def is_private(self, source: str) -> bool:
        return source == EMR or source in self.private or source.endswith(HELD)

    def may_search(self, source: str) -> bool:
        """Whether the source may be searched and its passages opened."""
        given = self.sources
        return (
            EVERY in given or source in given or (PUBLIC in given and not self.is_private(source))
        )

    def may_open(self, source: str, document: str, kind: str = "") -> bool:
        """Whether a document of the source may be opened; a patient's record, by its `kind`, only
        with the scope of `emr`."""
        if not is_patients(source, kind):
            return self.may_search(source)
        is_mine = not self.patients or document in self.patients
        return self.may_search(source) and self.may_search(EMR) and is_mine

    def source_of_new(self, source: str) -> str:
        """Where new documents of the source go: a private one of its own, where they are held."""
        return f"{source}{HELD}" if source in self.held else source

    def private_among(self, sources: Iterable[str]) -> tuple[str, ...]:
        return tuple(source for source in sources if self.is_private(source))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address; a name that is not "localhost" is not."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
