"""A server for tests: the REST calls of Qdrant that Osler uses, answered by the client's own
in-memory engine. It shows that requests travel and that failures are told; what a real server
makes of them is shown where OSLER_TEST_QDRANT_URL names one."""

import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = Callable[..., Any]


class Loopback:
    def __init__(self) -> None:
        from qdrant_client import QdrantClient

        self.engine = QdrantClient(":memory:")
        self.lock = threading.Lock()
        self.refuse_upserts_after: int | None = None
        self.upserts = 0
        self.keys: list[str | None] = []

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        from qdrant_client import models

        path = path.partition("?")[0]
        if (method, path) == ("GET", "/collections"):
            return 200, self.engine.get_collections()
        name, rest = re.fullmatch(r"/collections/([^/]+)(/.*)?", path).groups()  # type: ignore[union-attr]
        if (method, rest) == ("GET", "/exists"):
            return 200, {"exists": self.engine.collection_exists(name)}
        if (method, rest) == ("PUT", None):
            return 200, self._create(name, models.CreateCollection.model_validate(body))
        if not self.engine.collection_exists(name):
            return 404, f"Not found: Collection `{name}` doesn't exist!"
        calls: dict[tuple[str, str | None], Call] = {
            ("GET", None): lambda: self.engine.get_collection(name),
            ("PATCH", None): lambda: self.engine.update_collection(name, **body),
            ("DELETE", None): lambda: self.engine.delete_collection(name),
            ("PUT", "/index"): lambda: {"operation_id": 0, "status": "completed"},
            ("PUT", "/points"): lambda: self._upsert(name, body),
            ("POST", "/points"): lambda: self._retrieve(name, body),
            ("POST", "/points/count"): lambda: self.engine.count(name, exact=True),
            ("POST", "/points/delete"): lambda: self.engine.delete(name, body["points"]),
            ("POST", "/points/scroll"): lambda: self._scroll(name, body),
            ("POST", "/points/query/batch"): lambda: self._query(name, body),
        }
        if (method, rest) == ("PUT", "/points") and self.upserts == self.refuse_upserts_after:
            return 503, "out of disk"
        return 200, calls[method, rest]()

    def _create(self, name: str, asked: Any) -> bool:
        sparse = asked.sparse_vectors
        return bool(
            self.engine.create_collection(name, asked.vectors, sparse_vectors_config=sparse)
        )

    def _upsert(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        self.upserts += 1
        points = [models.PointStruct.model_validate(point) for point in body["points"]]
        return self.engine.upsert(name, points)

    def _retrieve(self, name: str, body: Any) -> Any:
        return self.engine.retrieve(name, body["ids"], with_payload=body["with_payload"])

    def _scroll(self, name: str, body: Any) -> Any:
        points, following = self.engine.scroll(
            name, limit=body["limit"], offset=body.get("offset"), with_payload=True
        )
        return {"points": points, "next_page_offset": following}

    def _query(self, name: str, body: Any) -> Any:
        from qdrant_client import models

        searches = [models.QueryRequest.model_validate(search) for search in body["searches"]]
        return self.engine.query_batch_points(name, searches)


@contextmanager
def serving() -> Iterator[tuple[Loopback, str]]:
    """The server and its address."""
    loopback = Loopback()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(loopback))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the in-memory engine cannot do
        thread.start()
        try:
            yield loopback, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
            loopback.engine.close()


def _handler(loopback: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            with loopback.lock:
                loopback.keys.append(self.headers.get("api-key"))
                status, result = loopback.answer(self.command, self.path, body)
            told = {"status": {"error": result}} if status != 200 else {
                "result": _plain(result), "status": "ok", "time": 0.0,
            }  # fmt: skip
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815 - http.server's names

        def log_message(self, format: str, *args: object) -> None:
            """The test's output stays its own."""

    return Handler


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
