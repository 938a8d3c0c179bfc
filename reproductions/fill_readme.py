"""Fills the README of a paper with the figures of its results files, and the documentation with those it marks.

    python reproductions/fill_readme.py huang2021 [--work FOLDER]

With `--work`, the results of that work folder are taken over into the paper's folder first.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common.readme import README, TEMPLATE, Results, filled, marked, take_over

from recollect.files import write_text


def main() -> int:
    """Fill the README of the paper that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", help="such as huang2021")
    parser.add_argument("--work", type=Path, help="take over the results of this work folder of the paper first")
    given = parser.parse_args()
    folder = Path(__file__).resolve().parent / given.paper
    if given.work is not None:
        take_over(given.work, folder / "results")
    template = (folder / TEMPLATE).read_text(encoding="utf-8")
    write_text(folder / README, filled(template, Results(folder / "results")))
    for page in sorted((folder.parents[1] / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := marked(text, folder.parent)) != text:
            write_text(page, new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
