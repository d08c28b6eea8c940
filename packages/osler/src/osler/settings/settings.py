"""All settings with their bounds and defaults; a default from a paper cites its place.

Sections are frozen and refuse unknown keys. An optional number may be written
"none", so that a nearer layer can lift a bound that a farther one set.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from platformdirs import user_data_dir
from pydantic import BeforeValidator, Field, field_validator, model_validator

from osler.errors import BadConfig
from osler.methods.tcrag.stack import Metric
from osler.settings.fields import (
    OptionalPlace,
    Place,
    Real,
    RealLimit,
    SettingsSection,
    ShareLimit,
    SourceNames,
    Whole,
    split_list,
)
from osler.settings.models import (
    ROLE_SECTIONS,
    EmbedderSettings,
    ModelSettings,
    PriceSettings,
    RerankerSettings,
    Role,
    RoleSettings,
    SamplingSettings,
)
from osler.settings.sections import (
    AccessSettings,
    AuditSettings,
    BudgetSettings,
    DangerSettings,
    NetworkSettings,
    PatientSettings,
    PediaSettings,
    PubMedSettings,
    RetrieveSettings,
    RunsSettings,
    ServeSettings,
    WebSettings,
)
from osler.settings.strategies import STRATEGIES, USUAL_STRATEGY, AutoSettings, Strategy
from osler.sources.catalogue import ALL_SOURCES, EMR

Index = Literal["chunk", "knowledge_unit", "atomic_query", "outline", "summary", "table", "graph"]


class KbSettings(SettingsSection):
    path: Place = Field(description='Folder of the knowledge base (default: "kb" in home).')
    sources: SourceNames = Field(
        default=(),
        description=f"Sources to search ({', '.join(ALL_SOURCES)} or your own);"
        f" empty = all that are not private, as {EMR} is.",
    )
    chunk: str = Field(default="omni", pattern=r"^(?:omni|kag|tc-rag|\d{2,6}[ct]?(?:\+\d{1,6})?)$")
    """How added texts are split into chunks: omni (at most 1,000 characters), kag (the same by
    chapter, web pages by paragraph), tc-rag (128 tokens, 50 repeated), or numbers: "800" or
    "800+100" characters, "256t+64" tokens."""
    indexes: Annotated[tuple[Index, ...], BeforeValidator(split_list)] = Field(
        default=("chunk",), min_length=1
    )
    """What is searched for chunks: their own text (chunk), what was extracted from them
    (knowledge_unit, atomic_query, outline, summary, table; see `osler kb index`), and the graph of
    their names (graph)."""
    engine: Literal["auto", "sqlite", "edge", "qdrant"] = "auto"
    """The search engine: the SQLite file, the embedded engine (extra edge), or a Qdrant server;
    auto: the server where url is set, else the embedded engine where it is installed and the
    passages are many, else the SQLite file."""
    url: str = ""
    """A Qdrant server, as "http://HOST:6333"; see `osler kb export`."""
    key_file: OptionalPlace = None
    """File with the server's key; without one, QDRANT_API_KEY of the environment."""
    collection: str = Field(default="osler", pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """What the names of its collections on the server begin with."""

    @field_validator("chunk")
    @classmethod
    def _check_chunk(cls, chunk: str) -> str:
        if chunk[0].isdigit():
            # Here: it brings a library, which a start without numbers does not need.
            from osler.kb.ingest.chunk import parse_chunking

            try:
                parse_chunking(chunk)
            except BadConfig as error:
                raise ValueError(str(error)) from error
        return chunk

    @model_validator(mode="after")
    def _check_server(self) -> KbSettings:
        if self.engine == "qdrant" and not self.url:
            raise ValueError('engine = "qdrant" needs url = "http://HOST:6333"')
        return self


class AnswerSettings(SettingsSection):
    statements: Whole = Field(default=3, ge=1, le=50)
    """Sentences of an extractive answer, at most."""
    answers_from: Real = Field(default=0.4, ge=0, le=1)
    """Least probability of an answer; a less likely one is shown as the closest passage, or not at
    all."""
    nearest_from: Real = Field(default=0.14, ge=0, le=1)
    """Least probability of a closest passage."""
    nearest: bool = True
    """Where no sentence answers, show the closest passage, labelled as such; false: abstain."""
    judge: Literal["judge", "model", "off"] = "judge"
    """What decides which sentences answer where answers are quoted: the expert judge, beside the
    encoder match (English; in Chinese meaning and words); model: of those that they like best, the
    reader's own model names the ones that answer, and writes nothing; off: the cosine of the
    packaged encoder alone."""
    judge_path: OptionalPlace = None
    """Folder of an expert judge of your own."""
    match_path: OptionalPlace = None
    """Folder of an expert match of your own."""
    options: Literal["texts", "letters", "written"] = "texts"
    """How an option is chosen where answers are quoted: by the likelihood of its text, by that of
    its letter, which only a strong model knows, or as the letter that the model writes, under a
    grammar where it takes one."""
    verdicts: Literal["supports", "likelihood"] = "supports"
    """What chooses among yes, no and maybe where answers are quoted: the expert supports, by the
    wording of the passages (English), or as options says."""
    verdicts_path: OptionalPlace = None
    """Folder of an expert supports of your own."""
    consistent: bool = True
    """Leave out passages that more trusted ones contradict, by amounts and directions, and say
    so."""
    uncited: Literal["auto", "show", "drop"] = "auto"
    """Handling of model sentences without supporting evidence: show marks them as not confirmed;
    drop leaves them out and says so; auto drops them where a passage that was read holds an
    instruction to a program or has trust 1, if they concern neither the passages nor the
    question."""
    confirm: Literal["words", "model"] = "words"
    """What confirms the sentences that a model writes: the words, numbers, names and directions of
    the passages; model: the reader's own model, asked once more which passages bear out which."""
    cautions: Literal["all", "none"] = "all"
    """Cautions about the cited evidence that was retracted or has a newer edition, by rules and
    without a model."""


class CalibrationSettings(SettingsSection):
    """The result of `osler calibrate`. It is used for the model and metric it was fitted to,
    and only where strategy.sigma, or strategy.tau, is not set."""

    sigma: RealLimit = None
    """A conclusion stands below it."""
    metric: Metric = Field(default="cppl", description="State value that sigma is of.")
    model: str = Field(default="", description="Identity of the model that it was fitted to.")
    basis: str = Field(default="", description="To what sigma was fitted, when, and its bound.")
    tau: ShareLimit = None
    """Least probability at which the model's own answers stand."""
    tau_model: str = Field(default="", description="Identity of the reader that tau was fitted to.")
    tau_basis: str = Field(default="", description="To what tau was fitted, and when.")
    sureness: ShareLimit = None
    """Least sureness of an answer; below it the answer is refused."""
    sureness_model: str = ""
    """Identity of the expert that says how sure answers are."""
    sureness_basis: str = ""
    """Its bound on the share of wrong answers, to what it was fitted, and when."""


def _default_home() -> Path:
    return Path(user_data_dir("osler", appauthor=False))


class Settings(SettingsSection):
    """All that can be set. `kb.path` and `runs.path` lie in `home` unless they are set."""

    home: Place = Field(default_factory=_default_home)
    """Folder of everything that Osler stores."""
    kb: KbSettings = Field(default_factory=lambda: KbSettings(path=_default_home() / "kb"))
    """The knowledge base."""
    access: AccessSettings = AccessSettings()
    """Private sources, and who may read them."""
    audit: AuditSettings = AuditSettings()
    """The audit log: who asked what, and what was shown."""
    runs: RunsSettings = Field(default_factory=lambda: RunsSettings(path=_default_home() / "runs"))
    """Recorded runs."""
    model: ModelSettings = ModelSettings()
    """The language model of every role without one of its own."""
    roles: RoleSettings = Field(default=RoleSettings(), description="Models of single roles.")
    sampling: SamplingSettings = Field(default=SamplingSettings(), description="How it decodes.")
    retrieve: RetrieveSettings = RetrieveSettings()
    """Passage retrieval."""
    embedder: EmbedderSettings = EmbedderSettings()
    """The text encoder."""
    reranker: RerankerSettings = RerankerSettings()
    """The reranker of retrieved passages."""
    answer: AnswerSettings = Field(default=AnswerSettings(), description="How answers are made.")
    danger: DangerSettings = DangerSettings()
    """Emergency contacts for people in danger."""
    strategy: Strategy = Field(default=AutoSettings(), description="How a question is solved.")
    calibration: CalibrationSettings = CalibrationSettings()
    """Written by `osler calibrate`; do not edit."""
    budget: BudgetSettings = Field(default=BudgetSettings(), description="Bounds of one run.")
    prices: PriceSettings = Field(default=PriceSettings(), description="What tokens cost.")
    emr: PatientSettings = PatientSettings()
    """How patients are compared."""
    net: NetworkSettings = NetworkSettings()
    """Network access to online services."""
    web: WebSettings = Field(default=WebSettings(), description="Web search; off unless set.")
    pedia: PediaSettings = PediaSettings()
    """An encyclopaedia; off unless set."""
    pubmed: PubMedSettings = Field(default=PubMedSettings(), description="PubMed; off unless set.")
    serve: ServeSettings = Field(default=ServeSettings(), description="The server (`osler serve`).")

    @model_validator(mode="before")
    @classmethod
    def _fill_folders(cls, data: Any) -> Any:
        """Fills in the folders that follow from `home`."""
        if not isinstance(data, dict):
            return data
        home = data.get("home")
        base = Path(home).expanduser() if isinstance(home, str | Path) else _default_home()
        filled = dict(data)
        for section, folder in (("kb", "kb"), ("runs", "runs")):
            given = filled.get(section, {})
            if isinstance(given, dict):
                filled[section] = {"path": base / folder, **given}
        return filled

    @model_validator(mode="before")
    @classmethod
    def _fill_roles(cls, data: Any) -> Any:
        """Fills in from [model] the keys that a role does not set."""
        roles, usual = (data.get(name) for name in ("roles", "model"))
        if isinstance(usual, ModelSettings):
            usual = usual.model_dump()
        if not isinstance(roles, dict) or not isinstance(usual, dict):
            return data
        filled = {
            role: {**usual, **given} if given and isinstance(given, dict) else given or None
            for role, given in roles.items()
        }
        return {**data, "roles": filled}

    def model_for(self, role: Role) -> ModelSettings:
        """The model that plays the role."""
        return getattr(self.roles, role) or self.model


def allowed_keys(section: str, kind: str = "") -> tuple[str, ...]:
    """Keys of a section; "" = the sections and top-level keys; `kind` chooses a strategy.

    Raises `KeyError` for an unknown section or strategy.
    """
    if not section:
        return tuple(Settings.model_fields)
    if section == "strategy":
        return tuple(STRATEGIES[kind or USUAL_STRATEGY].model_fields)
    return tuple(model_of(section).model_fields)


def section_names() -> tuple[str, ...]:
    """Every section, as it is written in a file."""
    return tuple(
        dotted
        for name in Settings.model_fields
        if is_section(name)
        for dotted in (ROLE_SECTIONS if name == "roles" else (name,))
    )


def model_of(section: str) -> type[SettingsSection]:
    """The model class of a plain section or of a role. Raises `KeyError`."""
    if section in ROLE_SECTIONS:
        return ModelSettings
    annotation = Settings.model_fields[section].annotation
    if isinstance(annotation, type) and issubclass(annotation, SettingsSection):
        return annotation
    raise KeyError(section)


def is_section(name: str) -> bool:
    if name == "strategy" or name in ROLE_SECTIONS:
        return True
    field = Settings.model_fields.get(name)
    return field is not None and not get_args(field.annotation) and name != "home"
