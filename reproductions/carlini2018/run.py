"""The studies of Carlini et al. 2018, "The Secret Sharer", one after the other.

    python reproductions/carlini2018/run.py --data DATA [--work WORK] [STUDY …]

Killed at any moment and started again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from laboratory import Laboratory
from outcomes import Outcome, outside
from transformers.utils.logging import disable_progress_bar

from recollect.errors import RecollectError
from recollect.files import write_text

HERE = Path(__file__).parent
STUDIES = (
    "figure4_epochs",
    "section71_extraction",
    "figure2_curve",
    "figure6_estimates",
    "section41_one_epoch",
    "section66_likeliest",
    "table3_context",
    "table4_secrets",
    "table1_architectures",
    "table2_batches",
    "table7_privacy",
    "appendix_d_regularisation",
    "appendix_f_sanitising",
    "section63_optimisers",
    "section73_words",
    "table6_translation",
    "section72_enron",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "studies", nargs="*", metavar="STUDY", help=f"any of: {', '.join(STUDIES)}; all if none is named"
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("RECOLLECT_DATA"), help="folder with ptb/, …")
    parser.add_argument("--work", type=Path, default=Path(".recollect/carlini2018"), help="where models are kept")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch; it moves the last digits")
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the data lies: --data DIR, or the environment variable RECOLLECT_DATA")
    if unknown := set(given.studies) - set(STUDIES):
        parser.error(f"no study {', '.join(sorted(unknown))}; there are {', '.join(STUDIES)}")
    return given


def main() -> int:
    given = arguments()
    laboratory = Laboratory(
        data=given.data, work=given.work, threads=given.threads, say=lambda line: print(line, flush=True)
    )
    disable_progress_bar()
    wrong, failed = [], []
    for name in given.studies or STUDIES:
        print(f"{name} …", flush=True)
        began = time.monotonic()
        try:
            outcome = importlib.import_module(f"studies.{name}").study(laboratory)
        except RecollectError as error:
            failed.append(f"{name}: {error}")
            continue
        outcome.save(given.work / "results" / f"{name}.json")
        print(f"\n{outcome.table()}\n{time.monotonic() - began:.0f} s\n", flush=True)
        write_text(given.work / "summary.md", summary(given.work / "results"))
        wrong += outside(name, outcome.figures, HERE / "expected.json")
    for line in [*failed, *wrong]:
        print(line, file=sys.stderr)
    return 2 if failed else bool(wrong)


def summary(results: Path) -> str:
    """The tables of all studies that were done so far."""
    files = [results / f"{name}.json" for name in STUDIES]
    return "\n".join(Outcome.load(file).table() for file in files if file.exists())


if __name__ == "__main__":
    sys.exit(main())
