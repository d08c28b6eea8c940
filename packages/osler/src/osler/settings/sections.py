"""Settings of access, search, danger, runs, the server and online services.

Nothing outside is called unless it is set here.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from osler.danger.notice import ANYWHERE, region_names
from osler.settings.fields import (
    NONE,
    Limit,
    Names,
    OptionalPlace,
    PartialDate,
    Place,
    Places,
    Real,
    RealLimit,
    SettingsSection,
    SourceNames,
    Whole,
    first_day,
    last_day,
    split_list,
)
from osler.sources.catalogue import EMR, HELD, is_patients
from osler.types import Language

_FILTER_WORDS: dict[Language, tuple[str, ...]] = {
    "en": ("since {}", "until {}", "as of {}", "of kind {}"),
    "zh": ("{} 起", "至 {}", "截至 {}", "类型 {}"),
}
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
    """Other machines that may read private texts, by host name: model servers, online services, a
    Qdrant server. This machine always may."""
    held: SourceNames = ()
    """Sources whose new documents are held: `osler kb add` puts them aside, and they are found once
    `osler kb build --release SOURCE` lets them in."""
    key_file: OptionalPlace = None
    """File with a server key: the command line then keeps to its scope."""

    @field_validator("held")
    @classmethod
    def _check_held(cls, held: tuple[str, ...]) -> tuple[str, ...]:
        if EMR in held:
            raise ValueError(f"{EMR} cannot be held: nothing finds its records unasked")
        return held

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


class RetrieveSettings(SettingsSection):
    k: Whole = Field(default=10, ge=1, le=200)
    """Passages a search gives (Omni-RAG §5.1.2)."""
    rrf_k: Whole = Field(default=10, ge=0, le=10_000)
    """Reciprocal rank fusion: score = weight / (rrf_k + rank)."""
    dense_weight: Real = Field(default=1.0, ge=0, le=100, description="Weight of the vector index.")
    lexical_weight: Real = Field(default=0.7, ge=0, le=100, description="Weight of the word index.")
    depth: Whole = Field(default=64, ge=1, le=10_000)
    """Candidates that each index hands to the fusion."""
    entry_least: Real = Field(default=0.0, ge=0, le=1)
    """Least cosine of an entry of the indexes of knowledge units, questions and the rest (KAG keeps
    those above 0.7, by its own encoder)."""
    since: PartialDate = None
    """Only documents from this date on, as 2020, 2020-03 or 2020-03-31, or "none"."""
    until: PartialDate = None
    """Only documents up to this date, or "none"; of a year or month, up to its last day."""
    as_of: PartialDate = None
    """Only what was known on this date, as 2024-01-31, or "none". A document of which the month or
    the year alone is known counts as of its last day, here and in the two above."""
    languages: Annotated[tuple[Literal["en", "zh"], ...], BeforeValidator(split_list)] = ()
    """Only passages in these languages; empty = all."""
    kinds: Names = ()
    """Only these publication types, as "rct,guideline" or "Case Reports"; empty = all."""
    retracted: bool = False
    """Also find what was retracted."""
    policy: Literal["clinical", "none"] = "clinical"
    """clinical: what was retracted, or replaced by a later issue of its work that was found too, is
    no evidence, and the answer says so; none: it is quoted with a caution."""
    instructions: Literal["blank", "keep"] = "blank"
    """Handling of instructions to a program within passages: blank takes them out
    before a model reads them, and the answer says so."""
    trust: Whole = Field(default=1, ge=1, le=5)
    """Only documents of at least this trust (5 = guideline)."""

    @model_validator(mode="after")
    def _check_weights(self) -> RetrieveSettings:
        if self.dense_weight == self.lexical_weight == 0:
            raise ValueError("dense_weight and lexical_weight cannot both be 0")
        first, last = self._bounds()
        if first and last and first > last:
            raise ValueError("since is after until or as_of")
        return self

    @property
    def known_day(self) -> int | None:
        """The day of `as_of`, as 20240131."""
        return None if self.as_of is None else last_day(self.as_of)

    def _bounds(self) -> tuple[int | None, int | None]:
        """The first and the last day of documents that may be found, as 20240131."""
        lasts = [last_day(one) for one in (self.until, self.as_of) if one is not None]
        first = None if self.since is None else first_day(self.since)
        return first, min(lasts, default=None)

    @property
    def years(self) -> tuple[int | None, int | None]:
        """The first and the last year of documents that may be found, where whole years decide."""
        if self._are_days():
            return None, None
        first, last = self._bounds()
        return first and first // 10_000, last and last // 10_000

    @property
    def days(self) -> tuple[int | None, int | None]:
        """The first and the last day of them otherwise, as 20240131."""
        return self._bounds() if self._are_days() else (None, None)

    def _are_days(self) -> bool:
        first, last = self._bounds()
        return (first or 101) % 10_000 != 101 or (last or 1231) % 10_000 != 1231

    def describe_filter(self, language: Language = "en") -> str:
        """What the filter by date and kind lets through, in words; "" without one."""
        given = (self.since, self.until, self.as_of, ", ".join(self.kinds))
        words = _FILTER_WORDS[language]
        parts = [form.format(one) for form, one in zip(words, given, strict=True) if one]
        return ("，" if language == "zh" else "; ").join(parts)

    @property
    def is_filtered(self) -> bool:
        """Whether date or kind decide what may be found."""
        return self._bounds() != (None, None) or bool(self.kinds)


def _parse_switch(value: object) -> object:
    return {True: "on", False: "off"}.get(value) if isinstance(value, bool) else value


class DangerSettings(SettingsSection):
    notice: Annotated[Literal["on", "off"], BeforeValidator(_parse_switch)] = "on"
    """Whether a question about an emergency or self-harm is answered with emergency contacts first
    (docs/guide/danger.md)."""
    region: str = ANYWHERE
    """Whose numbers are named: us, gb, cn, eu, …; any = those of no country."""
    emergency: str = Field(default="", max_length=200)
    """Whom to call in an emergency, instead of the region's, as in "2222"."""
    crisis: str = Field(default="", max_length=200)
    """Whom to call in a crisis, instead of the region's crisis line."""
    note: str = Field(default="", max_length=1_000)
    """A text of your own that ends the notice."""
    classifier: Annotated[Literal["on", "off"], BeforeValidator(_parse_switch)] = "on"
    """Whether a small classifier is asked beside the rules."""
    rules: OptionalPlace = None
    """A rules file of your own, in place of the packaged one."""

    @field_validator("region")
    @classmethod
    def _check_region(cls, region: str) -> str:
        if region not in region_names():
            raise ValueError(f"choose one of {', '.join(region_names())}")
        return region


