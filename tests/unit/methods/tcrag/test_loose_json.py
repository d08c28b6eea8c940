"""Tool arguments in the JSON5 that models write."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.methods.tcrag.actions import ToolUse, parse_action
from osler.methods.tcrag.loose_json import read_object


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"input": "gout"}', {"input": "gout"}),
        ("{input: 'gout'}", {"input": "gout"}),
        ("{input: 'it\\'s \"gout\"',}", {"input": 'it\'s "gout"'}),
        ('{\n  // what to look up\n  input: "gout", /* no more */\n}', {"input": "gout"}),
        ('{"input": "see http://a.b // c, }"}', {"input": "see http://a.b // c, }"}),
        ("{'input': 'gout', 'k': None}", {"input": "gout", "k": None}),
        ('{"input": "two\nlines"}', {"input": "two\nlines"}),
        ("{input: 'joined \\\nlines'}", {"input": "joined lines"}),
        ('{"input": gout}', {}),
        ('["gout"]', {}),
        ("{input: 'gout'", {}),
    ],
)
def test_an_object_is_read_as_json5_or_not_at_all(text: str, read: dict[str, object]) -> None:
    assert read_object(text) == read


def test_the_argument_of_a_tool_may_be_json5() -> None:
    reply = "Tool_Use: KG_RAG\nTool_Input: {query: 'gout', // colchicine?\n}"
    assert parse_action(reply, tools=["KG_RAG"]).action == ToolUse("KG_RAG", "gout")


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_json_is_read_as_json(found: dict[str, str]) -> None:
    assert read_object(json.dumps(found)) == found


@given(st.text(alphabet="{}[]:,'\"\\/* \nab1", max_size=60))
def test_no_text_is_an_error(text: str) -> None:
    assert isinstance(read_object(text), dict)
