"""What each engine of the comparison does: keep passages, open them again, search them.

Runs in the environment of one engine, which need not hold Osler. An engine is used as its own
guide shows it, with its own defaults for tokens, stemming and fusion. Vectors are handed in; no
engine encodes. A search gives the ids of at most `K` passages, best first, and reads their texts,
since that is what a user wants of it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

K = 10
DIMENSION = 384


@dataclass(frozen=True)
class Corpus:
    """All passages: ids, the texts that are indexed, and their vectors, row by row."""

    file: Path
    ids: Sequence[str]
    texts: Sequence[str]
    vectors: Any


class Engine:
    """One engine over one folder. `ways` names the searches that it has."""

    packages: tuple[str, ...] = ()
    """Told in the table with their versions."""
    ways: tuple[str, ...] = ("words", "vectors", "hybrid")

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, corpus: Corpus) -> Iterator[str]:
        """Keeps the passages; yields "words" when they can be found by words, "vectors" when by
        vectors too."""
        raise NotImplementedError

    def open(self) -> None:
        """Opens what `add` kept."""
        raise NotImplementedError

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        """The ids of the passages found."""
        raise NotImplementedError


class Bm25s(Engine):
    """The index and the texts, saved; by words alone."""

    packages, ways = ("bm25s", "PyStemmer"), ("words",)

    def _tokens(self, texts: Any) -> Any:
        tokenize = import_module("bm25s").tokenize
        stemmer = import_module("Stemmer").Stemmer("english")
        return tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    def add(self, corpus: Corpus) -> Iterator[str]:
        index = import_module("bm25s").BM25()
        index.index(self._tokens(list(corpus.texts)), show_progress=False)
        rows = [{"id": i, "text": t} for i, t in zip(corpus.ids, corpus.texts, strict=True)]
        index.save(str(self.folder), corpus=rows)
        yield "words"

    def open(self) -> None:
        self._index = import_module("bm25s").BM25.load(str(self.folder), load_corpus=True)

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        found, scores = self._index.retrieve(self._tokens([question]), k=K, show_progress=False)
        return [one["id"] for one, score in zip(found[0], scores[0], strict=True) if score > 0]


class SqliteFts(Engine):
    """FTS5 with Porter's stems, the words of the question joined by OR; by words alone."""

    packages, ways = (), ("words",)

    def add(self, corpus: Corpus) -> Iterator[str]:
        db = sqlite3.connect(self.folder / "texts.sqlite")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE VIRTUAL TABLE p USING fts5(id UNINDEXED, text, tokenize='porter')")
        with db:
            db.executemany(
                "INSERT INTO p VALUES (?, ?)", zip(corpus.ids, corpus.texts, strict=True)
            )
        db.close()
        yield "words"

    def open(self) -> None:
        self._db = sqlite3.connect(self.folder / "texts.sqlite")

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        wanted = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        select = "SELECT id, text FROM p WHERE p MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] for row in self._db.execute(select, (wanted, K))]


class Tantivy(Engine):
    """Its English stemmer, the question read leniently; by words alone."""

    packages, ways = ("tantivy",), ("words",)

    def add(self, corpus: Corpus) -> Iterator[str]:
        tantivy = import_module("tantivy")
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("id", stored=True, tokenizer_name="raw")
        schema.add_text_field("text", stored=True, tokenizer_name="en_stem")
        writer = tantivy.Index(schema.build(), path=str(self.folder)).writer()
        for id, text in zip(corpus.ids, corpus.texts, strict=True):
            writer.add_document(tantivy.Document(id=id, text=text))
        writer.commit()
        writer.wait_merging_threads()
        yield "words"

    def open(self) -> None:
        self._index = import_module("tantivy").Index.open(str(self.folder))
        self._searcher = self._index.searcher()

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        query, _ = self._index.parse_query_lenient(question, ["text"])
        hits = self._searcher.search(query, K).hits
        found = [self._searcher.doc(address) for _, address in hits]
        return [one["id"][0] for one in found if one["text"]]


class LanceDb(Engine):
    """A table with a full-text index, its vectors searched exactly (its default without an index);
    hybrid by its own reciprocal ranks."""

    packages = ("lancedb", "pyarrow")

    def add(self, corpus: Corpus) -> Iterator[str]:
        arrow = import_module("pyarrow")
        flat = arrow.array(corpus.vectors.reshape(-1), arrow.float32())
        columns = {
            "id": list(corpus.ids),
            "text": list(corpus.texts),
            "vector": arrow.FixedSizeListArray.from_arrays(flat, DIMENSION),
        }
        db = import_module("lancedb").connect(str(self.folder))
        table = db.create_table("p", arrow.table(columns))
        table.create_fts_index("text")
        yield "words"
        yield "vectors"

    def open(self) -> None:
        self._table = import_module("lancedb").connect(str(self.folder)).open_table("p")
        self._rerank = import_module("lancedb.rerankers").RRFReranker()

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        plain = re.sub(r"[^\w\s]", " ", question)
        match way:
            case "words":
                query = self._table.search(plain, query_type="fts")
            case "vectors":
                query = self._table.search(vector).distance_type("dot")
            case _:
                both = self._table.search(query_type="hybrid").vector(vector).text(plain)
                query = both.rerank(self._rerank)
        return [row["id"] for row in query.select(["id", "text"]).limit(K).to_list()]


