"""Makes up the data of the examples, so that nobody's is needed.

python ../make.py people members=20 controls=40 --each 8     data/members.jsonl, data/controls.jsonl
python ../make.py digits deleted=150 never=800               data/deleted.npz, data/never.npz
"""

from __future__ import annotations

import argparse
from pathlib import Path

from recollect.pipeline.demo.world import write_digits, write_people


def main() -> None:
    """Write one file per group into the folder `data`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["people", "digits"])
    parser.add_argument("groups", nargs="+", metavar="NAME=SIZE")
    parser.add_argument("--each", type=int, default=8, help="texts of each person")
    given = parser.parse_args()
    sizes = {name: int(size) for name, size in (group.split("=") for group in given.groups)}
    if given.what == "people":
        write_people(Path("data"), sizes, each=given.each)
    else:
        write_digits(Path("data"), sizes)


if __name__ == "__main__":
    main()
