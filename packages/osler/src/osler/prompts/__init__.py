"""Prompts are files with a contract.

`kag/decompose.md` and `kag/decompose.zh.md` are two languages of one prompt. The front matter
gives the origin of the wording and the variables; rendering rejects a missing and an unknown
variable. `cite(1)` renders the form of a citation in any prompt. A prompt's hash is recorded with
every model call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from osler.errors import OslerError
from osler.text import load_plugins
from osler.types import Language, Question, citation_mark

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment


class BadPrompt(OslerError):
    """A prompt file without front matter, or rendered with other variables: a mistake in the
    code."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    name: str
    language: Language
    source: str
    """Origin of the wording, from the front matter."""
    variables: frozenset[str]
    body: str

    @property
    def identity(self) -> str:
        """Name, language and hash of the wording: "tcrag/act.zh@1f3a9c2e"."""
        digest = hashlib.sha256(self.body.encode()).hexdigest()[:8]
        suffix = "" if self.language == "en" else f".{self.language}"
        return f"{self.name}{suffix}@{digest}"


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    text: str
    identity: str

    @property
    def name(self) -> str:
        """Its name in any language: "tcrag/act"."""
        return self.identity.partition("@")[0].partition(".")[0]


@cache
def prompt_folders() -> tuple[str, ...]:
    """Packages whose files are prompts: this one, and the entry points of `osler.prompts`."""
    brought = load_plugins("osler.prompts").values()
    return (__name__, *(package.__name__ for package in brought))


@cache
def load_prompt(name: str, language: Language) -> PromptFile:
    """Loads a prompt file. Raises `BadPrompt` when it is missing or has no front matter."""
    # English files have no suffix: they are the papers' originals.
    suffix = "" if language == "en" else f".{language}"
    text = _read_file(f"{name}{suffix}.md")
    head, separator, body = text.removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if not separator or not {"source", "variables"} <= fields.keys():
        raise BadPrompt(f"{name}{suffix}.md needs front matter with `source` and `variables`")
    variables = frozenset(filter(None, fields["variables"].strip("[]").replace(",", " ").split()))
    return PromptFile(name, language, fields["source"], variables, body.strip("\n"))


def _read_file(name: str) -> str:
    for folder in prompt_folders():
        with suppress(FileNotFoundError):
            return files(folder).joinpath(name).read_text(encoding="utf-8")
    raise BadPrompt(f"no prompt {name}")


def render_prompt(name: str, language: Language, **values: object) -> RenderedPrompt:
    """Renders a prompt. Raises `BadPrompt` unless `values` are exactly its variables."""
    prompt = load_prompt(name, language)
    _check_values(prompt, values)
    return RenderedPrompt(_compiled_template(prompt.body).render(values), prompt.identity)


def render_question_prompt(name: str, question: Question, /, **values: object) -> RenderedPrompt:
    """Renders a prompt about a question, in its language, with its text and its options.

    `question` and `options` are filled in where the prompt has them and `values` do not.
    """
    known = {"question": question.text, "options": question.lettered}
    wanted = load_prompt(name, question.language).variables
    known = {name: value for name, value in known.items() if name in wanted}
    return render_prompt(name, question.language, **{**known, **values})


def _check_values(prompt: PromptFile, values: Mapping[str, object]) -> None:
    if missing := prompt.variables - values.keys():
        raise BadPrompt(f"{prompt.name}: missing {', '.join(sorted(missing))}")
    if unknown := values.keys() - prompt.variables:
        raise BadPrompt(f"{prompt.name}: unknown {', '.join(sorted(unknown))}")


@cache
def _compiled_template(body: str) -> Template:
    """The compiled template; compiling takes a hundred times as long as rendering."""
    return _sandbox_environment().from_string(body)


@cache
def _sandbox_environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    # Prompts are plain text for a model, never markup for a browser.
    environment = SandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    # The form of citations has one home: prompts ask for what answers are read by.
    environment.globals["cite"] = citation_mark
    return environment