class Chroma(Engine):
    """A persistent collection; by vectors alone (it ranks by no words)."""

    packages, ways = ("chromadb",), ("vectors",)

    def add(self, corpus: Corpus) -> Iterator[str]:
        client = import_module("chromadb").PersistentClient(str(self.folder))
        space = {"hnsw": {"space": "ip"}}
        kept = client.create_collection("passages", configuration=space, embedding_function=None)
        for start in range(0, len(corpus.ids), 5_000):
            part = slice(start, start + 5_000)
            kept.add(
                ids=list(corpus.ids[part]),
                documents=list(corpus.texts[part]),
                embeddings=corpus.vectors[part],
            )
        yield "vectors"

    def open(self) -> None:
        client = import_module("chromadb").PersistentClient(str(self.folder))
        self._kept = client.get_collection("passages", embedding_function=None)

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        found = self._kept.query(query_embeddings=[vector], n_results=K, include=["documents"])
        return list(found["ids"][0])


class QdrantLocal(Engine):
    """The client's own engine within the process (a server needs none of this); by vectors."""

    packages, ways = ("qdrant-client",), ("vectors",)

    def add(self, corpus: Corpus) -> Iterator[str]:
        models = import_module("qdrant_client.models")
        client = import_module("qdrant_client").QdrantClient(path=str(self.folder))
        how = models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)
        client.create_collection("passages", vectors_config=how)
        client.upload_collection(
            "passages",
            vectors=corpus.vectors,
            ids=range(len(corpus.ids)),
            payload=({"id": i, "text": t} for i, t in zip(corpus.ids, corpus.texts, strict=True)),
        )
        client.close()
        yield "vectors"

    def open(self) -> None:
        self._client = import_module("qdrant_client").QdrantClient(path=str(self.folder))

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        found = self._client.query_points("passages", query=vector.tolist(), limit=K)
        return [point.payload["id"] for point in found.points]


class LlamaIndex(Engine):
    """FAISS (flat) and its BM25 retriever, saved by its own `persist`; its fusion of ranks."""

    packages = ("llama-index-core", "faiss-cpu", "llama-index-retrievers-bm25")

    def _embed(self) -> Any:
        return import_module("llama_index.core.embeddings").MockEmbedding(DIMENSION)

    def _words(self) -> Any:
        return import_module("llama_index.retrievers.bm25").BM25Retriever

    def add(self, corpus: Corpus) -> Iterator[str]:
        core = import_module("llama_index.core")
        node = import_module("llama_index.core.schema").TextNode
        store = import_module("llama_index.vector_stores.faiss").FaissVectorStore
        flat = import_module("faiss").IndexFlatIP(DIMENSION)
        nodes = [
            node(id_=id, text=text, embedding=vector.tolist())
            for id, text, vector in zip(corpus.ids, corpus.texts, corpus.vectors, strict=True)
        ]
        self._words().from_defaults(nodes=nodes, similarity_top_k=K).persist(
            str(self.folder / "words")
        )
        yield "words"
        context = core.StorageContext.from_defaults(vector_store=store(faiss_index=flat))
        index = core.VectorStoreIndex(nodes, storage_context=context, embed_model=self._embed())
        index.storage_context.persist(str(self.folder / "vectors"))
        yield "vectors"

    def open(self) -> None:
        core = import_module("llama_index.core")
        retrievers = import_module("llama_index.core.retrievers")
        store = import_module("llama_index.vector_stores.faiss").FaissVectorStore
        kept = str(self.folder / "vectors")
        context = core.StorageContext.from_defaults(
            vector_store=store.from_persist_dir(kept), persist_dir=kept
        )
        index = core.load_index_from_storage(context, embed_model=self._embed())
        words = self._words().from_persist_dir(str(self.folder / "words"))
        near = index.as_retriever(similarity_top_k=K)
        both = retrievers.QueryFusionRetriever(
            [near, words],
            similarity_top_k=K,
            num_queries=1,
            mode="reciprocal_rerank",
            use_async=False,
            llm=import_module("llama_index.core.llms").MockLLM(),
        )
        self._ways = {"words": words, "vectors": near, "hybrid": both}
        self._bundle = import_module("llama_index.core.schema").QueryBundle

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        asked = self._bundle(question, embedding=vector.tolist())
        return [hit.node.node_id for hit in self._ways[way].retrieve(asked)]


class Txtai(Engine):
    """Its hybrid index with texts kept; weights 0, 1 and .5 for words, vectors and both."""

    packages = ("txtai-minimal", "faiss-cpu")

    def add(self, corpus: Corpus) -> Iterator[str]:
        _know(corpus.texts, corpus.vectors)
        kept = import_module("txtai").Embeddings(
            method="external", transform="engines.given", content=True, hybrid=True
        )
        kept.index(zip(corpus.ids, corpus.texts, strict=True))
        kept.save(str(self.folder / "index"))
        yield "words"
        yield "vectors"

    def open(self) -> None:
        self._kept = import_module("txtai").Embeddings()
        self._kept.load(str(self.folder / "index"))

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        _know([question], [vector])
        weight = {"words": 0.0, "vectors": 1.0, "hybrid": 0.5}[way]
        return [row["id"] for row in self._kept.search(question, K, weights=weight)]


KNOWN: dict[str, Any] = {}
"""The vectors of the texts that txtai will ask for."""


def _know(texts: Sequence[str], vectors: Any) -> None:
    known = import_module("engines").KNOWN  # txtai imports this module by its name
    known.clear()
    known.update(zip(texts, vectors, strict=True))


def given(texts: Sequence[str]) -> Any:
    """Gives txtai the vectors of texts that are known already."""
    return import_module("numpy").array([KNOWN[text] for text in texts])
