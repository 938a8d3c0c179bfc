"""Fills the READMEs of the reproductions from their results files, and figures that the documentation marks.

    python reproductions/fill_readme.py [PAPER …]

Without a paper, all of them. It needs neither data nor models.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common.readme import README, TEMPLATE, Results, filled, marked

from recollect.files import write_text

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Fill what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help="such as huang2021; all if none is named")
    papers = parser.parse_args().papers or sorted(file.parent.name for file in HERE.glob(f"*/{TEMPLATE}"))
    for paper in papers:
        folder = HERE / paper
        results = Results(folder / "results")
        update(folder / README, filled((folder / TEMPLATE).read_text(encoding="utf-8"), results))
        print(f"{paper}: {sum(len(each.figures) for each in results.studies.values()):,} figures", flush=True)
    for page in sorted((HERE.parent / "docs").rglob("*.md")):
        update(page, marked(page.read_text(encoding="utf-8"), HERE))
    return 0


def update(file: Path, text: str) -> None:
    """Write a file that is not so yet, and say so."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_text(file, text)
        print(f"  {file.relative_to(HERE.parent)} written anew")


if __name__ == "__main__":
    sys.exit(main())
