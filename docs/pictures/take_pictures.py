"""Take the pictures of the docs: `python docs/pictures/take_pictures.py DEMO_FOLDER`, the folder of a `recollect demo`.

Each picture is one part of the demo's report, as Chromium shows it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "chromium")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000")
WIDTH, SCALE = 1050, 0.8
"""How wide the page is, and how many pixels of the picture one of the page is."""
FIGURES = {"provenance": 2, "exposure": 2, "leakage": 2, "membership": 2, "removal": 3}
"""How many figures of each audit are shown."""
SCRIPT = """
const section = document.getElementById("%(section)s").closest("section");
const whole = "%(section)s" === "questions" ? "nav, section, footer" : "nav, header, section, footer";
for (const each of document.querySelectorAll(whole)) if (each !== section) each.remove();
let shown = !"%(start)s", figures = 0;
for (const each of [...section.children]) {
  if ([...each.querySelectorAll("h3"), each].some(part => part.tagName === "H3" && part.innerText === "%(start)s"))
    shown = true;
  if (!shown || figures >= %(figures)d) each.remove();
  figures += each.tagName === "FIGURE";
}
section.style.cssText = "margin-top: 0; padding-top: 12px; border: 0";
section.firstElementChild.style.marginTop = "0";
const ends = [section, ...section.querySelectorAll("tr, li, .steps > div, figure")].map(
  each => each.getBoundingClientRect().bottom + scrollY);
document.documentElement.dataset.height = Math.ceil(Math.max(...ends.filter(end => end <= %(most)d))) + 2;
"""
"""Leaves one part of the report, and tells where it ends: with a whole row, if it is too long."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A part of the report."""

    name: str
    section: str
    """The id of its heading."""
    start: str = ""
    """The heading inside of it that the picture begins with; its own, if empty."""
    figures: int = 99
    """After so many figures it ends."""
    most: int = 1800
    """How many pixels of the page it is high at most."""


PICTURES = (
    *(Picture(name=f"report-{audit}", section=f"audit-{audit}", figures=figures) for audit, figures in FIGURES.items()),
    Picture(name="report-questions", section="questions"),
    Picture(name="report-models", section="models"),
    Picture(name="report-steps", section="steps", most=760),
    Picture(name="report-numbers", section="audit-membership", start="The Numbers", most=700),
    Picture(name="report-table", section="audit-exposure", start="Checks and Notes", most=640),
    Picture(name="report-untested", section="untested", most=600),
    Picture(name="report-annex", section="annex", most=1400),
)


def open_page(page: Path, *words: str) -> str:
    """What Chromium writes about a page."""
    with tempfile.TemporaryDirectory() as profile:
        command = [CHROMIUM, *QUIET, f"--user-data-dir={profile}", *words, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def take_picture(picture: Picture, report: str, scratch: Path) -> None:
    """Take one picture; the policy of the page, which lets no script but its own run, goes first."""
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", report)
    page = scratch / f"{picture.name}.html"
    script = f"<script>{SCRIPT % vars(picture)}</script></body>"
    page.write_text(free.replace("</body>", script), encoding="utf-8")
    found = re.search(r'data-height="(\d+)"', open_page(page, f"--window-size={WIDTH},800", "--dump-dom"))
    height = int(found[1]) if found else picture.most
    shot = HERE / f"{picture.name}.png"
    open_page(page, f"--window-size={WIDTH},{height}", f"--force-device-scale-factor={SCALE}", f"--screenshot={shot}")


def main(demo: Path) -> int:
    """Take all of them."""
    report = demo / "unprotected" / "report.html"
    open_page(report, "--window-size=1280,1000", f"--screenshot={HERE.parent / 'report.png'}")
    with tempfile.TemporaryDirectory() as scratch:
        for picture in PICTURES:
            take_picture(picture, report.read_text(encoding="utf-8"), Path(scratch))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).resolve()))
