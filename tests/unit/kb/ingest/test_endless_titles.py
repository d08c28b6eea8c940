"""A title or heading of megabytes is cut: each passage bears it."""

from osler.kb.ingest.prepare import IngestOptions, PreparedDocument, prepare_record
from osler.sources.records import Document, Section


def test_an_endless_title_is_not_stored_with_each_passage() -> None:
    text = "Iron is given. " * 500
    endless = Document("a", "Iron " * 400_000, (Section(text, ("Zinc " * 400_000,)),))
    made = prepare_record(endless, IngestOptions("book"))
    assert isinstance(made, PreparedDocument)
    assert len(made.document.title) == 1000
    assert max(len(str(field)) for row in made.rows for field in row) < 3500
