"""Requests that no honest client sends, each against a server that runs."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import ServedOsler, read_stream, serve_osler, start_run

PROBLEM = "application/problem+json"
JSON = {"Content-Type": "application/json"}
POSTS = ("/api/v1/runs", "/api/v1/plan", "/api/v1/search", "/v1/chat/completions")


def refused(reply: httpx2.Response, *statuses: int) -> None:
    """It is one of these, in the form of its interface, and says nothing of the inside."""
    assert reply.status_code in statuses, (reply.status_code, reply.text[:300])
    if reply.request.url.path.startswith("/v1/"):
        assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
    else:
        assert reply.headers["content-type"] == PROBLEM
        assert {"type", "title", "status", "detail", "instance", "code"} <= set(reply.json())
    assert "Traceback" not in reply.text
    assert "site-packages" not in reply.text


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (b"", (422,)),
        (b"{", (400,)),
        (b"\x00\x00", (400,)),
        (b'{"question": "\xff\xfe"}', (400,)),
        (b'{"question": "' + b"\xed\xa0\x80" + b'"}', (400, 422)),
        (b'{"question": "\\ud800", "query": "\\ud800"}', (422,)),
        (b'{"query": "\\ud800"}', (422,)),
        (b'{"question": "a\\u0000b", "query": "a\\u0000b"}', (422,)),
        (b"[" * 1_000 + b"]" * 1_000, (400, 422)),
        (b"[" * 100_000 + b"]" * 100_000, (400,)),
        (b'{"a":' * 1_000 + b"1" + b"}" * 1_000, (400, 422)),
        (b'{"question": NaN, "query": Infinity}', (422,)),
        (b'{"question": ' + b"9" * 5_000 + b"}", (400, 422)),
        (b"null", (422,)),
        (b'"text"', (422,)),
        (b"[]", (422,)),
        (b'{"question": ["a"], "query": {"a": 1}}', (422,)),
        (b'{"question": true, "query": 1}', (422,)),
    ],
    ids=range(18),
)
def test_malformed_request_body_is_refused(
    http: httpx2.Client, path: str, body: bytes, statuses: tuple[int, ...]
) -> None:
    refused(http.post(path, content=body, headers=JSON), *statuses)


@pytest.mark.parametrize("path", [*POSTS, "/mcp"])
def test_oversized_body_is_413_with_and_without_content_length(
    http: httpx2.Client, path: str
) -> None:
    big = b'{"question": "' + b"a" * 10_000_000 + b'"}'

    def drips() -> Iterator[bytes]:
        for at in range(0, len(big), 65_536):
            yield big[at : at + 65_536]

    for content in (big, drips()):
        try:
            refused(http.post(path, content=content, headers=JSON), 413)
        except httpx2.WriteError:
            # Hung up on before all was sent: as good as the status.
            assert http.get("/healthz").status_code == 200


def test_connection_survives_a_refused_body_and_answers_the_next_request(
    place: ServedOsler,
) -> None:
    """An answer of its own to that rest would be taken for the next request's."""
    body = b"a" * 1_000_000
    head = b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", place.port), timeout=10) as sock:
        sock.sendall(head % len(body))
        said = sock.recv(65_536)
        sock.sendall(body)
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        while part := sock.recv(65_536):
            said += part
    assert re.findall(rb"HTTP/1\.1 (\d{3})", said) == [b"413", b"200"]


@pytest.mark.parametrize("length", ["-1", "abc", "99999999999999999999", "1e3"])
def test_invalid_content_length_is_400_and_closes_the_connection(
    place: ServedOsler, length: str
) -> None:
    head = f"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
    assert raw(place, head.encode()).startswith((b"HTTP/1.1 400", b"HTTP/1.1 413"))


