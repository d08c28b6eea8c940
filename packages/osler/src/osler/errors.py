"""Every error that Osler raises on purpose.

    OslerError                      exit 1
    ├── BadQuestion                 exit 2   empty, too long, binary, only options
    ├── BadArgument                 exit 2   a word that means nothing where it stands
    ├── BadConfig                   exit 3   a setting or an osler.toml
    │   ├── MissingExtra            exit 3   a package that an import needs
    │   └── UnknownStrategy         exit 3
    ├── KnowledgeBaseError          exit 4
    │   ├── KnowledgeBaseBusy       exit 4   another process is writing to it
    │   ├── KnowledgeBaseMissing    exit 4   no folder, or nothing in it
    │   ├── KnowledgeBaseMismatch   exit 4   another schema, another encoder
    │   ├── KnowledgeBaseUnbuilt    exit 4   half-built: passages without an index
    │   ├── MalformedSource         exit 4   a corpus file that cannot be read at all
    │   │   └── MissingPath         exit 2   there is no such file or folder
    │   ├── UnnamedSource           exit 2   nobody says to which source a file belongs
    │   └── UnknownPassage          exit 2   nothing has this id
    ├── SourceUnavailable           exit 6   a source that is down is not an empty source
    ├── ModelError                  exit 5
    │   ├── ModelMissing            exit 5   weights absent, truncated or of another hash
    │   ├── ModelUnreachable        exit 5
    │   ├── PromptTooLong           exit 5   no room in the model's context
    │   └── CapabilityMissing       exit 5   the model cannot do what the method needs
    ├── BadCalculation              exit 1   a formula's inputs, or code that was not run
    ├── MalformedOutput             exit 1   model text that no parser could read
    ├── StorageFailed               exit 1   a disk that is full, read-only or broken
    ├── BadRun                      exit 1   a recorded run that cannot be read or replayed
    │   ├── UnknownRun              exit 2   nothing has this id
    │   └── TapeMiss                exit 1   replay asked for what was never recorded
    └── (a spent budget is no error: it is `Halt.BUDGET`)

Each bears `fix`, the command or edit that mends it, and the process's exit
status (`docs/guide/cli.md`); the command line prints `message` and `fix` on one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pydantic import ValidationError


class OslerError(Exception):
    """The root. `fix` is a command or an edit, in words the reader can act on."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.detail = ""
        """Lines that a terminal shows below the message; empty as a rule."""

    def __str__(self) -> str:
        return f"{self.message}; {self.fix}" if self.fix else self.message


class BadQuestion(OslerError):
    exit_code = 2


class BadArgument(OslerError):
    exit_code = 2


class BadConfig(OslerError):
    exit_code = 3


class MissingExtra(BadConfig, ImportError):
    """A package that an import needs; also an `ImportError`, for who tries it."""


class BadFilter(BadConfig):
    """A filter by date or kind that is none, or that lets no text through."""

    exit_code = 2


class UnknownStrategy(BadConfig):
    pass


class KnowledgeBaseError(OslerError):
    exit_code = 4


class KnowledgeBaseBusy(KnowledgeBaseError):
    pass


class KnowledgeBaseDamaged(KnowledgeBaseError):
    """What is read is not what was written."""


class KnowledgeBaseMissing(KnowledgeBaseError):
    pass


class KnowledgeBaseMismatch(KnowledgeBaseError):
    pass


class KnowledgeBaseUnbuilt(KnowledgeBaseError):
    pass


class MalformedSource(KnowledgeBaseError):
    pass


class MissingPath(MalformedSource):
    exit_code = 2


class UnnamedSource(KnowledgeBaseError):
    exit_code = 2


class UnknownPassage(KnowledgeBaseError):
    exit_code = 2


class SourceUnavailable(OslerError):
    exit_code = 6


class ModelError(OslerError):
    exit_code = 5


class ModelMissing(ModelError):
    pass


class ModelUnreachable(ModelError):
    pass


class PromptTooLong(ModelError):
    pass


class CapabilityMissing(ModelError):
    pass


class MalformedOutput(OslerError):
    """Model text that does not parse. `reply` is the text, `expected` what was hoped for.

    `why` says what is known of the reason: "it was cut at 500 tokens".
    """

    def __init__(self, reply: str, *, expected: str, why: str = "") -> None:
        because = f" ({why})" if why else ""
        super().__init__(f"expected {expected}, got {reply[:200]!r}{because}")
        self.reply = reply
        self.expected = expected
        self.why = why


class BadCalculation(OslerError):
    pass


class StorageFailed(OslerError):
    pass


class BadRun(OslerError):
    pass


class UnknownRun(BadRun):
    exit_code = 2


class TapeMiss(BadRun):
    """`detail` compares what was asked with the nearest that was recorded, line by line."""

    def __init__(self, message: str, *, fix: str = "", diff: str = "") -> None:
        super().__init__(message, fix=fix)
        self.detail = diff


@contextmanager
def require_extra(extra: str, message: str, error: type[OslerError] = BadConfig) -> Iterator[None]:
    """Around imports of an extra's packages: where one is not installed, raises `error` with the
    command that installs the extra."""
    try:
        yield
    except ImportError as missing:
        raise error(message, fix=f'pip install "osler[{extra}]"') from missing


@contextmanager
def translate_os_errors(message: str, error: type[OslerError], fix: str = "") -> Iterator[None]:
    """Raises `error` in place of an `OSError`: the message, and what the system said."""
    try:
        yield
    except OSError as failed:
        raise error(f"{message}: {failed.strerror or failed}", fix=fix) from failed


def read_text_file(path: Path, error: type[OslerError], fix: str = "", *, what: str = "") -> str:
    """The UTF-8 text of a file, without a byte order mark.

    Raises `error` where the file cannot be read; `what` stands before its name, as in "the plan ".
    """
    try:
        # "-sig": editors on Windows write a byte order mark before the first line.
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as failed:
        raise error(f"{what}{path} cannot be read: {failed}", fix=fix) from failed


def read_settings_text(path: Path, setting: str = "", fix: str = "") -> str:
    """The UTF-8 text of a file that somebody wrote, without a byte order mark.

    Raises `BadConfig`; `setting` stands before the message, as in "danger.rules: ".
    """
    try:
        with translate_os_errors(f"{setting}cannot read {path}", BadConfig, fix):
            return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{path} is not UTF-8 text (byte {error.start})"
        raise BadConfig(problem, fix="save it as UTF-8") from error


def describe_invalid(error: ValidationError, whole: str = "") -> str:
    """The first field that is not as it should be, and why; `whole`: the name of the value itself,
    where no field is to blame."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or whole
    # pydantic puts this before the words of a validator.
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
