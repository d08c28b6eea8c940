"""When FLARE, DRAGIN and Self-RAG decide what: probability cases worked by hand."""

from math import isclose, log

import pytest

from osler.llm.core.base import Attended, Completion, TokenScore
from osler_lab.baselines.dragin import (
    attended_words,
    entropy,
    first_need,
    rind,
    semantic_indicator,
)
from osler_lab.baselines.growing import is_sure, mask_unsure, sentence_tokens
from osler_lab.baselines.self_rag import (
    aspect_value,
    critique_score,
    match_token,
    segment_likelihood,
)
from osler_lab.baselines.weighing import choose_candidate, rank_scores


def tokens(*pairs: tuple[str, float]) -> tuple[TokenScore, ...]:
    made, at = [], 0
    for text, probability in pairs:
        made.append(TokenScore(text, at, at + len(text), log(probability)))
        at += len(text)
    return tuple(made)


SENTENCE = tokens(("Aspirin", 0.95), (" treats", 0.8), (" gout", 0.35), (".", 0.9))
TEXT = "Aspirin treats gout."


@pytest.mark.parametrize(("theta", "stands"), [(0.35, True), (0.36, False), (0.0, True)])
def test_flare_accepts_a_sentence_whose_least_probability_is_theta(
    theta: float, stands: bool
) -> None:
    """§3.2.1: "if all tokens have probabilities >= theta"; the least here is 0.35."""
    assert is_sure(SENTENCE, theta - 1e-12) is stands


@pytest.mark.parametrize(
    ("beta", "query"),
    [(0.0, TEXT), (0.4, "Aspirin treats."), (0.85, "Aspirin."), (1.0, "")],
)
def test_flare_masks_what_is_below_beta(beta: float, query: str) -> None:
    assert mask_unsure(TEXT, SENTENCE, beta) == query


def test_flare_judges_the_first_sentence_alone() -> None:
    said = Completion(TEXT + " Next", (*SENTENCE, TokenScore(" Next", 20, 25, log(0.01))))
    assert sentence_tokens(said, TEXT) == SENTENCE


def test_flare_masks_characters_of_chinese() -> None:
    zh = tokens(("口服", 0.9), ("铁剂", 0.3), ("治疗", 0.9))
    assert mask_unsure("口服铁剂治疗", zh, 0.4) == "口服治疗"


WORDS = tokens(("He", 0.5), (" worked", 0.5), (" at", 0.5), (" Bern", 0.5))
SEEN = Attended(
    WORDS,
    (0.5, 1.0, 3.0, 2.0),
    ((), (0.2,), (0.1, 0.6), (0.05, 0.3, 0.4)),
)
LINE = "He worked at Bern"


def test_rind_is_entropy_times_attention_times_meaning() -> None:
    """Eq. 1 to 4. Greatest attention of later tokens: He 0.2, worked 0.6, at 0.4, Bern none.

    "He" and "at" are stop words, so 0; worked: 1.0 * 0.6 * 1.
    """
    assert rind(SEEN, LINE, scaled=False) == pytest.approx([0.0, 0.6, 0.0, 0.0])


def test_rind_in_units_of_the_mean_attention() -> None:
    """(0.2 + 0.6 + 0.4 + 0) / 4 = 0.3, so worked is 1.0 * 0.6 / 0.3."""
    assert rind(SEEN, LINE, scaled=True) == pytest.approx([0.0, 2.0, 0.0, 0.0])


@pytest.mark.parametrize(("threshold", "start"), [(0.59, 2), (0.6, None)])
def test_the_first_token_above_theta_triggers(threshold: float, start: int | None) -> None:
    need = first_need(WORDS, [0.0, 0.6, 0.0, 0.0], threshold, WORDS)
    assert (need.start if need else None) == start


def test_qfs_takes_the_words_that_the_token_looks_at_in_their_order() -> None:
    """Bern looks at worked (0.3) more than at He (0.05); "at" (0.4) means nothing."""
    assert attended_words(SEEN, LINE, 1) == "worked"
    assert attended_words(SEEN, LINE, 9) == "worked"


