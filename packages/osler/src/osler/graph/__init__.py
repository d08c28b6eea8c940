"""The concept graph: medical concepts with names, definitions and relations, in one file.

| module        | holds                                                                    |
|---------------|--------------------------------------------------------------------------|
| `items`       | the facts of importers, the values that a graph returns, chains as text  |
| `formats`     | importers of the public formats: UMLS, OBO, MeSH, Hetionet, …            |
| `files`       | the SQLite file and its connections; numpy arrays in one mapped file     |
| `load`        | bulk loading of a stream of facts                                        |
| `store`       | `Graph`: concepts by identifier and name, their relations, passages      |
| `derive`      | the arrays derived from the tables: adjacency, words, hashes of names    |
| `link`        | mentions of concepts in texts                                            |
| `lookup`      | fuzzy look-up of names, and by their vectors                             |
| `fusion`      | concepts of several vocabularies merged, reversibly                      |
| `chains`      | paths between concepts, and personalised PageRank                        |
| `partition`   | the hierarchy of communities (Leiden)                                    |
| `communities` | communities with their extracts and summaries                            |

The tables are the truth; everything else follows from them. Each change of the tables raises
their version, the derived files carry the version that they were made of, and a file of
another version is made anew when it is next needed.

Numbers and identifiers: inside, a concept is an integer (`concept.n`), small enough for numpy
arrays; outside it is its CURIE ("DOID:9352"). Of concepts that were fused the head stands for
all, and its identifier is what comes back.

Passages of the graph are made when they are asked for: `graph:DOID:9352#def` is a definition,
`#rel-…` a relation, `#via-…` a chain, and `graph:community.…#extract` a community. Their ids
are hashes of content, so that a citation still opens after another import.

From Python:

    from pathlib import Path
    from osler.graph.formats import read_graph_files
    from osler.graph.store import Graph

    with Graph.create(Path("graph")) as graph:
        graph.add(read_graph_files([Path("doid.obo")]))
        print(graph.find_exact("gout"))
"""
