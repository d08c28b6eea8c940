"""Settings of patients' codes and of online services. Nothing is called unless it is set."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from osler.settings.fields import NONE, Names, OptionalPlace, Places, Real, SettingsSection


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