def test_qfs_adds_up_the_tokens_of_a_word() -> None:
    parts = tokens(("war", 0.5), ("farin", 0.5), (" clot", 0.5), (" x", 0.5))
    seen = Attended(parts, (0.0,) * 4, ((), (0.0,), (0.0, 0.0), (0.25, 0.2, 0.3)))
    assert attended_words(seen, "warfarin clot x", 1) == "warfarin"
    assert attended_words(seen, "warfarin clot x", 2) == "warfarin clot"


def test_a_stop_word_and_what_is_no_word_do_not_matter() -> None:
    assert [
        semantic_indicator("He is ill, 42", s, e)
        for s, e in [(0, 2), (2, 5), (5, 9), (9, 10), (11, 13)]
    ] == [
        0,
        0,
        1,
        0,
        1,
    ]
    assert semantic_indicator("的", 0, 1) == 0
    assert semantic_indicator("铁剂", 0, 1) == 1


def test_entropy_of_the_likeliest_tokens() -> None:
    """0.5, 0.25 and 0.25 left over: 1.5 bits."""
    token = TokenScore("a", 0, 1, log(0.5), (("a", log(0.5)), ("b", log(0.25))))
    assert isclose(entropy(token), 1.5 * log(2))
    assert isclose(entropy(TokenScore("a", 0, 1, 0.0)), 0.0)


def test_self_rag_retrieves_above_the_share_of_its_token() -> None:
    assert isclose(aspect_value("retrieve", {"[Retrieval]": 0.1, "[No Retrieval]": 0.3}), 0.25)


def test_self_rag_s_critique_by_hand() -> None:
    """relevant 0.6 / (0.6 + 0.2) = 0.75; support (0.5 + 0.5 * 0.25) / 1 = 0.625;
    utility (-1*0.1 - 0.5*0 + 0*0.1 + 0.5*0.2 + 1*0.6) / 1 = 0.6; with 1, 1 and 0.5: 1.675.
    """
    relevant = aspect_value("relevant", {"[Relevant]": 0.6, "[Irrelevant]": 0.2})
    support = aspect_value(
        "support",
        {
            "[Fully supported]": 0.5,
            "[Partially supported]": 0.25,
            "[No support / Contradictory]": 0.25,
        },
    )
    shares = (0.1, 0.0, 0.1, 0.2, 0.6)
    utility = aspect_value("utility", {f"[Utility:{n}]": p for n, p in enumerate(shares, 1)})
    assert (relevant, support) == pytest.approx((0.75, 0.625))
    assert utility == pytest.approx(0.6)
    assert critique_score((relevant, support, utility), (1.0, 1.0, 0.5)) == pytest.approx(1.675)


def test_self_rag_s_segment_has_the_mean_probability_of_its_tokens() -> None:
    assert isclose(segment_likelihood(tokens(("a", 0.9), ("b", 0.4))), 0.6)
    assert segment_likelihood(()) == 0.0


def test_a_token_named_in_words_is_sure_and_none_named_is_even() -> None:
    assert match_token("relevant", "I think: irrelevant") == {
        "[Relevant]": 0.0,
        "[Irrelevant]": 1.0,
    }
    assert aspect_value("utility", match_token("utility", "[Utility:4]")) == 0.5
    assert aspect_value("support", match_token("support", "hm")) == 0.5


def test_sure_adds_validity_and_rank() -> None:
    """Of three: 1 beats 0 and ties with 2, 0 beats 2. Sums 0 + 1, 1 + 1.5, 1 + 0.5."""
    wins = {(0, 1): 0.0, (1, 0): 1.0, (1, 2): 0.5, (2, 1): 0.5, (0, 2): 1.0, (2, 0): 0.0}
    assert rank_scores(3, wins) == [1.0, 1.5, 0.5]
    assert choose_candidate([False, True, True], wins) == 1
    assert choose_candidate([], {}) == 0
