"""A file format and a strategy that another package adds to Osler."""

from collections.abc import Iterator
from typing import BinaryIO, ClassVar, Literal

from osler.settings.plugins import PluginSettings
from osler.sources.records import Document, Record, Section


class NoteFormat:
    """`.note` files: a title in the first line, then the text."""

    name = "note"

    def matches(self, name: str, head: bytes) -> bool:
        return name.endswith(".note")

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        title, _, text = stream.read().decode("utf-8").partition("\n")
        yield Document(name.removesuffix(".note"), title, (Section(text.strip()),))


class AskTwiceSettings(PluginSettings):
    """Two searches: for the question, and for it under the title of what was found first."""

    kind: Literal["ask-twice"] = "ask-twice"
    maker: ClassVar[str] = "osler_example.ask_twice:AskTwiceMaker"
    k: int = 5
    """Passages of one search."""
