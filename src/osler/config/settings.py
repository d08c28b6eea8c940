"""What can be set, its bounds and its defaults; a default from a paper says where.

Models are frozen and refuse unknown keys. An optional number may be written
"none", so that a nearer layer can lift a bound that a farther one set.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from platformdirs import user_data_dir
from pydantic import BeforeValidator, Field, model_validator

from osler.config.baselines import BASELINES, AnyBaseline
from osler.config.fields import (
    Limit,
    Place,
    Real,
    RealLimit,
    Section,
    ShareLimit,
    SourceName,
    Whole,
    Year,
    listed,
    none,
)
from osler.config.hub import (
    DEVICE,
    DTYPE,
    KEY_FILE,
    REVISION,
    Device,
    Dtype,
    Embedder,
    KeyFile,
    RerankerSettings,
    weights_named,
)
from osler.config.outside import Emr, Net, Pedia, PubMed, Web
from osler.config.serving import Serve
from osler.config.unified import Unified
from osler.types import ALL_SOURCES, EMR


class Kb(Section):
    path: Place = Field(description='Folder of the knowledge base (default: "kb" in home).')
    sources: Annotated[tuple[SourceName, ...], BeforeValidator(listed)] = Field(
        default=(),
        description=f"Sources to search ({', '.join(ALL_SOURCES)} or your own);"
        f" empty = all but {EMR}.",
    )
    chunk: str = Field(
        default="omni",
        pattern=r"^(?:omni|kag|tc-rag|\d{2,6}[ct]?(?:\+\d{1,6})?)$",
        description="How texts that are added are cut: omni (at most 1,000 characters), kag"
        " (the same by chapter, web pages by paragraph), tc-rag (128 tokens, 50 repeated), or"
        ' numbers: "800" or "800+100" characters, "256t+64" tokens.',
    )
    engine: Literal["auto", "sqlite", "edge", "qdrant"] = Field(
        default="auto",
        description="What searches: the SQLite file, the embedded engine (extra edge), or a"
        " Qdrant server; auto: the server where url is set, else the embedded engine where it is"
        " installed and the passages are many, else the SQLite file.",
    )
    url: str = Field(
        default="", description='A Qdrant server, as "http://HOST:6333"; see `osler kb push`.'
    )
    key_file: Annotated[Place | None, BeforeValidator(none)] = Field(
        default=None,
        description="File with the server's key; without one, QDRANT_API_KEY of the environment.",
    )
    collection: str = Field(
        default="osler",
        pattern=r"[A-Za-z0-9_-]{1,64}",
        description="What the names of its collections on the server begin with.",
    )

    @model_validator(mode="after")
    def _server_named(self) -> Kb:
        if self.engine == "qdrant" and not self.url:
            raise ValueError('engine = "qdrant" needs url = "http://HOST:6333"')
        return self


class Runs(Section):
    path: Place = Field(description='Folder of the recorded runs (default: "runs" in home).')
    keep: bool = Field(
        default=True, description="Keep each run, so that it can be shown and replayed."
    )


class Model(Section):
    kind: Literal["packaged", "gguf", "openai", "transformers"] = Field(
        default="packaged",
        description="The small model that comes with Osler, a GGUF file of yours, a server"
        " that speaks the OpenAI interface, or weights for transformers (extra train).",
    )
    path: Annotated[Place | None, BeforeValidator(none)] = Field(
        default=None,
        description='The GGUF file, needed with kind = "gguf"; with "transformers" a model folder'
        " or a GGUF file.",
    )
    url: str = Field(
        default="", description='The server, as "http://HOST:PORT/v1"; needed with kind = "openai".'
    )
    name: str = Field(
        default="", description="The model's name on the server, or its id on the hub."
    )
    revision: str = Field(default="", description=REVISION)
    adapter: Annotated[Place | None, BeforeValidator(none)] = Field(
        default=None, description='Folder of a PEFT adapter; with kind = "transformers".'
    )
    dtype: Dtype = DTYPE
    device: Device = DEVICE
    key_file: KeyFile = KEY_FILE
    timeout_s: Real = Field(
        default=300.0, gt=0, le=86_400, description="Seconds for one call of the model, at most."
    )
    slots: Whole = Field(
        default=1,
        ge=1,
        le=64,
        description="Calls that the embedded engine works on at once; each has memory for a"
        " whole context window.",
    )
    context: Whole = Field(
        default=8192, ge=512, le=1_048_576, description="Context window, in tokens."
    )
    threads: Whole = Field(
        default=0,
        ge=0,
        le=1024,
        description="Processor threads; 0 = one less than there are, at least 1.",
    )
    writes: Literal["auto", "yes", "no"] = Field(
        default="auto",
        description="Whether the model words answers, or they are quoted from passages;"
        " auto: yes, but never by the packaged model.",
    )

    @model_validator(mode="after")
    def _path_with_gguf(self) -> Model:
        if self.kind == "gguf" and self.path is None:
            raise ValueError('kind = "gguf" needs path = "FILE.gguf"')
        if self.kind == "openai" and not (self.url and self.name):
            raise ValueError('kind = "openai" needs url = "http://HOST:PORT/v1" and name')
        if self.kind == "transformers":
            weights_named(self.path, self.name, self.revision)
        return self

    @property
    def thread_count(self) -> int:
        return self.threads or max(1, (os.cpu_count() or 1) - 1)


Role = Literal["planner", "reader", "judge", "summariser"]
ROLES: tuple[Role, ...] = get_args(Role)
_ROLE_SECTIONS = tuple(f"roles.{role}" for role in ROLES)


class Roles(Section):
    """Who does what. A role that is not set is played by [model]."""

    planner: Model | None = Field(
        default=None, description="Decides what to do next: actions, plans, what to ask."
    )
    reader: Model | None = Field(
        default=None, description="Reads the evidence and gives the answer."
    )
    judge: Model | None = Field(default=None, description="Grades answers and plans.")
    summariser: Model | None = Field(
        default=None, description="Shortens what a memory holds (TC-RAG's Summary)."
    )


class SamplingSettings(Section):
    temperature: Real = Field(default=0.6, ge=0, le=2, description="TC-RAG App. 8.5.")
    max_tokens: Whole = Field(
        default=500, ge=1, le=65_536, description="Tokens of one reply (TC-RAG App. 8.5)."
    )
    seed: Whole = Field(default=0, ge=0, le=2**32 - 1, description="Same seed, same run.")


class Retrieve(Section):
    k: Whole = Field(
        default=10, ge=1, le=200, description="Passages a search gives (Omni-RAG §5.1.2)."
    )
    rrf_k: Whole = Field(
        default=10,
        ge=0,
        le=10_000,
        description="Reciprocal rank fusion: score = weight / (rrf_k + rank).",
    )
    dense_weight: Real = Field(default=1.0, ge=0, le=100, description="Weight of the vector index.")
    lexical_weight: Real = Field(default=0.7, ge=0, le=100, description="Weight of the word index.")
    depth: Whole = Field(
        default=100, ge=1, le=10_000, description="Candidates that each index hands to the fusion."
    )
    year_from: Year = Field(
        default=None, description='Only documents from this year on, or "none".'
    )
    year_to: Year = Field(default=None, description='Only documents up to this year, or "none".')
    languages: Annotated[tuple[Literal["en", "zh"], ...], BeforeValidator(listed)] = Field(
        default=(), description="Only passages in these languages; empty = all."
    )
    kinds: Annotated[tuple[str, ...], BeforeValidator(listed)] = Field(
        default=(),
        description='Only these publication types, as "Review,Meta-Analysis"; empty = all.',
    )
    retracted: bool = Field(default=False, description="Also find what was retracted.")
    trust: Whole = Field(
        default=1, ge=1, le=5, description="Only documents of at least this trust (5 = guideline)."
    )

    @model_validator(mode="after")
    def _some_weight(self) -> Retrieve:
        if self.dense_weight == self.lexical_weight == 0:
            raise ValueError("dense_weight and lexical_weight cannot both be 0")
        return self


class AnswerSettings(Section):
    statements: Whole = Field(
        default=3, ge=1, le=50, description="Sentences of an extractive answer, at most."
    )
    coverage: Real = Field(
        ge=0,
        le=1,
        default=0.49,
        description="Share of an English question's words, by rarity, from which a passage"
        " answers it.",
    )
    coverage_zh: Real = Field(
        ge=0, le=1, default=0.32, description="The same of a Chinese question."
    )
    relevance: Real = Field(
        ge=0,
        le=1,
        default=0.5,
        description="Cosine from which an English sentence is near enough without that share.",
    )
    relevance_zh: Real = Field(
        ge=0,
        le=1,
        default=0.45,
        description="The same for Chinese: a share of words, not a cosine.",
    )
    candidates: Whole = Field(
        default=8, ge=1, le=1_000, description="Sentences that are weighed for an answer."
    )
    options: Literal["texts", "letters", "written"] = Field(
        default="texts",
        description="How an option is chosen where answers are quoted: by the likelihood of its"
        " text, by that of its letter, which only a strong model knows, or as the letter that the"
        " model writes, under a grammar where it takes one.",
    )


_PASSAGES = Field(default=5, ge=1, le=200, description="Passages a search gives to the model.")


class Direct(Section):
    """The model alone, without evidence."""

    kind: Literal["direct"] = "direct"


class Cot(Section):
    """The model alone, step by step."""

    kind: Literal["cot"] = "cot"


class Rag(Section):
    """One search, then the answer."""

    kind: Literal["rag"] = "rag"
    k: Whole = Field(
        default=10, ge=1, le=200, description="Passages that are read (Omni-RAG §5.1.2)."
    )


ToolName = Literal[
    "DOC_RAG",
    "KG_RAG",
    "KG_CHAINS",
    "KG_COMMUNITIES",
    "KG_NEAR",
    "PEDIA_RAG",
    "WEB_RAG",
    "EMR_RAG",
    "HYPOTHESIS_OUTPUT",
    "MEDICAL_NER",
    "KNOWLEDGE_ORGANIZE",
    "FILTER",
]
"""The tools of `osler.tcrag.tools`."""


class TcRag(Section):
    """A memory stack whose state value says when a conclusion may stand."""

    kind: Literal["tc-rag"] = "tc-rag"
    metric: Literal["cppl", "uct", "off"] = Field(
        default="cppl",
        description="State value: conditional perplexity (Eq. 4), uncertainty (Eq. 5), or none.",
    )
    sigma: RealLimit = Field(
        default=None,
        description='A conclusion stands below it; "none" = 10 for cppl, 20 for uct'
        " (TC-RAG App. 8.5), or what was fitted to the packaged model.",
    )
    max_loop: Whole = Field(
        default=8,
        ge=1,
        le=1_000,
        description="Actions, at most (Alg. 1, line 4; the value is that of the released code).",
    )
    backtrack: bool = Field(default=True, description="False: the ablation without Backtrack.")
    summary: bool = Field(default=True, description="False: the ablation without Summary.")
    visible: bool = Field(default=False, description="Also show the state value to the model.")
    k: Whole = _PASSAGES
    moves: Literal["auto", "any", "guided"] = Field(
        default="auto",
        description="any: every action at every step, as in the paper; guided: only those that"
        " the memory makes sense of, for small models; auto: guided where the model does not"
        " word answers.",
    )
    tools: Annotated[tuple[ToolName, ...], BeforeValidator(listed)] = Field(
        default=(),
        description="The tools that are offered; empty = a search for each kind of source and"
        " for the concept graph. The released code's helpers are offered only when named"
        " (HYPOTHESIS_OUTPUT, MEDICAL_NER, KNOWLEDGE_ORGANIZE, FILTER).",
    )
    dialect: Literal["paper", "released"] = Field(
        default="paper",
        description="How replies are read: by the paper's tags, or by the rules of the authors'"
        " program (Action, Action Input, Final Answer).",
    )


class KagThinker(Section):
    """A question taken apart into logical forms, each solved in depth."""

    kind: Literal["kag-thinker"] = "kag-thinker"
    decompose: bool = Field(
        default=True, description="False: the question itself is the only step (an ablation)."
    )
    boundary: Literal["both", "self-check", "likelihood", "none"] = Field(
        default="both",
        description="What must hold for the model's own answer to stand (KAG-Thinker §3.2);"
        " none: everything is looked up.",
    )
    tau: ShareLimit = Field(
        default=None,
        description='Least probability of a token inside the box; "none" = as calibrated, else 0.5'
        " (the paper gives no value).",
    )
    retriever: Literal["hybrid", "text"] = Field(
        default="hybrid",
        description="hybrid: the graph source is asked by logical form as well (KAG-Thinker §3.4);"
        " text: by words alone, as all others (§4.1).",
    )
    k: Whole = Field(
        default=3, ge=1, le=200, description="Passages of one search (KAG-Thinker §4.1)."
    )
    turns: Whole = Field(
        default=10,
        ge=1,
        le=100,
        description="Searches for one sub-question, at most (the value of the released code).",
    )
    formulas: bool = Field(
        default=True,
        description="Try a verified formula before a program; false: programs only, as the paper.",
    )


class OmniRag(Section):
    """A plan says which source is asked, and in which words; one reading answers."""

    kind: Literal["omni-rag"] = "omni-rag"
    planner: Literal[
        "auto", "original", "query2doc", "prompting", "reflexion", "serts", "trained"
    ] = Field(
        default="auto",
        description="Who plans (Omni-RAG App. D.3); trained: the planner's model as it was trained"
        " (an adapter, say); auto: prompting, but original where the planner's model may not"
        " word medicine.",
    )
    queries: Whole = Field(
        default=3, ge=1, le=20, description="Queries for a source, at most (Omni-RAG §4.1)."
    )
    k: Whole = Field(
        default=10, ge=1, le=200, description="Passages that one query finds (Omni-RAG §5.1.2)."
    )
    per_source: Whole = Field(
        default=5, ge=1, le=200, description="Passages of one source that are read, at most."
    )
    rounds: Whole = Field(
        default=8, ge=1, le=100, description="Plans that reflexion and serts try (App. D.3)."
    )
    width: Whole = Field(
        default=3, ge=1, le=20, description="Children of a node of serts; the paper gives none."
    )
    judged: Whole = Field(
        default=5,
        ge=1,
        le=200,
        description="Passages of one query that the judge of reflexion and serts reads: the"
        " better half (Omni-RAG §5.1.2).",
    )


Strategy = Annotated[
    Direct | Cot | Rag | TcRag | KagThinker | OmniRag | Unified | AnyBaseline,
    Field(discriminator="kind"),
]
STRATEGIES: dict[str, type[Section]] = {
    "direct": Direct,
    "cot": Cot,
    "rag": Rag,
    "tc-rag": TcRag,
    "kag-thinker": KagThinker,
    "omni-rag": OmniRag,
    "unified": Unified,
    **BASELINES,
}


class Calibration(Section):
    """What `osler calibrate` found. It is used for the model and metric it was fitted to,
    and only where strategy.sigma, or strategy.tau, is not set."""

    sigma: RealLimit = Field(default=None, description="The quantile of the state values.")
    metric: Literal["cppl", "uct"] = Field(default="cppl", description="Of which state value.")
    model: str = Field(default="", description="Identity of the model that it was fitted to.")
    quantile: Real = Field(
        default=0.9, gt=0, lt=1, description="Share of the first conclusions that lie below sigma."
    )
    n: Whole = Field(default=0, ge=0, le=1_000_000_000, description="Conclusions that were valued.")
    date: str = Field(default="", description="When it was fitted.")
    questions: str = Field(default="", description="On which questions.")
    tau: ShareLimit = Field(
        default=None, description="From which least probability own answers may be believed."
    )
    tau_model: str = Field(default="", description="Identity of the reader that tau was fitted to.")
    tau_share: Real = Field(
        default=0.9, gt=0, lt=1, description="Share of the answers from tau on that are right."
    )
    tau_n: Whole = Field(default=0, ge=0, le=1_000_000_000, description="Answers of its own.")
    tau_date: str = Field(default="", description="When tau was fitted.")
    tau_questions: str = Field(default="", description="On which questions tau was fitted.")


class BudgetSettings(Section):
    calls: Limit = Field(
        default=None, description='Model calls of one run, at most; "none" = unbounded.'
    )
    tokens: Limit = Field(default=None, description="Tokens read, written or scored, at most.")
    searches: Limit = Field(default=None, description="Searches, at most.")
    seconds: RealLimit = Field(
        default=None,
        description="Seconds spent in model calls, at most; one that takes longer is stopped.",
    )


def _default_home() -> Path:
    return Path(user_data_dir("osler", appauthor=False))


class Settings(Section):
    """All that can be set. `kb.path` and `runs.path` lie in `home` unless they are set."""

    home: Place = Field(
        default_factory=_default_home, description="Where Osler keeps what it makes."
    )
    kb: Kb = Field(
        default_factory=lambda: Kb(path=_default_home() / "kb"), description="The knowledge base."
    )
    runs: Runs = Field(
        default_factory=lambda: Runs(path=_default_home() / "runs"), description="Recorded runs."
    )
    model: Model = Field(
        default=Model(), description="The language model, in every role that has none of its own."
    )
    roles: Roles = Field(default=Roles(), description="Models of single roles.")
    sampling: SamplingSettings = Field(default=SamplingSettings(), description="How it decodes.")
    retrieve: Retrieve = Field(default=Retrieve(), description="How passages are found.")
    embedder: Embedder = Field(default=Embedder(), description="What makes vectors of texts.")
    reranker: RerankerSettings = Field(
        default=RerankerSettings(), description="Who looks at found passages again."
    )
    answer: AnswerSettings = Field(default=AnswerSettings(), description="How answers are made.")
    strategy: Strategy = Field(default=TcRag(), description="How a question is solved.")
    calibration: Calibration = Field(
        default=Calibration(), description="What `osler calibrate` wrote; not for the hand."
    )
    budget: BudgetSettings = Field(default=BudgetSettings(), description="Bounds of one run.")
    emr: Emr = Field(default=Emr(), description="How patients are compared.")
    net: Net = Field(default=Net(), description="How what lies outside is called, if it is.")
    web: Web = Field(default=Web(), description="Web search; off unless set.")
    pedia: Pedia = Field(default=Pedia(), description="An encyclopaedia; off unless set.")
    pubmed: PubMed = Field(default=PubMed(), description="PubMed; off unless set.")
    serve: Serve = Field(default=Serve(), description="The server (`osler serve`).")

    @model_validator(mode="before")
    @classmethod
    def _under_home(cls, data: Any) -> Any:
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
    def _as_the_model(cls, data: Any) -> Any:
        """What a role does not set for itself is as in [model]."""
        roles, usual = (data.get(name) for name in ("roles", "model"))
        if isinstance(usual, Model):
            usual = usual.model_dump()
        if not isinstance(roles, dict) or not isinstance(usual, dict):
            return data
        filled = {
            role: {**usual, **given} if given and isinstance(given, dict) else given or None
            for role, given in roles.items()
        }
        return {**data, "roles": filled}

    def role(self, role: Role) -> Model:
        """The model that plays the role."""
        return getattr(self.roles, role) or self.model


def allowed(section: str, kind: str = "") -> tuple[str, ...]:
    """Keys of a section; "" = the sections and top-level keys; `kind` chooses a strategy.

    Raises `KeyError` for an unknown section or strategy.
    """
    if not section:
        return tuple(Settings.model_fields)
    if section == "strategy":
        return tuple(STRATEGIES[kind or "tc-rag"].model_fields)
    return tuple(model_of(section).model_fields)


def section_names() -> tuple[str, ...]:
    """Every section, as it is written in a file."""
    return tuple(
        dotted
        for name in Settings.model_fields
        if is_section(name)
        for dotted in (_ROLE_SECTIONS if name == "roles" else (name,))
    )


def model_of(section: str) -> type[Section]:
    """The model class of a plain section or of a role. Raises `KeyError`."""
    if section in _ROLE_SECTIONS:
        return Model
    annotation = Settings.model_fields[section].annotation
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    raise KeyError(section)


def is_section(name: str) -> bool:
    if name == "strategy" or name in _ROLE_SECTIONS:
        return True
    field = Settings.model_fields.get(name)
    return field is not None and not get_args(field.annotation) and name != "home"
