"""Forty seconds of the page as an animated WebP: asked, opened, gone on, refused, in Chinese.

    python benchmarks/film.py docs/img/page.webp [--home HOME] [--picture docs/img/page-en.png]

A real `osler serve` over the sample texts, in a real Chromium: every frame is a picture of the
page; `--picture` is the first answer, whole. How long each stands is for reading; the time that an
answer takes is measured by `speed/page.py`. Needs the built page, playwright, Pillow, a Chromium.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from screenshots import FLAGS, build_texts, served

SIZE = (1280, 800)
SHOWN = (960, 600)
"""Pixels of the window, and of the film."""
QUALITY = 60
COLOURS = 64
"""Of the picture."""
LETTERS = 6
"""Written between two frames."""
METFORMIN = "What is the eGFR limit for metformin?"
UNKNOWN = "What does zorblaxine do in gout?"
CRY = "I have crushing chest pain and cannot breathe"
ZH = "长期服用华法林的患者加用胺碘酮后，INR会怎样变化？"


class Camera:
    """Takes pictures of a page, each with the milliseconds that it stands."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def take(self, milliseconds: int) -> None:
        picture = Image.open(io.BytesIO(self.page.screenshot(animations="disabled")))
        self.frames.append(picture.convert("RGB").resize(SHOWN, Image.Resampling.LANCZOS))
        self.times.append(milliseconds)

    def write(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label)
        for end in range(LETTERS, len(text) + LETTERS, LETTERS):
            field.fill(text[:end])
            self.take(220)
        self.page.keyboard.press("Enter")

    def wait_for(self, selector: str) -> None:
        self.page.locator(selector).last.wait_for()
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_timeout(300)

    def scroll(self, selector: str) -> None:
        self.page.locator(selector).last.scroll_into_view_if_needed()
        self.page.wait_for_timeout(100)


def play(camera: Camera, picture: Path | None) -> None:
    """What a newcomer does, in the order of the film."""
    page = camera.page
    camera.wait_for(".example")
    camera.take(2_500)
    camera.write("A medical question", METFORMIN)
    camera.take(500)
    camera.wait_for(".suggested .example")
    camera.take(5_000)
    if picture is not None:
        whole = Image.open(io.BytesIO(page.screenshot(full_page=True)))
        whole.convert("RGB").quantize(COLOURS).save(picture, optimize=True)
    page.locator(".cite").first.click()
    camera.take(4_000)
    page.keyboard.press("Escape")
    camera.scroll(".suggested")
    camera.take(2_500)
    page.locator(".suggested .example").first.click()
    page.locator(".turn").nth(1).wait_for()
    camera.wait_for(".turn .answer")
    camera.scroll(".turn .answer")
    camera.take(4_000)
    for question, stays in ((UNKNOWN, 4_000), (CRY, 3_500)):
        page.get_by_role("link", name="New question").click()
        camera.write("A medical question", question)
        camera.wait_for(".answer")
        camera.take(stays)
    page.get_by_role("button", name="中文").click()
    page.get_by_role("link", name="新问题").click()
    camera.write("医学问题", ZH)
    camera.wait_for(".suggested .example")
    camera.take(4_000)
    page.get_by_role("button", name="深色或浅色").click()
    camera.take(2_500)


def record(url: str) -> Iterator[Camera]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        size = {"width": SIZE[0], "height": SIZE[1]}
        page = browser.new_page(locale="en-GB", viewport=size, color_scheme="light")
        page.set_default_timeout(60_000)
        page.goto(f"{url}/#/")
        yield Camera(page)
        browser.close()


def main(to: Path, home: Path, picture: Path | None) -> None:
    build_texts(home)
    with served(home) as url:
        for camera in record(url):
            play(camera, picture)
    first, *rest = camera.frames
    how: dict[str, Any] = {
        "save_all": True,
        "append_images": rest,
        "duration": camera.times,
        "loop": 0,
    }
    first.save(to, quality=QUALITY, method=6, **how)
    print(f"{to}: {sum(camera.times) / 1000:.1f} s, {to.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("to", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--picture", type=Path)
    said = parser.parse_args()
    if said.home is not None:
        main(said.to, said.home, said.picture)
    else:
        with tempfile.TemporaryDirectory() as made:
            main(said.to, Path(made), said.picture)
