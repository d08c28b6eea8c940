"""Patients: one neutral record, its codes and their translation, and who is like whom.

`patient` is the record, `codes` and `crosswalk` the vocabularies, `telling` turns a record into
a document and reads its codes back, `similar` compares. The readers of the public formats are
beside the other formats, in `osler.sources.formats`.
"""
