"""MCP, tried with the official SDK's client: over HTTP on a server that runs, and over stdio."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import ServedOsler, fill_knowledge_base, serve_osler

from osler.kb.base import KnowledgeBase
from osler.methods.kag.formulas import FORMULAS
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.keys import new_key
from osler_serve.ledger import Ledger
from osler_serve.scopes import KeyScope

mcp = pytest.importorskip("mcp")

TOOLS = {
    "answer_question",
    "calculate",
    "fetch",
    "get_passage",
    "list_formulas",
    "lookup_concept",
    "plan_sources",
    "search",
    "search_evidence",
}
BUNDLE = {
    "resourceType": "Bundle",
    "entry": [
        {"resource": {"resourceType": "Patient", "id": "p1", "gender": "male"}},
        {
            "resource": {
                "resourceType": "Condition",
                "subject": {"reference": "urn:uuid:p1"},
                "clinicalStatus": {"coding": [{"code": "active"}]},
                "code": {
                    "coding": [
                        {
                            "system": "http://snomed.info/sct",
                            "code": "195967001",
                            "display": "Asthma",
                        }
                    ]
                },
            }
        },
    ],
}


@asynccontextmanager
async def talking(place: ServedOsler) -> AsyncIterator[Any]:
    async with mcp.Client(f"{place.url}/mcp") as client:
        yield client


@asynccontextmanager
async def talking_with(place: ServedOsler, key: str) -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
        transport = streamable_http_client(f"{place.url}/mcp", http_client=http)
        async with mcp.Client(transport) as client:
            yield client


async def test_the_tools_say_that_they_only_read(place: ServedOsler) -> None:
    async with talking(place) as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is False
        assert tool.description
        assert tool.output_schema


async def test_a_search_gives_passages_that_open(place: ServedOsler) -> None:
    async with talking(place) as client:
        found = await client.call_tool("search_evidence", {"query": "adrenaline thigh", "k": 2})
        hits = found.structured_content["hits"]
        assert 1 <= len(hits) <= 2
        id = hits[0]["passage"]["id"]
        opened = await client.call_tool("get_passage", {"passage_id": id, "context_chunks": 1})
        assert opened.structured_content["passage"] == hits[0]["passage"]
        assert opened.structured_content["context"]
        short = await client.call_tool("search", {"query": "adrenaline thigh"})
        fetched = await client.call_tool(
            "fetch", {"id": short.structured_content["results"][0]["id"]}
        )
        assert fetched.structured_content["text"] == hits[0]["passage"]["text"]


async def test_a_plan_names_sources_and_words_and_may_be_asked_of_some(place: ServedOsler) -> None:
    async with talking(place) as client:
        asked = {"question": "What is given first?", "sources": ["guideline"]}
        made = (await client.call_tool("plan_sources", asked)).structured_content
        assert made["sources"] == ["guideline"]
        absent = await client.call_tool("plan_sources", asked | {"sources": ["nowhere"]})
        assert absent.is_error
        assert "nowhere" in absent.content[0].text


async def test_a_question_is_answered_with_citations_and_the_run_is_kept(
    place: ServedOsler,
) -> None:
    async with talking(place) as client:
        said = await client.call_tool(
            "answer_question",
            {"question": "Which drug is given first, into the outer thigh, at once?"},
        )
    told = said.structured_content
    assert told["answer"]["text"] == "Adrenaline is given first. [1]"
    (cited,) = told["answer"]["citations"]
    assert cited["quote"] in told["evidence"][0]["passage"]["text"]
    kept = httpx2.get(f"{place.url}/api/v1/runs/{told['run_id']}").json()
    assert kept["answer"] == told["answer"]


async def test_a_follow_up_is_answered_with_the_subject_of_the_questions_before(
    place: ServedOsler,
) -> None:
    given = {"question": "And in pregnancy?", "earlier": ["How is cystitis treated?"]}
    async with talking(place) as client:
        follow_up = await client.call_tool("answer_question", given)
        danger = await client.call_tool(
            "answer_question", {**given, "earlier": ["I want to kill myself. How?"]}
        )
    assert follow_up.structured_content["question"] == "How is cystitis treated: in pregnancy?"
    assert follow_up.structured_content["danger"] is None
    assert danger.structured_content["danger"]["kinds"] == ["self-harm"]


async def test_a_formula_is_computed_and_says_where_it_is_from(place: ServedOsler) -> None:
    async with talking(place) as client:
        listed = (await client.call_tool("list_formulas", {})).structured_content["formulas"]
        assert {one["formula_id"] for one in listed} == set(FORMULAS)
        bmi = next(one for one in listed if one["formula_id"] == "body-mass-index")
        given = {"weight": 80, "height": 200}
        assert {one["name"] for one in bmi["inputs"]} == set(given)
        done = await client.call_tool(
            "calculate", {"formula_id": "body-mass-index", "inputs": given}
        )
    told = done.structured_content
    assert told["value"] == pytest.approx(20.0)
    assert told["source"]


async def test_a_written_calculation_runs_in_the_sandbox_with_its_inputs(
    place: ServedOsler,
) -> None:
    async with talking(place) as client:
        asked = {"python": "weight / height ** 2", "inputs": {"weight": 80, "height": 2}}
        done = (await client.call_tool("calculate", asked)).structured_content
        assert (done["value"], done["formula_id"]) == (20.0, "")
        for refused in ({}, {"python": "open('/etc/passwd').read()"}, asked | {"formula_id": "x"}):
            assert (await client.call_tool("calculate", refused)).is_error


def with_a_patient(home: Path) -> None:
    fill_knowledge_base(home)
    (home / "records").mkdir()
    (home / "records" / "bundle.json").write_text(json.dumps(BUNDLE), encoding="utf-8")
    with KnowledgeBase.open(home / "kb") as kb:
        kb.add([home / "records"], source="emr", licence="ours")
        kb.build(HashingEncoder())


async def test_a_record_is_read_entry_by_entry_where_the_settings_allow_it(home: Path) -> None:
    with serve_osler(home, fill=with_a_patient, serve={"patients": True}) as place:
        (id,) = (
            ps[0].id for ps in (await place.site.shelf.open_knowledge()).kb.read_documents("emr")
        )
        async with talking(place) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS | {"read_patient"}
            asked = {"patient": id, "resource": "Condition", "fields": ["display", "code", "says"]}
            read = (await client.call_tool("read_patient", asked)).structured_content
            (entry,) = read["entries"]
            opened = await client.call_tool("get_passage", {"passage_id": entry["passage_id"]})
            hits = await client.call_tool("search_evidence", {"query": "adrenaline", "k": 1})
            stranger = hits.structured_content["hits"][0]["passage"]["id"]
            for refused in ({"patient": stranger}, {"patient": "emr:nobody"}, {"count": 21}):
                assert (await client.call_tool("read_patient", asked | refused)).is_error
    assert entry["fields"] == {
        "display": "Asthma",
        "code": "SNOMED CT 195967001",
        "says": "active",
    }
    start, end = entry["span"]
    line = opened.structured_content["passage"]["text"][start:end]
    assert line == "Asthma [SNOMED CT 195967001]: active"
    assert read["total"] == 1


async def test_patient_record_tool_is_refused_on_a_public_address(home: Path) -> None:
    with_a_patient(home)
    key = new_key(Ledger(home / "serve"), "tester")
    with serve_osler(home, serve={"patients": True, "host": "0.0.0.0"}) as place:  # noqa: S104
        async with talking_with(place, key) as client:
            asked = {"patient": "emr:x", "resource": "Condition"}
            said = await client.call_tool("read_patient", asked)
    assert said.is_error
    assert "on the machine that keeps them" in said.content[0].text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_evidence", {"query": "x", "snapshot": "another"}),
        ("read_patient", {"patient": "emr:x", "resource": "Condition"}),
        ("search_evidence", {"query": "x", "k": 500}),
        ("search_evidence", {"query": ""}),
        ("search_evidence", {"query": "x" * 2_001}),
        ("search_evidence", {"query": "x", "sources": ["../etc"]}),
        ("search_evidence", {"query": "x", "sources": ["nowhere"]}),
        ("get_passage", {"passage_id": "guideline:none#0"}),
        ("get_passage", {"passage_id": "../../etc/passwd"}),
        ("get_passage", {"passage_id": "x", "context_chunks": 99}),
        ("lookup_concept", {"term": "no such concept"}),
        ("answer_question", {"question": "\x00"}),
        ("answer_question", {"question": "What?", "strategy": "none such"}),
        ("answer_question", {"question": "What?", "max_seconds": 1e9}),
        ("calculate", {"formula_id": "none", "inputs": {}}),
        ("calculate", {"formula_id": "body-mass-index", "inputs": {"weight": "rm -rf"}}),
        ("nothing", {}),
    ],
)
async def test_mcp_argument_out_of_bounds_is_refused_with_a_message(
    place: ServedOsler, tool: str, arguments: dict[str, Any]
) -> None:
    async with talking(place) as client:
        try:
            said = await client.call_tool(tool, arguments)
        except mcp.MCPError as error:
            told = error.error.message
        else:
            assert said.is_error
            told = said.content[0].text
    assert told
    assert "Traceback" not in told
    if tool == "nothing":
        assert "there is no tool 'nothing'; there are answer_question, " in told


async def test_an_argument_of_another_name_is_refused_by_its_name(place: ServedOsler) -> None:
    async with talking(place) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.input_schema["additionalProperties"] is False
        given = {"query": "adrenaline", "kind": ["rct"]}
        said = await client.call_tool("search_evidence", given)
        danger = await client.call_tool(
            "answer_question", {"question": "I want to kill myself", "sinse": "2020"}
        )
    assert said.is_error
    assert "no argument 'kind'; there are as_of, k, kinds, query, " in said.content[0].text
    assert "no argument 'sinse'" in danger.content[0].text
    assert danger.content[0].text.index("emergency") < danger.content[0].text.index("sinse")


async def test_mcp_over_http_needs_the_api_key(home: Path) -> None:
    with serve_osler(home) as place:
        key = new_key(place.site.ledger, "tester", workspace="clinic")
        with pytest.raises(Exception, match=r".") as refused:
            async with mcp.Client(f"{place.url}/mcp") as client:
                await client.list_tools()
        assert not isinstance(refused.value, AssertionError)
        async with talking_with(place, key) as client:
            said = await client.call_tool("answer_question", {"question": "What is first?"})
        run = said.structured_content["run_id"]
        assert place.site.ledger.find_run(run).workspace == "clinic"  # type: ignore[union-attr]


async def test_mcp_cross_origin_request_is_refused(place: ServedOsler) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Origin": "https://evil.example", "Accept": "application/json, text/event-stream"}
    reply = httpx2.post(f"{place.url}/mcp", json=body, headers=headers)
    assert reply.status_code == 403


async def test_mcp_over_stdio_offers_the_same_tools(tmp_path: Path) -> None:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    fill_knowledge_base(tmp_path)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "osler", "mcp"],
        env={**os.environ, "OSLER__HOME": str(tmp_path)},
    )
    with (tmp_path / "errors.txt").open("w") as errors:
        async with mcp.Client(stdio_client(server, errlog=errors)) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            said = await client.call_tool(
                "calculate",
                {"formula_id": "body-mass-index", "inputs": {"weight": 80, "height": 200}},
            )
            assert said.structured_content["value"] == pytest.approx(20.0)


@pytest.mark.parametrize("mode", ["2026-07-28", "auto", "legacy"])
async def test_passages_are_resources_for_clients_of_either_revision(
    place: ServedOsler, mode: str
) -> None:
    async with mcp.Client(f"{place.url}/mcp", mode=mode) as client:
        assert (client.protocol_version == "2026-07-28") is (mode != "legacy")
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "osler://passages/{id}"
        read = await client.read_resource("osler://passages/guideline%3Apages%230")
        found = json.loads(read.contents[0].text)["passage"]
        assert found["id"] == "guideline:pages#0"
        with pytest.raises(mcp.MCPError, match="there is no passage"):
            await client.read_resource("osler://passages/guideline%3Anothing%230")


async def test_lists_are_in_order_and_say_how_long_they_may_be_kept(place: ServedOsler) -> None:
    async with mcp.Client(f"{place.url}/mcp", mode="2026-07-28") as client:
        listed = await client.list_tools()
        names = [tool.name for tool in listed.tools]
        assert names == sorted(names)
        assert (listed.ttl_ms, listed.cache_scope) == (3_600_000, "public")
        read = await client.read_resource("osler://passages/guideline%3Apages%230")
        assert (read.ttl_ms, read.cache_scope) == (60_000, "private")


async def test_a_key_without_the_verb_reads_no_resource(tmp_path: Path) -> None:
    with serve_osler(tmp_path) as place:
        ledger = Ledger(tmp_path / "serve")
        key = new_key(ledger, "asks", scope=KeyScope(verbs=("ask",)))
        ledger.close()
        async with talking_with(place, key) as client:
            with pytest.raises(mcp.MCPError, match="may not read"):
                await client.read_resource("osler://passages/guideline%3Apages%230")
