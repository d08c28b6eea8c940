"""What `make mutants` draws, names and counts; mutmut itself is not run here."""

from pathlib import Path

import mutants
import pytest

SOURCE = '''"""A module."""


class Stack:
    def pop(self, depth: int) -> int:
        if depth >= 1:
            return depth
        return 0


def pop(depth: int) -> int:
    if depth >= 1:
        return depth
    return 0
'''
DIFF = """--- a.py
+++ a.py
@@ -1,4 +1,4 @@
 def pop(depth: int) -> int:
-    if depth >= 1:
+    if depth > 1:
         return depth
     return 0"""


def test_a_larger_sample_holds_the_smaller_ones() -> None:
    names = [f"m{number}" for number in range(100)]
    small, large = (mutants.sample_names(names, count, seed=4) for count in (10, 30))
    assert large[:10] == small
    assert mutants.sample_names(reversed(names), 10, seed=4) == small
    assert mutants.sample_names(names, 10, seed=5) != small


@pytest.mark.parametrize(("function", "line"), [("Stack.pop", 6), ("pop", 12)])
def test_a_change_is_found_in_its_own_function(function: str, line: int) -> None:
    change = mutants.read_change(DIFF, SOURCE, function)
    assert change == mutants.Change(line, "if depth >= 1:", "if depth > 1:")


def test_a_change_that_only_adds_is_told_at_its_function() -> None:
    diff = "--- a\n+++ a\n@@ -1 +1,2 @@\n def pop(depth: int) -> int:\n+    return 1"
    assert mutants.read_change(diff, SOURCE, "pop") == mutants.Change(11, "", "return 1")


def test_shares_are_counted_by_room() -> None:
    tried = [
        mutants.Mutant("a", "packages/osler/src/osler/methods/kag/focus.py", "killed"),
        mutants.Mutant("b", "packages/osler/src/osler/methods/kag/focus.py", "survived"),
        mutants.Mutant("c", "packages/osler/src/osler/answer/gate.py", "timeout"),
        mutants.Mutant("d", "packages/osler/src/osler/answer/gate.py", "no tests"),
    ]
    counts = mutants.summarise(tried)
    assert {room: (c["tried"], c["caught"]) for room, c in counts.items()} == {
        "methods": (2, 1),
        "answer": (2, 1),
    }


def test_every_equivalent_mutant_has_a_reason_and_stands_for_a_line_that_is_there(
    tmp_path: Path,
) -> None:
    for known in mutants.read_equivalents():
        lines = (mutants.ROOT / known.path).read_text(encoding="utf-8").splitlines()
        text = " ".join(line.strip() for line in lines)
        assert known.removed in text, known
    unreviewed = tmp_path / "list.toml"
    unreviewed.write_text('[[mutant]]\npath = "a"\nremoved = "x"\nadded = "y"\nreason = " "\n')
    with pytest.raises(ValueError, match="no reason"):
        mutants.read_equivalents(unreviewed)