class RunsSettings(SettingsSection):
    path: Place = Field(description='Folder of the recorded runs (default: "runs" in home).')
    keep: bool = True
    """Keep each run, so that it can be shown and replayed."""
    days: RealLimit = None
    """Days after which the server, and `osler forget --expired`, deletes a run."""


class BudgetSettings(SettingsSection):
    calls: Limit = None
    """Model calls of one run, at most; "none" = unbounded."""
    tokens: Limit = None
    """Tokens read, written or scored, at most."""
    searches: Limit = None
    """Searches, at most."""
    seconds: RealLimit = None
    """Seconds spent in model calls, at most; one that takes longer is stopped."""
    money: RealLimit = None
    """Money, at most, in the currency of [prices]; every model on a server needs a price then."""


_Switch = Annotated[
    Literal["off", "warn", "require"],
    # TOML and the environment read a bare off as false.
    BeforeValidator(lambda value: "off" if value is False else value),
]


class AuditSettings(SettingsSection):
    log: _Switch = "off"
    """The audit log (docs/guide/security.md): warn keeps one and goes on where it cannot be
    written; require answers nothing then. Needs the extra audit."""
    content: Literal["hash", "text"] = "hash"
    """What it holds of questions: their keyed hash, or their text."""
    path: OptionalPlace = None
    """Folder of the log (default: "audit" in home)."""
    key_file: OptionalPlace = None
    """File of the signing key (default: key.pem in the log's folder; made there)."""
    anchor: OptionalPlace = None
    """File outside of home that holds the last signed checkpoint, by which a log that was cut or
    set back is known (default: in the user's folder of states)."""
    copies: OptionalPlace = None
    """File in a second place, to which every hundredth signed checkpoint is
    appended."""


