"""Changes in a watched folder under kill -9: how many of them are lost.

    python benchmarks/watch_kills.py [CHANGES] [KILLS] [SEED]

A child process watches a folder; this one makes changes in it (a file comes, changes or goes) and
kills the child (SIGKILL) at random moments, starting it again at once. At the end the knowledge
base must hold exactly the folder's texts, each with its vector, and `verify` must find nothing.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from osler.app.watch import tick_every, watch_folder
from osler.kb.base import KnowledgeBase
from osler.testing.scripted import HashingEncoder

_SOURCE = "own"


def watch_forever(kb: Path, folder: Path) -> None:
    with KnowledgeBase.open(kb) as opened:
        opened.wait = 10.0
        for _ in watch_folder(opened, folder, _SOURCE, HashingEncoder(), tick_every(0.05)):
            pass


def start_child(kb: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--child", str(kb), str(folder)]
    return subprocess.Popen(command)  # noqa: S603


def main(changes: int, kills: int, seed: int) -> None:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as root:
        kb, folder = Path(root) / "kb", Path(root) / "inbox"
        KnowledgeBase.create(kb).close()
        folder.mkdir()
        texts: dict[str, str] = {}
        child = start_child(kb, folder)
        moments = set(draw.sample(range(changes), kills))
        for number in range(changes):
            make_change(draw, folder, texts, number)
            time.sleep(draw.uniform(0, 0.15))
            if number in moments:
                child.send_signal(signal.SIGKILL)
                child.wait()
                child = start_child(kb, folder)
        lost = wait_until_equal(kb, texts)
        child.kill()
        child.wait()
        with KnowledgeBase.open(kb) as opened:
            problems = opened.verify()
        print(
            f"{changes} changes, {kills} kills, seed {seed}: {len(texts)} files left,"
            f" lost {lost}, problems {problems}"
        )


def make_change(draw: random.Random, folder: Path, texts: dict[str, str], number: int) -> None:
    kind = draw.choice(("come", "come", "change", "go")) if texts else "come"
    name = f"f{number}.txt" if kind == "come" else draw.choice(sorted(texts))
    if kind == "go":
        (folder / name).unlink()
        del texts[name]
    else:
        texts[name] = f"Statement {number} of {name}, word{number}."
        (folder / name).write_text(texts[name])


def wait_until_equal(kb: Path, texts: dict[str, str], seconds: float = 60.0) -> int:
    """How many texts the knowledge base lacks or has too many, once nothing changes any more."""
    until, wanted, found = time.monotonic() + seconds, set(texts.values()), set()
    while time.monotonic() < until:
        with KnowledgeBase.open(kb) as opened:
            read = opened.read_documents(_SOURCE)
            found = {" ".join(passage.text for passage in document) for document in read}
            whole = found == wanted and not opened.verify()
        if whole:
            return 0
        time.sleep(0.2)
    return len(found ^ wanted)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        watch_forever(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        given = [int(value) for value in sys.argv[1:4]]
        main(*(given + [500, 40, 0][len(given) :]))
