"""How long the reader of logical forms takes for a broken reply, at worst.

    python benchmarks/speed/forms.py [--n 20000]

A plan of four steps with hostile names is mutated in one to five places; each reply is read as a
plan and as a search, and must give one of them or `MalformedOutput`.
"""

from __future__ import annotations

import argparse
import random
import time

from osler.errors import MalformedOutput
from osler.methods.kag.parse import read_plan, read_search

WHOLE = """<think>so</think>
<answer>Step1: Who made it?
Action1: Retrieval(s=s1:film['a, p=b, o=c'], p=p1:by, o=o1:person, o.born<=1950)
Step2: How much is #1?
Action2: Math(content=['o1', 'weight=16kg'], target='the sum')->o2
Step3: Which of #1 and #2?
Action3: Deduce(op=choice, content=['o1', 'it\\'s, p=b'], target='which (of them) first')->o3
Step4: Output #3.
Action4: Output(o3)</answer>"""
PIECES = (
    *("a, p=b, o=c", "x'], p=p1, o=o1)", "糖尿病，o=药物）", "Step2: x", "Action1: Output(o1)"),
    *(")->o9", "\\", "“quoted”", "’)", "'", "(", "，", "<answer>", "</answer>", "[", "]"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    given = parser.parse_args()
    chance, times = random.Random(0), []
    read = malformed = 0
    for _ in range(given.n):
        text = WHOLE
        for _ in range(chance.randint(1, 5)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(PIECES) + text[at + chance.randint(0, 6) :]
        for reader in (read_plan, read_search):
            began = time.process_time()
            try:
                reader(text)
                read += 1
            except MalformedOutput:
                malformed += 1
            times.append(1000 * (time.process_time() - began))
    times.sort()
    print(f"{given.n} broken replies, each read twice: {read} read, {malformed} malformed")
    print(
        f"ms of processor time: median {times[len(times) // 2]:.3f},"
        f" 99.9 % {times[int(0.999 * len(times))]:.3f}, slowest {times[-1]:.3f}"
    )


if __name__ == "__main__":
    main()
