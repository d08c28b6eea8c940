"""What a competent model asks for, step by step, never looks at a document."""

from competent_parts import asked_now
from hops import Hop, Hops, wordings_of

HELD = "The Bubye River is a tributary of the Limpopo in Zimbabwe."
FALLS = "Victoria Falls is a waterfall on the Zambezi in Zimbabwe."
HOPS = Hops(
    [
        Hop("What is the country of Bubye River?", "Zimbabwe", [HELD]),
        Hop("Which waterfall lies in #1?", "Victoria Falls", [FALLS, "Mosi-oa-Tunya thunders."]),
    ]
)
BOTH = (0, 1)


def test_the_second_step_is_asked_once_the_first_was_read() -> None:
    assert HOPS.next_query("", set(), BOTH) == "What is the country of Bubye River?"
    assert HOPS.next_query(HELD, HOPS.known_in(HELD), BOTH) == "Which waterfall lies in Zimbabwe?"


def test_what_found_nothing_is_asked_in_other_words_until_none_are_left() -> None:
    read, asked = "", []
    while query := HOPS.next_query(read, HOPS.known_in(read), BOTH):
        asked.append(query)
        read += f"Tool_Input: {query}\n"
    assert asked == list(wordings_of("What is the country of Bubye River?"))
    assert len(asked) > 2


def test_any_of_a_step_s_documents_bears_it_out() -> None:
    assert HOPS.known_in("Mosi-oa-Tunya thunders.") == {1}


def test_a_step_is_known_by_its_question_however_it_is_filled_in() -> None:
    assert HOPS.asked_in("Which waterfall lies in the country of Bubye River?") == (1,)
    assert HOPS.asked_in("Which river is longest?") == ()


def test_what_is_asked_now_is_the_last_question_of_a_prompt() -> None:
    turns = "User_Query: Who is he?\nThought: #1 Where was he born? Paris\nQuestion: When?"
    assert asked_now(turns) == "When?"
    assert asked_now("# Question\nWho is he?\n\n# Sources") == "Who is he?"
