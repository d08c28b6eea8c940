"""Sources of evidence: files of many formats, downloads, online services.

A source becomes passages in three steps, of which this package holds the first two:

1. `discover` walks a path once and finds its files, folders and archive members, each with
   the parser that its name and first bytes call for.
2. The parser streams `Document`s out of it, and a `Drop` with a reason for every record that
   it could not use. Nothing is swallowed: drops are counted and shown by `osler kb info`.
3. `osler.kb.ingest` cuts the documents into passages and stores them.

| module       | holds                                                                     |
|--------------|---------------------------------------------------------------------------|
| `records`    | the values of a parser: `Document`, `Section`, `Deleted`, `Drop`          |
| `discover`   | files, folders and archive members at a path, with their parsers          |
| `reading`    | all records of a path                                                     |
| `formats`    | a parser for each public format                                           |
| `patients`   | pseudonyms, and the clinic that reads records, where it is installed      |
| `online`     | Wikipedia, PubMed and web search, through one bounded HTTP client         |
| `download`   | recipes for public corpora and ontologies, fetched so that they resume    |

Rules that hold for every parser:

* Files are untrusted. Sizes are bounded before anything is decompressed or parsed, XML
  entities are refused, names that lead out of an archive are refused, links are not followed.
* Memory does not grow with the file: a parser streams records, or joins tables in a scratch
  database on disk.
* A single bad record is a `Drop` with its line; `MalformedSource` is raised only where the
  file as a whole cannot be read, and its `fix` says what the user can do.
* Patients are de-identified while they are read: names, addresses, dates and free text never
  reach a `Document`, and ages above 89 become "90 or over".

`reading.read`, which is `osler.read`, does the first two for whoever wants documents alone.
"""
