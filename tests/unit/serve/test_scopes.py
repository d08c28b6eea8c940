"""Each operation and tool under each verb and each scope of sources; nothing private leaks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hmac import compare_digest
from pathlib import Path
from typing import Any

import pytest
from scoped_server import Keyed, call_tool, list_operations, list_tools, serve_scoped
from served import serve_osler, serving_settings

from osler.errors import BadArgument
from osler.settings import ServeSettings
from osler.settings.sections import AccessSettings
from osler_serve import run_views
from osler_serve.keys import FailedKeys, new_key
from osler_serve.problems import RefusedRequest
from osler_serve.scopes import (
    ROUTE_VERBS,
    TOOL_VERBS,
    VERBS,
    KeyScope,
    RunReach,
    local_scope,
    make_scope,
    read_scope,
)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    with serve_scoped(tmp_path_factory.mktemp("scoped")) as running:
        yield running


BODIES: dict[str, Any] = {
    "/api/v1/runs": {"question": "What is given first?"},
    "/api/v1/plan": {"question": "What is given first?"},
    "/api/v1/search": {"query": "adrenaline"},
    "/v1/chat/completions": {
        "model": "osler/auto",
        "messages": [{"role": "user", "content": "What is given first?"}],
    },
}


TOOL_INPUTS: dict[str, dict[str, Any]] = {
    "search_evidence": {"query": "adrenaline"},
    "search": {"query": "adrenaline"},
    "get_passage": {"passage_id": "guideline:pages#0"},
    "fetch": {"id": "guideline:pages#0"},
    "lookup_concept": {"term": "asthma"},
    "answer_question": {"question": "What is given first?"},
    "plan_sources": {"question": "What is given first?"},
    "calculate": {"python": "1 + 1"},
    "list_formulas": {},
    "read_patient": {"patient": "emr:x", "resource": "Condition"},
}


def test_every_operation_of_the_schema_and_every_tool_has_a_verb(keyed: Keyed) -> None:
    with keyed.client("all") as client:
        assert set(list_operations(client)) == set(ROUTE_VERBS)
        assert list_tools(client) == set(TOOL_VERBS) == set(TOOL_INPUTS)


@pytest.mark.parametrize("verb", VERBS)
def test_key_of_one_verb_opens_its_operations_and_no_other(keyed: Keyed, verb: str) -> None:
    with keyed.client(f"verb-{verb}") as client:
        for method, path in list_operations(client):
            where = path.replace("{id}", "x").replace("{name}", "x")
            reply = client.request(method, where, json=BODIES.get(path, {}))
            refused = reply.status_code == 403 and "this key may not" in reply.text
            assert refused is (ROUTE_VERBS[method, path] != verb), (method, path, reply.text)
        for name, needed in TOOL_VERBS.items():
            failed, said = call_tool(client, name, **TOOL_INPUTS[name])
            refused = failed and "this key may not" in said
            assert refused is (needed != verb), (name, said)


def test_absent_and_closed_passages_are_the_same_reply(keyed: Keyed) -> None:
    closed = keyed.passage_of("emr").replace("#", "%23")
    absent = closed.replace("emr:", "emr:x", 1)
    with keyed.client("public") as client:
        replies = [client.get(f"/api/v1/passages/{id}") for id in (closed, absent)]
    texts = [
        reply.text.replace(id.replace("%23", "#"), "ID").replace(id, "ID")
        for reply, id in zip(replies, (closed, absent), strict=True)
    ]
    assert replies[0].status_code == replies[1].status_code == 404
    assert texts[0] == texts[1]


@pytest.mark.parametrize("source", ["emr", "own", "nowhere"])
def test_a_run_over_an_absent_or_a_closed_source_is_refused_at_once(
    keyed: Keyed, source: str
) -> None:
    """It was taken, and then not to be found by whoever had asked for it."""
    asked = {"question": "I want to kill myself", "sources": [source]}
    with keyed.client("public") as client:
        for path in ("/api/v1/runs", "/api/v1/plan"):
            reply = client.post(path, json=asked)
            assert reply.status_code == 422, (path, reply.text)
            assert reply.json()["detail"] == f"the knowledge base has no source {source}"
            assert reply.json()["danger"]
        assert client.post("/api/v1/runs", json={**asked, "sources": ["book"]}).status_code == 202


def test_runs_over_a_private_source_are_hidden_from_keys_without_it(keyed: Keyed) -> None:
    with keyed.client("emr") as owner:
        asked = {"question": "Which drug at night?", "sources": ["emr"]}
        run = owner.post("/api/v1/runs", json=asked).json()["run_id"]
        owner.get(f"/api/v1/runs/{run}/events")
        assert run in owner.get("/api/v1/runs").text
    keyed.place.wait_for_runs()
    doors = [
        ("GET", f"/api/v1/runs/{run}"),
        ("GET", f"/api/v1/runs/{run}/events"),
        ("GET", f"/runs/{run}/report.html"),
        ("POST", f"/api/v1/runs/{run}/cancel"),
    ]
    for name in ("public", "own", "elsewhere", "one"):
        with keyed.client(name) as client:
            assert run not in client.get("/api/v1/runs").text
            for kept in (True, False):  # from memory, then from the disk
                if not kept:
                    keyed.place.site.desk._ended.pop(run, None)
                for method, path in doors:
                    unknown = path.replace(run, run[:-1] + ("0" if run[-1] != "0" else "1"))
                    told, absent = (client.request(method, each) for each in (path, unknown))
                    assert told.status_code == absent.status_code == 404, (name, path)
                    assert told.text.replace(run, "") == absent.text.replace(
                        unknown.split("/")[-1 if unknown.count("/") == 4 else -2], ""
                    ), (name, path)


def test_failed_run_of_an_older_server_is_judged_by_its_events(keyed: Keyed) -> None:
    ledger = keyed.place.site.ledger
    run = "20260101-000000-0123456789ab"
    ledger._db.execute(
        "INSERT INTO run(id, workspace, caller, created, status, strategy, question, events)"
        " VALUES (?, 'default', 'x', '', 'failed', 'rag', 'secret', '{\"passage\":\"emr:1#0\"}')",
        (run,),
    )
    with keyed.client("public") as client, keyed.client("emr") as owner:
        assert "secret" not in client.get("/api/v1/runs", params={"limit": 100}).text
        assert "secret" in owner.get("/api/v1/runs", params={"limit": 100}).text


def test_no_key_stands_in_any_file_log_or_reply(
    keyed: Keyed, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = [key.split("_", 2)[2] for key in keyed.keys.values()]
    wrong = keyed.keys["all"][:-6] + "abcdef"
    with keyed.client("all") as client:
        replies = client.get("/openapi.json").text + client.get("/metrics").text
        bad = client.get("/api/v1/kb", headers={"Authorization": f"Bearer {wrong}"}).text
    callers = repr(keyed.place.site.gate._callers) + repr(keyed.place.site.ledger.list_keys())
    told = replies + bad + caplog.text + callers
    files = b"".join(path.read_bytes() for path in keyed.home.rglob("*") if path.is_file())
    for secret in [*secrets, wrong.split("_", 2)[2]]:
        assert secret not in told
        assert secret.encode() not in files
    assert b"hash=" not in callers.encode()


def test_hidden_and_absent_runs_are_looked_up_by_the_same_steps(
    keyed: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What time such a look-up takes is measured by benchmarks/hidden_runs.py."""
    desk, steps = keyed.place.site.desk, Counter[str]()
    with keyed.client("elsewhere") as ward, keyed.client("own") as owner:
        asked = {"question": "Which drug?", "sources": ["own"]}
        ids = {
            name: client.post("/api/v1/runs", json=asked).json()["run_id"]
            for name, client in (("foreign", ward), ("private", owner))
        }
    keyed.place.wait_for_runs()
    ids["absent"] = ids["foreign"][:-1] + ("0" if ids["foreign"][-1] != "0" else "1")
    for name in ("read_record", "read_reach", "reach_from_lines"):
        step = getattr(run_views, name)

        def counted(*given: Any, name: str = name, step: Any = step) -> Any:
            steps[name] += 1
            return step(*given)

        monkeypatch.setattr(run_views, name, counted)
    caller = keyed.place.site.gate.authenticate_request(f"Bearer {keyed.keys['public']}")
    for name, id in ids.items():
        steps.clear()
        _, is_open = run_views._find_visible(desk, caller, id)
        assert (is_open, dict(steps)) == (False, {"read_reach": 1}), name