def test_question_of_a_million_characters_is_refused(http: httpx2.Client) -> None:
    refused(http.post("/api/v1/runs", json={"question": "a" * 200_000}), 422)
    refused(http.post("/api/v1/search", json={"query": "心" * 60_000}), 422)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/runs", {"question": "What?", "model": "gpt"}),
        ("/api/v1/runs", {"question": "What?", "limits": {"dollars": 1}}),
        ("/api/v1/runs", {"question": "What?", "strategy": "none"}),
        ("/api/v1/runs", {"question": "What?", "strategy": "__class__"}),
        ("/api/v1/runs", {"question": "What?", "sources": ["nowhere"]}),
        ("/api/v1/runs", {"question": "What?", "sources": ["../../etc"]}),
        ("/api/v1/runs", {"question": "What?", "k": 10**9}),
        ("/api/v1/runs", {"question": "What?", "k": True}),
        ("/api/v1/runs", {"question": "What?", "options": ["one"]}),
        ("/api/v1/runs", {"question": "What?", "strategy": "direct", "k": 3}),
        ("/api/v1/runs", {"question": "   "}),
        ("/api/v1/search", {"query": "x", "k": 0}),
        ("/api/v1/search", {"query": "x", "filter": "1=1"}),
        ("/api/v1/search", {"query": "x", "sources": ["nowhere"]}),
        ("/api/v1/search", {"query": "x", "since": 2020, "until": 2010}),
        ("/v1/chat/completions", {"model": "osler/rag", "messages": [], "sources": []}),
    ],
)
def test_unknown_request_field_is_refused_and_never_ignored(
    http: httpx2.Client, path: str, body: dict[str, Any]
) -> None:
    reply = http.post(path, json=body)
    if reply.status_code == 202:  # sources are looked at when the run has its parts
        assert read_stream(http, reply.json()["run_id"])[-1][1] == "run.failed"
        assert body["sources"]
    else:
        refused(reply, 422)


@pytest.mark.parametrize(
    "id",
    [
        "",
        "..%2f..%2fetc%2fpasswd",
        "%00",
        "%ff",
        "guideline:x%23",
        "%27%20OR%201=1--",
        "a" * 5_000,
        "%F0%9F%92%89",
        "guideline:none%230",
    ],
)
def test_malformed_passage_id_is_404(http: httpx2.Client, id: str) -> None:
    refused(http.get(f"/api/v1/passages/{id}"), 404)
    refused(http.get(f"/api/v1/graph/concepts/{id or 'x'}"), 404)


def test_a_formula_that_an_answer_cites_is_opened(http: httpx2.Client) -> None:
    found = http.get("/api/v1/passages/formulas:cockcroft-gault%230").json()
    assert "140" in found["passage"]["text"]
    refused(http.get("/api/v1/passages/formulas:nothing%230"), 404)


def test_passage_of_another_snapshot_is_refused(http: httpx2.Client) -> None:
    found = http.post("/api/v1/search", json={"query": "adrenaline"}).json()
    id = found["hits"][0]["passage"]["id"].replace("#", "%23")
    same = http.get(f"/api/v1/passages/{id}", params={"snapshot": found["snapshot"]})
    assert same.status_code == 200
    refused(http.get(f"/api/v1/passages/{id}", params={"snapshot": "other"}), 409)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/api/v1/runs", "/healthz", "/v1/models"])
def test_wrong_method_is_405(http: httpx2.Client, method: str, path: str) -> None:
    refused(http.request(method, path), 405)


def test_unknown_path_is_404_and_never_the_page_with_scripts(
    http: httpx2.Client,
) -> None:
    for path in ("/docs", "/redoc", "/api", "/admin", "/.env", "/api/v1/"):
        refused(http.get(path), 404)


def test_cross_site_form_post_is_refused_as_no_json(http: httpx2.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        reply = http.post(
            "/api/v1/runs", content=b'{"question": "What?"}', headers={"Content-Type": kind}
        )
        refused(reply, 415, 422)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://["]
)
def test_cross_origin_request_is_refused(http: httpx2.Client, origin: str) -> None:
    for call in (http.get, http.post):
        refused(call("/api/v1/runs", headers={"Origin": origin}), 403)


def test_same_origin_request_is_allowed(place: ServedOsler, http: httpx2.Client) -> None:
    assert http.get("/api/v1/kb", headers={"Origin": place.url}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", ""])
def test_dns_rebinding_host_header_is_refused(http: httpx2.Client, host: str) -> None:
    refused(http.get("/api/v1/kb", headers={"Host": host}), 421)


def test_every_reply_has_the_browser_security_headers(http: httpx2.Client) -> None:
    for path in ("/healthz", "/api/v1/kb", "/nothing", "/v1/models"):
        headers = http.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-request-id"]
        assert "server" not in headers


def test_request_id_is_kept_if_plain_and_else_generated(http: httpx2.Client) -> None:
    assert (
        http.get("/healthz", headers={"X-Request-Id": "ab-12"}).headers["x-request-id"] == "ab-12"
    )
    made = http.get("/healthz", headers={"X-Request-Id": "a b;<x>"}).headers["x-request-id"]
    assert made.isalnum()


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 30, "٣"])
def test_malformed_last_event_id_is_refused(http: httpx2.Client, number: str) -> None:
    run = start_run(http)
    headers = {b"Last-Event-ID": number.encode()}
    reply = http.get(f"/api/v1/runs/{run}/events", headers=headers)
    refused(reply, 422)


