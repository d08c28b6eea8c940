"""The cache of the model server that tests use counts as real ones do."""

from prefix_cache import PrefixCache, template_tokens


def words(count: int, first: int = 0) -> list[str]:
    return [f" w{n}" for n in range(first, first + count)]


def test_what_a_former_prompt_began_with_is_cached_in_whole_blocks() -> None:
    cache = PrefixCache(block=4)
    assert cache.read_prompt(words(10)) == 0
    assert cache.read_prompt([*words(10), *words(5, 100)]) == 8, "two blocks of ten words"
    assert cache.read_prompt([*words(3), " other", *words(6, 4)]) == 0


def test_the_same_words_after_others_are_not_cached() -> None:
    cache = PrefixCache(block=4)
    cache.read_prompt(words(8))
    assert cache.read_prompt([" new", *words(8)]) == 0
    assert cache.read_prompt([*words(4), *words(4, 50)]) == 4


def test_the_last_token_is_always_read() -> None:
    cache = PrefixCache(block=4)
    cache.read_prompt(words(8))
    assert cache.read_prompt(words(8)) == 7


def test_a_turn_is_its_role_and_its_words() -> None:
    turns = [{"role": "user", "content": "Which drug?"}]
    assert template_tokens(turns) == ["<|user|>", "Which", " drug", "?", "<|end|>", "<|assistant|>"]
