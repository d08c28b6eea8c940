"""Parsers of the public formats; `registry` has them all, and chooses one for a file.

A new format is one module with a `Parser` (or a `FolderParser`, for tables that belong
together) and its place in `PARSERS` (or `FOLDER_PARSERS`). Beside the parsers stand the
modules that they share:

| module                      | holds                                                          |
|-----------------------------|----------------------------------------------------------------|
| `reading`, `containers`     | whole files and their encodings; compression and archives      |
| `json_lines`, `rows`        | JSON in a stream; records with named fields as documents       |
| `safe_xml`                  | XML as a stream of records; trees of titled sections           |
| `sections`                  | sections under heading lines, without references; a concept's  |
| `tables`                    | tables of a folder as rows, joined on disk                      |
"""
