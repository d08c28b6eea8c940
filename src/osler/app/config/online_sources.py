"""Settings of patients' codes and of what lies outside. Nothing is called unless it is set."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from osler.app.config.fields import (
    NONE,
    Place,
    Real,
    SettingsSection,
    Whole,
    parse_none,
    split_list,
)

Places = Annotated[tuple[Place, ...], BeforeValidator(split_list)]
Names = Annotated[tuple[str, ...], BeforeValidator(split_list)]
KeyFile = Annotated[Place | None, BeforeValidator(parse_none)]


class PatientSettings(SettingsSection):
    maps: Places = Field(
        default=(),
        description="Files or folders with maps of codes: GEM, SNOMED CT to ICD-10-CM, or a table.",
    )
    target: Literal["ICD-9-CM", "ICD-10-CM"] = Field(
        default="ICD-9-CM",
        description="Vocabulary in which diagnoses are compared (TC-RAG App. 8.5).",
    )


class NetworkSettings(SettingsSection):
    offline: bool = Field(
        default=False, description="True: nothing is called; what was fetched before is used."
    )
    days: Real = Field(
        default=30.0, ge=0, le=3_650, description="Days for which a fetched reply is used again."
    )
    cache_mib: Whole = Field(
        default=256, ge=1, le=1_048_576, description="Mebibytes of fetched replies that are kept."
    )
    timeout_s: Real = Field(default=20.0, gt=0, le=3_600, description="Seconds for one reply.")
    private_hosts: Names = Field(
        default=(),
        description="Hosts of your own network that may be called; all others must be public.",
    )


class WebSettings(SettingsSection):
    kind: Literal["none", "searxng", "bing"] = Field(
        default="none",
        description="Web search: a SearXNG of yours, or an endpoint of the form of Bing's v7.",
    )
    url: str = Field(
        default="", description='"http://HOST:PORT" of SearXNG; "https://HOST/v7.0/search".'
    )
    key_file: KeyFile = Field(
        default=None, description='File with the key; needed with kind = "bing".'
    )
    pages: bool = Field(
        default=False, description="Fetch the pages that are found, not only their first words."
    )

    @model_validator(mode="after")
    def _check_service(self) -> WebSettings:
        if self.kind != NONE and not self.url.startswith(("http://", "https://")):
            raise ValueError(f'kind = "{self.kind}" needs url = "http(s)://…"')
        if self.kind == "bing" and self.key_file is None:
            raise ValueError('kind = "bing" needs key_file')
        return self


class PediaSettings(SettingsSection):
    kind: Literal["none", "mediawiki"] = Field(
        default="none", description="Encyclopaedia: Wikipedia, or another MediaWiki."
    )
    url: str = Field(
        default="https://{language}.wikipedia.org/w/api.php",
        description="Its api.php; {language} becomes en or zh.",
    )
    whole: bool = Field(default=False, description="Whole articles, not only introductions.")


class PubMedSettings(SettingsSection):
    kind: Literal["none", "eutils"] = Field(
        default="none", description="PubMed through NCBI's E-utilities."
    )
    url: str = Field(
        default="https://eutils.ncbi.nlm.nih.gov/entrez/eutils", description="Of the E-utilities."
    )
    email: str = Field(default="", description="Your address, which NCBI asks for.")
    key_file: KeyFile = Field(
        default=None,
        description="File with your key: ten calls a second instead of three; without it,"
        " NCBI_API_KEY of the environment.",
    )
