"""A letter that is written in a supported shape is read; where two letters conflict, none is."""

from hypothesis import assume, given
from hypothesis import strategies as st

from osler.answer.option_reading import written_option, written_options
from osler.types import Question

CHOICE = Question("q", "Which?", tuple(f"wording number {n}" for n in range(5)))

MARKUP = st.sampled_from(
    ["{}", "**{}**", "_{}_", "({})", "[{}]", "（{}）", "「{}」", '"{}"', "`{}`"]
)
END = st.sampled_from(["", ".", "。", "\n", ", since it acts first", "，因为起效最快", ": wording"])
TAGS = ("<answer>{}</answer>", "<Answer>{}</Answer>", "<answer>\n{}\n</answer>", "<answer>{}")
BOXES = ("\\boxed{{{}}}", "$\\boxed{{\\text{{{}}}}}$", "\\boxed {{ {} }}")
STATED = (
    "Answer: {}",
    "**Answer:** {}",
    "So the answer is {}",
    "The correct option is {}",
    "The best answer would be option {}",
    "I choose {}",
    "答案：{}",
    "答案是{}",
    "正确答案为{}",
    "故选{}",
    "本题应选{}",
)
LETTERS = st.sampled_from(CHOICE.letters)


@st.composite
def renderings(draw: st.DrawFn, letter: str, shapes: tuple[str, ...]) -> str:
    """The letter in one of the shapes; in lower case only where a tag or a box holds it."""
    shape = draw(st.sampled_from(shapes))
    if shapes is not STATED and draw(st.booleans()):
        letter = letter.lower()
    marked = draw(MARKUP).format(letter)
    tail = draw(END) if shapes is STATED else ""
    return shape.format(marked) + tail


SHAPES = st.sampled_from([TAGS, BOXES, STATED])


@given(st.data(), LETTERS, SHAPES)
def test_a_letter_in_a_supported_shape_is_read_back(
    data: st.DataObject, letter: str, shapes: tuple[str, ...]
) -> None:
    text = data.draw(renderings(letter, shapes))
    before = data.draw(st.sampled_from(["", "It constricts vessels.\n", "它收缩血管。\n"]))
    assert written_option(before + text, CHOICE) == letter
    assert written_options(before + text, CHOICE) == (letter,)


@given(st.data(), LETTERS, LETTERS, SHAPES)
def test_two_letters_of_one_shape_are_read_as_neither(
    data: st.DataObject, one: str, two: str, shapes: tuple[str, ...]
) -> None:
    assume(one != two)
    text = f"{data.draw(renderings(one, shapes))}\n{data.draw(renderings(two, shapes))}"
    assert written_option(text, CHOICE) is None


@given(st.data(), st.sets(LETTERS, min_size=2), SHAPES)
def test_a_list_of_letters_is_several_options_and_no_single_one(
    data: st.DataObject, letters: set[str], shapes: tuple[str, ...]
) -> None:
    joined = data.draw(st.sampled_from(["", ", ", "、", " and ", " or ", "和"])).join(
        sorted(letters)
    )
    text = data.draw(st.sampled_from(shapes)).format(joined)
    assert written_option(text, CHOICE) is None
    assert written_options(text, CHOICE) == tuple(sorted(letters))


@given(st.text(max_size=60))
def test_whatever_is_read_is_offered(text: str) -> None:
    assert written_option(text, CHOICE) in (None, *CHOICE.letters)
    assert set(written_options(text, CHOICE)) <= set(CHOICE.letters)


@given(LETTERS, LETTERS)
def test_the_form_that_a_prompt_shows_is_not_what_the_reply_chose(one: str, two: str) -> None:
    text = f"<answer>{one}/{two}/…</answer> (only one option can be chosen)\n<answer>{two}</answer>"
    assert written_option(text, CHOICE) == two