def test_key_is_compared_in_constant_time_also_where_there_is_none_of_its_id(
    keyed: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return compare_digest(one, other)

    monkeypatch.setattr("osler_serve.keys.hmac.compare_digest", compare)
    gate, (start, id, secret) = keyed.place.site.gate, keyed.keys["all"].split("_", 2)
    wrong = secret[::-1]
    for key in (f"{start}_{id}_{wrong}", f"{start}_{'0' * 12}_{wrong}"):
        with pytest.raises(RefusedRequest) as refused:
            gate.authenticate_request(f"Bearer {key}", "198.51.100.7")
        assert (refused.value.status, refused.value.message) == (401, "unknown key")
    assert gate.authenticate_request(f"Bearer {keyed.keys['all']}", "198.51.100.7").runs
    assert compared == [(32, 32)] * 3


def test_guesses_of_a_key_end_with_429_and_its_owner_elsewhere_goes_on(keyed: Keyed) -> None:
    made = new_key(keyed.place.site.ledger, "guessed")
    wrong = made[:-6] + ("abcdef" if made[-6:] != "abcdef" else "fedcba")
    with keyed.client("all") as client:
        tried = [
            client.get("/api/v1/kb", headers={"Authorization": f"Bearer {wrong}"}).status_code
            for _ in range(12)
        ]
        assert tried == [401] * 10 + [429] * 2
        assert client.get("/api/v1/kb").status_code == 200
    gate = keyed.place.site.gate
    assert gate.authenticate_request(f"Bearer {made}", "198.51.100.8").workspace == "default"


def test_wrong_keys_are_throttled_and_the_right_one_beside_them_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("osler_serve.keys.time.monotonic", lambda: clock[0])
    throttle = FailedKeys(3)
    for _ in range(3):
        throttle.check("a", "key")
        throttle.count("a", "key")
    with pytest.raises(RefusedRequest) as refused:
        throttle.check("a", "key")
    assert refused.value.status == 429
    throttle.check("a", "other")
    throttle.check("b", "key")
    for number in range(27):  # keys that are invented one after the other
        throttle.count("a", f"made-up-{number}")
    with pytest.raises(RefusedRequest):
        throttle.count("a", "one more")
    clock[0] = 61.0
    throttle.check("a", "key")
    for number in range(10_000):
        throttle.check("a", str(number))
    assert len(throttle._failed) <= throttle.most_kept


def test_scope_of_a_key_never_widens_the_settings_of_the_server(tmp_path: Path) -> None:
    settings = serving_settings(tmp_path, access={"sources": ("guideline", "emr"), "private": ()})
    wide = KeyScope(sources=("all",)).narrow_settings(settings).access
    assert not wide.may_search("book")
    public = KeyScope().narrow_settings(settings).access
    assert (public.may_search("guideline"), public.may_search("emr")) == (True, False)
    bound = serving_settings(tmp_path, access={"patients": ("emr:1",)})
    other = KeyScope(sources=("all",), patients=("emr:2",)).narrow_settings(bound).access
    assert not other.may_open("emr", "emr:1")
    assert not other.may_open("emr", "emr:2")
    assert KeyScope(sources=("book",)).narrow_settings(settings).access.may_search("book") is False


def test_scope_survives_the_ledger_and_unknown_words_are_refused() -> None:
    scope = make_scope(verbs=("ask",), patients=("emr:1",), tokens=5)
    assert read_scope(scope.to_json()) == scope
    assert read_scope("") == KeyScope(sources=("public",))
    for wrong in ({"verbs": ("fly",)}, {"strategies": ("fly",)}):
        with pytest.raises(BadArgument, match="unknown"):
            make_scope(**wrong)
    assert local_scope(ServeSettings()).sources == ("public",)
    assert local_scope(ServeSettings(patients=True)).sources == ("public", "emr")


@pytest.mark.parametrize(
    ("sources", "patients", "seen"),
    [
        (("emr",), (), False),
        (("emr",), ("emr:1",), True),
        (("emr",), ("emr:1", "emr:2"), False),
        (("guideline",), (), True),
        (("own",), (), False),
    ],
)
def test_run_is_seen_by_whoever_could_find_the_same(
    sources: tuple[str, ...], patients: tuple[str, ...], seen: bool
) -> None:
    access = AccessSettings(private=("own",), sources=("public", "emr"), patients=("emr:1",))
    assert RunReach(sources, patients).is_open_to(access) is seen


def test_a_server_says_which_private_source_is_not_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    uploads = {"uploads": ("own",)}  # its first file makes it
    with serve_osler(tmp_path, access={"private": ("guidelines", "book")}, serve=uploads):
        pass
    assert "not there: guidelines" in caplog.text
    assert "book" not in caplog.text
    assert "guidelines, own" not in caplog.text