def test_script_in_a_passage_stays_data_in_every_interface(http: httpx2.Client) -> None:
    found = http.post("/api/v1/search", json={"query": "hostile page alert", "sources": ["wiki"]})
    assert found.headers["content-type"] == "application/json"
    passage = found.json()["hits"][0]["passage"]
    assert "<img src=x onerror=alert(1)>" in passage["text"]
    run = start_run(http, "A hostile page: alert?", sources=["wiki"])
    read_stream(http, run)
    page = http.get(f"/runs/{run}/report.html").text
    assert "<img" not in page
    assert "<script" not in page


def raw(place: ServedOsler, sent: bytes, seconds: float = 10) -> bytes:
    """Everything that the server says to these bytes, until it hangs up or the time is over."""
    with socket.create_connection(("127.0.0.1", place.port), timeout=seconds) as sock:
        sock.sendall(sent)
        said = b""
        try:
            while part := sock.recv(65_536):
                said += part
                if said.endswith(b"}"):
                    break
        except (TimeoutError, ConnectionResetError):
            pass
        return said


def test_too_many_or_too_long_headers_are_refused(place: ServedOsler) -> None:
    start = b"GET /api/v1/kb HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    many = b"".join(b"X-%d: 1\r\n" % n for n in range(500))
    assert raw(place, start + many + b"\r\n").startswith(b"HTTP/1.1 400")
    long = b"X-Long: " + b"a" * 200_000 + b"\r\n"
    assert raw(place, start + long + b"\r\n").startswith(b"HTTP/1.1 400")
    assert raw(place, b"GET /" + b"a" * 200_000).startswith(b"HTTP/1.1 400")
    endless = b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1_000) for n in range(90))
    assert raw(place, start + endless + b"\r\n").startswith(b"HTTP/1.1 400")
    assert httpx2.get(f"{place.url}/healthz").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS hello
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /api/v1/kb HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: localhost\r\n\r\n",
        b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"zz\r\n",
        b"\x00" * 1_000,
    ],
    ids=range(8),
)
def test_bytes_that_are_no_http_are_refused_and_the_server_lives_on(
    place: ServedOsler, sent: bytes
) -> None:
    said = raw(place, sent, seconds=1)
    assert said.startswith(b"HTTP/1.1 4") or not said
    assert b"HTTP/1.1 5" not in said
    assert httpx2.get(f"{place.url}/healthz").status_code == 200


def test_slow_clients_are_cut_off_and_block_nobody(home: Path) -> None:
    with serve_osler(home, serve={"client_seconds": 1.0}) as place:
        slow = []
        for n in range(200):
            sock = socket.create_connection(("127.0.0.1", place.port), timeout=20)
            head = b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            sock.sendall(head if n % 2 else head + b"Content-Length: 100\r\n\r\n{")
            slow.append(sock)
        began = time.monotonic()
        found = httpx2.post(f"{place.url}/api/v1/search", json={"query": "adrenaline"}, timeout=20)
        assert found.status_code == 200
        said = [sock.recv(1_000) for sock in slow]
        assert time.monotonic() - began < 15
        assert {bytes(part[:12]) for part in said} <= {b"", b"HTTP/1.1 408"}
        for sock in slow:
            sock.close()
        assert place.connections.wait_for_number(0)


def test_client_that_reads_nothing_of_its_stream_is_cut_off(home: Path) -> None:
    with serve_osler(home, serve={"client_seconds": 0.5}) as place:
        with httpx2.Client(base_url=place.url) as client:
            run = start_run(client)
            read_stream(client, run)
        assert place.connections.wait_for_number(0)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.connect(("127.0.0.1", place.port))
        path = f"/api/v1/runs/{run}/events"
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 400)
        assert place.connections.wait_for_number(1)
        assert place.connections.wait_for_number(0)
        sock.close()


def test_connections_over_the_limit_get_503(home: Path) -> None:
    with serve_osler(home, serve={"connections": 5}) as place:
        held = [socket.create_connection(("127.0.0.1", place.port)) for _ in range(5)]
        assert place.connections.wait_for_number(5)
        said = raw(place, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", seconds=5)
        assert said.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 1" in said
        assert json.loads(said.partition(b"\r\n\r\n")[2])["code"] == "full"
        for sock in held:
            sock.close()
        assert place.connections.wait_for_number(0)
        assert httpx2.get(f"{place.url}/healthz").status_code == 200
