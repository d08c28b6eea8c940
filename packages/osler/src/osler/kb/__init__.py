"""The knowledge base: passages with their provenance, in one folder, searchable and citable.

    base.py         `KnowledgeBase`: the methods that write
    reader.py       `KnowledgeBaseReader`: the methods that read and search
    check.py        counts, provenance, and integrity checks
    ingest/         files to rows
      files.py          one `add` or `update`: which files are read, and what came of them
      file_table.py     the rows of roots and files; nothing else writes them
      reader_process.py big files, and strangers', read by a second process
      prepare.py        records to rows, as pure functions
      chunk.py          documents to passages: the three papers' chunkings, and windows
      document_upsert.py new, unchanged, newer, older, double or corrected documents
      bulk.py           the same work on several processes or a Ray cluster
    index/          builds: vectors for passages, shared between processes by leases
    search/         backends: SQLite and exact vectors, Qdrant Edge, a Qdrant server
    encoders/       texts to vectors: MiniLM on ONNX, hub models, servers
    store/          the SQLite file: tables, locks, snapshots, export

On disk a knowledge base is a folder:

    kb.sqlite       everything that is stored: files, documents, passages, vectors, words
    kb.lock         the writer's lock; readers never take it
    edge/           generations of the embedded index, of which `current.json` names one
    snapshots/      named copies
    bulk/           results of workers that are not stored yet; gone after a clean end

Row numbers of passages are never used twice, so a reader with older vectors finds its
passage or none, never another one. A build is declared done in one transaction, and what
lies beside the file (the embedded index) is brought up to it just before. What upper layers
derive from passages is kept in step by an object that they hand in (`reader.Derived`): this
package imports none of them.
"""