class ServeSettings(SettingsSection):
    host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    """Address to listen on; one that others can reach needs a key first (`osler serve key add`)."""
    port: Whole = Field(default=8642, ge=0, le=65_535, description="0 = one that is free.")
    workers: Whole = Field(default=1, ge=1, le=256)
    """Processes that answer, over one home. What follows is of each of them, but for a key's
    unfinished runs and tokens, which count together."""
    hosts: Names = ()
    """Names under which others call the server; its own address and loopback are always among
    them."""
    runs: Whole = Field(default=4, ge=1, le=10_000, description="Runs worked on at once.")
    waiting: Whole = Field(default=64, ge=0, le=100_000)
    """Runs that may wait; more are rejected (503)."""
    patients: bool = False
    """Whether MCP, on this machine alone, has a tool that reads records of `emr`."""
    sources: Names = ("public",)
    """Sources that callers on this machine find without a key: names, or "public" (all that are not
    private). A key has its own (`osler serve key add --source`)."""
    failed_keys: Whole = Field(default=10, ge=1, le=1_000_000)
    """Failed tries of one key from one address in a minute (429); ten times as many of all keys."""
    searches: Whole = Field(default=4, ge=1, le=1_000, description="Searches at once.")
    searches_waiting: Whole = Field(default=64, ge=0, le=100_000)
    """Searches that may wait; more are rejected."""
    caller_runs: Whole = Field(default=64, ge=1, le=100_000)
    """Unfinished runs of one caller, where the key says nothing else (429)."""
    caller_minute: Whole = Field(default=6_000, ge=1, le=1_000_000)
    """Requests of one caller in a minute, where the key says nothing else (429)."""
    run_seconds: Real = Field(default=600.0, gt=0, le=86_400)
    """Wall-clock seconds of one run, at most."""
    drain_seconds: Real = Field(default=30.0, ge=0, le=3_600)
    """Seconds that running work has to finish after a SIGTERM."""
    body_kib: Whole = Field(default=256, ge=1, le=65_536)
    """Kibibytes of one request, at most (413)."""
    uploads: SourceNames = ()
    """Sources into which documents may be sent over HTTP; none by default. Name one in
    access.private too, if only keys with that source are to find it."""
    upload_mib: Whole = Field(default=32, ge=1, le=1_024)
    """Mebibytes of a file that is sent, at most (413)."""
    upload_seconds: Whole = Field(default=30, ge=1, le=3_600)
    """Seconds of a processor that reading one file may take (422); twice as many by the clock."""
    upload_memory_mib: Whole = Field(default=1_024, ge=256, le=65_536)
    """Mebibytes of memory that reading one file may take (422)."""
    upload_documents: Whole = Field(default=1_000, ge=1, le=1_000_000)
    """Documents of one file, at most, and 50 times as many sections (422)."""
    caller_uploads: Whole = Field(default=4, ge=1, le=1_000)
    """Uploads of one caller that may wait or be read at once (429). Callers take turns."""
    uploads_waiting: Whole = Field(default=32, ge=1, le=10_000)
    """Uploads of all callers that may wait or be read at once; more are rejected (503)."""
    client_seconds: Real = Field(default=10.0, gt=0, le=3_600)
    """How long a client may take to send a request, or leave a reply unread."""
    connections: Whole = Field(default=1_024, ge=1, le=100_000)
    """Connections at once; more get 503."""
    hook_rules: OptionalPlace = None
    """A file of rules of your own for CDS Hooks, in place of the packaged sample."""
    hook_clients: OptionalPlace = None
    """A JSON file of the record systems whose signed requests (JWT) are taken: their public keys
    by issuer, or the address of these (JWKS)."""
    launch_servers: OptionalPlace = None
    """A JSON file of the record systems that may open Osler with a patient (SMART App Launch), by
    the address of their FHIR server."""
    fhir_servers: Names = ()
    """Addresses of FHIR servers from which a CDS Hooks service may read what a request did not
    bring, with the token that the request gives for it."""


class PatientSettings(SettingsSection):
    maps: Places = ()
    """Files or folders with maps of codes: GEM, SNOMED CT to ICD-10-CM, or a table."""
    target: Literal["ICD-9-CM", "ICD-10-CM"] = "ICD-9-CM"
    """Vocabulary in which diagnoses are compared (TC-RAG App. 8.5)."""


class NetworkSettings(SettingsSection):
    offline: bool = False
    """True: no network calls; only cached replies are used."""
    days: Real = Field(default=30.0, ge=0, le=3_650)
    """Days for which a fetched reply is used again."""
    private_hosts: Names = ()
    """Hosts of your own network that may be called; all others must be public."""


class WebSettings(SettingsSection):
    kind: Literal["none", "searxng", "bing"] = "none"
    """Web search: a SearXNG of yours, or an endpoint of the form of Bing's v7."""
    url: str = ""
    """"http://HOST:PORT" of SearXNG; "https://HOST/v7.0/search"."""
    key_file: OptionalPlace = None
    """File with the key; needed with kind = "bing"."""
    pages: bool = False
    """Fetch the pages that are found, not only their first words."""

    @model_validator(mode="after")
    def _check_service(self) -> WebSettings:
        if self.kind != NONE and not self.url.startswith(("http://", "https://")):
            raise ValueError(f'kind = "{self.kind}" needs url = "http(s)://…"')
        if self.kind == "bing" and self.key_file is None:
            raise ValueError('kind = "bing" needs key_file')
        return self


class PediaSettings(SettingsSection):
    kind: Literal["none", "mediawiki"] = "none"
    """Encyclopaedia: Wikipedia, or another MediaWiki."""
    url: str = "https://{language}.wikipedia.org/w/api.php"
    """Its api.php; {language} becomes en or zh."""
    whole: bool = False
    """Whole articles, not only introductions."""
    lookup: Literal["entity", "question"] = "entity"
    """What is looked up: the drug, disease or test that the question names (TC-RAG App. 8.5), and
    the question itself where none is found; or the question always."""


class PubMedSettings(SettingsSection):
    kind: Literal["none", "eutils"] = "none"
    """PubMed through NCBI's E-utilities."""
    url: str = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    """Of the E-utilities."""
    email: str = ""
    """Your address, which NCBI asks for."""
    key_file: OptionalPlace = None
    """File with your key: ten calls a second instead of three; without it, NCBI_API_KEY of the
    environment."""
